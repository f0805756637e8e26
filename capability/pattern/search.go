package pattern

import (
	"slices"
	"strings"
)

// Limits of the work on one question. One that needs more is not answered.
const (
	maxPlaces = 4000    // places visited
	maxWork   = 1 << 17 // steps tried, and machine words of sets computed and compared
)

// A search walks through the strings that are of the universes and that one
// machine matches, shortest first, and keeps for each the set of states another
// machine is in. Of strings that end in the same place it goes on from those
// only that could lead to something the others do not.
type search struct {
	along  *machine
	beside *machine
	u      []Universe
	goal   goal

	faces  []rune // by class: a character of it
	places []place
	sets   wide    // the sets of all places
	newest []int32 // by state and canon: the newest place there, plus one
	reach  wide    // the states that can follow those of the place at hand
	work   int
	limit  int // of it
}

// A goal says what a search is for, given sets of states of the machine beside.
type goal interface {
	found(s wide) bool       // a string that ends here is a witness
	futile(s wide) bool      // no witness goes through here
	worse(s, than wide) bool // a witness from s is one from than, too
}

// A place is a string, as far as the search needs to know it.
type place struct {
	state uint16 // of the machine walked
	class uint16 // of its last character
	canon canon
	dim   uint16
	back  int32 // the place before its last character
	older int32 // another place of the same state and canon, plus one
}

// run returns a shortest witness, one string for each dimension. It reports
// whether there is one, or that knowing would be too much work.
func (s *search) run() (witness []string, found, capped bool) {
	s.newest = make([]int32, len(s.along.reads)*canons)
	s.reach = make(wide, s.beside.words())
	for _, q := range s.beside.start {
		s.reach.add(q)
	}
	for _, q := range s.along.start {
		if s.visit(place{state: q, canon: s.enters(0), back: -1}, s.reach) {
			return s.trace(), true, false
		}
	}
	for i := 0; i < len(s.places); i++ {
		at := s.places[i]
		s.work += s.beside.follow(s.set(i), s.reach)
		for _, q := range s.along.next[at.state] {
			for _, class := range s.along.reads[q] {
				s.work++
				to := s.step(at, class)
				to.state, to.class, to.back = q, class, int32(i)
				if to.canon != never && s.visit(to, s.beside.enter[class]) {
					return s.trace(), true, false
				}
				if len(s.places) > maxPlaces || s.work > s.limit {
					return nil, false, true
				}
			}
		}
	}
	return nil, false, false
}

// enters returns how far a string is canonical before it enters a dimension. One
// of no dimensions is.
func (s *search) enters(dim int) canon {
	if dim == len(s.u) {
		return anyhow
	}
	return s.u[dim].start()
}

// step reads one more character; U+0000 leads into the next dimension.
func (s *search) step(at place, class uint16) place {
	if class != 0 {
		return place{dim: at.dim, canon: at.canon.read(s.faces[class])}
	}
	if !at.canon.done() {
		return place{canon: never}
	}
	return place{dim: at.dim + 1, canon: s.enters(int(at.dim) + 1)}
}

// visit makes a place, unless nothing is to be found through it, and reports
// whether the string that leads there is a witness.
func (s *search) visit(to place, enter wide) bool {
	before := len(s.sets)
	for i := range enter {
		s.sets = append(s.sets, s.reach[i]&enter[i])
	}
	set := s.sets[before:]
	s.work += 1 + len(set)
	newest := &s.newest[int(to.state)*canons+int(to.canon)]
	if s.goal.futile(set) || s.known(*newest, set) {
		s.sets = s.sets[:before]
		return false
	}
	to.older = *newest
	s.places = append(s.places, to)
	*newest = int32(len(s.places))
	return s.along.final.has(to.state) && to.canon.done() && s.goal.found(set)
}

// known reports whether a place that is as good as the set has been visited.
func (s *search) known(newest int32, set wide) bool {
	for newest > 0 {
		s.work += 1 + len(set)
		if s.goal.worse(set, s.set(int(newest-1))) {
			return true
		}
		newest = s.places[newest-1].older
	}
	return false
}

// set returns the set of a place.
func (s *search) set(place int) wide {
	words := len(s.reach)
	return s.sets[place*words : (place+1)*words]
}

// trace returns the string that leads to the newest place, cut into dimensions.
func (s *search) trace() []string {
	var read []rune
	for i := len(s.places) - 1; s.places[i].back >= 0; i = int(s.places[i].back) {
		read = append(read, s.faces[s.places[i].class])
	}
	slices.Reverse(read)
	return strings.Split(string(read), "\x00")[:len(s.u)]
}

// seek walks some rows beside others.
func seek(u []Universe, walk, rows []Row, to func(beside *machine) goal) (witness []string, found, capped bool) {
	witness, found, capped, _ = (&search{u: u, limit: maxWork}).seek(walk, rows, to)
	return witness, found, capped
}

// seek says what that has cost, too.
func (s *search) seek(walk, rows []Row, to func(beside *machine) goal) (witness []string, found, capped bool, work int) {
	abc, ok := common(slices.Concat(walk, rows))
	if !ok {
		return nil, false, true, 0
	}
	along, fits := newMachine(abc, walk)
	beside, fit := newMachine(abc, rows)
	if !fits || !fit {
		return nil, false, true, 0
	}
	s.along, s.beside, s.goal, s.faces = along, beside, to(beside), abc.faces()
	witness, found, capped = s.run()
	return witness, found, capped, s.work
}
