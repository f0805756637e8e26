package gate

import (
	"fmt"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
)

// Edit is what would have to change in an agent's own record so that what was
// denied is allowed.
type Edit struct {
	Grants  []capability.Spec // all of them needed, each the narrowest there is
	ByHand  bool              // the record is in a dialect that is not edited by command
	Special bool              // some of it is no host of the public internet

	// Blocked says for the operator why no grant in the record would do, "" if
	// one would. It speaks of other agents, and not of what was asked for.
	Blocked string
}

// Edit finds the grants that an agent lacks for a call, of a tool if it is of one, and tries them:
// none is named that would be clamped away, or that something else would deny in its turn.
func (g *Gate) Edit(agent, tool string, d *Declaration, needs []mapping.Need) Edit {
	ag, ok := g.Roster.Agent(agent)
	line, denied := g.lineage(agent, nil)
	if !ok || denied != nil || ag.Record == nil {
		return Edit{Blocked: "the record cannot be loaded"}
	}
	if entry, _ := approver(line, tool, needs); entry != "" {
		return Edit{Blocked: "approve: in the record, or in one above it, lists " + entry + ", and there is no way to say yes yet"}
	}
	e := Edit{ByHand: ag.Record.Dialect != capability.Egghead}
	root := g.Roster.Root(ag)
	for _, n := range needs {
		need := n.Requirement
		if e.Blocked = g.beyond(line, d, need); e.Blocked != "" {
			return e
		}
		if line.Chain[0].Set.Decide(need).Allowed() {
			continue
		}
		spec, ok := need.Smallest(root)
		if !ok {
			return Edit{Blocked: unwritten(need)}
		}
		if e.names(spec) {
			continue
		}
		if !g.would(ag, line.Chain[0].Set, spec, need) {
			return Edit{Blocked: fmt.Sprintf("no grant of %s in the record of %s would do", need.Verb(), ag.ID)}
		}
		e.Grants = append(e.Grants, spec)
		e.Special = e.Special || need.Special()
	}
	return e
}

// unwritten says why there is no smallest grant for a requirement. Where a name leads is
// left out: it stands in clear where targets are hashed.
func unwritten(need *capability.Requirement) string {
	if need.Verb().Resource() == "net" && need.Opaque() == "" {
		return "the name leads to an address that is not of the public internet, which has to be granted as well"
	}
	return "no grant is known that covers this and no more"
}

// names reports whether a grant is one of them already.
func (e *Edit) names(spec capability.Spec) bool {
	if len(e.Grants) == 0 {
		return false
	}
	text := spec.String()
	return slices.ContainsFunc(e.Grants, func(one capability.Spec) bool { return one.String() == text })
}

// would reports whether a grant in the record of an agent would cover a requirement with what is held, as it is typed: those
// of files and programs may be clamped away there, and an agent chooses words that no pattern has. Hosts mean the same
// wherever they stand.
func (g *Gate) would(ag *agents.Agent, held *capability.Set, spec capability.Spec, need *capability.Requirement) bool {
	if need.Verb().Resource() == "net" {
		return true
	}
	typed, err := capability.ParseSpec(spec.String())
	if err != nil {
		return false
	}
	o := g.Roster.Options(ag)
	o.View.FS = nil // where links lead is not told
	set, _ := capability.Compile([]capability.Spec{typed}, o)
	if set.Decide(need).Allowed() {
		return true
	}
	set, _ = capability.Compile(append(counting(held), typed), o)
	return set.Decide(need).Allowed()
}

// beyond says what besides the agent's own grants denies a requirement.
func (g *Gate) beyond(line agents.Lineage, d *Declaration, need *capability.Requirement) string {
	if g.Fence.Touches(need) {
		return Fenced
	}
	if !d.Allows(need) {
		return "the declaration of the upstream does not allow " + string(need.Verb()) + " of it"
	}
	if link, err := ceiled(line, need); err != nil || link != "" {
		return "the " + link + " does not hold the tool"
	}
	var names []string
	for _, link := range line.Chain[1:] {
		if !link.Set.Decide(need).Allowed() {
			names = append(names, link.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, " and ") + " would have to allow " + string(need.Verb()) + " of it too"
}

// VisibleWith reports whether some call of a tool could be allowed once grants stood in the
// record of the agent, and of each above it, besides what stands there. It changes nothing.
func (g *Gate) VisibleWith(agent string, t *Tool, grants ...capability.Spec) bool {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return false
	}
	line.Chain = slices.Clone(line.Chain)
	at := agent
	for i := range line.Chain {
		ag, ok := g.Roster.Agent(at)
		if !ok || ag.Err != nil || ag.Record == nil {
			break // nothing that is granted there counts
		}
		line.Chain[i].Set = g.Besides(ag, line.Chain[i].Set, grants...)
		at = ag.Record.Parent
	}
	line, denied = t.availableTo(line)
	return denied == nil && g.possible(agent, t, line)
}

// Besides reads the grants of a set, and others, as if they stood in the record of an agent.
func (g *Gate) Besides(ag *agents.Agent, held *capability.Set, grants ...capability.Spec) *capability.Set {
	set, _ := g.Roster.Compile(ag, append(counting(held), grants...)...)
	return set
}

// counting are the grants of a set that count.
func counting(held *capability.Set) (specs []capability.Spec) {
	for one := range held.All() {
		if one.Inert() == "" {
			specs = append(specs, one.Spec())
		}
	}
	return specs
}
