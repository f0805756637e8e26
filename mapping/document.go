package mapping

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

const (
	maxBytes = 1 << 20 // of one mapping
	maxDepth = 16      // of its YAML
)

// Invalid says why a mapping cannot be loaded, and where.
type Invalid struct {
	Pos  capability.Pos
	Text string // what is the case
	Hint string // what to do about it, "" when that is plain
}

// Error returns the sentence, after its place in the file and before its hint.
func (e *Invalid) Error() string {
	text := e.Text
	if at := e.Pos.String(); at != "" {
		text = at + ": " + text
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// document is the YAML of one mapping.
type document struct {
	file     string
	findings []capability.Finding
}

func (d *document) pos(n *yaml.Node) capability.Pos {
	return capability.Pos{File: d.file, Line: n.Line, Col: n.Column}
}

// wrong is an error at a node.
func (d *document) wrong(n *yaml.Node, hint, format string, a ...any) error {
	return &Invalid{Pos: d.pos(n), Text: fmt.Sprintf(format, a...), Hint: hint}
}

// warn is a finding at a node: nothing is refused for it.
func (d *document) warn(n *yaml.Node, code, hint, format string, a ...any) {
	d.findings = append(d.findings, capability.Finding{
		Code: code, Severity: capability.Warning, Pos: d.pos(n), Text: fmt.Sprintf(format, a...), Hint: hint,
	})
}

// read returns the one document of the file, a map.
func (d *document) read(data []byte) (root *yaml.Node, err error) {
	defer func() {
		// The parser is not ours, and a crash in it must cost one mapping, not
		// the gateway.
		if v := recover(); v != nil {
			root, err = nil, &Invalid{Pos: capability.Pos{File: d.file}, Text: "the YAML reader gave up on the file"}
		}
	}()
	if len(data) > maxBytes {
		return nil, &Invalid{Pos: capability.Pos{File: d.file}, Text: fmt.Sprintf("the mapping is over %d bytes", maxBytes)}
	}
	if err := d.shows(data); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(strings.NewReader(string(data)))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, &Invalid{Pos: capability.Pos{File: d.file}, Text: "the mapping is empty"}
	} else if err != nil {
		return nil, d.syntax(err)
	}
	if err := dec.Decode(&second); err == nil {
		return nil, d.wrong(&second, "one file holds one mapping", "a second YAML document begins here")
	} else if !errors.Is(err, io.EOF) {
		return nil, d.syntax(err)
	}
	root = doc.Content[0]
	if err := d.strict(root, 1); err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, d.wrong(root, "", "a mapping is a map with server: and tools:, not %s", nounOf(root))
	}
	return root, nil
}

// shows refuses what whoever reads the file sees on another line, in another order or
// not at all.
func (d *document) shows(data []byte) error {
	for at := (capability.Pos{File: d.file, Line: 1, Col: 1}); len(data) > 0; at.Col++ {
		r, size := utf8.DecodeRune(data)
		data = data[size:]
		switch {
		case r == utf8.RuneError && size == 1:
			return &Invalid{Pos: at, Text: "the mapping is not valid UTF-8"}
		case r == '\n':
			at.Line, at.Col = at.Line+1, 0
		case r == '\t' || r == '\r' && len(data) > 0 && data[0] == '\n':
		case r == '\ufeff' || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control):
			return &Invalid{Pos: at, Text: fmt.Sprintf("the mapping holds %U, which shows otherwise than it reads", r)}
		}
	}
	return nil
}

// syntax turns the parser's message, which names a line or none for the first,
// into an error with its place.
func (d *document) syntax(err error) error {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if number, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(number); err == nil {
				line, text = n, after
			}
		}
	}
	return &Invalid{Pos: capability.Pos{File: d.file, Line: line, Col: 1}, Text: "the YAML cannot be read: " + text}
}

// strict refuses what makes YAML mean something else than it shows: anchors,
// aliases, merge keys, tags, keys that stand twice, keys that are not text.
func (d *document) strict(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return d.wrong(n, "", "the YAML nests deeper than %d", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return d.wrong(n, "write the value out", "anchors and aliases have no place in a mapping")
	case n.Style&yaml.TaggedStyle != 0:
		return d.wrong(n, "", "tags such as %s have no place in a mapping", n.Tag)
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]int, len(n.Content)/2)
		for key := range pairs(n) {
			switch line, twice := seen[key.Value]; {
			case key.Kind != yaml.AliasNode && !isText(key):
				return d.wrong(key, "write it in quotes", "a key is %s", nounOf(key))
			case twice:
				return d.wrong(key, fmt.Sprintf("it stands in line %d already", line), "the key %q stands twice", key.Value)
			}
			seen[key.Value] = key.Line
		}
	}
	for _, c := range n.Content {
		if err := d.strict(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// pairs ranges over the keys and values of a map.
func pairs(n *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// isText reports whether a node is text, in any style.
func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

// nounOf says what a node is, as it stands in a sentence.
func nounOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	default:
		return nounOfScalar(n)
	}
}

func nounOfScalar(n *yaml.Node) string {
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "nothing"
	case "!!merge":
		return "a merge"
	}
	return "text"
}

// unknown refuses a word that is none of those that may stand at a node.
func (d *document) unknown(n *yaml.Node, what string, known []string) error {
	hint := "it is one of " + strings.Join(known, ", ")
	if near := capability.Closest(n.Value, known); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return d.wrong(n, hint, "%s is no %s", quoted(n.Value, maxArgument), what)
}

// text reads a value that must be text, and something.
func (d *document) text(n *yaml.Node, what string) (string, error) {
	if !isText(n) {
		return "", d.wrong(n, "", "%s takes text, not %s", what, nounOf(n))
	}
	if strings.TrimSpace(n.Value) == "" {
		return "", d.wrong(n, "", "%s takes text, and there is none", what)
	}
	return n.Value, nil
}

// yes reads a value that can only be true: what is not wanted is left out.
func (d *document) yes(n *yaml.Node, what string) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && slices.Contains([]string{"true", "True", "TRUE"}, n.Value) {
		return nil
	}
	return d.wrong(n, "leave it out where it is not meant", "%s takes true", what)
}
