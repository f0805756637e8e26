//go:build unix

package door_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestPassed: a connection is net/http's from the first request on that is not plain, and
// nothing of that is lost.
func TestPassed(t *testing.T) {
	o := open(t, tell)
	v := o.visit()
	for range 3 {
		v.say(post("{}"))
		if resp, body := v.hear(); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"body":"e30="`) {
			t.Fatal(resp.Status, body)
		}
	}
	if n := o.passed(); n != 0 {
		t.Fatalf("net/http has %d connections with plain requests only", n)
	}
	for _, request := range []string{"GET /mcp?a HTTP/1.1\r\nHost: a\r\n\r\n", post("{}")} {
		v.say(request)
		if resp, body := v.hear(); resp.StatusCode != http.StatusOK || !strings.Contains(body, `"method":"`+request[:3]) {
			t.Fatal(resp.Status, body)
		}
		if n := o.passed(); n != 1 {
			t.Fatalf("net/http has %d connections", n)
		}
	}
	slow := o.visit()
	request := post("{}")
	slow.say(request[:30])
	within(t, "the beginning of a head to be passed on", func() bool { return o.passed() == 2 })
	slow.say(request[30:])
	if resp, _ := slow.hear(); resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// within waits until something is so.
func within(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		runtime.Gosched()
	}
}

// TestGone: the context of a request ends when the client has gone, in whatever way, and
// not while it is there.
func TestGone(t *testing.T) {
	for name, tt := range map[string]struct {
		leave func(*visitor)
		want  bool // that it is gone
	}{
		"closed":             {func(v *visitor) { _ = v.Close() }, true},
		"reset":              {func(v *visitor) { _ = v.Conn.(*net.TCPConn).SetLinger(0); _ = v.Close() }, true},
		"half closed":        {func(v *visitor) { _ = v.Conn.(*net.TCPConn).CloseWrite() }, true},
		"there":              {func(*visitor) {}, false},
		"sends another one":  {func(v *visitor) { v.say(post("{}")) }, false},
		"sends part of one":  {func(v *visitor) { v.say("P") }, false},
		"sends what is none": {func(v *visitor) { v.say("\x00") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			began, gone, end := make(chan struct{}), make(chan bool, 1), make(chan struct{})
			o := open(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				if r.Header.Get("First") == "" {
					return
				}
				close(began)
				limit := patience
				if !tt.want {
					limit = 300 * time.Millisecond
				}
				select {
				case <-r.Context().Done():
					gone <- true
				case <-time.After(limit):
					gone <- false
				case <-end:
				}
			})
			defer close(end)
			v := o.visit()
			v.say(post("{}", "First: yes"))
			<-began
			tt.leave(v)
			if got := <-gone; got != tt.want {
				t.Errorf("gone: %v", got)
			}
			if tt.want {
				return
			}
			if resp, _ := v.hear(); resp.StatusCode != http.StatusOK {
				t.Error(resp.Status)
			}
		})
	}
}

// TestGoneLater: also who leaves a request that began while the door slept, after another
// one that took long, and with a body that came slowly.
func TestGoneLater(t *testing.T) {
	began, gone := make(chan struct{}), make(chan error)
	o := open(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		switch r.Header.Get("Kind") {
		case "quick":
		case "slow":
			select {
			case <-time.After(200 * time.Millisecond):
			case <-r.Context().Done():
				t.Error("a client that is there is gone")
			}
		default:
			began <- struct{}{}
			<-r.Context().Done()
			gone <- r.Context().Err()
		}
	})
	v := o.visit()
	for range 2 {
		v.say(post("{}", "Kind: slow"))
		v.hear()
		v.say(post("{}", "Kind: quick"))
		v.hear()
	}
	asleep := time.NewTimer(1500 * time.Millisecond) // longer than it stays awake
	<-asleep.C
	request := post(strings.Repeat("x", 100))
	v.say(request[:len(request)-50])
	pause := time.NewTimer(200 * time.Millisecond)
	<-pause.C
	v.say(request[len(request)-50:])
	<-began
	_ = v.Close()
	select {
	case err := <-gone:
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("nobody noticed")
	}
}

// TestBodies reads bodies that come whole, in pieces, and not to their end.
func TestBodies(t *testing.T) {
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		h := sha256.New()
		if _, err := io.Copy(h, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(h.Sum(nil))
	})
	big := strings.Repeat("0123456789", 300_000)
	sum := sha256.Sum256([]byte(big))
	v := o.visit()
	for range 2 {
		go v.say(post(big))
		if _, body := v.hear(); body != string(sum[:]) {
			t.Error("another body was read")
		}
	}
	v.say(post(big)[:2000])
	_ = v.Conn.(*net.TCPConn).CloseWrite()
	if resp, body := v.hear(); resp.StatusCode != http.StatusBadRequest || body != "unexpected EOF\n" || !resp.Close {
		t.Error(resp.Status, body)
	}
	v.ended()
	if o.passed() != 0 {
		t.Error("net/http read one")
	}
}

// TestUnread: a request that is answered before its body has come is answered, whatever
// is still sent, and the rest of its body is not taken for a request.
func TestUnread(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		seen = append(seen, r.Header.Get("Name"))
		mu.Unlock()
		http.Error(w, "no", http.StatusForbidden)
		_ = http.NewResponseController(w).Flush()
		if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, io.EOF) {
			t.Errorf("after the answer %d bytes were read: %v", n, err)
		}
	})
	v := o.visit()
	v.say(post(post("{}", "Name: inner"), "Name: here")) // all of it has come
	if resp, body := v.hear(); resp.StatusCode != http.StatusForbidden || body != "no\n" || resp.Close {
		t.Error(resp, body)
	}
	inner := post("{}", "Name: inner")
	v.say(strings.Replace(post(strings.Repeat(inner, 500), "Name: later"), inner, "", 500))
	if resp, body := v.hear(); resp.StatusCode != http.StatusForbidden || body != "no\n" || !resp.Close {
		t.Error(resp, body)
	}
	for range 500 {
		if _, err := io.WriteString(v, inner); err != nil {
			break // it is closed
		}
	}
	if rest := v.ended(); rest != "" {
		t.Errorf("it was answered %q", rest)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(seen, " "); got != "here later" {
		t.Errorf("requests: %s", got)
	}
}

// TestPanic: a handler that panics ends its connection and nothing else.
func TestPanic(t *testing.T) {
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Kind") {
		case "loud":
			panic("a mistake")
		case "quiet":
			_, _ = w.Write([]byte("half"))
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte("well"))
	})
	for _, kind := range []string{"loud", "quiet"} {
		v := o.visit()
		v.say(post("{}", "Kind: "+kind))
		if rest := v.ended(); rest != "" {
			t.Errorf("%s: it was answered %q", kind, rest)
		}
	}
	v := o.visit()
	v.say(post("{}"))
	if _, body := v.hear(); body != "well" {
		t.Error(body)
	}
	if err := o.close(patience); err != nil {
		t.Error(err)
	}
	if log := o.log.String(); strings.Count(log, "level=ERROR") != 1 || !strings.Contains(log, "a mistake") {
		t.Errorf("the log says %q", log)
	}
}

// TestBroken: an answer that is not as long as was announced ends the connection.
func TestBroken(t *testing.T) {
	for name, write := range map[string]string{"short": "ab", "long": "abcd"} {
		t.Run(name, func(t *testing.T) {
			o := open(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				w.Header().Set("Content-Length", "3")
				if _, err := io.WriteString(w, write); (err != nil) != (name == "long") {
					t.Error(err)
				}
			})
			v := o.visit()
			v.say(post("{}") + post("{}"))
			resp, err := http.ReadResponse(v.r, nil)
			if err == nil {
				if _, err = io.ReadAll(resp.Body); err == nil {
					t.Error("the client could not tell")
				}
			}
		})
	}
}

// TestClose: who waits is sent away, who is being answered is answered, and who takes too
// long is cut off.
func TestClose(t *testing.T) {
	for name, limit := range map[string]time.Duration{"in time": patience, "too long": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			began, end, cut := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
			o := open(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				if r.Header.Get("Kind") == "slow" {
					began <- struct{}{}
					select {
					case <-end:
					case <-r.Context().Done():
						close(cut)
					}
				}
				_, _ = w.Write([]byte("well"))
			})
			never, idle, busy := o.visit(), o.visit(), o.visit()
			idle.say(post("{}"))
			idle.hear()
			busy.say(post("{}", "Kind: slow"))
			<-began
			closed := make(chan error)
			go func() { closed <- o.close(limit) }()
			if rest := idle.ended() + never.ended(); rest != "" {
				t.Errorf("who waited was told %q", rest)
			}
			if name == "in time" {
				close(end)
				if resp, body := busy.hear(); body != "well" || !resp.Close {
					t.Error(resp, body)
				}
			} else {
				<-cut
			}
			if err := <-closed; (err != nil) != (name == "too long") {
				t.Error(err)
			}
			if conn, err := net.Dial("tcp", o.addr); err == nil {
				_ = conn.Close()
				t.Error("somebody still listens")
			}
		})
	}
}

// TestDeaf: a client that takes nothing is cut off when its time is over, and one that was
// given time before has it anew.
func TestDeaf(t *testing.T) {
	failed := make(chan error, 1)
	much := bytes.Repeat([]byte("x"), 64<<20)
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(-20 * time.Second)) // more than it is given beside
		if r.Header.Get("Kind") == "more" {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
			_, _ = w.Write([]byte("well"))
			return
		}
		w.Header().Set("Content-Length", "67108864")
		_, err := w.Write(much)
		failed <- err
	})
	v := o.visit()
	v.say(post("{}", "Kind: more"))
	if _, body := v.hear(); body != "well" {
		t.Error(body)
	}
	v.say(post("{}"))
	if err := <-failed; err == nil {
		t.Error("it was written to for ever")
	}
}

// TestIdle: a connection on which nothing comes is closed in time, and no other.
func TestIdle(t *testing.T) {
	const short = 200 * time.Millisecond
	for name, tt := range map[string]struct {
		first, idle time.Duration
		requests    int
	}{
		"before the first request": {short, time.Hour, 0},
		"after one":                {time.Hour, short, 1},
		"after several":            {time.Hour, short, 5},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			v := openAt(t, l, tell, tt.first, tt.idle).visit()
			for range tt.requests {
				v.say(post("{}"))
				v.hear()
			}
			if rest := v.ended(); rest != "" {
				t.Errorf("it was told %q", rest)
			}
		})
	}
}

// TestLeak: connections that come and go leave nothing.
func TestLeak(t *testing.T) {
	o := open(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.Header.Get("Kind") == "slow" {
			<-r.Context().Done()
		}
	})
	o.visit().say(post("{}"))
	before := runtime.NumGoroutine()
	for range 5 {
		var all []*visitor
		for i := range 40 {
			v := o.visit()
			all = append(all, v)
			request := post("{}", "Kind: "+[]string{"quick", "slow"}[i%2])
			v.say(request[:len(request)-i%3*20])
		}
		for _, v := range all {
			_ = v.Close()
		}
	}
	within(t, "goroutines to end", func() bool { return runtime.NumGoroutine() <= before+2 })
}

// BenchmarkCall is a call by a client that waits for each answer.
func BenchmarkCall(b *testing.B) {
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	handler := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(answer)
	}
	request := post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Content-Type: application/json", "Accept: application/json, text/event-stream", "Authorization: Bearer x")
	for name, first := range map[string]string{"door": request, "net/http": "GET / HTTP/1.1\r\nHost: a\r\n\r\n"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			v := open(b, handler).visit()
			v.say(first)
			v.hear()
			for b.Loop() {
				v.say(request)
				v.hear()
			}
		})
	}
}
