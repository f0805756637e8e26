package proxy_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/proxy"
	"capgate/wire"
)

// FuzzMessage sends arbitrary bytes through the whole front, in both eras. It must
// not panic, its answers are JSON, and what reaches the server is exactly one call
// that another reader of the same bytes finds allowed.
func FuzzMessage(f *testing.F) {
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"/srv/docs/a"},"_meta":{` + modernMeta + `}}}`
	for _, seed := range []string{
		call, `[` + call + `]`, call[:60], `{"jsonrpc":"2.0","id":null,"method":"ping"}`, `{"jsonrpc":"2.0","id":"capgate-1","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"/srv/docs/a","p\u0061th":"/etc/passwd"}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":""}}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"file:///srv/docs/a"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"files__p"},"argument":{}}}`,
		`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"/srv/docs/../x"}}}`,
	} {
		f.Add([]byte(seed))
	}
	s := &scripted{}
	token, server := fuzzFront(f, s)
	first := send(server, token, []byte(hello), nil)
	session := first.Header().Get("Mcp-Session-Id")
	if session == "" {
		f.Fatal(first.Body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var m struct {
			Method string
			Params struct{ Name, URI string }
		}
		_ = json.Unmarshal(body, &m) // only for the headers
		for _, header := range []http.Header{
			{"Mcp-Session-Id": {session}},
			{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {m.Method}, "Mcp-Name": {headerText(m.Params.Name + m.Params.URI)}},
		} {
			if m.Method == "subscriptions/listen" {
				continue // its answer has no end
			}
			s.mu.Lock()
			s.got = nil
			s.mu.Unlock()
			answer := send(server, token, body, header)
			if b := answer.Body.Bytes(); len(b) > 0 && b[0] == '{' && !json.Valid(b) {
				t.Fatalf("%s", b)
			}
			for _, r := range s.calls() {
				if !permitted(body, r.Params) {
					t.Errorf("%s\nwent up as %s %s", body, r.Method, r.Params)
				}
			}
		}
	})
}

// permitted decides a message once more, by another way: the strict reading of the
// whole, and the path as it stands in it.
func permitted(body, sent []byte) bool {
	doc, err := wire.Parse(body)
	if err != nil {
		return false
	}
	theirs, err := wire.Parse(sent)
	if err != nil {
		return false
	}
	method, _ := doc.Root().Get("method")
	params, _ := doc.Root().Get("params")
	if uri, ok := params.Get("uri"); ok && !method.Equal("tools/call") {
		text, _ := uri.Str()
		return (method.Equal("resources/read") || method.Equal("resources/subscribe")) && below(strings.TrimPrefix(text, "file://"))
	}
	name, _ := params.Get("name")
	args, _ := params.Get("arguments")
	where, _ := args.Get("path")
	text, _ := where.Str()
	up, _ := theirs.Root().Get("arguments")
	return method.Equal("tools/call") && name.Equal("files__read_text_file") && bytes.Equal(up.Raw(), args.Raw()) && below(text)
}

func below(name string) bool {
	return path.IsAbs(name) && strings.HasPrefix(path.Clean(name)+"/", "/srv/docs/")
}

func fuzzFront(f *testing.F, s *scripted) (string, *proxy.Server) {
	f.Helper()
	up := &proxy.Upstream{Name: "files", Prefix: "files", Mapping: parsed(f, "server: s\ntools: {read_text_file: {path: fs.read}}"), Open: s.open}
	s.lists = map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}
	server, err := proxy.New(f.Context(), proxy.Options{Events: &forgetful{}, Limits: proxy.Limits{Calls: 1 << 30, Sessions: 1 << 20}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = server.Close() })
	roster, creds, token := fuzzAgent(f)
	server.Adopt(&proxy.Policy{
		Gate: &gate.Gate{Roster: roster, Fence: capability.NewFence()}, Credentials: creds, Upstreams: []*proxy.Upstream{up}, Hash: "fuzz",
	})
	return token, server
}

func send(server *proxy.Server, token string, body []byte, header http.Header) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", bytes.NewReader(body))
	r.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	for name, values := range header {
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, r)
	return w
}

// fuzzAgent is an agent that may read below /srv/docs.
func fuzzAgent(f *testing.F) (*agents.Roster, *agents.Credentials, string) {
	f.Helper()
	dir := f.TempDir()
	record := strings.ReplaceAll(reader, "$ROOT", "/srv")
	if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte(record), 0o600); err != nil {
		f.Fatal(err)
	}
	roster, err := agents.Load(agents.Options{}, dir)
	if err != nil {
		f.Fatal(err)
	}
	token, creds, err := new(agents.Credentials).Issue("agents/scout", "", time.Hour, time.Now(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	return roster, creds, token
}

// forgetful records nothing.
type forgetful struct{}

func (forgetful) Record(*guardrail.Event) (string, error) { return "ev", nil }
