package wire

// A state is where in the text of a string a reader stands. Its number says
// which six bits of a row of the automaton are its successor.
type state uint64

// The states. The successor of stop is stop, whatever follows.
const (
	stop    state = 6 * iota
	ready         // between characters
	escaped       // behind a backslash
	lackOne       // in a character that lacks one more byte, or so many
	lackTwo
	lackThree
	afterE0 // behind a first byte that not every second one may follow
	afterED
	afterF0
	afterF4
)

const stateBits = 1<<6 - 1

// An automaton reads the text of a string. It has a row for every byte, in which
// the successors of all states stand side by side: shifting the row by the state
// before gives, in its lowest bits, the state behind. That takes about a cycle a
// byte and has no branch to predict, so that text costs the same whatever is in
// it and wherever its escapes and accents stand.
//
// It stops before the closing quote, before the u of an escape and before what
// is wrong.
type automaton [256]state

// inText is computed once and never written.
var inText = newAutomaton()

func newAutomaton() (a automaton) {
	from := func(at state, first, last byte, next state) {
		for c := int(first); c <= int(last); c++ {
			a[c] |= next << at
		}
	}
	from(ready, ' ', '"'-1, ready)
	from(ready, '"'+1, '\\'-1, ready)
	from(ready, '\\'+1, 0x7f, ready)
	from(ready, '\\', '\\', escaped)
	for _, c := range []byte(`"\/bfnrt`) {
		from(escaped, c, c, ready)
	}
	// Characters beyond ASCII, as in the syntax of RFC 3629.
	from(ready, 0xc2, 0xdf, lackOne)
	from(ready, 0xe0, 0xe0, afterE0)
	from(ready, 0xe1, 0xec, lackTwo)
	from(ready, 0xed, 0xed, afterED)
	from(ready, 0xee, 0xef, lackTwo)
	from(ready, 0xf0, 0xf0, afterF0)
	from(ready, 0xf1, 0xf3, lackThree)
	from(ready, 0xf4, 0xf4, afterF4)
	from(afterE0, 0xa0, 0xbf, lackOne) // less would be overlong
	from(afterED, 0x80, 0x9f, lackOne) // more would be a surrogate
	from(afterF0, 0x90, 0xbf, lackTwo) // less would be overlong
	from(afterF4, 0x80, 0x8f, lackTwo) // more would be past U+10FFFF
	from(lackThree, 0x80, 0xbf, lackTwo)
	from(lackTwo, 0x80, 0xbf, lackOne)
	from(lackOne, 0x80, 0xbf, ready)
	return a
}

// read returns where the automaton stops that comes to pos in the state at, or
// the end of data, and its state there.
func (a *automaton) read(data []byte, pos int, at state) (int, state) {
	for ; len(data)-pos >= 8; pos += 8 {
		b := (*[8]byte)(data[pos:])
		next := a[b[0]] >> (at & stateBits)
		next = a[b[1]] >> (next & stateBits)
		next = a[b[2]] >> (next & stateBits)
		next = a[b[3]] >> (next & stateBits)
		next = a[b[4]] >> (next & stateBits)
		next = a[b[5]] >> (next & stateBits)
		next = a[b[6]] >> (next & stateBits)
		next = a[b[7]] >> (next & stateBits)
		if next&stateBits == stop {
			break
		}
		at = next
	}
	for ; pos < len(data); pos++ {
		next := a[data[pos]] >> (at & stateBits)
		if next&stateBits == stop {
			break
		}
		at = next
	}
	return pos, at & stateBits
}
