package capability

import (
	"iter"
	"slices"
	"sync"

	"capgate/capability/pattern"
)

// Set is everything an agent holds: its grants, expanded, clamped, compiled.
// It is immutable; the nil Set holds nothing.
type Set struct {
	grants []Grant
	tables map[Verb]*table

	// What questions about the set are put together from, once there is one.
	anything func() *pattern.Pattern
	subtrees func() func(dir string) *pattern.Pattern
}

// table is the index of one verb's grants.
type table struct {
	shape shape
	held  []*Grant // also the inert ones
	live  []*Grant // those in effect, as what they are for this verb
	paths pathTable
	hosts hostTable
	procs procTable
	keyed keyedTable
}

// Options says what a list of grants is read against. Its zero value is the
// Egghead dialect without any sandbox root.
type Options struct {
	Dialect Dialect
	Config  Root // the configuration's sandbox root, if any
	Agent   Root // the record's, within Config
	View    View // how in: is read: Home for ~, FS for links

	// Unconfined says that nothing confines the programs that are run: a grant of
	// any program, which would be one of the whole machine, is inert then.
	Unconfined bool
}

// outer returns the root that a grant without its own inherits.
func (o Options) outer() Root {
	if o.Agent.IsZero() {
		return o.Config
	}
	return o.Agent
}

// Compile reads a list of grants into a set. It never fails: a grant that means
// nothing as written is kept, inert, and a finding says so.
func Compile(specs []Spec, opts Options) (*Set, []Finding) {
	c := compiler{opts: opts, grants: make([]Grant, 0, len(specs)), seen: make(map[string]bool, len(specs))}
	for _, s := range specs {
		c.add(s)
	}
	s := &Set{grants: c.grants, tables: map[Verb]*table{}, anything: sync.OnceValue(anything), subtrees: sync.OnceValue(pattern.Subtrees)}
	for i := range s.grants {
		s.grants[i].n = int32(i)
		s.index(&s.grants[i])
	}
	return s, c.findings
}

func (s *Set) index(g *Grant) {
	for _, v := range g.entry.verbs() {
		t := s.tables[v]
		if t == nil {
			t = &table{shape: g.entry.Verb.shape()}
			s.tables[v] = t
		}
		t.held = append(t.held, g)
		if g.inert != "" {
			continue
		}
		for _, one := range g.as(v) {
			t.live = append(t.live, one)
			t.add(one)
		}
	}
}

func (t *table) add(g *Grant) {
	switch t.shape {
	case shapePath:
		g.eachPath(
			func(dir string) { t.paths.subtree(dir, g.n) },
			func(p *pattern.Pattern) { t.paths.glob(p, g.n) },
		)
	case shapeHost:
		for _, h := range g.hosts {
			t.hosts.add(h, g.n)
		}
	case shapeProgram:
		t.procs.add(g)
	default:
		t.keyed.add(g)
	}
}

// eachPath visits what an fs grant allows, below each place its root is known by.
func (g *Grant) eachPath(subtree func(dir string), glob func(p *pattern.Pattern)) {
	for _, dir := range g.root.dirs() {
		if g.any {
			subtree(dir)
		}
		for _, e := range g.paths {
			switch {
			case e.glob != nil:
				glob(pattern.Under(dir, e.glob))
			case e.dir == ".":
				subtree(dir)
			case dir == "/":
				subtree("/" + e.dir)
			default:
				subtree(dir + "/" + e.dir)
			}
		}
	}
}

// All visits the grants of the set, inert ones included, in the order written.
func (s *Set) All() iter.Seq[*Grant] {
	return func(yield func(*Grant) bool) {
		if s == nil {
			return
		}
		for i := range s.grants {
			if !yield(&s.grants[i]) {
				return
			}
		}
	}
}

// ByRisk returns the grants of the set, riskiest last, as the catalogue is sorted.
func (s *Set) ByRisk() []*Grant {
	list := slices.Collect(s.All())
	slices.SortStableFunc(list, func(a, b *Grant) int { return int(a.Risk()) - int(b.Risk()) })
	return list
}

// Holds reports whether the set has any grant of the verb, even an inert one.
func (s *Set) Holds(v Verb) bool { return s != nil && s.tables[v] != nil }

// Decide says whether the set covers a requirement. It never fails: what cannot
// be read is denied.
func (s *Set) Decide(r *Requirement) Decision {
	d := s.decide(r)
	if d.Allowed() && r.path.links != nil && !r.path.links.within(s.covering(r.verb)) {
		return Decision{Code: ScopeViolation, need: r, held: d.held, astray: true}
	}
	return d
}

// covering is that of the set's grants of a verb.
func (s *Set) covering(v Verb) covering { return s.tables[v].paths.covering }

// decide is Decide, but for where the links lead that globs meet.
func (s *Set) decide(r *Requirement) Decision {
	if s == nil || s.tables[r.verb] == nil {
		return Decision{Code: CapabilityAbsent, need: r}
	}
	t := s.tables[r.verb]
	if g := t.find(s, r); g != nil && r.opaque == "" {
		return Decision{Effect: Allow, need: r, grant: g, held: t.held}
	}
	return Decision{Code: ScopeViolation, need: r, held: t.held}
}

func (t *table) find(s *Set, r *Requirement) *Grant {
	var n int32
	var ok bool
	switch t.shape {
	case shapePath:
		n, ok = t.paths.covers(r.path)
	case shapeHost:
		n, ok = t.hosts.find(r.target)
	case shapeProgram:
		n, ok = t.procs.find(r)
	default:
		return t.keyed.find(r)
	}
	if !ok {
		return nil
	}
	return &s.grants[n]
}
