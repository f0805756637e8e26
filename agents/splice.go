package agents

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// splice replaces the bytes from start to end of a file.
type splice struct {
	start, end int
	text       string
}

// text is the bytes of a record by line, for edits that leave all others alone.
type text struct {
	*edit
	starts  []int // where each line begins; one more for the end
	eol     string
	margin  string // in front of each top-level key
	splices []splice
}

// write makes the planned change in the text.
func (e *edit) write() ([]byte, error) {
	t := &text{edit: e, eol: "\n", margin: strings.Repeat(" ", e.root.Column-1)}
	for at := 0; at < len(e.data); {
		t.starts = append(t.starts, at)
		n := bytes.IndexByte(e.data[at:], '\n')
		if n < 0 {
			break
		}
		at += n + 1
	}
	t.starts = append(t.starts, len(e.data))
	if bytes.Contains(e.data, []byte("\r\n")) {
		t.eol = "\r\n"
	}
	if e.root.Style&yaml.FlowStyle != 0 {
		return nil, e.byHand(e.root)
	}
	if err := t.lists(); err != nil {
		return nil, err
	}
	return t.apply(), nil
}

// lists rewrites both lists of grants and takes the shorthand away.
func (t *text) lists() error {
	if at, ok := child(t.root, "delegable"); ok {
		if err := t.list("delegable", at, t.passed); err != nil {
			return err
		}
	}
	at, listed := child(t.root, "capabilities")
	if listed {
		if err := t.list("capabilities", at, t.items); err != nil {
			return err
		}
	}
	place := -1
	for _, key := range []string{"access", "sandbox"} {
		if line := t.remove(key); line >= 0 && (place < 0 || line < place) {
			place = line
		}
	}
	if listed {
		return nil
	}
	if place < 0 {
		place = t.frontEnd()
	}
	block := t.margin + "capabilities:" + t.eol + t.entries(t.items, t.margin+"  ")
	if len(t.after()) == 0 {
		block = t.margin + "capabilities: []" + t.eol
	}
	t.insertLine(place, block)
	return nil
}

// line returns the line of a node, counted from 0 in the file.
func (t *text) line(n *yaml.Node) int { return n.Line + t.yamlLine - 1 }

// frontEnd returns the line that follows the YAML.
func (t *text) frontEnd() int {
	if t.fenced {
		return t.bodyLine - 1
	}
	return len(t.starts) - 1
}

// offset returns where a node begins. Columns count characters.
func (t *text) offset(n *yaml.Node) int {
	at := t.starts[t.line(n)]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(t.data[at:])
		at += size
	}
	return at
}

// content returns a line without its end.
func (t *text) content(line int) string {
	return strings.TrimRight(string(t.data[t.starts[line]:t.starts[line+1]]), "\r\n")
}

// key finds the lines of a top-level key and its value, without the blank lines
// and comments that follow.
func (t *text) key(name string) (first, end int) {
	end = t.frontEnd()
	for i := 0; i < len(t.root.Content); i += 2 {
		k := t.root.Content[i]
		if k.Value == name {
			first = t.line(k)
			if i+2 < len(t.root.Content) {
				end = t.line(t.root.Content[i+2])
			}
		}
	}
	return first, t.trimmed(first, end)
}

// trimmed moves the end of a run of lines up over blank lines and comments.
func (t *text) trimmed(first, end int) int {
	for end > first+1 && isRemark(t.content(end-1)) {
		end--
	}
	return end
}

// isRemark reports whether a line is blank or only a comment.
func isRemark(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return line == "" || line[0] == '#'
}

// remove takes a key out and returns its line, -1 if it is not there. What was
// remarked on it stays.
func (t *text) remove(name string) int {
	value, ok := child(t.root, name)
	if !ok {
		return -1
	}
	first, end := t.key(name)
	var remarks string
	for _, r := range remarksOf(value) {
		remarks += r + t.eol
	}
	t.replaceLines(first, end, remarks)
	return first
}

// remarksOf collects the comments within a node.
func remarksOf(n *yaml.Node) []string {
	var out []string
	for _, c := range []string{n.HeadComment, n.LineComment} {
		if c != "" {
			out = append(out, strings.Split(c, "\n")...)
		}
	}
	for _, c := range n.Content {
		out = append(out, remarksOf(c)...)
	}
	return out
}

// replaceLines replaces whole lines.
func (t *text) replaceLines(first, end int, with string) {
	t.splices = append(t.splices, splice{t.starts[first], t.starts[end], with})
}

// insertLine puts whole lines in front of a line.
func (t *text) insertLine(line int, lines string) {
	at := t.starts[line]
	if at > 0 && t.data[at-1] != '\n' { // the file ends without a line end
		lines = t.eol + strings.TrimSuffix(lines, t.eol)
	}
	t.splices = append(t.splices, splice{at, at, lines})
}

// entries writes the new items of a list, each on its line.
func (t *text) entries(items []item, indent string) string {
	var b strings.Builder
	for _, i := range items {
		if i.entry == nil && !i.dropped {
			b.WriteString(indent + "- " + renderSpec(i.spec) + t.eol)
		}
	}
	return b.String()
}

// list rewrites one list of grants: in place where it has lines of its own, as
// such lines where it stands in brackets.
func (t *text) list(name string, at *yaml.Node, items []item) error {
	if !slices.ContainsFunc(items, func(i item) bool { return i.moved || i.dropped || i.entry == nil }) {
		return nil
	}
	if at.Style&yaml.FlowStyle != 0 {
		return t.bracketed(name, at, items)
	}
	return t.lined(name, at, items)
}

// lined edits a list whose entries stand on their own lines.
func (t *text) lined(name string, at *yaml.Node, items []item) error {
	keyLine, end := t.key(name)
	indent := at.Column - 1
	spans, ok := t.spans(at, indent, end)
	if !ok {
		return t.byHand(at)
	}
	above := keyLine + 1
	for i, sp := range spans {
		switch it := items[i]; {
		case it.dropped:
			t.replaceLines(t.remarked(sp.first, above), sp.end, "")
		case it.moved:
			if err := t.move(it, sp); err != nil {
				return err
			}
		}
		above = sp.end
	}
	if !slices.ContainsFunc(items, func(i item) bool { return !i.dropped }) {
		return t.empty(name, at)
	}
	if fresh := t.entries(items, strings.Repeat(" ", indent)); fresh != "" {
		t.insertLine(end, fresh)
	}
	return nil
}

// empty writes [] behind a key whose list has lost all its lines.
func (t *text) empty(name string, at *yaml.Node) error {
	for i := 0; i < len(t.root.Content); i += 2 {
		k := t.root.Content[i]
		if k.Value != name {
			continue
		}
		colon := t.offset(k) + len(name)
		if k.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 {
			colon += 2
		}
		if colon >= len(t.data) || t.data[colon] != ':' {
			return t.byHand(at)
		}
		t.splices = append(t.splices, splice{colon + 1, colon + 1, " []"})
	}
	return nil
}

// span is the lines of one entry.
type span struct{ first, end int }

// spans finds the lines of each entry: they begin with a dash at the indentation
// of the list.
func (t *text) spans(list *yaml.Node, indent, end int) ([]span, bool) {
	var spans []span
	for line := t.line(list); line < end; line++ {
		text := t.content(line)
		if rest, ok := strings.CutPrefix(text, strings.Repeat(" ", indent)+"-"); ok && (rest == "" || rest[0] == ' ') {
			spans = append(spans, span{line, end})
		}
	}
	if len(spans) != len(list.Content) {
		return nil, false
	}
	for i := range spans {
		if i+1 < len(spans) {
			spans[i].end = t.trimmed(spans[i].first, spans[i+1].first)
		}
		if at := t.line(list.Content[i]); !isNull(list.Content[i]) && (at < spans[i].first || at >= spans[i].end) {
			return nil, false
		}
	}
	return spans, true
}

// remarked moves the beginning of an entry up over the comments right above it,
// which go with it.
func (t *text) remarked(first, above int) int {
	for first > above && strings.HasPrefix(strings.TrimLeft(t.content(first-1), " "), "#") {
		first--
	}
	return first
}

// apply makes all splices, from the end of the file up.
func (t *text) apply() []byte {
	slices.SortStableFunc(t.splices, func(a, b splice) int { return a.start - b.start })
	var out []byte
	at := 0
	for _, s := range t.splices {
		out = append(out, t.data[at:max(at, s.start)]...)
		out = append(out, s.text...)
		at = max(at, s.end)
	}
	return append(out, t.data[at:]...)
}
