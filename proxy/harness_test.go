package proxy_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/skills"
	"capgate/upstream"
)

// recorder keeps events in memory, and fails when it is told to.
type recorder struct {
	mu     sync.Mutex
	events []guardrail.Event
	fail   error
	before func(*guardrail.Event) // is shown each, if there is one
}

func (r *recorder) Record(e *guardrail.Event) (string, error) {
	if r.before != nil {
		r.before(e)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		return "", r.fail
	}
	r.events = append(r.events, *e)
	return fmt.Sprintf("ev-%d", len(r.events)), nil
}

func (r *recorder) failWith(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = err
}

// all returns every event.
func (r *recorder) all() []guardrail.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]guardrail.Event(nil), r.events...)
}

// of returns the events of a kind.
func (r *recorder) of(kind string) []guardrail.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []guardrail.Event
	for _, e := range r.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// scripted is a server within the test. It counts what reaches it.
type scripted struct {
	info  upstream.Info
	lists map[string]string // the members of list results, by method
	reply func(ctx context.Context, r upstream.Request, s upstream.Sink) (upstream.Answer, error)
	slow  time.Duration // in which it lists something
	quiet bool          // it does not note what reaches it

	mu     sync.Mutex // of lists, reply and slow as well, once it is open
	got    []upstream.Request
	peers  []proxy.Peer
	conns  []upstream.Conn
	opened atomic.Int64
	closed atomic.Int64

	unreachable atomic.Bool // it takes a connection and says nothing
}

// noSuchMethod in place of a list is that the server has none.
const noSuchMethod = "-32601"

const serverAbilities = `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true},"logging":{},"completions":{}}`

func (s *scripted) open(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
	for s.unreachable.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
	}
	s.opened.Add(1)
	conn := &scriptedConn{server: s, peer: p, done: make(chan struct{})}
	s.mu.Lock()
	s.peers, s.conns = append(s.peers, p), append(s.conns, conn)
	s.mu.Unlock()
	return conn, nil
}

// calls returns the requests that reached the server, lists left out.
func (s *scripted) calls() []upstream.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []upstream.Request
	for _, r := range s.got {
		if !strings.HasSuffix(r.Method, "/list") && r.Method != "logging/setLevel" {
			list = append(list, r)
		}
	}
	return list
}

type scriptedConn struct {
	server *scripted
	peer   proxy.Peer
	done   chan struct{}
	once   sync.Once
}

func (c *scriptedConn) Info() upstream.Info {
	info := c.server.info
	if info.Version == "" {
		info.Version = "2025-11-25"
	}
	if info.Capabilities == nil {
		info.Capabilities = []byte(serverAbilities)
	}
	return info
}

func (c *scriptedConn) Call(ctx context.Context, r upstream.Request, s upstream.Sink) (upstream.Answer, error) {
	if c.server.quiet && r.Method == "tools/call" {
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	r.Params = bytes.Clone(r.Params)
	c.server.mu.Lock()
	c.server.got = append(c.server.got, r)
	list, isList := c.server.lists[r.Method]
	slow, reply := c.server.slow, c.server.reply
	c.server.mu.Unlock()
	if isList {
		<-time.After(slow)
	}
	switch {
	case list == noSuchMethod:
		return upstream.Answer{Error: []byte(`{"code":-32601,"message":"Method not found"}`)}, nil
	case isList:
		return upstream.Answer{Result: []byte(`{` + list + `}`)}, nil
	case strings.HasSuffix(r.Method, "/list"):
		member := strings.TrimSuffix(strings.TrimPrefix(r.Method, "resources/"), "/list")
		if r.Method == "resources/list" {
			member = "resources"
		} else if member == "templates" {
			member = "resourceTemplates"
		}
		return upstream.Answer{Result: []byte(`{"` + member + `":[]}`)}, nil
	case reply != nil:
		return reply(ctx, r, s)
	}
	return upstream.Answer{Result: []byte(`{"content":[{"type":"text","text":"done"}]}`)}, nil
}

func (c *scriptedConn) Notify(context.Context, string, []byte) error { return nil }
func (c *scriptedConn) Done() <-chan struct{}                        { return c.done }

func (c *scriptedConn) Close() error {
	c.once.Do(func() { c.server.closed.Add(1); close(c.done) })
	return nil
}

// world is a gateway in front of scripted servers.
type world struct {
	t       *testing.T
	server  *proxy.Server
	http    *httptest.Server
	events  *recorder
	tokens  map[string]string // by agent
	creds   *agents.Credentials
	dir     string          // of records
	shared  capability.Root // the root of the configuration, if it has one
	root    string          // that grants hang from
	ups     []*proxy.Upstream
	vendors []*proxy.Provider
	options proxy.Options
	flags   bool // the grants stand on a command line

	introspect bool // the gateway's own tools are shown
	secrets    proxy.Secrets
	skills     *skills.Library
}

// start brings a gateway up. Records are the files of agents, by name.
func start(t *testing.T, records map[string]string, ups ...*proxy.Upstream) *world {
	t.Helper()
	return startWith(t, proxy.Options{}, records, ups...)
}

// startWith is start for a gateway that runs in another way than most.
func startWith(t *testing.T, o proxy.Options, records map[string]string, ups ...*proxy.Upstream) *world {
	t.Helper()
	w := &world{
		t: t, dir: t.TempDir(), root: realDir(t), ups: ups, tokens: map[string]string{},
		events: new(recorder), creds: new(agents.Credentials), options: o,
	}
	w.options.Events = w.events
	var err error
	if w.server, err = proxy.New(t.Context(), w.options); err != nil {
		t.Fatal(err)
	}
	for name, text := range records {
		w.write(name, text)
	}
	w.adopt()
	w.http = front(t, w.server)
	t.Cleanup(func() {
		w.http.Close()
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func realDir(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// tokenLife is longer than any test lets its clock run that is not about it.
const tokenLife = 30 * 24 * time.Hour

// write puts a record into the folder, and gives its agent a token.
func (w *world) write(name, text string) {
	w.t.Helper()
	text = strings.ReplaceAll(text, "$ROOT", w.root)
	must(w.t, os.WriteFile(filepath.Join(w.dir, name+".md"), []byte(text), 0o600))
	if _, ok := w.tokens[name]; !ok {
		token, next, err := w.creds.Issue("agents/"+name, "", tokenLife, time.Now(), rand.Reader)
		if err != nil {
			w.t.Fatal(err)
		}
		w.tokens[name], w.creds = token, next
	}
}

// adopt puts in force what the folder says.
func (w *world) adopt() {
	w.t.Helper()
	roster, err := agents.Load(agents.Options{Config: w.shared}, w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range roster.Findings() {
		w.t.Log(f)
	}
	w.server.Adopt(&proxy.Policy{
		Gate: &gate.Gate{Roster: roster, Fence: capability.NewFence()}, Credentials: w.creds, Upstreams: w.ups, Providers: w.vendors,
		Skills: w.skills, Secrets: w.secrets, Hash: "test", Flags: w.flags, Introspection: w.introspect,
	})
}

// files is a server with the tools of the filesystem server, mapped.
func files(t *testing.T, s *scripted) *proxy.Upstream {
	t.Helper()
	m, err := mapping.Builtin("filesystem")
	if err != nil {
		t.Fatal(err)
	}
	if s.lists == nil {
		s.lists = map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `,` + tool("write_file", "path") + `]`}
	}
	return &proxy.Upstream{Name: "files", Prefix: "files", Mapping: m, Process: true, Open: s.open}
}

func tool(name string, args ...string) string {
	var props []string
	for _, a := range args {
		props = append(props, `"`+a+`":{"type":"string"}`)
	}
	return `{"name":"` + name + `","description":"A tool.","inputSchema":{"type":"object","properties":{` + strings.Join(props, ",") + `}}}`
}

// reader is an agent that may read below docs.
const reader = `---
class: agent
capabilities:
  - fs.read: { in: $ROOT, paths: [docs] }
---
`

// client is an agent's client over HTTP.
type client struct {
	w       *world
	token   string
	session string
	next    int
	thinks  time.Duration // before it answers what it is asked
}

func (w *world) client(agent string) *client { return &client{w: w, token: w.tokens[agent]} }

// post sends a body with headers, and returns the answer.
func (c *client) post(body string, headers ...string) *http.Response {
	c.w.t.Helper()
	r, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodPost, c.w.http.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		c.w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.w.http.Client().Do(r)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return resp
}

// said is the answer to a request, taken apart.
type said struct {
	Status int
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	Before []string // what an event stream held before the answer
	Raw    string
}

func take(t *testing.T, resp *http.Response) said {
	t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := said{Status: resp.StatusCode, Raw: string(data)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for event := range strings.SplitSeq(string(data), "\n\n") {
			if _, body, ok := strings.Cut(event, "data: "); ok {
				a.Before = append(a.Before, body)
			}
		}
		if n := len(a.Before); n > 0 {
			data, a.Before = []byte(a.Before[n-1]), a.Before[:n-1]
		}
	}
	if len(data) > 0 && data[0] == '{' {
		if err := json.Unmarshal(data, &a); err != nil {
			t.Fatalf("%s: %v", data, err)
		}
	}
	return a
}

// initialize begins a session.
func (c *client) initialize(capabilities string) said {
	c.w.t.Helper()
	resp := c.post(
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"clientInfo":{"name":"test","version":"1"}}}`)
	c.session = resp.Header.Get("Mcp-Session-Id")
	a := take(c.w.t, resp)
	if a.Error != nil || c.session == "" {
		c.w.t.Fatalf("initialize: %s", a.Raw)
	}
	return a
}

// request makes a request in the session.
func (c *client) request(method, params string) said {
	c.w.t.Helper()
	c.next++
	return take(c.w.t, c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.next, method, params)))
}

// modern makes a request of the stateless era.
func (c *client) modern(method, params, capabilities string, headers ...string) said {
	c.w.t.Helper()
	c.next++
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
	params = strings.TrimSuffix(params, "}")
	if params != "{" {
		params += ","
	}
	var p struct{ Name, URI string }
	if err := json.Unmarshal([]byte(strings.TrimSuffix(params, ",")+"}"), &p); err != nil {
		c.w.t.Fatal(err)
	}
	all := []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
	if name := p.Name + p.URI; name != "" {
		all = append(all, "Mcp-Name", name)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s%s}}`, c.next, method, params, meta)
	return take(c.w.t, c.post(body, append(all, headers...)...))
}

// toolNames are the names in a tools/list.
func toolNames(t *testing.T, a said) []string {
	t.Helper()
	var r struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(a.Result, &r); err != nil {
		t.Fatalf("%s: %v", a.Raw, err)
	}
	var names []string
	for _, x := range r.Tools {
		names = append(names, x.Name)
	}
	return names
}

// denied is the body of a denial, in a result or in an error.
type denied struct {
	Code, Need, Tool, Argument, Hint, Event string
	Held                                    []string
}

func denialOf(t *testing.T, a said) denied {
	t.Helper()
	var r struct {
		IsError bool
		Content []struct{ Text string }
		Meta    map[string]denied `json:"_meta"`
	}
	var d map[string]denied
	if a.Error != nil {
		if err := json.Unmarshal(a.Error.Data, &d); err != nil {
			t.Fatalf("%s: %v", a.Raw, err)
		}
		return d["capgate/denial"]
	}
	if err := json.Unmarshal(a.Result, &r); err != nil || !r.IsError {
		return denied{}
	}
	return r.Meta["capgate/denial"]
}

// bringWith makes a front for one agent, and returns its token. The policy is filled up.
func bringWith(b *testing.B, o proxy.Options, record string, p *proxy.Policy) (*proxy.Server, string) {
	b.Helper()
	front, err := proxy.New(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = front.Close() })
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte(record), 0o600); err != nil {
		b.Fatal(err)
	}
	roster, err := agents.Load(agents.Options{}, dir)
	if err != nil {
		b.Fatal(err)
	}
	token, creds, err := new(agents.Credentials).Issue("agents/scout", "", time.Hour, time.Now(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	p.Gate, p.Credentials, p.Hash = &gate.Gate{Roster: roster, Fence: capability.NewFence()}, creds, "bench"
	front.Adopt(p)
	return front, token
}
