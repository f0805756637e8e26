package pattern

import "slices"

// A Demand is a union that a thing must be in.
type Demand struct {
	Rows []Row

	// Tree demands that everything beneath be in the union as well. The last
	// dimension is a path then, and what is beneath it is beneath that path.
	Tree bool
}

// Common is [Meets] for demands, of which there must be one at least: it returns
// a shortest thing that meets them all.
func Common(u []Universe, demands ...Demand) (witness []string, ok, capped bool) {
	few := 0
	for i, d := range demands {
		if !fits(u, d.Rows) {
			return nil, false, false
		}
		if len(d.Rows) < len(demands[few].Rows) {
			few = i
		}
	}
	if len(demands) == 0 || len(u) == 0 {
		return nil, false, false
	}
	walk := near(demands[few].Rows, demands[few].Rows)
	var rows []Row
	var sizes, trees []int
	for i, d := range demands {
		if i == few && !d.Tree {
			continue
		}
		union := near(d.Rows, walk)
		if d.Tree { // what is beneath may be in rows that the path itself is not in
			union, trees = near(d.Rows, d.Rows), append(trees, len(sizes))
		}
		rows, sizes = append(rows, union...), append(sizes, len(union))
	}
	if slices.Contains(sizes, 0) || len(walk) == 0 {
		return nil, false, false
	}
	var down *downward
	witness, ok, capped = seek(u, walk, rows, func(m *machine) goal {
		down = &downward{shared: newShared(m, sizes), m: m, trees: trees}
		return down
	})
	return witness, ok, capped || !ok && down != nil && down.capped
}

// downward is the goal to find a string that a row of every union matches, and of
// some unions with everything beneath it.
type downward struct {
	shared
	m      *machine
	trees  []int  // which of the unions
	faces  []rune // by class: a character of it
	work   int
	capped bool
}

func (g *downward) found(s wide) bool {
	if !g.shared.found(s) {
		return false
	}
	for _, union := range g.trees {
		if !g.holds(union, s) {
			return false
		}
	}
	return true
}

// depth is a set of states somewhere beneath a path.
type depth struct {
	states wide
	canon  canon
}

// holds reports whether one of the unions matches, from a set of states, all that
// goes on with a slash and is canonical. It looks for what is not matched, and
// goes on from the smallest sets only: what is matched from those is matched from
// larger ones.
func (g *downward) holds(union int, s wide) bool {
	if g.faces == nil {
		g.faces = g.m.abc.faces()
	}
	from := make(wide, len(s))
	for i := range s {
		from[i] = s[i] & g.states[union][i]
	}
	places, reach := []depth{{from, inside}}, make(wide, len(s))
	for n := 0; n < len(places); n++ {
		g.work += g.m.follow(places[n].states, reach)
		for class := 1; class < len(g.faces); class++ {
			to := places[n].canon.read(g.faces[class])
			if to == never || n == 0 && to != slash {
				continue
			}
			if g.work += len(s) * (1 + len(places)); g.work > maxWork {
				g.capped = true
				return false
			}
			next := make(wide, len(s))
			for i := range next {
				next[i] = reach[i] & g.m.enter[class][i]
			}
			switch {
			case next.meets(g.m.whole) || looked(places[1:], next, to):
			case !next.meets(g.states[union]) || to.done() && !next.meets(g.ends[union]):
				return false
			default:
				places = append(places, depth{next, to})
			}
		}
	}
	return true
}

// looked reports whether everything is matched from a set if it is from one that
// is looked at anyway.
func looked(places []depth, s wide, c canon) bool {
	return slices.ContainsFunc(places, func(d depth) bool { return d.canon == c && d.states.within(s) })
}

// Segments returns the pattern that matches segments with a separator between
// them, and if it is absolute one before the first. A segment is made of
// characters of inner and ends in one of last, which are written as ranges: "azAZ__".
// What its String returns is for people only.
func Segments(sep rune, absolute bool, inner, last string) *Pattern {
	const border, within, end = 1, 2, 3 // the states: behind a separator, and in a segment
	m := newAutomaton()
	var start, segment, final states
	start.add(0)
	final.add(end)
	segment.add(border)
	first := start
	if !absolute {
		segment.add(0)
		first = states{}
	}
	m.add(one(sep), first)
	m.add(ranges(inner).without(sep), segment)
	segment.add(within)
	m.add(ranges(last).without(sep), segment)
	m.finish(final)
	// A segment goes on, and another one follows, which is a way back that no text
	// of a pattern makes.
	m.prev[within].add(within)
	m.loops.add(within)
	m.prev[border].add(end)
	m.odd.add(border)
	text := "segments of " + inner + " that end in " + last + " behind " + string(sep)
	if absolute {
		text = "absolute " + text
	}
	return &Pattern{text: text, sep: sep, form: general, rest: m}
}

// ranges reads pairs of characters.
func ranges(text string) set {
	var spans []span
	for pair := []rune(text); len(pair) > 1; pair = pair[2:] {
		spans = append(spans, span{pair[0], pair[1]})
	}
	return tidy(spans)
}

// Sample returns a string that the pattern matches: a directory itself, and else
// one in which every wildcard stands for something. It is "" if nothing matches.
func (p *Pattern) Sample() string {
	if p.empty() || p.form == subtree {
		return p.leading()
	}
	// States are entered from those before them, or from themselves; more than one
	// segment of Segments is not needed.
	longest, back := make([]int, len(p.rest.reads)), make([]int, len(p.rest.reads))
	last := -1
	for q := range p.rest.reads {
		longest[q] = min(0, -q)
		p.rest.prev[q].each(func(from int) {
			if from < q && longest[from] >= max(0, longest[q]) {
				longest[q], back[q] = longest[from]+1, from
			}
		})
		if p.rest.final.has(q) && (last < 0 || longest[q] >= longest[last]) {
			last = q
		}
	}
	var read []rune
	for q := last; q > 0; q = back[q] {
		read = append(read, p.rest.reads[q].plainest())
	}
	slices.Reverse(read)
	return p.lead + string(read)
}

func (p *Pattern) leading() string {
	if p == nil {
		return ""
	}
	return p.lead
}

// plainest returns the character of a set that reads best.
func (s set) plainest() rune {
	for _, r := range "xa0_/" {
		if slices.ContainsFunc(s, func(sp span) bool { return sp.lo <= r && r <= sp.hi }) {
			return r
		}
	}
	return s[0].lo
}
