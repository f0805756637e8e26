package upstream_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"capgate/upstream"
)

// memory is what a caller lends to its requests, one after another.
type memory struct {
	around, into []byte
	sent         chan struct{} // a token when around is not in use
	dropped      bool          // it may never be said: an answer can come before what was written is counted
}

func newMemory() *memory {
	m := &memory{sent: make(chan struct{}, 1)}
	m.sent <- struct{}{}
	return m
}

// request writes params where there is room around them. What was there before is
// overwritten as soon as nothing is said to read it.
func (m *memory) request(t testing.TB, params string) upstream.Request {
	t.Helper()
	if m.dropped && len(m.sent) == 0 {
		*m = *newMemory()
		m.dropped = true
	}
	select {
	case <-m.sent:
	case <-time.After(patience):
		t.Fatal("the params are in use for ever")
	}
	m.around = append(append(m.around[:0], make([]byte, upstream.HeadRoom)...), params...)
	m.around = append(m.around, "!!"...)[:len(m.around)]
	return upstream.Request{
		Method: "tools/call", Params: m.around[upstream.HeadRoom:], Around: m.around, Into: &m.into,
		Sent: func() {
			for i := range m.around {
				m.around[i] = '#'
			}
			m.sent <- struct{}{} // a second time it blocks, and the test with it
		},
	}
}

// sizes are those at which memory is lent in different ways.
var sizes = [...]int{10, 1 << 10, 100 << 10, 1 << 20}

func params(size int, mark string) string {
	return `{"name":"echo","arguments":{"n":0},"text":"` + mark + strings.Repeat("é", size/2) + `"}`
}

// TestLentMemory: what is sent and what comes back is the same, whoever's memory it
// is in, while that is used again and again.
func TestLentMemory(t *testing.T) {
	conns := map[string]func(t *testing.T) upstream.Conn{
		"pipe": func(t *testing.T) upstream.Conn { return started(t, program(t, "plain"), upstream.Options{}) },
		"json": func(t *testing.T) upstream.Conn {
			return dial(t, upstream.Endpoint{Name: "files", URL: fast(t, false)}, upstream.Options{})
		},
		"stream": func(t *testing.T) upstream.Conn {
			return dial(t, upstream.Endpoint{Name: "files", URL: fast(t, true)}, upstream.Options{})
		},
	}
	for name, connect := range conns {
		t.Run(name, func(t *testing.T) {
			c := connect(t)
			var callers sync.WaitGroup
			for caller := range 4 {
				callers.Go(func() {
					m := newMemory()
					m.dropped = name == "pipe"
					for i := range 12 {
						size := sizes[(i+caller)%len(sizes)]
						want := params(size, fmt.Sprintf("%d/%d", caller, i))
						r := m.request(t, want)
						if size < 32<<10 && name != "pipe" {
							m.sent <- struct{}{} // it is not said of what is small
							r.Sent = func() { t.Error("somebody was told of a small one") }
						}
						answer, err := c.Call(t.Context(), r, nil)
						if err != nil {
							t.Error(err)
							return
						}
						got := answer.Result
						if name == "pipe" {
							got = bytes.TrimSuffix(bytes.TrimPrefix(got, []byte(`{"content":[],"params":`)), []byte("}"))
						}
						if string(got) != want {
							t.Errorf("%d bytes came back as %d: %.60q", len(want), len(got), got)
							return
						}
					}
				})
			}
			callers.Wait()
		})
	}
}

// TestLentNotWritten: memory in which there is no room, or in which something else
// stands, is left alone.
func TestLentNotWritten(t *testing.T) {
	c := dial(t, upstream.Endpoint{Name: "files", URL: fast(t, false)}, upstream.Options{})
	text := params(40<<10, "x")
	whole := append(make([]byte, upstream.HeadRoom), text...)
	for name, r := range map[string]upstream.Request{
		"no room behind": {Method: "tools/call", Params: whole[upstream.HeadRoom:], Around: whole[:len(whole):len(whole)]},
		"elsewhere":      {Method: "tools/call", Params: []byte(text), Around: make([]byte, len(whole), len(whole)+8)},
		"too short":      {Method: "tools/call", Params: []byte(text), Around: make([]byte, 10, 10<<10)},
		"a long method":  {Method: strings.Repeat("m", upstream.HeadRoom), Params: whole[upstream.HeadRoom:], Around: append(whole, 0)[:len(whole)]},
	} {
		before := string(r.Around)
		r.Sent = func() { t.Errorf("%s: somebody was told", name) }
		answer, err := c.Call(t.Context(), r, nil)
		if err != nil || string(answer.Result) != text {
			t.Errorf("%s: %.60q, %v", name, answer.Result, err)
		}
		if string(r.Around) != before {
			t.Errorf("%s: it was written to", name)
		}
	}
}

// TestLentWhileWritten: a server that answers before it has read the request gets
// the rest of it as it was, or nothing more: never what its memory is used for then.
func TestLentWhileWritten(t *testing.T) {
	var foul atomic.Bool
	done := make(chan struct{}, 8)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := make([]byte, 200)
		n, _ := io.ReadFull(r.Body, head)
		switch text := string(head[:n]); {
		case strings.Contains(text, "server/discover"):
			http.Error(w, "no", http.StatusBadRequest)
		case strings.Contains(text, `"initialize"`):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		case !strings.Contains(text, "tools/call"):
			w.WriteHeader(http.StatusAccepted)
		default:
			id, _, _ := strings.Cut(strings.TrimPrefix(text, `{"jsonrpc":"2.0","id":`), ",")
			rc := http.NewResponseController(w)
			_ = rc.EnableFullDuplex()
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{}}`, id)
			_ = rc.Flush()
			rest, _ := io.ReadAll(r.Body)
			foul.Store(foul.Load() || bytes.ContainsRune(rest, '#'))
			done <- struct{}{}
		}
	}))
	defer s.Close()
	c, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: s.URL, Dial: (&net.Dialer{}).DialContext}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := newMemory()
	for range 4 {
		if _, err := c.Call(t.Context(), m.request(t, params(8<<20, "")), nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("the server still reads")
		}
	}
	if foul.Load() {
		t.Error("the server got what the memory was used for afterwards")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
