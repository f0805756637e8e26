package agents

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

const (
	maxEntries = 4096 // grants in one list
	maxKeys    = 16   // scope keys in one grant
)

// entry is one item of a list of grants.
type entry struct {
	node *yaml.Node
	spec capability.Spec
	bad  bool   // it could not be read and was left out
	verb string // the verb, as far as a bad one shows it
}

// specsOf returns the grants of the entries that could be read.
func specsOf(entries []entry) []capability.Spec {
	specs := make([]capability.Spec, 0, len(entries))
	for _, e := range entries {
		if !e.bad {
			specs = append(specs, e.spec)
		}
	}
	return specs
}

// list reads a list of grants. An entry that cannot be read is left out, and a
// finding says so.
func (p *parser) list(key string, list *yaml.Node) ([]entry, error) {
	switch {
	case list.Kind != yaml.SequenceNode:
		return nil, p.wrong(list, "write each grant in a line of its own, behind a dash and a blank, or [] for none", "%s: takes a list of grants, not %s", key, nounOf(list))
	case len(list.Content) > maxEntries:
		return nil, p.wrong(list, "", "%s: has more than %d grants", key, maxEntries)
	}
	entries := make([]entry, 0, len(list.Content))
	for i, n := range list.Content {
		e, bad := p.entry(n)
		if bad == nil && i == len(list.Content)-1 {
			bad = p.strayed(list)
		}
		if bad != nil {
			e.bad = true
			p.say(capability.Error, string(capability.InvalidGrant), bad.Pos, bad.Text+"; the entry was left out", bad.Hint)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// entry reads one grant: text in compact form, or a map with the verb as its
// only key.
func (p *parser) entry(n *yaml.Node) (e entry, bad *Invalid) {
	e.node = n
	switch {
	case isText(n):
		e.verb, _, _ = strings.Cut(strings.TrimSpace(n.Value), ":")
		e.verb, _, _ = strings.Cut(e.verb, "{")
		spec, err := capability.ParseSpec(n.Value)
		if err != nil {
			return e, p.wrong(n, "", "%v", err)
		}
		e.spec = spec
	case n.Kind != yaml.MappingNode:
		return e, p.wrong(n, "", "a grant is text or a map with one verb, not %s", nounOf(n))
	case len(n.Content) != 2:
		return e, p.severalKeys(n)
	default:
		e.verb = n.Content[0].Value
		spec, bad := p.mapped(n.Content[0], n.Content[1])
		if bad != nil {
			return e, bad
		}
		e.spec = spec
	}
	e.verb, e.spec.Pos = e.spec.Verb, p.pos(n)
	return e, nil
}

// severalKeys says what is wrong with a map that is to be one grant: mostly, the
// scope stands beside the verb and not beneath it.
func (p *parser) severalKeys(n *yaml.Node) *Invalid {
	if len(n.Content) > 2 {
		if bad := p.beside(n.Content[0], n.Content[1], n.Content[2]); bad != nil {
			return bad
		}
	}
	return p.wrong(n, "begin each verb with a dash", "a grant is a map with exactly one verb, not %d", len(n.Content)/2)
}

// beside is not nil for a verb that nothing is said of, when what follows in the
// file is a key of its scope.
func (p *parser) beside(verb, value, next *yaml.Node) *Invalid {
	entry, _ := capability.Lookup(capability.Verb(verb.Value))
	if _, ok := entry.Key(next.Value); !ok || !isNull(value) {
		return nil
	}
	hint := fmt.Sprintf("indent %s: further than %s:, or write - %s: { %s: … }", next.Value, verb.Value, verb.Value, next.Value)
	return p.wrong(next, hint, "%s: stands beside %s: and not beneath it", next.Value, verb.Value)
}

// strayed is not nil when the scope of the last grant of a list stands after the
// list, as a key of the record: without it, the grant could be wider than was meant.
func (p *parser) strayed(list *yaml.Node) *Invalid {
	at := slices.Index(p.root.Content, list)
	if at < 0 || at+1 == len(p.root.Content) || len(list.Content) == 0 {
		return nil
	}
	last := list.Content[len(list.Content)-1]
	if last.Kind != yaml.MappingNode || len(last.Content) != 2 {
		return nil
	}
	return p.beside(last.Content[0], last.Content[1], p.root.Content[at+1])
}

// scoped is what to write instead of a word that no scope can follow.
func (p *parser) scoped(word string) string {
	if near := capability.Closest(strings.ToLower(word), verbNames()); near != "" && !strings.ContainsAny(word, "{:*") {
		return "did you mean " + near + "?"
	}
	return "a token stands alone, without a colon after it"
}

// mapped reads verb: { key: values }.
func (p *parser) mapped(key, value *yaml.Node) (capability.Spec, *Invalid) {
	verb, err := capability.ParseSpec(key.Value)
	switch {
	case err != nil || !verb.Bare || verb.Verb != key.Value || strings.ContainsAny(key.Value, "{:*"):
		return capability.Spec{}, p.wrong(key, p.scoped(key.Value), "%q is no verb that a scope can follow", key.Value)
	case isNull(value) && p.rec.Dialect == capability.Scarab:
		return capability.Spec{}, p.wrong(key, fmt.Sprintf("write - %s for all of it", verb.Verb), "%s: has no scope after the colon", verb.Verb)
	case isNull(value):
		return verb, nil
	case value.Kind != yaml.MappingNode:
		return capability.Spec{}, p.wrong(value, "", "the scope of %s is a map of keys, not %s", verb.Verb, nounOf(value))
	case len(value.Content)/2 > maxKeys:
		return capability.Spec{}, p.wrong(value, "", "the scope of %s has more than %d keys", verb.Verb, maxKeys)
	}
	spec := capability.Spec{Verb: verb.Verb, Scope: []capability.Param{}}
	for i := 0; i < len(value.Content); i += 2 {
		spec.Scope = append(spec.Scope, p.param(value.Content[i], value.Content[i+1], true))
	}
	// What can be written in a record can be written on the command line, so
	// that every grant that is shown can also be revoked.
	if back, err := capability.ParseSpec(spec.String()); err != nil {
		return spec, p.wrong(value, "", "%v", err)
	} else if !back.Equal(spec) {
		return spec, p.wrong(value, "", "the scope of %s cannot be written in compact form", verb.Verb)
	}
	return spec, nil
}

// param reads one scope key. What is no text is noted, for the compiler to
// refuse with the type that the key takes.
func (p *parser) param(key, value *yaml.Node, mayNest bool) capability.Param {
	out := capability.Param{Key: key.Value, Pos: p.pos(key)}
	switch {
	case value.Kind == yaml.SequenceNode:
		out.Values = make([]string, 0, len(value.Content))
		for _, v := range value.Content {
			take(&out, v)
		}
	case value.Kind == yaml.MappingNode && mayNest:
		out.IsMap, out.Args = true, []capability.Param{}
		for i := 0; i < len(value.Content); i += 2 {
			out.Args = append(out.Args, p.param(value.Content[i], value.Content[i+1], false))
		}
	default:
		out.Single = true
		take(&out, value)
	}
	return out
}

// take adds one value to a scope key, or notes why it is none.
func take(out *capability.Param, v *yaml.Node) {
	switch {
	case !isText(v):
		out.Wrong = nounOf(v)
	case strings.ContainsFunc(v.Value, isControl):
		out.Wrong = "text with control characters"
	default:
		out.Values = append(out.Values, v.Value)
	}
}

// resources returns what the verbs of the catalogue act on.
func resources() []string {
	var names []string
	for _, e := range capability.Catalogue() {
		if r := e.Verb.Resource(); !slices.Contains(names, r) {
			names = append(names, r)
		}
	}
	return names
}
