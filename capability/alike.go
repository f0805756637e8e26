package capability

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MayBe reports whether some server may take a URI for what is in a place of its scheme, or for what begins like that where
// this is not the whole of it. Servers leave out marks, accents and what is not ASCII, or put one mark for another; they take
// some for whatever stands there, as SQL and regular expressions do, or for the end of an item of a list; and they read no
// more of a number than its digits. None does so with the host of a site. What takes too long to find out of many places, one
// after the other, may be in any of them.
func (u *URI) MayBe(place string, whole bool) bool {
	_, own, _ := strings.Cut(place, ":/")
	for _, at := range u.Places {
		_, text, _ := strings.Cut(at, ":/")
		l := likeness{inHost: isBrowsed(u.Scheme), work: u.compared}
		is := l.alike(own, text, whole)
		if u.compared = l.work; is {
			return true
		}
	}
	return false
}

// unmarked writes a place as it is to who leaves out marks.
func unmarked(place string) string {
	segs := strings.Split(place, "/")
	for i, seg := range segs[1:] {
		segs[i+1] = cmp.Or(strings.Map(func(r rune) rune {
			if isMark(r) {
				return -1
			}
			return r
		}, seg), seg)
	}
	return strings.Join(segs, "/")
}

// Unmarked is what servers take a URI for that leave out marks; behind that, for each place, those that leave out what is not
// ASCII as well, or take the items of lists apart.
func (u *URI) Unmarked() (places []string) {
	for _, at := range u.Places {
		places = append(places, unmarked(at))
		segs := strings.Split(strings.ReplaceAll(at, ",", "/"), "/")
		for i, seg := range segs[1:] {
			segs[i+1] = strings.ReplaceAll(ofASCII(seg), ".", "")
		}
		places = appendNew(places, strings.Join(slices.DeleteFunc(segs, func(seg string) bool { return seg == "" }), "/"))
	}
	return places
}

// likeness compares a place with what may be taken for it, by all that may have been read of the place so far.
type likeness struct {
	own       []rune
	now, then states
	inHost    bool
	broken    bool // something of the segment was no digit
	work      int
}

// maxLikeness is how many steps all comparisons of one URI may take. What takes more may be the place.
const maxLikeness = 1 << 20

// states are those from the first to the last one.
type states struct {
	is          []bool
	first, last int
}

func (l *likeness) alike(own, text string, whole bool) bool {
	const usual = 128 // for which nothing is allocated
	var runes [usual]rune
	var now, then [usual + 1]bool
	l.own = runes[:0]
	for _, r := range own {
		l.own = append(l.own, r)
	}
	l.now.is, l.then.is = now[:], then[:]
	if len(l.own) > usual {
		l.now.is, l.then.is = make([]bool, len(l.own)+1), make([]bool, len(l.own)+1)
	}
	l.now.first, l.now.last, l.then.first, l.then.last = len(l.own), 0, len(l.own), 0
	l.enter(&l.now, 0)
	return l.reads(text, whole)
}

// reads goes through a text and a slash, and reports whether what is read may be the place.
func (l *likeness) reads(text string, whole bool) bool {
	end := len(l.own)
	for _, r := range text {
		if l.now.is[end] && !whole || l.work > maxLikeness {
			return true
		}
		if !l.next(r) {
			return false
		}
	}
	return l.now.is[end] && !whole || l.next('/') && l.now.is[end]
}

// next reads a character, and reports whether something of the place may still be read.
func (l *likeness) next(r rune) (alive bool) {
	l.work += 1 + l.now.last - l.now.first
	for at := l.now.first; at <= l.now.last; at++ {
		if l.now.is[at] {
			l.now.is[at] = false
			alive = l.step(at, r) || alive
		}
	}
	l.now.first, l.now.last = len(l.own), 0
	l.now, l.then = l.then, l.now
	l.inHost = l.inHost && r != '/'
	l.broken = r != '/' && (l.broken || !unicode.IsDigit(r))
	return alive
}

// step goes on from where something of the place has been read, and reports whether there is a way to.
func (l *likeness) step(at int, r rune) bool {
	stays, goes := !l.inHost && l.leavesOut(at, r), at < len(l.own) && (l.own[at] == r || !l.inHost && stands(r, l.own[at]))
	if stays {
		l.enter(&l.then, at)
	}
	if goes {
		l.enter(&l.then, at+1)
	}
	return stays || goes
}

// leavesOut reports whether some reader leaves out what comes next.
func (l *likeness) leavesOut(at int, r rune) bool {
	starts := at == 0 || l.own[at-1] == '/'
	switch {
	case r == '/':
		return starts
	case r == '0' && starts && l.isDigit(at), l.isNumber(at) && (l.broken || !unicode.IsDigit(r)):
		return true
	}
	return r >= utf8.RuneSelf || isMark(r)
}

// stands reports whether a mark is another character to some reader.
func stands(r, other rune) bool {
	switch r {
	case '_':
		return true
	case '.':
		return other != '/'
	case ',':
		return other == '/' || isMark(other)
	}
	return isMark(r) && isMark(other)
}

// isMark reports whether a character is one that readers do not care for.
func isMark(r rune) bool {
	return r < utf8.RuneSelf && !isAmong(r, "/:@")
}

// enter notes that the place may have been read so far, or a mark further.
func (l *likeness) enter(s *states, at int) {
	for s.first = min(s.first, at); !s.is[at]; at++ { // else what comes behind that is noted as well
		s.is[at], s.last = true, max(s.last, at)
		if at == len(l.own) {
			return
		}
		isZero := l.own[at] == '0' && (at == 0 || l.own[at-1] == '/') && l.isDigit(at+1)
		if l.inHost || !isMark(l.own[at]) && !isZero {
			return
		}
	}
}

func (l *likeness) isDigit(at int) bool { return at < len(l.own) && unicode.IsDigit(l.own[at]) }

// isNumber reports whether the segment that ends there is a number.
func (l *likeness) isNumber(at int) bool {
	if at == 0 || at < len(l.own) && l.own[at] != '/' {
		return false
	}
	from := at
	for ; from > 0 && l.isDigit(from-1); from-- {
		l.work++
	}
	return from < at && (from == 0 || l.own[from-1] == '/')
}
