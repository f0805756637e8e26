package agents

import (
	"fmt"
	"slices"

	"capgate/capability"
)

// maxAncestors is how many parents may stand above one agent.
const maxAncestors = 16

// Lineage is what an agent's place under its parents means for its calls.
type Lineage struct {
	// Chain is the agent's own set and what each ancestor may pass on: a call
	// must be in all of them.
	Chain capability.Chain

	// Ceilings are the toolsets of the agent and its ancestors, as tool.invoke:
	// the name of a tool must be in all of them. Without any, every name passes.
	Ceilings []capability.Link

	// Approve is what somebody must approve, the ancestors' demands included.
	Approve []string

	// Declared is what must cover all that a tool declares before it is there for the
	// agent: the chain from the nearest record on whose dialect demands declarations.
	// Nil is no such demand.
	Declared capability.Chain
}

// Within is what two lineages allow together: each link and ceiling of the two must.
func (l *Lineage) Within(before Lineage) Lineage {
	return Lineage{
		Chain:    slices.Concat(l.Chain, before.Chain),
		Ceilings: slices.Concat(l.Ceilings, before.Ceilings),
		Approve:  slices.Concat(l.Approve, before.Approve),
		Declared: slices.Concat(l.Declared, before.Declared),
	}
}

// family works out the lineages of a roster that is being made.
type family struct {
	agents map[string]*Agent
	opts   Options
}

// ancestors returns the agents above one, nearest first. The last one may be
// nil: a parent that has no record. A circle, and a line too long, is an error.
func (f family) ancestors(a *Agent) ([]*Agent, error) {
	var line []*Agent
	seen := map[string]bool{a.ID: true}
	for at := a; at != nil && at.Record != nil && at.Record.Parent != ""; {
		id := at.Record.Parent
		switch {
		case seen[id]:
			return nil, &Invalid{Pos: at.Record.parentPos, Text: fmt.Sprintf("%s is an ancestor of itself", id), Hint: "change parent:"}
		case len(line) == maxAncestors:
			return nil, &Invalid{Pos: a.Record.parentPos, Text: fmt.Sprintf("more than %d agents stand above %s", maxAncestors, a.ID)}
		}
		seen[id] = true
		at = f.agents[id]
		line = append(line, at)
	}
	return line, nil
}

// inherit gives agents without grants of their own those of their parent, from
// the top of each line down.
func (f family) inherit(a *Agent, line []*Agent) {
	for i := len(line) - 1; i >= 0; i-- {
		heir := a
		if i > 0 {
			heir = line[i-1]
		}
		if heir.Record == nil || !heir.Record.Inherit || heir.own != nil {
			continue
		}
		heir.own = []capability.Spec{}
		if parent := line[i]; parent != nil && parent.Err == nil {
			heir.own = inEffect(parent.Set)
			heir.settle(parent.Root)
		}
		heir.compileSets(f.opts)
		// What is to say of the parent's grants is said where they are written.
		heir.Findings = slices.DeleteFunc(heir.Findings, func(f capability.Finding) bool { return f.Pos.File != heir.File })
	}
}

// settle decides which root hangs over grants that were inherited: the parent's, or the
// agent's own, which a token of the parent's record doesn't step out of.
func (a *Agent) settle(parents capability.Root) {
	if a.Root.IsZero() {
		a.Root = parents
		return
	}
	for i := range a.own {
		a.own[i].Token = false
	}
}

// inEffect returns the grants of a set with their roots written out, which mean
// the same in every record.
func inEffect(s *capability.Set) []capability.Spec {
	specs := []capability.Spec{}
	for g := range s.All() {
		if g.Inert() == "" {
			specs = append(specs, g.Spec())
		}
	}
	return specs
}

// lineage writes down what stands above an agent. A parent that is missing or
// broken passes on nothing.
func (f family) lineage(a *Agent, line []*Agent) {
	var l Lineage
	l.add(a, a.ID, a.Set)
	demanding := -1
	if a.Record.Dialect == capability.Ethos {
		demanding = 0
	}
	for i, up := range line {
		id := a.Record.Parent
		if i > 0 {
			id = line[i-1].Record.Parent
		}
		name := "parent " + id
		if up == nil || up.Err != nil {
			l.Chain = append(l.Chain, capability.Link{Name: name, Set: nothing()})
			break
		}
		l.add(up, name, up.Giveable())
		if demanding < 0 && up.Record.Dialect == capability.Ethos {
			demanding = i + 1
		}
	}
	if demanding >= 0 {
		l.Declared = l.Chain[demanding:]
	}
	// Whoever appends to what they got must not write into what others got.
	a.lineage = Lineage{slices.Clip(l.Chain), slices.Clip(l.Ceilings), slices.Clip(l.Approve), slices.Clip(l.Declared)}
}

// add takes over the set, the ceiling and the approvals of one agent of the line.
func (l *Lineage) add(a *Agent, name string, passes *capability.Set) {
	l.Chain = append(l.Chain, capability.Link{Name: name, Set: passes})
	for _, word := range a.Record.Approve {
		if !slices.Contains(l.Approve, word) {
			l.Approve = append(l.Approve, word)
		}
	}
	if a.Record.Toolset == nil {
		return
	}
	set := nothing()
	if len(a.Record.Toolset) > 0 {
		spec := capability.Spec{Verb: "tool.invoke"}.With("tools", a.Record.Toolset...)
		set, _ = capability.Compile([]capability.Spec{spec}, capability.Options{})
	}
	l.Ceilings = append(l.Ceilings, capability.Link{Name: name, Set: set})
}

// compare says what an agent was given that its parent could not have passed on.
// The chain denies it at every call, so that it is said and not refused.
func (f family) compare(a *Agent) {
	parent := f.agents[a.Record.Parent]
	pos := a.Record.parentPos
	if parent == nil || parent.Err != nil {
		text := fmt.Sprintf("the parent %s has no record", a.Record.Parent)
		if parent != nil {
			text = fmt.Sprintf("the record of the parent %s is broken", a.Record.Parent)
		}
		a.Findings = append(a.Findings, capability.Finding{
			Code: "missing_parent", Severity: capability.Error, Pos: pos, Text: text + ", so that the agent can do nothing",
		})
		return
	}
	for _, gap := range parent.Giveable().Covers(a.Giveable()) {
		if at := gap.Grant.Spec().Pos; at.Line > 0 {
			pos = at
		}
		a.Findings = append(a.Findings, capability.Finding{
			Code: "exceeds_parent", Severity: capability.Warning, Pos: pos,
			Text: fmt.Sprintf("%s exceeds what %s can pass on: %s", gap.Grant, parent.ID, gap),
			Hint: "the parent's record can allow it under delegable:",
		})
	}
}
