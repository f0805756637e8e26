package capability

import (
	"html"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// guesses are what servers do to a path beyond reading it, which nobody who writes a grant has in mind. They are made
// as [rewrites] are. Those that part a text at signs are made where such a sign is written: for a full-width colon, which
// names have in place of the one, nobody takes it.
var guesses = [...]struct {
	make func(text string) []string
	at   string
}{
	{make: unmention},
	{make: unplace},
	{unscheme, ":"},
	{untail, tails + "\u037e"}, // which is ; in any form
	{make: unformat},
	{make: unset},
	{make: unescape},
	{make: uncode},
	{make: startsAnew},
}

const (
	tails   = ":;!" // the signs behind which some part of a file is named
	escapes = `%\&` // those by which a sign is written as others

	maxWritten = 8 // readings of a path in which a sign is looked for; of more it may be in one
)

// baits are the texts that are more than a path to somebody who has not looked at it.
var baits = [...]struct {
	opaque string
	is     func(text string) bool
}{
	{opaqueOption, isOption},
	{opaqueProgram, isProgram},
	{opaqueRest, hasInnerURI},
	{opaqueParent, hasHidden},
	{opaqueEncoding, func(text string) bool { return strings.Contains(text, `\N{`) }}, // the name of a character, to Python
}

// guessesOf returns the guesses that are made of a path.
func guessesOf(raw string) []func(text string) []string {
	made := make([]func(string) []string, 0, len(guesses))
	for _, guess := range guesses {
		if guess.at == "" || writes(raw, guess.at) {
			made = append(made, guess.make)
		}
	}
	return made
}

// guessed adds what is made of a text by guesses.
func guessed(texts []string, text string, guesses []func(string) []string) []string {
	for _, guess := range guesses {
		for _, made := range guess(text) {
			if strings.TrimSpace(made) != "" {
				texts = appendNew(texts, made)
			}
		}
	}
	return texts
}

// writes reports whether a text has one of some signs, as it is or escaped, and not only what looks like one.
func writes(text, signs string) bool {
	switch {
	case strings.ContainsAny(text, signs):
		return true
	case !strings.ContainsAny(text, escapes):
		return false
	}
	var plain strings.Builder // without what looks like one, and as others read the rest
	looks := false
	for _, r := range text {
		if as := lookalike(r); strings.ContainsAny(as, signs) {
			looks = true
		} else {
			plain.WriteString(as)
		}
	}
	if !looks {
		return true // so that there is nothing to tell apart
	}
	texts, others := []string{plain.String()}, guessesOf("") // which need no sign
	for i := 0; i < len(texts); i++ {
		if strings.ContainsAny(texts[i], signs) || len(texts) > maxWritten {
			return true
		}
		for _, rewrite := range rewrites {
			for _, made := range rewrite(texts[i]) {
				texts = appendNew(texts, made)
			}
		}
		texts = guessed(texts, texts[i], others)
	}
	return false
}

func baitOf(text string) (opaque string) {
	for _, b := range baits {
		if b.is(text) {
			return b.opaque
		}
	}
	return ""
}

// unmention takes off the @ by which people show a file to a model.
func unmention(text string) []string {
	if rest, ok := strings.CutPrefix(text, "@"); ok {
		return []string{rest}
	}
	return nil
}

// unplace takes off a place within the file: x.go#L10-L12, x.cs(10,3), x.tiff[0], x.png[4x4].
func unplace(text string) (made []string) {
	name := strings.TrimRight(text, "0123456789-,:#LC()[]")
	for i := len(name); i < len(text) && len(made) <= maxReadings; i++ {
		if strings.IndexByte("#([", text[i]) >= 0 {
			made = append(made, text[:i])
		}
	}
	if i := strings.LastIndexByte(text, '['); i > 0 && text[i-1] != '/' && strings.HasSuffix(text, "]") {
		made = append(made, text[:i])
	}
	return made
}

// unscheme takes off what stands in front of a colon, or several: png:x, GTIFF_RAW:x, x.py::Test, main:x, origin/main:x.
// A line in a file of a folder is no name, nor is a test in one.
func unscheme(text string) (made []string) {
	if isFileURI(text) {
		return nil
	}
	for i := 1; i < len(text) && len(made) <= maxReadings; i++ {
		if text[i] != ':' || text[i-1] == ':' {
			continue
		}
		rest := strings.TrimLeft(text[i:], ":")
		isWithin := text[i:] != ":"+rest || strings.Trim(rest, "0123456789-,:") == ""
		if !isWithin || !strings.Contains(text[:i], "/") {
			made = append(made, rest)
		}
	}
	return made
}

// untail takes off what stands behind a sign by which some part names: x.go:10:2, x: word, x;v=1, x!Sheet.
func untail(text string) (made []string) {
	if isFileURI(text) {
		return nil
	}
	for i := 1; i < len(text) && len(made) <= maxReadings; i++ {
		if strings.IndexByte(tails, text[i]) < 0 || strings.IndexByte(":;!/", text[i-1]) >= 0 {
			continue
		}
		if front := text[:i]; strings.Count(front, "[") <= strings.Count(front, "]") { // it is in no class
			made = append(made, front)
		}
	}
	return made
}

// unformat writes numbers that are filled in, as in x%03d.png, as wildcards.
func unformat(text string) []string {
	return behindEach(text, "%", func(rest string) (put, left string) {
		if left, ok := filledIn(rest); ok {
			return "*", left
		}
		return "%", rest
	})
}

// unset leaves out variables that are nobody's, as who expands them does.
func unset(text string) []string {
	return behindEach(text, "$", func(rest string) (put, left string) {
		if isNobodys(rest) {
			return "", strings.TrimLeftFunc(rest, isWord)
		}
		return "$", rest
	})
}

// behindEach writes a text anew from each sign on: what is put in the sign's place, and what is left behind it.
func behindEach(text, sign string, change func(rest string) (put, left string)) []string {
	front, rest, ok := strings.Cut(text, sign)
	made := front
	for ok {
		put, left := change(rest)
		front, rest, ok = strings.Cut(left, sign)
		made += put + front
	}
	if made == text {
		return nil
	}
	return []string{made}
}

// filledIn cuts off the rest of a number that is filled in, behind its percent sign. An escape is none, if there can be a
// character of it.
func filledIn(rest string) (left string, ok bool) {
	left = strings.TrimLeft(rest, "0123456789")
	digits := len(rest) - len(left)
	b, isEscape := hexDigits(rest, "", 2)
	left, ok = strings.CutPrefix(left, "d")
	return left, ok && (!isEscape || b < ' ' || digits < 2)
}

// isFileURI reports whether a text begins as the URI of a file.
func isFileURI(text string) bool {
	scheme, _, _ := cutPathScheme(text)
	return scheme == "file"
}

// unescape writes what is escaped as in HTML.
func unescape(text string) []string {
	if strings.IndexByte(text, '&') < 0 {
		return nil
	}
	return []string{html.UnescapeString(text)}
}

// uncode writes what is escaped as in C.
func uncode(text string) []string {
	if strings.IndexByte(text, '\\') < 0 {
		return nil
	}
	return []string{decodeC(text, false), decodeC(text, true)}
}

// startsAnew returns the whole paths that follow a sign which parts lists, or one in front that somebody leaves out.
func startsAnew(text string) (made []string) {
	if isFileURI(text) { // its slashes say where the host is
		return nil
	}
	front, _, _ := strings.Cut(text, "/")
	before := 'x'
	for i, r := range text {
		parts := strings.ContainsRune(" ,;|:(<>="+quotes, before) || i > 0 && i == len(front) && isLeft("", front)
		isEnd := strings.ContainsRune("!@#&", before) // of names such as C#, too
		before = r
		if !parts && !isEnd || len(made) > maxReadings {
			continue
		}
		if rest := strings.TrimLeft(text[i:], "@"); isAnew(rest) && (parts || rest[0] != '/') {
			made = append(made, rest)
		}
	}
	return made
}

// isAnew reports whether a text begins at the root, at home or in a parent.
func isAnew(text string) bool {
	front, _, _ := strings.Cut(text, "/")
	return text != "" && (front == "" || front == "~" || front == ".." || leavesOff(front))
}

// beginsAnew reports whether behind ~/ or ./ there is a whole path.
func beginsAnew(text string) bool {
	rest := text
	for ok := true; ok; {
		rest, ok = strings.CutPrefix(rest, "./")
	}
	return rest != text && strings.HasPrefix(rest, "/") || strings.HasPrefix(text, "~//")
}

// isLeft reports whether that is all that is left of a segment to who leaves signs out, or takes parameters off.
func isLeft(as, seg string) bool {
	if seg == as || seg == "~" || !isASCII(seg) || strings.ContainsAny(seg, wildcards) {
		return false
	}
	front, _, _ := strings.Cut(seg, ";")
	return kept(seg) == as || kept(front) == as
}

// kept leaves out what servers leave out of names.
func kept(seg string) string {
	return strings.Map(func(r rune) rune {
		if isWord(r) || r == '.' || r == '-' {
			return r
		}
		return -1
	}, seg)
}

// hasHidden reports whether a segment is a parent to who leaves signs out, or ends it at one, or whether a parent is
// another where a segment of signs in front of it is left out, or only its dot is not.
func hasHidden(text string) bool {
	left := false // a segment of signs
	for seg := range strings.SplitSeq(text, "/") {
		if leavesOff(seg) || seg != ".." && kept(seg) == ".." || left && seg == ".." {
			return true
		}
		left = left || isLeft("", seg) || isLeft(".", seg)
	}
	return false
}

// leavesOff reports whether a segment is a parent up to a sign, which is none that names go on with.
func leavesOff(seg string) bool {
	after, ok := strings.CutPrefix(seg, "..")
	return ok && after != "" && after[0] < utf8.RuneSelf && !isWord(rune(after[0])) && strings.IndexByte(".-*[{", after[0]) < 0
}

// isOption reports whether a program that is given a text takes it for an option. PowerShell knows longer dashes too.
func isOption(text string) bool {
	return slices.ContainsFunc([]string{"-", "\u2013", "\u2014", "\u2015", "\ufe58"}, func(dash string) bool { return strings.HasPrefix(text, dash) })
}

// isProgram reports whether some take a text for a program to run, or a file to write: zsh, Perl, Ruby.
func isProgram(text string) bool {
	rest := strings.TrimPrefix(text, "+")
	return rest != "" && strings.IndexByte("=|<>", rest[0]) >= 0 || strings.HasSuffix(text, "|")
}

// hasInnerURI reports whether a text has a file URI's beginning elsewhere than at its own.
func hasInnerURI(text string) bool { return strings.LastIndex(strings.ToLower(text), "file:/") > 0 }

// behind says why what follows a directory that a text may hang from, or its name, is no part of it to who cuts
// that off.
func (v View) behind(text string) (opaque string) {
	if isPlain(text) && !strings.Contains(text, "//") && !strings.Contains(text, "/-") {
		return ""
	}
	for _, dir := range v.real(v.dirs()) {
		for _, front := range []string{dir, path.Base(dir)} {
			rest, ok := strings.CutPrefix(text, front+"/")
			if !ok || dir == "" || rest == "" {
				continue
			}
			texts, opaque := spellings(rest, true)
			if front != dir && hasParent(rest) {
				return opaqueParent
			}
			if opaque != "" && opaque != opaqueParent {
				return opaque
			}
			if slices.ContainsFunc(texts, func(one string) bool { return strings.IndexByte("/~:", one[0]) >= 0 }) {
				return opaqueRest
			}
		}
	}
	return ""
}
