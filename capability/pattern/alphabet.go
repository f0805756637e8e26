package pattern

import (
	"slices"
	"unicode/utf8"
)

// Limits of an alphabet.
const (
	maxSets    = 64        // different classes and wildcards: a bit of a signature each
	maxSingles = maxStates // different literal characters
)

// An alphabet cuts Unicode into classes of characters that some patterns cannot
// tell apart, so that an automaton need look at one of each class only. Class 0
// is U+0000 alone.
type alphabet struct {
	lows  []rune // where the intervals begin, in order
	class []int  // the class of each interval
	ascii [utf8.RuneSelf]uint16
	size  int // the number of classes

	sets    []set      // what it was cut by, in order
	members [][]uint16 // by set: its classes
	singles []uint16   // by class: the class, so that one is a list without being made one
}

// letters is what patterns read, before it is cut into classes: single
// characters and sets of several.
type letters struct {
	ascii  [utf8.RuneSelf]bool
	others []rune
	sets   []set
}

func (l *letters) add(r rune) {
	if r < utf8.RuneSelf {
		l.ascii[r] = true
	} else {
		l.others = append(l.others, r)
	}
}

func (l *letters) text(s string) {
	for _, r := range s {
		l.add(r)
	}
}

func (l *letters) read(s set) {
	if s.single() {
		l.add(s[0].lo)
	} else {
		l.sets = append(l.sets, s)
	}
}

func (l *letters) join(k *letters) {
	for r, in := range k.ascii {
		l.ascii[r] = l.ascii[r] || in
	}
	l.others = append(l.others, k.others...)
	l.sets = append(l.sets, k.sets...)
}

// tidy drops what is there twice, and returns the single characters in order.
func (l *letters) tidy() (singles []rune) {
	slices.Sort(l.others)
	l.others = slices.Compact(l.others)
	slices.SortFunc(l.sets, set.compare)
	l.sets = slices.CompactFunc(l.sets, func(s, t set) bool { return s.compare(t) == 0 })
	for r, in := range l.ascii {
		if in {
			singles = append(singles, rune(r))
		}
	}
	return append(singles, l.others...)
}

// alphabet cuts. It reports false when that would pass the limits.
func (l *letters) alphabet() (*alphabet, bool) {
	l.add(0)
	singles := l.tidy()
	if len(l.sets) > maxSets || len(singles) > maxSingles {
		return nil, false
	}
	a := &alphabet{lows: borders(singles, l.sets), sets: l.sets}
	sigs := signatures(a.lows, l.sets)
	a.classify(singles, sigs)
	for i, low := range a.lows {
		for r := low; r < utf8.RuneSelf && (i+1 == len(a.lows) || r < a.lows[i+1]); r++ {
			a.ascii[r] = uint16(a.class[i])
		}
	}
	for c := range a.size {
		a.singles = append(a.singles, uint16(c))
	}
	for bit := range l.sets {
		var members []uint16
		for i, sig := range sigs {
			if sig>>bit&1 != 0 {
				members = append(members, uint16(a.class[i]))
			}
		}
		slices.Sort(members)
		a.members = append(a.members, slices.Compact(members))
	}
	return a, true
}

// borders returns the characters at which something begins or has just ended.
func borders(singles []rune, sets []set) []rune {
	var lows []rune
	for _, r := range singles {
		lows = append(lows, r, after(r))
	}
	for _, s := range sets {
		for _, sp := range s {
			lows = append(lows, sp.lo, after(sp.hi))
		}
	}
	slices.Sort(lows)
	lows = slices.Compact(lows)
	if last := len(lows) - 1; lows[last] > utf8.MaxRune {
		lows = lows[:last]
	}
	return lows
}

// after returns the next character. Surrogates are none, and an interval of
// nothing but surrogates would be a class that no string can enter.
func after(r rune) rune {
	const surrogates, behind = 0xD800, 0xE000
	if r++; r == surrogates {
		return behind
	}
	return r
}

// signatures says of each interval which sets hold it.
func signatures(lows []rune, sets []set) []uint64 {
	sigs := make([]uint64, len(lows))
	for bit, s := range sets {
		for _, sp := range s {
			i, _ := slices.BinarySearch(lows, sp.lo)
			for ; i < len(lows) && lows[i] <= sp.hi; i++ {
				sigs[i] |= 1 << bit
			}
		}
	}
	return sigs
}

// classify gives every single character a class of its own, and intervals of
// equal signature a common one.
func (a *alphabet) classify(singles []rune, sigs []uint64) {
	type common struct {
		sig   uint64
		class int
	}
	var seen []common
	a.class = make([]int, len(a.lows))
	for i, low := range a.lows {
		if len(singles) > 0 && singles[0] == low {
			singles = singles[1:]
			a.class[i] = a.size
			a.size++
			continue
		}
		at := slices.IndexFunc(seen, func(c common) bool { return c.sig == sigs[i] })
		if at < 0 {
			at = len(seen)
			seen = append(seen, common{sigs[i], a.size})
			a.size++
		}
		a.class[i] = seen[at].class
	}
}

// interval finds the interval that holds a character.
func (a *alphabet) interval(r rune) int {
	i, found := slices.BinarySearch(a.lows, r)
	if !found {
		i--
	}
	return i
}

// of returns the class of a character.
func (a *alphabet) of(r rune) int {
	if r < utf8.RuneSelf {
		return int(a.ascii[r])
	}
	return a.class[a.interval(r)]
}

// classes returns the classes of one of the sets it was cut by.
func (a *alphabet) classes(s set) []uint16 {
	if s.single() {
		return a.only(s[0].lo)
	}
	i, _ := slices.BinarySearchFunc(a.sets, s, set.compare)
	return a.members[i]
}

// only returns the class of one of the characters it was cut by.
func (a *alphabet) only(r rune) []uint16 {
	c := a.of(r)
	return a.singles[c : c+1]
}

// faces picks a character for each class: one that reads well in a message, if
// the class has one.
func (a *alphabet) faces() []rune {
	const liked = "xyzabcdefghijklmnopqrstuvw0123456789_-" +
		"XYZABCDEFGHIJKLMNOPQRSTUVW.,:;+=@%~#&!$^'\"()<>|[]{}?*\\/` "
	faces := make([]rune, a.size)
	for _, r := range liked {
		if f := &faces[a.of(r)]; *f == 0 {
			*f = r
		}
	}
	for i, low := range a.lows {
		if f := &faces[a.class[i]]; *f == 0 {
			*f = low
		}
	}
	return faces
}
