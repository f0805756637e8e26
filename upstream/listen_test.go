package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/upstream"
)

// TestHTTPListen: what a legacy server says by itself is an event, and what it
// asks is answered; when the stream ends it is opened again where it ended.
func TestHTTPListen(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	s := serve(t, func(s *server) {
		s.listen = func(w http.ResponseWriter, r *http.Request) {
			send := events(w)
			if opened.Add(1) == 1 {
				send("id: 7\n" + `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				for id := range 2 {
					send(`data: {"jsonrpc":"2.0","id":%d,"result":{"nobody":"asked"}}`, id)
				}
				send(`data: {"jsonrpc":"2.0","id":"q0","method":"roots/list"}`)
				return
			}
			send(`data: {"jsonrpc":"2.0","method":"notifications/again","params":{"after":"%s"}}`, r.Header.Get("Last-Event-Id"))
			<-r.Context().Done()
		}
	})
	k := newRecorder()
	k.ask = func(context.Context, string, []byte) ([]byte, error) { return []byte(`{"roots":[]}`), nil }
	s.dial(upstream.Options{Events: k})
	if got := k.hear(t); got != "notifications/tools/list_changed" {
		t.Errorf("heard %s", got)
	}
	if got := k.hear(t); got != upstream.HeardAgain {
		t.Errorf("heard %s", got)
	}
	if got := k.hear(t); got != `notifications/again{"after":"7"}` {
		t.Errorf("heard %s", got)
	}
	if got := s.await("GET").Header; got.Get("Mcp-Session-Id") != "s-1" || got.Get("Mcp-Protocol-Version") != "2025-11-25" {
		t.Errorf("GET with %v", got)
	}
}

// TestHTTPUnreadableEvents: of what a server sends beside answers, that which cannot be read is
// dropped. A call ends with what may have been its answer; where nothing is one, nothing ends.
func TestHTTPUnreadableEvents(t *testing.T) {
	for event, answers := range map[string]bool{
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\u0000"}}`:             false,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\ud800"}}`:             false,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":{"a":1,"A":1}}}`:        false,
		`{"jsonrpc":"2.0","params":{"data":{"a":1,"a":1}},"method":"notifications/message"}`:        false,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"\x01\"}}": false,
		`{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"a":"\u0000"}}`:                  false,
		`{"jsonrpc":"2.0","method":"x","params":[]}`:                                                false,
		`{"jsonrpc":"2.0","id":ID,"result":{"a":"\u0000"}}`:                                         true,
		`{"jsonrpc":"2.0","id":ID,"method":"x","result":{"a":"\u0000"}}`:                            true,
		`{"jsonrpc":"2.0","id":ID,"method":"x","re\u0073ult":{"a":"\u0000"}}`:                       true,
		`{"jsonrpc":"2.0","id":ID,"method":"x","Error":`:                                            true,
		`[{"jsonrpc":"2.0","method":"x"}]`:                                                          true,
		`{"id":`:                                                                                    true,
		`"method"`:                                                                                  true,
	} {
		s := serve(t, func(s *server) {
			s.call = func(w http.ResponseWriter, _ *http.Request, m msg) {
				send := events(w)
				send("data: %s", strings.ReplaceAll(event, "ID", string(m.ID)))
				send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			}
			s.listen = func(w http.ResponseWriter, r *http.Request) {
				send := events(w)
				send("data: %s", strings.ReplaceAll(event, "ID", "1"))
				send(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
				<-r.Context().Done()
			}
		})
		k := newRecorder()
		c := s.dial(upstream.Options{Events: k})
		if got := k.hear(t); got != "notifications/tools/list_changed" {
			t.Errorf("%s: heard %s", event, got)
		}
		if _, err := call(t.Context(), c, nil); (err != nil) != answers {
			t.Errorf("%s: the call ends with %v", event, err)
		}
	}
}

// TestHTTPListenAsked: what is asked where nothing belongs to a call is answered also when that stream has ended
// meanwhile, and is not asked twice. More than may wait are refused, and all else is still heard.
func TestHTTPListenAsked(t *testing.T) {
	const most = 16
	ended := make(chan struct{})
	var opened atomic.Int64
	s := serve(t, func(s *server) {
		s.listen = func(w http.ResponseWriter, r *http.Request) {
			send := events(w)
			if opened.Add(1) == 1 {
				for i := range most {
					send(`data: {"jsonrpc":"2.0","id":"q%d","method":"sampling/createMessage"}`, i)
				}
				return
			}
			send(`data: {"jsonrpc":"2.0","id":"q0","method":"sampling/createMessage"}`)
			send(`data: {"jsonrpc":"2.0","id":"more","method":"sampling/createMessage"}`)
			send(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			<-r.Context().Done()
		}
	})
	k := newRecorder()
	k.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		select {
		case <-ended:
			return []byte(`{"said":1}`), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	s.dial(upstream.Options{Events: k})
	for _, want := range []string{upstream.HeardAgain, "notifications/tools/list_changed"} {
		if got := k.hear(t); got != want {
			t.Errorf("heard %s", got)
		}
	}
	close(ended)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range most + 1 {
		if got := s.reply(ctx); got == "" || strings.Contains(got, "said") == strings.Contains(got, "more") {
			t.Error(got)
		}
	}
}

// TestHTTPListenAskedAnother: a server that was started anew asks something else by an id that waits. What is said of
// the one is no answer to the other.
func TestHTTPListenAskedAnother(t *testing.T) {
	t.Parallel()
	for _, session := range []string{"", "kept"} {
		t.Run(session, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{}, 2)
			var opened atomic.Int64
			s := serve(t, func(s *server) {
				s.session = session
				s.listen = func(w http.ResponseWriter, r *http.Request) {
					send := events(w)
					if opened.Add(1) == 1 {
						send(`data: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"show it?"}}`)
						return
					}
					send(`data: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"delete it?"}}`)
					<-r.Context().Done()
				}
			})
			k := newRecorder()
			k.ask = func(ctx context.Context, _ string, params []byte) ([]byte, error) {
				asked <- struct{}{}
				select {
				case <-time.After(3 * time.Second): // by which the other has come
					return []byte(`{"action":"accept","of":` + string(params) + `}`), nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			s.dial(upstream.Options{Events: k})
			<-asked
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if got := s.reply(ctx); got == "" || strings.Contains(got, "show it") || strings.Contains(got, "delete it") != (session == "") {
				t.Errorf("it is told %q", got)
			}
			ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
			defer cancel()
			if got := s.reply(ctx); got != "" {
				t.Errorf("then it is told %q", got)
			}
		})
	}
}

// TestHTTPListenAskedByNobody: a server without sessions whose stream has ended may be another one by now, which waits
// for an answer to something else: what was asked on that stream is not answered.
func TestHTTPListenAskedByNobody(t *testing.T) {
	ended := make(chan error, 1)
	var opened atomic.Int64
	s := serve(t, func(s *server) {
		s.session = ""
		s.listen = func(w http.ResponseWriter, r *http.Request) {
			if opened.Add(1) == 1 {
				events(w)(`data: {"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{"message":"show it?"}}`)
				return
			}
			events(w)
			<-r.Context().Done()
		}
	})
	k := newRecorder()
	k.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
		ended <- ctx.Err()
		return []byte(`{"action":"accept"}`), nil
	}
	s.dial(upstream.Options{Events: k})
	if err := <-ended; err == nil {
		t.Error("it is answered by whoever comes next")
	}
}

// TestHTTPListenNot: a server without a stream is asked for one once.
func TestHTTPListenNot(t *testing.T) {
	s := serve(t, nil)
	s.dial(upstream.Options{Events: newRecorder()})
	s.await("GET")
	c := s.dial(upstream.Options{})
	if err := c.Notify(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if n := s.count("GET"); n != 1 {
		t.Errorf("it was asked %d times; one connection has nobody who listens", n)
	}
}

// TestHTTPSubscribe: the same of a modern server.
func TestHTTPSubscribe(t *testing.T) {
	s := serve(t, func(s *server) {
		s.modern = true
		s.caps = `{"tools":{"listChanged":true},"prompts":{"listChanged":false},"resources":{"listChanged":true,"subscribe":true}}`
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			send := events(w)
			send(`data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, m.ID)
			send(`data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			<-r.Context().Done()
		}
	})
	k := newRecorder()
	c := s.dial(upstream.Options{Events: k})
	m := s.await("subscriptions/listen")
	if want := `"notifications":{"toolsListChanged":true,"resourcesListChanged":true}}`; !strings.HasSuffix(string(m.Params), want) ||
		!strings.Contains(string(m.Params), `"io.modelcontextprotocol/protocolVersion":"`+revision+`"`) {
		t.Errorf("the params are %s", m.Params)
	}
	if got := k.hear(t); got != "notifications/tools/list_changed" {
		t.Errorf("heard %s", got)
	}
	began := time.Now()
	if err := c.Close(); err != nil || time.Since(began) > time.Second {
		t.Errorf("Close: %v after %v", err, time.Since(began))
	}
}

// TestHTTPSubscribeNot: nothing is asked of a server that has nothing to say.
func TestHTTPSubscribeNot(t *testing.T) {
	s := serve(t, func(s *server) {
		s.modern = true
		s.caps = `{"tools":{}}`
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") }
	})
	c := s.dial(upstream.Options{Events: newRecorder()})
	for range 10 {
		if _, err := call(t.Context(), c, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count("subscriptions/listen"); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestHTTPNothingIsLeft: connections that are closed leave no goroutine behind.
func TestHTTPNothingIsLeft(t *testing.T) {
	s := serve(t, func(s *server) {
		s.got = make(chan msg, 100_000)
		s.call = func(w http.ResponseWriter, r *http.Request, m msg) {
			events(w)(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			<-r.Context().Done()
		}
		s.listen = func(w http.ResponseWriter, r *http.Request) { events(w); <-r.Context().Done() }
	})
	before := runtime.NumGoroutine()
	for i := range 200 {
		c, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: s.URL}, upstream.Options{Events: newRecorder()})
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 0 {
			if _, err := call(t.Context(), c, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.CloseClientConnections()
	settle(t, before)
	if n := s.count("DELETE"); n != 200 {
		t.Errorf("%d of 200 sessions were ended", n)
	}
}

// settle waits until the goroutines are as few as they were.
func settle(t *testing.T, before int) {
	t.Helper()
	for late := time.Now().Add(patience); runtime.NumGoroutine() > before+2; runtime.Gosched() {
		if time.Now().After(late) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
}

// TestHTTPList: a list is read page by page, to its end or not at all.
func TestHTTPList(t *testing.T) {
	pages := func(results ...string) func(http.ResponseWriter, *http.Request, msg) {
		n := 0
		return func(w http.ResponseWriter, _ *http.Request, m msg) {
			answer(w, m, results[min(n, len(results)-1)])
			n++
		}
	}
	count := func(format string) func(http.ResponseWriter, *http.Request, msg) {
		n := 0
		return func(w http.ResponseWriter, _ *http.Request, m msg) {
			n++
			answer(w, m, fmt.Sprintf(format, n))
		}
	}
	many := strings.TrimSuffix(strings.Repeat("1,", 60_000), ",")
	tests := []struct {
		name string
		call func(http.ResponseWriter, *http.Request, msg)
		want string // items, joined
		text string // of the error
		sent string // params of the last request
	}{
		{"one page", pages(`{"tools":[{"a":1.0}, {"b" :2}]}`), `{"a":1.0} {"b" :2}`, "", `{"_meta":{}}`},
		{"empty", pages(`{"tools":[]}`), "", "", `{"_meta":{}}`},
		{"three pages", pages(`{"tools":[1],"nextCursor":"a\u0062"}`, `{"tools":[],"nextCursor":"c"}`, `{"tools":[2],"nextCursor":null}`), "1 2", "", `{"cursor":"c","_meta":{}}`},
		{"a cursor as it came", pages(`{"tools":[1],"nextCursor":"a\u0062"}`, `{"tools":[2]}`), "1 2", "", `{"cursor":"a\u0062","_meta":{}}`},
		{"an empty cursor", pages(`{"tools":[1],"nextCursor":""}`), "1", "", `{"_meta":{}}`},
		{"no list", pages(`{"tools":{}}`), "", "has no list of tools", ""},
		{"absent", pages(`{}`), "", "has no list of tools", ""},
		{"a cursor that is none", pages(`{"tools":[],"nextCursor":7}`), "", "cursor is not one", ""},
		{"round and round", pages(`{"tools":[1],"nextCursor":"a"}`), "", "comes a second time", ""},
		{"for ever", count(`{"tools":[1],"nextCursor":"%d"}`), "", "more than 1000 pages", ""},
		{"too many", count(`{"tools":[` + many + `],"nextCursor":"%d"}`), "", "more than 100000 tools", ""},
		{"a second page that fails", func() func(http.ResponseWriter, *http.Request, msg) {
			n := 0
			return func(w http.ResponseWriter, _ *http.Request, m msg) {
				if n++; n == 1 {
					answer(w, m, `{"tools":[1],"nextCursor":"a"}`)
				} else {
					status(w, 500, "text/plain", "")
				}
			}
		}(), "", "status 500", ""},
		{"refused", func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, 200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"none"}}`, m.ID))
		}, "", "tools/list: none", ""},
		{"refused at length", func(w http.ResponseWriter, _ *http.Request, m msg) {
			status(w, 200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":%q}}`, m.ID, strings.Repeat("x", 1<<20)))
		}, "", "tools/list: xxx", ""},
		{"not complete", pages(`{"resultType":"input_required","tools":[]}`), "", "not a complete one", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, func(s *server) { s.call = tt.call })
			c := s.dial(upstream.Options{})
			meta := func(dst []byte) []byte { return append(dst, "{}"...) }
			items, err := upstream.List(t.Context(), c, upstream.Listing{Method: "tools/list", Member: "tools", Meta: meta})
			if tt.text != "" {
				if err == nil || !strings.Contains(err.Error(), tt.text) || items != nil || len(err.Error()) > 1000 {
					t.Errorf("%q, %v", items, err)
				}
				return
			}
			var texts []string
			for _, item := range items {
				texts = append(texts, string(item))
			}
			if got := strings.Join(texts, " "); err != nil || got != tt.want {
				t.Errorf("%s, %v", got, err)
			}
			if last := s.seen[len(s.seen)-1]; string(last.Params) != tt.sent {
				t.Errorf("the last params were %s", last.Params)
			}
		})
	}
}
