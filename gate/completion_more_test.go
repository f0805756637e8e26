package gate_test

import (
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// TestCompletionNames: a denial names the variable that it is about, and what is recorded the verb that reads.
func TestCompletionNames(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://*"] }`, `fs.read: { in: /w, paths: [docs] }`, `fs.read: { in: /srv, paths: ["*"] }`)})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for _, tt := range []struct {
		template, name, value string
		others                map[string]string
		argument              string
		verb                  capability.Verb
	}{
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": "/etc"}, "a", "resource.read"},
		{"docs://team/{a}", "a", "../x", nil, "a", "resource.read"},
		{"file:///w/docs/{a}", "a", "../x", nil, "a", "fs.read"},
		{"file:///srv/{a}", "a", "x/", nil, "a", "fs.read"},
		{"file:///srv/{a}", "a", "", nil, "", "fs.read"},
		{"docs://team/{a}", "a", "c:x", nil, "", "resource.read"},
		{"file:///w/docs/{a}", "a", "FILE:/etc", nil, "a", "fs.read"},
		{"file:///w/docs/{a}", "a", "c:x", nil, "a", "fs.read"},
		{"file:///w/docs/{a}", "a", "C:x", nil, "a", "fs.read"},
		{"docs://{+a}", "a", "/x", nil, "", "resource.read"},
	} {
		v := g.Completion("agents/some", r, gate.Completing{Template: tt.template, Name: tt.name, Value: tt.value, Others: tt.others})
		need := v.Decision.Need()
		if v.Decision.Allowed() != (tt.argument == "") || v.Argument != tt.argument || need == nil || need.Verb() != tt.verb {
			t.Errorf("%s of %s with %q: it is about %v and %q, %v", tt.name, tt.template, tt.value, need, v.Argument, v.Decision)
		}
	}
}
