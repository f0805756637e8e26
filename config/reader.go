package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// reader turns the nodes of one file into values, and notes every fault it meets
// instead of stopping at the first.
type reader struct {
	*faults
	dir      string // the folder of the file, which relative paths hang from
	view     capability.View
	findings []capability.Finding
	root     *yaml.Node        // of the document
	later    []func(c *Config) // what can only be looked at when every section is read
}

// wrote reports whether a section stands in the file, be it right or wrong.
func (r *reader) wrote(section string) bool { return value(r.root, section) != nil }

// fill reads a map by its table. What the table does not know, or knows and this
// version does not serve, is a fault; ok is false if there was one, so that the
// lack of a key that was mistyped is not held against the map as well.
func fill[T any](r *reader, n *yaml.Node, what string, keys []key[T], into *T) (ok bool) {
	if n.Kind != yaml.MappingNode {
		r.at(n, "write "+names(keys), "%s takes a map, not %s", what, describe(n))
		return false
	}
	ok = true
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		at := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == name.Value })
		switch {
		case at < 0:
			ok = false
			r.unknown(name, what, names(keys), candidates(keys))
		case keys[at].read == nil:
			ok = false
			r.at(name, "remove it; what can be written here is "+names(keys), "%s: not in this version", name.Value)
		default:
			keys[at].read(r, value, into)
		}
	}
	return ok
}

// value returns what stands under a key of a map, nil if it is not there.
func value(n *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i+1]
		}
	}
	return nil
}

// lacks reports whether a map has none of the keys, or only empty lists there.
func lacks(n *yaml.Node, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		v := value(n, name)
		return v != nil && (v.Kind != yaml.SequenceNode || len(v.Content) > 0)
	})
}

func (r *reader) unknown(name *yaml.Node, what, known string, all []string) {
	r.at(name, meant(name.Value, all, "what can be written here is "+known), "%q is no key of %s", clip(name.Value), what)
}

// meant asks whether a word was to be another one; where none is near, the hint
// is what else there is to say.
func meant(word string, all []string, otherwise string) string {
	if near := capability.Closest(word, all); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// candidates returns the names that a mistyped one may have meant; those of later
// versions are among them, so that the next try is told so.
func candidates[T any](keys []key[T]) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.name
	}
	return list
}

// names lists what this version takes, for a hint.
func names[T any](keys []key[T]) string {
	var list []string
	for _, k := range keys {
		if k.read != nil {
			list = append(list, k.name)
		}
	}
	return strings.Join(list, ", ")
}

// each visits the entries of a list.
func (r *reader) each(n *yaml.Node, what, takes string, visit func(n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.at(n, "write each entry on a line of its own, after a dash", "%s takes %s, not %s", what, takes, describe(n))
		return
	}
	for _, entry := range n.Content {
		visit(entry)
	}
}

// entries visits the members of a map whose keys are names.
func (r *reader) entries(n *yaml.Node, what, takes string, visit func(name, n *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.at(n, "write each name with a colon, and what belongs to it behind", "%s takes %s, not %s", what, takes, describe(n))
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		visit(n.Content[i], n.Content[i+1])
	}
}
