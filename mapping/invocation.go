package mapping

import (
	"slices"
	"strings"

	"capgate/capability"
	"capgate/wire"
)

// invoke is the verb under which a tool is called by its name.
const invoke = capability.Verb("tool.invoke")

const (
	maxScalars     = 4096 // values in a call that grants of tool.invoke are held against
	maxNames       = 256  // names among them
	maxScalar      = 4096 // bytes of one of them
	maxInvocations = 64   // values of one name, and combinations of all
)

// invocations adds the requirement to call the tool by its name, with the
// arguments that a grant may limit. One that has several values needs each of
// them. An argument that is too much to be written out is left out: then only a
// grant that does not limit it covers the call.
func (r *reading) invocations() error {
	if r.Name == "" {
		return malformed("", "names no tool")
	}
	s := scalars{limits: r.Limits}
	for key, member := range r.Args.Members() {
		text, _ := key.Str()
		s.collect(argName(text), text, member)
	}
	args, combinations := s.combine()
	words := make([]capability.Word, 1+len(args))
	words[0] = capability.Word{Dim: "tool", Value: r.Name}
	for n := range combinations {
		rest := n
		for i, a := range args {
			words[1+i] = capability.Word{Dim: "args." + a.name, Value: a.values[rest%len(a.values)]}
			rest /= len(a.values)
		}
		q, err := capability.Keyed(invoke, words...)
		if err := r.need(place{}, q, err); err != nil {
			return err
		}
	}
	return nil
}

// scalars are the texts, numbers and truth values of a call, by the names of
// their arguments; those inside objects as "repo.owner".
type scalars struct {
	args   []argument
	count  int
	limits func(argument string) bool
}

// argument is everything that a call gives under one name.
type argument struct {
	name   string
	values []string
	given  bool // as the argument; else by something whose name only reads like it
	over   bool // there is more than can be held against a grant, or something else
}

// argName is the name of a member as grants write it, in which a dot leads into an object.
func argName(name string) string {
	if !strings.ContainsAny(name, `\.`) {
		return name
	}
	return strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(name)
}

// combine returns the arguments that can be written out, and how many
// combinations of their values there are.
func (s *scalars) combine() ([]argument, int) {
	if s.count > maxScalars || len(s.args) > maxNames {
		return nil, 1
	}
	args := slices.DeleteFunc(s.args, func(a argument) bool { return a.over || !a.given })
	combinations := 1
	for _, a := range args {
		if combinations *= len(a.values); combinations > maxInvocations {
			return slices.DeleteFunc(args, func(a argument) bool { return len(a.values) > 1 }), 1
		}
	}
	return args, combinations
}

// collect adds what stands at a name, and at another that it reads like to who takes a dot in
// the name of a member for a step.
func (s *scalars) collect(name, alike string, v wire.Value) {
	if s.count > maxScalars || len(s.args) > maxNames {
		return
	}
	switch v.Kind() {
	case wire.Null: // as if it were not there
	case wire.Object:
		for key, member := range v.Members() {
			text, _ := key.Str()
			under := name + "." + argName(text)
			like := under
			if name != alike || under != inside(name, text) {
				like = inside(alike, text)
			}
			s.collect(under, like, member)
		}
	case wire.Array:
		s.elements(name, alike, v)
	default:
		value, isText := v.Str()
		if !isText {
			value = string(v.Raw())
		}
		// To some reader a text is what it says, to another one true; nobody who wrote ??? meant 9e9.
		odd := isText && isLiteral(value) || v.Kind() == wire.Number && strings.ContainsAny(value, "eE")
		s.add(name, value, true, odd)
		if alike != name {
			s.add(alike, value, false, odd)
		}
	}
}

// elements adds those of an array, which are scalars, or objects that all have the same
// arguments. Of anything else nobody knows what a reader makes.
func (s *scalars) elements(name, alike string, array wire.Value) {
	within := scalars{limits: s.limits, count: s.count}
	found, objects, nested := map[string]int{}, 0, false
	for elem := range array.Elems() {
		one := scalars{limits: s.limits, count: within.count}
		switch elem.Kind() {
		case wire.Object:
			objects++
			one.collect(name, alike, elem)
		case wire.Array:
			nested = true
			one.collect(name, alike, elem)
		case wire.Null, wire.Bool:
			one.count++
			one.add(name, string(elem.Raw()), true, true)
		default:
			one.collect(name, alike, elem)
		}
		within.count = one.count
		for _, a := range one.args {
			found[a.name]++
			within.merge(a)
		}
	}
	s.count = within.count
	for _, a := range within.args {
		a.over = a.over || nested || objects > 0 && found[a.name] < array.Len()
		s.merge(a)
	}
}

func (s *scalars) add(name, value string, given, over bool) {
	if s.count++; s.limits != nil && !s.limits(name) {
		return
	}
	s.merge(argument{name, []string{value}, given, over || len(value) > maxScalar})
}

// merge adds what else is given under a name.
func (s *scalars) merge(more argument) {
	i := slices.IndexFunc(s.args, func(a argument) bool { return a.name == more.name })
	if i < 0 {
		s.args = append(s.args, more)
		return
	}
	a := &s.args[i]
	a.given, a.over = a.given || more.given, a.over || more.over
	for _, value := range more.values {
		switch {
		case a.over || slices.Contains(a.values, value):
		case len(a.values) == maxInvocations:
			a.over = true
		default:
			a.values = append(a.values, value)
		}
	}
}

// isLiteral reports whether a text is what JSON writes for something that is no text.
func isLiteral(text string) bool { return text == "true" || text == "false" || text == "null" }
