package capability

import (
	"slices"
	"strings"
	"unicode"
)

// isWrapping reports whether there are readers that take a scheme for a note on the URI behind it, which they open.
func isWrapping(scheme string) bool {
	return slices.Contains([]string{
		"url",                                                         // Python, Java, and who reads RFC 1738
		"view-source", "blob", "filesystem", "microsoft-edge", "feed", // browsers and readers of feeds
		"jar", "war", "ear", "zip", "tar", "tgz", "tbz2", "gz", "bz2", "nested", // Java's archives and virtual files
		"compress.zlib", "compress.bzip2", "phar", // PHP
		"concat", "crypto", "async", "subfile", // FFmpeg, whose cache: is a scheme of servers' own as well
	}, scheme)
}

// Unwrapped takes one wrapping off a URI: brackets, as in <https://a.com>, a scheme that stands for the URI behind it,
// as in view-source:https://a.com, or the name of a way to get it, as in git::https://a.com. Whether there is a URI in
// it is not said; ok is whether there is a wrapping. Blanks and what nobody sees are taken off with it.
func (View) Unwrapped(text string) (inner string, ok bool) { return unwrapped(text) }

func unwrapped(text string) (inner string, ok bool) {
	text = strings.TrimFunc(text, isUnseen)
	if len(text) > 1 && text[0] == '<' && text[len(text)-1] == '>' {
		return strings.TrimFunc(text[1:len(text)-1], isUnseen), true
	}
	scheme, rest, ok := cutPathScheme(text)
	switch {
	case !ok:
		return text, false
	case isWrapping(scheme):
		return strings.TrimFunc(rest, isUnseen), true
	}
	inner, ok = strings.CutPrefix(rest, ":")
	first := strings.TrimLeftFunc(inner, isUnseen)
	return inner, ok && first == inner // source:: https://a.com is a note
}

func isUnseen(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }

// holdsURI reports whether some reader finds a URI in another, that it opens instead.
func holdsURI(text string) bool {
	for inner, ok := unwrapped(text); ok; inner, ok = unwrapped(inner) {
		if opens(inner) {
			return true
		}
	}
	for i := strings.Index(text, "::"); i >= 0; i = strings.Index(text, "::") {
		if text = text[i+len("::"):]; opens(text) { // as in zip://a::https://b
			return true
		}
	}
	return false
}

// opens reports whether a text is a URI that is opened as it stands. What has no slash behind its scheme may be any
// name that holds a colon, unless readers know the scheme.
func opens(text string) bool {
	scheme, rest, ok := cutPathScheme(strings.TrimLeft(text, `/\`))
	switch {
	case !ok || len(scheme) < 2 || rest == "" || rest[0] == ':': // as in perl:LWP::https::Socket
		return false
	}
	return isBrowsed(scheme) || scheme == "file" || rest[0] == '/' || rest[0] == '\\'
}
