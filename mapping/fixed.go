package mapping

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// fixed is something that every call of a tool needs.
type fixed struct {
	verb  capability.Verb
	text  string                  // in compact form
	ready *capability.Requirement // nil when the upstream's view decides what it is
}

// requires reads a list of requirements: in compact form, or the verb with what
// it touches.
func (b *builder) requires(n *yaml.Node) error {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxArguments {
		return b.wrong(n, asArgument(keyRequires), "requires: takes a list of 1 to %d requirements", maxArguments)
	}
	for _, c := range n.Content {
		switch {
		case isText(c):
			if err := b.require(c, c.Value); err != nil {
				return err
			}
		case c.Kind != yaml.MappingNode || len(c.Content) != 2:
			return b.wrong(c, "write each after a dash", "a requirement is text or a map with one verb")
		default:
			if err := b.touched(c.Content[0], c.Content[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// touched reads verb: value, or verb: [values].
func (b *builder) touched(verb, value *yaml.Node) error {
	e, ok := capability.Lookup(capability.Verb(verb.Value))
	if !ok {
		return b.unknown(verb, "verb", verbNames())
	}
	values := []*yaml.Node{value}
	if value.Kind == yaml.SequenceNode {
		values = value.Content
	}
	if len(values) == 0 {
		return b.wrong(value, "", "%s: names nothing", verb.Value)
	}
	for _, v := range values {
		text, err := b.text(v, verb.Value+":")
		if err != nil {
			return err
		}
		key := objectKey(e, text)
		if key == "" {
			return b.wrong(v, fmt.Sprintf("write - %s", e.Verb), "%s touches nothing that has a name", e.Verb)
		}
		if err := b.require(v, capability.Spec{Verb: string(e.Verb)}.With(key, text).String()); err != nil {
			return err
		}
	}
	return nil
}

// objectKey is what the compact form calls the thing that a verb touches.
func objectKey(e capability.Entry, text string) string {
	switch e.Verb.Resource() {
	case "fs":
		return "path"
	case "proc":
		return "command"
	case "net":
		if strings.Contains(text, "://") {
			return "url"
		}
		return "host"
	}
	return append(wordDims(e), "")[0]
}

func (b *builder) require(n *yaml.Node, text string) error {
	q, err := capability.ParseRequirement(text, probeView())
	if err != nil {
		return b.wrong(n, "", "%v", err)
	}
	if why := q.Opaque(); why != "" {
		return b.wrong(n, "", "no grant could cover %s: %s", text, why)
	}
	f := fixed{verb: q.Verb(), text: text, ready: q}
	if r := f.verb.Resource(); r == "fs" || r == "proc" {
		f.ready = nil
	}
	b.tool.fixed = append(b.tool.fixed, f)
	return nil
}

// fixed adds what does not depend on the arguments.
func (r *reading) fixed(f fixed) (err error) {
	q := f.ready
	if q == nil {
		q, err = capability.ParseRequirement(f.text, r.View)
	}
	r.derived = true
	return r.need(place{}, q, err)
}

// probeView is a view that knows what any real one may know, to try what a
// mapping says before there is a call.
func probeView() capability.View { return capability.View{Cwd: "/", Home: "/"} }
