package capability

import (
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// Possibility is a requirement that leaves something open: a verb and what it
// touches, part by part.
type Possibility struct {
	Verb  Verb
	View  View // how the upstream reads a path; links are not looked at
	Parts []Part

	// Known is the whole requirement, when it leaves nothing open.
	Known *Requirement
}

// Part is one of the things that a requirement names, as [ParseRequirement] calls
// it: path, tree, glob; url, host; command, argv, cwd; key, name, args.owner. An
// argv of one word is argv0.
type Part struct {
	Name  string
	Text  string // what it is, when that is settled
	Blank int    // which of the open values it is, from 1; 0 for none
}

// Possible reports whether the open values can be filled in so that every link of
// the chain allows every one of the needs; the same blank stands for the same
// value in all of them. Ceilings bound the names of tools and nothing else.
//
// The witness is such a filling: the value of each blank, in one word or, for an
// argv, in several. A blank without words is one of which that much is not known:
// the work was capped, or a program's arguments have a rule of their own that
// nothing tried so far keeps to. Paths are compared as text: where links lead, and
// what is fenced off, only a call shows.
func (c Chain) Possible(ceilings Chain, needs ...Possibility) (witness [][]string, ok bool) {
	p := puzzle{chain: c, ceilings: ceilings}
	for _, need := range needs {
		for _, part := range need.Parts {
			for len(p.values) < part.Blank {
				p.values = append(p.values, nil)
			}
		}
	}
	for _, link := range c {
		if link.Set != nil {
			p.anything, p.subtree = link.Set.anything(), link.Set.subtrees()
		}
	}
	for _, g := range groups(needs) {
		if !p.solve(g) {
			return nil, false
		}
	}
	return p.values, len(c) > 0
}

// puzzle is a question while it is answered.
type puzzle struct {
	chain, ceilings Chain
	values          [][]string

	anything *pattern.Pattern // what leaves a blank open
	subtree  func(dir string) *pattern.Pattern
}

// links returns the sets that a need of a verb must be in. To execute a tool by
// its Rye id is to call it, so that a ceiling bounds that too.
func (p *puzzle) links(v Verb) []*table {
	var tables []*table
	for _, link := range p.chain {
		tables = append(tables, link.Set.table(v))
	}
	if v == "tool.invoke" || v == "rye.execute.tool" {
		for _, link := range p.ceilings {
			tables = append(tables, link.Set.table("tool.invoke"))
		}
	}
	return tables
}

// table returns what a set holds of a verb, nil if that is nothing.
func (s *Set) table(v Verb) *table {
	if s == nil {
		return nil
	}
	return s.tables[v]
}

// allows reports whether every link allows a requirement.
func (p *puzzle) allows(r *Requirement) bool {
	if !p.chain.Decide(r).Allowed() {
		return false
	}
	name := r
	switch r.verb {
	case "rye.execute.tool":
		name = &Requirement{verb: "tool.invoke", words: r.words}
	case "tool.invoke":
	default:
		return true
	}
	return !slices.ContainsFunc(p.ceilings, func(l Link) bool { return !l.Set.Decide(name).Allowed() })
}

// group is needs that share blanks, and those blanks in order.
type group struct {
	needs  []Possibility
	blanks []int
}

// groups puts together what has a blank in common, directly or not.
func groups(needs []Possibility) []group {
	var all []group
	for _, need := range needs {
		g := group{needs: []Possibility{need}}
		for _, part := range need.Parts {
			if part.Blank > 0 && !slices.Contains(g.blanks, part.Blank) {
				g.blanks = append(g.blanks, part.Blank)
			}
		}
		shares := func(o group) bool {
			return slices.ContainsFunc(o.blanks, func(b int) bool { return slices.Contains(g.blanks, b) })
		}
		for _, o := range all {
			if !shares(o) {
				continue
			}
			g.needs = append(slices.Clone(o.needs), g.needs...)
			for _, b := range o.blanks {
				if !slices.Contains(g.blanks, b) {
					g.blanks = append(g.blanks, b)
				}
			}
		}
		all = append(slices.DeleteFunc(all, shares), g)
	}
	return all
}

// answer is what is known of a group. Its zero value is no.
type answer uint8

const (
	impossible answer = iota
	undecided
	possible
)

// solve answers one group, and keeps the values if it finds them.
func (p *puzzle) solve(g group) bool {
	best := impossible
	for v := range p.variants(g) {
		if best = max(best, v.answer()); best == possible {
			return true
		}
	}
	if best == impossible {
		return false
	}
	for _, b := range g.blanks {
		p.values[b-1] = nil
	}
	return true
}

func (v variant) answer() answer {
	if len(v.blanks) == 0 {
		if v.check(nil) {
			return possible
		}
		return impossible
	}
	few, enough := v.demands(firstRows)
	hosts := slices.Contains(v.forms, formURL) || slices.Contains(v.forms, formHost)
	switch plain := v.plain(few); {
	case !enough || v.apart:
		return impossible
	case hosts && v.tryHosts(plain) || v.guess(few, plain):
		return possible
	case hosts && !v.mixed:
		return impossible
	}
	demands, _ := v.demands(maxRows)
	switch {
	case v.guess(demands, v.plain(demands)):
		return possible
	case v.mixed:
		return v.alone()
	}
	return v.search(demands)
}

// alone answers needs that read one value in different ways, each by itself: what
// is not possible alone is not possible together.
func (v variant) alone() answer {
	for i, need := range v.asked {
		one := variant{puzzle: v.puzzle, group: groups(v.needs[i : i+1])[0], asked: []asked{need}, pins: v.pins}
		if one = one.read(); !one.mixed && one.answer() == impossible {
			return impossible
		}
	}
	return undecided
}

// check tries one filling: the texts of the blanks of a variant, in order. Where
// the directory of the upstream has a name that is read in several ways, a path
// below it can still be one that hangs from it.
func (v variant) check(texts []string) bool {
	odd := func(cwd string) bool { return strings.HasPrefix(cwd, "/") && !isPlain(cwd) }
	return v.fits(texts, false) || slices.ContainsFunc(v.cwds, odd) && v.fits(texts, true)
}

func (v variant) fits(texts []string, relative bool) bool {
	for i, b := range v.blanks {
		v.values[b-1] = v.value(i, texts[i], relative)
	}
	for _, need := range v.needs {
		r, err := need.filled(v.values)
		if err != nil || !v.allows(r) {
			return false
		}
	}
	return true
}

// filled returns the requirement that the values make.
func (n Possibility) filled(values [][]string) (*Requirement, error) {
	if n.Known != nil {
		return n.Known, nil
	}
	n.View.FS = nil
	text := func(p Part) []string {
		if p.Blank > 0 {
			return values[p.Blank-1]
		}
		return []string{p.Text}
	}
	e, _ := Lookup(n.Verb)
	switch e.Verb.shape() {
	case shapePath:
		return n.file(strings.Join(text(n.Parts[0]), ""))
	case shapeHost:
		return n.net(strings.Join(text(n.Parts[0]), ""))
	case shapeProgram:
		return n.program(text)
	}
	words := make([]Word, len(n.Parts))
	for i, part := range n.Parts {
		words[i] = Word{part.Name, strings.Join(text(part), "")}
	}
	return Keyed(n.Verb, words...)
}

func (n Possibility) file(text string) (*Requirement, error) {
	read := n.View.Path
	switch n.Parts[0].Name {
	case "tree":
		read = n.View.Tree
	case "glob":
		read = n.View.Glob
	}
	where, err := read(text)
	return File(n.Verb, where), err
}

func (n Possibility) net(text string) (*Requirement, error) {
	read := ParseURL
	if n.Parts[0].Name == "host" {
		read = ParseTarget
	}
	target, err := read(text)
	return Net(n.Verb, target), err
}

func (n Possibility) program(text func(Part) []string) (*Requirement, error) {
	dir, line, argv := n.View.Cwd, "", []string(nil)
	for _, part := range n.Parts {
		switch part.Name {
		case "cwd":
			dir = strings.Join(text(part), "")
		case "command":
			line = strings.Join(text(part), " ")
		default:
			argv = append(argv, text(part)...)
		}
	}
	cwd, err := n.View.Path(dir)
	switch {
	case err != nil:
		return nil, err
	case argv != nil:
		return Exec(n.View, cwd, argv)
	}
	return Shell(n.Verb, n.View, cwd, line)
}
