//go:build unix

package door_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"capgate/door"
)

const patience = 10 * time.Second // for what comes in a moment

// house is a door with net/http behind it.
type house struct {
	t    testing.TB
	door *door.Door
	http *http.Server
	addr string
	log  *bytes.Buffer // may be read when the house is closed

	mu     sync.Mutex
	behind int // connections that net/http has got
}

// open serves at an address of this machine.
func open(t testing.TB, h http.HandlerFunc) *house {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return openAt(t, l, h, time.Minute, time.Minute)
}

// openAt also says how long it waits for a first request, and for another one.
func openAt(t testing.TB, l net.Listener, h http.HandlerFunc, first, idle time.Duration) *house {
	o := &house{t: t, addr: l.Addr().String(), log: new(bytes.Buffer)}
	o.door = door.Listen(context.WithoutCancel(t.Context()), l, door.Options{
		Handler: h, Path: "/mcp", First: first, Idle: idle, Log: slog.New(slog.NewTextHandler(o.log, nil)),
	})
	o.http = &http.Server{Handler: h, ReadHeaderTimeout: patience, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			o.mu.Lock()
			o.behind++
			o.mu.Unlock()
		}
	}}
	served := make(chan error, 1)
	go func() { served <- o.http.Serve(o.door) }()
	t.Cleanup(func() {
		o.close(patience)
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return o
}

// close lets requests end, for a while.
func (o *house) close(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.t.Context()), limit)
	defer cancel()
	failed := o.http.Shutdown(ctx)
	if err := o.door.Wait(ctx); err != nil {
		_ = o.http.Close()
		return err
	}
	return failed
}

// passed is how many connections net/http has got.
func (o *house) passed() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.behind
}

// visitor is a client that writes its requests itself.
type visitor struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (o *house) visit() *visitor {
	o.t.Helper()
	conn, err := new(net.Dialer).DialContext(o.t.Context(), "tcp", o.addr)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(3 * patience))
	return &visitor{o.t, conn, bufio.NewReader(conn)}
}

// say sends bytes.
func (v *visitor) say(text string) {
	v.t.Helper()
	if _, err := io.WriteString(v, text); err != nil {
		v.t.Fatal(err)
	}
}

// hear reads one answer, whole.
func (v *visitor) hear() (*http.Response, string) {
	v.t.Helper()
	resp, err := http.ReadResponse(v.r, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp, string(body)
}

// ended reads what is left, to the end of the connection.
func (v *visitor) ended() string {
	v.t.Helper()
	rest, err := io.ReadAll(v.r)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(rest)
}

// post is a plain request.
func post(body string, headers ...string) string {
	head := "POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
	for _, h := range headers {
		head += h + "\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// tell answers with what it is asked.
func tell(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	told, err := json.Marshal(map[string]any{
		"method": r.Method, "uri": r.RequestURI, "url": r.URL.String(), "host": r.Host, "proto": r.Proto, "length": r.ContentLength,
		"header": r.Header, "encoding": r.TransferEncoding, "close": r.Close, "trailer": r.Trailer, "body": body,
	})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	switch kind := r.Header.Get("Kind"); kind {
	case "counted":
		w.Header().Set("Content-Length", fmt.Sprint(len(told)))
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(told)
	case "stream":
		for _, b := range bytes.SplitAfter(told, []byte(",")) {
			_, _ = w.Write(b)
			_ = http.NewResponseController(w).Flush()
		}
	case "long":
		for range 40 {
			_, _ = w.Write(told)
		}
	case "nothing":
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusNoContent)
	case "empty":
		w.Header().Del("Content-Type")
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header()["X-Odd"] = []string{"a\r\nb", "c"}
		_, _ = w.Write(told)
	}
}
