package pattern_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability/pattern"
)

func TestCommon(t *testing.T) {
	for _, c := range []struct {
		plain, trees []string // unions of words
		want         []string
	}{
		{[]string{"/srv/** /etc/*", "**/x*.go"}, nil, []string{"/etc/x.go"}},
		{[]string{"/srv/a", "/srv/b"}, nil, nil},
		{[]string{"/srv/a", ""}, nil, nil},
		{nil, []string{"/srv/**"}, []string{"/srv/x"}},
		{nil, []string{"/srv/*"}, nil},
		{nil, []string{"/srv/**/*"}, []string{"/srv/x"}},
		{nil, []string{"/srv/a /srv/a/**"}, []string{"/srv/a"}},
		{nil, []string{"/srv/a* /srv/a*/**"}, []string{"/srv/a"}},
		{nil, []string{"/srv/[a-m]**/** /srv/[n-z]**/**"}, []string{"/srv/a/0"}},
		{nil, []string{"/srv/a /srv/a/[a-m]* /srv/a/[n-z]*"}, nil},
		{nil, []string{"/srv/a /srv/a/b/**"}, []string{"/srv/a/b/x"}},
		{[]string{"/srv/**/*.go"}, []string{"/srv/**", "/srv/x/** /etc/**"}, []string{"/srv/x/.go"}},
		{[]string{"/srv/*"}, []string{"/srv/*/**"}, nil},
		{[]string{"/srv/a"}, []string{"/srv/a /srv/a/**"}, []string{"/srv/a"}},
	} {
		var demands []pattern.Demand
		for i, words := range append(slices.Clone(c.plain), c.trees...) {
			demands = append(demands, pattern.Demand{Rows: rows(t, pattern.Slash, strings.Fields(words)...), Tree: i >= len(c.plain)})
		}
		witness, ok, capped := pattern.Common(absolute, demands...)
		if d := cmp.Diff(c.want, witness); d != "" || ok != (c.want != nil) || capped {
			t.Errorf("%v, %v: %t, %t, %s", c.plain, c.trees, ok, capped, d)
		}
	}
}

func TestCommonNothing(t *testing.T) {
	all := pattern.Demand{Rows: rows(t, pattern.Slash, "**")}
	for name, demands := range map[string][]pattern.Demand{
		"no demand":     nil,
		"other lengths": {all, {Rows: []pattern.Row{{}}}},
		"no rows":       {all, {}},
		"nil pattern":   {all, {Rows: []pattern.Row{{nil}}}},
	} {
		if witness, ok, capped := pattern.Common(anything, demands...); witness != nil || ok || capped {
			t.Errorf("%s: %q, %t, %t", name, witness, ok, capped)
		}
	}
	if _, ok, _ := pattern.Common(nil, pattern.Demand{Rows: []pattern.Row{{}}}); ok {
		t.Error("there is something of no dimensions")
	}
}

// TestCommonCapped: what is beneath can take too long to look at as well.
func TestCommonCapped(t *testing.T) {
	const length = 38 // up to which everything is matched
	union := []string{"/a", "/a/qwertyuiopasdfghjklzxcvbnm"}
	for n := range length + 1 {
		union = append(union, "/a/"+strings.Repeat("?", n))
	}
	tree := pattern.Demand{Rows: rows(t, pattern.None, union...), Tree: true}
	if witness, ok, capped := pattern.Common(absolute, tree, pattern.Demand{Rows: rows(t, pattern.Slash, "/a")}); ok || !capped {
		t.Errorf("%q, %t, %t", witness, ok, capped)
	}
}

// TestCommonTrees holds trees against Covers, path by path.
func TestCommonTrees(t *testing.T) {
	words := []string{"/a", "/a/**", "/a/*", "/a/*/**", "/**/b", "/**/b/**", "/[ab]*", "/[ab]*/**", "/a/[ab]*", "/a/[c-z]*", "/**/*", "/{a,b}/{a/**,c}", "/b/**/*"}
	var paths []string
	for _, one := range []string{"a", "b", "x"} {
		paths = append(paths, "/"+one)
		for _, two := range []string{"a", "b", "c", "x"} {
			paths = append(paths, "/"+one+"/"+two, "/"+one+"/"+two+"/b", "/"+one+"/"+two+"/x")
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 400 {
		var union []string
		for range 1 + r.IntN(5) {
			union = append(union, words[r.IntN(len(words))])
		}
		held := rows(t, pattern.Slash, union...)
		want := slices.ContainsFunc(paths, func(p string) bool {
			return pattern.Covers(held, pattern.Row{pattern.Subtree(p)}, absolute).Yes
		})
		witness, ok, capped := pattern.Common(absolute, pattern.Demand{Rows: held, Tree: true})
		switch {
		case ok != want || capped:
			t.Fatalf("%v: %t, %t, want %t", union, ok, capped, want)
		case ok && !pattern.Covers(held, pattern.Row{pattern.Subtree(witness[0])}, absolute).Yes:
			t.Fatalf("%v: %q is no such tree", union, witness)
		}
	}
}

func TestSegments(t *testing.T) {
	for _, c := range []struct {
		p       *pattern.Pattern
		yes, no string
	}{
		{pattern.Segments(pattern.Slash, true, "az..", "az"), "/a /ab/c /.a /a.b/c", "a / /a/ //a /a. /a./b /A"},
		{pattern.Segments(pattern.Slash, false, "az", "az09"), "a a/b ab1 a/1", "/a a/ a//b 1a"},
		{pattern.Segments(pattern.Dot, false, "az..", "az"), "a a.b abc.d", ".a a. a..b"},
		{pattern.Under("/w", pattern.Segments(pattern.Slash, false, "az", "az")), "/w/a /w/a/b", "/w /w/ a /wa"},
	} {
		for _, s := range strings.Fields(c.yes) {
			if _, ok, _ := pattern.Common(anything, pattern.Demand{Rows: []pattern.Row{{c.p}}}, pattern.Demand{Rows: []pattern.Row{{pattern.Literal(s)}}}); !ok || !c.p.Match(s) {
				t.Errorf("%s: not %q", c.p, s)
			}
		}
		for _, s := range strings.Fields(c.no) {
			if _, ok, _ := pattern.Common(anything, pattern.Demand{Rows: []pattern.Row{{c.p}}}, pattern.Demand{Rows: []pattern.Row{{pattern.Literal(s)}}}); ok || c.p.Match(s) {
				t.Errorf("%s: %q", c.p, s)
			}
		}
		if s := c.p.Sample(); !c.p.Match(s) {
			t.Errorf("%s: %q is no sample", c.p, s)
		}
	}
}

func TestSample(t *testing.T) {
	for text, want := range map[string]string{
		"/w/a": "/w/a", "/w/**": "/w/x", "/w/**/*.go": "/w/x/x.go", "{a,bc}?": "bcx", "[b-d]*": "bx", "[0-9]": "0", "\\*": "*", "[_-]": "_",
	} {
		p := parse(t, text, pattern.Slash)
		if got := p.Sample(); got != want || !p.Match(got) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := pattern.Subtree("/w").Sample(); got != "/w" {
		t.Error(got)
	}
	if got := (*pattern.Pattern)(nil).Sample() + (&pattern.Pattern{}).Sample(); got != "" {
		t.Error(got)
	}
}

// FuzzSample: a sample is one.
func FuzzSample(f *testing.F) {
	for _, text := range []string{"/w/**", "{a,b*}c?", "[a-z]**/x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := pattern.Parse(text, pattern.Slash)
		if err == nil && !p.Match(p.Sample()) {
			t.Fatalf("%q does not match its sample %q", text, p.Sample())
		}
	})
}
