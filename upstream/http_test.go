package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"capgate/upstream"
	"github.com/google/go-cmp/cmp"
)

// TestHTTPAnswer: what the server wrote comes back byte for byte, from either kind of
// response.
func TestHTTPAnswer(t *testing.T) {
	const odd = `{ "n":1.0e2,"s":"\u003c\/", "z":{"é":9007199254740993} ,"a":[ ] }`
	tests := []struct {
		name, message string // with %s for the id
		want          upstream.Answer
	}{
		{"result", `{"jsonrpc":"2.0","id":%s,"result":` + odd + `}`, upstream.Answer{Result: []byte(odd)}},
		{"id last", `{"result":` + odd + `,"jsonrpc":"2.0","id":%s}`, upstream.Answer{Result: []byte(odd)}},
		{
			"error", `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no","data":[1.0]}}`,
			upstream.Answer{Error: []byte(`{"code":-32601,"message":"no","data":[1.0]}`)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(s *server) {
				s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
					text := fmt.Sprintf(tt.message, m.ID)
					if m.Method == "json" {
						status(w, http.StatusOK, "application/json; charset=utf-8", text)
					} else {
						events(w)("event: message\ndata: %s", text)
					}
				}
			})
			c := s.dial(upstream.Options{})
			for _, method := range []string{"json", "stream"} {
				got, err := c.Call(t.Context(), upstream.Request{Method: method}, nil)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", method, diff)
				}
			}
		})
	}
}

// TestHTTPWire: what goes up, in both eras.
func TestHTTPWire(t *testing.T) {
	for _, modern := range []bool{false, true} {
		s := serve(t, func(s *server) {
			s.modern = modern
			s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, `{}`) }
		})
		c := dial(t, upstream.Endpoint{
			Name: "files", URL: s.URL,
			Header: []upstream.Field{{"X-Key", "k"}, {"authorization", "Bearer b"}},
		}, upstream.Options{})
		if c.Info().Modern != modern {
			t.Fatalf("modern is %v", c.Info().Modern)
		}
		params := `{"name":"é","arguments":{"a":1.0}}`
		_, err := c.Call(t.Context(), upstream.Request{
			Method: "tools/call", Params: []byte(params), Name: "é",
			Header: []upstream.Field{{"mcp-param-region", "r"}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Notify(t.Context(), "notifications/x", []byte(`{"a":1}`)); err != nil {
			t.Fatal(err)
		}
		m := s.await("tools/call")
		if string(m.Params) != params {
			t.Errorf("the params are %s", m.Params)
		}
		want := map[string]string{
			"X-Key": "k", "Authorization": "Bearer b", "Content-Type": "application/json",
			"Accept": "application/json, text/event-stream", "Accept-Encoding": "identity", "User-Agent": "capgate",
			"Mcp-Protocol-Version": "2025-11-25", "Mcp-Session-Id": "s-1",
			"Mcp-Method": "", "Mcp-Name": "", "Mcp-Param-Region": "",
		}
		if modern {
			want["Mcp-Protocol-Version"], want["Mcp-Session-Id"] = revision, ""
			want["Mcp-Method"], want["Mcp-Name"], want["Mcp-Param-Region"] = "tools/call", "=?base64?w6k=?=", "r"
		}
		for name, value := range want {
			if got := strings.Join(m.Header[name], "|"); got != value {
				t.Errorf("modern %v: %s is %q, want %q", modern, name, got, value)
			}
		}
		if n := s.await("notifications/x"); n.ID != nil || string(n.Params) != `{"a":1}` {
			t.Errorf("the notification is %+v", n)
		}
	}
}

func TestHTTPWireHandshake(t *testing.T) {
	s := serve(t, nil)
	s.dial(upstream.Options{})
	probe, first, second := s.await("server/discover"), s.await("initialize"), s.await("notifications/initialized")
	for _, tt := range []struct{ name, got, want string }{
		{"probe", probe.Header.Get("Mcp-Protocol-Version") + " " + probe.Header.Get("Mcp-Method"), revision + " server/discover"},
		{"initialize", first.Header.Get("Mcp-Protocol-Version") + first.Header.Get("Mcp-Session-Id") + first.Header.Get("Mcp-Method"), ""},
		{"initialized", second.Header.Get("Mcp-Protocol-Version") + " " + second.Header.Get("Mcp-Session-Id"), "2025-11-25 s-1"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

// TestHTTPStream: everything but the answer goes to the sink, or nowhere.
func TestHTTPStream(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			send := events(w)
			send(": keep alive")
			send("id: 1\ndata:")
			send(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0}}`)
			send("event: other\ndata: not for us")
			send(`data: {"jsonrpc":"2.0","id":"%s","result":{"of":"a string"}}`, m.ID)
			send(`data: {"jsonrpc":"2.0","id":%s0,"result":{"of":"another"}}`, m.ID)
			send(`data: {"jsonrpc":"2.0","id":%s.0,"result":{"of":"a fraction"}}`, m.ID)
			send(`data: {"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"of nobody"}}`)
			send("data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/message\"}")
			send(`data: {"jsonrpc":"2.0","id":%s,"result":{"ok":true}}`, m.ID)
			send(`data: {"jsonrpc":"2.0","method":"notifications/late"}`)
		}
	})
	c, k := s.dial(upstream.Options{}), newRecorder()
	got, err := call(t.Context(), c, k)
	if err != nil || string(got.Result) != `{"ok":true}` {
		t.Fatalf("%s, %v", got.Result, err)
	}
	want := []string{`notifications/progress{"progress":1.0}`, `notifications/message`}
	if diff := cmp.Diff(want, k.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHTTPNeverTwice: a connection that breaks after the request was written does not
// get it a second time, also where net/http would.
func TestHTTPNeverTwice(t *testing.T) {
	calls := 0
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			if calls++; calls%2 == 0 {
				conn, _, err := http.NewResponseController(w).Hijack()
				if err == nil {
					_ = conn.Close()
				}
				return
			}
			answer(w, m, "{}")
		}
	})
	c := s.dial(upstream.Options{})
	for i := range 20 {
		_, err := call(t.Context(), c, nil)
		if i%2 == 0 {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		if f := failed(t, err, "broke the connection off"); f.Unsent {
			t.Error("it may have been executed")
		}
	}
	if n := s.count("tools/call"); n != 20 {
		t.Errorf("20 calls were sent %d times", n)
	}
}

// TestHTTPContext: the caller's context bounds a server that dawdles, wherever it
// does, and the legacy server is told of it by its id.
func TestHTTPContext(t *testing.T) {
	dawdle := map[string]func(http.ResponseWriter, *http.Request, msg){
		"before the headers": func(_ http.ResponseWriter, r *http.Request, _ msg) { <-r.Context().Done() },
		"in the body": func(w http.ResponseWriter, r *http.Request, _ msg) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		},
		"in a stream": func(w http.ResponseWriter, r *http.Request, _ msg) {
			send := events(w)
			for r.Context().Err() == nil {
				send(": still here")
			}
		},
		"in a refusal": func(w http.ResponseWriter, r *http.Request, _ msg) {
			w.WriteHeader(http.StatusInternalServerError)
			for r.Context().Err() == nil {
				_ = http.NewResponseController(w).Flush()
			}
		},
	}
	for name, fn := range dawdle {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " modern ", modern), func(t *testing.T) {
				over := make(chan struct{})
				s := serve(t, func(s *server) {
					s.modern = modern
					s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
						defer close(over)
						fn(w, r, m)
					}
				})
				c := s.dial(upstream.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					s.await("tools/call")
					cancel()
				}()
				_, err := call(ctx, c, nil)
				f := failed(t, err, "was not waited for")
				if f.Unsent || !errors.Is(err, context.Canceled) {
					t.Errorf("%+v", f)
				}
				<-over
				if modern {
					if n := s.count("notifications/cancelled"); n != 0 {
						t.Errorf("a modern server was told %d times", n)
					}
					return
				}
				var params struct{ RequestID json.Number }
				m := s.await("notifications/cancelled")
				if err := json.Unmarshal(m.Params, &params); err != nil || !s.sent("tools/call", params.RequestID.String()) {
					t.Errorf("the server was told of %s: %v", m.Params, err)
				}
			})
		}
	}
}

// sent reports whether a request of the method had the id.
func (s *server) sent(method, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen {
		if m.Method == method && string(m.ID) == id {
			return true
		}
	}
	return false
}

func TestHTTPContextOver(t *testing.T) {
	s := serve(t, func(s *server) { s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") } })
	c := s.dial(upstream.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := call(ctx, c, nil); err == nil {
		t.Error("a call in a context that is over succeeds")
	}
	if n := s.count("tools/call"); n != 0 {
		t.Errorf("it was sent %d times", n)
	}
}

func TestHTTPClose(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, _ msg) { <-r.Context().Done() }
		s.listen = func(w http.ResponseWriter, r *http.Request) { events(w); <-r.Context().Done() }
	})
	c := s.dial(upstream.Options{Events: newRecorder()})
	s.await("GET")
	errs := make(chan error)
	go func() {
		_, err := call(t.Context(), c, nil)
		errs <- err
	}()
	s.await("tools/call")
	began := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	failed(t, <-errs, "the connection is closed")
	<-c.Done()
	if got := s.await("DELETE").Header.Get("Mcp-Session-Id"); got != "s-1" {
		t.Errorf("the session %q was ended", got)
	}
	if err := c.Close(); err != nil || s.count("DELETE") != 1 {
		t.Errorf("closing again: %v, %d", err, s.count("DELETE"))
	}
	if _, err := call(t.Context(), c, nil); err == nil {
		t.Error("a call after Close succeeds")
	}
}

func TestHTTPUnfitRequest(t *testing.T) {
	s := serve(t, func(s *server) {
		s.modern = true
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") }
	})
	c := s.dial(upstream.Options{})
	for _, r := range []upstream.Request{
		{Method: "tools/call", Name: strings.Repeat("n", 5000)},
		{Method: "tools/call", Header: []upstream.Field{{"Mcp-Param-", "x"}}},
		{Method: "tools/call", Header: []upstream.Field{{"Authorization", "x"}}},
		{Method: "tools/call", Header: []upstream.Field{{"Mcp-Method", "x"}}},
		{Method: "tools/call", Header: []upstream.Field{{"Mcp-Param-A", "x\r\ny"}}},
		{Method: "tools/call", Header: []upstream.Field{{"Mcp-Param-A", "x"}, {"mcp-param-a", "y"}}},
	} {
		_, err := c.Call(t.Context(), r, nil)
		if f := failed(t, err, "was not asked"); f.Unsent || !f.Undone {
			t.Error("it would be sent again")
		}
	}
	if n := s.count("tools/call"); n != 0 {
		t.Errorf("%d were sent", n)
	}
}

func TestHTTPBadSession(t *testing.T) {
	for _, id := range []string{strings.Repeat("a", 2000), "a b", "\xff"} {
		s := serve(t, func(s *server) { s.session = id })
		_, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: s.URL}, upstream.Options{})
		failed(t, err, "names a session that cannot be sent back")
	}
}

// TestHTTPValues: what carries a request sees the values of the caller's context,
// and not those of the handshake's.
func TestHTTPValues(t *testing.T) {
	type key struct{}
	s := serve(t, func(s *server) { s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") } })
	var seen any
	carrier := upstream.NewTransport(nil)
	defer carrier.CloseIdleConnections()
	c, err := upstream.Dial(context.WithValue(t.Context(), key{}, "handshake"), upstream.Endpoint{
		Name: "files", URL: s.URL,
		HTTP: carrierFunc(func(r *http.Request) (*http.Response, error) {
			seen = r.Context().Value(key{})
			return carrier.RoundTrip(r)
		}),
	}, upstream.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []any{nil, "call"} {
		ctx := t.Context()
		if want != nil {
			ctx = context.WithValue(ctx, key{}, want)
		}
		if _, err := call(ctx, c, nil); err != nil || seen != want {
			t.Errorf("saw %v, want %v: %v", seen, want, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// carrierFunc is an http.RoundTripper.
type carrierFunc func(*http.Request) (*http.Response, error)

func (f carrierFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
