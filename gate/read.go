package gate

import (
	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

// Resources is what is known of the resources of one server.
type Resources struct {
	Name       string // of the server, among capabilities
	Mapping    *mapping.Mapping
	View       capability.View
	Declared   *capability.Set
	Unmediated bool
}

// Visible reports whether some call of a tool could be allowed.
func (g *Gate) Visible(agent string, t *Tool) bool {
	line, denied := g.available(agent, t)
	_ = line
	return denied == nil
}

// Prompt decides a prompts/get with its arguments.
func (g *Gate) Prompt(agent string, t *Tool, args wire.Value) Verdict {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return *denied
	}
	need, err := capability.Keyed("prompt.get", capability.Word{Dim: "name", Value: t.Name})
	if err != nil {
		return refused(err)
	}
	return g.all(line, "", []mapping.Need{{Requirement: need}})
}

// PromptName decides what concerns a prompt as a whole.
func (g *Gate) PromptName(agent string, t *Tool) Verdict { return g.Prompt(agent, t, wire.Value{}) }

// Resource decides whether a resource may be read.
func (g *Gate) Resource(agent string, r *Resources, uri string) Verdict {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return *denied
	}
	return g.all(line, "", resourceNeeds(line, uri))
}

func resourceNeeds(line agents.Lineage, uri string) []mapping.Need {
	need, err := capability.Keyed("resource.read", capability.Word{Dim: "uri", Value: uri})
	if err != nil {
		return nil
	}
	return []mapping.Need{{Requirement: need}}
}

// Template reports whether some resource of a template could be read.
func (g *Gate) Template(agent string, r *Resources, template string) bool {
	return g.TemplateVerdict(agent, r, template).Decision.Allowed()
}

// TemplateVerdict decides what concerns a template as a whole.
func (g *Gate) TemplateVerdict(agent string, r *Resources, template string) Verdict {
	return g.Resource(agent, r, template)
}
