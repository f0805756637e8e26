package capability

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"capgate/capability/pattern"
)

// segment stands for the names of one directory.
type segment struct {
	text     string
	deep     bool             // also for those in the directories beneath
	names    *pattern.Pattern // nil where it is a name itself
	alike    *pattern.Pattern // of names in one case
	hasForms bool             // Unicode knows other ways to write the name
}

// signs mean something in a glob to those who go beyond wildcards, each in his own way.
const signs = "(){}|$^\"'\\<>&;#`"

// opens returns where a text begins to be more than a name, negative where it does not.
func (as role) opens(text string) int {
	if as == asGlob {
		return strings.IndexAny(text, wildcards+signs)
	}
	first, operator := strings.IndexAny(text, wildcards), operatorIn(text)
	if operator >= 0 && (first < 0 || operator < first) {
		return operator
	}
	return first
}

// cutGlob splits a glob in front of the first segment that is more than a name.
func (as role) cutGlob(text string) (dir, rest string) {
	cut := strings.LastIndexByte(text[:as.opens(text)], '/') + 1
	return text[:cut], text[cut:]
}

// segmentsOf splits a relative glob.
func (as role) segmentsOf(glob string) (segs []segment) {
	for text := range strings.SplitSeq(path.Clean(glob), "/") {
		seg := segment{text: text, deep: strings.Contains(text, "**"), hasForms: !isASCII(text) || strings.ContainsAny(text, "K;`")}
		if as.opens(text) >= 0 {
			seg.names, seg.alike = as.namesOf(text), as.namesOf(oneCase(text))
		}
		segs = append(segs, seg)
	}
	return segs
}

// namesOf is a pattern of all names that a segment may stand for. What is one character to some
// is several to others, and what is in brackets may be letters of the name; of signs beyond
// that, nobody knows.
func (as role) namesOf(text string) *pattern.Pattern {
	if at := operatorIn(text); at >= 0 {
		text = text[:at] + "*" + text[max(at+1, strings.LastIndexByte(text, ')'))+1:]
	}
	rest := text
	if first, last := strings.IndexByte(text, '['), strings.LastIndexByte(text, ']'); first >= 0 && last > first {
		rest = text[:first] + "*" + strings.Replace(text[last+1:], "+", "(", 1) // which may say how often
	}
	text = strings.ReplaceAll(text, "?", "*")
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	p, err := parseGlob(text)
	if err != nil || as == asGlob && strings.ContainsAny(rest, signs) {
		p, _ = parseGlob("*")
	}
	return p
}

// matches reports whether a segment may stand for a name, to somebody. Bytes that are no text
// are one character each in one case.
func (s segment) matches(name string) bool {
	return name == s.text || s.names != nil && (s.names.Match(name) || s.alike.Match(oneCase(name)))
}

// is reports whether a segment stands for a name to everybody.
func (s segment) is(name string) bool {
	p, err := parseGlob(s.text)
	return err == nil && p.Match(name)
}

// joined writes segments as a glob again.
func joined(segs []segment) string {
	texts := make([]string, len(segs))
	for i, seg := range segs {
		texts[i] = seg.text
	}
	return strings.Join(texts, "/")
}

// isUnread reports whether a glob says what libraries differ about and is not read here: what it leaves
// out, what else it may be, how often, in quotes, or with a group or class that may go beyond its segment.
func isUnread(glob string) bool {
	return glob[0] == '!' || strings.ContainsAny(glob, "|\"'`") || strings.Contains(glob, "}+") || operatorIn(glob) >= 0 ||
		hasRange(glob) || slices.ContainsFunc(strings.Split(glob, "/"), isOddSegment)
}

// hasRange reports whether a group of braces may be a range.
func hasRange(glob string) bool {
	_, after, ok := strings.Cut(glob, "{")
	inside, _, _ := strings.Cut(after, "}")
	return ok && (strings.Contains(inside, "..") || hasRange(after))
}

// isOddSegment reports whether to some a segment climbs, or goes on beyond a slash.
func isOddSegment(seg string) bool {
	if strings.HasPrefix(seg, "..") && len(seg) > len("..") || strings.Count(seg, "(") != strings.Count(seg, ")") {
		return true
	}
	for rest := seg; ; {
		before, body, ok := strings.Cut(rest, "[")
		if !ok {
			return strings.Contains(before, "]")
		}
		if body, rest, ok = strings.Cut(body, "]"); !ok || strings.Contains(before, "]") || !isClass(strings.TrimLeft(body, "!^")) {
			return true
		}
	}
}

// isClass reports whether nobody reads a class as one that holds a slash: it has letters, digits and dots, and
// ranges between letters or digits.
func isClass(body string) bool {
	for i := range len(body) {
		is := func(at int) bool { return at < 0 || at == len(body) || isWord(rune(body[at])) }
		if b := body[i]; b == '-' && (!is(i-1) || !is(i+1)) || b != '-' && b != '.' && b < utf8.RuneSelf && !isWord(rune(b)) {
			return false
		}
	}
	return body != ""
}
