package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/upstream"
	"github.com/google/go-cmp/cmp"
)

// asksIn is a server that asks things during a call, and answers the call with
// what it was told. The first id is that of the call itself.
func asksIn(t *testing.T, methods ...string) *server {
	return serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			send := events(w)
			for i, method := range methods {
				id := fmt.Sprintf(`"q%d"`, i)
				if i == 0 {
					id = string(m.ID)
				}
				send(`data: {"jsonrpc":"2.0","id":%s,"method":%q,"params":{"n":%d}}`, id, method, i)
			}
			var told []string
			for range methods {
				told = append(told, s.reply(r.Context()))
			}
			send(`data: {"jsonrpc":"2.0","id":%s,"result":{"n":%d}}`, m.ID, len(told))
		}
	})
}

// reply waits for the next answer to what the server asked.
func (s *server) reply(ctx context.Context) string {
	for {
		select {
		case m := <-s.got:
			if m.Method == "" && m.Verb == http.MethodPost {
				return string(m.ID) + string(m.Result) + string(m.Error)
			}
		case <-ctx.Done():
			return ""
		}
	}
}

func TestHTTPAsk(t *testing.T) {
	s := asksIn(t, "elicitation/create", "ping", "roots/list", "sampling/createMessage", "x")
	k := newRecorder()
	k.ask = func(_ context.Context, method string, params []byte) ([]byte, error) {
		switch method {
		case "elicitation/create":
			return []byte(`{"action":"accept"}`), nil
		case "roots/list":
			return nil, &upstream.Refusal{Code: -32601, Message: "no \"roots\""}
		case "x":
			return nil, nil
		}
		return nil, errors.New("a secret of the gateway")
	}
	c := s.dial(upstream.Options{})
	got, err := call(t.Context(), c, k)
	if err != nil || string(got.Result) != `{"n":5}` {
		t.Fatalf("%s, %v", got.Result, err)
	}
	want := map[string]string{
		"elicitation/create":     `{"action":"accept"}`,
		"ping":                   `{}`,
		"roots/list":             `{"code":-32601,"message":"no \"roots\""}`,
		"sampling/createMessage": `{"code":-32603,"message":"the request could not be answered"}`,
		"x":                      `{"code":-32603,"message":"the request could not be answered"}`,
	}
	for i, method := range []string{"elicitation/create", "ping", "roots/list", "sampling/createMessage", "x"} {
		if text := s.told(i); text != want[method] {
			t.Errorf("%s was answered with %s, want %s", method, text, want[method])
		}
	}
	if len(k.asked) != 4 || strings.Contains(fmt.Sprint(k.asked), "ping") {
		t.Errorf("asked was %q", k.asked)
	}
}

// told returns the answer that the server got to its request of a number.
func (s *server) told(n int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen {
		if m.Verb == http.MethodPost && m.Method == "" && (string(m.ID) == fmt.Sprintf(`"q%d"`, n) || n == 0 && m.ID[0] != '"') {
			return string(m.Result) + string(m.Error)
		}
	}
	return ""
}

// TestHTTPAskEnds: what a server asks ends with the call, before Call returns, and
// when the server says so.
func TestHTTPAskEnds(t *testing.T) {
	tests := []struct {
		name string
		then string // what the server sends after its request
		ends bool   // the call
	}{
		{"the answer comes", `data: {"jsonrpc":"2.0","id":%s,"result":{}}`, true},
		{"the stream breaks", `data: {`, true},
		{"the server cancels", `data: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			over := make(chan struct{})
			s := serve(t, func(s *server) {
				s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
					send := events(w)
					send(`data: {"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
					if strings.Contains(tt.then, "%s") {
						send(tt.then, m.ID)
					} else {
						send(tt.then)
					}
					if !tt.ends {
						select {
						case <-over:
						case <-r.Context().Done():
						}
						send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
					}
				}
			})
			var running sync.Mutex
			k := newRecorder()
			k.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
				running.Lock()
				defer running.Unlock()
				<-ctx.Done()
				close(over)
				return []byte("{}"), nil
			}
			_, err := call(t.Context(), s.dial(upstream.Options{}), k)
			if (err != nil) != (tt.then == "data: {") {
				t.Error(err)
			}
			if !running.TryLock() {
				t.Error("the sink is still asked")
			}
			if len(k.asked) > 0 {
				<-over
			}
			if n := s.count("reply"); n != 0 {
				t.Errorf("the server got %d answers that it does not want", n)
			}
		})
	}
}

// TestHTTPAsksTooMuch: what is asked beyond what may wait is refused, and the call goes on.
func TestHTTPAsksTooMuch(t *testing.T) {
	const most, more = 16, 3
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			send := events(w)
			for i := range most + more {
				send(`data: {"jsonrpc":"2.0","id":"q%d","method":"roots/list"}`, i)
			}
			for range more {
				if got := s.reply(r.Context()); !strings.Contains(got, "too many") {
					t.Errorf("it is told %q", got)
				}
			}
			send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
	})
	k := newRecorder()
	k.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := call(ctx, s.dial(upstream.Options{}), k); err != nil {
		t.Error(err)
	}
}

// TestHTTPAsksAgain: what a server says once more, as it may when its stream is taken up again, is asked and answered once.
func TestHTTPAsksAgain(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			send := events(w)
			for range 3 {
				send(`data: {"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
			}
			if got := s.reply(r.Context()); !strings.Contains(got, "roots") {
				t.Errorf("it is told %q", got)
			}
			send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
	})
	k := newRecorder()
	k.ask = func(context.Context, string, []byte) ([]byte, error) {
		<-time.After(100 * time.Millisecond) // by which all of it is read
		return []byte(`{"roots":[]}`), nil
	}
	if _, err := call(t.Context(), s.dial(upstream.Options{}), k); err != nil {
		t.Error(err)
	}
	if n := len(k.asked); n != 1 {
		t.Errorf("it is asked %d times", n)
	}
}

// TestHTTPAskModern: a modern server has no requests, so none is answered.
func TestHTTPAskModern(t *testing.T) {
	s := serve(t, func(s *server) {
		s.modern = true
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			send := events(w)
			send(`data: {"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
			send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
	})
	k := newRecorder()
	if _, err := call(t.Context(), s.dial(upstream.Options{}), k); err != nil {
		t.Fatal(err)
	}
	if k.asked != nil || s.count("reply") != 0 {
		t.Errorf("asked %q, answered %d", k.asked, s.count("reply"))
	}
}

// resuming is a server that ends its streams early: lives are what each brings.
func resuming(t *testing.T, lives []string) *server {
	return serve(t, func(s *server) {
		var mu sync.Mutex
		var id string
		next := func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			if len(lives) == 0 {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			life := lives[0]
			lives = lives[1:]
			if life == "abort" {
				panic(http.ErrAbortHandler)
			}
			code, text, _ := strings.Cut(life, " ")
			if code, err := strconv.Atoi(code); err == nil {
				status(w, code, "text/plain", text)
				return
			}
			send := events(w)
			for e := range strings.SplitSeq(life, "|") {
				send("%s", strings.ReplaceAll(e, "ID", id))
			}
		}
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			id = string(m.ID)
			next(w, r)
		}
		s.listen = next
		s.doubt = func(w http.ResponseWriter, r *http.Request, m msg) {
			if len(lives) == 0 {
				knows(w, r, m)
				return
			}
			next(w, r)
		}
	})
}

// TestHTTPResume: a stream of a legacy server is taken up again where it ended, and
// the request is not sent twice.
func TestHTTPResume(t *testing.T) {
	const (
		prime = "id: 1\nretry: 1\ndata:"
		note  = "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"n\"}"
		done  = "id: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}"
	)
	tests := []struct {
		name  string
		lives []string
		text  string   // of the error
		from  []string // the ids after which it was taken up
		lost  bool
	}{
		{"at once", []string{prime + "\n\n" + note + "\n\n" + done}, "", nil, false},
		{"after the first event", []string{prime, note + "|" + done}, "", []string{"1"}, false},
		{"twice", []string{prime, note, done}, "", []string{"1", "2"}, false},
		{"nothing new for a while", []string{prime, prime, prime, prime, done}, "", []string{"1", "1", "1", "1"}, false},
		{"a failure on the way", []string{prime, "abort", done}, "", []string{"1", "1"}, false},
		{"no id", []string{"retry: 1\ndata:"}, "ended the stream without an answer", nil, false},
		{"an id that is no header", []string{"id: a\x01\nretry: 1\ndata:"}, "ended the stream without an answer", nil, false},
		{"no end of it", []string{prime, prime, prime, prime, prime, prime, prime, prime}, "ended the stream without an answer", []string{"1", "1", "1", "1", "1"}, false},
		{"no more", []string{prime}, "status 405", []string{"1"}, false},
		{"the session is gone", []string{prime, "404 Session not found", "404"}, "refuses the request (404 Not Found)", []string{"1"}, true},
		{"there is nothing to resume", []string{prime, "404"}, "refuses the request (404 Not Found)", []string{"1"}, false},
		{"nobody is let in", []string{prime, "401"}, "(401 Unauthorized)", []string{"1"}, false},
		{"much later", []string{"id: 1\nretry: 999999999\ndata:"}, "wants to be asked again too late", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := resuming(t, tt.lives)
			c := s.dial(upstream.Options{})
			_, err := call(t.Context(), c, nil)
			checkLost(t, c, tt.lost)
			if tt.text == "" && err != nil {
				t.Error(err)
			}
			if tt.text != "" {
				if f := failed(t, err, tt.text); f.Unsent || f.Undone || f.Lost {
					t.Errorf("unsent %v, undone %v, lost %v: it may have been done", f.Unsent, f.Undone, f.Lost)
				}
			}
			var from []string
			for _, m := range s.seen {
				if m.Verb == http.MethodGet {
					from = append(from, m.Header.Get("Last-Event-Id"))
					if m.Header.Get("Mcp-Session-Id") != "s-1" || m.Header.Get("Accept") != "text/event-stream" {
						t.Errorf("GET with %v", m.Header)
					}
				}
			}
			if diff := cmp.Diff(tt.from, from); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if n := s.count("tools/call"); n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
}

// TestHTTPManyAtOnce: answers find their calls.
func TestHTTPManyAtOnce(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			if len(m.Params)%2 == 0 {
				answer(w, m, string(m.Params))
				return
			}
			send := events(w)
			send(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":%s}`, m.Params)
			send(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, m.Params)
		}
	})
	c := s.dial(upstream.Options{})
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := range 20 {
				want := fmt.Sprintf(`{"w":%d,"i":%d}`, worker, i)
				k := newRecorder()
				got, err := c.Call(t.Context(), upstream.Request{Method: "x", Params: []byte(want)}, k)
				if err != nil || string(got.Result) != want {
					t.Errorf("%s: %s, %v", want, got.Result, err)
				}
				for _, note := range k.all() {
					if note != "notifications/progress"+want {
						t.Errorf("%s: heard %s", want, note)
					}
				}
			}
		})
	}
	all.Wait()
	ids := map[string]bool{}
	for _, m := range s.seen {
		if m.Method == "x" && ids[string(m.ID)] {
			t.Errorf("the id %s was used twice", m.ID)
		}
		ids[string(m.ID)] = true
	}
}

// TestHTTPConnections: connections are used again, whatever the answers were.
func TestHTTPConnections(t *testing.T) {
	var mu sync.Mutex
	opened := map[string]bool{}
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			mu.Lock()
			opened[r.RemoteAddr] = true
			mu.Unlock()
			switch m.Method {
			case "stream":
				events(w)(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			case "large":
				answer(w, m, `{"a":"`+strings.Repeat("x", 100<<10)+"\"}\n")
			case "refused":
				status(w, 500, "text/plain", "oops\n")
			default:
				answer(w, m, "{}\n")
			}
		}
	})
	c := s.dial(upstream.Options{})
	for range 50 {
		for _, method := range []string{"stream", "large", "refused", "small"} {
			_, _ = c.Call(t.Context(), upstream.Request{Method: method}, nil)
		}
	}
	if len(opened) > 10 {
		t.Errorf("200 calls opened %d connections", len(opened))
	}
}

// TestHTTPStreamStaysOpen: an answer is not held back by a server that does not
// end its stream.
func TestHTTPStreamStaysOpen(t *testing.T) {
	over := make(chan struct{})
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			events(w)(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			<-r.Context().Done()
			close(over)
		}
	})
	if _, err := call(t.Context(), s.dial(upstream.Options{}), nil); err != nil {
		t.Fatal(err)
	}
	select {
	case <-over:
	case <-time.After(patience):
		t.Error("the stream is never closed")
	}
}
