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

// rows makes a union of rows of one dimension.
func rows(t testing.TB, sep rune, texts ...string) []pattern.Row {
	t.Helper()
	var union []pattern.Row
	for _, text := range texts {
		union = append(union, pattern.Row{parse(t, text, sep)})
	}
	return union
}

var (
	absolute = []pattern.Universe{pattern.AbsPath}
	relative = []pattern.Universe{pattern.RelPath}
	anything = []pattern.Universe{pattern.Any}
)

func TestCovers(t *testing.T) {
	const yes = "yes"
	for _, c := range []struct {
		a    string
		b    string // words
		u    []pattern.Universe
		want string // yes, or the witness
	}{
		{"/srv/a", "/srv/a", absolute, yes},
		{"/srv/a", "/srv/*", absolute, yes},
		{"/srv/a", "/srv/b /srv/a/** /srv/a?", absolute, "/srv/a"},
		{"/srv/*", "/srv/*", absolute, yes},
		{"/srv/*", "", absolute, "/srv/x"},
		{"/srv/*", "/srv/**", absolute, yes},
		{"/srv/**", "/srv/*", absolute, "/srv/x/x"},
		{"/srv/a/**/*.go", "/srv/**", absolute, yes},
		{"/srv/a/**/*.go", "/srv/**/*.go", absolute, yes},
		{"/srv/**/*.go", "/srv/*/**/*.go", absolute, "/srv/.go"},
		{"/home/agent/**", "/home/agent/* /home/agent/*/**", absolute, yes},
		{"/home/agent/**", "/home/agent/?* /home/agent/?*/**", absolute, yes},
		{"/home/agent/**", "/home/agent/?* /home/agent/?*/**", anything, "/home/agent/"},
		{"/srv{,/**}", "/srv /srv/**", absolute, yes},
		{"/**", "/ /?*", absolute, "/x/x"},
		{"**", "/**", absolute, yes},
		{"**", "/**", anything, ""},
		{"**", "?** **?", anything, ""},
		{"?**", "?* ?*/**", relative, yes},
		{"**", "[a-zA-Z0-9]**", relative, "_"},
		{"src/**", "**", absolute, yes}, // there is no absolute path in it
		{"/a//b", "/c", absolute, yes},  // nor a canonical one
		{"/a/../b", "/a/**", absolute, yes},
		{"/a/../b", "/b", anything, "/a/../b"},
		{"/a/?.", "/a/[a-z].", absolute, "/a/0."},
		{"/a/..", "/b", absolute, yes},
		{"/a/...", "/b", absolute, "/a/..."},
		{"/a/{.,..}*", "/a/...* /a/.[a-z]*", absolute, "/a/.0"},
		{"x*", "x?* x", anything, yes},
		{"[a-z]", "[a-m] [n-z]", anything, yes},
		{"[a-z]", "[a-m] [o-z]", anything, "n"},
		{"[À-ÿ]", "[À-Ö] [Ø-ÿ]", anything, "×"},
		{"[a-\U0010ffff]", "[a-\ud7ff] [\ue000-\U0010ffff]", anything, yes}, // surrogates are no characters
		{"?", `[\!-~]`, anything, " "},
		{"{a,b}{a,b}", "a? ?b ba", anything, yes},
		{"{a,b}{a,b}", "a? ?b", anything, "ba"},
		{"é*", "[a-z]*", anything, "é"},
	} {
		v := pattern.Covers(rows(t, pattern.Slash, strings.Fields(c.b)...), rows(t, pattern.Slash, c.a)[0], c.u)
		want := pattern.Verdict{Witness: []string{c.want}}
		if c.want == yes {
			want = pattern.Verdict{Yes: true}
		}
		if d := cmp.Diff(want, v); d != "" {
			t.Errorf("is %s in %s? %s", c.a, c.b, d)
		}
	}
}

func TestCoversConstructed(t *testing.T) {
	srv, root := pattern.Subtree("/srv"), pattern.Subtree("/")
	for _, c := range []struct {
		a, b *pattern.Pattern
		want pattern.Verdict
	}{
		{srv, srv, pattern.Verdict{Yes: true}},
		{srv, root, pattern.Verdict{Yes: true}},
		{root, srv, pattern.Verdict{Witness: []string{"/"}}},
		{pattern.Subtree("/srv/a"), srv, pattern.Verdict{Yes: true}},
		{pattern.Subtree("/srva"), srv, pattern.Verdict{Witness: []string{"/srva"}}},
		{pattern.Subtree("/sr"), srv, pattern.Verdict{Witness: []string{"/sr"}}},
		{pattern.Literal("/srv"), srv, pattern.Verdict{Yes: true}},
		{pattern.Literal("/srv/a*"), srv, pattern.Verdict{Yes: true}},
		{pattern.Under("/srv", parse(t, "**", '/')), srv, pattern.Verdict{Yes: true}},
		{srv, pattern.Under("/srv", parse(t, "**", '/')), pattern.Verdict{Witness: []string{"/srv"}}},
		{srv, nil, pattern.Verdict{Witness: []string{"/srv"}}},
		{srv, &pattern.Pattern{}, pattern.Verdict{Witness: []string{"/srv"}}},
		{nil, srv, pattern.Verdict{Yes: true}},
		{&pattern.Pattern{}, nil, pattern.Verdict{Yes: true}},
		{parse(t, "a.*", '.'), parse(t, "a.*", '/'), pattern.Verdict{Yes: true}},
		{parse(t, "a.*", '/'), parse(t, "a.*", '.'), pattern.Verdict{Yes: true}},
	} {
		if d := cmp.Diff(c.want, pattern.Covers([]pattern.Row{{c.b}}, pattern.Row{c.a}, absolute)); d != "" {
			t.Errorf("is %s in %s? %s", c.a, c.b, d)
		}
	}
	// The same text with another separator is another pattern.
	v := pattern.Covers(rows(t, '.', "a.*"), rows(t, '/', "a.*")[0], anything)
	if d := cmp.Diff(pattern.Verdict{Witness: []string{"a.."}}, v); d != "" {
		t.Error(d)
	}
}

func TestCoversProducts(t *testing.T) {
	p := func(text string) *pattern.Pattern { return parse(t, text, pattern.Dot) }
	u := []pattern.Universe{pattern.Any, pattern.Any, pattern.Any}
	held := []pattern.Row{
		{p("get"), p("*.example.com"), p("*")},
		{p("post"), p("api.**"), p("{80,443}")},
	}
	for _, c := range []struct {
		a    pattern.Row
		want pattern.Verdict
	}{
		{pattern.Row{p("{get,post}"), p("api.example.com"), p("443")}, pattern.Verdict{Yes: true}},
		{pattern.Row{p("{get,post}"), p("api.example.com"), p("8?")}, pattern.Verdict{Witness: []string{"post", "api.example.com", "8y"}}},
		{pattern.Row{p("get"), p("api.evil.com"), p("443")}, pattern.Verdict{Witness: []string{"get", "api.evil.com", "443"}}},
		{pattern.Row{p("{get,post}"), p("?.example.com"), p("443")}, pattern.Verdict{Witness: []string{"post", "y.example.com", "443"}}},
		{pattern.Row{p("get"), p("a.example.com"), p("443"), p("x")}, pattern.Verdict{}},
		{pattern.Row{p("get"), p("a.example.com")}, pattern.Verdict{}},
		{pattern.Row{p("get"), nil, p("443")}, pattern.Verdict{Yes: true}},
	} {
		if d := cmp.Diff(c.want, pattern.Covers(held, c.a, u)); d != "" {
			t.Errorf("%v: %s", c.a, d)
		}
	}
	if v := pattern.Covers([]pattern.Row{{p("a")}}, held[0], u); v.Yes || v.Witness != nil {
		t.Errorf("rows that do not fit: %v", v)
	}
	// All of the rest of a product can be whole, and a dimension in the middle.
	all := []pattern.Row{{p("a"), p("**"), p("**")}, {p("b"), p("x"), p("**")}}
	if v := pattern.Covers(all, pattern.Row{p("{a,b}"), p("x"), p("*")}, u); !v.Yes {
		t.Errorf("whole dimensions: %v", v)
	}
	if v := pattern.Covers(all, pattern.Row{p("{a,b}"), p("[xy]"), p("*")}, u); cmp.Diff([]string{"b", "y", ""}, v.Witness) != "" {
		t.Errorf("whole dimensions: %v", v)
	}
	if v := pattern.Covers([]pattern.Row{{}}, pattern.Row{}, nil); !v.Yes {
		t.Errorf("no dimensions, one row: %v", v)
	}
	if d := cmp.Diff(pattern.Verdict{Witness: []string{}}, pattern.Covers(nil, pattern.Row{}, nil)); d != "" {
		t.Errorf("no dimensions, no rows: %s", d)
	}
}

// cwd and argv are canonical paths and words joined by U+001F.
func TestCoversCommands(t *testing.T) {
	argv := func(words ...string) *pattern.Pattern { return parse(t, strings.Join(words, "\x1f"), pattern.Unit) }
	u := []pattern.Universe{pattern.AbsPath, pattern.Any}
	held := []pattern.Row{
		{pattern.Subtree("/srv"), argv("git", "log", "**")},
		{pattern.Subtree("/srv/a"), argv("git", "*")},
	}
	for _, c := range []struct {
		a    pattern.Row
		want pattern.Verdict
	}{
		{pattern.Row{pattern.Literal("/srv/b"), argv("git", "log", "-1")}, pattern.Verdict{Yes: true}},
		{pattern.Row{pattern.Literal("/srv/a/c"), argv("git", "{push,log}")}, pattern.Verdict{Yes: true}},
		{pattern.Row{pattern.Literal("/srv/b"), argv("git", "{push,log}")}, pattern.Verdict{Witness: []string{"/srv/b", "git\x1flog"}}},
		{pattern.Row{pattern.Subtree("/srv/a"), argv("git", "*", "*")}, pattern.Verdict{Witness: []string{"/srv/a", "git\x1f\x1f"}}},
		{pattern.Row{pattern.Subtree("/"), argv("git", "log", "*")}, pattern.Verdict{Witness: []string{"/", "git\x1flog\x1f"}}},
	} {
		if d := cmp.Diff(c.want, pattern.Covers(held, c.a, u)); d != "" {
			t.Errorf("%v: %s", c.a, d)
		}
	}
}

// The cases named ATTENUATION-GLOB-* come from the attack corpus.
func TestCoversAttacks(t *testing.T) {
	for _, c := range []struct {
		id      string
		granted []string
		asked   []string
		want    bool
	}{
		{"ATTENUATION-GLOB-01", []string{"src/*.go", "src/*/*.go"}, []string{"src/{a,b}.go", "src/x/y?.go"}, true},
		{"ATTENUATION-GLOB-SPLIT-01", []string{"[a-m]*", "[n-z]*"}, []string{"{abc,xyz}.txt"}, true},
		{"ATTENUATION-GLOB-WIDE-01", []string{"src/*.go"}, []string{"src/**.go"}, false},
		{
			"ATTENUATION-GLOB-BOMB-01",
			[]string{"**a" + strings.Repeat("?", 40), "**[b-z]" + strings.Repeat("?", 40)},
			[]string{strings.Repeat("{a,b}", 40)},
			false,
		},
	} {
		for _, root := range []string{"/", "/home/agent"} {
			var granted []pattern.Row
			for _, text := range c.granted {
				granted = append(granted, pattern.Row{pattern.Under(root, parse(t, text, pattern.Slash))})
			}
			got := true
			within(t, 5*time.Millisecond, c.id, func() {
				got = true
				for _, text := range c.asked {
					a := pattern.Row{pattern.Under(root, parse(t, text, pattern.Slash))}
					got = got && pattern.Covers(granted, a, absolute).Yes
				}
			})
			if got != c.want {
				t.Errorf("%s under %s: %t, want %t", c.id, root, got, c.want)
			}
		}
	}
}

func TestCoversIsBounded(t *testing.T) {
	questions := strings.Repeat("?", 40)
	var wide []string // many classes, many of each
	for i := range 40 {
		wide = append(wide, fmt.Sprintf("/**[a%c]%s", 'Ā'+rune(i), strings.Repeat("[aā]*", 20)))
	}
	var stars, chars []string
	for i := range 20 {
		stars = append(stars, "/"+strings.Repeat("*", i%2+1)+strings.Repeat("a*", 60)+fmt.Sprint(i))
	}
	for i := range 4 {
		var b strings.Builder
		for j := range 150 {
			b.WriteRune('一' + rune(i*150+j))
		}
		chars = append(chars, "/*"+b.String())
	}
	alternatives := "/{" + strings.Repeat("a,", 110) + "}{" + strings.Repeat("b,", 110) + "}*"
	for name, c := range map[string]struct {
		a string
		b []string
	}{
		"subsets":  {"/" + strings.Repeat("{a,b}", 40), []string{"/**a" + questions, "/**[b-z]" + questions}},
		"subsets*": {"/" + strings.Repeat("{a,b}", 40) + "/**", []string{"/**a" + questions, "/**[b-z]" + questions + "{,/*}"}},
		"stars":    {"/" + strings.Repeat("*a", 60), stars},
		"any":      {"/**", stars},
		"sets":     {"/**", wide},
		"singles":  {"/**", chars},
		"links":    {"/**", []string{alternatives, alternatives + "*", "/*" + alternatives[1:], alternatives + "?"}},
		"walked":   {alternatives + "?", []string{"/*a"}},
		"slashes":  {"/{" + strings.Repeat("/,", 220) + "}", []string{"/*a"}},
		"states":   {"/**", slices.Repeat([]string{"/" + strings.Repeat("?", 500)}, 9)},
		"long":     {"/**", slices.Repeat([]string{"/" + strings.Repeat("a", 500) + "*"}, 9)},
	} {
		b, a := rows(t, pattern.Slash, c.b...), rows(t, pattern.Slash, c.a)[0]
		within(t, 5*time.Millisecond, name, func() {
			if v := pattern.Covers(b, a, absolute); v.Yes || !v.Capped && v.Witness == nil {
				t.Errorf("%s: %v", name, v)
			}
		})
	}
}

func TestCoversCapped(t *testing.T) {
	subsets := pattern.Covers(
		rows(t, pattern.Slash, "/**a"+strings.Repeat("?", 40), "/**[b-z]"+strings.Repeat("?", 40)),
		rows(t, pattern.Slash, "/"+strings.Repeat("{a,b}", 40))[0], absolute,
	)
	long := pattern.Covers(nil, pattern.Row{pattern.Literal(strings.Repeat("a", 5000))}, anything)
	deep := pattern.Covers(nil, pattern.Row{pattern.Literal("/" + strings.Repeat("a", 4050))}, absolute)
	states := pattern.Covers(
		rows(t, pattern.Slash, slices.Repeat([]string{"/" + strings.Repeat("?", 500)}, 9)...), rows(t, pattern.Slash, "/**")[0], absolute,
	)
	for name, v := range map[string]pattern.Verdict{"subsets": subsets, "long": long, "deep": deep, "states": states} {
		if d := cmp.Diff(pattern.Verdict{Capped: true}, v); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What some rows cover whole is not looked at any closer for the others.
func TestCoversLooksAway(t *testing.T) {
	held := rows(t, pattern.Slash, "/srv/**", "/etc/**", "**a"+strings.Repeat("?", 40), "**[b-z]"+strings.Repeat("?", 40))
	if v := pattern.Covers(held, rows(t, pattern.Slash, "/{srv,etc}/"+strings.Repeat("{a,b}", 40))[0], absolute); !v.Yes {
		t.Error(v)
	}
}

// A thousand rows that cannot matter are left out, and one that does is found.
func TestCoversManyRows(t *testing.T) {
	var held []pattern.Row
	for i := range 1000 {
		held = append(held, pattern.Row{parse(t, fmt.Sprintf("/home/agent/p%d/**/*.{go,md}", i), pattern.Slash)})
	}
	for text, want := range map[string]pattern.Verdict{
		"/home/agent/p7/**/x*.go":  {Yes: true},
		"/home/agent/p77/**/*.txt": {Witness: []string{"/home/agent/p77/.txt"}},
		"/home/agent/p*/a.go":      {Capped: true},
		"/srv/*":                   {Witness: []string{"/srv/x"}},
	} {
		within(t, 5*time.Millisecond, text, func() {
			if d := cmp.Diff(want, pattern.Covers(held, rows(t, '/', text)[0], absolute)); d != "" {
				t.Errorf("%s: %s", text, d)
			}
		})
	}
}

// Whatever the patterns are, each is inside itself, inside is transitive, and a
// longer union covers no less.
func TestCoversAlgebra(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	var chains int
	for i := range 1500 {
		u := []pattern.Universe{pattern.Universe(i % 3)}
		p, _ := randomOf(r, u[0])
		q := parse(t, widen(r, p.String()), pattern.Slash)
		s := parse(t, widen(r, q.String()), pattern.Slash)
		covers := func(a *pattern.Pattern, b ...*pattern.Pattern) bool {
			var union []pattern.Row
			for _, b := range b {
				union = append(union, pattern.Row{b})
			}
			return pattern.Covers(union, pattern.Row{a}, u).Yes
		}
		// {p,p} is written differently, so that the answer takes a search.
		if twice := parse(t, "{"+p.String()+","+p.String()+"}", pattern.Slash); !covers(p, p) || !covers(p, twice) || !covers(twice, p) {
			t.Errorf("%s is not inside itself", p)
		}
		if covers(p, q) && covers(q, s) {
			chains++
			if !covers(p, s) {
				t.Errorf("%s is inside %s, that inside %s, but the first not inside the last", p, q, s)
			}
		}
		if covers(p, q) && !(covers(p, q, s) && covers(p, s, q)) {
			t.Errorf("%s is inside %s, but not when %s is there too", p, q, s)
		}
	}
	if chains < 100 {
		t.Errorf("only %d chains", chains)
	}
}
