package config

import (
	"bytes"
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
	maxBytes = 4 << 20 // of one file
	maxDepth = 32      // maps and lists within one another
)

const bom = '\uFEFF' // the byte order mark

// document reads the one map that a file must be, and refuses whatever of YAML
// lets a file mean other than it reads: anchors, aliases, merge keys, tags,
// directives, duplicate keys, a second document, characters that are not seen.
// It returns nil when there is nothing further to look at.
func (f *faults) document(data []byte) *yaml.Node {
	if len(data) > maxBytes {
		f.add(capability.Pos{File: f.file}, "", "the file is over %d MiB", maxBytes>>20)
		return nil
	}
	if !f.characters(data) {
		return nil
	}
	root := f.parse(data)
	if root == nil {
		return nil
	}
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		f.empty()
		return nil
	}
	f.tree(root, 1)
	return root
}

func (f *faults) empty() {
	f.add(capability.Pos{File: f.file, Line: 1, Col: 1}, "config.example.yml is one to start from", "the file is empty")
}

// characters refuses what does not show when the file is read, or shows as
// something else. A line is named once.
func (f *faults) characters(data []byte) (ok bool) {
	line, col, said := 1, 1, 0
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		data = data[size:]
		if what, hint := invisible(r, size, col, data); what != "" && said < line {
			said = line
			f.add(capability.Pos{File: f.file, Line: line, Col: col}, hint, "%s", what)
			if r == utf8.RuneError {
				return false // what follows may not be text at all
			}
		}
		if col++; r == '\n' {
			line, col = line+1, 1
		}
	}
	return said == 0
}

// invisible says why a character may not stand in the file, "" if it may.
func invisible(r rune, size, col int, rest []byte) (what, hint string) {
	switch {
	case r == '\n' || r == '\r' && bytes.HasPrefix(rest, []byte{'\n'}):
		return "", ""
	case r == utf8.RuneError && size == 1:
		return "the file is not UTF-8 from here on", "save it as UTF-8"
	case r == bom:
		return "there is a byte order mark", "save the file as UTF-8 without one"
	case r == '\t':
		return "there is a tab", "indent with spaces"
	case r == '%' && col == 1:
		return "there is a YAML directive", "remove the line"
	case isHidden(r):
		return fmt.Sprintf("there is the control character %U", r), "remove it"
	}
	return "", ""
}

// isHidden reports whether a character controls how text is shown instead of
// showing itself: control characters, line separators, changes of direction.
func isHidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) || r == bom
}

// parse returns the content of the only document.
func (f *faults) parse(data []byte) *yaml.Node {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	first, err := decode(dec)
	if errors.Is(err, io.EOF) {
		f.empty()
		return nil
	}
	if err != nil {
		f.syntax(err, data)
		return nil
	}
	second, err := decode(dec)
	switch {
	case err == nil:
		f.at(second, "keep one document in the file", "a second document begins here")
	case !errors.Is(err, io.EOF):
		f.syntax(err, data)
	}
	return first.Content[0]
}

// decode reads the next document. The library panics on a few inputs that it
// takes to be impossible; a file must not be able to end the process.
func decode(dec *yaml.Decoder) (doc *yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("yaml: %v", p)
		}
	}()
	doc = new(yaml.Node)
	err = dec.Decode(doc)
	return doc, err
}

// syntax places an error of the library and says it so that its reader knows
// what to change.
func (f *faults) syntax(err error, data []byte) {
	line, text := splitSyntax(err)
	if _, anchor, ok := strings.Cut(text, "unknown anchor '"); ok {
		anchor, _, _ = strings.Cut(anchor, "'")
		f.add(f.find(data, "*"+anchor), aliasHint, "*%s is an alias", clip(anchor))
		return
	}
	// What the end of the file cuts off is missing in its last line.
	last := bytes.Count(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'}) + 1
	f.add(capability.Pos{File: f.file, Line: min(line, last)}, syntaxHint(text), "the YAML cannot be read: %s", text)
}

// splitSyntax takes the line out of an error of the library, which has no other
// way to tell it.
func splitSyntax(err error) (line int, text string) {
	text = strings.TrimPrefix(err.Error(), "yaml: ")
	if number, rest, ok := strings.Cut(strings.TrimPrefix(text, "line "), ": "); ok {
		if n, err := strconv.Atoi(number); err == nil {
			line, text = n, rest
		}
	}
	if line == 0 || countsFromZero(text) {
		line++
	}
	return line, text
}

// countsFromZero reports whether an error is one of those for which the library
// counts lines from zero.
func countsFromZero(text string) bool {
	return slices.Contains([]string{
		"did not find expected key", "did not find expected '-' indicator", "did not find expected node content",
		"did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected <document start>",
	}, text)
}

// find places the first occurrence of some text.
func (f *faults) find(data []byte, text string) capability.Pos {
	before, _, _ := bytes.Cut(data, []byte(text))
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return capability.Pos{File: f.file, Line: bytes.Count(before, []byte{'\n'}) + 1, Col: utf8.RuneCount(line) + 1}
}

// syntaxHint says what most often is behind an error of the library.
func syntaxHint(text string) string {
	switch {
	case strings.HasPrefix(text, "mapping values are not allowed"):
		return "quote a value that holds a colon and a space, and put a colon after every key"
	case strings.HasPrefix(text, "could not find expected ':'"):
		return "write key: value"
	case strings.HasPrefix(text, "did not find expected key"), strings.HasPrefix(text, "did not find expected '-'"):
		return "indent the lines of one map or list alike"
	case strings.HasPrefix(text, "did not find expected ','"):
		return "close the bracket, and quote values that hold one"
	case strings.HasPrefix(text, "found unexpected end of stream"):
		return "close the quote"
	case strings.HasPrefix(text, "did not find expected alphabetic"):
		return aliasHint
	case strings.HasPrefix(text, "found character that cannot start"):
		return "quote the value"
	}
	return ""
}

const aliasHint = `write out what it stands for, or quote it: "*"`

// tree refuses what no part of the file may hold, wherever it stands.
func (f *faults) tree(n *yaml.Node, depth int) {
	switch {
	case depth > maxDepth:
		f.at(n, "", "this is nested deeper than %d levels", maxDepth)
		return
	case n.Kind == yaml.AliasNode:
		f.at(n, aliasHint, "*%s is an alias", clip(n.Value))
		return
	case n.Anchor != "":
		f.at(n, "remove it", "&%s is an anchor", clip(n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		f.at(n, "remove it", "%q is a tag", clip(n.Tag))
	case n.Tag == "!!merge":
		f.at(n, aliasHint, "<< is a merge key")
	case n.Kind == yaml.ScalarNode && strings.ContainsFunc(n.Value, isHidden):
		f.at(n, "write it in one line, without escapes", "a value holds a line break or a control character")
	}
	if n.Kind == yaml.MappingNode {
		f.keys(n)
	}
	for _, child := range n.Content {
		f.tree(child, depth+1)
	}
}

// keys refuses keys that are not text, and those that stand twice.
func (f *faults) keys(n *yaml.Node) {
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.Tag != "!!str" && k.Tag != "!!merge" {
			f.at(k, "quote it", "a key must be text, not %s", describe(k))
			continue
		}
		if line, ok := first[k.Value]; ok {
			f.at(k, fmt.Sprintf("it already stands in line %d", line), "%q stands twice", clip(k.Value))
			continue
		}
		first[k.Value] = k.Line
	}
}

// describe says what a node is, for an error that expected something else.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "an alias"
	}
	switch n.Tag {
	case "!!null":
		return "nothing"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a date"
	}
	return "text"
}

// clip shortens text for a message.
func clip(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}
