package mapping

import (
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
	if len(n.roles) > 0 {
		return n, name, !slices.ContainsFunc(n.roles, func(r role) bool { return !r.holds(name) })
	}
	for _, m := range n.members {
		after, below := strings.CutPrefix(name, m.name+".")
		if below || name == m.name {
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
	for _, i := range w.loose {
		members = member(members, i.name, wire.AppendString(nil, i.text))
	}
	return "{" + string(members) + "}"
}

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
		return append(append([]byte("{"), members...), '}')
	}
	return nil
}

func (g *gift) value() []byte {
	var values [][]byte
	for _, word := range g.words {
		values = append(values, wire.AppendString(nil, word))
	}
	var members []byte
	for _, i := range g.inner {
		if i.name == "" {
			values = append(values, wire.AppendString(nil, i.text))
		} else {
			members = member(members, i.name, wire.AppendString(nil, i.text))
		}
	}
	if len(members) > 0 || g.kind == wire.Object {
		values = append(values[:len(values):len(values)], append(append([]byte("{"), members...), '}'))
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
