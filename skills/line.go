package skills

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// misses reports whether a reader that goes line by line, which is what clients do with
// what is no YAML to them, finds a key where there is none, or a tool in a comment: at
// the margin, in the midst of a value, or behind a # that not everybody takes for the
// beginning of a comment. Readers of YAML do not agree on all of it either: on a ! that
// names no type, and on a # in the midst of a text of several lines.
func (h *head) misses(raw string) bool {
	var in key
	for i, line := range strings.SplitAfter(raw, "\n") {
		rest := strings.TrimLeft(line, blanks)
		deeper := len(line)-len(rest) > h.margin
		_, begins := slices.BinarySearch(h.lines, i+1)
		isKey := !deeper && begins
		if in.begins && (!deeper || strings.TrimSpace(rest) == "") || !deeper && !isKey && mayBeKey(rest) {
			return true
		}
		if isKey {
			name, value, _ := strings.Cut(rest, ":")
			folded := foldKey(name)
			in, rest = key{asks: h.asksFor(folded), tools: folded == toolsKey, names: folded == argumentsKey}, value
		}
		if in.asks && h.divided(&in, rest, isKey) {
			return true
		}
	}
	return false
}

// key is what a line stands behind.
type key struct {
	asks   bool // it counts
	tools  bool // it is allowed-tools
	names  bool // it is arguments
	text   bool // there may be a text in which a comment is none to some
	begins bool // a text of several lines does, which is none to some where the next line is empty
}

// divided reports whether readers do not agree on what a line says behind a key, or in the
// same line.
func (h *head) divided(in *key, line string, first bool) bool {
	plain, name := plainWord, plainName
	if first {
		plain, name = plainWords, plainNames
	}
	form := strings.Map(letterForm, line)
	in.begins = first && beginText().MatchString(form)
	in.text = !first && in.text || strings.ContainsAny(line, "|>")
	if in.names {
		in.begins, h.odd = false, h.odd || !name().MatchString(form)
		h.veils = h.veils || h.odd
		return false
	}
	return !plain().MatchString(form) || in.tools && (first || in.text) && h.hides(line)
}

// letterForm makes every letter and digit beyond ASCII the one that the forms below know: with all
// of the world's in them, they took longer to compile than capgate does to start.
func letterForm(r rune) rune {
	if r > unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsNumber(r)) {
		return 'é'
	}
	return r
}

// How names of arguments stand in a line that all readers take for those names, or for none,
// also those that go line by line: behind the key as words, as a list or as a list of maps of
// words; below it as an entry, which may be a map. A list ends where the line does.
var (
	plainNames = whenAsked(`^ *(|` + aName + `|` + aWord + `( +` + aWord + `)*[ \t]*|\[ *` + aName + `( *, *` + aName + `)* *\]|\[ *` + aMap + `( *, *` + aMap + `)* *\])\r?\n?$`)
	plainName  = whenAsked(`^(|- +` + aName + `|(- +)?` + aWord + `: [A-Za-z0-9é_ ,()-]*\.?)\r?\n?$`)
)

const (
	aWord = `[A-Za-z0-9é_][A-Za-z0-9é_-]*`
	aName = `(` + aWord + `|"` + aWord + `( ` + aWord + `)*"|'` + aWord + `( ` + aWord + `)*')`
	aMap  = `\{` + aWord + `: ` + aWord + `(, ` + aWord + `: ` + aWord + `)*\}`
)

// The same of what else asks for something: words, a list, or the beginning of one or of a text
// of several lines behind the key; below it words, an entry of a list, or a piece of one.
var (
	plainWords = whenAsked(`^ *(|\{\}|~|` + words + `|` + inQuotes + `|` + aList + `|[|>][-+]?|\[)` + lineEnd)
	plainWord  = whenAsked(`^(|(- +)?(` + words + `|` + inQuotes + `,?)|` + aList + `|[\[\]])` + lineEnd)
	beginText  = whenAsked(`^ *[|>][-+]?` + lineEnd)
)

const (
	words    = `[A-Za-z0-9é_]#*( *[!"$-~é]#*)*`
	inQuotes = `("[ !$-\[\]-~é]*"|'[ !"$-&(-~é]*')`
	anItem   = `([A-Za-z0-9é_]([ !"$-+\-./0-9;-Z\\^-z|~é]|:[!-+\--Z^-z|~])*|` + inQuotes + `)`
	aList    = `\[ *(` + anItem + `( *, *` + anItem + `)*)? *,? *\]`
	lineEnd  = `[ \t]*((^| )#[^\n]*)?\r?\n?$`
)

// whenAsked compiles a form when something is first held against it: together they take longer than
// most of what a gateway does at its start.
func whenAsked(form string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(form) })
}

// hides reports whether a comment in a line names a tool that the skill does not. One of
// more words than anybody writes is not looked through.
func (h *head) hides(line string) bool {
	_, comment, _ := strings.Cut(line, "#")
	comment = strings.Map(func(r rune) rune {
		if isBlank(r) {
			return ' '
		}
		return r
	}, comment)
	words := Tokens(comment)
	return len(words) > maxTools || slices.Contains(words, "*") || divides(comment) || h.lacks(words)
}

// mayBeKey reports whether a line at the margin may begin with a key. A comment does not,
// nor does an entry of a list, nor the value of a key that stands above it.
func mayBeKey(line string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return strings.Contains(line, ":") && !strings.HasPrefix(word, "#") && word != "-" && word != ":" || word == "?"
}

// lacks reports whether one of some tokens is a tool that the skill does not name.
func (h *head) lacks(tokens []string) bool {
	return slices.ContainsFunc(tokens, func(token string) bool { return isKnown(token) && !slices.Contains(h.tools, token) })
}
