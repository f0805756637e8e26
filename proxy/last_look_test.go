package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/agents"
	"capgate/proxy"
	"capgate/upstream"
	"capgate/wire"
)

// sleeper is a program that answers its greeting and says what tools it has, and reads no more
// until it is woken. What it reads then lies in got.
const sleeper = `
read -r hello; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
read -r initialized
read -r list; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[%s,%s]}}'
while [ ! -e wake ]; do sleep 0.05; done
while read -r line; do
	printf '%%s\n' "$line" >>got
	case $line in *'"id":'*) id=${line#*'"id":'}; echo '{"jsonrpc":"2.0","id":'"${id%%%%,*}"',"result":{"content":[]}}';; esac
done
`

// TestGrantTakenWhileUnread: what waits for a program that does not read goes by the policy that is in
// force when it does.
func TestGrantTakenWhileUnread(t *testing.T) {
	for name, mayAsk := range map[string][]string{"": nil, "parked": {"elicitation"}} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprint(name, kept), func(t *testing.T) {
				dir := t.TempDir()
				up := files(t, &scripted{})
				up.MayAsk, up.Shared = mayAsk, true
				up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
					p.Client.Protocol = "2025-11-25"
					script := fmt.Sprintf(sleeper, tool("read_text_file", "path"), tool("write_file", "path", "content"))
					return upstream.Start(ctx, upstream.Program{Name: "files", Argv: []string{"/bin/sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}},
						upstream.Options{Client: p.Client, Events: p.Events, Shared: true})
				}
				w := start(t, map[string]string{"scout": reader, "boss": strings.ReplaceAll(reader, "fs.read: { in: $ROOT, paths: [docs] }", "fs.write: { in: $ROOT }")}, up)
				c := w.client("scout")
				c.modern("tools/list", "{}", "{}")
				large, small := make(chan said, 1), make(chan said, 1)
				go func() {
					large <- w.client("boss").modern("tools/call", `{"name":"files__write_file","arguments":{"path":"`+w.root+`/a","content":"`+strings.Repeat("x", 200<<10)+`"}}`, "{}")
				}()
				until(t, "the large one is up", func() bool { return len(w.events.of("decision")) == 1 })
				time.Sleep(100 * time.Millisecond)
				go func() {
					small <- c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"elicitation":{}}`)
				}()
				until(t, "the small one is decided", func() bool { return len(w.events.of("decision")) == 2 })
				time.Sleep(100 * time.Millisecond)
				if !kept {
					w.write("scout", strings.ReplaceAll(reader, "docs", "notes"))
				}
				w.adopt()
				must(t, os.WriteFile(filepath.Join(dir, "wake"), nil, 0o600))
				a := <-small
				<-large
				got, err := os.ReadFile(filepath.Join(dir, "got"))
				must(t, err)
				if up := strings.Contains(string(got), "docs/a"); up != kept || (denialOf(t, a).Code == "scope_violation") == kept {
					t.Errorf("it goes up: %t, and is answered with %s", up, a.Raw)
				}
			})
		}
	}
}

// TestGrantTakenWhileDialled: what waits for a connection to its server does not go up when the grant was taken
// meanwhile, over each way that requests are carried.
func TestGrantTakenWhileDialled(t *testing.T) {
	for _, secure := range []string{"", "h1", "h2"} {
		for _, size := range []int{1, 100 << 10, 5 << 20} {
			for _, kept := range []bool{true, false} {
				t.Run(fmt.Sprint(secure, size, kept), func(t *testing.T) {
					var w *world
					var armed atomic.Bool
					var done atomic.Int64
					server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
						if r.Header.Get("Mcp-Name") != "" {
							done.Add(1)
						}
						body, _ := io.ReadAll(r.Body)
						m, err := wire.Parse(body)
						if err != nil { // who wants to listen
							rw.WriteHeader(http.StatusMethodNotAllowed)
							return
						}
						method, _ := m.Root().Get("method")
						id, _ := m.Root().Get("id")
						result := `{"resultType":"complete","tools":[` + tool("write_file", "path", "content") + `]}`
						switch {
						case method.Equal("server/discover"):
							result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
						case method.Equal("tools/call"):
							result = `{"resultType":"complete","content":[]}`
						}
						rw.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":`+string(id.Raw())+`,"result":`+result+`}`)
					}))
					dial := func(ctx context.Context, network, address string) (net.Conn, error) {
						if armed.Swap(false) {
							if !kept {
								w.write("scout", reader)
							}
							w.adopt()
						}
						return (&net.Dialer{}).DialContext(ctx, network, address)
					}
					e := upstream.Endpoint{Name: "files", Transport: "http", Dial: dial}
					if secure != "" {
						server.EnableHTTP2 = secure == "h2"
						server.StartTLS()
						carrier := server.Client().Transport.(*http.Transport).Clone()
						carrier.DialContext, e.HTTP, e.Dial = dial, carrier, nil
					} else {
						server.Start()
					}
					t.Cleanup(server.Close)
					e.URL = server.URL
					up := files(t, &scripted{})
					up.Process = false
					up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
						return upstream.Dial(ctx, e, upstream.Options{Client: p.Client, Events: p.Events})
					}
					w = start(t, map[string]string{"scout": readerAndWriter}, up)
					c := w.client("scout")
					c.modern("tools/list", "{}", "{}")
					server.CloseClientConnections()
					time.Sleep(20 * time.Millisecond)
					armed.Store(true)
					a := c.modern("tools/call", `{"name":"files__write_file","arguments":{"path":"`+w.root+`/docs/a","content":"`+strings.Repeat("x", size)+`"}}`, "{}")
					if d := denialOf(t, a); armed.Load() || (d.Code == "capability_absent") == kept || done.Load() != map[bool]int64{true: 1}[kept] {
						t.Errorf("%d go up: %s", done.Load(), a.Raw)
					}
				})
			}
		}
	}
}

// TestGrantTakenWhileProviderIsDialled: the same of a provider, of a tool that was granted and of the agent's token.
func TestGrantTakenWhileProviderIsDialled(t *testing.T) {
	for name, take := range map[string]func(*vendor){
		"grant": func(v *vendor) { v.write("scout", strings.ReplaceAll(searcher, "*.github.com", "example.org")) },
		"token": func(v *vendor) { v.creds = new(agents.Credentials) },
		"kept":  func(*vendor) {},
	} {
		t.Run(name, func(t *testing.T) {
			v := consulting(t, proxy.Options{}, nil)
			var taken atomic.Bool
			v.server.DialOutside(func(ctx context.Context, network, address string) (net.Conn, error) {
				if !taken.Swap(true) {
					take(v)
					v.adopt()
				}
				return (&net.Dialer{}).DialContext(ctx, network, address)
			})
			resp := v.ask("POST", messages, `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["api.github.com"]}]}`)
			said, saw := text(t, resp), v.saw()
			switch {
			case name == "token" && (resp.StatusCode != http.StatusUnauthorized || len(saw) > 0):
				t.Errorf("%d of a revoked token: %s", len(saw), said)
			case name == "grant" && (len(saw) != 1 || strings.Contains(saw[0].body, "github")):
				t.Errorf("it goes up: %+v", saw)
			case name == "kept" && (len(saw) != 1 || !strings.Contains(saw[0].body, "api.github.com")):
				t.Errorf("%+v, %s", saw, said)
			}
		})
	}
}
