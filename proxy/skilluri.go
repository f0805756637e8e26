package proxy

import (
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"capgate/mapping"
)

const (
	skillPrefix = "skill:" // of whatever may be taken for the URI of a skill
	skillScheme = skillPrefix + "//"
	skillFile   = "SKILL.md"
	maxSkillURI = 2048 // bytes of the URI of one file
	maxSegments = 64   // of it
)

// pathURI is the URI of a folder of one of the gateway's own skills.
func pathURI(folder string) string {
	segments := strings.Split(folder, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return skillScheme + strings.Join(segments, "/")
}

// exposedURI is the URI that agents know a file of a server's skill by. What stands
// before it is the server's, so that no two servers have one URI; a URI of another
// scheme is the server's own and stays.
func exposedURI(u *Upstream, uri string) string {
	rest, ok := strings.CutPrefix(uri, skillScheme)
	if !ok || u.Prefix == "" {
		return uri
	}
	return skillScheme + u.Prefix + "/" + rest
}

// plainURI reports whether a URI of a server can be read in one way only: no
// segment that moves, nothing escaped that need not be, no query.
func plainURI(uri string) bool {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok || len(uri) > maxSkillURI || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+.-") != "" ||
		scheme == "" || scheme[0] < 'a' {
		return false
	}
	if host, _, _ := strings.Cut(rest, "/"); strings.ContainsAny(host, ":@[]") {
		return false
	}
	if strings.Count(rest, "/") > maxSegments {
		return false
	}
	for segment := range strings.SplitSeq(rest, "/") {
		if segment == "" || segment == "." || segment == ".." || !plainSegment(segment) {
			return false
		}
	}
	return strings.Count(looseURI(uri), "/") == 1+strings.Count(rest, "/") // nothing moves, as ..;x does
}

// notPlain says what of a URI keeps it from being read in one way only.
func notPlain(uri string) string {
	switch _, rest, _ := strings.Cut(uri, "://"); {
	case len(uri) > maxSkillURI || strings.Count(rest, "/") > maxSegments:
		return "is too long, or too deep"
	case strings.HasPrefix(rest, "/"):
		return "has nothing between :// and the next slash"
	}
	return "can be read in several ways"
}

func plainSegment(segment string) bool {
	for i := 0; i < len(segment); i++ {
		c := segment[i]
		if c != '%' {
			if !isLetterOrDigit(c) && !strings.ContainsRune("-._~!$&'()*+,;=:@[]", rune(c)) {
				return false
			}
			continue
		}
		one, rest := unescape(segment[i:])
		if rest != segment[i+min(3, len(segment)-i):] || one < ' ' || one == 0x7f || isLetterOrDigit(one) || strings.ContainsRune(`-._~/\%`, rune(one)) {
			return false
		}
		i += 2
	}
	return true
}

func isLetterOrDigit(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// unescape reads the first byte of a text, which may be an escaped one.
func unescape(text string) (c byte, rest string) {
	if len(text) > 2 && text[0] == '%' {
		high, low := unhex(text[1]), unhex(text[2])
		if high < 16 && low < 16 {
			return high<<4 | low, text[3:]
		}
	}
	return text[0], text[1:]
}

func unhex(c byte) byte {
	if i := strings.IndexByte("0123456789abcdef", c|0x20); i >= 0 && c > ' ' {
		return byte(i)
	}
	return 16
}

// maxEscapes is how often a URI may be escaped.
const maxEscapes = 4

// looseURI is what a reader that is not strict may take a URI for: in one case,
// unescaped as often as it goes, without what such readers leave out, and with the
// segments that move gone. It is compared with, and never asked for. One that is
// escaped too often may be anything, and so is taken for a skill's.
func looseURI(uri string) string { return loosePath(unescaped(uri)) }

// looseFolder is the folder that one may be taken for which a server says to be a skill's: that of a SKILL.md, where
// it has spelled that in a way of its own. It does not end in a slash, so that the topmost holds everything.
func looseFolder(root string) string {
	at := looseURI(root)
	if isSkillFile(at) {
		at = path.Dir(at)
	}
	return strings.TrimSuffix(at, "/")
}

// unescaped is a URI in one case, and unescaped as often as it goes.
func unescaped(uri string) string {
	for n := 0; ; n++ {
		plain := unescapeAll(uri)
		if plain == uri {
			break
		}
		if n == maxEscapes {
			return skillPrefix
		}
		uri = plain
	}
	return oneForm(strings.ReplaceAll(uri, `\`, "/"))
}

// oneForm writes alike what some file system takes for one name: with its accents behind their
// letters, before and after it is in one case, by way of the upper one, which brings s and ſ
// together.
func oneForm(name string) string {
	return norm.NFD.String(strings.ToLower(strings.ToUpper(norm.NFD.String(name))))
}

// loosePath cleans the path of a URI, and leaves out of each segment what some readers
// do: dots at its end, and whatever stands behind : or ; as ports and streams do.
func loosePath(uri string) string {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok {
		return path.Clean(uri)
	}
	segments := strings.Split(path.Clean("/"+rest), "/")
	for i, s := range segments {
		if i == 1 {
			s = s[strings.LastIndexByte(s, '@')+1:] // who asks, before the host
		}
		s, _, _ = strings.Cut(s, ":")
		s, _, _ = strings.Cut(s, ";")
		if s == ".." { // some readers move there, and others leave the dots out
			return skillPrefix
		}
		segments[i] = strings.TrimRight(s, ".")
	}
	return scheme + ":" + path.Clean(strings.Join(segments, "/"))
}

// unescapeAll unescapes a text once, and leaves out blanks and what does not show.
func unescapeAll(text string) string {
	var b strings.Builder
	for text != "" {
		var c byte
		if c, text = unescape(text); c > ' ' {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// isSkillURI reports whether somebody may take a URI for one of the scheme of skills.
func isSkillURI(uri string) bool {
	if uri != "" && uri[0] > ' ' && uri[0] < utf8.RuneSelf && !strings.ContainsRune("sS%", rune(uri[0])) {
		return false // as most are
	}
	return strings.HasPrefix(looseURI(uri[:min(len(uri), mapping.MaxURI)]), skillPrefix)
}

// isSkillFile reports whether a place is that of a SKILL.md.
func isSkillFile(place string) bool { return path.Base(place) == strings.ToLower(skillFile) }

// isUnmarkedSkillFile reports the same of a place without its marks.
func isUnmarkedSkillFile(place string) bool { return path.Base(place) == "skillmd" }

// mayBeSkillFile reports whether a URI that servers read in different ways names one.
func mayBeSkillFile(uri string) bool {
	text, name := unescaped(uri[:min(len(uri), mapping.MaxURI)]), strings.ToLower(skillFile)
	return text == skillPrefix || strings.Contains(text, name) || strings.Contains(strings.ToLower(uri), name)
}

// within reports whether a URI is that of a folder, or of something in it.
func within(folder, uri string) bool {
	rest, ok := strings.CutPrefix(uri, folder)
	return ok && (rest == "" || rest[0] == '/')
}
