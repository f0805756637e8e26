package mapping

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/wire"
)

const (
	maxArgument = 256 // bytes of one argument's path in a mapping
	maxSegments = 16  // steps of it
)

// segment is one step of an argument's path: a member of an object, or with an
// empty name each element of an array.
type segment struct {
	name string
	each bool
}

// parseArgument reads the path of an argument: names with dots between them, and
// [*] or [] for each element of an array. A dot in front says that what follows
// is an argument, whatever its name; a backslash takes a character as it is.
func parseArgument(text string) ([]segment, error) {
	if len(text) > maxArgument || !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, fmt.Errorf("the path of an argument is over %d bytes or holds control characters", maxArgument)
	}
	var path []segment
	for rest := "." + strings.TrimPrefix(text, "."); rest != ""; {
		var s segment
		var err error
		if s, rest, err = nextSegment(rest); err != nil {
			return nil, fmt.Errorf("the argument %q %w", text, err)
		}
		if path = append(path, s); len(path) > maxSegments {
			return nil, fmt.Errorf("the argument %q has more than %d steps", text, maxSegments)
		}
	}
	return path, nil
}

// nextSegment reads one step. The error finishes the sentence "the argument …".
func nextSegment(text string) (s segment, rest string, err error) {
	for _, each := range []string{"[*]", "[]"} {
		if after, ok := strings.CutPrefix(text, each); ok {
			return segment{each: true}, after, nil
		}
	}
	if text[0] != '.' {
		return s, "", fmt.Errorf(`has %q where a dot or [*] belongs`, text)
	}
	var name strings.Builder
	i := 1
	for ; i < len(text) && text[i] != '.' && text[i] != '['; i++ {
		if text[i] == '\\' {
			i++
		}
		if i == len(text) || text[i] == ']' && text[i-1] != '\\' {
			return s, "", fmt.Errorf("ends in a backslash or has a bracket that nothing opens")
		}
		name.WriteByte(text[i])
	}
	if name.Len() == 0 {
		return s, "", fmt.Errorf("has an empty step")
	}
	return segment{name: name.String()}, text[i:], nil
}

// node is what a mapping says of one place in the arguments of a tool. What has
// members is an object, what has elements an array, what has roles a value; a
// place may be a value or an array, where a tool takes one or many.
type node struct {
	name     string // as a member, "" for elements and for the arguments themselves
	members  []*node
	elements *node
	roles    []role
}

// at finds the place that a path leads to, and makes it if it is not there.
func (n *node) at(path []segment) *node {
	for _, s := range path {
		switch next := n.member(s.name); {
		case s.each:
			if n.elements == nil {
				n.elements = &node{}
			}
			n = n.elements
		case next != nil:
			n = next
		default:
			next = &node{name: s.name}
			n.members = append(n.members, next)
			n = next
		}
	}
	return n
}

func (n *node) member(name string) *node {
	for _, m := range n.members {
		if m.name == name {
			return m
		}
	}
	return nil
}

// each visits the roles at a place and inside it, with the path to each.
func (n *node) each(at string, visit func(at string, r *role)) {
	for i := range n.roles {
		visit(at, &n.roles[i])
	}
	for _, m := range n.members {
		m.each(inside(at, escapeName(m.name)), visit)
	}
	if n.elements != nil {
		n.elements.each(at+"[*]", visit)
	}
}

func escapeName(name string) string { return nameEscapes.Replace(name) }

var nameEscapes = strings.NewReplacer(`\`, `\\`, `.`, `\.`, `[`, `\[`, `]`, `\]`)

// inside writes the path of a member.
func inside(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// takes says what kinds of value a place takes, as it stands in a sentence.
func (n *node) takes() string {
	switch {
	case n.elements != nil:
		return "an array"
	case len(n.members) > 0:
		return "an object"
	}
	return "another kind of value"
}

// place is one value of a call, and where it stands.
type place struct {
	value  wire.Value
	object wire.Value // the innermost object around it
	name   string     // "edits[1].file.path"
}

// text returns the text of a value that must be text.
func (at place) text() (string, error) {
	if text, ok := at.value.Str(); ok {
		return text, nil
	}
	return "", at.wrong("text")
}

// wrong refuses a value that is of another kind than its role reads.
func (at place) wrong(want string) error {
	return malformed(at.name, "is %s, where %s belongs", kindOf(at.value), want)
}

// kindOf says what a value is, as it stands in a sentence.
func kindOf(v wire.Value) string {
	switch v.Kind() {
	case wire.String:
		return "text"
	case wire.Array, wire.Object:
		return "an " + v.Kind().String()
	case wire.Bool, wire.Number:
		return "a " + v.Kind().String()
	default:
		return "null"
	}
}

// texts returns the texts of an array that must hold nothing else.
func (at place) texts() ([]string, error) {
	if at.value.Kind() != wire.Array {
		return nil, at.wrong("an array of text")
	}
	list := make([]string, 0, min(at.value.Len(), most))
	for elem := range at.value.Elems() {
		text, ok := elem.Str()
		if !ok {
			return nil, at.wrong("an array of nothing but text")
		}
		if list = append(list, text); len(list) > most {
			return nil, tooMany(at.name, "values")
		}
	}
	return list, nil
}
