package pattern

import (
	"math/bits"
	"unicode/utf8"
)

// maxStates bounds an automaton, and with it what one character can cost.
const maxStates = 512

// states is a set of states of one automaton.
type states [maxStates / 64]uint64

func (s *states) add(q int)      { s[q/64] |= 1 << (q % 64) }
func (s *states) has(q int) bool { return s[q/64]>>(q%64)&1 != 0 }

func (s *states) join(t *states) {
	for w := range s {
		s[w] |= t[w]
	}
}

// keep takes out the states that are not in t.
func (s *states) keep(t *states) {
	for w := range s {
		s[w] &= t[w]
	}
}

// meets reports whether two sets share a state below 64*words.
func (s *states) meets(t *states, words int) bool {
	for w := range words {
		if s[w]&t[w] != 0 {
			return true
		}
	}
	return false
}

// each calls do with every state in the set.
func (s *states) each(do func(q int)) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			do(w*64 + bits.TrailingZeros64(word))
		}
	}
}

// An automaton is a pattern as Glushkov saw it: a state for each character,
// class or wildcard, entered by reading it, and no empty moves. State 0 is where
// it starts. It is read from left to right with all states it can be in at
// once, which is what keeps matching linear whatever the pattern.
type automaton struct {
	reads []set    // by state: what is read on entering it
	prev  []states // by state: from where it can be entered
	final states

	words   int // of a states value that are in use
	letters letters
	abc     *alphabet // cuts the letters
	enter   []states  // by class: the states that read it

	loops, chain, hops states // entered from themselves, from the state before, from the one before that
	odd                states // entered from others as well
}

func newAutomaton() *automaton {
	return &automaton{reads: []set{nil}, prev: []states{{}}}
}

// add makes a new state.
func (m *automaton) add(reads set, prev states) int {
	m.reads = append(m.reads, reads)
	m.prev = append(m.prev, prev)
	return len(m.reads) - 1
}

// finish makes the automaton ready to match. It reports false if it reads more
// than maxSets different sets.
func (m *automaton) finish(final states) bool {
	for _, s := range m.reads[1:] {
		m.letters.read(s)
	}
	abc, ok := m.letters.alphabet()
	if !ok {
		return false
	}
	m.final, m.abc, m.words = final, abc, (len(m.reads)+63)/64
	m.enter = make([]states, abc.size)
	for q := range m.prev {
		m.prev[q].each(func(from int) {
			kinds := [...]*states{&m.loops, &m.chain, &m.hops, &m.odd}
			kinds[min(q-from, 3)].add(q)
		})
	}
	for q, s := range m.reads[1:] {
		for _, class := range abc.classes(s) {
			m.enter[class].add(q + 1)
		}
	}
	return true
}

// match runs the automaton over s. Bytes that are not UTF-8 are read by no
// state, nor is U+0000.
func (m *automaton) match(s string) bool {
	var a, b states
	now, then := &a, &b
	now.add(0)
	for i := 0; i < len(s); {
		class, size := 0, 1
		if c := s[i]; c < utf8.RuneSelf {
			class = int(m.abc.ascii[c])
		} else {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r == utf8.RuneError && size == 1 {
				return false
			}
			class = m.abc.of(r)
		}
		i += size
		if !m.step(now, then, &m.enter[class]) {
			return false
		}
		now, then = then, now
	}
	return now.meets(&m.final, m.words)
}

// step computes which of the states in enter can be entered from those in now,
// most of them a word at a time. It reports whether there are any.
func (m *automaton) step(now, then, enter *states) bool {
	alive, last := uint64(0), uint64(0)
	for w := range m.words {
		word := now[w]
		next := word&m.loops[w] | (word<<1|last>>63)&m.chain[w] | (word<<2|last>>62)&m.hops[w]
		next &= enter[w]
		for odd := enter[w] & m.odd[w] &^ next; odd != 0; odd &= odd - 1 {
			if bit := bits.TrailingZeros64(odd); now.meets(&m.prev[w*64+bit], m.words) {
				next |= 1 << bit
			}
		}
		then[w] = next
		alive |= next
		last = word
	}
	return alive != 0
}
