//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// model is a model that does what a script says: it calls one tool in each of its
// turns, and then says that it is done.
type model struct {
	script []toolUse

	mu      sync.Mutex
	turn    int
	offered []string          // the tools of servers that it was offered last
	hosted  []json.RawMessage // the tools of its own side that it was asked to use, in order
	results map[string]string // what came back, by the id of the use
}

// toolUse is one call that the model makes.
type toolUse struct{ tool, input string }

// start listens as the API of a model does, and returns where.
func (m *model) start(t *testing.T) string {
	t.Helper()
	m.results = map[string]string{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/messages", m.answer)
	mux.HandleFunc("POST /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"input_tokens":1}`) })
	mux.HandleFunc("HEAD /", func(http.ResponseWriter, *http.Request) {})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL
}

// answer is one turn.
func (m *model) answer(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Model    string
		Stream   bool
		Tools    []modelTool
		Messages []struct{ Content json.RawMessage }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
		http.Error(w, "not understood", http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read(asked.Messages[len(asked.Messages)-1].Content)
	block, delta, stop := `{"type":"text","text":""}`, `{"type":"text_delta","text":"done"}`, "end_turn"
	if len(asked.Tools) > 0 {
		m.offered = nil
		for _, tool := range asked.Tools {
			if strings.HasPrefix(tool.name, "mcp__") {
				m.offered = append(m.offered, tool.name)
			}
			if strings.HasPrefix(tool.kind, "web_search_") {
				m.hosted = append(m.hosted, tool.raw)
			}
		}
		if m.turn < len(m.script) && len(asked.Tools) > 1 { // one alone is that of a search
			use := m.script[m.turn]
			m.turn++
			block = fmt.Sprintf(`{"type":"tool_use","id":"use_%d","name":%q,"input":{}}`, m.turn, use.tool)
			delta, stop = fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, use.input), "tool_use"
		}
	}
	head := fmt.Sprintf(`"id":"msg_%d","type":"message","role":"assistant","model":%q,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}`, m.turn, asked.Model)
	if !asked.Stream {
		fmt.Fprintf(w, `{%s,"content":[{"type":"text","text":"done"}],"stop_reason":"end_turn"}`, head)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range [][2]string{
		{"message_start", `"message":{` + head + `,"content":[],"stop_reason":null}`},
		{"content_block_start", `"index":0,"content_block":` + block},
		{"content_block_delta", `"index":0,"delta":` + delta},
		{"content_block_stop", `"index":0`},
		{"message_delta", fmt.Sprintf(`"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":1}`, stop)},
		{"message_stop", `"index":0`},
	} {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%[1]q,%s}\n\n", event[0], event[1])
	}
}

// modelTool is a tool that a model is offered, and the bytes it was offered in.
type modelTool struct {
	name, kind string
	raw        json.RawMessage
}

func (m *modelTool) UnmarshalJSON(data []byte) error {
	var tool struct{ Name, Type string }
	err := json.Unmarshal(data, &tool)
	m.name, m.kind, m.raw = tool.Name, tool.Type, bytes.Clone(data)
	return err
}

// read keeps the results that stand in a message.
func (m *model) read(content json.RawMessage) {
	var items []struct {
		Type    string
		Use     string `json:"tool_use_id"`
		Content json.RawMessage
	}
	if json.Unmarshal(content, &items) != nil {
		return // a text
	}
	for _, item := range items {
		if item.Type == "tool_result" {
			m.results[item.Use] = string(item.Content)
		}
	}
}

// claudeCommand makes a command of Claude Code.
func claudeCommand(t *testing.T, api string, args ...string) (dir string, ended func() outcome) {
	t.Helper()
	return claudeWith(t, api, "sk-ant-stub", args...)
}

// claudeWith is claudeCommand with a key that matters.
func claudeWith(t *testing.T, api, key string, args ...string) (dir string, ended func() outcome) {
	t.Helper()
	cmd := command(t, append([]string{installed(t, claude)}, args...)...)
	cmd.Env = append(cmd.Env, "ANTHROPIC_BASE_URL="+api, "ANTHROPIC_API_KEY="+key, "ENABLE_TOOL_SEARCH=false",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	return cmd.Dir, func() outcome { return run(t, cmd) }
}

// claudeServers is what Claude Code is told of the two ways to the scout of an
// office: over HTTP, and as a process that it starts.
func claudeServers(t *testing.T, dir string, g *gateway) string {
	t.Helper()
	return jsonText(t, map[string]any{"mcpServers": map[string]any{
		"gw":    map[string]any{"type": "http", "url": g.at, "headers": map[string]string{"Authorization": "Bearer " + g.token}},
		"local": map[string]any{"type": "stdio", "command": os.Getenv("CAPGATE_BIN"), "args": stdioArgs(dir)},
	}})
}

// TestClaudeCode runs a whole turn of Claude Code: what the model is offered, what
// it gets back, and what it is told when it is denied.
func TestClaudeCode(t *testing.T) {
	installed(t, claude)
	dir := office(t)
	g := serve(t, dir, "capgate.yml", "scout")
	servers := claudeServers(t, dir, g)
	for _, server := range []string{"gw", "local"} {
		t.Run(server, func(t *testing.T) {
			use := func(tool string) string { return "mcp__" + server + "__" + tool }
			m := &model{script: []toolUse{{use(goodCall), goodArgs}, {use(goodCall), badArgs}, {use("fixture__test_error_handling"), `{}`}}}
			cwd, run := claudeCommand(t, m.start(t), "-p", "go", "--mcp-config", "mcp.json", "--strict-mcp-config",
				"--allowedTools", use("*"), "--output-format", "stream-json", "--verbose")
			write(t, cwd, "mcp.json", servers)
			if o := run(); o.code != 0 || !strings.Contains(o.out, `"subtype":"success"`) {
				t.Fatalf("ended with %d: %s%s", o.code, o.out, o.err)
			}
			var got []string
			for _, name := range m.offered {
				if name, ok := strings.CutPrefix(name, use("")); ok {
					got = append(got, name)
				}
			}
			sameTools(t, got)
			for id, want := range map[string]string{"use_1": goodText, "use_2": badText, "use_3": "intentionally returns an error for testing"} {
				if !strings.Contains(m.results[id], want) {
					t.Errorf("%s: the model got %s, want %q", id, m.results[id], want)
				}
			}
		})
	}
}

// TestClaudeCodeList has Claude Code connect to what its user has added.
func TestClaudeCodeList(t *testing.T) {
	installed(t, claude)
	dir := office(t)
	g := serve(t, dir, "capgate.yml", "scout")
	cwd, run := claudeCommand(t, "http://127.0.0.1:9", "mcp", "list")
	write(t, cwd, ".claude.json", claudeServers(t, dir, g)) // its home, so that these are the user's
	o := run()
	lines := slices.Collect(strings.Lines(o.out))
	for _, name := range []string{"gw", "local"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+":") && strings.Contains(l, "Connected") }) {
			t.Errorf("%s is not connected, ended with %d: %s%s", name, o.code, o.out, o.err)
		}
	}
}

// TestClaudeCodeSearch runs a turn of Claude Code whose model is reached through the
// gateway. When it searches the web, it asks its provider to, and the domains that
// the provider is told to keep to are those of the agent.
func TestClaudeCodeSearch(t *testing.T) {
	installed(t, claude)
	m := &model{script: []toolUse{
		{"WebSearch", `{"query":"capgate"}`},
		{"WebSearch", `{"query":"capgate","allowed_domains":["docs.github.com","example.com"]}`},
		{"WebSearch", `{"query":"capgate","allowed_domains":["example.com"]}`},
	}}
	g := bureau(t, m.start(t))
	_, run := claudeWith(t, g.address(t, "ANTHROPIC_BASE_URL"), g.token, "-p", "go", "--allowedTools", "WebSearch", "--output-format", "stream-json", "--verbose")
	if o := run(); o.code != 0 || !strings.Contains(o.out, `"subtype":"success"`) {
		t.Fatalf("ended with %d: %s%s", o.code, o.out, o.err)
	}
	if m.turn != len(m.script) {
		t.Errorf("the model had %d turns, want %d", m.turn, len(m.script))
	}
	var got []string
	for _, raw := range m.hosted {
		var tool struct {
			Domains []string `json:"allowed_domains"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Join(tool.Domains, " "))
	}
	if want := []string{"github.com", "docs.github.com"}; !slices.Equal(got, want) {
		t.Errorf("the provider was told to search in %q, want %q", got, want)
	}
}
