package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/agents"
	"capgate/gate"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/upstream"
	"capgate/wire"
)

// H: a call is decided by the grants of one policy and the mapping of another.
func TestHostileTwoPolicies(t *testing.T) {
	var armed atomic.Int64
	held, goOn := make(chan struct{}), make(chan struct{})
	clock := func() time.Time {
		if armed.Load() > 0 && armed.Add(-1) == 0 {
			close(held)
			<-goOn
		}
		return time.Now()
	}
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}}
	m, err := mapping.Builtin("filesystem")
	if err != nil {
		t.Fatal(err)
	}
	mapped := &proxy.Upstream{Name: "files", Prefix: "files", Mapping: m, Open: s.open}
	bare := &proxy.Upstream{Name: "files", Prefix: "files", Open: s.open}
	// what is granted in the first policy is only the tool's name, and the tool needs fs.read
	w := startWith(t, proxy.Options{Clock: clock}, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [\"files.*\"] }\n---\n"}, mapped)
	call := func() said {
		c := w.client("scout")
		return c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"/etc/shadow"}}`, `{}`)
	}
	if d := denialOf(t, call()); d.Code == "" {
		t.Fatal("the first policy allows it")
	}
	// the call is held up between taking its policy and looking for the tool
	done := make(chan said)
	armed.Store(2) // recognise looks at the clock first, then begin
	go func() { done <- call() }()
	<-held
	// the second policy has no mapping, and grants nothing of the tool
	w.ups = []*proxy.Upstream{bare}
	w.write("scout", "---\nclass: agent\ncapabilities:\n  - fs.read: { in: $ROOT }\n---\n")
	w.adopt()
	if d := denialOf(t, call()); d.Code == "" {
		t.Fatal("the second policy allows it")
	}
	w.client("scout").modern("tools/list", `{}`, `{}`) // makes the catalogue of the second policy
	close(goOn)
	if a := <-done; denialOf(t, a).Code == "" || len(s.calls()) > 0 {
		t.Errorf("neither policy allows it, and it went up: %s", a.Raw)
	}
}

// TestGrantTakenMeanwhile: what was decided, and did not reach its server before the
// grant was taken, does not go up when the server is reached again.
func TestGrantTakenMeanwhile(t *testing.T) {
	for name, mayAsk := range map[string][]string{"modern": nil, "legacy": nil, "parked": {"elicitation"}} {
		t.Run(name, func(t *testing.T) {
			var w *world
			s := &scripted{}
			s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
				if len(s.calls()) > 1 {
					return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
				}
				w.write("scout", strings.ReplaceAll(reader, "docs", "notes"))
				w.adopt()
				return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "no longer knows the session", Unsent: true, Lost: true}
			}
			up := files(t, s)
			up.MayAsk = mayAsk
			w = start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			call := func() said {
				params := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`
				if name == "legacy" {
					c.initialize("{}")
					return c.request("tools/call", params)
				}
				return c.modern("tools/call", params, `{"elicitation":{}}`)
			}
			if d := denialOf(t, call()); d.Code != "scope_violation" || len(s.calls()) != 1 {
				t.Errorf("it is answered with %q after %d calls", d.Code, len(s.calls()))
			}
			outcomes, decisions := w.events.of("outcome"), w.events.of("decision")
			if len(outcomes) != 1 || outcomes[0].Error == "" || len(decisions) != 2 || decisions[1].Decision != "deny" {
				t.Errorf("recorded are %v and %v", decisions, outcomes)
			}
		})
	}
}

// TestPolicyThatNeverRests: a call that another policy overtakes each time that it is to go up ends, and
// the model reads that it may try again.
func TestPolicyThatNeverRests(t *testing.T) {
	var w *world
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		w.adopt()
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, r.May()
	}
	w = start(t, map[string]string{"scout": reader}, files(t, s))
	params := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`
	a := w.client("scout").modern("tools/call", params, `{}`)
	if d := denialOf(t, a); d.Code != "not_available" || !strings.Contains(a.Raw, "changed again and again") || !strings.Contains(a.Raw, "try again") {
		t.Errorf("it is answered: %s", a.Raw)
	}
	if n := len(s.calls()); n < 2 || n > 10 {
		t.Errorf("it was tried %d times", n)
	}
}

type stalled struct {
	left  int
	now   *atomic.Int64
	until chan struct{}
	once  sync.Once
}

func (b *stalled) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.once.Do(func() { b.now.Add(1) })
		<-b.until
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), b.left)
	for i := range p[:n] {
		p[i] = ' '
	}
	b.left -= n
	return n, nil
}
func (b *stalled) Close() error { return nil }

// M: bodies are taken in from as many requests as come.
func TestHostileBodiesOfTooManyRequests(t *testing.T) {
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Flights: 2}}, map[string]string{"scout": reader}, files(t, &scripted{}))
	var reading atomic.Int64
	until := make(chan struct{})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", &stalled{left: 1 << 20, now: &reading, until: until})
			r.ContentLength = -1
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer "+w.tokens["scout"])
			w.server.ServeHTTP(httptest.NewRecorder(), r)
		})
	}
	time.Sleep(500 * time.Millisecond)
	if n := reading.Load(); n > 2 {
		t.Errorf("%d bodies are held, of at most 2 requests", n)
	}
	close(until)
	all.Wait()
}

// TestReachedAsPolicyComes: no connection is made by a policy that has gone, as nobody would end it: the server
// of an agent that is gone, say, would run on.
func TestReachedAsPolicyComes(t *testing.T) {
	w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}))
	for name, next := range map[string]*proxy.Policy{
		"the agent is gone":  {Gate: &gate.Gate{Roster: new(agents.Roster)}, Upstreams: w.ups},
		"the server is gone": {Gate: &gate.Gate{Roster: new(agents.Roster)}},
	} {
		w.adopt()
		if w.server.KeepsStale("scout", next) {
			t.Error(name)
		}
	}
}

// TestGrantTakenWhileAuthorized: what waits for a token that its server accepts does not go up when the grant
// was taken meanwhile, before the server is asked at all and once it has wanted another token.
func TestGrantTakenWhileAuthorized(t *testing.T) {
	for _, refused := range []bool{false, true} {
		for name, mayAsk := range map[string][]string{"": nil, "parked": {"elicitation"}} {
			t.Run(fmt.Sprint(name, refused), func(t *testing.T) {
				var w *world
				var armed atomic.Bool
				var done, wanted atomic.Int64
				server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					m, err := wire.Parse(body)
					if err != nil { // who wants to listen
						rw.WriteHeader(http.StatusMethodNotAllowed)
						return
					}
					method, _ := m.Root().Get("method")
					id, _ := m.Root().Get("id")
					result := `{"tools":[` + tool("read_text_file", "path") + `]}`
					switch {
					case id.Kind() == wire.Invalid:
						rw.WriteHeader(http.StatusAccepted)
						return
					case method.Equal("initialize"):
						result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
					case method.Equal("tools/call") && refused && wanted.Add(1) == 1:
						rw.WriteHeader(http.StatusUnauthorized)
						return
					case method.Equal("tools/call"):
						done.Add(1)
						result = `{"content":[]}`
					}
					rw.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":`+string(id.Raw())+`,"result":`+result+`}`)
				}))
				t.Cleanup(server.Close)
				up := files(t, &scripted{})
				up.Process, up.MayAsk = false, mayAsk
				up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
					p.Client.Protocol = "2025-11-25"
					return upstream.Dial(ctx, upstream.Endpoint{
						Name: "files", URL: server.URL, Transport: "http",
						Authorize: func(_ context.Context, again bool) (string, error) {
							if again == refused && armed.Swap(false) {
								w.write("scout", strings.ReplaceAll(reader, "docs", "notes"))
								w.adopt()
							}
							return "", nil
						},
					}, upstream.Options{Client: p.Client, Events: p.Events})
				}
				w = start(t, map[string]string{"scout": reader}, up)
				c := w.client("scout")
				c.modern("tools/list", "{}", "{}")
				armed.Store(true)
				a := c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"elicitation":{}}`)
				if d := denialOf(t, a); d.Code != "scope_violation" || done.Load() != 0 {
					t.Errorf("%d go up: %s", done.Load(), a.Raw)
				}
			})
		}
	}
}

// TestGrantTakenWhileToldOfLogs: a server that takes its time to hear which logs are wanted gets no call
// whose grant was taken meanwhile.
func TestGrantTakenWhileToldOfLogs(t *testing.T) {
	for name, mayAsk := range map[string][]string{"": nil, "parked": {"elicitation"}} {
		t.Run(name, func(t *testing.T) {
			var w *world
			s := &scripted{reply: func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
				if r.Method == "logging/setLevel" {
					w.write("scout", strings.ReplaceAll(reader, "docs", "notes"))
					w.adopt()
				}
				return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
			}}
			up := files(t, s)
			up.MayAsk = mayAsk
			w = start(t, map[string]string{"scout": reader}, up)
			a := w.client("scout").modern("tools/call",
				`{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"elicitation":{}},"io.modelcontextprotocol/logLevel":"debug"`)
			if d := denialOf(t, a); d.Code != "scope_violation" || len(s.calls()) != 0 {
				t.Errorf("%d go up: %s", len(s.calls()), a.Raw)
			}
		})
	}
}

// TestGrantTakenWhileWatched: a server that takes its time to come up is not asked to tell of what may not be
// read any more by then, and of what may still be it is.
func TestGrantTakenWhileWatched(t *testing.T) {
	const grants = "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"notes:///%s\"] }\n---\n"
	for _, stays := range []bool{false, true} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(stays, modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"a"}]`}}
					w := start(t, map[string]string{"scout": fmt.Sprintf(grants, "*")}, &proxy.Upstream{Name: "notes", Prefix: "notes", Open: s.open})
					c := w.client("scout")
					c.initialize("{}")
					c.request("resources/list", "{}")
					time.Sleep(5 * time.Second)
					must(t, s.conns[0].Close())
					s.unreachable.Store(true)
					time.AfterFunc(time.Second, func() {
						w.write("scout", fmt.Sprintf(grants, map[bool]string{true: "[a-c]", false: "b"}[stays]))
						w.adopt()
						s.unreachable.Store(false)
					})
					if modern {
						ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
						defer cancel()
						ack := listenOnce(ctx, t, w.client("scout"), `{"resourceSubscriptions":["notes:///a"]}`)
						if strings.Contains(ack, "notes:///a") != stays {
							t.Error(ack)
						}
					} else if a := c.request("resources/subscribe", uriParams("notes:///a")); (a.Error == nil) != stays {
						t.Error(a.Raw)
					}
					if n := len(s.calls()); (n == 1) != stays {
						t.Errorf("it is asked %d times", n)
					}
				})
			})
		}
	}
}
