package pattern_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/glob"

	"capgate/capability/pattern"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		text  string
		sep   rune
		match string // words that match
		not   string // words that do not
	}{
		{"/srv/data", '/', "/srv/data", "/srv/dat /srv/dataa /srv/data/ srv/data"},
		{"/srv/*", '/', "/srv/ /srv/a", "/srv /srv/a/b /srv/a/"},
		{"/srv/**", '/', "/srv/ /srv/a /srv/a/b", "/srv /srva"},
		{"/srv/**/data", '/', "/srv/data /srv/a/data /srv/a/b/data", "/srv/adata /srvdata /srv/data/a"},
		{"**/data", '/', "data a/data /data", "adata a/adata"},
		{"/srv/**/**/data", '/', "/srv/data /srv/a/data /srv/a/b/data", "/srvdata /srv/adata"},
		{"/srv/**x/data", '/', "/srv/x/data /srv/a/x/data", "/srv/data"},
		{"/srv/x**/data", '/', "/srv/x/data /srv/xa/b/data", "/srv/data /srv/xdata"},
		{"/srv/**/", '/', "/srv/ /srv/a/", "/srv /srv/a"},
		{`/srv\/**\/data`, '/', "/srv/data /srv/a/data", "/srv/adata"},
		{"{a,b/}**/x", '/', "a/x b/x ac/x ac/d/x b/c/x", "ax bx b/ax x"},
		{"a/{**,b}/x", '/', "a/x a/b/x a/c/d/x", "ax a/cx"},
		{"a/**{/x,y}", '/', "a/x a/b/x a/y a/b/cy", "a/z"},
		{"**.**", '.', "a.b . x.. a", ""},
		{"a.**.b", '.', "a.b a.x.b a.x.y.b", "ab a.xb"},
		{"rye.*", '.', "rye. rye.a", "rye rye.a.b"},
		{"git\x1flog\x1f*", '\x1f', "git\x1flog\x1f git\x1flog\x1f-1", "git\x1flog git\x1flog\x1fa\x1fb"},
		{"git\x1f**", '\x1f', "git\x1f git\x1flog\x1f-1", "git gitlog"},
		{"db-*", 0, "db- db-prod db-a/b.c", "db"},
		{"?", 0, "a / . é", "ab"},
		{"a?", '/', "ab a.", "a a/ abc"},
		{"[a-c]", '/', "a b c", "d A /"},
		{"[a-z0-9_]*", '/', "a_b 9Z _", "- A .a"},
		{"[a-z0-9_-]", '/', "a 5 _ -", "A . +"},
		{"[--a]", '/', "- 5 A a", "/ , b"}, // a range from - to a, without the separator in it
		{"[-a]", '/', "- a", "b"},
		{"[+-9]", '/', "+ . 0", "/ *"},
		{"[/a]", '/', "a", "/"},
		{`[\]\-\\]`, '/', `] - \`, "a ["},
		{"[ab-d]", '/', "a b c d", "-"},
		{"[éa]", '/', "é a", "e"},
		{"*.{go,{c,h}pp}", '/', "a.go .cpp b.hpp", "a.pp a.c a/b.go"},
		{"{a,}{b,}c", '/', "abc ac bc c", "ab"},
		{"{a/**,b}", '/', "a/ a/b/c b", "a bc"},
		{"{*.go,src/*}", '/', "x.go src/x", "a/x.go src/a/b"},
		{"{GET,POST}", 0, "GET POST", "GETPOST PUT"},
		{"a,b}c]d", '/', "a,b}c]d", "a"},
		{`\*\?\[\{\a`, '/', "*?[{a", "xxxxa"},
		{"�*", '/', "�a", "a"},
		{"*ä?", '/', "xäy ää", "a"},
		{"d://*.md", '?', "d://a.md d://a/b.md d://.md", "d://a?.md d://a#.md d://a.md?x"},
		{"d://**/p", '?', "d://a/p d://a/b/p", "d://p d://a?/p d://a#/p"},
		{"d://*", '?', "d:// d://a d://a?x#y", "d:/"},
		{"d://*/**", '?', "d:/// d://a/b?x", "d://a?/b"},
		{"{d://a,e://*}", '?', "d://a e:// e://?x#y", "d://a?x"},
		{"d://a*{,b}", '?', "d://a d://a?x d://axb", "d://b"},
		{"t?x=1", '?', "t?x=1 tax=1", "t#x=1 t?x=2"},
		{"t?x=*&y=?", '?', "t?x=1&y=2 t?x=&y=a", "t?x=?&y=1 t?x=#&y=1 t?x=1&y=?"},
		{`*\?x=1`, '?', "a?x=1 ?x=1", "a#x=1 a?b?x=1"},
		{"*[?]x", '?', "a?x", "a??x a#x abx"},
		{"*?x", '?', "ax aax", "x a?x a#x"},
		{"[a-c]?x", '?', "aax", "a?x"},
		{"d://t-*", '?', "d://t-a d://t-a/x@y d://t-a?@ d://t-a:80/x d://t-", "d://t-a@b d://t-@b/x d://t-a:b@c"},
		{"d://t-*/x", '?', "d://t-a/x d://t-a/b/x d://t-a/b@c/x d://t-/x", "d://t-a@b/x d://t-a/b?/x"},
		{"d://t?x*", '?', "d://t?x d://tax d://t?x@", "d://t@x d://tax@"},
		{"d://*-t*", '?', "d://a-t d://u@a-t/x", "d://a-t@b"},
		{"d://{a,b}*", '?', "d://ax d://b/@", "d://a@b"},
		{"d://*/t-*", '?', "d://u@a/t-b@c", "d://u"},
		{"d://[a-c]*", '?', "d://a d://bx/@", "d://a@b d://x"},
		{"d://u@*", '?', "d://u@a d://u@a/x@y", "d://u@a@b"},
		{"{c,d}://t-*", '?', "d://t-a c://t-a/@", "d://t-a@b"},
		{"{d://t-*,d:{//u-*}}", '?', "d://t-a d://u-a/@", "d://t-a@b d://u-a@b"},
		{"?[d]*://t-*", '?', "ad://t-a ada://t-a/@", "ad://t-a@b"},
		{"*t-*", '?', "d://t-a@b d://b/t-a", "d://a"},
		{`d://t\?x=*`, '?', "d://t?x=a@b", "d://tax=a@b"},
		{"d://t[?]*[#]*", '?', "d://t?x@#a@b", "d://t@?#"},
		{"{d://t?x=1,d://u?x=1}", '?', "d://t?x=1 d://u?x=1", "d://t#x=1"},
		{"d://{a/b,c/d}*", '?', "d://a/b@c d://c/d@", "d://a@b"},
		{"d://{t/,u}*", '?', "d://t/a d://ua/@ d://t/@", "d://u@a"},
		{"d://t?x=*&y=*", '?', "d://t?x=a@b&y=@ d://tax=&y=", "d://tax=@&y= d://tax=&y=@"},
		{"d:///t-*", '?', "d:///t-a@b", "d://t-a"},
		{"a#*", '?', "a# a#b#?c", "a?"},
	} {
		p := parse(t, c.text, c.sep)
		for s := range strings.FieldsSeq(c.match) {
			if !p.Match(s) {
				t.Errorf("%q does not match %q", c.text, s)
			}
		}
		for s := range strings.FieldsSeq(c.not) {
			if p.Match(s) {
				t.Errorf("%q matches %q", c.text, s)
			}
		}
	}
}

func TestMatchNeverMatches(t *testing.T) {
	texts := []string{"**", "*", "/a**", "?", "*b*", "{,a}**", "[a-�]", "**/x{,�}"}
	for _, text := range texts {
		p := parse(t, text, pattern.Slash)
		for _, s := range []string{"\x00", "\xff", "/a\xff", "/a\x00", "b\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80"} {
			if p.Match(s) {
				t.Errorf("%s matches %q", text, s)
			}
		}
	}
}

func TestConstructedNeverMatches(t *testing.T) {
	for _, s := range []string{"/a\x00", "/a\xff"} {
		if pattern.Literal(s).Match(s) || pattern.Subtree(s).Match(s) || pattern.Under(s, parse(t, "**", '/')).Match(s+"/") {
			t.Errorf("%q can be matched", s)
		}
		if pattern.Subtree("/a").Match("/a/"+s) || pattern.Subtree("/").Match(s) {
			t.Errorf("a subtree matches %q", s)
		}
	}
	for _, p := range []*pattern.Pattern{
		nil,
		{},
		pattern.Subtree(""), pattern.Subtree("a"), pattern.Under("/a", nil),
		pattern.Under("", parse(t, "a", pattern.Slash)), pattern.Under("/a", parse(t, "a", pattern.Dot)),
	} {
		if lit, ok := p.Literal(); ok || lit != "" || p.Match("") || p.Match("/a") || p.Match("a") || p.Dir() != "" {
			t.Errorf("%v is not empty", p)
		}
	}
}

func TestConstructed(t *testing.T) {
	for _, c := range []struct {
		p     *pattern.Pattern
		match string
		not   string
	}{
		{pattern.Literal("/a*"), "/a*", "/a /ab"},
		{pattern.Subtree("/srv"), "/srv /srv/ /srv/a /srv/a/b", "/srva /sr / srv"},
		{pattern.Subtree("/"), "/ /a /a/b", "a"},
		{pattern.Under("/srv", parse(t, "**/*.go", '/')), "/srv/a.go /srv/a/b.go", "/srva.go /a.go"},
		{pattern.Under("/s*", parse(t, "*", '/')), "/s*/a", "/sx/a /s*/a/b"},
		{pattern.Under("/", parse(t, "a/?", '/')), "/a/b", "a/b //a/b"},
		{pattern.Under("a", pattern.Literal("b")), "a/b", "a/bb b"},
		{parse(t, pattern.Literal("r*g").String()+"{,\x1f**}", pattern.Unit), "r*g r*g\x1fa r*g\x1fa\x1fb", "rg r*ga"},
	} {
		for s := range strings.FieldsSeq(c.match) {
			if !c.p.Match(s) {
				t.Errorf("%s does not match %q", c.p, s)
			}
		}
		for s := range strings.FieldsSeq(c.not) {
			if c.p.Match(s) {
				t.Errorf("%s matches %q", c.p, s)
			}
		}
	}
	if p := pattern.Literal(""); !p.Match("") || p.Match("a") {
		t.Error("the literal empty string is not itself")
	}
}

func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{"/a/b": "/a/b", `\*`: "*", "a{}": "a", "a,b}": "a,b}"} {
		if got, ok := parse(t, text, pattern.Slash).Literal(); !ok || got != want {
			t.Errorf("%s is the literal %q, %t, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"*", "a?", "[a]", "{a,b}", "a**"} {
		if got, ok := parse(t, text, pattern.Slash).Literal(); ok {
			t.Errorf("%s is the literal %q", text, got)
		}
	}
	if got, ok := pattern.Literal("a*").Literal(); !ok || got != "a*" {
		t.Errorf("a literal came back as %q, %t", got, ok)
	}
}

func TestDir(t *testing.T) {
	for text, want := range map[string]string{
		"/srv/a/*.go": "/srv/a", "/srv/a*": "/srv", "/srv/**": "/srv", "/srv/a/**/x": "/srv/a", "/**": "/", "/*": "/", "/": "/",
		"/srv/a": "/srv/a", "/srv/": "/srv", "/srv{,/**}": "/srv", "/srv{,x}/y": "/", "/srv{/a,/b}": "/srv", "**/x": "", "*": "",
		"src/*.go": "src", "src*": "", "{/a,/b}": "", "/srv/{a,b}/x": "/srv", "/srv[a]": "/", "{}": "", "//x": "//x",
	} {
		if got := parse(t, text, pattern.Slash).Dir(); got != want {
			t.Errorf("%s has the directory %q, want %q", text, got, want)
		}
	}
	if got := pattern.Under("/a", parse(t, "b/*", '/')).Dir(); got != "/a/b" {
		t.Errorf("a pattern under /a has the directory %q", got)
	}
}

// What matches lies in the directory or is it, and nothing deeper would do.
func TestDirHoldsMatches(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	strs := short(6)
	for range 100 {
		p, _ := random(r, pattern.Slash)
		dir := p.Dir()
		for _, s := range strs {
			if p.Match(s) && !(dir == "" || dir == "/" && strings.HasPrefix(s, "/") || s == dir || strings.HasPrefix(s, dir+"/")) {
				t.Fatalf("%s matches %q, which is not in %q", p, s, dir)
			}
		}
	}
}

func TestMatchAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	strs := short(5)
	var matches int
	for i := range 400 {
		sep := []rune{pattern.Slash, pattern.Dot, pattern.None}[i%3]
		p, l := random(r, sep)
		theirs := gobwas(t, p.String(), l)
		samples := slices.Clone(strs)
		for range 50 {
			samples = append(samples, l.sample(r))
		}
		for _, s := range samples {
			got := p.Match(s)
			if got != l.match(s) {
				t.Fatalf("%s matches %q: %t, the oracle disagrees", p, s, got)
			}
			whole, parts := theirs(s)
			if parts != got {
				t.Fatalf("%s matches %q: %t, gobwas disagrees alternative by alternative", p, s, got)
			}
			if whole && !got {
				t.Fatalf("%s does not match %q, gobwas does", p, s)
			}
			if got {
				matches++
			}
		}
	}
	if matches < 10_000 {
		t.Errorf("only %d matches: the test has lost its teeth", matches)
	}
}

// Of URIs, with the oracle alone: others know no such separator.
func TestMatchURIs(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	matches, yes := 0, 0
	for range 400 {
		p, l := randomURI(r)
		q, k := randomURI(r)
		v := pattern.Covers([]pattern.Row{{p}}, pattern.Row{q}, []pattern.Universe{pattern.Any})
		if v.Yes {
			yes++
		} else if !v.Capped && (p.Match(v.Witness[0]) || !k.match(v.Witness[0])) {
			t.Fatalf("%s does not cover %s for %q", p, q, v.Witness)
		}
		for _, s := range short(5) {
			if strings.Contains(p.String(), "//") {
				s = "d://" + strings.NewReplacer("b", "?", ".", "@").Replace(s)
			} else {
				s = strings.NewReplacer("/", "?", ".", "#").Replace(s)
			}
			switch got := p.Match(s); {
			case got != l.match(s):
				t.Fatalf("%s matches %q: %t, the oracle disagrees", p, s, got)
			case v.Yes && !got && k.match(s):
				t.Fatalf("%s covers %s, but for %q", p, q, s)
			case got:
				matches++
			}
		}
	}
	if matches < 10_000 || yes < 10 {
		t.Errorf("only %d matches and %d that are covered: the test has lost its teeth", matches, yes)
	}
}

// randomURI draws a pattern of URIs, in some of which a host is, and in others a query as people write it.
func randomURI(r *rand.Rand) (*pattern.Pattern, *language) {
	begins := []string{"d://", "d://", "{c,d}://", "[d]://", "?:{//,//a,//a/}", "*://", "{d://a,d://,c://b/}", `d:{//a\?,//a}`}
	return drawn(pattern.Query, func() string {
		text := randomText(r, 5, 2)
		if r.IntN(2) == 0 {
			return begins[r.IntN(len(begins))] + strings.NewReplacer("b", `\?`, "[ab]", "[a?]", "[a-b]", "[a?]", "[.-b]", "[@-b]", ".", "@").Replace(text)
		}
		text = strings.NewReplacer("/", `\?`, ".", "#").Replace(text)
		if r.IntN(4) == 0 {
			text = strings.Replace(text, `\?`, "?", 1)
		}
		return text
	})
}

// Long patterns have states in several words.
func TestMatchLong(t *testing.T) {
	for n := 56; n < 68; n++ {
		for _, text := range []string{
			strings.Repeat("?", n) + "a*b?**c", strings.Repeat("?", n) + "{x,*,ab,**c,}*ab", "**{" + strings.Repeat("a,", n) + "b*c}d",
		} {
			p, l := parse(t, text, pattern.Slash), translate(text, pattern.Slash)
			for _, tail := range []string{"abxc", "aabbxc", "ab", "xab", "abab", "a/b/c", "bd", "bcd", "bxcd", "/c/ab", "ad", "abd"} {
				s := strings.Repeat("x", n) + tail
				for _, s := range []string{s, s[1:], "x" + s} {
					if got := p.Match(s); got != l.match(s) {
						t.Errorf("%s matches %q: %t", text, s, got)
					}
				}
			}
		}
	}
}

// gobwas compiles the pattern as it is, and each of its alternatives. The former
// may miss matches: nested braces confuse it, and it does not look through them
// for whole segments. The latter may not.
func gobwas(t *testing.T, text string, l *language) func(s string) (whole, parts bool) {
	compiler := glob.Compiler{Globstar: true}
	if l.sep != 0 {
		compiler.Separators = []rune{l.sep}
	}
	var parts []*glob.Pattern
	for _, seq := range l.seqs {
		seq = slices.Clone(seq)
		for i, tok := range seq { // its classes match the separator
			seq[i].spans = nil
			for _, s := range tok.spans {
				for c := s[0]; c <= s[1]; c++ {
					if c != l.sep {
						seq[i].spans = append(seq[i].spans, [2]rune{c, c})
					}
				}
			}
		}
		g, err := compiler.Compile(plain(seq))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, g)
	}
	whole := parts[0]
	if !strings.Contains(text, "[") {
		var err error
		if whole, err = compiler.Compile(text); err != nil {
			t.Fatal(err)
		}
	}
	return func(s string) (bool, bool) {
		return whole.Match(s), slices.ContainsFunc(parts, func(g *glob.Pattern) bool { return g.Match(s) })
	}
}

func TestMatchIsLinear(t *testing.T) {
	stars := strings.Repeat("*a", 20)
	for _, c := range []struct{ text, s string }{
		{stars + "b", strings.Repeat("a", 4095) + "/"},
		{stars + "b", strings.Repeat("a", 4096)},
		{"**b" + stars + "b**b", strings.Repeat("a", 4096)},
		{strings.Repeat("{a,aa}", 40) + "b", strings.Repeat("a", 80)},
		{strings.Repeat("{*a,**a}", 20) + "b", strings.Repeat("a", 4096)},
		{strings.Repeat("**/", 20) + "b", strings.Repeat("a/", 2048)},
		{"{*a,*b}", strings.Repeat("a", 4095) + "/"},
		{"*a*", strings.Repeat("a", 4095) + "/"},
		{strings.Repeat("*a,", 20) + "b", strings.Repeat("a,", 2048) + "/a,b"},
		{"{" + strings.Repeat("*a},", 20) + "b}", "a," + strings.Repeat("a},", 1365) + "/a},b}"},
		{"**" + strings.Repeat("?", 500), strings.Repeat("a", 4096) + "\xff"},
	} {
		p := parse(t, c.text, pattern.Slash)
		within(t, 5*time.Millisecond, c.text, func() {
			if p.Match(c.s) {
				t.Errorf("%s matches", c.text)
			}
		})
	}
}

// within demands that the best of several runs takes no longer than limit, or so
// much longer as the race detector makes it: the others may have been interrupted.
func within(t *testing.T, limit time.Duration, name string, run func()) {
	t.Helper()
	best := time.Hour
	for range 10 {
		start := time.Now()
		run()
		best = min(best, time.Since(start))
	}
	if best > limit*slower {
		t.Errorf("%s took %v", name, best)
	}
}

func TestMatchDoesNotAllocate(t *testing.T) {
	for text, s := range map[string]string{
		"/srv/a": "/srv/a", "/srv/**": "/srv/a/b", "/srv/*.go": "/srv/a.go", "{*.go,*.ts}": "a.ts", "/srv/**/*.{go,md}": "/srv/a/b/c.md",
		"**é?": "aéb", strings.Repeat("?", 100): strings.Repeat("é", 100),
	} {
		p := parse(t, text, pattern.Slash)
		if n := testing.AllocsPerRun(100, func() { p.Match(s) }); n > 0 || !p.Match(s) {
			t.Errorf("%s: %v allocations, match %t", text, n, p.Match(s))
		}
	}
}

// TestManyHosts: a pattern of so many hosts that it has no room for what may follow them is none.
func TestManyHosts(t *testing.T) {
	var hosts []string
	for i := range 120 {
		hosts = append(hosts, string(rune('a'+i/20))+string(rune('a'+i%20)))
	}
	for more := range 8 {
		text := "a://" + strings.Repeat("[x]", more) + "{" + strings.Join(hosts, "*,") + "*}"
		if p, err := pattern.Parse(text, pattern.Query); err == nil {
			t.Errorf("%s is taken", p)
		}
	}
	p, err := pattern.Parse("a://{"+strings.Join(hosts[:60], "*,")+"*}", pattern.Query)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts[:60] {
		if p.Match("a://"+host+"b@c") || p.Match("a://"+host+"b@c/d") || !p.Match("a://"+host+"b/c?d@e") {
			t.Errorf("%s: not what is written", host)
		}
	}
}
