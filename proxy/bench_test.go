package proxy_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"capgate/guardrail"
	"capgate/mapping"
	"capgate/proxy"
)

// crowd is an agent with fifty grants, of which the last ones decide.
func crowd() string {
	var b strings.Builder
	b.WriteString("---\nclass: agent\ncapabilities:\n")
	for i := range 24 {
		fmt.Fprintf(&b, "  - net.get: { hosts: [\"*.host%d.example\"] }\n  - fs.read: { in: /srv/other%d, paths: [\"**\"] }\n", i, i)
	}
	b.WriteString("  - net.get: { hosts: [\"*.github.com\"] }\n  - fs.read: { in: /srv/project, paths: [\"**\"] }\n---\n")
	return b.String()
}

const echo = "server: bench\ntools:\n  echo: { path: fs.read, url: net.get, text: free }\n"

// BenchmarkServe is a whole call through the front: read, decided, recorded,
// forwarded to a server that answers at once, and answered.
func BenchmarkServe(b *testing.B) {
	const inside = "/srv/project/src/file-1.txt"
	for _, test := range []struct{ name, path, url string }{
		{"allow", inside, "https://api.github.com/repos/1"},
		{"deny", inside, "https://api.github.com.evil.example/1"},
		{"deny-path", "/srv/beside/file-1.txt", "https://api.github.com/repos/1"},
	} {
		b.Run(test.name, func(b *testing.B) {
			front, token := benchFront(b)
			body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up__echo","arguments":{"path":"` + test.path + `","url":"` + test.url + `","text":"` + strings.Repeat("x", 100) + `"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
				r.Header = http.Header{
					"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
					"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"up__echo"},
				}
				w := httptest.NewRecorder()
				front.ServeHTTP(w, r)
				if w.Code != 200 {
					b.Fatal(w.Body.String())
				}
			}
		})
	}
}

func benchFront(b *testing.B) (*proxy.Server, string) {
	b.Helper()
	m, _, err := mapping.Parse("bench.yml", []byte(echo))
	if err != nil {
		b.Fatal(err)
	}
	log, err := guardrail.Open(guardrail.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("echo", "path", "url", "text") + `]`}, quiet: true}
	o := proxy.Options{Events: log, Log: slog.New(slog.NewTextHandler(struct{ io.Writer }{io.Discard}, nil)), Limits: proxy.Limits{Calls: 1 << 30}}
	return bringWith(b, o, crowd(), &proxy.Policy{Upstreams: []*proxy.Upstream{{Name: "up", Prefix: "up", Mapping: m, Open: s.open}}})
}

// BenchmarkList is a list of 12,000 tools of an agent with fifty grants: made again
// when the policy has changed, and shown again when nothing has.
func BenchmarkList(b *testing.B) {
	const servers, tools = 3, 4000
	var defs, roles []string
	for i := range tools {
		name := fmt.Sprint("tool", i)
		defs = append(defs, tool(name, "path", "url", "text"))
		roles = append(roles, "  "+name+": { path: fs.read, url: net.get, text: free }")
	}
	m, _, err := mapping.Parse("bench.yml", []byte("server: bench\ntools:\n"+strings.Join(roles, "\n")+"\n"))
	if err != nil {
		b.Fatal(err)
	}
	var ups []*proxy.Upstream
	for i := range servers {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + strings.Join(defs, ",") + `]`}, quiet: true}
		name := fmt.Sprint("up", i)
		ups = append(ups, &proxy.Upstream{Name: name, Prefix: name, Mapping: m, Open: s.open})
	}
	p := &proxy.Policy{Upstreams: ups}
	front, token := bringWith(b, proxy.Options{Events: new(recorder), Limits: proxy.Limits{Calls: 1 << 30}}, crowd(), p)
	list := func() {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(
			`{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		r.Header = http.Header{
			"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "Accept": {"application/json"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"},
		}
		w := httptest.NewRecorder()
		front.ServeHTTP(w, r)
		if w.Code != 200 || w.Body.Len() < 1<<20 {
			b.Fatal(w.Body.String())
		}
	}
	b.Run("again", func(b *testing.B) {
		for list(); b.Loop(); {
			list()
		}
	})
	b.Run("anew", func(b *testing.B) {
		for list(); b.Loop(); {
			one := *p
			front.Adopt(&one)
			list()
		}
	})
}
