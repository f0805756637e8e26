package gate

import (
	"slices"

	"capgate/agents"
	"capgate/capability"
)

// Skill is what the gate asks of a skill.
type Skill interface {
	// Requires returns what must be covered. A spec without a scope means some use
	// of its verb; with one, all that the scope allows, relative paths and programs
	// hanging from where the agent works. When ok is false nobody satisfies the skill.
	Requires() (needs []capability.Spec, ok bool)
}

// Satisfaction is the answer to whether an agent satisfies a skill. Its zero value
// is no.
type Satisfaction struct {
	Satisfied bool
	Code      capability.Code // capability_absent, or why the agent may do nothing; "" for a satisfied skill
	Why       string          // for the operator: why nothing was compared at all
	Missing   []Missing       // what is not covered, in the order of the needs
}

// Missing is one need of a skill that an agent does not cover.
type Missing struct {
	Need capability.Spec
	Code capability.Code
	Gaps []capability.Gap // what else the need would allow, where that can be shown
	Why  string           // for the operator: the link of the chain that ends it
	Tool string           // the mapped tool that no call of could be allowed
}

// Skill decides whether an agent may see a skill: whether everything that the skill
// requires is covered by the agent's whole chain, within every ceiling and outside the
// fence. It changes no other decision.
func (g *Gate) Skill(agent string, s Skill) Satisfaction {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return Satisfaction{Code: denied.Decision.Code, Why: denied.Why}
	}
	needs, ok := s.Requires()
	if !ok {
		return Satisfaction{Code: capability.CapabilityAbsent, Why: "nobody can satisfy it"}
	}
	q := question{gate: g, agent: agent, line: line}
	if ag, known := g.Roster.Agent(agent); known {
		q.root = g.Roster.Base(ag)
	}
	var missing []Missing
	for i, need := range needs {
		if slices.ContainsFunc(needs[:i], need.Equal) {
			continue // several tools need the same
		}
		if m, covered := q.covers(need); !covered {
			m.Need = need
			missing = append(missing, m)
		}
	}
	if len(missing) > 0 {
		return Satisfaction{Code: capability.CapabilityAbsent, Missing: missing}
	}
	return Satisfaction{Satisfied: true}
}

// question is whether one agent covers what a skill needs.
type question struct {
	gate  *Gate
	agent string
	line  agents.Lineage
	root  capability.Root // what relative paths hang from
}

// covers decides one need.
func (q question) covers(need capability.Spec) (Missing, bool) {
	verb := capability.Verb(need.Verb)
	if t := q.mapped(need); t != nil {
		return Missing{Code: capability.ScopeViolation, Tool: t.Name}, q.gate.Visible(q.agent, t)
	}
	switch {
	case !q.line.Chain.Holds(verb):
		return Missing{Code: capability.CapabilityAbsent}, false
	case need.Bare && !q.gate.Wide:
		return Missing{Code: capability.ScopeViolation}, q.some(verb)
	}
	missing := Missing{Code: capability.ScopeViolation, Why: "nothing says where the agent works"}
	for _, opts := range q.readings(need) {
		m, ok := q.all(need, opts)
		if ok {
			return m, true
		}
		missing = m
	}
	return missing, false
}

// mapped returns the tool that a need names, if a mapping says what its calls need:
// then that is what counts, as it does for the call itself.
func (q question) mapped(need capability.Spec) *Tool {
	tools, _ := need.Get("tools")
	if need.Verb != string(invoke) || len(tools.Values) != 1 || q.gate.Tools == nil {
		return nil
	}
	if t := q.gate.Tools(tools.Values[0]); t != nil && t.Mapping != nil {
		return t
	}
	return nil
}

// some reports whether any use of a verb at all could be allowed. That it may only
// touch what is behind the fence, a call shows.
func (q question) some(verb capability.Verb) bool {
	one := capability.Possibility{Verb: verb, View: capability.View{Cwd: q.root.Dir}}
	e, _ := capability.Lookup(verb)
	for _, name := range parts(e) {
		one.Parts = append(one.Parts, capability.Part{Name: name, Blank: len(one.Parts) + 1})
	}
	_, ok := q.line.Chain.Possible(q.line.Ceilings, one)
	return ok
}

// parts names everything that a use of a verb touches.
func parts(e capability.Entry) []string {
	switch e.Verb.Resource() {
	case "fs":
		return []string{"path"}
	case "net":
		return []string{"url"}
	case "proc":
		return []string{"command", "cwd"}
	}
	var names []string
	for _, k := range e.Keys {
		if k.Type != capability.ArgsKey && !slices.Contains(names, k.Dim) {
			names = append(names, k.Dim)
		}
	}
	return names
}

// readings are the places that a need may hang from: the one that is written, the
// agent's root, and for a program, which a skill may run in any directory, each
// directory in which programs are granted at all. Only there can there be an answer
// that the directories below do not give as well.
func (q question) readings(need capability.Spec) []capability.Options {
	if _, written := need.Get("in"); written {
		return []capability.Options{{}}
	}
	at := capability.Options{Agent: q.root}
	if need.Bare { // all of it: what the verb means by itself where that means something
		at.Dialect = capability.Scarab
	}
	verb := capability.Verb(need.Verb)
	if verb.Resource() != "proc" || need.Bare || q.gate.Wide {
		return []capability.Options{at}
	}
	var all []capability.Options
	for _, link := range q.line.Chain {
		for g := range link.Set.All() {
			if g.Verb() == verb && g.Inert() == "" {
				all = append(all, capability.Options{Agent: g.Root()})
			}
		}
	}
	return all
}

// all reports whether everything that a need allows is covered.
func (q question) all(need capability.Spec, opts capability.Options) (Missing, bool) {
	set, lacks, ok := q.granted(need, opts)
	if ok && !need.Bare && q.fenced(set) {
		return Missing{Code: capability.ScopeViolation, Why: Fenced}, false
	}
	return lacks, ok
}

// granted reports the same by what the grants say, whatever lies behind the fence.
func (q question) granted(need capability.Spec, opts capability.Options) (*capability.Set, Missing, bool) {
	set, _ := capability.Compile([]capability.Spec{need}, opts)
	why := "no grant says what it needs" // an empty set is inside every other
	for g := range set.All() {
		if why = g.Inert() + g.Note(); why != "" { // nothing, or less than was asked for
			break
		}
	}
	if why != "" {
		return set, Missing{Code: capability.ScopeViolation, Why: why}, false
	}
	gaps, v := within(q.line, set)
	if !v.Decision.Allowed() {
		return set, Missing{Code: capability.ScopeViolation, Gaps: gaps, Why: v.Why}, false
	}
	return set, Missing{}, true
}

// fenced reports whether a need reaches behind the fence. A program reaches there by
// the directory it runs in; a bare verb means all that anybody can have of it.
func (q question) fenced(set *capability.Set) bool {
	for g := range set.All() {
		if g.Verb().Resource() != "proc" {
			return q.gate.Fence.Overlaps(set)
		}
		p, err := capability.View{}.Path(g.Root().Dir)
		if err != nil || q.gate.Fence.Touches(capability.File("fs.read", p)) {
			return true
		}
	}
	return false
}
