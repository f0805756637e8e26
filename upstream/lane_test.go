package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"capgate/upstream"
)

// script is a server that answers the requests on each connection with what is
// written for them, and then closes it. It counts the connections.
type script struct {
	url   string
	conns atomic.Int64
	done  chan struct{} // holds a token for each answer, when all that belongs to it was done
}

func newScript(t *testing.T, answers ...string) *script {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{url: "http://" + l.Addr().String() + "/mcp", done: make(chan struct{}, 16)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Add(1)
			s.serve(conn, answers)
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return s
}

func (s *script) serve(conn net.Conn, answers []string) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	r := bufio.NewReader(conn)
	for i, answer := range answers {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		if answer == "wait" {
			_, _ = r.Peek(1) // until the client hangs up
			return
		}
		_, _ = io.WriteString(conn, answer)
		if i == len(answers)-1 {
			_ = conn.Close()
		}
		s.done <- struct{}{}
	}
}

// post sends one short request over lanes.
func post(ctx context.Context, t *testing.T, over http.RoundTripper, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := over.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status[:3] + " " + string(body), err
}

const (
	plain   = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
	none    = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
)

// TestLanes sends three requests, one after the other: what each brings, and over
// how many connections.
func TestLanes(t *testing.T) {
	for name, test := range map[string]struct {
		answers []string // on each connection
		want    string
		conns   int64
	}{
		"kept":                        {[]string{plain, chunked, none}, "200 ok|200 ok|202 ", 1},
		"closed by its server":        {[]string{plain}, "200 ok|200 ok|200 ok", 3},
		"not to be kept":              {[]string{strings.Replace(plain, "\r\n", "\r\nConnection: close\r\n", 1), plain, plain}, "200 ok|200 ok|200 ok", 3},
		"of HTTP/1.0":                 {[]string{strings.Replace(plain, "1.1", "1.0", 1), plain, plain}, "200 ok|200 ok|200 ok", 3},
		"more than was asked for":     {[]string{plain + plain, plain, plain}, "200 ok|200 ok|200 ok", 3},
		"announced":                   {[]string{"HTTP/1.1 103 Early Hints\r\n\r\n" + plain, plain, plain}, "200 ok|200 ok|200 ok", 1},
		"announced again and again":   {[]string{strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 9) + plain}, "!|!|!", 3},
		"another protocol":            {[]string{"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"}, "!|!|!", 3},
		"cut off":                     {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"}, "!|!|!", 3},
		"no HTTP":                     {[]string{"hello\r\n\r\n"}, "!|!|!", 3},
		"nothing":                     {nil, "!|!|!", 3},
		"two lengths":                 {[]string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"}, "!|!|!", 3},
		"a length beside the chunks":  {[]string{strings.Replace(chunked, "\r\n", "\r\nContent-Length: 99\r\n", 1), plain, plain}, "200 ok|200 ok|200 ok", 1},
		"headers that do not end":     {[]string{"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10)}, "!|!|!", 3},
		"headers that are too many":   {[]string{"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: yyyyyyyy\r\n", 9<<10)}, "!|!|!", 3},
		"a coding that nobody knows":  {[]string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nok"}, "!|!|!", 3},
		"a body without any end":      {[]string{"HTTP/1.1 200 OK\r\n\r\nok"}, "200 ok|200 ok|200 ok", 3},
		"an answer that has no body":  {[]string{"HTTP/1.1 204 No Content\r\n\r\n", plain, plain}, "204 |200 ok|200 ok", 1},
		"a body where there was none": {[]string{"HTTP/1.1 204 No Content\r\n\r\nok", plain}, "204 |204 |204 ", 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, test.answers...)
			over, end := upstream.Lanes(t, s.url)
			defer end()
			var got []string
			for range 3 {
				text, err := post(t.Context(), t, over, s.url)
				if err != nil {
					text = "!"
				} else {
					<-s.done
				}
				got = append(got, text)
			}
			if text := strings.Join(got, "|"); text != test.want || s.conns.Load() != test.conns {
				t.Errorf("%s over %d connections, want %s over %d", text, s.conns.Load(), test.want, test.conns)
			}
		})
	}
}

// TestLaneCancelled leaves a request that is not answered, and one whose answer
// does not end: neither connection is used again.
func TestLaneCancelled(t *testing.T) {
	for name, first := range map[string]string{
		"before the answer": "wait",
		"within the answer": "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, first, "wait")
			over, end := upstream.Lanes(t, s.url)
			defer end()
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if text, err := post(ctx, t, over, s.url); err == nil {
				t.Errorf("%q was an answer", text)
			}
			if n := upstream.IdleLanes(over); n != 0 {
				t.Errorf("%d connections are kept", n)
			}
		})
	}
}

// TestLaneUnreached tells what never was sent from what may have been.
func TestLaneUnreached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String() + "/mcp"
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = upstream.Dial(t.Context(), upstream.Endpoint{Name: "gone", URL: url, Transport: "http"}, upstream.Options{})
	if f, ok := errors.AsType[*upstream.Failed](err); !ok || !f.Unsent {
		t.Errorf("%v does not say that nothing was sent", err)
	}
}

// TestLaneAnsweredEarly: a server may refuse what it has not read.
func TestLaneAnsweredEarly(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1))
			_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Much\r\nContent-Length: 2\r\n\r\nno")
			_ = conn.Close() // with what it did not read
		}
	}()
	url := "http://" + l.Addr().String()
	over, end := upstream.Lanes(t, url)
	defer end()
	lost := 0 // answers, with the end of the connection: the system drops one in thousands
	for range 10 {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(strings.Repeat("x", 4<<20)))
		resp, err := over.RoundTrip(req)
		if errors.Is(err, syscall.ECONNRESET) && lost == 0 {
			lost++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge || string(body) != "no" || err != nil {
			t.Fatal(resp.Status, string(body), err)
		}
	}
}

// TestLaneHead: a request arrives as it was given, and one that could say more than
// its headers is not sent.
func TestLaneHead(t *testing.T) {
	got := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case got <- r:
		default: // nobody waits for what should not have been sent
		}
	}))
	defer server.Close()
	over, end := upstream.Lanes(t, server.URL)
	defer end()
	for _, long := range []int{0, 1, 20 << 10, 3 << 20, -100 << 10} {
		var in io.Reader = strings.NewReader(strings.Repeat("x", max(long, -long)))
		if long < 0 { // in pieces
			long = -long
			in = struct{ io.Reader }{in}
		}
		body := strings.Repeat("x", long)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/a%2Fb?q=%0d", in)
		req.ContentLength = int64(long)
		req.Header = http.Header{"User-Agent": {"capgate"}, "X-Two": {"a\tb", "ü"}}
		resp, err := over.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		r := <-got
		arrived, _ := io.ReadAll(r.Body)
		if want := (http.Header{"User-Agent": {"capgate"}, "X-Two": {"a\tb", "ü"}, "Content-Length": {strconv.Itoa(long)}}); !maps.EqualFunc(r.Header, want, slices.Equal) ||
			string(arrived) != body || r.RequestURI != "/a%2Fb?q=%0d" || "http://"+r.Host != server.URL || r.ContentLength != int64(long) {
			t.Errorf("%s %q with %v and %d bytes arrived", r.Method, r.RequestURI, r.Header, len(arrived))
		}
	}
	for name, value := range map[string]string{"X": "a\r\nMcp-Name: b", "Y": "a\nb", "Z": "a\x00", "A: b\r\nC": "d", "": "e", "B c": "f"} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
		req.Header = http.Header{name: {value}}
		if resp, err := over.RoundTrip(req); err == nil {
			_ = resp.Body.Close()
			t.Errorf("%q: %q was sent", name, value)
		}
	}
	short, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	short.ContentLength = 3
	if resp, err := over.RoundTrip(short); err == nil {
		_ = resp.Body.Close()
		t.Error("less than was announced was sent")
	}
}
