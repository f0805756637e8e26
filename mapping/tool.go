package mapping

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/wire"
)

const (
	maxTools     = 4096 // of one mapping
	maxArguments = 512  // of one tool, and entries of its requires:
	maxToolName  = 256  // bytes
)

// Parse reads a mapping strictly: what it does not know is an error, always an
// [*Invalid]. File is the name that errors and findings give the text.
func Parse(file string, data []byte) (*Mapping, []capability.Finding, error) {
	d := document{file: file}
	root, err := d.read(data)
	if err != nil {
		return nil, nil, err
	}
	m := &Mapping{tools: map[string]*Tool{}, prompts: map[string]*Tool{}, digest: sha256.Sum256(data)}
	for key, value := range pairs(root) {
		if err := d.section(m, key, value); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case m.server == "":
		return nil, nil, d.wrong(root, "add server: with the name of the kind of server", "the mapping names no server")
	case m.names == nil && len(m.prompts) == 0 && len(m.resources) == 0:
		return nil, nil, d.wrong(root, "add tools:", "the mapping has no tools")
	}
	return m, d.findings, nil
}

// section reads one of the keys of a mapping.
func (d *document) section(m *Mapping, key, value *yaml.Node) (err error) {
	switch key.Value {
	case "server":
		m.server, err = d.text(value, "server:")
	case "tools":
		err = d.tools(m, m.tools, "tool", value)
		m.names = append([]string{}, slices.Sorted(maps.Keys(m.tools))...)
	case "prompts":
		err = d.tools(m, m.prompts, "prompt", value)
	case "resources":
		err = d.resources(m, value)
	case "declares":
		m.declares, m.file = value, d.file
		if value.Kind != yaml.MappingNode {
			err = d.wrong(value, "write {} for a server that touches nothing", "declares: takes a map of categories, not %s", nounOf(value))
		}
	default:
		err = d.unknown(key, "key of a mapping", []string{"server", "tools", "prompts", "resources", "declares"})
	}
	return err
}

// tools reads the tools of a mapping, or its prompts.
func (d *document) tools(m *Mapping, into map[string]*Tool, what string, n *yaml.Node) error {
	switch {
	case n.Kind != yaml.MappingNode:
		return d.wrong(n, "", "%ss: takes a map of %ss, not %s", what, what, nounOf(n))
	case len(n.Content)/2 > maxTools:
		return d.wrong(n, "", "the mapping has more than %d %ss", maxTools, what)
	}
	for key, value := range pairs(n) {
		if key.Value == "" || len(key.Value) > maxToolName || strings.ContainsFunc(key.Value, unicode.IsControl) {
			return d.wrong(key, "", "the name of a %s is empty, over %d bytes or holds control characters", what, maxToolName)
		}
		t := &Tool{name: key.Value, of: m, args: &node{}, pos: d.pos(key), prompt: what == "prompt"}
		b := builder{document: d, tool: t}
		if err := b.build(value); err != nil {
			return err
		}
		into[t.name] = t
	}
	return nil
}

// builder reads one tool.
type builder struct {
	*document
	tool    *Tool
	parts   []placedPart
	methods []sibling
}

// sibling is an argument that a role names: the method beside a URL.
type sibling struct {
	object *node
	name   string
}

// placedPart is a part of a program, and where it stands in the mapping.
type placedPart struct {
	part
	node *yaml.Node
}

// What stands in a tool besides its arguments.
const (
	keyRequires   = "requires"
	keyLabel      = "label"
	keyAdditional = "additional"
)

func (b *builder) build(n *yaml.Node) error {
	switch {
	case n.Kind != yaml.MappingNode:
		return b.wrong(n, fmt.Sprintf("write {} for a %s without arguments", b.tool.noun()), "a %s is a map of its arguments, not %s", b.tool.noun(), nounOf(n))
	case len(n.Content)/2 > maxArguments:
		return b.wrong(n, "", "the tool has more than %d arguments", maxArguments)
	}
	for key, value := range pairs(n) {
		var err error
		switch key.Value {
		case keyRequires:
			err = b.requires(value)
		case keyLabel:
			err = b.label(value)
		case keyAdditional:
			err = b.additional(value)
		default:
			err = b.argument(key, value)
		}
		if err != nil {
			return err
		}
	}
	for _, s := range b.methods {
		if s.object.member(s.name) == nil {
			s.object.members = append(s.object.members, &node{name: s.name, roles: []role{{reads: method{}, optional: true}}})
		}
	}
	if err := b.programs(); err != nil {
		return err
	}
	b.tool.settle()
	return nil
}

// asArgument says how to write an argument that has the name of something else.
func asArgument(key string) string {
	return fmt.Sprintf("write .%s for an argument of that name", key)
}

func (b *builder) label(n *yaml.Node) error {
	words := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		words = n.Content
	}
	for _, w := range words {
		known := []string{"private_in", "untrusted_in", "public_out"}
		if !isText(w) || !slices.Contains(known, w.Value) {
			return b.wrong(w, asArgument(keyLabel), "label: takes a list of %s", strings.Join(known, ", "))
		}
		b.tool.labels = append(b.tool.labels, w.Value)
	}
	return nil
}

func (b *builder) additional(n *yaml.Node) error {
	if !isText(n) || n.Value != roleFree {
		return b.wrong(n, asArgument(keyAdditional), "additional: takes free, and nothing else")
	}
	b.tool.open = true
	b.warn(n, "additional_arguments", "give the arguments roles", "%s passes on arguments that the mapping does not know", b.tool.name)
	return nil
}

// argument reads one argument with its roles.
func (b *builder) argument(key, value *yaml.Node) error {
	segments, err := parseArgument(key.Value)
	if err != nil {
		return b.wrong(key, "", "%v", err)
	}
	roles, err := b.roles(value)
	if err != nil {
		return err
	}
	last := len(segments) - 1
	if p, ok := roles[0].reads.(part); ok && p.what == partArgv && segments[last].each {
		segments = segments[:last] // args[*] and args are one argv
	}
	at := b.tool.args.at(segments)
	if len(at.roles) > 0 {
		return b.wrong(key, "write [a, b] for several roles", "the argument %q has a role already", key.Value)
	}
	at.roles = roles
	for _, r := range roles {
		switch reads := r.reads.(type) {
		case request:
			b.methods = append(b.methods, sibling{b.tool.args.at(around(segments)), reads.method})
		case part:
			if slices.ContainsFunc(segments, func(s segment) bool { return s.each }) {
				return b.wrong(value, "", "%s: cannot stand inside an array: nothing says which program is meant", reads.what)
			}
			if slices.ContainsFunc(b.parts, func(p placedPart) bool { return p.part == reads }) {
				return b.wrong(value, "", "another argument of the tool is %s: of %s", reads.what, reads.verb)
			}
			b.parts = append(b.parts, placedPart{reads, value})
		}
	}
	return b.plain(b.tool.args, key)
}

// around cuts a path down to the object that the argument is a member of.
func around(segments []segment) []segment {
	for segments[len(segments)-1].each {
		segments = segments[:len(segments)-1]
	}
	return segments[:len(segments)-1]
}

// plain refuses a place that is a value and has others inside, unless it is text
// or else an array: then nothing could say which of the roles apply.
func (b *builder) plain(n *node, key *yaml.Node) error {
	if len(n.roles) > 0 && (len(n.members) > 0 || n.elements != nil && slices.ContainsFunc(n.roles, takesMore)) {
		return b.wrong(key, "", "an argument around or inside %q has a role of its own", key.Value)
	}
	for _, m := range n.members {
		if err := b.plain(m, key); err != nil {
			return err
		}
	}
	if n.elements != nil {
		return b.plain(n.elements, key)
	}
	return nil
}

// takesMore reports whether a role reads more than text.
func takesMore(r role) bool {
	switch reads := r.reads.(type) {
	case free, headers:
		return true
	case command:
		return reads.verb == exec
	case part:
		return reads.what == partArgv || reads.what == partEnv
	}
	return false
}

// programs checks that the parts of programs belong to one, and lets the argv be
// absent only where another argument is the program.
func (b *builder) programs() error {
	var started []capability.Verb
	named := slices.ContainsFunc(b.parts, func(p placedPart) bool { return p.what == partName })
	b.tool.args.each("", func(_ string, r *role) {
		if r.reads.derives() {
			started = append(started, r.reads.verbs()...)
		}
		if p, ok := r.reads.(part); ok && p.what == partArgv && !named && r.fallback.Kind() == wire.Invalid {
			r.optional = false
		}
	})
	for _, p := range b.parts {
		if !slices.Contains(started, p.verb) {
			return b.wrong(p.node, "", "no argument of the tool is a program under %s", p.verb)
		}
	}
	return nil
}
