package agents

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// doubt says of a file that holds no agent that it may have been meant to hold one. Nobody would hear of
// the slip else, but that there is no such agent. Prose, and what names another class, is passed over.
func doubt(file string, data []byte) *capability.Finding {
	f := &capability.Finding{Code: "no_agent", Severity: capability.Warning, Pos: capability.Pos{File: file, Line: 1, Col: 1}}
	if len(bytes.TrimSpace(data)) == 0 {
		f.Severity, f.Text, f.Hint = capability.Note, "the file is empty, and holds no agent", "write a record, or delete it"
		return f // as while somebody writes it
	}
	src, err := readSource(file, data)
	if err != nil {
		return nil
	}
	root, err := src.mapping()
	if err != nil || len(root.Content) == 0 {
		return nil
	}
	if at, hint := misread(file, root); at != nil {
		f.Pos, f.Text, f.Hint = src.pos(at), "the file holds no agent", hint
		return f
	}
	if named(root) {
		return nil
	}
	f.Severity, f.Text, f.Hint = capability.Note, "the file holds no agent", "an agent's has class: agent, or capabilities:"
	return f
}

// misread finds the key by which a file would be an agent's, had it been written right.
func misread(file string, root *yaml.Node) (at *yaml.Node, hint string) {
	if class, _ := child(root, "class"); class != nil && strings.HasPrefix(class.Value, "a") && isNearly(class.Value, "agent") {
		return class, "did you mean class: agent?"
	}
	if named(root) {
		return nil, ""
	}
	for i := 0; i < len(root.Content); i += 2 {
		k := root.Content[i]
		switch {
		case mistyped(k.Value, []string{"capabilities"}) != "":
			return k, "did you mean capabilities:?"
		case kindOf(file) == markdownFile && slices.Contains(eggheadForm().foreign, k.Value):
			return k, "write capabilities: with what it may do"
		}
	}
	return nil, ""
}

// named reports whether a file says what it is.
func named(root *yaml.Node) bool {
	_, class := child(root, "class")
	_, kind := child(root, "kind")
	return class || kind
}
