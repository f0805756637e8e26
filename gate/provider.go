package gate

import (
	"slices"

	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
)

// Reach is what an agent may have done for it on the other side of a model: by
// the tools that run at the model's provider. Its zero value reaches nothing.
type Reach struct {
	gate *Gate
	line agents.Lineage
}

// Provider returns the reach of an agent, or the verdict that keeps it from having
// any: it is unknown, or its record is broken.
func (g *Gate) Provider(agent string) (Reach, *Verdict) {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return Reach{}, denied
	}
	return Reach{g, line}, nil
}

// Hosts returns the hosts of a verb that the whole chain allows, in order and none
// within another. What waits for somebody's approval is not among them: a provider
// does not wait.
func (r Reach) Hosts(v capability.Verb) []capability.Host {
	if r.Waits(v) {
		return nil
	}
	return r.line.Chain.Hosts(v)
}

// Waits reports whether every use of a verb waits for somebody's approval, held or not:
// a tool of a provider may go by such a verb and rest on another one.
func (r Reach) Waits(v capability.Verb) bool {
	return slices.ContainsFunc(r.line.Approve, func(entry string) bool { return means(entry, v) })
}

// Require decides one requirement of a provider tool. As nobody can be asked in
// the middle of a request, what needs approval is denied. So is a tool of a foreign
// server where the dialect demands declarations: there is none of what it touches.
func (r Reach) Require(need *capability.Requirement) capability.Decision {
	switch {
	case r.gate == nil:
		return capability.Denial(capability.CapabilityAbsent, need)
	case need.Verb() == invoke && r.line.Declared != nil:
		return capability.Denial(capability.NotAvailable, need)
	}
	return r.gate.all(r.line, "", []mapping.Need{{Requirement: need}}).Decision
}
