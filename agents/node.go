package agents

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// maxDepth is how deep the YAML of a record may nest.
const maxDepth = 32

// pos returns where a node stands in the file.
func (s *source) pos(n *yaml.Node) capability.Pos {
	return capability.Pos{File: s.file, Line: n.Line + s.yamlLine, Col: n.Column}
}

// wrong is an error at a node.
func (s *source) wrong(n *yaml.Node, hint, format string, a ...any) *Invalid {
	return &Invalid{Pos: s.pos(n), Text: fmt.Sprintf(format, a...), Hint: hint}
}

// mapping reads the YAML of the file: one document, a map.
func (s *source) mapping() (root *yaml.Node, err error) {
	defer func() {
		// The parser is not ours, and a crash in it must deny one agent, not
		// take the gateway down.
		if v := recover(); v != nil {
			root, err = nil, s.invalid(capability.Pos{}, "the YAML reader gave up on the file", "")
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(s.yaml))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}, nil
	case err != nil:
		return nil, s.syntax(err)
	}
	switch err := dec.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, s.syntax(err)
	default:
		return nil, s.wrong(&second, "one file holds one record", "a second YAML document begins here")
	}
	root = doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.ShortTag() == "!!null" {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, s.wrong(root, "", "a record is a map of keys, not %s", nounOf(root))
	}
	return root, nil
}

// syntax turns the parser's message, which names a line of the YAML part or
// none for the first, into an error with its place in the file.
func (s *source) syntax(err error) *Invalid {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if n, after, ok := strings.Cut(rest, ": "); ok {
			if v, err := strconv.Atoi(n); err == nil {
				line, text = v, after
			}
			if countsFromZero(text) { // what the end of the file cuts off is missing in its last line
				line = min(line+1, strings.Count(strings.TrimSuffix(s.yaml, "\n"), "\n")+1)
			}
		}
	}
	hint := ""
	if strings.Contains(text, "alphabetic or numeric") || strings.Contains(text, "unknown anchor") {
		hint = `a value that begins with * needs quotes: "*.example.com"`
	}
	if strings.Contains(text, "expected '-' indicator") {
		hint = "begin each grant with a dash, and indent the keys of its scope further than its verb"
	}
	return s.invalid(capability.Pos{Line: line + s.yamlLine, Col: 1}, "the YAML cannot be read: "+text, hint)
}

// countsFromZero reports whether an error is one of those for which the library
// counts lines from zero.
func countsFromZero(text string) bool {
	return slices.Contains([]string{
		"did not find expected key", "did not find expected '-' indicator", "did not find expected node content",
		"did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected <document start>",
	}, text)
}

// strict refuses what makes YAML mean something else than it shows: anchors,
// aliases, merge keys, tags, keys that stand twice, keys that are not text.
func (s *source) strict(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return s.wrong(n, "", "the YAML nests deeper than %d", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return s.wrong(n, `write the value out, or quote it: "*"`, "anchors and aliases have no place in a record")
	case n.Style&yaml.TaggedStyle != 0:
		return s.wrong(n, "", "tags such as %s have no place in a record", n.Tag)
	}
	if n.Kind == yaml.MappingNode {
		if err := s.strictKeys(n); err != nil {
			return err
		}
	}
	for _, c := range n.Content {
		if err := s.strict(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (s *source) strictKeys(n *yaml.Node) error {
	seen := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		switch first := seen[k.Value]; {
		case k.Kind == yaml.AliasNode:
			return s.strict(k, 0)
		case k.Kind != yaml.ScalarNode:
			return s.wrong(k, "", "a key is %s", nounOf(k))
		case k.ShortTag() == "!!merge":
			return s.wrong(k, "write the keys out", "merge keys have no place in a record")
		case first != nil:
			return s.wrong(k, fmt.Sprintf("it stands in line %d already", s.pos(first).Line), "the key %q stands twice", k.Value)
		}
		seen[k.Value] = k
	}
	return nil
}

// isText reports whether a node is text, in any style.
func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str" }

// isNull reports whether nothing was written.
func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// nounOf says what a node is, as the end of "not …".
func nounOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "a number"
	case "!!bool":
		return "true or false"
	case "!!timestamp":
		return "a date"
	case "!!null":
		return "nothing"
	}
	return "text"
}

// child finds the value of a key.
func child(n *yaml.Node, key string) (*yaml.Node, bool) {
	for i := 0; n != nil && n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1], true
		}
	}
	return nil, false
}
