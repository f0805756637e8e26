package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/builtin"
	"capgate/capability"
	"capgate/upstream"
)

type definition struct {
	Name, Title, Description string
	InputSchema              struct {
		Schema               string `json:"$schema"`
		Type                 string
		Properties           map[string]json.RawMessage
		Required             []string
		AdditionalProperties *bool
	}
	Annotations map[string]bool
}

func definitions(t testing.TB, conn upstream.Conn) map[string]definition {
	t.Helper()
	answer, err := conn.Call(t.Context(), upstream.Request{Method: "tools/list"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Tools []definition }
	if err := json.Unmarshal(answer.Result, &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]definition{}
	for _, d := range list.Tools {
		all[d.Name] = d
	}
	return all
}

// TestDefinitions: each tool says all that is to be said, and its mapping has a
// role for each of its arguments and for nothing else.
func TestDefinitions(t *testing.T) {
	want := map[string][]string{
		"fs":  {"delete", "info", "list", "read", "search", "write"},
		"net": {"fetch"},
	}
	for _, kind := range builtin.Kinds() {
		m, err := builtin.Mapping(kind)
		if err != nil {
			t.Fatal(err)
		}
		tools := definitions(t, open(t, kind, builtin.Options{Root: tree(t)}))
		names := slices.Sorted(maps.Keys(tools))
		if diff := cmp.Diff(want[kind], names) + cmp.Diff(m.Names(), names); diff != "" {
			t.Errorf("tools of %s: %s", kind, diff)
		}
		for name, d := range tools {
			d.check(t)
			mapped := m.Tool(name).Arguments()
			slices.Sort(mapped)
			if diff := cmp.Diff(slices.Sorted(maps.Keys(d.InputSchema.Properties)), mapped); diff != "" {
				t.Errorf("%s.%s (-schema +mapping):\n%s", kind, name, diff)
			}
		}
	}
}

func (d definition) check(t *testing.T) {
	t.Helper()
	if d.Title == "" || d.Description == "" || len(d.Annotations) != 4 {
		t.Errorf("%s says too little: %+v", d.Name, d)
	}
	s := d.InputSchema
	if s.Schema == "" || s.Type != "object" || s.AdditionalProperties == nil || *s.AdditionalProperties {
		t.Errorf("%s takes anything: %+v", d.Name, s)
	}
}

// TestOpen: what there is no server for.
func TestOpen(t *testing.T) {
	if _, err := builtin.Mapping("../mapping/builtin/fetch"); err == nil {
		t.Error("a mapping from elsewhere")
	}
	if _, err := builtin.Open("shell", builtin.Options{}); err == nil {
		t.Error("a server of no kind")
	}
	if _, err := builtin.Open("fs", builtin.Options{}); err == nil {
		t.Error("files without a root")
	}
}

// TestProtocol: what is no tools/call, and what is none that can be read.
func TestProtocol(t *testing.T) {
	conn := open(t, "fs", builtin.Options{Root: tree(t, "a=x"), Decide: holds(t)})
	if i := conn.Info(); i.Modern || i.Version != "2025-11-25" || string(i.Capabilities) != `{"tools":{}}` || !json.Valid(i.Server) {
		t.Errorf("info: %+v", i)
	}
	for _, c := range []struct{ method, params, want string }{
		{"ping", "", "{}"},
		{"ping", "[]", "-32602"},
		{"initialize", "{}", "-32601"},
		{"resources/list", "", "-32601"},
		{"tools/list", `{"cursor":"x"}`, "-32602"},
		{"tools/list", `{"cursor":null}`, `"tools":[`},
		{"tools/call", "", "-32602"},
		{"tools/call", `{"name":"read","NAME":"write"}`, "-32602"},
		{"tools/call", `{"name":"read","name":"read"}`, "-32602"},
		{"tools/call", `{"name":"read","task":{}}`, "-32602"},
		{"tools/call", `{"name":"Read","arguments":{}}`, "-32602"},
		{"tools/call", `{"name":7}`, "-32602"},
		{"tools/call", `{"name":"read"}`, "is missing"},
		{"tools/call", `{"name":"read","arguments":[]}`, "not an object"},
		{"tools/call", `{"name":"read","arguments":{"path":null}}`, "is missing"},
	} {
		var params []byte
		if c.params != "" {
			params = []byte(c.params)
		}
		answer, err := conn.Call(t.Context(), upstream.Request{Method: c.method, Params: params}, nil)
		if got := string(answer.Result) + string(answer.Error); err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s %s: %s %v", c.method, c.params, got, err)
		}
	}
	if err := conn.Notify(t.Context(), "notifications/cancelled", nil); err != nil {
		t.Error(err)
	}
}

// TestArguments: what the schema does not say is refused (R-SEC-03).
func TestArguments(t *testing.T) {
	root := tree(t, "a=x")
	files := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read{in="+root.Dir+"}")})
	web := open(t, "net", builtin.Options{Decide: holds(t)})
	for _, c := range []struct{ tool, args, want string }{
		{"read", `{"path":"a","Offset":1}`, `no argument "Offset"`},
		{"read", `{"path":["a"]}`, "is not text"},
		{"read", `{"path":"a","limit":"1"}`, "whole number"},
		{"read", `{"path":"a","limit":0}`, "whole number"},
		{"read", `{"path":"a","limit":1.0}`, "whole number"},
		{"read", `{"path":"a","limit":99999999999999}`, "whole number"},
		{"read", `{"path":"` + strings.Repeat("a/", 3000) + `"}`, "longer than"},
		{"delete", `{"path":"a","recursive":"true"}`, "neither true nor false"},
		{"write", `{"path":"a","content":"","mode":"truncate"}`, "not one of"},
		{"fetch", `{"url":"http://x.org/","method":"TRACE"}`, "not one of"},
		{"fetch", `{"url":"http://x.org/","method":"connect"}`, "not one of"},
		{"fetch", `{"url":"http://x.org/","body":"x"}`, "only a post"},
		{"fetch", `{"url":"http://x.org/","headers":{"Host":"y"}}`, "nothing else"},
		{"fetch", `{"url":"http://x.org/","headers":{"authorization":"y"}}`, "nothing else"},
		{"fetch", `{"url":"http://x.org/","headers":{"Accept":"a\r\nHost: y"}}`, "one line"},
		{"fetch", `{"url":"http://x.org/","headers":{"Accept":["a"]}}`, "one line"},
		{"fetch", `{"url":"http://x.org/","headers":[]}`, "not an object"},
	} {
		conn := files
		if c.tool == "fetch" {
			conn = web
		}
		step{"argument", c.tool, c.args, "error: "}.run(t, conn)
		step{"argument", c.tool, c.args, c.want}.run(t, conn)
	}
}

// TestUndecided: what cannot be decided is denied.
func TestUndecided(t *testing.T) {
	root := tree(t, "a=x")
	deciders := map[string]func(*capability.Requirement) error{
		"nobody decides":     nil,
		"an error":           func(*capability.Requirement) error { return errors.New("the store is gone") },
		"a denial of nobody": func(*capability.Requirement) error { return (*capability.Denied)(nil) },
	}
	for name, decide := range deciders {
		conn := open(t, "fs", builtin.Options{Root: root, Decide: decide})
		step{name, "read", `{"path":"a"}`, "denied not_available"}.run(t, conn)
	}
}

// TestEnd: a call that is given up is no result, and a closed server takes none.
func TestEnd(t *testing.T) {
	root := tree(t, "a=x")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read{in="+root.Dir+"}")})
	read := upstream.Request{Method: "tools/call", Params: []byte(`{"name":"read","arguments":{"path":"a"}}`)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var failed *upstream.Failed
	if _, err := conn.Call(ctx, read, nil); !errors.As(err, &failed) || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	if err := errors.Join(conn.Close(), conn.Close()); err != nil {
		t.Error(err)
	}
	<-conn.Done()
	if _, err := conn.Call(t.Context(), read, nil); !errors.As(err, &failed) || !failed.Unsent {
		t.Errorf("a call after the end: %v", err)
	}
}

// FuzzArguments: whatever stands in the arguments, the answer is a result that can
// be read strictly, a refusal, or a denial, and nothing outside of the root is seen.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"path":"a"}`, `{"path":"/etc/passwd"}`, `{"path":"../x","offset":1}`, `{"path":"l/../../x"}`, `{"path":"%2e%2e/x"}`,
		`{"path":".","pattern":"**/*","text":"x"}`, `{"path":null}`, `[]`, `{"path":"a","recursive":true}`, `{"path":"a*","limit":1}`,
	} {
		for _, tool := range []string{"read", "list", "search", "info"} {
			f.Add(tool, seed)
		}
	}
	root := tree(f, "top/a=inside", "top/d/b=inside", "x=outside", "top/l -> $ROOT/x", "top/m -> ..")
	root = capability.Root{Dir: root.Dir + "/top", Real: root.Real + "/top"}
	conn := open(f, "fs", builtin.Options{Root: root, Decide: holds(f, "fs.read{in=/}")})
	f.Fuzz(func(t *testing.T, tool, args string) {
		params := []byte(`{"name":"` + tool + `","arguments":` + args + `}`)
		answer, err := conn.Call(t.Context(), upstream.Request{Method: "tools/call", Params: params}, nil)
		if denied := (*capability.Denied)(nil); err != nil && !errors.As(err, &denied) {
			t.Fatal(err)
		}
		if got := string(answer.Result) + string(answer.Error); strings.Contains(got, "outside\"") || err == nil && !json.Valid([]byte(got)) {
			t.Fatalf("%s %s: %s", tool, args, got)
		}
	})
}
