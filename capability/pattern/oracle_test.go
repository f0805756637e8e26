package pattern_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"capgate/capability/pattern"
)

// The oracle is a second reading of the grammar that shares no code with the
// package: it expands braces to sequences of tokens, and writes each sequence
// as a regular expression.

// A token is a piece of a pattern without braces.
type token struct {
	kind  byte // 'c' one character, '*', 'S' for **, '?', '['
	char  rune
	spans [][2]rune
	at    []int // where it stands in the text, and what is one with it
	first bool  // no wildcard stands before
}

// maxSequences keeps the oracle from what the package must not do either.
const maxSequences = 256

// expand returns every sequence that braces can stand for, or false if there
// are too many. The text has to be one that Parse accepts.
func expand(text string) ([][]token, bool) {
	o := &oracle{text: []rune(text)}
	seqs := o.alternatives(false)
	place(seqs)
	return seqs, !o.overflow
}

// place says which tokens stand behind wildcards: in any sequence, as one that stands in several is one.
func place(seqs [][]token) {
	behind := map[int]bool{}
	for _, seq := range seqs {
		wild := false
		for _, t := range seq {
			for _, at := range t.at {
				behind[at] = behind[at] || wild
			}
			wild = wild || t.kind != 'c'
		}
	}
	for _, seq := range seqs {
		for i, t := range seq {
			seq[i].first = !behind[t.at[0]]
		}
	}
}

var inHost = regexp.MustCompile(`\A[^:]*://[^/?#]+\z`)

type oracle struct {
	text     []rune
	at       int
	overflow bool
}

func (o *oracle) alternatives(inside bool) (all [][]token) {
	for {
		all = append(all, o.sequence(inside)...)
		if !inside || o.next() == '}' {
			return all
		}
	}
}

// sequence reads to the end, or inside braces behind the next comma or brace.
func (o *oracle) sequence(inside bool) [][]token {
	seqs := [][]token{nil}
	for o.at < len(o.text) {
		if c := o.text[o.at]; inside && (c == ',' || c == '}') {
			break
		}
		tails := o.piece()
		if o.overflow = o.overflow || len(seqs)*len(tails) > maxSequences; o.overflow {
			tails = tails[:1]
			seqs = seqs[:1]
		}
		var longer [][]token
		for _, head := range seqs {
			for _, tail := range tails {
				longer = append(longer, join(head, tail))
			}
		}
		seqs = longer
	}
	return seqs
}

// piece reads what one place of a sequence can be.
func (o *oracle) piece() [][]token {
	at := []int{o.at}
	switch c := o.next(); c {
	case '{':
		return o.alternatives(true)
	case '*':
		if o.at < len(o.text) && o.text[o.at] == '*' {
			o.at++
			return [][]token{{{kind: 'S', at: at}}}
		}
		return [][]token{{{kind: '*', at: at}}}
	case '?':
		return [][]token{{{kind: '?', at: at}}}
	case '[':
		return [][]token{{{kind: '[', spans: o.class(), at: at}}}
	case '\\':
		return [][]token{{{kind: 'c', char: o.next(), at: at}}}
	default:
		return [][]token{{{kind: 'c', char: c, at: at}}}
	}
}

// join puts sequences together. Stars that meet are one star, the widest.
func join(head, tail []token) []token {
	joined := slices.Clone(head)
	for _, t := range tail {
		last := len(joined) - 1
		switch {
		case last < 0 || !joined[last].star() || !t.star():
			joined = append(joined, t)
		default:
			if t.kind == 'S' {
				joined[last].kind = t.kind
			}
			joined[last].at = slices.Concat(joined[last].at, t.at)
		}
	}
	return joined
}

func (t token) star() bool { return t.kind == '*' || t.kind == 'S' }

func (o *oracle) next() rune {
	o.at++
	return o.text[o.at-1]
}

func (o *oracle) class() (spans [][2]rune) {
	var chars []rune // with -1 for a dash that makes a range
	for o.text[o.at] != ']' {
		switch c := o.next(); {
		case c == '\\':
			chars = append(chars, o.next())
		case c == '-' && len(chars) > 0 && chars[len(chars)-1] >= 0 && o.text[o.at] != ']':
			chars = append(chars, -1)
		default:
			chars = append(chars, c)
		}
	}
	o.at++
	for i := 0; i < len(chars); i++ {
		span := [2]rune{chars[i], chars[i]}
		if i+2 < len(chars) && chars[i+1] < 0 {
			span[1] = chars[i+2]
			i += 2
		}
		spans = append(spans, span)
	}
	return spans
}

// language is what a pattern matches, according to the oracle.
type language struct {
	expr *regexp.Regexp
	seqs [][]token
	sep  rune
}

func (l *language) match(s string) bool {
	return utf8.ValidString(s) && l.expr.MatchString(s)
}

// translate returns nil for a pattern with too many alternatives.
func translate(text string, sep rune) *language {
	seqs, ok := expand(text)
	if !ok || sep == pattern.Query && strings.Count(text, "*")*len(seqs) > maxSequences { // what follows is written for each
		return nil
	}
	var exprs []string
	for _, seq := range seqs {
		exprs = append(exprs, sequenceExpr(seq, sep))
	}
	expr := regexp.MustCompile(`\A(?:` + strings.Join(exprs, "|") + `)\z`)
	return &language{expr, seqs, sep}
}

func sequenceExpr(seq []token, sep rune) string {
	notSep := `[^\x00]`
	switch sep {
	case pattern.Query:
		return uriExpr(seq, "")
	case 0:
	default:
		notSep = fmt.Sprintf(`[^\x00\x{%x}]`, sep)
	}
	var b strings.Builder
	for i := 0; i < len(seq); i++ {
		switch t := seq[i]; t.kind {
		case 'c':
			b.WriteString(regexp.QuoteMeta(string(t.char)))
		case '?':
			b.WriteString(notSep)
		case '[':
			b.WriteString(classExpr(t.spans, sep))
		case '*':
			b.WriteString(notSep + `*`)
		case 'S':
			isSep := func(j int) bool { return seq[j].kind == 'c' && seq[j].char == sep }
			if (i == 0 || isSep(i-1)) && i+1 < len(seq) && isSep(i+1) {
				b.WriteString(`(?:[^\x00]*` + regexp.QuoteMeta(string(sep)) + `)?`)
				i++
			} else {
				b.WriteString(`[^\x00]*`)
			}
		}
	}
	return b.String()
}

// uriExpr does the same for what keeps from a query, and within a host, by what is written out before,
// from an @.
func uriExpr(seq []token, before string) string {
	if len(seq) == 0 {
		return ""
	}
	t, rest, named := seq[0], seq[1:], inHost.MatchString(before)
	then := func(written string) string { return uriExpr(rest, before+written) }
	out := "" // what no wildcard stands for here, but one at the end
	if strings.Contains(before, ":") {
		out = ":"
	}
	if named {
		out += "@"
	}
	switch {
	case t.kind == 'c':
		return regexp.QuoteMeta(string(t.char)) + then(string(t.char))
	case t.kind == '[' && len(t.spans) == 1 && t.spans[0][0] == t.spans[0][1]:
		return classExpr(t.spans, 0) + then(string(t.spans[0][0]))
	case t.kind == '[':
		return classExpr(t.spans, 0) + then("x")
	case t.star():
		return starExpr(named, len(rest) == 0, out, then)
	case t.first:
		return `(?:\?` + then("?") + `|[^\x00#?` + out + `]` + then("") + `)`
	}
	return `[^\x00#?` + out + `]` + then("")
}

func starExpr(named, last bool, out string, then func(written string) string) string {
	switch {
	case last && named:
		return `[^\x00@/#?]*(?:[/#?][^\x00]*)?`
	case last:
		return `[^\x00]*`
	case named:
		return `[^\x00/#?` + out + `]*(?:` + then("") + `|/[^\x00#?:]*` + then("/") + `)`
	}
	return `[^\x00#?` + out + `]*` + then("")
}

func classExpr(spans [][2]rune, sep rune) string {
	var b strings.Builder
	for _, s := range spans {
		if s[0] <= sep && sep <= s[1] {
			if s[0] < sep {
				fmt.Fprintf(&b, `\x{%x}-\x{%x}`, s[0], sep-1)
			}
			if sep < s[1] {
				fmt.Fprintf(&b, `\x{%x}-\x{%x}`, sep+1, s[1])
			}
			continue
		}
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, s[0], s[1])
	}
	return "[" + b.String() + "]"
}

// sample draws a string that the language holds, more or less at random.
func (l *language) sample(r *rand.Rand) string {
	const letters = "ab/.x"
	var b strings.Builder
	for _, t := range l.seqs[r.IntN(len(l.seqs))] {
		switch t.kind {
		case 'c':
			b.WriteRune(t.char)
		case '[':
			s := t.spans[r.IntN(len(t.spans))]
			b.WriteRune(s[0] + r.Int32N(s[1]-s[0]+1))
		case '?':
			b.WriteByte(letters[r.IntN(len(letters))])
		default:
			for range r.IntN(4) {
				b.WriteByte(letters[r.IntN(len(letters))])
			}
		}
	}
	return b.String()
}

// plain writes a sequence without braces, as a glob.
func plain(seq []token) string {
	var b strings.Builder
	for _, t := range seq {
		switch t.kind {
		case 'S':
			b.WriteString("**")
		case 'c':
			if strings.ContainsRune(`*?[]{}\`, t.char) {
				b.WriteByte('\\')
			}
			b.WriteRune(t.char)
		case '[':
			b.WriteByte('[')
			for _, s := range t.spans {
				for c := s[0]; c <= s[1]; c++ {
					if c == ']' || c == '\\' {
						b.WriteByte('\\')
					}
					b.WriteRune(c)
				}
			}
			b.WriteByte(']')
		default:
			b.WriteByte(t.kind)
		}
	}
	return b.String()
}

// universes says, apart from the package, which strings are canonical.
func inUniverse(u pattern.Universe, s string) bool {
	if strings.ContainsRune(s, 0) {
		return false
	}
	switch u {
	case pattern.AbsPath:
		if s == "/" {
			return true
		}
		if !strings.HasPrefix(s, "/") {
			return false
		}
		s = s[1:]
	case pattern.Any:
		return true
	}
	for seg := range strings.SplitSeq(s, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return false
		}
	}
	return true
}

// short returns every string of at most n characters of "ab/.", shortest first.
func short(n int) []string {
	all := []string{""}
	for from := 0; n > 0; n-- {
		to := len(all)
		for _, s := range all[from:to] {
			for _, c := range "ab/." {
				all = append(all, s+string(c))
			}
		}
		from = to
	}
	return all
}

// randomText draws the text of a pattern over the letters of short.
func randomText(r *rand.Rand, pieces, depth int) string {
	var b strings.Builder
	for range 1 + r.IntN(pieces) {
		switch k := r.IntN(16); {
		case k < 7:
			b.WriteByte("abab//."[r.IntN(7)])
		case k < 9:
			b.WriteByte('*')
		case k < 11:
			b.WriteString([]string{"**", "/**/", "**/"}[r.IntN(3)])
		case k < 12:
			b.WriteByte('?')
		case k < 13:
			b.WriteString([]string{"[ab]", "[a]", "[.-b]", "[a-b.]"}[r.IntN(4)])
		case depth > 0:
			b.WriteByte('{')
			for i := range 1 + r.IntN(3) {
				if i > 0 {
					b.WriteByte(',')
				}
				if r.IntN(6) > 0 {
					b.WriteString(randomText(r, 2, depth-1))
				}
			}
			b.WriteByte('}')
		}
	}
	return b.String()
}

// random draws a pattern that both Parse and the oracle can read.
func random(r *rand.Rand, sep rune) (*pattern.Pattern, *language) {
	return randomBehind(r, "", sep)
}

// randomOf draws a pattern that may match something of the universe.
func randomOf(r *rand.Rand, u pattern.Universe) (*pattern.Pattern, *language) {
	if u == pattern.AbsPath {
		return randomBehind(r, "/", pattern.Slash)
	}
	return randomBehind(r, "", pattern.Slash)
}

func randomBehind(r *rand.Rand, lead string, sep rune) (*pattern.Pattern, *language) {
	return drawn(sep, func() string { return lead + randomText(r, 5, 2) })
}

// drawn draws until both can read it.
func drawn(sep rune, draw func() string) (*pattern.Pattern, *language) {
	for {
		text := draw()
		if p, err := pattern.Parse(text, sep); err == nil {
			if l := translate(text, sep); l != nil {
				return p, l
			}
		}
	}
}

func parse(t testing.TB, text string, sep rune) *pattern.Pattern {
	t.Helper()
	p, err := pattern.Parse(text, sep)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
