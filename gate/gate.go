package gate

import (
	"errors"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
)

// Gate decides for the agents of one roster. It is immutable: a reload makes a
// new one.
type Gate struct {
	Roster *agents.Roster
	Fence  capability.Fence // the gateway's own files, never reached through a grant

	// Within is what nothing may be wider than: the gate that was in force when what
	// is written now was found to allow too much. Nil is no such limit.
	Within *Gate

	// Tools finds a tool by its name among capabilities, for skills that name one.
	// Nil knows none, so that a skill needs the grant to call it by its name.
	Tools func(name string) *Tool

	// Wide makes a skill that names a tool without a scope need all that its verb
	// allows below the agent's root; otherwise some use of the verb is enough.
	Wide bool
}

// Fenced says why a requirement or a grant ends at the fence.
const Fenced = "no grant reaches the gateway's own files, or those that tell clients which servers to use, " +
	"and none changes skills, what lies in a .git, or what servers and clients run"

// Verdict is the answer to a list of requirements that one call needs together.
type Verdict struct {
	// Decision is that of the first requirement that was denied, or of the last
	// one when all are allowed. Without any requirement it denies.
	Decision capability.Decision

	// Grants are those that allowed something of a call that needs several things,
	// each once.
	Grants []*capability.Grant

	// Needs is everything that the call needs, as far as it could be read.
	Needs []mapping.Need

	// Wanted is the same of what is denied, for the agent to ask for: paths as they are written, wherever links lead and
	// whatever is there, as that is not for it to know, and with all arguments of a tool that no mapping covers, also
	// those that nothing that is held limits. Nil: Needs.
	Wanted []mapping.Need

	// Unmapped says that no mapping covers the tool.
	Unmapped bool

	// Argument is the argument that the decision is about, "" for none.
	Argument string

	// Verb is what the agent does not hold at all, when that was decided before
	// the arguments were looked at.
	Verb capability.Verb

	// Refused says what is wrong with arguments that cannot be decided on.
	Refused *mapping.Refused

	// Approve names what somebody has to say yes to first: a verb, or "".
	Approve string

	// Whole says that it is about all that a template may become, which no one grant would open.
	Whole bool

	// Why says for the operator what the agent itself is not told: a broken
	// record, the link of the chain that denied.
	Why string
}

// Require decides what an agent needs for one call. All requirements must be
// allowed, each by the agent's own set and by everything its set hangs from.
func (g *Gate) Require(agent string, needs ...*capability.Requirement) Verdict {
	var first *capability.Requirement
	if len(needs) > 0 {
		first = needs[0]
	}
	line, denied := g.lineage(agent, first)
	if denied != nil {
		return *denied
	}
	bare := make([]mapping.Need, len(needs))
	for i, need := range needs {
		bare[i].Requirement = need
	}
	return g.all(line, "", bare)
}

// decide asks the chain, and for the name of a tool every ceiling as well.
func decide(line agents.Lineage, need *capability.Requirement) capability.Decision {
	d := line.Chain.Decide(need)
	if !d.Allowed() {
		return d
	}
	switch link, err := ceiled(line, need); {
	case err != nil:
		return capability.Denial(capability.MalformedArguments, need)
	case link != "":
		return d.Narrowed(link)
	}
	return d
}

// Ceiled names the toolset that keeps a tool from an agent, whatever it holds, "" for
// none.
func (g *Gate) Ceiled(agent string, need *capability.Requirement) string {
	line, denied := g.lineage(agent, need)
	if denied != nil {
		return ""
	}
	link, _ := ceiled(line, need) // what cannot be named is denied for that
	return link
}

// ceiled names the toolset that a requirement is outside of, "" for none. To execute
// a tool by its Rye id is to call it.
func ceiled(line agents.Lineage, need *capability.Requirement) (link string, err error) {
	name := need
	switch need.Verb() {
	case invoke:
	case execute:
		if name, err = capability.Keyed(invoke, capability.Word{Dim: "tool", Value: need.Object()}); err != nil {
			return "", err
		}
	default:
		return "", nil
	}
	for _, ceiling := range line.Ceilings {
		if !ceiling.Set.Decide(name).Allowed() {
			return "toolset of " + ceiling.Name, nil
		}
	}
	return "", nil
}

// Covers compares a whole set with what an agent holds, through its chain.
func (g *Gate) Covers(agent string, set *capability.Set) ([]capability.Gap, Verdict) {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return nil, *denied
	}
	gaps, v := within(line, set)
	if v.Decision.Allowed() && g.Fence.Overlaps(set) {
		return nil, Verdict{Decision: capability.Denial(capability.ScopeViolation, nil), Why: Fenced}
	}
	return gaps, v
}

// within compares a set with a chain and its ceilings.
func within(line agents.Lineage, set *capability.Set) ([]capability.Gap, Verdict) {
	d, gaps := line.Chain.Covers(set)
	if !d.Allowed() {
		return gaps, Verdict{Decision: d, Why: d.Link()}
	}
	for _, ceiling := range line.Ceilings {
		if gaps := ceilingGaps(ceiling.Set, set); len(gaps) > 0 {
			return gaps, Verdict{Decision: capability.Denial(capability.ScopeViolation, nil), Why: "toolset of " + ceiling.Name}
		}
	}
	return nil, Verdict{Decision: d}
}

// ceilingGaps compares the tool names of a set with a ceiling on them.
func ceilingGaps(ceiling, set *capability.Set) []capability.Gap {
	var gaps []capability.Gap
	for g := range set.All() {
		if g.Inert() != "" || g.Verb() != invoke && g.Verb() != execute {
			continue
		}
		one, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{})
		if g.Verb() != invoke || len(ceiling.Covers(one)) > 0 {
			gaps = append(gaps, capability.Gap{Grant: g})
		}
	}
	return gaps
}

// lineage is what an agent may do, or why it may do nothing: then a denial names the need,
// if there is one.
func (g *Gate) lineage(agent string, need *capability.Requirement) (agents.Lineage, *Verdict) {
	line, err := g.Roster.Lineage(agent)
	switch {
	case err == nil && g.Within == nil:
		return line, nil
	case err == nil:
		before, denied := g.Within.lineage(agent, need)
		if denied != nil {
			return line, denied
		}
		return line.Within(before), nil
	case errors.Is(err, agents.ErrUnknown):
		return agents.Lineage{}, &Verdict{Decision: capability.Denial(capability.Unauthenticated, need), Why: "there is no record of the agent any more"}
	}
	return line, &Verdict{Decision: capability.Denial(capability.InvalidConfig, need), Why: err.Error()}
}

// approver returns the entry of approve:, in the record of the agent or of one
// above it, that a call waits for, and the requirement it is about.
func approver(line agents.Lineage, tool string, needs []mapping.Need) (entry string, need *capability.Requirement) {
	for _, entry := range line.Approve {
		for i := range needs {
			if matches(entry, tool, needs[i].Requirement) {
				return entry, needs[i].Requirement
			}
		}
	}
	return "", nil
}

// matches reports whether an entry of approve: means a requirement: its verb, a
// whole resource as "fs.*", or the name of the tool that is called.
func matches(entry, tool string, need *capability.Requirement) bool {
	if means(entry, need.Verb()) {
		return true
	}
	if need.Verb() == invoke {
		tool = need.Object()
	}
	resource, all := strings.CutSuffix(entry, ".*")
	return tool != "" && (entry == tool || all && strings.HasPrefix(tool, resource+"."))
}

// means reports whether an entry of approve: means a verb, whatever it is used on. A
// verb of Rye's means the one that is asked for in its place.
func means(entry string, v capability.Verb) bool {
	if entry == "*" || entry == string(v) || entry == v.Resource()+".*" {
		return true
	}
	action, all := strings.CutSuffix(entry, "*")
	return slices.ContainsFunc(capability.Implying(v), func(w capability.Verb) bool {
		return entry == string(w) || all && strings.HasSuffix(action, ".") && strings.HasPrefix(string(w), action)
	})
}
