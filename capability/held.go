package capability

import (
	"slices"

	"capgate/capability/pattern"
)

const (
	maxRemaining    = 64      // grants of one verb that are held against a chain; of what is beyond, nothing is said to be whole
	remainingEffort = 1 << 20 // of holding them against all links
)

// Remaining returns what the agent's own set holds of a verb and the other links
// leave: all of a grant, or no more than a part. A grant of which they leave nothing
// is in neither. Where the work to find out is capped, a grant counts as one of
// which a part is left.
func (c Chain) Remaining(v Verb) (whole, part []*Grant) {
	if len(c) == 0 {
		return nil, nil
	}
	effort := pattern.NewEffort(remainingEffort)
	for i, g := range c[0].Set.held(v) {
		narrows := func(link Link) bool {
			_, covered := link.Set.coversGrant(v, g, effort)
			return !covered
		}
		switch {
		case i >= maxRemaining:
			part = append(part, g)
		case !slices.ContainsFunc(c[1:], narrows):
			whole = append(whole, g)
		case append(Chain{{Set: c[0].Set.only(g)}}, c[1:]...).leaves(v):
			part = append(part, g)
		}
	}
	return whole, part
}

// held returns the grants of a verb that are in effect, as they were granted.
func (s *Set) held(v Verb) []*Grant {
	t := s.table(v)
	if t == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(t.held), func(g *Grant) bool { return g.inert != "" })
}

// only is the set of one of the grants.
func (s *Set) only(g *Grant) *Set {
	one := &Set{grants: []Grant{*g}, tables: map[Verb]*table{}, anything: s.anything, subtrees: s.subtrees}
	one.grants[0].n = 0
	one.index(&one.grants[0])
	return one
}

// leaves reports whether anything at all of a verb is allowed.
func (c Chain) leaves(v Verb) bool {
	e, _ := Lookup(v)
	need := Possibility{Verb: v, View: View{Cwd: "/"}}
	for i, part := range c.objects(e) {
		need.Parts = append(need.Parts, Part{Name: part, Blank: i + 1})
	}
	_, ok := c.Possible(nil, need)
	return ok
}

// objects are what requirements of a verb name.
func (c Chain) objects(e Entry) []string {
	switch e.Verb.shape() {
	case shapePath:
		return []string{"path"}
	case shapeHost:
		return []string{"host"}
	case shapeProgram:
		if e.Verb == "proc.eval" {
			return []string{"command", "cwd"}
		}
		return []string{"argv", "cwd"}
	}
	var parts []string
	for _, dim := range e.dims() {
		if dim != "args" {
			parts = append(parts, dim)
		}
	}
	if e.Verb == "tool.invoke" {
		for _, name := range c.Limited() {
			parts = append(parts, "args."+name)
		}
	}
	return parts
}

// Limited returns the arguments that the grant limits of a tool that is called by
// its name. It is not ok for a tool whose name the grant does not cover.
func (g *Grant) Limited(tool string) (arguments []string, ok bool) {
	if g.entry.Verb != "tool.invoke" || !g.dims[0].match(tool) {
		return nil, false
	}
	for _, rule := range g.args {
		arguments = append(arguments, rule.name)
	}
	return arguments, true
}

// Unlimited reports whether the grant is of everything that its verb is about.
func (g *Grant) Unlimited() bool {
	return g.spec.Bare && g.entry.bare == bareAll || g.entry.Verb.shape() == shapePath && g.Wide() != ""
}
