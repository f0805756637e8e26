package mapping

import (
	"maps"
	"slices"
	"strings"

	"capgate/wire"
)

// gift is what is given at a place.
type gift struct {
	kind  wire.Kind
	words []string
	inner []inner
}

// inner is a text under a name: inside a value that is not looked at, or besides
// all arguments that have a role.
type inner struct{ name, text string }

// takes reports whether a call that says nothing of what the tool does can give an
// argument of a name, as grants of tool.invoke name it.
func (w *wish) takes(name string) bool {
	if w.tool == nil {
		return true
	}
	if _, _, ok := w.tool.args.reach(name); ok {
		return true
	}
	return w.tool.open && name != prototype && !w.tool.args.folded(name)
}

// give gives it.
func (w *wish) give(name, text string) {
	if w.tool != nil {
		if n, rest, ok := w.tool.args.reach(name); ok {
			if w.given[n] == nil {
				w.given[n] = &gift{}
			}
			w.given[n].inner = append(w.given[n].inner, inner{rest, text})
			return
		}
	}
	w.loose = append(w.loose, inner{name, text})
}

// reach finds the place where a text can stand under a name, and the rest of the
// name inside the value there.
func (n *node) reach(name string) (at *node, rest string, ok bool) {
	if len(n.roles) > 0 && !slices.ContainsFunc(n.roles, func(r role) bool { return !r.holds(name) }) {
		return n, name, true
	}
	for _, m := range n.members {
		own := argName(m.name)
		after, below := strings.CutPrefix(name, own+".")
		if below || name == own {
			if !below {
				after = ""
			}
			if at, rest, ok = m.reach(after); ok {
				return at, rest, true
			}
		}
	}
	if n.elements != nil {
		return n.elements.reach(name)
	}
	return nil, "", false
}

// holds reports whether a value can hold a text under a name, the value itself
// under none, without saying what the tool does.
func (r role) holds(name string) bool {
	switch reads := r.reads.(type) {
	case free:
		return true
	case secret, method:
		return name == ""
	case headers:
		return isHeader(name) && slices.Contains(reads.names, strings.ToLower(name))
	}
	return false
}

// text writes the arguments.
func (w *wish) text() string {
	var members []byte
	if w.tool != nil {
		members = w.members(w.tool.args)
	}
	return "{" + string(nested(members, w.loose)) + "}"
}

// nested writes what is given under names that may lead into objects, without the braces.
func nested(text []byte, all []inner) []byte {
	below := map[string][]inner{}
	for _, i := range all {
		switch first, rest, leads := cutStep(i.name); {
		case leads:
			below[first] = append(below[first], inner{rest, i.text})
		default:
			text = member(text, first, scalar(i.text))
		}
	}
	for _, first := range slices.Sorted(maps.Keys(below)) {
		text = member(text, first, object(nested(nil, below[first])))
	}
	return text
}

// cutStep cuts off the first step of an argument's name.
func cutStep(name string) (first, rest string, leads bool) {
	var step strings.Builder
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] == '.':
			return step.String(), name[i+1:], true
		case name[i] == '\\' && i+1 < len(name):
			i++
		}
		step.WriteByte(name[i])
	}
	return step.String(), "", false
}

// scalar writes a text, or what it says where a text counts for nothing.
func scalar(text string) []byte {
	if isLiteral(text) {
		return []byte(text)
	}
	return wire.AppendString(nil, text)
}

func object(members []byte) []byte { return append(append([]byte("{"), members...), '}') }

// members writes what is given inside an object, without the braces.
func (w *wish) members(n *node) (text []byte) {
	for _, m := range n.members {
		if value := w.value(m); value != nil {
			text = member(text, m.name, value)
		}
	}
	return text
}

func member(text []byte, name string, value []byte) []byte {
	if len(text) > 0 {
		text = append(text, ',')
	}
	text = append(wire.AppendString(text, name), ':')
	return append(text, value...)
}

// value writes what is given at a place or inside it, nil if that is nothing.
func (w *wish) value(n *node) []byte {
	if g := w.given[n]; g != nil {
		return g.value()
	}
	if n.elements != nil {
		if element := w.value(n.elements); element != nil {
			return append(append([]byte("["), element...), ']')
		}
	}
	if members := w.members(n); members != nil {
		return object(members)
	}
	return nil
}

func (g *gift) value() []byte {
	var values [][]byte
	for _, word := range g.words {
		values = append(values, wire.AppendString(nil, word))
	}
	var within []inner
	for _, i := range g.inner {
		if i.name == "" {
			values = append(values, scalar(i.text))
		} else {
			within = append(within, i)
		}
	}
	if len(within) > 0 || g.kind == wire.Object {
		values = append(values[:len(values):len(values)], object(nested(nil, within)))
	}
	if g.kind != wire.Array && len(values) == 1 {
		return values[0]
	}
	text := []byte("[")
	for i, v := range values {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, v...)
	}
	return append(text, ']')
}
