package agents

import (
	"slices"
	"strings"

	"capgate/capability"
)

// Draft is a record that is to be written.
type Draft struct {
	ID      string
	Parent  string
	Sandbox string
	Access  string            // r, w, rw or ""
	Grants  []capability.Spec // nil writes no capabilities:, empty writes that there are none
	Toolset []string          // nil writes no ceiling
	Approve []string
	Body    string
}

// New writes a fresh Egghead record, which is read back before it is returned.
func New(d Draft) ([]byte, error) {
	id := capability.AgentID(d.ID)
	if id == "" {
		return nil, &Invalid{Text: `"` + d.ID + `" is no agent id`, Hint: idForm}
	}
	var b strings.Builder
	line := func(key, value string) {
		if value != "" {
			b.WriteString(key + ": " + value + "\n")
		}
	}
	text := func(key, value string) {
		if value != "" {
			line(key, renderText(value))
		}
	}
	b.WriteString(fence + "\n")
	line("id", id)
	line("class", "agent")
	text("parent", d.Parent)
	text("sandbox", d.Sandbox)
	text("access", d.Access)
	switch {
	case len(d.Grants) > 0:
		b.WriteString("capabilities:\n")
		for _, s := range d.Grants {
			b.WriteString("  - " + renderSpec(s) + "\n")
		}
	case d.Grants != nil:
		line("capabilities", "[]")
	}
	if d.Toolset != nil {
		line("toolset", renderList(d.Toolset))
	}
	if d.Approve != nil {
		line("approve", renderList(d.Approve))
	}
	b.WriteString(fence + "\n")
	if d.Body != "" {
		b.WriteString(strings.TrimSuffix(d.Body, "\n") + "\n")
	}
	return checked(id, b.String(), d)
}

// checked reads a fresh record back: it must say what was asked for.
func checked(id, text string, d Draft) ([]byte, error) {
	p, err := parse(id+".md", []byte(text))
	if err != nil {
		return nil, err
	}
	for _, f := range p.findings {
		if f.Severity == capability.Error {
			return nil, &Invalid{Pos: f.Pos, Text: f.Text, Hint: f.Hint}
		}
	}
	rec := p.rec
	same := rec.Dialect == capability.Egghead && rec.ID == id && rec.Parent == capability.AgentID(d.Parent) &&
		rec.Sandbox == d.Sandbox && slices.Equal(rec.Toolset, d.Toolset) && slices.Equal(rec.Approve, d.Approve) &&
		strings.TrimSuffix(rec.Body, "\n") == strings.TrimSuffix(d.Body, "\n") && sameSpecs(specsOf(p.entries), d.Grants)
	if !same {
		return nil, &Invalid{Pos: capability.Pos{File: id + ".md"}, Text: "the record would not say what was asked for"}
	}
	return []byte(text), nil
}
