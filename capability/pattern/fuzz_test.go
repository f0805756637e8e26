package pattern_test

import (
	"slices"
	"testing"

	"capgate/capability/pattern"
)

var separators = [...]rune{pattern.Slash, pattern.Dot, pattern.None, pattern.Unit}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"/srv/**/*.go", "{a,{b,c}}", "[a-z0-9_-]", `\*\{`, "**/**/x", "[]", "a***", "{a,b/}**/x"} {
		f.Add(text, "/srv/a.go", uint8(0))
	}
	f.Fuzz(func(t *testing.T, text, s string, sep uint8) {
		p, err := pattern.Parse(text, separators[sep%4])
		if err != nil {
			return
		}
		if lit, ok := p.Literal(); ok && !p.Match(lit) {
			t.Errorf("%q does not match its literal %q", text, lit)
		}
		again := []*pattern.Pattern{p, pattern.Literal(text), pattern.Subtree("/" + text), pattern.Under(text, p)}
		for _, p := range again {
			q, err := pattern.Parse(p.String(), separators[sep%4])
			if err != nil || separators[sep%4] != pattern.Slash {
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
		p, err := pattern.Parse(text, separators[sep%4])
		if err != nil {
			return
		}
		if l := translate(text, separators[sep%4]); l != nil && p.Match(s) != l.match(s) {
			t.Errorf("%q with %q matches %q: %t, the oracle disagrees", text, separators[sep%4], s, p.Match(s))
		}
	})
}

func FuzzCovers(f *testing.F) {
	f.Add("/home/agent/**", "/home/agent/*", "/home/agent/*/**", "/a", uint8(1))
	f.Add("{a,b}{a,b}", "a?", "?[ab]", "ab", uint8(0))
	f.Add("src/**/x?.go", "src/**.go", "src/*/*", "src/x1.go", uint8(2))
	f.Fuzz(func(t *testing.T, a, b, c, s string, universe uint8) {
		u := pattern.Universe(universe % 3)
		var ls []*language
		var ps []pattern.Row
		for _, text := range []string{a, b, c} {
			p, err := pattern.Parse(text, pattern.Slash)
			if err != nil {
				return
			}
			l := translate(text, pattern.Slash)
			if l == nil {
				return
			}
			ls, ps = append(ls, l), append(ps, pattern.Row{p})
		}
		outside := func(s string) bool {
			return inUniverse(u, s) && ls[0].match(s) && !ls[1].match(s) && !ls[2].match(s)
		}
		v := pattern.Covers(ps[1:], ps[0], []pattern.Universe{u})
		switch {
		case v.Yes && slices.ContainsFunc(append(short(3), s), outside):
			t.Errorf("%q in %q, %q: Yes, but it is not", a, b, c)
		case v.Yes || v.Capped:
		case !outside(v.Witness[0]):
			t.Errorf("%q in %q, %q: the witness %q is none", a, b, c, v.Witness)
		}
		// What is common to a pattern and a union is in both.
		witness, ok, capped := pattern.Meets([]pattern.Universe{u}, ps[:1], ps[1:])
		common := func(s string) bool {
			return inUniverse(u, s) && ls[0].match(s) && (ls[1].match(s) || ls[2].match(s))
		}
		if ok && !common(witness[0]) || !ok && !capped && slices.ContainsFunc(append(short(3), s), common) {
			t.Errorf("%q meets %q, %q: %q, %t", a, b, c, witness, ok)
		}
	})
}
