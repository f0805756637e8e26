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
