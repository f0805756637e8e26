//go:build unix

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// appServer is Codex without a model: what its editor extensions talk to.
type appServer struct {
	in     io.Writer
	said   *transcript
	count  int
	thread string
}

// startCodex starts Codex with two ways to the scout of an office: over HTTP, and
// as a process that it starts itself.
func startCodex(t *testing.T) *appServer {
	t.Helper()
	program, dir := installed(t, codex), office(t)
	g := serve(t, dir, "capgate.yml", "scout")
	cmd := command(t, program, "app-server")
	write(t, cmd.Dir, ".codex/config.toml", fmt.Sprintf("[mcp_servers.gw]\nurl = %q\nbearer_token_env_var = \"TOKEN\"\n[mcp_servers.local]\ncommand = %q\nargs = %s\n",
		g.at, os.Getenv("CAPGATE_BIN"), jsonText(t, stdioArgs(dir))))
	cmd.Env = append(cmd.Env, "CODEX_HOME="+cmd.Dir+"/.codex", "TOKEN="+g.token)
	in, ours := io.Pipe()
	out := newTranscript()
	cmd.Stdin, cmd.Stdout = in, out
	start(t, cmd)
	t.Cleanup(func() { _ = ours.Close() }) // never an error
	c := &appServer{in: ours, said: out}
	c.ask(t, "initialize", `{"clientInfo":{"name":"e2e","title":"e2e","version":"0"}}`)
	c.write(t, `{"method":"initialized"}`)
	var started struct{ Thread struct{ ID string } }
	if err := json.Unmarshal(c.ask(t, "thread/start", jsonText(t, map[string]string{"cwd": cmd.Dir})).Result, &started); err != nil {
		t.Fatal(err)
	}
	c.thread = started.Thread.ID
	return c
}

func (c *appServer) write(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// ask makes a request and waits for its answer among all that Codex says.
func (c *appServer) ask(t *testing.T, method, params string) answer {
	t.Helper()
	c.count++
	c.write(t, fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, c.count, method, params))
	late := time.After(awaitTime)
	for {
		text, grown := c.said.read()
		for line := range strings.Lines(string(text)) {
			var m message
			if json.Unmarshal([]byte(line), &m) == nil && m.Method == "" && string(m.ID) == fmt.Sprint(c.count) {
				return answer{message: m}
			}
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("%s was not answered within %s", method, awaitTime)
		}
	}
}

// call calls a tool of a server, as a model of Codex would.
func (c *appServer) call(t *testing.T, server, tool, arguments string) answer {
	t.Helper()
	return c.ask(t, "mcpServer/tool/call", fmt.Sprintf(`{"threadId":%q,"server":%q,"tool":%q,"arguments":%s}`, c.thread, server, tool, arguments))
}

// TestCodex lists and calls with Codex, over HTTP and as a process that it starts.
func TestCodex(t *testing.T) {
	c := startCodex(t)
	var status struct {
		Data []struct {
			Name  string
			Tools map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(c.ask(t, "mcpServerStatus/list", "{}").Result, &status); err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{}
	for _, s := range status.Data {
		shown[s.Name] = slices.Collect(maps.Keys(s.Tools))
	}
	for _, server := range []string{"gw", "local"} {
		t.Run(server, func(t *testing.T) {
			sameTools(t, shown[server])
			allowed(t, c.call(t, server, goodCall, goodArgs), goodText)
			denied(t, c.call(t, server, goodCall, badArgs), "scope_violation")
			if a := c.call(t, server, hiddenCall, "{}"); a.ok() || !strings.Contains(a.text(), "Denied by capgate (") {
				t.Errorf("a tool that is not shown answered %q", a.text())
			}
		})
	}
}

// TestCodexSearch: a turn of Codex whose model is behind the gateway. Its own search
// carries the agent's domains, and its other tools go up as they are.
func TestCodexSearch(t *testing.T) {
	program := installed(t, codex)
	var mu sync.Mutex
	var bodies []string
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/v1/responses" || r.Header.Get("Authorization") != "Bearer "+ownKey {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		mu.Lock()
		bodies = append(bodies, string(body))
		mu.Unlock()
		stream(w, []string{
			`{"type":"response.created","response":{"id":"resp_1"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"two words","annotations":[]}]}}`,
			`{"type":"response.completed","response":{"id":"resp_1","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`,
		})
	}))
	t.Cleanup(model.Close)
	g := bureau(t, model.URL)
	cmd := command(t, program, "exec", "--skip-git-repo-check", "--sandbox", "read-only", "go")
	write(t, cmd.Dir, ".codex/config.toml", fmt.Sprintf("model = \"gpt-5.5\"\nmodel_provider = \"capgate\"\nweb_search = \"live\"\n"+
		"[model_providers.capgate]\nname = \"capgate\"\nbase_url = %q\nenv_key = \"KEY\"\nwire_api = \"responses\"\nsupports_websockets = false\n",
		g.address(t, "OPENAI_BASE_URL")))
	cmd.Env = append(cmd.Env, "CODEX_HOME="+cmd.Dir+"/.codex", "KEY="+g.token)
	o := run(t, cmd)
	if o.code != 0 || !strings.Contains(o.out, "two words") {
		t.Fatalf("ended with %d: %s%s", o.code, o.out, o.err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(bodies) == 0 {
		t.Fatal("nothing came to the provider")
	}
	for _, body := range bodies {
		var sent struct {
			Tools []struct {
				Type, Name string
				Filters    struct {
					Domains []string `json:"allowed_domains"`
				}
			}
		}
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatal(err)
		}
		var search []string
		functions := 0
		for _, tool := range sent.Tools {
			switch tool.Type {
			case "web_search":
				search = append(search, strings.Join(tool.Filters.Domains, " "))
			case "function", "custom":
				functions++
			}
		}
		if !slices.Equal(search, []string{"github.com"}) || functions == 0 {
			t.Errorf("it may search in %q, and has %d functions of its own: %s", search, functions, body)
		}
	}
}
