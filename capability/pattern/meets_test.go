package pattern_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability/pattern"
)

func TestMeets(t *testing.T) {
	for _, c := range []struct {
		unions []string // of words
		u      []pattern.Universe
		want   []string
	}{
		{[]string{"/srv/** /etc/*", "**/x*.go"}, absolute, []string{"/etc/x.go"}},
		{[]string{"/srv/*", "/srv/*/*"}, absolute, nil},
		{[]string{"/srv/*", "/srv/*/*"}, anything, nil},
		{[]string{"/srv/a", "/srv/*"}, absolute, []string{"/srv/a"}},
		{[]string{"/srv/a", "/srv/*", "/srv/b /srv/a"}, absolute, []string{"/srv/a"}},
		{[]string{"/srv/a /srv/b", "/srv/b /srv/c", "/srv/a /srv/c"}, absolute, nil},
		{[]string{"/srv/../a", "**"}, absolute, nil},
		{[]string{"/srv/../a", "**"}, anything, []string{"/srv/../a"}},
		{[]string{"**", ""}, anything, nil},
		{[]string{"**"}, anything, []string{""}},
		{[]string{"**"}, relative, []string{"x"}},
		{[]string{"**"}, absolute, []string{"/"}},
		{nil, absolute, []string{"/"}},
		{nil, nil, []string{}},
	} {
		var unions [][]pattern.Row
		for _, words := range c.unions {
			unions = append(unions, rows(t, pattern.Slash, strings.Fields(words)...))
		}
		witness, ok, capped := pattern.Meets(c.u, unions...)
		if d := cmp.Diff(c.want, witness); d != "" || ok != (c.want != nil) || capped {
			t.Errorf("%v: %t, %t, %s", c.unions, ok, capped, d)
		}
	}
}

func TestMeetsEmpty(t *testing.T) {
	all := rows(t, pattern.Slash, "**")
	for name, unions := range map[string][][]pattern.Row{
		"nil pattern":  {{{nil}}},
		"zero pattern": {all, {{&pattern.Pattern{}}}},
		"no dimension": {all, {{}}},
		"two":          {{{all[0][0], all[0][0]}}, all},
		"no rows":      {all, nil},
	} {
		if witness, ok, capped := pattern.Meets(anything, unions...); witness != nil || ok || capped {
			t.Errorf("%s: %q, %t, %t", name, witness, ok, capped)
		}
	}
}

func TestMeetsProducts(t *testing.T) {
	p := func(text string) *pattern.Pattern { return parse(t, text, pattern.Slash) }
	held := []pattern.Row{{p("/srv/**"), p("a*")}, {p("/etc/**"), p("b*")}}
	u := []pattern.Universe{pattern.AbsPath, pattern.Any}
	for _, c := range []struct {
		asked pattern.Row
		want  []string
	}{
		{pattern.Row{p("**/x"), p("b")}, []string{"/etc/x", "b"}},
		{pattern.Row{p("**"), p("{c,ac}")}, []string{"/srv/x", "ac"}},
		{pattern.Row{p("/srv/*"), p("b")}, nil},
	} {
		if witness, _, _ := pattern.Meets(u, held, []pattern.Row{c.asked}); cmp.Diff(c.want, witness) != "" {
			t.Errorf("%v: %q, want %q", c.asked, witness, c.want)
		}
	}
}

func TestMeetsAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	strs := short(5)
	var count struct{ yes, no int }
	for i := range 800 {
		u := pattern.Universe(i % 3)
		var unions [][]pattern.Row
		var languages [][]*language
		for range 1 + r.IntN(3) {
			var union []pattern.Row
			var ls []*language
			for range 1 + r.IntN(3) {
				p, l := randomOf(r, u)
				union, ls = append(union, pattern.Row{p}), append(ls, l)
			}
			unions, languages = append(unions, union), append(languages, ls)
		}
		common := func(s string) bool {
			return inUniverse(u, s) && !slices.ContainsFunc(languages, func(ls []*language) bool {
				return !slices.ContainsFunc(ls, func(l *language) bool { return l.match(s) })
			})
		}
		witness, ok, capped := pattern.Meets([]pattern.Universe{u}, unions...)
		first := slices.IndexFunc(strs, common)
		switch {
		case capped:
			t.Errorf("%v: capped", unions)
		case ok:
			count.yes++
			if !common(witness[0]) || first >= 0 && len(strs[first]) < len([]rune(witness[0])) {
				t.Errorf("%v: %q is not in all, or not the shortest", unions, witness)
			}
		default:
			count.no++
			if first >= 0 {
				t.Errorf("%v: nothing, but there is %q", unions, strs[first])
			}
		}
	}
	if count.yes < 100 || count.no < 100 {
		t.Errorf("too few cases: %+v", count)
	}
}

// What is outside one union is not looked at any closer for the others.
func TestMeetsLooksAway(t *testing.T) {
	all := rows(t, pattern.Slash, "/**")
	bomb := rows(t, pattern.Slash, "{/x,/x}/**a"+strings.Repeat("?", 40), "{/x,/x}/**[b-z]"+strings.Repeat("?", 40))
	elsewhere := rows(t, pattern.Slash, "{/y,/y}/**", "{/z,/z}/**")
	if _, ok, capped := pattern.Meets(absolute, all, bomb, elsewhere); ok || capped {
		t.Errorf("%t, %t", ok, capped)
	}
}

func TestMeetsIsBounded(t *testing.T) {
	many := []pattern.Row{{nil}}
	for i := range 1000 {
		many = append(many, rows(t, pattern.Slash, fmt.Sprintf("/home/agent/p%d/**/*.{go,md}", i))...)
	}
	bomb := func(tail string) []pattern.Row {
		return rows(t, pattern.Slash, "/**a"+strings.Repeat("?", 40)+tail, "/**[b-z]"+strings.Repeat("?", 40)+tail)
	}
	for name, unions := range map[string][][]pattern.Row{
		"many": {many, many},
		"some": {many, rows(t, pattern.Slash, "/home/agent/*/x")},
		"bomb": {bomb("a"), bomb("b"), bomb("c")},
	} {
		within(t, 5*time.Millisecond, name, func() {
			if _, ok, capped := pattern.Meets(absolute, unions...); ok && capped || name == "many" && !capped {
				t.Errorf("%s: %t, %t", name, ok, capped)
			}
		})
	}
	if witness, ok, _ := pattern.Meets(absolute, many, rows(t, pattern.Slash, "/home/agent/p77/x*")); !ok {
		t.Errorf("a thousand rows and one: %q, %t", witness, ok)
	}
}
