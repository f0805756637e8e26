package capability

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Why a path has a reading that nothing can cover. Each finishes the sentence
// "the path …".
const (
	opaqueMany     = "can be read in too many ways"
	opaqueParent   = "holds .. and can be read in several ways"
	opaqueEmpty    = "can be read as an empty one"
	opaqueDots     = "has a segment of dots and spaces"
	opaqueEncoding = "hides characters that no path may hold"
	opaqueVariable = "names a variable"
	opaqueDrive    = "names a drive"
	opaqueURL      = "can be read as a URL"
	opaqueShare    = "names a network share"
	opaqueUser     = "names another user's home"
	opaqueProgram  = "has a sign at its beginning or end by which some run a program or write a file"
	opaqueOption   = "begins with a dash, as an option does"
	opaqueGlob     = "is a glob that cannot be bounded"
	opaqueUnread   = "is a glob that servers read in different ways: *, **, ? and {a,b} within a name are read here"
	opaqueRoot     = "hangs from a folder whose name is a glob to some servers"
	opaqueSpec     = "begins with a colon, behind which git names files that lie elsewhere"
	opaqueBase     = "hangs from a directory that is not known: write the whole path, from / on"
	opaqueLink     = "cannot be resolved"
	opaqueMet      = "matches more than can be looked at for where its links lead"
	opaqueRest     = "goes on with a whole path behind its beginning"
)

// rewrites are what readers of a path do to its text. Each returns what comes of
// a text, nothing where it changes nothing. Their order does not matter: each is
// applied to what any other made, until nothing new comes.
var rewrites = [...]func(text string) []string{
	clean, unwrap, stripDots, decodePercent, turnBackslashes, foldLookalikes, compose, alternatives, filePaths,
}

// hazards are the texts that stand for something no grant can name.
var hazards = [...]struct {
	opaque string
	is     func(text string) bool
}{
	{opaqueEmpty, func(text string) bool { return strings.TrimSpace(text) == "" }},
	{opaqueEncoding, func(text string) bool { return !utf8.ValidString(text) || strings.ContainsFunc(text, isBreaking) }},
	{opaqueDots, hasDotsSegment},
	{opaqueVariable, isVariable},
	{opaqueDrive, isDrive},
	{opaqueURL, isURL},
	{opaqueShare, func(text string) bool { return strings.HasPrefix(text, `\\`) }},
	{opaqueUser, isUserHome},
	{opaqueRest, beginsAnew},
	{opaqueUnread, isAlternation},
	{opaqueUnread, hasLooseBraces},
	{opaqueUnread, func(text string) bool { return strings.Contains(text, "[.]") || strings.Contains(text, "[.-.]") }}, // a dot to some
	{opaqueMany, hasManyAlternatives},
	{opaqueMany, func(text string) bool { return strings.Count(text, "..") > maxReadings }}, // each is looked up
}

// spellings returns every text that a path may be read as, the path itself
// first, or why one of them is opaque. Guesses are left out for who reads it himself.
func spellings(raw string, guess bool) (texts []string, opaque string) {
	texts = append(make([]string, 0, 4), raw)
	if isPlain(raw) {
		return texts, ""
	}
	var guesses []func(string) []string
	if guess {
		guesses = guessesOf(raw)
	}
	for i := 0; i < len(texts); i++ {
		if opaque = hazardOf(texts[i], guess); opaque != "" {
			return nil, opaque
		}
		for _, rewrite := range rewrites {
			for _, made := range rewrite(texts[i]) {
				texts = appendNew(texts, made)
			}
		}
		texts = guessed(texts, texts[i], guesses)
		if len(texts) > maxReadings || len(texts)*len(raw) > maxReadingBytes {
			return nil, opaqueMany
		}
	}
	// Readers that do half of the rewriting count segments differently, so that
	// a .. which stays inside for one climbs out for another.
	rewritten := func(text string) bool { return path.Clean(text) != path.Clean(raw) }
	if slices.ContainsFunc(texts, hasParent) && slices.ContainsFunc(texts, rewritten) {
		return nil, opaqueParent
	}
	return texts, ""
}

// hazardOf says why no grant can name what a text stands for.
func hazardOf(text string, guess bool) (opaque string) {
	for _, h := range hazards {
		if h.is(text) {
			return h.opaque
		}
	}
	if guess {
		return baitOf(text)
	}
	return ""
}

// isPlain reports whether a path has nothing that any reader rewrites, as most have.
func isPlain(text string) bool {
	if strings.HasPrefix(text, "-") {
		return false
	}
	for i := range len(text) {
		if b := text[i]; !isWord(rune(b)) && strings.IndexByte("/-.", b) < 0 {
			return false
		}
	}
	return !endsInDot(text)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// hasParent reports whether a path has a .. segment.
func hasParent(text string) bool {
	if !strings.Contains(text, "..") {
		return false
	}
	for seg := range strings.SplitSeq(text, "/") {
		if seg == ".." {
			return true
		}
	}
	return false
}

// clean resolves the dot segments, which may bring a ~ or a quote to the front.
func clean(text string) []string {
	if isFileURI(text) { // its slashes say where the host is
		return nil
	}
	return []string{path.Clean(text)}
}

// quotes are those in which somebody writes a path.
const quotes = "\"'`\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b\u00ab\u00bb\u2039\u203a\u300c\u300d\u300e\u300f\u275d\u275e"

// unwrap takes off the spaces and quotes around a path: servers strip what they
// take for a slip of the model.
func unwrap(text string) []string {
	inner := strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(quotes, r) })
	if inner == text {
		return nil
	}
	return []string{inner}
}

// dotsAndSpaces are what Windows takes off the end of a segment.
const dotsAndSpaces = ". "

// stripDots takes the trailing dots and spaces off every segment.
func stripDots(text string) []string {
	if !endsInDot(text) {
		return nil
	}
	segs := strings.Split(text, "/")
	for i, seg := range segs {
		if seg != "." && seg != ".." {
			segs[i] = strings.TrimRight(seg, dotsAndSpaces)
		}
	}
	if made := strings.Join(segs, "/"); made != text {
		return []string{made}
	}
	return nil
}

// endsInDot reports whether some segment ends in a dot or a space.
func endsInDot(text string) bool {
	for i := range len(text) {
		if strings.IndexByte(dotsAndSpaces, text[i]) >= 0 && (i+1 == len(text) || text[i+1] == '/') {
			return true
		}
	}
	return false
}

// hasDotsSegment reports whether a segment has nothing but dots and spaces, and
// is neither "." nor "..": the parent to some, the grandparent to others.
func hasDotsSegment(text string) bool {
	if !endsInDot(text) {
		return false
	}
	for seg := range strings.SplitSeq(text, "/") {
		if seg != "" && seg != "." && seg != ".." && strings.Trim(seg, dotsAndSpaces) == "" {
			return true
		}
	}
	return false
}

// lookalikes are the characters that NFKC, IDNA or a lax reader turns into ones
// that mean something in a path. Those of letters are missing: they make another
// name, never another place.
var lookalikes = [...]struct{ ascii, of string }{
	{".", "\u2024\u3002\ufe12\ufe52\uff61"},
	{"..", "\u2025\ufe30"},
	{"...", "\u2026\ufe19"},
	{"/", "\u2044\u2215\u2571\u27cb\u29f8\u2f03\u3033"},
	{`\`, "\u2216\u2572\u27cd\u29f5\u29f9\ufe68"},
	{"~", "\u02dc\u2053\u223c\u301c"},
	{":", "\u2236\u2a74\ua789\ufe13\ufe55"},
	{"*", "\u204e\u2217\ufe61"},
	{"?", "\u2047\u2048\u2049\ufe16\ufe56"},
	{"[", "\ufe47"},
	{"]", "\ufe48"},
	{"{", "\ufe37\ufe5b"},
	{"}", "\ufe38\ufe5c"},
	{"%", "\u066a\ufe6a"},
	{"$", "\ufe69"},
	{"-", "\ufe63"},
	{"@", "\ufe6b"},
	{"#", "\ufe5f"},
	{"&", "\ufe60"},
	{",", "\ufe10\ufe50\U0001f101\U0001f102\U0001f103\U0001f104\U0001f105\U0001f106\U0001f107\U0001f108\U0001f109\U0001f10a"},
	{";", "\u037e\ufe14\ufe54"},
	{"(", "\ufe59"},
	{"<", "\ufe64"},
	{">", "\ufe65"},
	{"=", "\u207c\u208c\u2a75\u2a76\ufe66"},
	{"`", "\u1fef"},
	{"a/c", "\u2100"},
	{"a/s", "\u2101"},
	{"c/o", "\u2105"},
	{"c/u", "\u2106"},
}

// foldLookalikes writes look-alikes as what they look like, and leaves out what
// nobody sees.
func foldLookalikes(text string) []string {
	if isASCII(text) {
		return nil
	}
	var made strings.Builder
	for _, r := range text {
		made.WriteString(lookalike(r))
	}
	return []string{made.String()}
}

// compose writes the letters of a text with wildcards as what they are to those who compare names in one form.
func compose(text string) []string {
	if !strings.ContainsAny(text, wildcards) {
		return nil
	}
	return []string{composed(text)}
}

// composed writes letters as what Unicode says that they are but for their looks, as ᵉ is e.
func composed(text string) string {
	if isASCII(text) || norm.NFKC.String(text) == norm.NFC.String(text) {
		return text
	}
	return norm.NFKC.String(text)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lookalike(r rune) string {
	const fullwidth, fullwidthEnd, shift = '\uff01', '\uff5e', '\uff01' - '!'
	switch {
	case r < utf8.RuneSelf:
	case r >= fullwidth && r <= fullwidthEnd:
		return string(r - shift)
	case unicode.IsSpace(r):
		return " "
	case unicode.Is(unicode.Cf, r):
		return ""
	default:
		for _, l := range lookalikes {
			if strings.ContainsRune(l.of, r) {
				return l.ascii
			}
		}
	}
	return string(r)
}

// innermost returns where the first group of braces without another inside
// begins and ends; start is negative when there is none.
func innermost(text string) (start, end int) {
	for done := 0; ; {
		end = strings.IndexByte(text[done:], '}')
		if end < 0 {
			return -1, -1
		}
		if start = strings.LastIndexByte(text[done:done+end], '{'); start >= 0 {
			return done + start, done + end
		}
		done += end + 1
	}
}

// alternatives writes out one group of braces.
func alternatives(text string) []string {
	start, end := innermost(text)
	if start < 0 {
		return nil
	}
	list := strings.Split(text[start+1:end], ",")
	for i, one := range list {
		list[i] = text[:start] + one + text[end+1:]
	}
	return list
}

func hasManyAlternatives(text string) bool {
	start, end := innermost(text)
	return start >= 0 && strings.Count(text[start:end], ",") >= maxReadings
}

// isAlternation reports whether a text may stand for several in a way that
// [alternatives] does not write out: {1..9}, (a|b), @(..), or climb as *(.) may.
func isAlternation(text string) bool {
	if start, end := innermost(text); start >= 0 {
		from, to, ok := strings.Cut(text[start+1:end], "..")
		if ok && from != "" && to != "" && !strings.Contains(from+to, ",") {
			return true
		}
	}
	if at := operatorIn(text); at >= 0 && strings.HasPrefix(text[at+1:], "(.") {
		return true
	}
	_, after, ok := strings.Cut(text, "(")
	return ok && (strings.Contains(after, "|") || strings.Contains(text, "(..)") || strings.Contains(text, "(../"))
}

// hasLooseBraces reports whether shells may take a brace of a text with alternatives for a
// letter, as they do where no comma belongs to it: {x},/etc/passwd} is x} and /etc/passwd.
func hasLooseBraces(text string) bool {
	if !strings.Contains(text, ",") || !strings.Contains(text, "{") {
		return false
	}
	var commas []bool // of each group that is open
	for i := range len(text) {
		switch last := len(commas) - 1; {
		case text[i] == '{':
			commas = append(commas, false)
		case text[i] == ',' && last >= 0:
			commas[last] = true
		case text[i] == '}' && (last < 0 || !commas[last]):
			return true
		case text[i] == '}':
			commas = commas[:last]
		case text[i] == '\\' && i+1 < len(text) && strings.IndexByte("{},", text[i+1]) >= 0, text[i] == '"', text[i] == '\'':
			return true
		}
	}
	return false
}

func isLetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

// isWord reports whether a character may stand in a variable's name.
func isWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r < utf8.RuneSelf && isLetter(byte(r))
}

func isDrive(text string) bool { return len(text) > 1 && isLetter(text[0]) && text[1] == ':' }

func isUserHome(text string) bool { return len(text) > 1 && text[0] == '~' && text[1] != '/' }

// cutPathScheme splits a text at the colon of a URI's scheme. The scheme comes in
// lower case.
func cutPathScheme(text string) (scheme, rest string, ok bool) {
	scheme, rest, ok = strings.Cut(text, ":")
	if !ok || scheme == "" || !isLetter(scheme[0]) {
		return "", "", false
	}
	for i := range len(scheme) {
		if b := scheme[i]; !isLetter(b) && (b < '0' || b > '9') && strings.IndexByte("+-.", b) < 0 {
			return "", "", false
		}
	}
	return strings.ToLower(scheme), rest, true
}

// isURL reports whether a text leads away from this machine's files, as far as
// some reader knows: a URL with or without slashes, a file URI of another host.
func isURL(text string) bool {
	scheme, rest, ok := cutPathScheme(text)
	switch {
	case !ok:
		return false
	case scheme == "file":
		host, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
		return strings.HasPrefix(rest, "//") && host != "" && !strings.EqualFold(host, "localhost")
	case slices.Contains([]string{"http", "https", "ws", "wss", "ftp", "data"}, scheme):
		return true // read with any number of slashes, none included
	}
	return strings.HasPrefix(rest, "/") || strings.Contains(rest, ":/")
}

// filePaths returns the paths that a file URI may stand for. One without a slash
// is relative to some readers and absolute to others; what follows ? or # is
// part of the path to some.
func filePaths(text string) []string {
	scheme, place, ok := cutPathScheme(text)
	if !ok || scheme != "file" {
		return nil
	}
	if after, ok := strings.CutPrefix(place, "//"); ok {
		host, _, _ := strings.Cut(after, "/")
		place = after[len(host):]
	}
	beforeQuery, _, _ := strings.Cut(place, "?")
	beforeFragment, _, _ := strings.Cut(place, "#")
	var made []string
	for _, p := range []string{place, beforeQuery, beforeFragment} {
		made = append(made, p, "/"+strings.TrimPrefix(p, "/"))
	}
	return made
}
