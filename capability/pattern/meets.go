package pattern

import "slices"

// maxCompared bounds the pairs of rows compared before a search, to leave out
// rows that cannot matter.
const maxCompared = 1 << 13

// Meets reports whether something is in every one of the unions, among the
// strings of the universes, and returns a shortest such thing: one string for
// each dimension. When capped, the work passed a limit and nobody knows: ok is
// false then, but not because there is nothing. Rows of another length than u
// meet nothing.
func Meets(u []Universe, unions ...[]Row) (witness []string, ok, capped bool) {
	if len(unions) == 0 {
		unions = [][]Row{{slices.Repeat(Row{ours("**")}, len(u))}}
	}
	few := 0
	for i, union := range unions {
		if !fits(u, union) {
			return nil, false, false
		}
		if len(union) < len(unions[few]) {
			few = i
		}
	}
	walk := near(unions[few], unions[few])
	var rows []Row
	var sizes []int
	for i, union := range unions {
		if i != few {
			union = near(union, walk)
			rows, sizes = append(rows, union...), append(sizes, len(union))
		}
	}
	return seek(u, walk, rows, func(m *machine) goal { return newShared(m, sizes) })
}

// near leaves out the rows that are apart from all of some others.
func near(rows, others []Row) []Row {
	compare := len(rows)*len(others) <= maxCompared
	return slices.DeleteFunc(slices.Clone(rows), func(row Row) bool {
		return row.empty() || compare && !slices.ContainsFunc(others, func(o Row) bool { return !row.apart(o) })
	})
}

// shared is the goal to find a string that a row of every union matches.
type shared struct {
	ends   []wide // by union: the states at the end of its rows
	states []wide // by union: all of its states
}

// newShared reads which rows are whose: so many of the first union, so many of
// the next.
func newShared(m *machine, sizes []int) shared {
	var g shared
	starts := append(m.start, uint16(len(m.reads)))
	for _, size := range sizes {
		states, ends := make(wide, m.words()), make(wide, m.words())
		for q := starts[0]; q < starts[size]; q++ {
			states.add(q)
			if m.final.has(q) {
				ends.add(q)
			}
		}
		g.states, g.ends = append(g.states, states), append(g.ends, ends)
		starts = starts[size:]
	}
	return g
}

func (g shared) found(s wide) bool       { return all(g.ends, s) }
func (g shared) futile(s wide) bool      { return !all(g.states, s) }
func (g shared) worse(s, than wide) bool { return s.within(than) }

// all reports whether s shares a state with each of the sets.
func all(sets []wide, s wide) bool {
	return !slices.ContainsFunc(sets, func(set wide) bool { return !set.meets(s) })
}
