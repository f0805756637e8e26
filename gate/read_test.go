package gate_test

import (
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// What completes a template tells of all that it may become, so that it needs what any of that does.
func TestTemplateVerdict(t *testing.T) {
	m, findings, err := mapping.Parse("m.yml", []byte(`server: s
tools: {}
resources:
  docs://internal/*: memory.read
  docs://all: { requires: [memory.read] }
  notes: memory.read
`))
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	g := gateOf(t, map[string]string{
		"reader.md": record("resource.read: { uris: [\"*\"] }"),
		"keeper.md": record("resource.read: { uris: [\"*\"] }", "memory.read: { keys: [\"*\"] }"),
	})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for template, reader := range map[string]bool{
		"docs://{box}/{id}":     false,
		"docs://{+rest}":        false,
		"docs:{+rest}":          false,
		"docs://in{box}/a":      false,
		"DOCS://IN{box}/a":      false,
		"docs://internal/{id}":  false,
		"docs://al{x}":          false,
		"{scheme}://a":          false,
		"docs://all/{x}":        true,
		"docs://public/{id}":    true,
		"docs://internals/{id}": true,
		"docs://p{box}/{id}":    true,
		"docs://int?x={y}":      true,
		"other://{id}":          true,
		"notes://{id}":          false,
	} {
		if got := g.TemplateVerdict("agents/reader", r, template).Decision.Allowed(); got != reader {
			t.Errorf("a reader may complete %s: %v", template, got)
		}
		if v := g.TemplateVerdict("agents/keeper", r, template); !v.Decision.Allowed() {
			t.Errorf("a keeper may not complete %s: %v", template, v)
		}
	}
}

// What a star stands for is no query and no fragment, which many servers do not look at.
func TestResourceQuery(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\nresources:\n  notes: memory.read\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{
		"some.md":  record(`resource.read: { uris: ["docs://*/public", "docs://*.md", "db://t\\?*", "db://u?x=1"] }`, `memory.read: { keys: ["*-public"] }`, `net.get: { hosts: ["a.com"] }`),
		"child.md": under("some", `resource.read: { uris: ["docs://secret?.md", "docs://secret#/public"] }`),
		"heir.md":  under("all", `resource.read: { uris: ["docs://secret?.md"] }`),
		"all.md":   record(`resource.read: { uris: ["*"] }`, `memory.read: { keys: ["*"] }`),
		"none.md":  record(`resource.read: { uris: ["docs://*.md"] }`, `resource.read: { uris: ["docs://secret?.md"], odd: [x] }`),
	})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for uri, want := range map[string]bool{
		"docs://a/public":        true,
		"docs://a/public?x=1":    false,
		"docs://a.md#part":       false,
		"docs://secret#/public":  false,
		"docs://secret?/public":  false,
		"docs://secret?.md":      false,
		"docs://secret?x#.md":    false,
		"docs://a.md#b.md":       true,
		"docs://a/public?b.md":   true,
		"db://t?x=1":             true,
		"db://u?x=1":             true,
		"db://u?x=2":             false,
		"notes://a-public":       true,
		"notes://secret?-public": false,
		"https://a.com/x?y#z":    true,
	} {
		if v := g.Resource("agents/some", r, uri); v.Decision.Allowed() != want {
			t.Errorf("some may read %s: %v, %s", uri, !want, v.Why)
		}
		if v := g.Resource("agents/child", r, uri); v.Decision.Allowed() {
			t.Errorf("a child may read %s", uri)
		}
		if v := g.Resource("agents/heir", r, uri); v.Decision.Allowed() != (uri == "docs://secret?.md") {
			t.Errorf("an heir may read %s: %v", uri, v.Decision.Allowed())
		}
		if v := g.Resource("agents/all", r, uri); !v.Decision.Allowed() && uri[:5] != "https" {
			t.Errorf("who may read all may not read %s: %v", uri, v)
		}
	}
	if v := g.Resource("agents/none", r, "docs://secret?.md"); v.Decision.Allowed() {
		t.Error("what is inert spells a resource out")
	}
}
