package proxy

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"capgate/wire"
)

// Hidden says why a tool whose pin this is would not be shown, as far as the pins
// tell, "" if it would.
func (p Pin) Hidden(mode Pins) string {
	switch {
	case p.Waiting != nil && (mode != Off || p.Waiting.Text == ""):
		return p.Waiting.Why
	case p.Waiting != nil:
		return p.Waiting.doubt()
	case !p.Approved.IsZero():
		return ""
	case mode == Require:
		return nobodyApproved
	}
	return p.Current.doubt()
}

// doubt says why a person must look at a definition first, "" if none has to.
func (d *Definition) doubt() string {
	var doc wire.Doc
	if d.Text == "" || doc.ParseLoosely([]byte(d.Text), wire.Limits{Bytes: len(d.Text) + 1}) != nil {
		return ""
	}
	if code, why := vet(doc.Root()); code != "" {
		return why
	}
	return ""
}

// Offered is the definition that an approval would be of: the one that waits, else
// the one that is shown.
func (p Pin) Offered() *Definition {
	if p.Waiting != nil {
		return p.Waiting
	}
	return p.Current
}

// Line is one line of the difference between two definitions.
type Line struct {
	Sign byte // '-' for what is gone, '+' for what is new, ' ' for what stays
	Text string
}

// Difference tells how the definition that waits differs from the one that is
// shown, line by line. With nothing to compare it with, all of it is new. It is
// nil when the text of either was not kept.
func (p Pin) Difference() []Line {
	var before []string
	if p.Waiting != nil && p.Current != nil {
		if p.Current.Text == "" {
			return nil
		}
		before = legible(p.Current.Text)
	}
	text := p.Offered().Text
	if text == "" {
		return nil
	}
	return compare(before, legible(text))
}

// legible writes a definition for a person, a line for each line of its texts. What
// would not be seen is written out.
func legible(canonical string) []string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(canonical), "", "  ") != nil {
		b.Reset()
		b.WriteString(canonical)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		line = exposed(strings.TrimSuffix(line, "\n"))
		indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
		for i, part := range strings.SplitAfter(line, `\n`) {
			if i > 0 {
				part = indent + "  " + part
			}
			lines = append(lines, part)
		}
	}
	return lines
}

// exposed writes out the characters of a text that are not seen.
func exposed(text string) string {
	var b strings.Builder
	var prev rune
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRuneInString(text[i:])
		if (c < ' ' || c >= 0x7f) && !isSeen(prev, c, []byte(text[i+size:min(len(text), i+size+utf8.UTFMax)])) {
			b.WriteString(`\u{` + strconv.FormatInt(int64(c), 16) + `}`)
		} else {
			b.WriteString(text[i : i+size])
		}
		prev = c
		i += size
	}
	return b.String()
}

// The difference is the smallest one as long as comparing costs no more than this.
const maxCompared = 4 << 20 // pairs of lines

// compare finds the lines that two texts have in common, the longest sequence of
// them, and signs the rest. Texts for which that costs too much differ in the
// whole of what lies between their common beginning and end.
func compare(before, after []string) []Line {
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	all := signed(nil, ' ', before[:head]...)
	a, b := before[head:len(before)-tail], after[head:len(after)-tail]
	for _, common := range shared(a, b) {
		i, j := slices.Index(a, common), slices.Index(b, common)
		all = signed(signed(signed(all, '-', a[:i]...), '+', b[:j]...), ' ', common)
		a, b = a[i+1:], b[j+1:]
	}
	all = signed(signed(all, '-', a...), '+', b...)
	return signed(all, ' ', before[len(before)-tail:]...)
}

func signed(all []Line, sign byte, texts ...string) []Line {
	for _, text := range texts {
		all = append(all, Line{sign, text})
	}
	return all
}

// shared is the longest sequence of lines that two texts have in common, nil when
// finding it costs too much.
func shared(a, b []string) (common []string) {
	if len(a)*len(b) > maxCompared {
		return nil
	}
	wide := len(b) + 1
	length := make([]int32, (len(a)+1)*wide) // of the longest sequence from i in a and j in b on
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			length[i*wide+j] = max(length[(i+1)*wide+j], length[i*wide+j+1])
			if a[i] == b[j] {
				length[i*wide+j] = length[(i+1)*wide+j+1] + 1
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			common = append(common, a[i])
			i, j = i+1, j+1
		case length[(i+1)*wide+j] >= length[i*wide+j+1]:
			i++
		default:
			j++
		}
	}
	return common
}
