package capability

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// Effect is what a decision says. Its zero value denies.
type Effect uint8

// The effects.
const (
	Deny Effect = iota
	Allow
)

// String returns deny or allow.
func (e Effect) String() string { return [...]string{"deny", "allow"}[e] }

// Decision answers one requirement: the effect, the code of a denial, the grant
// that decided, and what is held for the verb. Its zero value denies.
type Decision struct {
	Effect Effect
	Code   Code
	need   *Requirement
	grant  *Grant   // what allowed it
	held   []*Grant // what the set has for the verb
	link   string   // the link of the chain that denied, "" for the agent itself
	astray bool     // it is for where the links lead that a glob meets
	fence  *Fence   // what decided it where no set did
	vague  bool     // no part of a word is told
}

// Denial is a decision that does not come from a set of grants: a call that
// cannot be read, an agent that is not there. The need may be nil.
func Denial(code Code, need *Requirement) Decision { return Decision{Code: code, need: need} }

// Deny is the denial of what lies behind the fence, whatever is held.
func (f Fence) Deny(need *Requirement) Decision {
	return Decision{Code: ScopeViolation, need: need, fence: &f}
}

// Vague returns the decision as it is told where parts of the words that were asked for
// must not be seen.
func (d Decision) Vague() Decision {
	d.vague = true
	return d
}

// Narrowed returns the denial of what was allowed, because something that only
// narrows does not let it through: a ceiling on tool names, an agent above.
func (d Decision) Narrowed(link string) Decision {
	return Decision{Code: ScopeViolation, need: d.need, link: link, held: d.held}
}

// About returns the decision as one of what stands for the thing that was decided, of the same verb.
func (d Decision) About(need *Requirement) Decision {
	d.need = need
	return d
}

// Allowed reports whether the decision allows.
func (d Decision) Allowed() bool { return d.Effect == Allow }

// Need returns the requirement that was decided, nil if none could be read.
func (d Decision) Need() *Requirement { return d.need }

// Grant returns the grant that allowed, nil in a denial.
func (d Decision) Grant() *Grant { return d.grant }

// Link returns the name of the chain's link that denied, for the operator's
// eyes: "" is the agent's own set.
func (d Decision) Link() string { return d.link }

// Held returns what the agent holds for the verb, in compact form.
func (d Decision) Held() []string {
	var held []string
	for _, g := range d.held {
		if g.inert == "" {
			if held == nil {
				held = make([]string, 0, len(d.held))
			}
			held = append(held, g.String())
		}
	}
	return held
}

// Nearest returns the held grant that comes closest to the requirement, nil if
// nothing is held: the one whose text shares most with what was asked for.
func (d Decision) Nearest() *Grant {
	var best *Grant
	most := -1
	for _, g := range d.held {
		score := 0
		if g.inert == "" {
			score = 1 + shared(g.String(), d.need.Object())
		}
		if score > most {
			best, most = g, score
		}
	}
	return best
}

// shared measures the longest run of characters that two texts have in common.
func shared(a, b string) int {
	best := 0
	row := make([]int, len(b)+1)
	for i := range len(a) {
		for j := len(b); j > 0; j-- {
			if row[j] = 0; a[i] == b[j-1] {
				row[j] = row[j-1] + 1
				best = max(best, row[j])
			}
		}
		row[0] = 0
	}
	return best
}

// String writes the decision as one sentence that its reader can act on. It
// speaks of nothing but what was asked for and what the agent holds.
func (d Decision) String() string { return d.Quoting(d.Held()) }

// Quoting writes the decision as String does, with these for what is held.
func (d Decision) Quoting(grants []string) string {
	const needs = ": this needs "
	switch {
	case d.Allowed():
		return fmt.Sprintf("allowed by %s", d.grant)
	case d.Code == SelfModification:
		return string(d.Code) + ": an agent never changes its own authority, not even to narrow it"
	case d.Code == ExceedsGrantorAuthority:
		return string(d.Code) + ": what is passed on must be within what is held"
	case d.need == nil:
		return string(d.Code)
	case d.fence != nil:
		return string(d.Code) + needs + d.need.String() + ", which is kept by the gateway or its clients: no grant opens it" + d.aside()
	case d.Code == CapabilityAbsent:
		return string(d.Code) + needs + d.need.String() + ", and no grant of " + string(d.need.verb) + " is held"
	}
	if d.Code != ScopeViolation {
		return string(d.Code) + needs + d.need.String()
	}
	var text strings.Builder
	text.Grow(512) // most are not longer
	for _, part := range [...]string{string(d.Code), needs, d.need.String(), ", ", d.outside(), " (held for ", string(d.need.verb), ": "} {
		text.WriteString(part)
	}
	if len(grants) == 0 {
		text.WriteString("nothing that is in effect")
	}
	for i, grant := range grants {
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(grant)
	}
	text.WriteByte(')')
	return text.String()
}

// Denied is a denying decision as an error, for code that can only return one.
type Denied struct{ Decision Decision }

// Error writes the decision.
func (e *Denied) Error() string { return e.Decision.String() }

// Link is one set that a requirement must be in: the agent's own, an
// ancestor's, a tool's declaration, the configuration's ceiling.
type Link struct {
	Name string // for the operator: "parent agents/lead"
	Set  *Set
}

// Chain is everything that must agree before a call is allowed, the agent's own
// set first. The empty Chain allows nothing.
type Chain []Link

// Decide asks every link. The first that denies decides; to the agent, a denial
// further up is its own scope ending there.
func (c Chain) Decide(r *Requirement) Decision {
	var own Decision
	for i, link := range c {
		d := link.Set.decide(r)
		if i == 0 {
			own = d
		}
		switch {
		case d.Allowed():
		case i > 0:
			return own.Narrowed(link.Name)
		default:
			return d
		}
	}
	if own.Allowed() && r.path.links != nil {
		return c.meeting(r, own)
	}
	return own
}

// meeting decides on the links that the globs of a requirement meet, where it is allowed but for them:
// what one of the links of the chain keeps away is not looked into for another.
func (c Chain) meeting(r *Requirement, own Decision) Decision {
	denies := -1
	if r.path.links.within(func(place string, glob *pattern.Pattern) bool {
		denies = slices.IndexFunc(c, func(l Link) bool { return !l.Set.covering(r.verb)(place, glob) })
		return denies < 0
	}) {
		return own
	}
	if denies > 0 {
		return own.Narrowed(c[denies].Name)
	}
	return Decision{Code: ScopeViolation, need: r, held: own.held, astray: true}
}

// Holds reports whether the agent's own set has any grant of the verb.
func (c Chain) Holds(v Verb) bool { return len(c) > 0 && c[0].Set.Holds(v) }

// Limits reports whether any link limits an argument of the tools that are called
// by name: a requirement of tool.invoke that leaves out the others is decided in
// the same way.
func (c Chain) Limits(argument string) bool {
	return slices.ContainsFunc(c, func(link Link) bool {
		t := link.Set.table("tool.invoke")
		return t != nil && t.keyed.limited[argument]
	})
}

// Limited returns the arguments that some link limits, sorted.
func (c Chain) Limited() []string {
	names := map[string]bool{}
	for _, link := range c {
		if t := link.Set.table("tool.invoke"); t != nil {
			maps.Copy(names, t.keyed.limited)
		}
	}
	return slices.Sorted(maps.Keys(names))
}
