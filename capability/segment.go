package capability

import (
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"capgate/capability/pattern"
)

// segment stands for the names of one directory.
type segment struct {
	text  string
	deep  bool             // also for those in the directories beneath
	names *pattern.Pattern // nil where it is a name itself
	alike *pattern.Pattern // of names in one case
}

// opens returns where a text begins to be more than a name, negative where it does not.
func (as role) opens(text string) int {
	if as == asGlob {
		return strings.IndexAny(text, wildcards+"{}")
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
		seg := segment{text: text, deep: strings.Contains(text, "**")}
		if as.opens(text) >= 0 {
			seg.names, seg.alike = as.namesOf(text), as.namesOf(oneCase(text))
		}
		segs = append(segs, seg)
	}
	return segs
}

// namesOf is a pattern of all names that a segment may stand for. What is one character to some
// is several to others, and what is in brackets may be letters of the name.
func (as role) namesOf(text string) *pattern.Pattern {
	if at := operatorIn(text); at >= 0 {
		text = text[:at] + "*" + text[max(at+1, strings.LastIndexByte(text, ')'))+1:]
	}
	text = shallow(strings.ReplaceAll(text, "?", "*"))
	p, err := as.parseGlob(text)
	if err != nil {
		p, _ = parseGlob("*")
	}
	return p
}

func (s segment) hasBraces() bool { return strings.Contains(s.text, "{") }

// matches reports whether a segment may stand for a name, to somebody: also for one that is the same once
// composed. Bytes that are no text are one character each in one case.
func (s segment) matches(name string) bool {
	if s.names == nil {
		return name == s.text || !(isASCII(name) && isASCII(s.text)) && norm.NFKD.String(name) == norm.NFKD.String(s.text)
	}
	return s.names.Match(name) || s.alike.Match(oneCase(name))
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
