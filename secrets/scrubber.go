package secrets

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
)

const (
	maxValues     = 4096    // resolved by one keeper: a value renewed each hour lasts for months
	maxValueBytes = 4 << 20 // of them all
	maxHits       = 10_000  // values in one text
)

// The search looks at the last block bytes of a window. If they end no needle's
// window it moves on by as much as none of them allows, mostly block bytes less
// than a window: most of a text is never looked at.
const (
	window    = 8 // every needle has as many bytes: minValue, and its other forms are longer
	block     = 3
	tableBits = 15
)

// needle is one form of one value.
type needle struct {
	text string
	at   int // where its window begins
	name string
	of   string // the value
	word bool   // it is no random text
	only string // the upstream in whose words it is found, "" for everybody's
}

// span is a part of a text that shows the secret of a name.
type span struct {
	start, end int
	name       string
}

// speaker is who says a text: an upstream, "" for none, or everybody.
type speaker struct {
	upstream string
	all      bool
}

// finds reports whether what came for one upstream, "" for all, is looked for in what is said.
func (s speaker) finds(only string) bool { return only == "" || only == s.upstream || s.all }

// scrubber finds values, once it has an index. It is immutable.
type scrubber struct {
	values  map[string]bool
	size    int // bytes of the values
	needles []needle
	escaped bool // a needle holds what JSON must escape

	shift [1 << tableBits]uint8 // by block: how far no needle's window can end
	first [1 << tableBits]int32 // by block at a window's end: a needle, from 1 on
	next  []int32               // by needle: the next with the same block
}

func (s *scrubber) knows(value string) bool { return s != nil && s.values[value] }

// with returns a scrubber that finds one value more.
func (s *scrubber) with(name, value string) (more *scrubber, ok bool) {
	more = &scrubber{values: map[string]bool{}}
	if s != nil {
		if len(s.values) == maxValues || s.size+len(value) > maxValueBytes {
			return nil, false
		}
		more.values, more.size, more.needles, more.escaped = maps.Clone(s.values), s.size, slices.Clone(s.needles), s.escaped
	}
	more.values[value] = true
	more.size += len(value)
	more.escaped = more.escaped || strings.ContainsFunc(value, isEscapedInJSON)
	word := !isRandom(value)
	for _, form := range forms(value) {
		// Keys of one kind begin alike, and those of another end alike.
		more.needles = append(more.needles, needle{text: form, at: (len(form) - window) * 3 / 4, name: name, of: value, word: word})
	}
	return more, true
}

// without returns a scrubber that does not find a value any more.
func (s *scrubber) without(value string) *scrubber {
	less := &scrubber{values: maps.Clone(s.values), size: s.size - len(value), escaped: s.escaped}
	delete(less.values, value)
	less.needles = slices.DeleteFunc(slices.Clone(s.needles), func(n needle) bool { return n.of == value })
	return less
}

func (s *scrubber) index() {
	for i := range s.shift {
		s.shift[i] = window - block + 1
	}
	s.next = make([]int32, len(s.needles)+1)
	for i, n := range s.needles {
		for end := block; end <= window; end++ {
			h := hash(n.text[n.at+end-block], n.text[n.at+end-block+1], n.text[n.at+end-block+2])
			s.shift[h] = min(s.shift[h], uint8(window-end))
			if end == window {
				s.next[i+1], s.first[h] = s.first[h], int32(i+1)
			}
		}
	}
}

func hash(a, b, c byte) uint32 {
	return (uint32(a)<<10 ^ uint32(b)<<5 ^ uint32(c)) & (1<<tableBits - 1)
}

// forms are the ways in which a value is written besides itself.
func forms(value string) []string {
	all := []string{value, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	if strings.Contains(value, " ") {
		all = append(all, strings.ReplaceAll(value, " ", "+")) // in a query
	}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for shift := range 3 {
			all = append(all, base64Within(alphabet, value, shift))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// base64Within is what is always the same of the base64 of a text in which the
// value begins so many bytes after a group of three: its characters hold 6 bits
// each, and those at the edges hold bits of other bytes too.
func base64Within(alphabet *base64.Encoding, value string, shift int) string {
	text := alphabet.EncodeToString(append(make([]byte, shift), value...))
	first := (8*shift + 5) / 6
	last := 8 * (shift + len(value)) / 6
	return text[first:last]
}

// replaced is a text with handles in the place of spans; without any, it is the text itself.
func replaced(text []byte, spans []span) []byte {
	if len(spans) == 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	done := 0
	for _, hit := range spans {
		out = append(out, text[done:hit.start]...)
		out = append(out, handle(hit.name)...)
		done = hit.end
	}
	return append(out, text[done:]...)
}

// find returns where a text shows values, in order and apart: as it is, and
// under so many layers of escapes.
func (s *scrubber) find(text []byte, layers int, of speaker) []span {
	spans := s.search(text, of)
	if layers > 0 {
		for _, e := range escapings() {
			if !s.mayHide(text, e) {
				continue
			}
			if plain, ok := e.decode(text); ok {
				spans = append(spans, e.origins(text, s.find(plain, layers-1, of))...)
			}
		}
	}
	return merge(spans)
}

// mayHide reports whether a text can show a needle under an escaping. In most
// JSON only line breaks and quotes are escaped, which no key holds.
func (s *scrubber) mayHide(text []byte, e escaping) bool {
	if e.mark != '\\' || s.escaped {
		return true // decode looks for the mark
	}
	return bytes.Contains(text, []byte(`\u`)) || bytes.Contains(text, []byte(`\/`))
}

// search finds needles. One that begins within another counts too: what it
// reaches beyond is a part of a value.
func (s *scrubber) search(text []byte, of speaker) (spans []span) {
	for end := window; end <= len(text); {
		last := text[end-block : end : end]
		h := hash(last[0], last[1], last[2])
		if step := s.shift[h]; step > 0 {
			end += int(step)
			continue
		}
		for i := s.first[h]; i != 0; i = s.next[i] {
			n := &s.needles[i-1]
			start := end - window - n.at
			if !of.finds(n.only) || start < 0 || len(text)-start < len(n.text) || string(text[start:start+len(n.text)]) != n.text {
				continue
			}
			if len(spans) == maxHits {
				return []span{{0, len(text), n.name}} // nobody needs the rest of such a text
			}
			spans = append(spans, span{start, start + len(n.text), n.name})
		}
		end++
	}
	return spans
}

// merge sorts spans and joins those that overlap, and those of one secret that
// touch, so that a text does not grow by more than it must.
func merge(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(a.name, b.name))
	})
	apart := spans[:1]
	for _, next := range spans[1:] {
		last := &apart[len(apart)-1]
		if next.start < last.end || next.start == last.end && next.name == last.name {
			last.end = max(last.end, next.end)
		} else {
			apart = append(apart, next)
		}
	}
	return apart
}

// isRandom reports whether a value is one that nobody means by anything else: long, of the characters of
// tokens, and with small letters, capitals and digits that take turns about as often as by chance. That a
// capital begins a word, or a part of a path, is no such turn, and a name has a number here and there.
func isRandom(value string) bool {
	const least, seldom, numbered = 20, 6, 3
	turns, ofDigits, before := 0, 0, byte(sign)
	for i := range len(value) {
		kind, next := kindOf(value[i]), byte(sign)
		if i+1 < len(value) {
			next = kindOf(value[i+1])
		}
		switch {
		case kind == other:
			return false
		case kind == before || kind == sign || before == sign:
		case kind == digit || before == digit:
			turns++
			ofDigits++
		case kind == capital && next != small:
			turns++
		}
		before = kind
	}
	return len(value) >= least && turns >= len(value)/seldom && ofDigits >= numbered
}

// Kinds of the characters of tokens.
const (
	other = iota
	sign
	digit
	small
	capital
)

func kindOf(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return digit
	case 'a' <= c && c <= 'z':
		return small
	case 'A' <= c && c <= 'Z':
		return capital
	case strings.IndexByte("-._~+/=", c) >= 0:
		return sign
	}
	return other
}
