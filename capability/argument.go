package capability

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// delimiters end one part of an argument that a program may take as a path.
	delimiters   = "=:@,<"
	maxParts     = 256     // parts of one argument
	maxPartBytes = 1 << 20 // of all its parts together

	// A cluster of options ends at what is none to any program; behind valueless no value
	// begins, as in -e^/x and -S"/x". Whatever else is printed may be an option that takes one,
	// as in -#o/x and -i!/x.
	noOptions = delimiters + "/ *!"
	valueless = `./ *^"'([\`
)

// exclusions are the options whose values no program looks for, to leave them out.
var exclusions = list("--exclude --exclude-dir --ignore --ignore-pattern")

// Argument reads a word of an argv, which no shell expands: every part of it
// that the program could take as a path, literally. One that is too long for a
// path is left out.
func (v View) Argument(word string) []Path {
	parts, ok := argumentParts(word)
	if !ok {
		return []Path{{raw: word, opaque: opaqueMany}}
	}
	var found []Path
	for _, part := range parts {
		if p := v.literal(part); p.opaque != "" || len(p.readings) > 0 {
			found = append(found, p)
		}
	}
	return found
}

// argumentParts returns the word and what it may hold: option values, values of
// pairs, elements of lists. A web address is one part. It fails for a word with
// more than can be looked at.
func argumentParts(word string) (parts []string, ok bool) {
	parts = []string{word}
	if scheme, rest, ok := cutPathScheme(word); ok && strings.HasPrefix(rest, "//") && (scheme == "http" || scheme == "https") {
		return parts, true
	}
	if option, _, ok := strings.Cut(word, "="); ok && slices.Contains(exclusions, option) {
		return parts, true
	}
	size := 0
	for i := 1; i < len(word); i++ {
		if !startsPart(word, i) {
			continue
		}
		part := word[i:]
		if word[i-1] == '@' && isRevision(part) {
			part = "./" + part
		}
		parts = append(parts, part)
		if size += len(word) - i; size > maxPartBytes {
			return nil, false
		}
	}
	for _, part := range parts {
		if end := strings.IndexAny(part, delimiters); end > 0 {
			parts = appendNew(parts, part[:end])
		}
	}
	return parts, len(parts) <= maxParts
}

// isRevision reports whether a word goes on so behind an @ that it is one of git's names
// for a commit, as in @~2^ and @~1..main: to no program it is the home of ~2.
func isRevision(text string) bool {
	rest := strings.TrimLeft(text, "~^0123456789")
	return text[0] == '~' && (rest == "" || rest[0] == ':' || strings.HasPrefix(rest, ".."))
}

// startsPart reports whether a program may begin to read a path at i: after a
// delimiter, at a file URI, or in a cluster of short options, any of which may
// take what follows as its value.
func startsPart(word string, i int) bool {
	const fileURI = "file:/"
	switch {
	case strings.IndexByte(delimiters, word[i-1]) >= 0:
		return word[i-1] != ':' || !strings.HasPrefix(word[i:], "//")
	case len(word) >= i+len(fileURI) && strings.EqualFold(word[i:i+len(fileURI)], fileURI):
		return true
	}
	return i > 1 && isCluster(word[:2]) && !strings.ContainsAny(word[1:i-1], noOptions) &&
		strings.IndexByte(valueless, word[i-1]) < 0 && utf8.RuneStart(word[i])
}

// literal reads a word as the system would, and a file URI as the path it names.
func (v View) literal(word string) Path {
	r := pathReader{view: v, Path: Path{raw: word}}
	scheme, place, _ := cutPathScheme(word)
	switch {
	case strings.IndexByte(word, 0) >= 0:
		r.opaque = opaqueEncoding
	case isUserHome(word):
		r.opaque = opaqueUser
	case isTooLong(word) && (hasParent(word) || strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~")):
		r.opaque = opaqueMany
	case isTooLong(word):
	case scheme == "file" && isURL(word):
		r.opaque = opaqueURL
	case scheme == "file" && place != "" && place[0] != ' ':
		for _, uri := range append(decodePercent(word), word) {
			for _, text := range append(filePaths(uri), uri) {
				r.each(text, func(place string) { r.add(place, false) })
			}
		}
	default:
		r.each(word, func(place string) { r.add(place, false) })
	}
	return r.Path
}

// isTooLong reports whether the system would refuse a text as a path, also when
// a program cleans it first.
func isTooLong(text string) bool {
	text = path.Clean(text)
	return len(text) > maxPath || longestSegment(text) > maxSegment
}
