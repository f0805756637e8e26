package pattern_test

import (
	"slices"
	"testing"

	"capgate/capability/pattern"
)

var separators = [...]rune{pattern.Slash, pattern.Dot, pattern.None, pattern.Unit, pattern.Query}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"/srv/**/*.go", "{a,{b,c}}", "[a-z0-9_-]", `\*\{`, "**/**/x", "[]", "a***", "{a,b/}**/x"} {
		f.Add(text, "/srv/a.go", uint8(0))
	}
	f.Fuzz(func(t *testing.T, text, s string, sep uint8) {
		p, err := pattern.Parse(text, separators[int(sep)%len(separators)])
		if err != nil {
			return
		}
		if lit, ok := p.Literal(); ok && !p.Match(lit) {
			t.Errorf("%q does not match its literal %q", text, lit)
		}
		again := []*pattern.Pattern{p, pattern.Literal(text), pattern.Subtree("/" + text), pattern.Under(text, p)}
		for _, p := range again {
			q, err := pattern.Parse(p.String(), separators[int(sep)%len(separators)])
			if err != nil || separators[int(sep)%len(separators)] != pattern.Slash {
				continue // escaped, it can be too long; constructed, its separator is /
			}
			if d, e := p.Dir(), q.Dir(); d != e {
				t.Errorf("%q has the directory %q, read back %q", p, d, e)
			}
			for _, s := range []string{s, text, "/" + text, text + "/" + s, "/" + text + "/" + s} {
				if p.Match(s) != q.Match(s) {
					t.Errorf("%q matches %q: %t, read back: %t", p, s, p.Match(s), q.Match(s))
				}
			}
		}
		if !pattern.Literal(text).Match(text) || !pattern.Subtree("/"+text).Match("/"+text) {
			t.Errorf("%q does not match itself", text)
		}
	})
}

func FuzzMatch(f *testing.F) {
	for _, text := range []string{"/srv/**/*.go", "{a,{b,c}}*", "[a-z0-9_-]?", "{*.a,b/**}", "**/**/x", "{{a,*}{**[ab][ab]**,[ab]}{**[ab]}}/a**"} {
		f.Add(text, "/srv/a.go", uint8(0))
		f.Add(text, ".b.aa/a", uint8(0))
	}
	f.Fuzz(func(t *testing.T, text, s string, sep uint8) {
		p, err := pattern.Parse(text, separators[int(sep)%len(separators)])
		if err != nil {
			return
		}
		if l := translate(text, separators[int(sep)%len(separators)]); l != nil && p.Match(s) != l.match(s) {
			t.Errorf("%q with %q matches %q: %t, the oracle disagrees", text, separators[int(sep)%len(separators)], s, p.Match(s))
		}
	})
}

func FuzzCovers(f *testing.F) {
	f.Add("/home/agent/**", "/home/agent/*", "/home/agent/*/**", "/a", uint8(1))
	f.Add("{a,b}{a,b}", "a?", "?[ab]", "ab", uint8(0))
	f.Add("src/**/x?.go", "src/**.go", "src/*/*", "src/x1.go", uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c, s string, universe uint8) {
		q := &question{u: []pattern.Universe{pattern.Universe(universe % 3)}}
		for _, text := range []string{a, b, c} {
			p, err := pattern.Parse(text, pattern.Slash)
			if err != nil {
				return
			}
			l := translate(text, pattern.Slash)
			if l == nil {
				return
			}
			q.add(pattern.Row{p}, []*language{l})
		}
		q.a, q.la, q.b, q.lb = q.b[0], q.lb[0], q.b[1:], q.lb[1:]
		strs := append(short(3), s)
		checkCovers(t, q, strs)
		checkMeets(t, q, strs)
	})
}

func checkCovers(t *testing.T, q *question, strs []string) {
	v := pattern.Covers(q.b, q.a, q.u)
	if v.Yes && slices.ContainsFunc(strs, func(s string) bool { return q.outside(s) }) {
		t.Errorf("%s in %v: Yes, but it is not", q.a, q.b)
	}
	if !v.Yes && !v.Capped && !q.outside(v.Witness...) {
		t.Errorf("%s in %v: the witness %q is none", q.a, q.b, v.Witness)
	}
}

// What is common to a pattern and a union is in both.
func checkMeets(t *testing.T, q *question, strs []string) {
	common := func(s string) bool {
		in := func(row []*language) bool { return row[0].match(s) }
		return inUniverse(q.u[0], s) && in(q.la) && slices.ContainsFunc(q.lb, in)
	}
	witness, ok, capped := pattern.Meets(q.u, []pattern.Row{q.a}, q.b)
	if ok && !common(witness[0]) || !ok && !capped && slices.ContainsFunc(strs, common) {
		t.Errorf("%s meets %v: %q, %t", q.a, q.b, witness, ok)
	}
}
