package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"capgate/upstream"
)

// TestHTTPGivenUp: a session that is given up in doubt is ended where the server holds it still. One that the server
// knows when it is asked goes on, as does one of which it says nothing.
func TestHTTPGivenUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		doubt func(http.ResponseWriter, *http.Request, msg)
		lost  bool
	}{
		"unknown": {nil, true},
		"known":   {knows, false},
		"a method that it does not know": {func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, 404, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID))
		}, false},
		"a method that it does not know, among those that it does": {func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, 400, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not one of initialize, tools/list"}}`, m.ID))
		}, false},
		"a method that is unknown": {func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "Unknown method") }, false},
		"words of other words": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "text/plain", "no mapping; call the initialize method, stopping")
		}, true},
		"a session that it names": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "text/plain", "cannot handle ping: session unknown")
		}, true},
		"a session that it names aside": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "application/json", `{"error":"Cannot handle ping","detail":"Session s-1 is unknown"}`)
		}, true},
		"a method that it names, and its session in each error": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "application/json", `{"error":"Cannot handle ping","session":"s-1","data":{"sessionId" : "s-1"}}`)
		}, false},
		"the other era": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"Mcp-Method header value '' does not match body value 'ping'"}}`)
		}, true},
		"a method that it names": {func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "text/plain", "cannot handle ping")
		}, false},
		"an error":   {func(w http.ResponseWriter, _ *http.Request, m msg) { fault(w, m, -32603, "oops") }, false},
		"a sentence": {func(w http.ResponseWriter, _ *http.Request, m msg) { fault(w, m, -32601, "Session not found") }, true},
		"no answer":  {func(_ http.ResponseWriter, r *http.Request, _ msg) { <-r.Context().Done() }, false},
		"no token":   {func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 401, "text/plain", "log in") }, false},
		"broken":     {func(http.ResponseWriter, *http.Request, msg) { panic(http.ErrAbortHandler) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(s *server) {
				s.doubt = tt.doubt
				s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
					status(w, 404, "application/json", `{"detail":"Customer not found"}`)
				}
			})
			c := upstream.Age(s.dial(upstream.Options{}))
			_, _ = call(t.Context(), c, nil)
			if checkLost(t, c, tt.lost); tt.lost {
				_ = c.Close()
				s.await("DELETE")
			}
		})
	}
}

// TestHTTPGivenUpYoung: a connection that has just begun is not given up in doubt, as others may use it, and the next might
// be as short.
func TestHTTPGivenUpYoung(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
			status(w, 404, "text/plain", "Customer not found")
		}
	})
	c := s.dial(upstream.Options{})
	_, _ = call(t.Context(), c, nil)
	checkLost(t, c, false)
	if n := s.count("ping"); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestHTTPDoubtAsks: what a server asks instead of saying whether it knows a session is refused, and begins no other
// question, nor is it waited for.
func TestHTTPDoubtAsks(t *testing.T) {
	t.Parallel()
	for asked, limit := range map[string]time.Duration{"": 9 * time.Second, "id: 1\nretry: 1\ndata:": 4 * time.Second} {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			s := serve(t, func(s *server) {
				s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
					if m.Method == "" { // an answer
						status(w, 404, "text/plain", "Session not found")
						return
					}
					status(w, 404, "text/plain", "Customer not found")
				}
				s.note = func(w http.ResponseWriter, _ *http.Request) { status(w, 404, "text/plain", "Session not found") }
				s.listen = func(w http.ResponseWriter, _ *http.Request) { status(w, 404, "text/plain", "Session not found") }
				s.doubt = func(w http.ResponseWriter, r *http.Request, _ msg) {
					send := events(w)
					for i := range 60 {
						send(`data: {"jsonrpc":"2.0","id":"a%d","method":"ping"}`, i)
					}
					if asked != "" {
						send("%s", asked)
						return
					}
					<-r.Context().Done()
				}
			})
			c, began := upstream.Age(s.dial(upstream.Options{})), time.Now()
			_, _ = call(t.Context(), c, nil)
			if took := time.Since(began); took > limit {
				t.Errorf("it took %v", took)
			}
			checkLost(t, c, false)
			if n := s.count("ping"); n != 1 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// TestHTTPDoubtOnce: whoever is in doubt about a connection at the same time waits for one answer, no longer than it may
// take.
func TestHTTPDoubtOnce(t *testing.T) {
	const callers = 50
	var asked sync.WaitGroup
	asked.Add(callers)
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
			asked.Done()
			status(w, 404, "text/plain", "Session not found")
		}
		s.doubt = func(w http.ResponseWriter, _ *http.Request, _ msg) {
			asked.Wait()
			time.Sleep(100 * time.Millisecond) // for who has its answer, and is to wait for this one
			status(w, 404, "text/plain", "Session not found")
		}
	})
	c := s.dial(upstream.Options{})
	var calls sync.WaitGroup
	for range callers {
		calls.Go(func() {
			if _, err := call(t.Context(), c, nil); !failed(t, err, "").Unsent {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := s.count("ping"); n != 1 {
		t.Errorf("it was asked %d times", n)
	}

	slow := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) { status(w, 404, "text/plain", "Session not found") }
		s.doubt = func(_ http.ResponseWriter, r *http.Request, _ msg) { <-r.Context().Done() }
	})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c, began := slow.dial(upstream.Options{}), time.Now()
	if _, err := call(ctx, c, nil); failed(t, err, "").Unsent || time.Since(began) > time.Second {
		t.Errorf("%v, after %v", err, time.Since(began))
	}
}

// TestHTTPAcrossEras: a server that was exchanged for one of the other era is greeted anew, and one that was not is not.
func TestHTTPAcrossEras(t *testing.T) {
	for _, text := range []string{"Bad Request: Server not initialized", "Bad Request: Unsupported protocol version (supported versions: 2025-11-25)"} {
		for how, exchanged := range map[string]bool{"refused": true, "known": false, "unknown": true, "busy": false} {
			s := serve(t, func(s *server) {
				s.modern = true
				s.call = func(w http.ResponseWriter, _ *http.Request, _ msg) {
					status(w, 400, "application/json", `{"jsonrpc":"2.0","error":{"code":-32000,"message":"`+text+`"},"id":null}`)
				}
				s.doubt = func(w http.ResponseWriter, r *http.Request, m msg) {
					switch {
					case how == "refused" || m.Method != "server/discover":
						s.call(w, r, m)
					case how == "unknown":
						fault(w, m, -32601, "what?")
					case how == "busy":
						status(w, 429, "text/plain", "slow down")
					default:
						knows(w, r, m)
					}
				}
			})
			c := upstream.Age(s.dial(upstream.Options{}))
			if !c.Info().Modern {
				t.Fatal("it is of the other era")
			}
			_, _ = call(t.Context(), c, nil)
			checkLost(t, c, exchanged)
		}
	}
}
