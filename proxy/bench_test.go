package proxy_test

import (
	"fmt"
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
	return bring(b, log, crowd(), &proxy.Upstream{Name: "up", Prefix: "up", Mapping: m, Open: s.open})
}
