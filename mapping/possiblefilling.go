package mapping

import (
	"iter"
	"slices"

	"capgate/capability"
)

// maxFillings caps the ways to fill in arguments that depend on one another.
const maxFillings = 1024

// circle is places whose values are decided on together: one argument most of the
// time, several that make up one program, one keyed requirement, a URL and its
// method.
type circle struct {
	units []unit
	keys  []any
}

// unit is a place, with what is inside it if that depends on what it is.
type unit struct {
	node, object *node // the object is the innermost around it
}

// circles takes the arguments of a tool apart.
func (w *wish) circles() []circle {
	var all []circle
	for u := range w.tool.args.units(w.tool.args) {
		c := circle{units: []unit{u}, keys: u.keys()}
		meets := func(o circle) bool {
			return slices.ContainsFunc(o.keys, func(k any) bool { return slices.Contains(c.keys, k) })
		}
		for _, o := range all {
			if meets(o) {
				c.units, c.keys = append(slices.Clone(o.units), c.units...), append(slices.Clone(o.keys), c.keys...)
			}
		}
		all = append(slices.DeleteFunc(all, meets), c)
	}
	return all
}

// units visits the places that do not depend on what is around them: it makes no
// difference whether what holds nothing else is absent or empty.
func (n *node) units(object *node) iter.Seq[unit] {
	return func(yield func(unit) bool) { n.eachUnit(object, yield) }
}

func (n *node) eachUnit(object *node, yield func(unit) bool) bool {
	kinds := 0
	for _, is := range []bool{len(n.roles) > 0, len(n.members) > 0, n.elements != nil} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return true
	case kinds > 1 || len(n.roles) > 0:
		return yield(unit{n, object})
	case n.elements != nil:
		return n.elements.eachUnit(object, yield)
	}
	for _, m := range n.members {
		if !m.eachUnit(n, yield) {
			return false
		}
	}
	return true
}

// keys say what a unit is decided on with.
func (u unit) keys() []any {
	keys := []any{u.node}
	u.node.places(u.object, func(n, object *node) {
		for _, r := range n.roles {
			switch reads := r.reads.(type) {
			case command:
				keys = append(keys, reads.verb)
			case part:
				keys = append(keys, reads.verb)
			case word:
				if e, _ := capability.Lookup(reads.verb); len(wordDims(e)) > 1 {
					keys = append(keys, reads.verb)
				}
			case request:
				keys = append(keys, object.member(reads.method))
			}
		}
	})
	return keys
}

// places visits a place and those inside it.
func (n *node) places(object *node, visit func(n, object *node)) {
	visit(n, object)
	for _, m := range n.members {
		m.places(n, visit)
	}
	if n.elements != nil {
		n.elements.places(object, visit)
	}
}

// state is what stands at a place: a value, or nothing.
type state struct {
	node, object *node
	present      bool
	as           capability.Verb // that a URI of a resource needs instead of its own, "" for that
}

// fillings visits the ways to fill in a place and what is inside it, as [reading]
// visits them. An object holds whatever it can hold, an array one element.
func (n *node) fillings(object *node) iter.Seq[[]state] {
	return func(yield func([]state) bool) {
		if !yield(n.absent(object, nil)) {
			return
		}
		for _, as := range n.kinds() {
			if !yield([]state{{n, object, true, as}}) {
				return
			}
		}
		if n.elements != nil {
			for s := range n.elements.fillings(object) {
				if !yield(s) {
					return
				}
			}
		}
		if len(n.members) > 0 {
			inside := make([]unit, len(n.members))
			for i, m := range n.members {
				inside[i] = unit{m, n}
			}
			combine(inside, nil, yield)
		}
	}
}

// kinds lists what a value at a place may be: where it is the URI of a resource, also that of a file, one of
// the web, and what the mapping says more of.
func (n *node) kinds() []capability.Verb {
	switch {
	case len(n.roles) == 0:
		return nil
	case slices.ContainsFunc(n.roles, func(r role) bool { return isResource(r.reads) }):
		return []capability.Verb{"", "fs.read", "net.get", readResource}
	}
	return []capability.Verb{""}
}

// absent lists the places that are absent together.
func (n *node) absent(object *node, states []state) []state {
	n.places(object, func(n, object *node) {
		if len(n.roles) > 0 {
			states = append(states, state{node: n, object: object})
		}
	})
	return states
}

// combine visits all combinations of the fillings of some units.
func combine(units []unit, states []state, yield func([]state) bool) bool {
	if len(units) == 0 {
		return yield(states)
	}
	for s := range units[0].node.fillings(units[0].object) {
		if !combine(units[1:], append(states[:len(states):len(states)], s...), yield) {
			return false
		}
	}
	return true
}

// settle looks for a way to fill in a circle that is allowed, and keeps it.
// Sought is one that says what the tool does.
func (w *wish) settle(c circle, derives bool) (found, derived bool) {
	tried := 0
	combine(c.units, nil, func(states []state) bool {
		if tried++; tried > maxFillings {
			found, derived = true, true
			return false
		}
		for method := range methodsOf(states) {
			f := filling{wish: w, states: states, method: method}
			if f.read() && (f.derived || !derives) && f.try() {
				found, derived = true, f.derived
				return false
			}
		}
		return true
	})
	return found, derived
}

// methodsOf visits the methods that the arguments could name: one, unless there is
// such an argument.
func methodsOf(states []state) iter.Seq[string] {
	return func(yield func(string) bool) {
		named := slices.ContainsFunc(states, func(s state) bool {
			return s.present && slices.ContainsFunc(s.node.roles, func(r role) bool { _, ok := r.reads.(request); return ok })
		})
		if !named {
			yield("GET")
			return
		}
		for _, m := range []string{"GET", "POST", "PUT", "DELETE"} {
			if !yield(m) {
				return
			}
		}
	}
}
