package agents

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// move writes the root that an entry inherited into its text.
func (t *text) move(it item, sp span) error {
	n := it.entry.node
	if n.Kind == yaml.ScalarNode {
		return t.rewrite(it, sp)
	}
	scope := n.Content[1]
	if in, ok := child(scope, "in"); ok {
		return t.rehang(in, it)
	}
	in, _ := it.spec.Get("in")
	root := "in: " + renderText(in.Values[0])
	at := t.offset(scope)
	if scope.Style&yaml.FlowStyle != 0 {
		if t.data[at] != '{' {
			return t.byHand(n)
		}
		root += ", "
		if next := t.data[at+1]; next == ' ' {
			root = " " + strings.TrimSuffix(root, " ")
		}
		t.splices = append(t.splices, splice{at + 1, at + 1, root})
		return nil
	}
	indent := string(t.data[t.starts[t.line(scope)]:at])
	if strings.Trim(indent, " ") != "" {
		return t.byHand(n)
	}
	t.insertLine(t.line(scope), indent+root+t.eol)
	return nil
}

// rewrite replaces an entry in compact form, which stands on one line.
func (t *text) rewrite(it item, sp span) error {
	n := it.entry.node
	line := t.content(sp.first)
	if sp.end != sp.first+1 || t.line(n) != sp.first {
		return t.byHand(n)
	}
	from, end := t.offset(n), t.starts[sp.first]+len(line)
	if n.LineComment != "" {
		i := strings.LastIndex(line, n.LineComment)
		if i < 0 {
			return t.byHand(n)
		}
		end = t.starts[sp.first] + i
	}
	end = from + len(bytes.TrimRight(t.data[from:end], " \t"))
	t.splices = append(t.splices, splice{from, end, renderSpec(it.spec)})
	return nil
}

// rehang replaces the relative directories of an in: that stands in the text.
func (t *text) rehang(in *yaml.Node, it item) error {
	nodes := []*yaml.Node{in}
	if in.Kind == yaml.SequenceNode {
		nodes = in.Content
	}
	hung, _ := it.spec.Get("in")
	for i, n := range nodes {
		at := t.offset(n)
		end := t.scalarEnd(n, at)
		if end < 0 || i >= len(hung.Values) {
			return t.byHand(n)
		}
		if hung.Values[i] != n.Value {
			t.splices = append(t.splices, splice{at, end, renderText(hung.Values[i])})
		}
	}
	return nil
}

// scalarEnd finds where a text on one line ends, -1 if that is not plain to see.
func (t *text) scalarEnd(n *yaml.Node, at int) int {
	rest := t.data[at:]
	switch {
	case n.Style == 0 && bytes.HasPrefix(rest, []byte(n.Value)):
		return at + len(n.Value)
	case n.Style == yaml.DoubleQuotedStyle && bytes.HasPrefix(rest, []byte(`"`+n.Value+`"`)),
		n.Style == yaml.SingleQuotedStyle && bytes.HasPrefix(rest, []byte(`'`+n.Value+`'`)):
		return at + len(n.Value) + 2
	}
	return -1
}

// closing finds the bracket that ends a list: only a comment may follow it on
// its line.
func closing() *regexp.Regexp { return regexp.MustCompile(`\][ \t]*(?:[ \t]#.*)?$`) }

// bracketed turns a list in brackets into one with a line for each entry.
func (t *text) bracketed(name string, at *yaml.Node, items []item) error {
	_, end := t.key(name)
	from := t.offset(at)
	last := t.content(end - 1)
	m := closing().FindStringIndex(last)
	if m == nil || t.data[from] != '[' {
		return t.byHand(at)
	}
	to := t.starts[end-1] + m[0]
	if to <= from || bytes.IndexByte(t.data[from:to], '#') >= 0 {
		return t.byHand(at)
	}
	var lines strings.Builder
	indent := t.margin + "  "
	for i, n := range at.Content {
		if items[i].dropped {
			continue
		}
		text, ok := t.slice(at, i, to)
		if items[i].moved || !ok {
			if items[i].entry.bad {
				return t.byHand(n)
			}
			text = renderSpec(items[i].spec)
		}
		lines.WriteString(indent + "- " + text + t.eol)
	}
	lines.WriteString(t.entries(items, indent))
	if lines.Len() == 0 {
		t.splices = append(t.splices, splice{from, to + 1, "[]"})
		return nil
	}
	t.splices = append(t.splices, splice{t.blankBefore(from), to + 1, ""})
	t.insertLine(end, lines.String())
	return nil
}

// blankBefore moves back over the spaces in front of a place.
func (t *text) blankBefore(at int) int {
	for at > 0 && t.data[at-1] == ' ' {
		at--
	}
	return at
}

// slice returns the source of one entry of a list in brackets, if it stands on
// one line.
func (t *text) slice(list *yaml.Node, i, end int) (string, bool) {
	if i+1 < len(list.Content) {
		end = t.offset(list.Content[i+1])
	}
	text := strings.TrimRight(string(t.data[t.offset(list.Content[i]):end]), " \t\r\n,")
	return text, text != "" && !strings.Contains(text, "\n") && !slices.Contains([]byte(text), '\t')
}
