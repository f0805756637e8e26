package gate_test

import (
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// TestCompletionWalks: a server that joins what is given to a folder, on its own, finds nothing that the agent
// may not read. What stands beside it in the template is no part of the path then.
func TestCompletionWalks(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://team/*"] }`, `fs.read: { in: /w, paths: [docs] }`)})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for _, tt := range []struct {
		template, name, value string
		others                map[string]string
	}{
		{"docs://team/{path}", "path", "x", map[string]string{"path": "../priv/"}},
		{"file:///w/docs/{path}", "path", "x", map[string]string{"path": "/etc/"}},
		{"file:///w/docs/{path}.md", "path", "..", nil},
		{"file:///w/docs/{path}.md", "path", "a/../..", nil},
		{"file:///w/docs/x-{path}", "path", "..", nil},
		{"file:///w/docs/x-{path}", "path", "../secret/", nil},
		{"file:///w/docs/x-{path}", "path", "%2e%2e/secret/", nil},
		{"file:///w/docs/{a}-{b}", "b", "../secret/", nil},
		{"file:///w/docs/{a}-{b}", "b", "", map[string]string{"a": ".."}},
		{"file:///w/docs/{a,b}", "b", "../secret/", nil},
		{"file:///w/docs/{a,b}", "b", "", map[string]string{"a": ".."}},
		{"file:///w/docs/{a}/{b}", "a", "..", map[string]string{"b": "docs/x"}},
		{"file:///w/docs/{a}/{b}", "b", "../", map[string]string{"a": "x"}},
		{"file:///w/docs/{path}", "path", "%2f", nil},
		{"file:///w/docs/{path}", "path", "%2fetc/", nil},
		{"file:///w/docs/{path}", "path", "%7eroot/", nil},
	} {
		v := g.Completion("agents/some", r, gate.Completing{Template: tt.template, Name: tt.name, Value: tt.value, Others: tt.others})
		if v.Decision.Allowed() {
			t.Errorf("%s of %s is completed with %q beside %q", tt.name, tt.template, tt.value, tt.others)
		}
	}
}
