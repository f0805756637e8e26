//go:build unix

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tree writes files below a new folder and returns it, as the system names it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestFilesystem puts the gateway in front of the reference server for files. What
// the server may do is more than what the agent may do.
func TestFilesystem(t *testing.T) {
	server := installed(t, serverFilesystem)
	dir := tree(t, map[string]string{"docs/guide.md": "the guide", "docs/old.md": "old", "secret/key.txt": "SECRET"})
	if err := os.Symlink("../secret/key.txt", filepath.Join(dir, "docs", "link.txt")); err != nil {
		t.Fatal(err)
	}
	grants := []string{
		"--grant", "fs.read{paths=[docs]}", "--grant", "fs.write{paths=[docs/new]}", "--grant", "fs.delete{paths=[docs/old.md]}",
	}
	args := append([]string{"wrap", "--agent", "me", "--sandbox", dir, "--mapping", "filesystem"}, grants...)
	// The client offers roots that are wider than anything granted.
	roots := map[string]string{"roots/list": `{"roots":[{"uri":"file:///"}]}`}
	c := launch(t, `{"roots":{"listChanged":true}}`, roots, append(args, "--", server, dir)...)

	if got := c.tools(t); !slices.Contains(got, "read_text_file") || slices.Contains(got, "search_everything") {
		t.Errorf("the tools are %v", got)
	}
	for _, call := range []struct{ name, tool, arguments, text, code string }{
		{"read", "read_text_file", `{"path":"DIR/docs/guide.md"}`, "the guide", ""},
		{"relative", "read_text_file", `{"path":"docs/guide.md"}`, "the guide", ""},
		{"outside what is granted", "read_text_file", `{"path":"DIR/secret/key.txt"}`, "", "scope_violation"},
		{"outside the server", "read_text_file", `{"path":"/etc/hostname"}`, "", "scope_violation"},
		{"dots", "read_text_file", `{"path":"DIR/docs/../secret/key.txt"}`, "", "scope_violation"},
		{"link out", "read_text_file", `{"path":"DIR/docs/link.txt"}`, "", "scope_violation"},
		{"one of several", "read_multiple_files", `{"paths":["DIR/docs/guide.md","DIR/secret/key.txt"]}`, "", "scope_violation"},
		{"write", "write_file", `{"path":"DIR/docs/made.md","content":"x"}`, "", "scope_violation"},
		{"move needs three", "move_file", `{"source":"DIR/docs/guide.md","destination":"DIR/docs/new"}`, "", "scope_violation"},
		{"move elsewhere", "move_file", `{"source":"DIR/docs/old.md","destination":"DIR/secret/old.md"}`, "", "scope_violation"},
		{"move", "move_file", `{"source":"DIR/docs/old.md","destination":"DIR/docs/new"}`, "Successfully moved", ""},
		{"unknown argument", "read_text_file", `{"path":"DIR/docs/guide.md","also":"/etc/hostname"}`, "", "malformed_arguments"},
	} {
		t.Run(call.name, func(t *testing.T) {
			a := c.call(t, call.tool, strings.ReplaceAll(call.arguments, "DIR", dir))
			if call.code != "" {
				denied(t, a, call.code)
			} else {
				allowed(t, a, call.text)
			}
			if strings.Contains(string(a.Result), "SECRET") {
				t.Errorf("what is secret is in %s", a.Result)
			}
		})
	}
	if slices.Contains(c.asked, "roots/list") {
		t.Error("the client was asked for its roots; the gateway answers that itself")
	}
	for name, want := range map[string]bool{"docs/guide.md": true, "docs/made.md": false, "docs/old.md": false, "docs/new": true, "secret/key.txt": true, "secret/old.md": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s: it being there is %v, want %v", name, err == nil, want)
		}
	}
}

// TestRootsDoNotWiden asks the server itself what it was told: the roots of the
// client would have replaced the folder it was started with.
func TestRootsDoNotWiden(t *testing.T) {
	server := installed(t, serverFilesystem)
	dir := tree(t, map[string]string{"docs/guide.md": "the guide", "secret/key.txt": "SECRET"})
	c := launch(t, `{"roots":{"listChanged":true}}`, map[string]string{"roots/list": fmt.Sprintf(`{"roots":[{"uri":"file://%s"}]}`, dir)},
		"wrap", "--agent", "me", "--grant", "tool.invoke{tools=[**]}", "--", server, filepath.Join(dir, "docs"))
	c.write(t, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	a := c.call(t, "list_allowed_directories", `{}`)
	allowed(t, a, filepath.Join(dir, "docs"))
	if a := c.call(t, "read_text_file", fmt.Sprintf(`{"path":%q}`, filepath.Join(dir, "secret", "key.txt"))); a.ok() {
		t.Errorf("the server reads what it was not started with: %s", a.text())
	}
}

// TestEverything puts the gateway in front of the reference server that does a
// little of everything.
func TestEverything(t *testing.T) {
	server := installed(t, serverEverything)
	able := `{"roots":{},"sampling":{},"elicitation":{}}`
	answers := map[string]string{
		"elicitation/create":     `{"action":"accept","content":{"name":"e2e"}}`,
		"sampling/createMessage": `{"role":"assistant","model":"m","content":{"type":"text","text":"sampled"}}`,
	}
	args := []string{"wrap", "--agent", "me", "--grant", "tool.invoke{tools=[**]}"}

	t.Run("asks nothing by default", func(t *testing.T) {
		c := launch(t, able, answers, append(args, "--", server, "stdio")...)
		allowed(t, c.call(t, "get-sum", `{"a":2,"b":40}`), "42")
		for _, tool := range []string{"trigger-elicitation-request", "trigger-sampling-request"} {
			if a := c.call(t, tool, `{"prompt":"p","maxTokens":5}`); a.ok() {
				t.Errorf("%s: %s", tool, a.text())
			}
		}
		if len(c.asked) > 0 {
			t.Errorf("the client was asked %v", c.asked)
		}
	})
	t.Run("asks what it may", func(t *testing.T) {
		c := launch(t, able, answers, append(args, "--may-ask", "elicitation,sampling", "--", server, "stdio")...)
		allowed(t, c.call(t, "trigger-sampling-request", `{"prompt":"p","maxTokens":5}`), "sampled")
		allowed(t, c.call(t, "trigger-elicitation-request", `{}`), "e2e")
	})
	t.Run("progress", func(t *testing.T) {
		c := launch(t, able, answers, append(args, "--", server, "stdio")...)
		a := c.call(t, "trigger-long-running-operation", `{"duration":1,"steps":4}`)
		allowed(t, a, "completed")
		steps := slices.DeleteFunc(a.notes, func(m message) bool { return m.Method != "notifications/progress" })
		if len(steps) != 4 {
			t.Errorf("%d of 4 steps were told: %v", len(steps), a.notes)
		}
	})
}

// TestMemory puts the gateway in front of the reference server that remembers.
func TestMemory(t *testing.T) {
	server := installed(t, serverMemory)
	file := filepath.Join(t.TempDir(), "memory.jsonl")
	c := launch(t, `{}`, nil, "wrap", "--agent", "me", "--mapping", "memory", "--env", "MEMORY_FILE_PATH="+file,
		"--grant", "memory.write{keys=[team-*]}", "--grant", "memory.read{keys=[team-a]}", "--grant", "resource.read{uris=[memory://**]}", "--", server)
	entity := `{"entities":[{"name":"%s","entityType":"t","observations":["%[1]s is known"]}]}`
	allowed(t, c.call(t, "create_entities", fmt.Sprintf(entity, "team-a")), "team-a")
	allowed(t, c.call(t, "create_entities", fmt.Sprintf(entity, "team-b")), "team-b")
	denied(t, c.call(t, "create_entities", fmt.Sprintf(entity, "boss")), "scope_violation")
	allowed(t, c.call(t, "add_observations", `{"observations":[{"entityName":"team-a","contents":["more"]}]}`), "more")
	denied(t, c.call(t, "add_observations", `{"observations":[{"entityName":"boss","contents":["more"]}]}`), "scope_violation")
	for tool, args := range map[string]string{ // what they show or remove is of other keys as well
		"read_graph": `{}`, "open_nodes": `{"names":["team-a"]}`, "delete_entities": `{"entityNames":["team-b"]}`,
	} {
		if got := c.tools(t); slices.Contains(got, tool) {
			t.Errorf("the tools are %v: %s is for every key", got, tool)
		}
		if a := c.call(t, tool, args); a.ok() {
			t.Errorf("%s: %s", tool, a.text())
		}
	}
	all := launch(t, `{}`, nil, "wrap", "--agent", "me", "--mapping", "memory", "--env", "MEMORY_FILE_PATH="+file,
		"--grant", "memory.read{keys=[*]}", "--", server)
	allowed(t, all.call(t, "open_nodes", `{"names":["team-a"]}`), "team-a is known")
	some := launch(t, `{}`, nil, "wrap", "--agent", "me", "--mapping", "memory", "--env", "MEMORY_FILE_PATH="+file,
		"--grant", "memory.read{keys=[knowledge-*]}", "--", server) // which is no key but of an entity
	if a := some.ask(t, "resources/read", `{"uri":"memory://knowledge-graph"}`); a.ok() {
		t.Errorf("whoever sees some keys reads %s", a.text())
	}
	for may, who := range map[bool]*client{false: c, true: all} {
		if a := who.ask(t, "resources/read", `{"uri":"memory://knowledge-graph"}`); a.ok() != may {
			t.Errorf("whoever sees every key %v reads %s", may, a.text())
		}
	}
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), "team-b") || strings.Contains(string(data), "boss") {
		t.Errorf("what is remembered is %q, %v", data, err)
	}
}
