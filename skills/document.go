package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	maxDepth = 16   // of the YAML
	maxNodes = 4096 // of the YAML
)

// syntaxError says why a text is no YAML at all.
type syntaxError struct{ text string }

func (e *syntaxError) Error() string { return "the frontmatter is not YAML: " + e.text }

// parseYAML returns the one map that a text holds.
func parseYAML(text string) (root *yaml.Node, err error) {
	defer func() {
		// The parser is not ours, and a crash in it must cost one skill, not the
		// gateway.
		if v := recover(); v != nil {
			root, err = nil, errors.New("the YAML reader gave up on the frontmatter")
		}
	}()
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc, second yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, errors.New("the frontmatter is empty")
	} else if err != nil {
		return nil, &syntaxError{clip(strings.TrimPrefix(err.Error(), "yaml: "))}
	}
	if err := dec.Decode(&second); err != nil && !errors.Is(err, io.EOF) {
		return nil, &syntaxError{clip(strings.TrimPrefix(err.Error(), "yaml: "))}
	} else if err == nil {
		return nil, errors.New("the frontmatter holds more than one YAML document")
	}
	root = doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("the frontmatter is %s, not a map", nounOf(root))
	}
	nodes := 0
	return root, strict(root, 1, &nodes)
}

// strict refuses what makes YAML mean something else than it shows, or something
// else to another reader.
func strict(n *yaml.Node, depth int, nodes *int) error {
	*nodes++
	switch {
	case depth > maxDepth:
		return fmt.Errorf("the frontmatter nests deeper than %d", maxDepth)
	case *nodes > maxNodes:
		return fmt.Errorf("the frontmatter has more than %d values", maxNodes)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return errors.New("the frontmatter has anchors or aliases")
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("the frontmatter has the tag %s", clip(n.Tag))
	}
	if n.Kind == yaml.MappingNode {
		seen := make(map[string]bool, len(n.Content)/2)
		for key := range pairs(n) {
			switch {
			case key.Kind != yaml.ScalarNode || key.Value == "<<":
				return errors.New("the frontmatter has a key that is not plain text")
			case seen[key.Value]:
				return fmt.Errorf("the key %q stands twice in the frontmatter", clip(key.Value))
			}
			seen[key.Value] = true
		}
	}
	for _, c := range n.Content {
		if err := strict(c, depth+1, nodes); err != nil {
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

func isText(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!str" || n.ShortTag() == "!!timestamp")
}

// isEmpty reports whether a value says nothing.
func isEmpty(n *yaml.Node) bool {
	return len(n.Content) == 0 && (n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" || n.Value == "")
}

// textOf reads a value that must be text; none at all is the empty text.
func textOf(key string, n *yaml.Node) (string, error) {
	switch {
	case isText(n):
		return n.Value, nil
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return "", nil
	}
	return "", fmt.Errorf("%s is %s, not text", key, nounOf(n))
}

// nounOf says what a node is, as it stands in a sentence.
func nounOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "empty"
	case isText(n):
		return "text"
	}
	return "a number or true or false"
}

// appendJSON writes a node as JSON, keys in their order, texts as they stand.
func appendJSON(b []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		b = append(b, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			b = append(appendText(b, n.Content[i].Value), ':')
			b = append(appendJSON(b, n.Content[i+1]), ',')
		}
		return append(bytes.TrimSuffix(b, []byte(",")), '}')
	case yaml.SequenceNode:
		b = append(b, '[')
		for _, item := range n.Content {
			b = append(appendJSON(b, item), ',')
		}
		return append(bytes.TrimSuffix(b, []byte(",")), ']')
	}
	return appendScalar(b, n)
}

func appendScalar(b []byte, n *yaml.Node) []byte {
	switch n.ShortTag() {
	case "!!null":
		return append(b, "null"...)
	case "!!bool":
		var v bool
		if n.Decode(&v) == nil {
			return strconv.AppendBool(b, v)
		}
	case "!!int":
		var v int64
		if n.Decode(&v) == nil {
			return strconv.AppendInt(b, v, 10)
		}
	case "!!float":
		var v float64
		if n.Decode(&v) == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			return appendNumber(b, v)
		}
	}
	return appendText(b, n.Value)
}

func appendNumber(b []byte, v float64) []byte {
	text, err := json.Marshal(v)
	if err != nil { // the caller has let only finite numbers through
		return append(b, "null"...)
	}
	return append(b, text...)
}

func appendText(b []byte, text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil { // a string can always be written
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}
