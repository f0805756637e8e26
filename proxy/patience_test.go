package proxy_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/proxy"
	"capgate/upstream"
)

// bubble is a gateway within a bubble of its own time, reached without a network.
type bubble struct {
	t      *testing.T
	server *proxy.Server
	events *recorder
	tokens map[string]string
	root   string
}

// inBubble runs a test in a gateway whose clock is not that of the wall.
func inBubble(t *testing.T, records map[string]string, ups []*proxy.Upstream, test func(*testing.T, *bubble)) {
	t.Helper()
	root, dir := realDir(t), t.TempDir()
	for name, text := range records {
		if err := os.WriteFile(dir+"/"+name+".md", []byte(strings.ReplaceAll(text, "$ROOT", root)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roster, err := agents.Load(agents.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		b := &bubble{t: t, events: &recorder{}, tokens: map[string]string{}, root: root}
		server, err := proxy.New(t.Context(), proxy.Options{Events: b.events})
		if err != nil {
			t.Fatal(err)
		}
		b.server = server
		creds := new(agents.Credentials)
		for name := range records {
			if b.tokens[name], creds, err = creds.Issue("agents/"+name, "", 3*time.Hour, time.Now(), rand.Reader); err != nil {
				t.Fatal(err)
			}
		}
		server.Adopt(&proxy.Policy{
			Gate: &gate.Gate{Roster: roster, Fence: capability.NewFence()}, Credentials: creds, Upstreams: ups, Hash: "test",
		})
		test(t, b)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

// request makes a request of an agent.
func (b *bubble) request(ctx context.Context, method, agent, body string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+b.tokens[agent])
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (b *bubble) do(agent, body string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, b.request(b.t.Context(), http.MethodPost, agent, body, headers...))
	return w
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`

func (b *bubble) open(agent string) string {
	b.t.Helper()
	w := b.do(agent, hello)
	id := w.Header().Get("Mcp-Session-Id")
	if id == "" {
		b.t.Fatal(w.Body)
	}
	return id
}

// taker is a client that takes a stream as a network connection would: a write
// after the deadline fails, and blocks until then when the client does not read.
type taker struct {
	header   http.Header
	mu       sync.Mutex
	deadline time.Time
	got      strings.Builder
	deaf     bool
	patient  bool // something was written without a deadline
	failed   error
}

func (w *taker) Header() http.Header { return w.header }
func (w *taker) WriteHeader(int)     {}
func (w *taker) FlushError() error   { return nil }
func (w *taker) Flush()              {}

func (w *taker) SetWriteDeadline(at time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deadline = at
	return nil
}

func (w *taker) SetReadDeadline(time.Time) error { return nil }

func (w *taker) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patient = w.patient || w.deadline.IsZero()
	if w.deaf && w.failed == nil {
		time.Sleep(time.Until(w.deadline))
	}
	if w.failed == nil && !w.deadline.IsZero() && !time.Now().Before(w.deadline) {
		w.failed = os.ErrDeadlineExceeded
	}
	if w.failed != nil {
		return 0, w.failed
	}
	return w.got.Write(p)
}

func (w *taker) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.got.String()
}

// stream opens the stream of a session, and tells when it has ended.
func (b *bubble) stream(ctx context.Context, agent, session string) (*taker, <-chan struct{}) {
	w, ended := &taker{header: http.Header{}}, make(chan struct{})
	r := b.request(ctx, http.MethodGet, agent, "", "Mcp-Session-Id", session)
	go func() { defer close(ended); b.server.ServeHTTP(w, r) }()
	synctest.Wait()
	return w, ended
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// finding 12: an idle stream lives on after an event: the deadline of the event
// must not be that of the signs of life behind it.
func TestStreamOutlivesItsEvents(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w, ended := b.stream(ctx, "scout", b.open("scout"))
		sink := s.first().Events
		sink.Notify("notifications/message", []byte(`{"level":"info","data":1}`))
		synctest.Wait()
		if !strings.Contains(w.text(), `"data":1`) {
			t.Fatal(w.text())
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if isClosed(ended) {
			t.Error("the stream ended by itself within two minutes")
		}
		cancel()
		<-ended
	})
}

// finding 13: a stream does not outlive the token that it was opened with.
func TestStreamEndsWithItsToken(t *testing.T) {
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{files(t, &scripted{})}, func(t *testing.T, b *bubble) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, ended := b.stream(ctx, "scout", b.open("scout"))
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		if !isClosed(ended) {
			t.Error("the token expired an hour ago, and the stream is open")
		}
		cancel()
		<-ended
	})
}

// finding 14: the sessions of clients that went away end by themselves, and with
// them the connections that were made for them.
func TestForgottenSessionsEnd(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		for range 10 {
			b.open("scout")
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if open := s.opened.Load() - s.closed.Load(); open > 0 {
			t.Errorf("%d connections of sessions that nobody has used for two hours are open", open)
		}
	})
}

// finding 15: a server that does not answer slows requests for the others by its
// patience once, not once for each request that waits.
func TestDeadServerSlowsOnce(t *testing.T) {
	good := &scripted{lists: map[string]string{"prompts/list": `"prompts":[{"name":"p"}]`}}
	dead := &scripted{}
	up := &proxy.Upstream{Name: "dead", Prefix: "dead", Open: func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		conn, err := dead.open(ctx, p)
		return &mute{Conn: conn}, err
	}}
	ups := []*proxy.Upstream{{Name: "good", Prefix: "good", Open: good.open}, up}
	inBubble(t, map[string]string{"scout": everything}, ups, func(t *testing.T, b *bubble) {
		session := b.open("scout")
		begin := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				b.do("scout", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"prompts/get","params":{"name":"good__p"}}`, i+1), "Mcp-Session-Id", session)
			})
		}
		all.Wait()
		if n := len(good.calls()); n != 20 {
			t.Errorf("%d of 20 requests reached the server that works", n)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("20 requests to a server that answers at once took %v", took)
		}
	})
}

// mute is a server that never answers.
type mute struct{ upstream.Conn }

func (m *mute) Call(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
	<-ctx.Done()
	return upstream.Answer{}, ctx.Err()
}

// finding 16: an agent that does not read must not hold up the others who share a
// server. A server tells its calls one after the other.
func TestDeafAgentHoldsUpNobody(t *testing.T) {
	s := &scripted{}
	var telling chan struct{} // there is one reader of the server's output
	s.reply = func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		telling <- struct{}{}
		defer func() { <-telling }()
		if r.Token != "" {
			sink.Notify("notifications/progress", []byte(`{"progressToken":"`+r.Token+`","progress":1}`))
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	up := files(t, s)
	up.Shared = true
	inBubble(t, map[string]string{"deaf": reader, "scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		telling = make(chan struct{}, 1)
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + b.root + `/docs/a"},"_meta":{"progressToken":1}}}`
		mine := b.open("scout")
		var all sync.WaitGroup
		for range 4 {
			theirs := b.open("deaf")
			all.Go(func() {
				w := &taker{header: http.Header{}, deaf: true}
				b.server.ServeHTTP(w, b.request(t.Context(), http.MethodPost, "deaf", call, "Mcp-Session-Id", theirs))
			})
		}
		synctest.Wait()
		begin := time.Now()
		w := b.do("scout", call, "Mcp-Session-Id", mine)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("another agent's call took %v: %s", took, w.Body)
		}
		all.Wait()
	})
}

// finding 17: an answer that nobody takes is given up after a while.
func TestAnswerThatNobodyTakesIsGivenUp(t *testing.T) {
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{files(t, &scripted{})}, func(t *testing.T, b *bubble) {
		session := b.open("scout")
		w := &taker{header: http.Header{}}
		b.server.ServeHTTP(w, b.request(t.Context(), http.MethodPost, "scout", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, "Mcp-Session-Id", session))
		if w.patient || w.text() == "" {
			t.Error("the answer is written without a deadline: whoever does not read it keeps it in memory for ever")
		}
	})
}

// TestSlowStart calls at once what a server has that takes ten seconds to start: the
// first call waits for it, whatever it is looked for by.
func TestSlowStart(t *testing.T) {
	for _, prefix := range []string{"up", ""} {
		for method, what := range map[string]string{
			"tools/call":  `"name":"NAME","arguments":{}`,
			"prompts/get": `"name":"NAME"`,
		} {
			s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("it") + `]`, "prompts/list": `"prompts":[{"name":"it"}]`}}
			up := &proxy.Upstream{Name: "up", Prefix: prefix, Open: func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				time.Sleep(10 * time.Second)
				return s.open(ctx, p)
			}}
			name := "it"
			if prefix != "" {
				name = prefix + "__it"
			}
			inBubble(t, map[string]string{"scout": everything}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
				session := b.open("scout")
				b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+strings.Replace(what, "NAME", name, 1)+`}}`, "Mcp-Session-Id", session)
				if n := len(s.calls()); n != 1 {
					t.Errorf("%s with prefix %q: %d calls reached the server: %v", method, prefix, n, b.events.of("refusal"))
				}
			})
		}
	}
}

// TestFirstListIsWaitedFor: who asks for a list once sees what there is, however long the
// first server takes that has any for the agent. Another one is not waited for any longer then,
// and one that never answers is waited for once.
func TestFirstListIsWaitedFor(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		starts, lists []time.Duration // of each server
		most          time.Duration
		shown         string
	}{
		"slow start":           {[]time.Duration{10 * time.Second}, []time.Duration{0}, 11 * time.Second, "s0__it"},
		"slow list":            {[]time.Duration{0}, []time.Duration{10 * time.Second}, 21 * time.Second, "s0__it"},
		"slow both":            {[]time.Duration{6 * time.Second}, []time.Duration{6 * time.Second}, 25 * time.Second, "s0__it"},
		"all slow":             {[]time.Duration{10 * time.Second, 20 * time.Second}, []time.Duration{0, 0}, 11 * time.Second, "s0__it"},
		"another":              {[]time.Duration{10 * time.Second, 0}, []time.Duration{0, 0}, 3 * time.Second, "s1__it"},
		"another, a list only": {[]time.Duration{0, 0}, []time.Duration{never, 0}, 3 * time.Second, "s1__it"},
		"never":                {[]time.Duration{never}, []time.Duration{0}, 30 * time.Second, ""},
		"never of two":         {[]time.Duration{never, 10 * time.Second}, []time.Duration{0, 0}, 11 * time.Second, "s1__it"},
		"none":                 {nil, nil, 0, ""},
	} {
		for _, method := range []string{"tools/list", "prompts/list", "resources/list"} {
			var ups []*proxy.Upstream
			for i, start := range c.starts {
				it := fmt.Sprintf("s%d", i)
				s := &scripted{slow: c.lists[i], lists: map[string]string{
					"tools/list": `"tools":[` + tool("it") + `]`, "prompts/list": `"prompts":[{"name":"it"}]`,
					"resources/list": `"resources":[{"uri":"note:///` + it + `__it","name":"it"}]`,
				}}
				ups = append(ups, &proxy.Upstream{Name: it, Prefix: it, Open: func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
					select {
					case <-time.After(start):
					case <-ctx.Done():
						return nil, ctx.Err()
					}
					return s.open(ctx, p)
				}})
			}
			inBubble(t, map[string]string{"scout": everything}, ups, func(t *testing.T, b *bubble) {
				list := func() (string, time.Duration) {
					begin := time.Now()
					w := b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{`+modernMeta+`}}}`, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method)
					return w.Body.String(), time.Since(begin)
				}
				if got, took := list(); !strings.Contains(got, c.shown) || c.shown == "" && strings.Contains(got, "__it") || took > c.most {
					t.Errorf("%s: %s after %v: %s", name, method, took, got)
				}
				for _, pause := range []time.Duration{0, 10 * time.Second} {
					<-time.After(pause)
					if _, took := list(); took > 3*time.Second {
						t.Errorf("%s: %s takes %v %v later", name, method, took, pause)
					}
				}
			})
		}
	}
}

// TestFirstToolsAreTheAgents: what another server has listed, of which the agent may use nothing,
// is nothing to show. Where there is something, no server is waited for.
func TestFirstToolsAreTheAgents(t *testing.T) {
	for shown, record := range map[string]string{
		"s0__it": strings.Replace(everything, `tools: ["**"]`, `tools: ["s0.*"]`, 1), "s1__it": everything,
	} {
		var ups []*proxy.Upstream
		for i, starts := range []time.Duration{10 * time.Second, 0} {
			s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("it") + `]`}}
			name := fmt.Sprintf("s%d", i)
			ups = append(ups, &proxy.Upstream{Name: name, Prefix: name, Open: func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				<-time.After(starts)
				return s.open(ctx, p)
			}})
		}
		inBubble(t, map[string]string{"scout": record}, ups, func(t *testing.T, b *bubble) {
			begin := time.Now()
			w := b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", b.open("scout"))
			if took := time.Since(begin); !strings.Contains(w.Body.String(), shown) || shown == "s1__it" && took > 3*time.Second {
				t.Errorf("after %v: %s", took, w.Body)
			}
		})
	}
}

// TestFirstListIsNotTheNext: a list that has changed is not waited for as the first one is,
// as there is something to show.
func TestFirstListIsNotTheNext(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("it") + `]`}}
	inBubble(t, map[string]string{"scout": everything}, []*proxy.Upstream{{Name: "up", Prefix: "up", Open: s.open}}, func(t *testing.T, b *bubble) {
		session := b.open("scout")
		for range 2 {
			begin := time.Now()
			w := b.do("scout", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", session)
			if took := time.Since(begin); took > 3*time.Second || !strings.Contains(w.Body.String(), "up__it") {
				t.Errorf("after %v: %s", took, w.Body)
			}
			s.takes(time.Hour)
			s.first().Events.Notify("notifications/tools/list_changed", nil)
		}
	})
}
