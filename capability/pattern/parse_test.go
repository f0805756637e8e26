package pattern_test

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/gobwas/glob"
	"github.com/google/go-cmp/cmp"

	"capgate/capability/pattern"
)

func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("{", 17) + strings.Repeat("}", 17)
	var classes strings.Builder
	for i := range 80 {
		classes.WriteString("[a" + string(rune('Ā'+i)) + "]")
	}
	for text, want := range map[string]string{
		"":                       "it is empty (byte 1)",
		"!a":                     "a pattern says what is allowed, it cannot begin with ! (byte 1)",
		"a[!b]":                  "a pattern says what is allowed, a class cannot be negated (byte 2)",
		"a[^b]":                  "a pattern says what is allowed, a class cannot be negated (byte 2)",
		"a***":                   "there is no wildcard of three stars (byte 2)",
		"*****":                  "there is no wildcard of three stars (byte 1)",
		"a{b***,c}":              "there is no wildcard of three stars (byte 4)",
		"{a,b":                   "{ is never closed (byte 1)",
		"{a,{b}":                 "{ is never closed (byte 1)",
		"a[b":                    "[ is never closed (byte 2)",
		"a[b-":                   "[ is never closed (byte 2)",
		"a[":                     "[ is never closed (byte 2)",
		`a[b\`:                   `\ escapes nothing (byte 4)`,
		`a\`:                     `\ escapes nothing (byte 2)`,
		`*\`:                     `\ escapes nothing (byte 2)`,
		"[]":                     "a class cannot be empty (byte 1)",
		"[/]":                    "a class never matches the separator (byte 1)",
		"[z-a]":                  "the range runs backwards (byte 3)",
		"[a-c-e]":                "a dash that is not part of a range stands first or last in a class (byte 5)",
		"a\x00b":                 "it holds the control character U+0000 (byte 2)",
		"a\nb":                   "it holds the control character U+000A (byte 2)",
		"a\u0085b":               "it holds the control character U+0085 (byte 2)",
		"a\x1fb":                 "it holds the control character U+001F (byte 2)",
		"a\xffb":                 "it is not UTF-8 (byte 2)",
		strings.Repeat("a", 513): "it is longer than 512 bytes (byte 513)",
		strings.Repeat("?", 512): "it needs more than 512 states (byte 512)",
		"?" + "*" + strings.Repeat("?", 509) + "*": "it needs more than 512 states (byte 512)",
		"?*" + strings.Repeat("a", 510):            "it needs more than 512 states (byte 512)",
		strings.Repeat("{a", 17):                   "braces are nested deeper than 16 (byte 33)",
		deep:                                       "braces are nested deeper than 16 (byte 17)",
		classes.String():                           "it has more than 64 different classes (byte 1)",
	} {
		_, err := pattern.Parse(text, pattern.Slash)
		var syntax *pattern.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%q) = %v, want a SyntaxError", text, err)
			continue
		}
		if _, reason, _ := strings.Cut(err.Error(), `": `); reason != want {
			t.Errorf("Parse(%q) = %v, want %s", text, err, want)
		}
		if syntax.Text != text {
			t.Errorf("Parse(%q): the error is about %q", text, syntax.Text)
		}
	}
	if _, err := pattern.Parse("a", 'b'); err == nil {
		t.Error("Parse takes 'b' for a separator")
	}
}

func TestParseAccepts(t *testing.T) {
	for _, text := range []string{
		"a", "/", "a!", `\!a`, "{}", "{,}", "{a,,b}", "a}b", "a,b", "a]b", "[a-]", "[-a]", "[a^!]", `[\^a]`, "[[]",
		`[\]]`, `[\\]`, "[a-z0-9_.-]", "[/a]", "[+-9]", "**", "**/**", "*?*?*", "�", "[�]", "{{a,b},{c,{d}}}",
		strings.Repeat("{", 16) + strings.Repeat("}", 16), strings.Repeat("a", 512), strings.Repeat("?", 511),
		strings.Repeat("[ab]", 128),
	} {
		if _, err := pattern.Parse(text, pattern.Slash); err != nil {
			t.Error(err)
		}
	}
	if _, err := pattern.Parse("git\x1f*\x1f**", pattern.Unit); err != nil {
		t.Error(err)
	}
}

// ours are the reasons to refuse what gobwas/glob accepts.
var ours = regexp.MustCompile(`is empty|begin with !|negated|three stars|never matches the separator|nested deeper|different classes`)

var (
	oneRange = regexp.MustCompile(`^\[[^-\\\]]-[^-\\\]]\]`)
	oneSet   = regexp.MustCompile(`^\[[^-\\\]]*(\]|$)`)
)

// extended reports whether the text has a class of which gobwas/glob makes
// something else, or nothing: several ranges, ranges with characters, and ranges
// with ends that are escaped or brackets.
func extended(text string) bool {
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case rest[0] == '\\':
			i++
		case rest[0] == '[' && oneRange.MatchString(rest):
			i += len("[a-z]") - 1
		case rest[0] == '[' && (strings.HasPrefix(rest, "[]-") || !oneSet.MatchString(rest)):
			return true
		case rest[0] == '[':
			i += len(oneSet.FindString(rest)) - 1
		}
	}
	return false
}

func TestParseAgreesWithGobwas(t *testing.T) {
	const alphabet = `aabbc/*?{},[]\-!^`
	r := rand.New(rand.NewPCG(1, 2))
	var both, neither, stricter int
	for range 60_000 {
		text := make([]byte, r.IntN(9))
		for i := range text {
			text[i] = alphabet[r.IntN(len(alphabet))]
		}
		if extended(string(text)) {
			continue
		}
		_, err := pattern.Parse(string(text), pattern.Slash)
		_, theirs := glob.Compile(string(text), '/')
		switch {
		case err == nil && theirs == nil:
			both++
		case err != nil && theirs != nil:
			neither++
		case err != nil && ours.MatchString(err.Error()):
			stricter++
		default:
			t.Fatalf("Parse(%q) = %v, gobwas says %v", text, err, theirs)
		}
	}
	if both < 5_000 || neither < 5_000 || stricter < 500 {
		t.Errorf("too few cases: %d, %d, %d", both, neither, stricter)
	}
}

func TestString(t *testing.T) {
	type same struct{ got, want string }
	for _, c := range []same{
		{parse(t, "/srv/**/*.go", pattern.Slash).String(), "/srv/**/*.go"},
		{pattern.Literal("").String(), "{}"},
		{pattern.Literal("a*b?[c]{d,e}\\").String(), `a\*b\?\[c]\{d\,e\}\\`},
		{pattern.Literal("!a!").String(), `\!a!`},
		{pattern.Subtree("/").String(), "/**"},
		{pattern.Subtree("/a{b").String(), `/a\{b{,/**}`},
		{pattern.Under("/a*", parse(t, "*.go", pattern.Slash)).String(), `/a\*/*.go`},
		{pattern.Under("/", pattern.Literal("a")).String(), "/a"},
		{pattern.Under("/a", pattern.Literal("")).String(), "/a/{}"},
		{pattern.Under("/a", pattern.Subtree("/b")).String(), "/a//b{,/**}"},
		{new(pattern.Pattern).String(), ""},
		{(*pattern.Pattern)(nil).String(), ""},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Error(d)
		}
	}
}

func TestStringReadsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	strs := short(5)
	for range 60 {
		p, _ := random(r, pattern.Slash)
		patterns := []*pattern.Pattern{
			p,
			pattern.Literal(strs[r.IntN(len(strs))]),
			pattern.Subtree("/" + strs[r.IntN(20)]),
			pattern.Under(strs[1+r.IntN(20)], p),
			pattern.Under("/", p),
		}
		for _, p := range patterns {
			q := parse(t, p.String(), pattern.Slash)
			for _, s := range strs {
				if p.Match(s) != q.Match(s) {
					t.Fatalf("%s matches %q: %t, read back: %t", p, s, p.Match(s), q.Match(s))
				}
			}
			if d, e := p.Dir(), q.Dir(); d != e {
				t.Errorf("%s: directory %q, read back %q", p, d, e)
			}
		}
	}
}
