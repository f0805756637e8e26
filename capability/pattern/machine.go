package pattern

import "math/bits"

// Limits of a machine. A question that needs a larger one is not answered.
const (
	maxMachine = 4096    // states
	maxEntries = 1 << 15 // classes read and states linked, over all states
)

// A machine is one automaton for many rows. A row of several dimensions is read
// as one string, its dimensions joined by U+0000, which no pattern matches. The
// states are those of the patterns and one for each character of a lead.
type machine struct {
	abc     *alphabet
	reads   [][]uint16 // by state: the classes it is entered with
	next    [][]uint16 // by state: the states that can follow
	links   []uint16   // where the lists of next begin
	entries int
	start   []uint16 // where each row starts
	final   wide     // states at the end of a row
	whole   wide     // states from which everything is matched
	enter   []wide   // by class: the states entered with it
}

// wide is a set of states of a machine.
type wide []uint64

func (w wide) add(q uint16)      { w[q/64] |= 1 << (q % 64) }
func (w wide) has(q uint16) bool { return w[q/64]>>(q%64)&1 != 0 }

// meets reports whether w and v share a state.
func (w wide) meets(v wide) bool {
	for i := range w {
		if w[i]&v[i] != 0 {
			return true
		}
	}
	return false
}

// within reports whether all of w is in v.
func (w wide) within(v wide) bool {
	for i := range w {
		if w[i]&^v[i] != 0 {
			return false
		}
	}
	return true
}

// common cuts an alphabet for all the rows. It reports false if they pass the
// limits.
func common(rows []Row) (*alphabet, bool) {
	var all letters
	all.text("/.")
	if size(rows) > maxMachine {
		return nil, false
	}
	for _, row := range rows {
		for _, p := range row {
			all.text(p.lead)
			all.join(&p.rest.letters)
		}
	}
	return all.alphabet()
}

// size is how many states a machine for the rows has, or one that is too large.
func size(rows []Row) int {
	states := 0
	for _, row := range rows {
		for _, p := range row {
			states += len(p.lead) + len(p.rest.reads)
		}
		if states++; states > maxMachine {
			break
		}
	}
	return states
}

// newMachine reports false if the rows pass the limits.
func newMachine(abc *alphabet, rows []Row) (*machine, bool) {
	states := size(rows)
	m := &machine{
		abc:   abc,
		reads: make([][]uint16, 0, states),
		next:  make([][]uint16, 0, states),
		links: make([]uint16, 0, states),
	}
	var ends []uint16
	for _, row := range rows {
		ends = append(ends, m.row(row)...)
		if m.entries > maxEntries {
			return nil, false
		}
	}
	m.index(ends)
	return m, true
}

// index makes the sets of states, when all states are there.
func (m *machine) index(ends []uint16) {
	words := m.words()
	block := make(wide, (2+m.abc.size)*words)
	cut := func() (w wide) {
		w, block = block[:words], block[words:]
		return w
	}
	m.final, m.whole = cut(), cut()
	for range m.abc.size {
		m.enter = append(m.enter, cut())
	}
	for _, q := range ends {
		m.final.add(q)
	}
	for q, classes := range m.reads {
		for _, c := range classes {
			m.enter[c].add(uint16(q))
		}
	}
	for q := len(m.reads) - 1; q >= 0; q-- {
		if m.isWhole(uint16(q)) {
			m.whole.add(uint16(q))
		}
	}
}

// words is how long a set of its states is.
func (m *machine) words() int { return (len(m.reads) + 63) / 64 }

// row adds the states of a row and returns those at its end.
func (m *machine) row(row Row) []uint16 {
	at := m.state(nil)
	m.start = append(m.start, at)
	ends := []uint16{at}
	for i, p := range row {
		if i > 0 {
			at = m.state(m.abc.only(0))
			for _, end := range ends {
				m.link(end, at)
			}
		}
		ends = m.pattern(at, p)
		if m.entries > maxEntries {
			return nil
		}
	}
	return ends
}

// pattern adds the states of a pattern that begins where at has been entered.
func (m *machine) pattern(at uint16, p *Pattern) (ends []uint16) {
	for _, r := range p.lead {
		q := m.state(m.abc.only(r))
		m.link(at, q)
		at = q
	}
	base := len(m.reads) - 1
	id := func(q int) uint16 {
		if q == 0 {
			return at
		}
		return uint16(base + q)
	}
	for _, s := range p.rest.reads[1:] {
		m.state(m.abc.classes(s))
	}
	for q := range p.rest.reads {
		p.rest.prev[q].each(func(from int) { m.link(id(from), id(q)) })
	}
	p.rest.final.each(func(q int) { ends = append(ends, id(q)) })
	return ends
}

func (m *machine) state(reads []uint16) uint16 {
	m.entries += len(reads)
	m.reads = append(m.reads, reads)
	m.next = append(m.next, nil)
	return uint16(len(m.reads) - 1)
}

func (m *machine) link(from, to uint16) {
	m.entries++
	if m.next[from] == nil {
		m.links = append(m.links, to)
		m.next[from] = m.links[len(m.links)-1 : len(m.links) : len(m.links)]
		return
	}
	m.next[from] = append(m.next[from], to)
}

// isWhole reports whether every string is matched from state q on: it can end
// there, and whatever comes next leads there again, or to another such state.
// States that follow q have been looked at.
func (m *machine) isWhole(q uint16) bool {
	ends, goes := m.final.has(q), false
	for _, to := range m.next[q] {
		if to == q || m.whole.has(to) {
			ends = ends || m.reads[to][0] == 0
			goes = goes || len(m.reads[to]) == m.abc.size-1
		}
	}
	return ends && goes
}

// follow computes the states that follow those in w, and says how much there
// was to do.
func (m *machine) follow(w, next wide) (work int) {
	clear(next)
	for i, word := range w {
		for ; word != 0; word &= word - 1 {
			links := m.next[i*64+bits.TrailingZeros64(word)]
			for _, q := range links {
				next.add(q)
			}
			work += len(links)
		}
	}
	return work
}
