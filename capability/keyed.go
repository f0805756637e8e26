package capability

import (
	"fmt"
	"strings"

	"capgate/capability/pattern"
)

// SelfLog is the agent that obs.query means by itself: the one asking.
const SelfLog = "self"

const (
	agentPrefix = "agents/"
	argsDim     = "args"
)

// AgentID writes an agent's id in its one form: "scout" and "agents/scout" are
// the same agent. It returns "" for what cannot be an id.
func AgentID(text string) string {
	name := strings.TrimPrefix(text, agentPrefix)
	const maxID = 128
	if name == "" || len(name) > maxID || name == SelfLog {
		return ""
	}
	for seg := range strings.SplitSeq(name, "/") {
		if seg == "" || seg[0] == '.' || strings.ContainsFunc(seg, isNotIDRune) {
			return ""
		}
	}
	return agentPrefix + name
}

func isNotIDRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
}

// keyed compiles the scope of a verb whose requirements are words.
func (c *compiler) keyed(g *Grant) *refusal {
	names := g.entry.dims()
	g.dims = make([]dimension, len(names))
	for i, name := range names {
		d, err := c.dimension(g, name)
		if err != nil {
			return err
		}
		g.dims[i] = d
	}
	if first := g.entry.Keys[0]; g.spec.only(argsDim) {
		return refuse(codeEmpty, "%s: is missing", first.Name)
	}
	return c.args(g)
}

// dimension gathers the patterns of all keys that limit one dimension.
func (c *compiler) dimension(g *Grant, dim string) (dimension, *refusal) {
	d := dimension{any: true}
	for _, k := range g.entry.Keys {
		p, ok := g.spec.Get(k.Name)
		if k.Dim != dim || k.Type == ArgsKey || !ok {
			continue
		}
		d.any = false
		for _, v := range p.Values {
			if v == "*" || v == "**" {
				return dimension{any: true}, nil
			}
			pat, err := parseName(v, k.Type)
			if err != nil {
				return d, refuse(codeValue, "%s: %v", k.Name, err)
			}
			d.patterns = append(d.patterns, pat)
		}
	}
	if !d.any && len(d.patterns) == 0 {
		return d, refuse(codeEmpty, "its list of %s names is empty", dim)
	}
	return d, nil
}

// only reports whether the spec has no key but the one named.
func (s Spec) only(key string) bool {
	for _, p := range s.Scope {
		if p.Key != key {
			return false
		}
	}
	return true
}

// name is a pattern of words, and the same pattern with [given] before it, which
// tells a word that is there from one that a call leaves open.
type name struct {
	word, given *pattern.Pattern
}

// given marks a word that is there, where patterns are compared.
const given = "=/"

func newName(text string, sep rune) (name, error) {
	word, err := pattern.Parse(text, sep)
	if err != nil {
		return name{}, err
	}
	// Behind a slash a leading "**/" is still a whole segment.
	marked, err := pattern.Parse(given+text, sep)
	if err != nil { // the two characters are not the author's
		return name{}, fmt.Errorf("%q is too long", clip(text))
	}
	return name{word, marked}, nil
}

// parseName reads one name pattern by the type of its key.
func parseName(text string, t KeyType) (name, error) {
	switch t {
	case IDKey:
		if text == SelfLog || strings.HasPrefix(text, "*") || strings.HasPrefix(text, agentPrefix) {
			break
		}
		text = agentPrefix + text
	case RecordKey:
		if hasDotSegment(text) {
			return name{}, fmt.Errorf("%q holds an empty, . or .. segment", clip(text))
		}
		return newName(text, pattern.Slash)
	case DottedKey:
		return parseDotted(text)
	case URIKey:
		return newName(plainScheme(text), pattern.Query)
	}
	return newName(text, pattern.None)
}

// plainScheme writes a URI, or a pattern of some, with its scheme in the one form that all are compared
// in: the case of its letters means nothing.
func plainScheme(uri string) string {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || strings.ContainsFunc(scheme, func(r rune) bool { return isNotIDRune(r) && r != '+' }) {
		return uri
	}
	return strings.ToLower(scheme) + ":" + rest
}

// parseDotted reads a Rye id pattern: "*" stays within one dotted segment, but a
// final ".*" covers everything beneath.
func parseDotted(text string) (name, error) {
	switch {
	case strings.ContainsFunc(text, isNotRye) || strings.Contains(text, "**"):
		return name{}, fmt.Errorf("%q is no Rye id pattern", clip(text))
	case strings.HasSuffix(text, ".*"):
		text += "*"
	}
	return newName(text, pattern.Dot)
}

func (c *compiler) args(g *Grant) *refusal {
	p, ok := g.spec.Get(argsDim)
	if !ok {
		return nil
	}
	for _, a := range p.Args {
		rule := argRule{name: a.Key}
		for _, v := range a.Values {
			pat, err := newName(v, pattern.None)
			if err != nil {
				return refuse(codeValue, "args: %s: %v", clip(a.Key), err)
			}
			rule.patterns = append(rule.patterns, pat)
		}
		if len(rule.patterns) == 0 {
			return refuse(codeEmpty, "args: %s allows no value", clip(a.Key))
		}
		g.args = append(g.args, rule)
	}
	return nil
}

// keyedTable finds the grant that covers the words of a requirement. Grants that
// name their first word literally are found by it, whatever their number.
type keyedTable struct {
	exact   map[string][]*Grant
	rest    []*Grant
	limited map[string]bool // the arguments that some grant limits
}

func (t *keyedTable) add(g *Grant) {
	if t.exact == nil {
		t.exact, t.limited = map[string][]*Grant{}, map[string]bool{}
	}
	for _, rule := range g.args {
		t.limited[rule.name] = true
	}
	literals, ok := g.literals()
	if !ok || strings.HasPrefix(string(g.entry.Verb), searchPrefix) { // which may name nothing
		t.rest = append(t.rest, g)
	}
	for _, s := range literals {
		t.exact[s] = append(t.exact[s], g)
	}
}

// literals returns the words that the first dimension of a grant names, when it
// names them all without a wildcard.
func (g *Grant) literals() ([]string, bool) {
	if len(g.dims) == 0 || g.dims[0].any {
		return nil, false
	}
	var words []string
	for _, p := range g.dims[0].patterns {
		s, ok := p.word.Literal()
		if !ok {
			return nil, false
		}
		words = append(words, s)
	}
	return words, true
}

func (t *keyedTable) find(r *Requirement) *Grant {
	if len(r.words) > 0 {
		for _, g := range t.exact[r.words[0]] {
			if g.coversWords(r) {
				return g
			}
		}
	}
	for _, g := range t.rest {
		if g.coversWords(r) {
			return g
		}
	}
	return nil
}

// coversWords reports whether every word of a requirement is within the grant:
// all of them within this one grant. A search that names nothing is covered by
// any grant of the verb; what it shows is filtered.
func (g *Grant) coversWords(r *Requirement) bool {
	if !g.coversNames(r) {
		return false
	}
	for _, rule := range g.args {
		if !rule.allows(r) {
			return false
		}
	}
	return true
}

// coversNames is coversWords without the arguments of a tool.
func (g *Grant) coversNames(r *Requirement) bool {
	for i, d := range g.dims {
		if i < len(r.words) && !d.match(r.words[i]) {
			return false
		}
	}
	return r.odd == "" || g.dims[0].matchAll(r.words[0], r.scheme)
}

// allows reports whether a call has the argument, with a value that the rule allows.
func (a argRule) allows(r *Requirement) bool {
	value, ok := r.arg(a.name)
	return ok && dimension{patterns: a.patterns}.match(value)
}
