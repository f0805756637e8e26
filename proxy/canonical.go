package proxy

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"capgate/wire"
)

// digest is what a definition is pinned by.
func digest(def wire.Value) [sha256.Size]byte {
	return sha256.Sum256(canonical(make([]byte, 0, len(def.Raw())), def))
}

// canonical appends what a value says in the one form that all spellings of it
// share: as RFC 8785 has it, members by the UTF-16 units of their keys, no space,
// no escape that is not needed. Numbers are its numbers too, except that those no
// float64 holds keep their digits: there, two values would become one.
func canonical(dst []byte, v wire.Value) []byte {
	f := form{dst: dst}
	f.value(v)
	return f.dst
}

// form is a canonical form while it is written.
type form struct {
	dst     []byte
	members []member // of the objects that are open
}

type member struct {
	key   []byte
	value wire.Value
}

func (f *form) value(v wire.Value) {
	switch v.Kind() {
	case wire.Object:
		f.object(v)
	case wire.Array:
		f.dst = append(f.dst, '[')
		first := true
		for e := range v.Elems() {
			if !first {
				f.dst = append(f.dst, ',')
			}
			first = false
			f.value(e)
		}
		f.dst = append(f.dst, ']')
	case wire.String:
		f.text(said(v))
	case wire.Number:
		f.dst = appendNumber(f.dst, v.Raw())
	default:
		f.dst = append(f.dst, v.Raw()...)
	}
}

func (f *form) object(v wire.Value) {
	from := len(f.members)
	for key, value := range v.Members() {
		f.members = append(f.members, member{said(key), value})
	}
	to := len(f.members)
	slices.SortFunc(f.members[from:], func(a, b member) int { return compareUnits(a.key, b.key) })
	f.dst = append(f.dst, '{')
	for i := from; i < to; i++ {
		if i > from {
			f.dst = append(f.dst, ',')
		}
		f.text(f.members[i].key)
		f.dst = append(f.dst, ':')
		f.value(f.members[i].value)
	}
	f.dst = append(f.dst, '}')
	f.members = f.members[:from]
}

// said is what a string says: its own bytes if they hold no escape.
func said(v wire.Value) []byte {
	if raw := v.Raw(); bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := v.Str()
	return []byte(text)
}

// compareUnits compares two texts by their UTF-16 units. That is the order of
// their bytes, but for characters beyond the first 65,536: their units begin with
// a surrogate, which is less than what U+E000 and its followers are written as.
func compareUnits(a, b []byte) int {
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	if i == len(a) || i == len(b) {
		return cmp.Compare(len(a), len(b))
	}
	for i > 0 && !utf8.RuneStart(a[i]) {
		i--
	}
	x, _ := utf8.DecodeRune(a[i:])
	y, _ := utf8.DecodeRune(b[i:])
	return cmp.Or(cmp.Compare(firstUnit(x), firstUnit(y)), cmp.Compare(x, y))
}

func firstUnit(r rune) rune {
	if utf16.RuneLen(r) == 2 {
		r, _ = utf16.EncodeRune(r)
	}
	return r
}

// text appends a string.
func (f *form) text(text []byte) {
	const hex = "0123456789abcdef"
	dst := append(f.dst, '"')
	start := 0
	for i, c := range text {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, text[start:i]...), '\\')
		start = i + 1
		if short := shortEscape(c); short != 0 {
			dst = append(dst, short)
		} else {
			dst = append(dst, 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	f.dst = append(append(dst, text[start:]...), '"')
}

// shortEscape is the letter that stands for a character behind a backslash, 0 if
// none does.
func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// appendNumber appends a number as ECMAScript writes it, from its digits and
// not from a float64.
func appendNumber(dst, raw []byte) []byte {
	n, ok := parseDecimal(raw)
	if !ok {
		return append(dst, raw...)
	}
	const widest = 21 // digits before an exponent is written
	k := len(n.digits)
	if k == 0 {
		return append(dst, '0')
	}
	if n.negative {
		dst = append(dst, '-')
	}
	switch {
	case k <= n.point && n.point <= widest:
		dst = append(dst, n.digits...)
		return append(dst, bytes.Repeat([]byte{'0'}, n.point-k)...)
	case 0 < n.point && n.point <= widest:
		dst = append(append(dst, n.digits[:n.point]...), '.')
		return append(dst, n.digits[n.point:]...)
	case -6 < n.point && n.point <= 0:
		dst = append(append(dst, "0."...), bytes.Repeat([]byte{'0'}, -n.point)...)
		return append(dst, n.digits...)
	}
	dst = append(dst, n.digits[0])
	if k > 1 {
		dst = append(append(dst, '.'), n.digits[1:]...)
	}
	dst = append(dst, 'e')
	if n.point > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(n.point-1), 10)
}

// decimal is the number 0.digits times ten to the power of point, without zeros
// at either end of the digits.
type decimal struct {
	negative bool
	digits   []byte
	point    int
}

func parseDecimal(raw []byte) (n decimal, ok bool) {
	raw, n.negative = bytes.CutPrefix(raw, []byte{'-'})
	mantissa, exponent := raw, 0
	if i := bytes.IndexAny(raw, "eE"); i >= 0 {
		var err error
		if exponent, err = strconv.Atoi(string(raw[i+1:])); err != nil {
			return decimal{}, false
		}
		mantissa = raw[:i]
	}
	whole, fraction, _ := bytes.Cut(mantissa, []byte{'.'})
	all := append(append(make([]byte, 0, len(mantissa)), whole...), fraction...)
	n.digits = bytes.TrimLeft(all, "0")
	n.point = len(whole) + exponent - (len(all) - len(n.digits))
	n.digits = bytes.TrimRight(n.digits, "0")
	return n, true
}
