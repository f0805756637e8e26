package main

import (
	"fmt"
	"slices"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/skills"
)

// shortfall is one thing that a skill needs and an agent does not have.
type shortfall struct {
	Token   string `json:"token"`
	Need    string `json:"need"`
	Code    string `json:"code"`
	Beyond  string `json:"beyond,omitempty"` // what it would allow besides
	Why     string `json:"why,omitempty"`
	Allow   []edit `json:"allow,omitempty"` // the edits that would satisfy it, all of them needed
	Blocked string `json:"blocked,omitempty"`
}

// shortfall says what is missing of one need, and what would mend it.
func (w *world) shortfall(ag *agents.Agent, s *skills.Skill, m gate.Missing) shortfall {
	f := shortfall{Need: m.Need.String(), Code: string(m.Code), Why: m.Why}
	if i := slices.IndexFunc(s.Needs, func(n skills.Need) bool { return n.Spec.Equal(m.Need) }); i >= 0 {
		f.Token = s.Needs[i].Token
	}
	if len(m.Gaps) > 0 {
		f.Beyond = m.Gaps[0].Witness
	}
	f.Allow, f.Blocked = w.satisfying(ag, m)
	return f
}

// satisfying finds the edits of records that would satisfy a need.
func (w *world) satisfying(ag *agents.Agent, m gate.Missing) (edits []edit, blocked string) {
	switch {
	case ag.Err != nil:
		return nil, "the record cannot be loaded; mend it first"
	case m.Tool != "":
		return w.calling(ag, w.gate.Tools(m.Tool))
	}
	if ceiling := w.ceiling(ag, m.Need); ceiling != "" {
		return nil, "toolset: names the tools that may be called at all, and these are not all among them: " + ceiling
	}
	spec, ok := w.written(ag, m.Need)
	if !ok {
		return nil, unrooted
	}
	if edits, blocked = w.granting(ag, spec); blocked == "" && len(edits) == 0 { // every record has it, and still it does not count
		return nil, "no grant changes that: it lies behind the gateway's fence, or an agent above has no record"
	}
	return edits, blocked
}

// ceiling names the toolset that keeps some of a need from an agent, whatever it is granted,
// "" for none.
func (w *world) ceiling(ag *agents.Agent, need capability.Spec) string {
	line, err := w.roster.Lineage(ag.ID)
	if err != nil || need.Bare || need.Verb != "tool.invoke" {
		return ""
	}
	set, _ := capability.Compile([]capability.Spec{need}, capability.Options{})
	for _, c := range line.Ceilings {
		if len(c.Set.Covers(set)) > 0 {
			return "toolset of " + c.Name
		}
	}
	return ""
}

const unrooted = "the agent has no root, so that nothing says where it would use this: write sandbox: into its record"

// granting finds the edits that put a grant into the records that lack it, of an agent and of
// those above it.
func (w *world) granting(ag *agents.Agent, spec capability.Spec) (edits []edit, blocked string) {
	if blocked = w.stranded(ag); blocked != "" {
		return nil, blocked
	}
	for _, up := range w.above(ag) {
		set, _ := w.roster.Compile(up, spec)
		held := up.Set
		if up != ag {
			held = up.Giveable()
		}
		switch {
		case !allOf(set, spec):
			return nil, fmt.Sprintf("%s in the record of %s would not do, since the sandbox root cuts it off", spec, up.ID)
		case len(held.Covers(set)) == 0:
			continue
		case up.Record.Dialect != capability.Egghead:
			return nil, fmt.Sprintf("%s would do in the record of %s, which is written in the dialect %s and edited by hand", spec, up.ID, up.Record.Dialect)
		}
		edits = append(edits, edit{up.ID, spec.String()})
	}
	return edits, ""
}

// stranded says of an agent for which no grant counts why that is, "" for any other.
func (w *world) stranded(ag *agents.Agent) string {
	for _, up := range w.above(ag) {
		if up.Err != nil || up.Record == nil {
			return up.ID + " cannot be loaded; mend it first"
		}
		if _, ok := w.roster.Agent(up.Record.Parent); up.Record.Parent != "" && !ok {
			return fmt.Sprintf("%s hangs from %s, which is not there, so that it may do nothing", up.ID, up.Record.Parent)
		}
	}
	return ""
}

// calling finds the edits with which some call of a tool could be allowed, and tries them.
func (w *world) calling(ag *agents.Agent, t *gate.Tool) (edits []edit, blocked string) {
	specs, rootless := w.callable(ag, t)
	if !w.gate.VisibleWith(ag.ID, t, specs...) {
		return nil, w.uncallable(ag, t, specs, rootless)
	}
	for i := len(specs) - 1; i >= 0; i-- { // what it can do without, the least likely first
		if rest := slices.Delete(slices.Clone(specs), i, i+1); w.gate.VisibleWith(ag.ID, t, rest...) {
			specs = rest
		}
	}
	for _, spec := range specs {
		more, blocked := w.granting(ag, spec)
		if blocked != "" {
			return nil, blocked
		}
		edits = append(edits, more...)
	}
	return edits, ""
}

// callable are the grants that calls of a tool may need, what each of them needs first: all
// that a verb means below the agent's root, but no more than what the mapping spells out.
func (w *world) callable(ag *agents.Agent, t *gate.Tool) (specs []capability.Spec, rootless bool) {
	for _, r := range t.Mapping.Roles() {
		if need, err := capability.ParseRequirement(r.Fixed, t.View); r.Fixed != "" && err == nil {
			if spec, ok := need.Smallest(capability.Root{}); ok {
				specs = append(specs, spec)
			}
		}
	}
	var seen []capability.Verb
	for _, v := range append(slices.Concat(t.Mapping.Verbs()...), t.Mapping.Surface()...) {
		if slices.Contains(seen, v) {
			continue
		}
		seen = append(seen, v)
		need := capability.Spec{Verb: string(v), Bare: true}
		if v == "tool.invoke" {
			need = capability.Spec{Verb: string(v)}.With("tools", t.Name)
		}
		spec, ok := w.written(ag, need)
		if rootless = rootless || !ok; ok {
			specs = append(specs, spec)
		}
	}
	return specs, rootless
}

// uncallable says why no grants that can be named here would do for a tool.
func (w *world) uncallable(ag *agents.Agent, t *gate.Tool, specs []capability.Spec, rootless bool) string {
	free := &gate.Tool{Name: t.Name, Mapping: t.Mapping, View: t.View, Roots: t.Roots, Unmediated: true}
	ceiling := w.ceiling(ag, capability.Spec{Verb: "tool.invoke"}.With("tools", t.Name))
	stranded := w.stranded(ag)
	switch {
	case stranded != "":
		return stranded
	case ceiling != "":
		return "toolset: names the tools that may be called at all, and this is none of them: " + ceiling
	case w.gate.VisibleWith(ag.ID, free, specs...):
		return "no grant changes that: see declares: and unmediated: of the upstream " + w.upstreamOf(t.Name).Name + " in the configuration"
	case rootless:
		return unrooted
	}
	return "capgate explain --agent " + ag.ID + " --tool " + t.Name + " --args '{…}' says what a call of it needs"
}

// written is a need as a grant that means the same in every record: some use of a verb
// as all of it below the agent's root, what hangs from that root with the root.
func (w *world) written(ag *agents.Agent, need capability.Spec) (capability.Spec, bool) {
	opts := capability.Options{Agent: w.roster.Base(ag)}
	resource := capability.Verb(need.Verb).Resource()
	if opts.Agent.IsZero() && (resource == "fs" || resource == "proc") {
		return capability.Spec{}, false
	}
	if need.Bare {
		opts.Dialect = capability.Scarab
	}
	if _, own := need.Get("in"); own {
		opts = capability.Options{}
	}
	set, _ := capability.Compile([]capability.Spec{need}, opts)
	for g := range set.All() {
		if spec := g.Spec(); g.Inert() == "" {
			spec.Bare = len(spec.Scope) == 0
			return spec, true
		}
	}
	return capability.Spec{}, false
}

// allOf reports whether a set holds all of a grant as it was written.
func allOf(set *capability.Set, spec capability.Spec) bool {
	whole, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
	return len(set.Covers(whole)) == 0
}
