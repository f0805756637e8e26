package pattern

import (
	"cmp"
	"slices"
	"unicode/utf8"
)

// A span is an interval of characters, both ends included.
type span struct{ lo, hi rune }

// A set is what one position of a pattern reads: spans in order, apart from
// each other, never empty, never holding U+0000.
type set []span

// anything is what ** reads.
func anything() set { return set{{1, utf8.MaxRune}} }

// one reads a single character.
func one(r rune) set { return set{{r, r}} }

// tidy puts spans in order and joins those that touch.
func tidy(spans []span) set {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	joined := spans[:1]
	for _, s := range spans[1:] {
		if last := &joined[len(joined)-1]; s.lo <= last.hi+1 {
			last.hi = max(last.hi, s.hi)
		} else {
			joined = append(joined, s)
		}
	}
	return joined
}

// without returns the set with one character taken out.
func (s set) without(r rune) set {
	var left set
	for _, sp := range s {
		if r < sp.lo || r > sp.hi {
			left = append(left, sp)
			continue
		}
		if sp.lo < r {
			left = append(left, span{sp.lo, r - 1})
		}
		if r < sp.hi {
			left = append(left, span{r + 1, sp.hi})
		}
	}
	return left
}

// single reports whether the set holds one character only.
func (s set) single() bool { return len(s) == 1 && s[0].lo == s[0].hi }

func (s set) compare(t set) int {
	return slices.CompareFunc(s, t, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi))
	})
}
