package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/upstream"
)

// patience is how long a test waits for what must come.
const patience = 20 * time.Second

// server is an MCP server over HTTP that does what a test wants of it.
type server struct {
	*httptest.Server
	t testing.TB

	modern  bool
	session string // "" for none
	caps    string

	call   func(w http.ResponseWriter, r *http.Request, m msg) // requests other than of the handshake
	doubt  func(w http.ResponseWriter, r *http.Request, m msg) // what it is asked after a call, nil for call
	listen http.HandlerFunc                                    // GET
	note   http.HandlerFunc                                    // notifications other than of the handshake

	mu   sync.Mutex
	seen []msg
	got  chan msg // every message, if it has room
}

// msg is one request as the server got it.
type msg struct {
	Verb   string          `json:"-"`
	Header http.Header     `json:"-"`
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

const revision = "2026-07-28"

// serve starts a server of the legacy era with a session; change makes it another.
func serve(t testing.TB, change func(*server)) *server {
	t.Helper()
	s := &server{t: t, session: "s-1", caps: `{}`, got: make(chan msg, 10000)}
	if change != nil {
		change(s)
	}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	m := msg{Verb: r.Method, Header: r.Header}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &m); err != nil {
			s.t.Errorf("the server got %q: %v", body, err)
		}
	}
	s.mu.Lock()
	s.seen = append(s.seen, m)
	s.mu.Unlock()
	s.got <- m
	switch {
	case r.Method == http.MethodGet:
		s.listened(w, r)
	case r.Method == http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
	case s.doubt != nil && (m.Method == "ping" || m.Method == "server/discover" && s.count("tools/call") > 0):
		s.doubt(w, r, m)
	default:
		s.posted(w, r, m)
	}
}

func (s *server) posted(w http.ResponseWriter, r *http.Request, m msg) {
	switch {
	case m.Method == "server/discover" && s.modern:
		answer(w, m, `{"resultType":"complete","supportedVersions":["`+revision+`"],"capabilities":`+s.caps+`}`)
	case m.Method == "server/discover":
		http.Error(w, "no session", http.StatusBadRequest)
	case m.Method == "initialize" && !s.modern:
		if s.session != "" {
			w.Header().Set("Mcp-Session-Id", s.session)
		}
		answer(w, m, `{"protocolVersion":"2025-11-25","capabilities":`+s.caps+`,"serverInfo":{"name":"s","version":"1"}}`)
	case m.ID == nil, m.Method == "":
		s.noted(w, r, m)
	default:
		s.call(w, r, m)
	}
}

func (s *server) listened(w http.ResponseWriter, r *http.Request) {
	if s.listen == nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	s.listen(w, r)
}

func (s *server) noted(w http.ResponseWriter, r *http.Request, m msg) {
	if s.note == nil || m.Method == "notifications/initialized" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.note(w, r)
}

// knows is a server that knows its sessions.
func knows(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, "{}") }

// answer writes a result as JSON.
func answer(w http.ResponseWriter, m msg, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// fault writes an error as JSON.
func fault(w http.ResponseWriter, m msg, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, message)
}

// status writes a body with a status.
func status(w http.ResponseWriter, code int, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = io.WriteString(w, body)
}

// events begins a stream, and returns what sends an event.
func events(w http.ResponseWriter) (send func(format string, args ...any)) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush()
	return func(format string, args ...any) {
		fmt.Fprintf(w, format+"\n\n", args...)
		_ = flush.Flush()
	}
}

// methods returns what was asked, in the order it came.
func (s *server) methods() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.seen {
		switch {
		case m.Verb != http.MethodPost:
			names = append(names, m.Verb)
		case m.Method == "":
			names = append(names, "reply")
		default:
			names = append(names, m.Method)
		}
	}
	return names
}

func (s *server) count(method string) int {
	n := 0
	for _, name := range s.methods() {
		if name == method {
			n++
		}
	}
	return n
}

// await returns the next message that the server got of a method.
func (s *server) await(method string) msg {
	s.t.Helper()
	late := time.After(patience)
	for {
		select {
		case m := <-s.got:
			if m.Method == method || m.Verb == method {
				return m
			}
		case <-late:
			s.t.Fatalf("no %s came, only %q", method, s.methods())
		}
	}
}

// dial connects to the server, and closes the connection at the end.
func (s *server) dial(o upstream.Options) upstream.Conn {
	s.t.Helper()
	return dial(s.t, upstream.Endpoint{Name: "files", URL: s.URL + "/mcp", Transport: "http"}, o)
}

func dial(t testing.TB, e upstream.Endpoint, o upstream.Options) upstream.Conn {
	t.Helper()
	c, err := upstream.Dial(t.Context(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// call asks for a tool.
func call(ctx context.Context, c upstream.Conn, s upstream.Sink) (upstream.Answer, error) {
	return c.Call(ctx, upstream.Request{Method: "tools/call", Name: "t", Params: []byte(`{"name":"t"}`)}, s)
}

// failed returns the error of a call, which must be one that has the text.
func failed(t *testing.T, err error, text string) *upstream.Failed {
	t.Helper()
	var f *upstream.Failed
	if !errors.As(err, &f) {
		t.Fatalf("the error is %v, not a *Failed", err)
	}
	if !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), `"files"`) {
		t.Errorf("the error is %q, want one with %q", err, text)
	}
	return f
}

// recorder is a sink that remembers what it gets, and answers as it is told.
type recorder struct {
	mu    sync.Mutex
	notes []string
	asked []string
	heard chan string
	ask   func(ctx context.Context, method string, params []byte) ([]byte, error)
}

func newRecorder() *recorder { return &recorder{heard: make(chan string, 1000)} }

func (s *recorder) Notify(method string, params []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := method + string(params)
	s.notes = append(s.notes, text)
	s.heard <- text
}

func (s *recorder) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	s.mu.Lock()
	s.asked = append(s.asked, method+string(params))
	s.mu.Unlock()
	return s.ask(ctx, method, params)
}

func (s *recorder) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// hear waits for the next notification.
func (s *recorder) hear(t *testing.T) string {
	t.Helper()
	select {
	case text := <-s.heard:
		return text
	case <-time.After(patience):
		t.Fatal("nothing was heard")
		return ""
	}
}
