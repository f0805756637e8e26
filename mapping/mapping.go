package mapping

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Mapping is what is known of the tools, prompts and resources of one kind of
// server. It is immutable; the nil Mapping knows none.
type Mapping struct {
	server    string
	tools     map[string]*Tool
	names     []string // of the tools, sorted
	prompts   map[string]*Tool
	resources []resource
	declares  *yaml.Node // nil when nothing is declared
	file      string
	digest    [sha256.Size]byte // of its bytes
}

// Digest names what the mapping says: it changes with every byte of its file.
func (m *Mapping) Digest() string { return hex.EncodeToString(m.digest[:]) }

// Server returns the name that the mapping gives the kind of server.
func (m *Mapping) Server() string {
	if m == nil {
		return ""
	}
	return m.server
}

// Names returns the names of the tools that the mapping covers, sorted.
func (m *Mapping) Names() []string {
	if m == nil {
		return nil
	}
	return slices.Clone(m.names)
}

// Tool finds a tool by the name its server gives it, exactly. It returns nil, the
// unmapped tool, for one that the mapping does not cover.
func (m *Mapping) Tool(name string) *Tool {
	if m == nil {
		return nil
	}
	return m.tools[name]
}

// Declares reports whether the mapping says what its kind of server touches,
// where the configuration does not.
func (m *Mapping) Declares() bool { return m != nil && m.declares != nil }

// Declaration has that read by whoever knows how declarations are written, and
// returns what they make of it: nothing when the mapping declares nothing, which
// is not the same as declaring that nothing is touched.
func (m *Mapping) Declaration(read func(node *yaml.Node, file string) ([]capability.Spec, []capability.Finding, error)) ([]capability.Spec, []capability.Finding, error) {
	if !m.Declares() {
		return nil, nil, nil
	}
	return read(m.declares, m.file)
}

// Tool is what a mapping says of one tool, or of one prompt. It is immutable; the
// nil Tool is any tool that no mapping covers, and needs tool.invoke.
type Tool struct {
	name    string
	of      *Mapping
	args    *node
	fixed   []fixed
	open    bool // additional: free
	prompt  bool // it is a prompt, which needs prompt.get whatever else it needs
	texts   bool // any text may be given: a prompt that no mapping covers
	labels  []string
	pos     capability.Pos
	choices [][]capability.Verb
	surface []capability.Verb
}

// Pos returns where the tool stands in its mapping.
func (t *Tool) Pos() capability.Pos {
	if t == nil {
		return capability.Pos{}
	}
	return t.pos
}

// Arguments returns the arguments that have a role, as a mapping writes them:
// "edits[*].file.path".
func (t *Tool) Arguments() []string {
	if t == nil {
		return nil
	}
	var paths []string
	t.args.each("", func(at string, _ *role) { paths = append(paths, at) })
	return slices.Compact(paths) // a place may have several roles
}

// Labels returns what the tool is to the toxic-flow check.
func (t *Tool) Labels() []string {
	if t == nil {
		return nil
	}
	return slices.Clone(t.labels)
}

// Verbs returns what every call of the tool needs, whatever its arguments: of
// each of the lists one verb. It is what can be asked before a call is read, and
// what a tool must be able to get before it is worth listing.
func (t *Tool) Verbs() [][]capability.Verb {
	if t == nil {
		return [][]capability.Verb{{invoke}}
	}
	choices := make([][]capability.Verb, len(t.choices))
	for i, c := range t.choices {
		choices[i] = slices.Clone(c)
	}
	return choices
}

// Lacking returns a verb of those that every call of the tool needs and that, with
// its alternatives, is not held; "" when nothing is missing. It says no more than
// Verbs, without a copy of it.
func (t *Tool) Lacking(holds func(capability.Verb) bool) capability.Verb {
	if t == nil {
		if !holds(invoke) {
			return invoke
		}
		return ""
	}
	for _, alternatives := range t.choices {
		if !slices.ContainsFunc(alternatives, holds) {
			return alternatives[0] // settle keeps no empty list
		}
	}
	return ""
}

// Surface returns every verb that some call of the tool may need, sorted.
func (t *Tool) Surface() []capability.Verb {
	if t == nil {
		return []capability.Verb{invoke}
	}
	return slices.Clone(t.surface)
}

// settle works out which verbs the tool needs, once its roles are known.
func (t *Tool) settle() {
	add := func(verbs []capability.Verb) {
		if len(verbs) > 0 && !slices.ContainsFunc(t.choices, func(c []capability.Verb) bool { return slices.Equal(c, verbs) }) {
			t.choices = append(t.choices, verbs)
		}
	}
	for _, f := range t.fixed {
		t.surface = append(t.surface, f.verb)
		add([]capability.Verb{f.verb})
	}
	var perhaps []capability.Verb
	if t.prompt {
		t.surface = append(t.surface, getPrompt)
		add([]capability.Verb{getPrompt})
	}
	t.args.each("", func(_ string, r *role) {
		verbs := r.reads.verbs()
		t.surface = append(t.surface, verbs...)
		switch {
		case !r.reads.derives():
		case r.optional:
			perhaps = append(perhaps, verbs...)
		default:
			add(verbs)
		}
	})
	if t.open {
		t.surface = append(t.surface, additional)
	}
	if len(t.choices) == 0 { // what derives nothing is called by name
		t.surface = append(t.surface, invoke)
		add(distinct(append(perhaps, invoke)))
	}
	t.surface = distinct(t.surface)
}

// distinct sorts verbs and leaves each in once.
func distinct(verbs []capability.Verb) []capability.Verb {
	slices.Sort(verbs)
	return slices.Compact(verbs)
}
