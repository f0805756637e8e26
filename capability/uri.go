package capability

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// URI is the name of a resource by what servers may take it for. They cut, decode and join such names in
// ways of their own, so that only what all of them read alike is compared with anything. The rest may be any
// resource of its scheme, or lead out of it.
type URI struct {
	Scheme string   // in small letters, "" where there is none
	Places []string // what it is of without its query, in one spelling: to who knows of users, of ports, of both, of none
	odd    string
	astray string

	compared int // how many steps it took to compare it with places
}

// ReadURI reads the name of a resource. What has no scheme is read like what stands behind one.
func ReadURI(text string) *URI {
	scheme, rest, ok := strings.Cut(text, ":")
	if !ok || !isScheme(scheme) {
		scheme, rest = "", text
	}
	u := &URI{Scheme: strings.ToLower(scheme)}
	u.astray = astray(u.Scheme, rest)
	where := unqueried(rest)
	if strings.HasPrefix(rest, "//") {
		u.odd = u.hosted(where[2:])
	} else {
		u.odd = u.opaque(rest)
	}
	u.odd = cmp.Or(u.odd, oddQuery(rest[len(where):]))
	return u
}

// Odd says what of a URI servers read in different ways, "" where all read it alike. It finishes the sentence
// "the URI …".
func (u *URI) Odd() string { return u.odd }

// Astray says how a URI may lead out of whatever it seems to be in, so that no grant is of it. It is a sentence.
func (u *URI) Astray() string { return u.astray }

// Plain reports whether all servers take a URI for the same. What is not may be whatever begins with its scheme.
func (u *URI) Plain() bool { return u.odd == "" && u.astray == "" }

// isScheme reports whether what stands before a colon is the scheme of a URI.
func isScheme(text string) bool {
	return text != "" && isLetter(text[0]) && !strings.ContainsFunc(text, func(r rune) bool { return isNotIDRune(r) && r != '+' || r == '_' })
}

// unqueried is a URI up to its query or fragment.
func unqueried(rest string) string {
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		return rest[:i]
	}
	return rest
}

// hosted finds what a URI is of that has a host, and says what makes that odd.
func (u *URI) hosted(below string) string {
	if below = strings.TrimPrefix(below, "/"); below == "" {
		u.Places = []string{u.spell("")}
		return ""
	}
	host, path, deep := strings.Cut(below, "/")
	name := host[strings.LastIndexByte(host, '@')+1:]
	bare := unported(name)
	user := strings.TrimSuffix(host, name)
	odd := u.oddHost(strings.TrimSuffix(user, "@"), bare, user != "")
	if u.Scheme == "http" && !strings.HasSuffix(name, ":80") || u.Scheme == "https" && !strings.HasSuffix(name, ":443") {
		bare = name // where another port is another server
	}
	for _, host := range slices.Compact([]string{host, name, user + bare, bare}) { // most have one
		if u.Scheme == "file" && strings.EqualFold(host, "localhost") {
			host = ""
		}
		u.Places = appendNew(u.Places, u.spell(host+"/"+path))
	}
	if odd == "" && deep { // servers escape the slashes of names that hold some, as group%2Fproject
		odd = oddPath(strings.ReplaceAll(strings.ReplaceAll(path, "%2F", "/"), "%2f", "/"), inName)
	}
	return odd
}

// opaque finds the same where nothing says that a host is meant. Some cut off as much as the scheme is long with its
// slashes, whatever stands there, and some look at what stands between the first two colons, or behind the last one.
func (u *URI) opaque(rest string) string {
	where := unqueried(rest)
	u.Places = []string{u.spell(where)}
	if u.Scheme != "" {
		between, _, _ := strings.Cut(unescaped(where), ":")
		for _, at := range []string{unqueried(rest[min(2, len(rest)):]), between, where[strings.LastIndexByte(where, ':')+1:]} {
			u.Places = appendNew(u.Places, u.spell(at))
		}
	}
	switch {
	case isBrowsed(u.Scheme):
		return oddHostname
	case !strings.Contains(where, "/"):
		return oddPath(where, inName+":") // as names of books are, urn:isbn:1
	}
	return oddPath(strings.TrimPrefix(where, "/"), inName)
}

func (u *URI) spell(where string) string {
	return u.Scheme + ":/" + strings.Trim(oneSpelling(unescaped(where)), "/")
}

// unported cuts the port off a host.
func unported(host string) string {
	name := strings.TrimRight(host, "0123456789")
	if port := len(host) - len(name); port == 0 || port > len("65535") || !strings.HasSuffix(name, ":") {
		return host
	}
	return name[:len(name)-1]
}

const (
	oddLetters  = "holds a character that not all servers take for itself"
	oddEscape   = "escapes what need not be escaped, or does so twice"
	oddEnd      = "has a segment that is empty, or ends or begins with what some servers leave out"
	oddHostname = "has a host that not all servers find in it"
	oddQueries  = "has a query that not all servers take apart in one way"
)

// Nobody takes these for anything but themselves.
const (
	marks     = "-._"
	inName    = marks + "!&'()+,= "
	inValue   = marks + "!'()+,: /"
	inBrowsed = "-."
)

// oddHost looks at what stands before a path: the name of a host, or what takes its place, and a user.
func (u *URI) oddHost(user, name string, hasUser bool) string {
	isOther := func(r rune) bool { return r >= utf8.RuneSelf || !isAmong(r, inBrowsed) }
	if hasUser && oddText(user, inName) != "" || oddText(name, inName) != "" || isBrowsed(u.Scheme) && (strings.ContainsFunc(name, isOther) || isNumber(name)) {
		return oddHostname
	}
	return ""
}

// isNumber reports whether a host is an address to browsers, and not written as all write one.
func isNumber(host string) bool {
	last := host[strings.LastIndexByte(host, '.')+1:]
	_, err := netip.ParseAddr(host)
	return err != nil && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(strings.ToLower(last), "0x"))
}

// isBrowsed reports whether browsers and their like know hosts of a scheme: to them, wide letters are narrow ones.
func isBrowsed(scheme string) bool {
	return slices.Contains([]string{"http", "https", "ws", "wss", "ftp"}, scheme)
}

// oddPath looks at the segments of a path, of which the last may be empty.
func oddPath(path, also string) string {
	segs := strings.Split(path, "/")
	if last := len(segs) - 1; segs[last] == "" {
		segs = segs[:last]
	}
	for _, seg := range segs {
		if odd := oddText(seg, also); odd != "" {
			return odd
		}
	}
	return ""
}

// oddQuery looks at a query and a fragment. None of its parameters may be there twice, as the first or the last one
// may be taken.
func oddQuery(query string) string {
	query, fragment, _ := strings.Cut(query, "#")
	if fragment != "" && oddValue(fragment) {
		return oddQueries
	}
	query = strings.TrimPrefix(query, "?")
	if query == "" {
		return ""
	}
	seen := map[string]bool{}
	for one := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(one, "=")
		plain := unescaped(name)
		known := strings.Map(func(r rune) rune { // as PHP does
			if strings.ContainsRune(". +", r) {
				return '_'
			}
			return r
		}, oneSpelling(plain))
		if seen[known] || oddText(name, inName) != "" || strings.ContainsAny(plain, "!&=") || value != "" && oddValue(value) {
			return oddQueries
		}
		seen[known] = true
	}
	return ""
}

// oddValue reports whether a value may become another one, or more.
func oddValue(value string) bool {
	text := unescaped(value)
	return strings.Contains(strings.ReplaceAll(text, ",", "/"), "//") || !utf8.ValidString(text) || strings.Contains(text, "%") || strings.ContainsFunc(text, func(r rune) bool { return !isAmong(r, inValue) })
}

// oddText looks at one name: what it holds, also in escapes, and what it begins and ends with. Dots that it begins with
// are a name of their own to a template such as {a}-{b}.
func oddText(text, also string) string {
	plain := unescaped(text)
	switch {
	case plain != text && (strings.Contains(plain, "%") || oddlyEscaped(text)), !utf8.ValidString(plain):
		return oddEscape
	case strings.ContainsFunc(plain, func(r rune) bool { return !isAmong(r, also) }) || !norm.NFKC.IsNormalString(plain):
		return oddLetters
	case strings.Trim(plain, " ") != plain || strings.Trim(plain, "+ ") == "" || plain[0] == ':' || plain[len(plain)-1] == '.',
		strings.Contains(","+plain+",", ",,"), strings.HasPrefix(ofASCII(plain), ".."):
		return oddEnd
	}
	return ""
}

// ofASCII is what is left of a name to whoever leaves out all but plain letters, digits and dots.
func ofASCII(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= utf8.RuneSelf || !isAmong(r, ".") {
			return -1
		}
		return r
	}, text)
}

// oddlyEscaped reports whether a letter, a digit or a mark is escaped, which none need be.
func oddlyEscaped(text string) bool {
	for rest := text; rest != ""; rest = rest[1:] {
		if c, ok := hexDigits(rest, "%", 2); ok && c < utf8.RuneSelf && isAmong(rune(c), marks+":") {
			return true
		}
	}
	return false
}

// isAmong reports whether a character is a letter, a digit or one of some others.
func isAmong(r rune, others string) bool {
	if r < utf8.RuneSelf {
		return isLetter(byte(r)) || r >= '0' && r <= '9' || strings.ContainsRune(others, r)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}

// oneSpelling writes alike what some server does: with small letters, without accents, with plain digits, with a
// blank for a plus, and without the dots and blanks that a segment ends with.
func oneSpelling(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '+':
			return ' '
		case unicode.Is(unicode.M, r):
			return -1
		case unicode.Is(unicode.Nd, r) && r >= utf8.RuneSelf:
			return digit(r)
		}
		return r
	}, norm.NFKD.String(strings.ToLower(strings.ToUpper(norm.NFKD.String(text)))))
	segs := strings.Split(text, "/")
	for i, seg := range segs {
		segs[i] = strings.TrimLeft(strings.TrimRight(seg, ". "), " ")
	}
	return strings.Join(segs, "/")
}

// digit is a digit of whatever script in plain ones, of each of which there are ten in a row.
func digit(r rune) rune {
	for zero := r; ; zero-- {
		if !unicode.Is(unicode.Nd, zero-1) {
			return '0' + (r-zero)%10
		}
	}
}

// unescaped decodes once what is escaped, and leaves alone what only looks like it.
func unescaped(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var plain []byte
	for text != "" {
		if c, ok := hexDigits(text, "%", 2); ok {
			plain, text = append(plain, byte(c)), text[3:]
			continue
		}
		plain, text = append(plain, text[0]), text[1:]
	}
	return string(plain)
}

// decodings is how often a URI is decoded: readers do so one behind the other.
const decodings = 4

// astray says how a URI may lead elsewhere, decoded as often as readers do. A query may hold what stands for a
// separator.
func astray(scheme, rest string) string {
	where := unqueried(rest)
	for range decodings + 1 {
		rest, where = strings.ToLower(rest), strings.ToLower(where)
		for _, hidden := range []string{`\`, "%2e", "%5c", "%00"} {
			if strings.Contains(where, hidden) {
				return "the URI hides a separator or a dot"
			}
		}
		if hidesSlash(where) {
			return "the URI hides a separator that a name begins or ends with"
		}
		if holdsURI(strings.TrimPrefix(scheme+":"+rest, ":")) {
			return "the URI stands for another one that it holds, which some servers open instead"
		}
		if scheme != "" && strings.Contains(rest, scheme+"://") {
			return "the URI holds its own scheme once more, which some servers take out wherever it stands"
		}
		if hasDots(rest) {
			return "the URI holds . or .. as a segment"
		}
		plain := unescaped(rest)
		if plain == rest {
			return ""
		}
		rest, where = plain, unescaped(where)
	}
	return "the URI is escaped too often"
}

// hidesSlash reports whether an escaped slash stands where a name may begin or end, also to a template such as {a}-{b}:
// what begins with one starts at the root to some.
func hidesSlash(where string) bool {
	for seg := range strings.SplitSeq(where, "/") {
		names := strings.Split(strings.ReplaceAll(unescaped(seg), "://", "-"), "/") // a URL in a URI is odd, and no more than that
		for i, name := range names[1:] {
			last, _ := utf8.DecodeLastRuneInString(names[i])
			first, _ := utf8.DecodeRuneInString(name)
			if !isAmong(last, "") || !isAmong(first, "") {
				return true
			}
		}
	}
	return false
}

// hasDots reports whether some segment moves, or an item of a list; of a query as well, as some take all of it for a
// path.
func hasDots(rest string) bool {
	shown := strings.Map(func(r rune) rune { // as parsers of URLs leave out tabs
		if r < ' ' {
			return -1
		}
		return r
	}, rest)
	for seg := range strings.SplitSeq(strings.NewReplacer(`\`, "/", ",", "/").Replace(shown), "/") {
		if i := strings.IndexAny(seg, "?#;:"); i >= 0 {
			seg = seg[:i]
		}
		if moves(seg) {
			return true
		}
	}
	return false
}

// moves reports whether a segment is . or .. to whoever leaves out accents and marks.
func moves(seg string) bool {
	words := strings.FieldsFunc(seg, func(r rune) bool { return r != '.' && !isAmong(r, "") || unicode.Is(unicode.M, r) })
	all := strings.Join(words, "")
	return all == "." || all == ".."
}
