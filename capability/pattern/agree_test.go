package pattern_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"capgate/capability/pattern"
)

// A question is one put to Covers, with the oracle's reading of its patterns.
type question struct {
	u  []pattern.Universe
	a  pattern.Row
	b  []pattern.Row
	la []*language
	lb [][]*language
}

// add puts a row on the right side.
func (q *question) add(row pattern.Row, languages []*language) {
	q.b, q.lb = append(q.b, row), append(q.lb, languages)
}

// outside reports whether the strings are canonical, in a and in no row of b.
func (q *question) outside(strs ...string) bool {
	in := func(row []*language) bool {
		for i, l := range row {
			if !l.match(strs[i]) {
				return false
			}
		}
		return true
	}
	for i, u := range q.u {
		if !inUniverse(u, strs[i]) {
			return false
		}
	}
	return in(q.la) && !slices.ContainsFunc(q.lb, in)
}

// check compares the answer with what the candidates show, shortest first. It
// returns the answer.
func (q *question) check(t *testing.T, candidates [][]string) pattern.Verdict {
	t.Helper()
	v := pattern.Covers(q.b, q.a, q.u)
	first := slices.IndexFunc(candidates, func(strs []string) bool { return q.outside(strs...) })
	switch {
	case v.Capped:
		t.Errorf("is %s in %v? capped", q.a, q.b)
	case v.Yes && first >= 0:
		t.Errorf("is %s in %v? Yes, but there is %q", q.a, q.b, candidates[first])
	case v.Yes:
	case !q.outside(v.Witness...):
		t.Errorf("is %s in %v? No, but the witness %q is no witness", q.a, q.b, v.Witness)
	case first >= 0 && size(candidates[first]) < size(v.Witness):
		t.Errorf("is %s in %v? No: %q, but %q is shorter", q.a, q.b, v.Witness, candidates[first])
	}
	return v
}

// size is how many characters there are.
func size(strs []string) (n int) {
	for _, s := range strs {
		n += len([]rune(s))
	}
	return n
}

// tally counts the answers, and demands enough of both.
type tally struct{ yes, no int }

func (c *tally) count(yes bool) {
	if yes {
		c.yes++
	} else {
		c.no++
	}
}

func (c *tally) demand(t *testing.T, least int) {
	t.Helper()
	if c.yes < least || c.no < least {
		t.Errorf("too few cases: %+v", *c)
	}
}

// Random questions, answered by looking at every short string, and at some that
// are drawn from a.
func TestCoversAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var every [][]string
	for _, s := range short(5) {
		every = append(every, []string{s})
	}
	var answers tally
	for i := range 1500 {
		q := randomQuestion(t, r, pattern.Universe(i%3), i%4 == 0)
		v := q.check(t, every)
		answers.count(v.Yes)
		for range 100 {
			if s := q.la[0].sample(r); v.Yes && q.outside(s) {
				t.Errorf("is %s in %v? Yes, but there is %q", q.a, q.b, s)
			}
		}
	}
	answers.demand(t, 100)
}

// randomQuestion makes it likely, if it is to be covered, that the union does.
func randomQuestion(t *testing.T, r *rand.Rand, u pattern.Universe, covered bool) *question {
	a, la := randomOf(r, u)
	q := &question{u: []pattern.Universe{u}, a: pattern.Row{a}, la: []*language{la}}
	for range 1 + r.IntN(3) {
		p, l := randomOf(r, u)
		q.add(pattern.Row{p}, []*language{l})
	}
	for range 2 {
		p := parse(t, widen(r, a.String()), pattern.Slash)
		if l := translate(p.String(), pattern.Slash); covered && l != nil {
			q.add(pattern.Row{p}, []*language{l})
		}
	}
	return q
}

// widen replaces pieces of the text by wildcards.
func widen(r *rand.Rand, text string) string {
	for range 3 {
		i := r.IntN(len(text))
		wide := text[:i] + []string{"*", "**", "?", "{,a}"}[r.IntN(4)] + text[i+r.IntN(2):]
		if _, err := pattern.Parse(wide, pattern.Slash); err == nil {
			text = wide
		}
	}
	return text
}

// Products are decided as pairs of strings are.
func TestCoversProductsAgree(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var pairs [][]string
	for _, s := range short(3) {
		for _, z := range short(3) {
			pairs = append(pairs, []string{s, z})
		}
	}
	slices.SortStableFunc(pairs, func(p, q []string) int { return size(p) - size(q) })
	row := func() (pattern.Row, []*language) {
		p, lp := random(r, pattern.Slash)
		q, lq := randomOf(r, pattern.AbsPath)
		return pattern.Row{p, q}, []*language{lp, lq}
	}
	everything, all := parse(t, "**", pattern.Slash), translate("**", pattern.Slash)
	var answers tally
	for range 600 {
		q := &question{u: []pattern.Universe{pattern.Any, pattern.AbsPath}}
		q.a, q.la = row()
		for i := range 1 + r.IntN(3) {
			p, l := row()
			if i > 0 || r.IntN(2) > 0 { // one dimension is a's, the other is all there is
				at := r.IntN(2)
				p[at], l[at], p[1-at], l[1-at] = everything, all, q.a[1-at], q.la[1-at]
			}
			q.add(p, l)
		}
		answers.count(q.check(t, pairs).Yes)
	}
	answers.demand(t, 50)
}
