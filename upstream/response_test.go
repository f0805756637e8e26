package upstream_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"capgate/upstream"
)

// TestHTTPRefused: what is no answer is an error that says so, and says when it is
// safe to send the request again.
func TestHTTPRefused(t *testing.T) {
	reply := func(code int, contentType, body string) func(http.ResponseWriter, *http.Request, msg) {
		return func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, code, contentType, strings.ReplaceAll(body, `:ID`, ":"+string(m.ID)))
		}
	}
	const js = "application/json"
	tests := []struct {
		name         string
		call         func(http.ResponseWriter, *http.Request, msg)
		text         string // of the error; "" for an answer that is an error
		unsent, lost bool
	}{
		{"404 with a session", reply(404, "text/plain", "404 page not found"), "no longer knows the session", true, true},
		{"404 as TypeScript writes it", reply(404, js, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`), "no longer knows the session", true, true},
		{"404 with our id", reply(404, js, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":ID}`), "no longer knows the session", true, true},
		{"404 of a method", reply(404, js, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":ID}`), "", false, false},
		{"400 of a session", reply(400, js, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`), "no longer knows the session", true, true},
		{"400 of the request", reply(400, js, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"bad session argument"},"id":ID}`), "", false, true},
		{"404 of what a tool does not find", reply(404, js, `{"jsonrpc":"2.0","error":{"code":-32004,"message":"customer not found"},"id":ID}`), "", false, true},
		{"400 of a server that began anew", reply(400, js, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`), "no longer knows the session", true, true},
		{"400 of a session of a tool", reply(400, js, `{"jsonrpc":"2.0","error":{"code":-1,"message":"you need an active session at the bank"},"id":null}`), "", false, true},
		{"400 of nobody", reply(400, js, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"}}`), "", false, false},
		{"400 of another", reply(400, js, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"},"id":"server-error"}`), "status 400 Bad Request", false, false},
		{"500 that speaks of one", reply(500, js, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"no session at the bank"},"id":null}`), "", false, false},
		{"500 with an error", reply(500, js, `{"jsonrpc":"2.0","error":{"code":-32603,"message":"oops"},"id":ID}`), "", false, false},
		{"500", reply(500, "text/html", "<h1>a\nb</h1>"), `status 500 Internal Server Error, "<h1>a\nb</h1>"`, false, false},
		{"500 long", reply(500, "text/html", strings.Repeat("x", 5<<20)), "status 500 Internal Server Error, \"xxx", false, false},
		{"401", reply(401, js, `{}`), "wants to know who asks (401)", false, false},
		{"401 of our request", reply(401, js, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Unauthorized"}}`), "wants to know who asks (401)", false, false},
		{"403", reply(403, js, `{"jsonrpc":"2.0","error":{"code":-1,"message":"origin"}}`), "forbids it (403)", false, false},
		{"403 for want of scopes", func(w http.ResponseWriter, _ *http.Request, _ msg) {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="a\x1b b", resource_metadata="http://localhost/"`)
			status(w, 403, js, `{}`)
		}, `does not let its token do that (403); ask the operator`, false, false},
		{"429", reply(429, "text/plain", "slow down"), "status 429 Too Many Requests", false, false},
		{"503", reply(503, "text/plain", ""), "status 503 Service Unavailable", false, false},
		{"202 for a request", reply(202, js, ""), "status 202 Accepted", false, false},
		{"204 for a request", reply(204, js, ""), "status 204 No Content", false, false},
		{"html", reply(200, "text/html", "<html>"), "status 200 OK", false, false},
		{"another charset", reply(200, js+"; charset=utf-16", "{}"), "status 200 OK", false, false},
		{"two documents", reply(200, js, `{"jsonrpc":"2.0","id":ID,"result":{}}{}`), "what cannot be read", false, false},
		{"nothing", reply(200, js, ""), "what cannot be read", false, false},
		{"a repeated key", reply(200, js, `{"jsonrpc":"2.0","id":ID,"result":{"a":1,"a":2}}`), "what cannot be read", false, false},
		{"result and error", reply(200, js, `{"jsonrpc":"2.0","id":ID,"result":{},"error":{"code":1,"message":""}}`), "what cannot be read", false, false},
		{"an error to who ignores case", reply(200, js, `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"","Data":{}}}`), "what cannot be read", false, false},
		{"a result to who ignores case", reply(200, js, `{"jsonrpc":"2.0","id":ID,"result":{"InputRequests":{}}}`), "what cannot be read", false, false},
		{"a batch", reply(200, js, `[{"jsonrpc":"2.0","id":ID,"result":{}}]`), "what cannot be read", false, false},
		{"another id", reply(200, js, `{"jsonrpc":"2.0","id":"1","result":{}}`), "answers another request", false, false},
		{"another id of an error", reply(200, js, `{"jsonrpc":"2.0","id":77,"error":{"code":1,"message":""}}`), "answers another request", false, false},
		{"an error of nobody", reply(200, js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}`), "", false, false},
		{"a request", reply(200, js, `{"jsonrpc":"2.0","id":ID,"method":"ping"}`), "answers another request", false, false},
		{"a coding", func(w http.ResponseWriter, _ *http.Request, m msg) {
			w.Header().Set("Content-Encoding", "gzip")
			answer(w, m, "{}")
		}, "status 200 OK", false, false},
		{"a body cut short", func(w http.ResponseWriter, _ *http.Request, m msg) {
			w.Header().Set("Content-Length", "1000")
			answer(w, m, "{}")
		}, "broke its answer off", false, false},
		{"no response", func(http.ResponseWriter, *http.Request, msg) { panic(http.ErrAbortHandler) }, "broke the connection off", false, false},
		{"a stream without an answer", reply(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n"), "ended the stream without an answer", false, false},
		{"a stream with a broken event", reply(200, "text/event-stream", "data: {\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n\n"), "sends an event that cannot be read", false, false},
		{"a stream that ends in the answer", reply(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{}}\n"), "ended the stream without an answer", false, false},
		{"a server's request with our id", reply(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"roots/list\"}\n\n"), "ended the stream without an answer", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(s *server) { s.call = tt.call })
			c := upstream.Age(s.dial(upstream.Options{}))
			got, err := call(t.Context(), c, nil)
			if n := s.count("tools/call"); n != 1 {
				t.Errorf("it was sent %d times", n)
			}
			if tt.text == "" {
				if err != nil || got.Error == nil || got.Result != nil {
					t.Errorf("%s, %s, %v", got.Result, got.Error, err)
				}
				checkLost(t, c, tt.lost)
				return
			}
			f := failed(t, err, tt.text)
			if undone := slices.Contains([]string{"401", "401 of our request", "403 for want of scopes"}, tt.name); f.Unsent != tt.unsent || f.Lost != tt.lost || f.Undone != undone {
				t.Errorf("unsent %v, lost %v, want %v, %v", f.Unsent, f.Lost, tt.unsent, tt.lost)
			}
			if len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("the error is not a line: %q", err)
			}
			checkLost(t, c, tt.lost)
		})
	}
}

// TestHTTPDoubtful: what may be an answer to our request says of none that it was not executed.
func TestHTTPDoubtful(t *testing.T) {
	const js = "application/json"
	for name, tt := range map[string]struct {
		code       int
		kind, body string
		lost       bool
	}{
		"a result":             {404, js, `{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}`, true},
		"a result for nobody":  {404, js, `{"jsonrpc":"2.0","result":{}}`, true},
		"a code that is text":  {404, js, `{"jsonrpc":"2.0","id":ID,"error":{"code":"x","message":"a"}}`, true},
		"no message":           {404, js, `{"jsonrpc":"2.0","id" : ID,"error":{"code":1}}`, true},
		"no version":           {404, js, `{"id":ID,"error":{"code":1,"message":"a"}}`, true},
		"an id that is text":   {404, js, `{"jsonrpc":"2.0","id":"ID","error":{"code":1,"message":"a"}}`, true},
		"an id with a point":   {404, js, `{"jsonrpc":"2.0","id":ID.0,"error":{"code":1,"message":"a"}}`, true},
		"an array":             {404, js, `[{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"a"}}]`, true},
		"an event":             {404, "text/event-stream", `data: {"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"a"}}`, true},
		"text":                 {404, "text/plain", `{"jsonrpc":"2.0","id":ID,"error":{"code":1,"message":"a"}}`, true},
		"a long one":           {404, js, `{"jsonrpc":"2.0","error":{"code":1,"message":"` + strings.Repeat("a", 2<<20) + `"},"id":ID}`, true},
		"a long one of nobody": {404, "text/plain", strings.Repeat("a", 2<<20), true},
	} {
		s := serve(t, func(s *server) {
			s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
				status(w, tt.code, tt.kind, strings.ReplaceAll(tt.body, "ID", string(m.ID)))
			}
		})
		c := upstream.Age(s.dial(upstream.Options{}))
		_, err := call(t.Context(), c, nil)
		if f := failed(t, err, "status "+strconv.Itoa(tt.code)); f.Unsent || f.Undone || f.Lost {
			t.Errorf("%s: %+v", name, f)
		}
		checkLost(t, c, tt.lost)
	}
}

// TestHTTPOwnRefusal: an error of our request is the server's word about it, also with a 404.
func TestHTTPOwnRefusal(t *testing.T) {
	s := serve(t, func(s *server) {
		s.doubt = knows
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, 404, "application/json", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":1,"message":"charged, but checkout session not found"}}`)
		}
	})
	c := s.dial(upstream.Options{})
	if got, err := call(t.Context(), c, nil); err != nil || got.Error == nil {
		t.Errorf("%s, %v", got.Error, err)
	}
	checkLost(t, c, false)
}

func checkLost(t *testing.T, c upstream.Conn, lost bool) {
	t.Helper()
	select {
	case <-c.Done():
		if !lost {
			t.Error("the connection is done")
		}
	default:
		if lost {
			t.Error("the connection goes on without its session")
		}
	}
}

// TestHTTPNotFoundModern: without sessions, 404 is no lost one.
func TestHTTPNotFoundModern(t *testing.T) {
	s := serve(t, func(s *server) {
		s.modern = true
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, 404, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID))
		}
	})
	got, err := call(t.Context(), s.dial(upstream.Options{}), nil)
	if err != nil || string(got.Error) != `{"code":-32601,"message":"no"}` {
		t.Errorf("%s, %v", got.Error, err)
	}
}

func TestHTTPRedirect(t *testing.T) {
	var hits int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits++ }))
	defer other.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(s *server) {
			s.call = func(w http.ResponseWriter, r *http.Request, _ msg) { http.Redirect(w, r, other.URL, code) }
		})
		_, err := call(t.Context(), s.dial(upstream.Options{}), nil)
		f := failed(t, err, fmt.Sprintf("answers with a redirect: status %d", code))
		if f.Unsent || strings.Contains(err.Error(), other.URL) {
			t.Errorf("%v", err)
		}
	}
	if hits != 0 {
		t.Errorf("a redirect was followed %d times", hits)
	}
}

func TestHTTPTooMuch(t *testing.T) {
	const limit = 64 << 10
	endless := func(w http.ResponseWriter, line string) {
		for {
			if _, err := io.WriteString(w, line); err != nil {
				return
			}
		}
	}
	pad := strings.Repeat("x", limit)
	tests := []struct {
		name string
		call func(http.ResponseWriter, *http.Request, msg)
		text string
	}{
		{"json with a length", func(w http.ResponseWriter, _ *http.Request, m msg) {
			w.Header().Set("Content-Length", "100000000")
			answer(w, m, `{"a":"`+pad)
			endless(w, pad)
		}, "answers with too much"},
		{"json without", func(w http.ResponseWriter, _ *http.Request, m msg) {
			answer(w, m, `{"a":"`+pad)
			endless(w, pad)
		}, "answers with too much"},
		{"an event", func(w http.ResponseWriter, _ *http.Request, _ msg) {
			events(w)(": 1")
			endless(w, "data: "+pad)
		}, "sends an event that is too long"},
		{"lines of an event", func(w http.ResponseWriter, _ *http.Request, _ msg) {
			events(w)(": 1")
			endless(w, "data: x\n")
		}, "sends an event that is too long"},
		{"headers", func(w http.ResponseWriter, _ *http.Request, m msg) {
			for i := range 100 {
				w.Header().Set(fmt.Sprintf("X-%d", i), pad[:1024])
			}
			answer(w, m, `{}`)
		}, "broke the connection off"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(s *server) { s.call = tt.call })
			c := s.dial(upstream.Options{Limits: upstream.Limits{Message: limit}})
			_, err := call(t.Context(), c, nil)
			failed(t, err, tt.text)
		})
	}
}

// TestHTTPLarge: up to its limit, an answer comes whole.
func TestHTTPLarge(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
			var size int
			if err := json.Unmarshal(m.Params, &struct{ N *int }{&size}); err != nil {
				t.Error(err)
			}
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"a":"%s"}}`, m.ID, strings.Repeat("x", size))
			switch m.Method {
			case "sized":
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				status(w, 200, "application/json", body)
			case "chunked":
				status(w, 200, "application/json", body)
			default:
				events(w)("data: %s", body)
			}
		}
	})
	c := s.dial(upstream.Options{})
	for _, method := range []string{"sized", "chunked", "events"} {
		for _, size := range []int{0, 10, 4000, 4096, 70000, 1 << 20, 5 << 20} {
			got, err := c.Call(t.Context(), upstream.Request{Method: method, Params: fmt.Appendf(nil, `{"N":%d}`, size)}, nil)
			if err != nil || len(got.Result) != size+len(`{"a":""}`) {
				t.Errorf("%s: %d bytes: %d, %v", method, size, len(got.Result), err)
			}
		}
	}
}
