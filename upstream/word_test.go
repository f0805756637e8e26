package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/upstream"
)

// fate is what becomes of a call and of its connection.
type fate string

const (
	resent fate = "it was not executed, and goes to a session of its own"
	anew   fate = "the next call has a new session"
	kept   fate = "the session goes on"
)

// TestHTTPForgotten: servers say in many ways that they know nothing of a session. Only what is said of nothing else
// has a call sent again, and only what may be that begins a session; neither does where the session is known when asked.
func TestHTTPForgotten(t *testing.T) {
	rpc := func(message, id string) string {
		return `{"jsonrpc":"2.0","error":{"code":-32600,"message":"` + message + `"},"id":` + id + `}`
	}
	const js, plain = "application/json", "text/plain; charset=utf-8"
	for _, tt := range []struct {
		code       int
		kind, body string
		want       fate
	}{
		// The official SDKs, by version, and others.
		{400, "", "Bad Request: No valid session ID provided", resent},    // Python to 1.25
		{404, js, rpc("Session not found", `"server-error"`), resent},     // Python
		{404, js, rpc("Session not found or has expired.", `""`), resent}, // PHP, the official one
		{400, js, rpc("A valid session id is REQUIRED for non-initialize requests.", `""`), resent},
		{400, js, rpc("Bad Request: Missing session ID", `"server-error"`), resent}, // Python
		{400, js, rpc("Bad Request: Server not initialized", "null"), resent},       // TypeScript
		{400, js, rpc("Bad Request: Mcp-Session-Id header is required", "null"), resent},
		{401, plain, "Unauthorized: Session not found", resent},                           // Rust to 0.16
		{422, plain, "Unexpected message, expect initialize request", resent},             // Rust
		{404, plain, "session not found\n", resent},                                       // Go
		{400, plain, "Invalid session ID\n", resent},                                      // mcp-go to 0.43
		{404, js, `{"code":-32603,"message":"Session not found: s-1"}`, resent},           // Java
		{404, js, `{"error":"Session not found"}`, resent},                                // Ruby
		{404, js, rpc("Session s-1 not found", "ID"), resent},                             // with its id
		{404, js, rpc("Invalid or expired session. Please re-initialize.", "ID"), resent}, // PHP
		{200, js, rpc("Invalid or expired session. Please re-initialize.", "ID"), anew},
		{404, "text/html", "<h1>Not Found</h1>", resent},
		{404, plain, "", resent},
		{404, js, "", resent},
		{404, plain, "404 page not found\n", resent},
		{410, plain, "gone", anew},
		{410, plain, "Session expired.", resent},
		{404, js, rpc("Session not found", "ID"), resent},
		{409, js, rpc("another session has begun", "null"), anew},
		{500, js, rpc("Session not found", "null"), anew},
		{403, plain, "session not found", anew},
		{400, js, rpc("Unsupported protocol version", "null"), anew},
		{400, js, `{"jsonrpc":"2.0","error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}},"id":ID}`, resent},

		// What may be about what was done.
		{404, js, rpc("Customer not found", "null"), anew},
		{404, js, rpc("Customer not found", "ID"), anew},
		{404, plain, "Customer not found", anew},
		{404, plain, "not found, but charged", anew},
		{404, js, `{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":null}`, kept},
		{400, js, rpc("Session not found", "ID"), resent},
		{410, js, rpc("Session expired", "ID"), resent},
		{500, js, rpc("Session not found", "ID"), anew},
		{200, js, rpc("Not initialized", "ID"), anew},
		{400, js, rpc("bad argument", "ID"), kept},
		{400, js, rpc("Bad Request: Unsupported MCP-Protocol-Version: 2025-11-25", "null"), anew}, // Rust
		{400, js, `{"statusCode":400,"message":"Invalid session ID","error":"Bad Request"}`, anew},
		{400, js, `{"detail":{"error":"Invalid session"}}`, anew},
		{400, js, `{"jsonrpc":"2.0","error":{"code":-32000,"data":"` + strings.Repeat("x", 5000) + `","message":"The session is gone"},"id":null}`, anew},
		{400, js, rpc(`Request is missing the required \"params._meta\" member.`, "ID"), anew},          // PHP, where it is of the other era
		{400, js, rpc("Invalid params: request requires protocolVersion in request _meta", "ID"), anew}, // Rust
		{400, js, `{"jsonrpc":"2.0","error":{"code":-32020,"message":"Mcp-Method header is required"},"id":ID}`, anew},
		{404, js, `{"error":"Unknown method","session":"s-1"}`, kept},
		{400, js, rpc("Received tools/call before initialization was complete", "ID"), anew},
		{400, js, rpc("Bad Request: No valid session ID provided", "ID"), resent}, // TypeScript, copied
		{200, js, rpc("Invalid session. Please initialize the browser first", "ID"), kept},
		{404, js, rpc("Invalid session. Please initialize the browser first", "ID"), anew},
		{401, plain, "Session expired", kept},
		{401, js, `{"error":"Invalid session"}`, kept},
		{404, js, `{"title":"Customer not found","status":404}`, anew},
		{404, js, `{"error":"Session not found","result":{}}`, anew},
		{404, plain, ` [{"jsonrpc":"2.0","error":{"code":1,"message":"Customer not found"}}]`, anew},
		{404, "text/event-stream", "data: {}\n\n", anew},
		{404, js, rpc("Session not found at the bank, charged anyway", "ID"), anew},
		{404, js, rpc("sessionId of browser unknown; charged", "ID"), anew},
		{400, js, rpc("browser: invalid session id", "null"), anew},
		{400, js, rpc("Session not found. Charged", "null"), anew},
		{400, js, rpc("bad argument", "null"), kept},
		{400, "text/html", "<p>no</p>", kept},
		{200, js, rpc("Session not found", "ID"), anew},
		{200, js, rpc("Session not found at the bank", "ID"), kept},
		{200, js, `{"jsonrpc":"2.0","error":{"code":-32022,"message":"no"},"id":ID}`, kept},
		{500, plain, "the session broke", kept},
		{403, plain, "no session of yours", kept},
		{401, plain, "log in for a session", kept},
		{429, plain, "too many requests in this session", kept},
		{404, plain, "Session not found" + strings.Repeat(" ", 400) + `{"id":ID`, anew},
	} {
		s := serve(t, func(s *server) {
			s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
				w.Header()["Content-Type"] = nil
				status(w, tt.code, tt.kind, strings.ReplaceAll(tt.body, ":ID", ":"+string(m.ID)))
			}
		})
		want := tt.want
		for _, s.doubt = range []func(http.ResponseWriter, *http.Request, msg){nil, knows} {
			if s.doubt != nil {
				want = kept
			}
			c := upstream.Age(s.dial(upstream.Options{}))
			before := s.count("tools/call")
			_, err := call(t.Context(), c, nil)
			got := kept
			if isOver(c) {
				got = anew
			}
			if err != nil {
				if f := failed(t, err, ""); f.Unsent && f.Lost {
					got = resent
				}
			}
			if n := s.count("tools/call") - before; got != want || n != 1 {
				t.Errorf("%d %s %s: %s, want: %s; sent %d times", tt.code, tt.kind, tt.body, got, want, n)
			}
		}
	}
}

func isOver(c upstream.Conn) bool {
	select {
	case <-c.Done():
		return true
	default:
		return false
	}
}

// TestHTTPForgottenWithoutSession: a server that began no session may say that it was not greeted.
func TestHTTPForgottenWithoutSession(t *testing.T) {
	for _, code := range []int{200, 400} {
		for _, lost := range []bool{true, false} {
			s := serve(t, func(s *server) {
				s.session = ""
				s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
					status(w, code, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"Server not initialized"}}`, m.ID))
				}
				if !lost {
					s.doubt = knows
				}
			})
			c := s.dial(upstream.Options{})
			_, _ = call(t.Context(), c, nil)
			checkLost(t, c, lost)
		}
	}
}

// TestHTTPOtherEraWithoutSession: nor does one that is now of the era that has headers of its own.
func TestHTTPOtherEraWithoutSession(t *testing.T) {
	for modern, lost := range map[bool]bool{false: true, true: false} {
		s := serve(t, func(s *server) {
			s.session, s.modern = "", modern
			s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
				status(w, 400, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"Mcp-Method header is required"}}`, m.ID))
			}
			if modern {
				s.doubt = func(w http.ResponseWriter, _ *http.Request, m msg) { fault(w, m, -32601, "what?") }
			}
		})
		c := upstream.Age(s.dial(upstream.Options{}))
		_, _ = call(t.Context(), c, nil)
		checkLost(t, c, lost)
	}
}

// TestHTTPForgottenLeft: a session that the server does not know is not ended there.
func TestHTTPForgottenLeft(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "") }
	})
	c := s.dial(upstream.Options{})
	_, _ = call(t.Context(), c, nil)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.seen, func(m msg) bool { return m.Verb == http.MethodDelete }) {
		t.Error("it was")
	}
}

// TestHTTPForgottenOtherwise: a call that is refused in other words than the question for its session, or after a while, may
// have been executed before the session was lost.
func TestHTTPForgottenOtherwise(t *testing.T) {
	t.Parallel()
	const sentence = `{"error":"Invalid session id"}`
	for name, tt := range map[string]struct {
		doubt func(http.ResponseWriter, *http.Request, msg)
		pause time.Duration
		want  bool // it is sent again
	}{
		"in the same words": {nil, 0, true},
		"by a web server": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "text/plain", "404 page not found\n")
		}, 0, false},
		"with another status": {func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 400, "application/json", sentence) }, 0, false},
		"in other words":      {func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "Session expired") }, 0, false},
		"late":                {nil, 2100 * time.Millisecond, false},
		"pages of two numbers": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "text/html", "<h1>Not Found</h1>Request 2")
		}, -1, true},
		"soon": {nil, 500 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var paused atomic.Bool
			s := serve(t, func(s *server) {
				s.doubt = tt.doubt
				s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
					if tt.pause > 0 && !paused.Swap(true) {
						time.Sleep(tt.pause)
					}
					if tt.pause < 0 {
						status(w, 404, "text/html", "<h1>Not Found</h1>Request 1")
						return
					}
					status(w, 404, "application/json", sentence)
				}
			})
			c := s.dial(upstream.Options{})
			_, err := call(t.Context(), c, nil)
			if f := failed(t, err, ""); f.Unsent != tt.want {
				t.Errorf("sent again: %t, want %t: %v", f.Unsent, tt.want, err)
			}
			checkLost(t, c, true)
		})
	}
}

// TestHTTPForgottenNotification: a notification that is refused ends no session by that, as a server may not know it.
func TestHTTPForgottenNotification(t *testing.T) {
	for _, lost := range []bool{false, true} {
		s := serve(t, func(s *server) {
			s.note = func(w http.ResponseWriter, _ *http.Request) { status(w, 404, "text/plain", "unknown requestId") }
			s.doubt = knows
			if lost {
				s.doubt = func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "unknown session") }
			}
		})
		c := upstream.Age(s.dial(upstream.Options{}))
		if err := c.Notify(t.Context(), "notifications/cancelled", []byte(`{"requestId":1}`)); err == nil {
			t.Error("it was taken")
		}
		checkLost(t, c, lost)
	}
}

// TestHTTPEndlessRefusal: why something is refused is not waited for without end.
func TestHTTPEndlessRefusal(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, _ msg) {
			status(w, 404, "text/plain", "Session not found")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	s.doubt = func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "Session not found") }
	c := upstream.Age(s.dial(upstream.Options{}))
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	_, err := call(ctx, c, nil)
	if f := failed(t, err, "status 404"); f.Unsent {
		t.Errorf("%+v", f)
	}
	checkLost(t, c, true)
}

// TestHTTPStallingRefusal: nor is the rest of a refusal of which no more is read.
func TestHTTPStallingRefusal(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, _ msg) {
			status(w, 500, "text/plain", strings.Repeat("x", 1<<20))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	_, err := call(ctx, s.dial(upstream.Options{}), nil)
	if failed(t, err, "status 500"); ctx.Err() != nil {
		t.Error("it was waited for")
	}
}

// TestHTTPUnreadRefusal: what nobody could read says of nothing that it was not executed.
func TestHTTPUnreadRefusal(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
			w.Header().Set("Content-Encoding", "gzip")
			status(w, 404, "text/plain", "not found") // to who does not look
		}
	})
	_, err := call(t.Context(), s.dial(upstream.Options{}), nil)
	if f := failed(t, err, "status 404"); f.Unsent || f.Lost {
		t.Errorf("%+v", f)
	}
}

// TestHTTPForgottenUnauthorized: no token is renewed, and none asked for, where a 401 is for the session's sake.
func TestHTTPForgottenUnauthorized(t *testing.T) {
	for body, renewals := range map[string]int32{"Unauthorized: Session not found": 0, "who are you?": 1, "Session expired": 1, "Session not found, said of a token": 1, "Session not found.": 1, `{"error":"Session expired","detail":"not found"}`: 1} {
		s := serve(t, func(s *server) {
			s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
				if body == "Session not found." {
					w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
				}
				status(w, 401, "text/plain", body)
			}
		})
		var renewed atomic.Int32
		c := dial(t, upstream.Endpoint{
			Name: "files", URL: s.URL + "/mcp", Transport: "http",
			Authorize: func(_ context.Context, refresh bool) (string, error) {
				if refresh {
					renewed.Add(1)
				}
				return "Bearer x", nil
			},
		}, upstream.Options{})
		_, err := call(t.Context(), c, nil)
		if f := failed(t, err, ""); f.Lost != (renewals == 0) || renewed.Load() != renewals || !strings.Contains(err.Error(), strings.ReplaceAll(body, `"`, `\"`)) {
			t.Errorf("%s: %v, renewed %d times", body, err, renewed.Load())
		}
	}
}

// TestHTTPNoStream: who has no stream for what belongs to no call says so in whatever way, and the session goes on.
// Who had one, and refuses the next, has forgotten the session.
func TestHTTPNoStream(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"Cannot GET /mcp", `{"detail":"Not Found"}`, "Session not found"} {
		for _, code := range []int{404, 400, 410} {
			s := serve(t, func(s *server) {
				s.listen = func(w http.ResponseWriter, _ *http.Request) { status(w, code, "text/plain", body) }
				s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") }
				s.doubt = func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "nor this") }
			})
			c := s.dial(upstream.Options{Events: newRecorder(), Client: upstream.Client{Capabilities: []byte(`{"roots":{}}`)}})
			s.await("GET")
			time.Sleep(20 * time.Millisecond) // for what is made of it
			if _, err := call(t.Context(), c, nil); err != nil {
				t.Error(err)
			}
			checkLost(t, c, false)
		}
	}
	for code, lost := range map[int]bool{404: true, 409: false, 400: false} {
		var opened atomic.Int32
		s := serve(t, func(s *server) {
			s.listen = func(w http.ResponseWriter, _ *http.Request) {
				if opened.Add(1) > 1 {
					status(w, code, "text/plain", "there is but one stream in a session")
					return
				}
				events(w)(": hello")
			}
			s.doubt = knows
			if lost {
				s.doubt = func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, code, "text/plain", "who?") }
			}
		})
		c := upstream.Age(s.dial(upstream.Options{Events: newRecorder()}))
		s.await("GET")
		s.await("GET")
		for i := 0; i < 15 && !isOver(c); i++ {
			time.Sleep(20 * time.Millisecond)
		}
		checkLost(t, c, lost)
	}
}

// TestHTTPStreamMissed: a stream that is refused twice, perhaps for the event after which it is to begin, is asked for from
// then on.
func TestHTTPStreamMissed(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{400: "1 1  ", 507: "1 1  ", 503: "1 1 1 "} {
		t.Run(strconv.Itoa(code), func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 9)
			s := serve(t, func(s *server) {
				s.doubt = knows
				s.listen = func(w http.ResponseWriter, r *http.Request) {
					from := r.Header.Get("Last-Event-ID")
					asked <- from
					if from != "" {
						status(w, code, "text/plain", "failed to replay: purged")
						return
					}
					events(w)("id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}")
				}
			})
			s.dial(upstream.Options{Events: newRecorder()})
			got := ""
			if from := <-asked; from != "" {
				t.Errorf("the first is from %s", from)
			}
			for range 3 {
				got += <-asked + " "
			}
			if got != want {
				t.Errorf("the next are from %q, want %q", got, want)
			}
		})
	}
}

// TestHTTPStreamAgainAndAgain: who has begun no session may refuse a stream several times, too.
func TestHTTPStreamAgainAndAgain(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	s := serve(t, func(s *server) {
		s.session = ""
		s.listen = func(w http.ResponseWriter, _ *http.Request) {
			if opened.Add(1) > 1 {
				status(w, 404, "text/plain", "no more streams")
				return
			}
			events(w)(": hello")
		}
	})
	s.dial(upstream.Options{Events: newRecorder()})
	for range 3 {
		s.await("GET")
	}
}

// TestHTTPStreamAgain: a stream that is refused for a while is asked for again, where there was one and the session is known.
func TestHTTPStreamAgain(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	s := serve(t, func(s *server) {
		s.doubt = knows
		s.listen = func(w http.ResponseWriter, _ *http.Request) {
			if opened.Add(1) == 2 {
				status(w, 404, "text/plain", "no more streams")
				return
			}
			events(w)(": hello")
		}
	})
	_ = upstream.Age(s.dial(upstream.Options{Events: newRecorder()}))
	for range 3 {
		s.await("GET")
	}
}
