package mapping_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/mapping"
)

// schema is the part of a JSON schema that names arguments.
type schema struct {
	Type       string            `json:"type"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
}

// listed is a tool as its server lists it.
type listed struct {
	Name        string `json:"name"`
	InputSchema schema `json:"inputSchema"`
}

func readTools(t *testing.T, file string) []listed {
	t.Helper()
	data, err := os.ReadFile("testdata/tools/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []listed }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	return list.Tools
}

func builtin(t testing.TB, name string) *mapping.Mapping {
	t.Helper()
	m, err := mapping.Builtin(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestBuiltins holds the built-in mappings against what the servers list: each
// argument has a role, and each role is that of an argument.
func TestBuiltins(t *testing.T) {
	servers := map[string][]string{
		"everything": {"everything.json"},
		"fetch":      {"fetch-npm.json", "fetch-python.json"},
		"filesystem": {"filesystem.json"},
		"memory":     {"memory.json"},
	}
	for _, name := range mapping.Builtins() {
		if len(servers[name]) == 0 {
			t.Errorf("%s is held against no server", name)
		}
	}
	for name, files := range servers {
		m := builtin(t, name)
		if m.Server() != name {
			t.Errorf("%s calls itself %s", name, m.Server())
		}
		left := m.Names()
		for _, file := range files {
			for _, tool := range readTools(t, file) {
				checkArguments(t, m, tool)
				left = slices.DeleteFunc(left, func(s string) bool { return s == tool.Name })
			}
		}
		if len(left) > 0 {
			t.Errorf("%s maps tools that no server lists: %v", name, left)
		}
	}
}

func checkArguments(t *testing.T, m *mapping.Mapping, tool listed) {
	t.Helper()
	mapped := m.Tool(tool.Name)
	if mapped == nil {
		t.Errorf("%s is not mapped", tool.Name)
		return
	}
	roles := mapped.Arguments()
	for _, leaf := range tool.InputSchema.leaves("") {
		i := slices.IndexFunc(roles, func(role string) bool {
			return leaf == role || strings.HasPrefix(leaf, role+".") || strings.HasPrefix(leaf, role+"[*]")
		})
		if i < 0 {
			t.Errorf("%s: the argument %s has no role", tool.Name, leaf)
		}
	}
	for _, role := range roles {
		if !tool.InputSchema.has(role) {
			t.Errorf("%s: the role of %s is that of no argument", tool.Name, role)
		}
	}
}

// leaves lists the arguments that hold no others.
func (s schema) leaves(at string) []string {
	var all []string
	for name, p := range s.Properties {
		all = append(all, p.leaves(strings.TrimPrefix(at+"."+name, "."))...)
	}
	switch {
	case len(s.Properties) > 0:
		return all
	case s.Items != nil:
		return s.Items.leaves(at + "[*]")
	case at == "":
		return nil
	}
	return []string{at}
}

// has reports whether a path leads to something the schema declares.
func (s schema) has(path string) bool {
	for _, step := range strings.Split(path, ".") {
		name, each := strings.CutSuffix(step, "[*]")
		p, ok := s.Properties[name]
		if !ok || each && p.Items == nil {
			return false
		}
		if s = p; each {
			s = *p.Items
		}
	}
	return true
}

// TestBuiltinCalls decides calls of the servers that people use most.
func TestBuiltinCalls(t *testing.T) {
	for _, tt := range []struct{ server, tool, args, want string }{
		{"filesystem", "read_text_file", `{"path":"a","head":3}`, "fs.read a @ path"},
		{"filesystem", "read_multiple_files", `{"paths":["a","b"]}`, "fs.read a @ paths[0]\nfs.read b @ paths[1]"},
		{"filesystem", "edit_file", `{"path":"a","edits":[{"oldText":"x","newText":"y"}]}`, "fs.read a @ path\nfs.write a @ path"},
		{"filesystem", "move_file", `{"source":"a","destination":"b"}`, "fs.read a @ source\nfs.delete a @ source\nfs.write b @ destination"},
		{"filesystem", "list_allowed_directories", `{}`, "fs.read ."},
		{"fetch", "fetch", `{"url":"https://a.com/","raw":true}`, "net.get a.com:443 @ url"},
		{"fetch", "fetch_txt", `{"url":"https://a.com/","headers":{"User-Agent":"x"},"proxy":"http://p.com:8080"}`, "net.get a.com:443 @ url\nnet.connect p.com:8080 @ proxy"},
		{"fetch", "fetch_txt", `{"url":"https://a.com/","headers":{"Host":"b.com"}}`, "scope_violation: the argument headers.Host is a header that the tool may not be given"},
		{"memory", "create_entities", `{"entities":[{"name":"a","entityType":"t","observations":["o"]}]}`, "memory.write a @ entities[0].name"},
		{"memory", "read_graph", `{}`, "memory.read"},
		{"everything", "echo", `{"message":"x"}`, "tool.invoke s.t"},
		{"everything", "gzip-file-as-resource", `{}`, "net.get raw.githubusercontent.com:443 @ data"},
		{"everything", "gzip-file-as-resource", `{"data":"https://a.com/"}`, "net.get a.com:443 @ data"},
	} {
		if diff := cmp.Diff(tt.want, required(t, builtin(t, tt.server).Tool(tt.tool), tt.args)); diff != "" {
			t.Errorf("%s.%s %s (-want +got):\n%s", tt.server, tt.tool, tt.args, diff)
		}
	}
}

// TestMovedTree proves that a directory cannot be moved out of a grant that only
// reaches its first level.
func TestMovedTree(t *testing.T) {
	move := builtin(t, "filesystem").Tool("move_file")
	needs, err := move.Require(callOf(t, `{"source":"docs/private","destination":"out/x"}`))
	if err != nil {
		t.Fatal(err)
	}
	shallow := compile(t, "fs.read{in=/w,paths=[docs/*]}", "fs.delete{in=/w,paths=[docs/*]}", "fs.write{in=/w,paths=[out]}")
	if got := answerAll(shallow, needs); got != string(capability.ScopeViolation) {
		t.Errorf("moving what is beneath docs/private: got %s", got)
	}
	deep := compile(t, "fs.read{in=/w,paths=[docs]}", "fs.delete{in=/w,paths=[docs]}", "fs.write{in=/w,paths=[out]}")
	if got := answerAll(deep, needs); got != allow {
		t.Errorf("moving within what is held: got %s", got)
	}
}

// TestWholeMemory proves that showing every entity needs every key.
func TestWholeMemory(t *testing.T) {
	m := builtin(t, "memory")
	tool, err := m.Tool("read_graph").Require(callOf(t, `{}`))
	if err != nil {
		t.Fatal(err)
	}
	resource, err := m.Resource("memory", "memory://knowledge-graph", capability.View{})
	if err != nil {
		t.Fatal(err)
	}
	for grant, want := range map[string]string{"memory.read{keys=[notes.*, knowledge-*]}": "scope_violation", "memory.read{keys=[*]}": allow} {
		for _, needs := range [][]mapping.Need{tool, resource} {
			if got := answerAll(compile(t, grant), needs); got != want {
				t.Errorf("%s: got %s, want %s", grant, got, want)
			}
		}
	}
}

func TestBuiltinUnknown(t *testing.T) {
	for _, name := range []string{"", "none", "../builtin", "filesystem.yml", "/"} {
		if _, err := mapping.Builtin(name); err == nil {
			t.Errorf("there is a mapping %q", name)
		}
	}
	_, err := mapping.Builtin("files")
	const want = `there is no mapping "files"; capgate has everything, fetch, filesystem, memory`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
