package mapping

import (
	"iter"
	slashes "path"
	"slices"
	"strconv"
	"strings"
)

// meets reports whether an entry is of a URI that is spelt plainly, if its own is as well.
func (res *resource) meets(as spelt) bool {
	return res.at(as.place, as.query) || res.at(as.portless, as.query)
}

func (res *resource) at(place, query string) bool {
	own := res.plain
	if own.place == "" {
		return false
	}
	if !res.prefix {
		return own.place == place && (own.query == "" || own.query == query)
	}
	if own.query != "" {
		return own.place == place && strings.HasPrefix(query, own.query)
	}
	below, ok := strings.CutPrefix(place, strings.TrimSuffix(own.place, "/"))
	return ok && (below == "" || below[0] == '/' || !strings.HasSuffix(res.uri, "/"))
}

// misses reports whether an entry that a URI is written like is not of it to some reader: one of
// a://team-* is not of a://team-x@b to who knows of users.
func (res *resource) misses(as spelt) bool { return !res.meets(as) }

// isWhole reports whether what is written like an entry can be nothing else: it is of one URI, or of all
// that a scheme has.
func (res *resource) isWhole() bool {
	return !res.prefix || res.plain.place == "" || strings.HasSuffix(res.plain.place, ":/")
}

// Among goes through the entries of resources that begin like a text and are not what all of them
// are that do: their URIs, with what may stand below where there is more.
func (m *Mapping) Among(begin, below string) iter.Seq[string] {
	as := spellings(begin)[0]
	place := as.place
	if !strings.HasSuffix(place, "/") && (as.query != "" || strings.HasSuffix(begin, "/")) {
		place += "/"
	}
	return func(yield func(string) bool) {
		if m == nil {
			return
		}
		for _, res := range m.resources {
			within := strings.HasPrefix(res.plain.place+"/", place) && !res.meets(as)
			if !within && (strings.Contains(begin, ":") || !strings.HasPrefix(res.uri, strings.ToLower(begin))) {
				continue
			}
			uri := res.uri
			if folder, ok := strings.CutSuffix(uri, "/"); ok && !yield(folder) { // which may be meant as well
				return
			}
			if res.prefix {
				uri += below
			}
			if !yield(uri) {
				return
			}
		}
	}
}

// spelt is a URI in the one spelling that stands for all that some reader takes for it.
type spelt struct {
	place    string // the scheme, the host and the path
	portless string // the same without a port, of which many look at nothing
	query    string // with the fragment
}

// decodings is how often a URI is decoded: readers do so one behind the other.
const decodings = 4

// spellings are what readers take a URI for, by how often they decode it before they take it apart, by
// what they leave out of it then, and by where they look for its parts. The first is by who decodes nothing,
// leaves out nothing and knows of queries.
func spellings(uri string) (all []spelt) {
	scheme, rest, _ := strings.Cut(strings.ToLower(uri), ":")
	for range decodings + 1 {
		all = appendSpellings(all, scheme, rest)
		less := []string{
			strings.ReplaceAll(rest, scheme+"://", ""), // wherever it stands
			shown(rest),
			strings.ReplaceAll(rest, `\`, "_"), // which is no separator to some
			"//" + rest[min(2, len(rest)):],    // by who cuts off as much, whatever it is
		}
		for _, other := range less {
			if other != rest {
				all = appendSpellings(all, scheme, other)
			}
		}
		decoded := strings.ToLower(unescape(rest))
		if decoded == rest {
			break
		}
		rest = decoded
	}
	return all
}

// appendSpellings adds what a URI is to who knows of queries, and what it is to others: to who knows of
// parameters, or takes a query for a path, or looks at what stands behind another :// or an empty segment, or
// resolves dots before it decodes, or below the host.
func appendSpellings(all []spelt, scheme, rest string) []spelt {
	at := len(rest)
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		at = i
	}
	path, query := rest[:at], rest[at:]
	all = append(all, plainly(scheme, path, query))
	if strings.Contains(path, ";") {
		all = append(all, plainly(scheme, unparametered(path), query))
	}
	if strings.Contains(query, "/.") {
		all = append(all, plainly(scheme, rest, ""))
	}
	if between, ok := betweenMarks(rest); ok {
		all = append(all, plainly(scheme, "//"+between, ""))
	}
	for _, root := range roots(rest) {
		where, _, _ := strings.Cut(root, "?")
		where, _, _ = strings.Cut(where, "#")
		all = append(all, plainly(scheme, where, ""), plainly(scheme, root, ""))
	}
	if strings.Contains(path, "..") {
		where := strings.TrimPrefix(path, "//")
		host, below, _ := strings.Cut(strings.ReplaceAll(where, `\`, "/"), "/")
		for _, moved := range []string{slashes.Clean("/" + where), host + slashes.Clean("/"+below), host + "/" + resolved(below)} {
			all = append(all, plainly(scheme, "//"+strings.TrimPrefix(moved, "/"), ""))
		}
	}
	return all
}

// resolved is a path without its dots, as browsers leave them out: what they take away may be an empty segment.
func resolved(path string) string {
	var segs []string
	for seg := range strings.SplitSeq(path, "/") {
		switch {
		case seg == "..":
			segs = segs[:max(0, len(segs)-1)]
		case seg != ".":
			segs = append(segs, seg)
		}
	}
	return strings.Join(segs, "/")
}

// unparametered is a path without what stands behind a semicolon in its segments.
func unparametered(path string) string {
	segs := strings.Split(path, "/")
	for i, seg := range segs {
		segs[i], _, _ = strings.Cut(seg, ";")
	}
	return strings.Join(segs, "/")
}

// readings are what servers may take for what follows the scheme of a URI: all of it, or what starts at the
// root, each also with only the first or only the last of what its query says twice.
func readings(rest string) []string {
	all := append(roots(rest), rest)
	slices.Reverse(all)
	for _, rest := range all {
		place, query, _ := strings.Cut(rest, "?")
		query, _, _ = strings.Cut(query, "#")
		given := strings.Split(query, "&")
		first := unique(given)
		if len(first) == len(given) {
			break
		}
		slices.Reverse(given)
		last := unique(given)
		slices.Reverse(last)
		for _, given := range [][]string{first, last} {
			all = append(all, place+"?"+strings.Join(given, "&")+rest[len(place)+1+len(query):])
		}
	}
	return all
}

// unique leaves out what is given once more by the name it has before.
func unique(given []string) (once []string) {
	seen := map[string]bool{}
	for _, one := range given {
		name, _, _ := strings.Cut(one, "=")
		if name = strings.ReplaceAll(decoded(name), "+", " "); !seen[name] {
			once = append(once, one)
		}
		seen[name] = true
	}
	return once
}

// roots returns what stands behind the empty segments of a URI, its query included, each without a scheme: a
// server that has cut off what is before, and joins the rest to a folder of its own, starts there at the
// root. Behind a colon it is the mark of a scheme. It stops at one more than there may be.
func roots(rest string) (all []string) {
	path := strings.TrimLeft(rest, "/")
	for begin := 0; len(all) <= mostEmpty; {
		at := strings.Index(path[begin:], "//")
		if at < 0 {
			break
		}
		at += begin
		begin = len(path) - len(strings.TrimLeft(path[at:], "/"))
		if path[at-1] != ':' {
			all = append(all, "///"+path[begin:])
		}
	}
	return all
}

// betweenMarks returns what stands between the first :// of a URI and the next, unless that is all of
// it; it comes without its scheme and colon.
func betweenMarks(rest string) (between string, ok bool) {
	_, after, ok := strings.Cut(":"+rest, "://")
	between, _, more := strings.Cut(after, "://")
	return between, ok && (more || !strings.HasPrefix(rest, "//"))
}

// plainly takes out of a URI what readers differ in: case, escapes, slashes, dots, a user, and
// a host or port that need not be written.
func plainly(scheme, where, query string) spelt {
	where = strings.ReplaceAll(where, `\`, "/")
	authority, ok := strings.CutPrefix(where, "//")
	if !ok {
		place := placed(scheme, where)
		return spelt{place, place, decoded(query)}
	}
	host, below, _ := strings.Cut(authority, "/")
	host = host[strings.LastIndexByte(host, '@')+1:]
	bare, port := cutPort(host)
	if usual(scheme, port) {
		host = bare
	}
	name, _, _ := strings.Cut(host, ":") // whatever stands behind it
	if inner, ok := strings.CutPrefix(host, "["); ok {
		name, _, _ = strings.Cut(inner, "]")
	}
	if scheme == "https" || scheme == "http" { // where another port is another server
		name = host
	}
	if scheme == "file" && name == "localhost" {
		host, name = "", ""
	}
	if below != "" {
		below = "/" + below
	}
	return spelt{placed(scheme, host+below), placed(scheme, name+below), decoded(query)}
}

// placed cleans where something is. To some a plus is a blank, and a blank at the end is nothing.
func placed(scheme, where string) string {
	place := slashes.Clean("/" + strings.ReplaceAll(decoded(where), `\`, "/"))
	return scheme + ":" + strings.TrimRight(strings.ReplaceAll(place, "+", " "), " ")
}

// shown is a text without what parsers of URLs leave out, such as a tab.
func shown(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' {
			return -1
		}
		return c
	}, text)
}

// decoded is a text that is decoded as often as readers do.
func decoded(text string) string {
	for range decodings {
		text = strings.ToLower(unescape(text))
	}
	return text
}

// cutPort cuts a host from its port, which is "" where there is none.
func cutPort(host string) (name, port string) {
	name = strings.TrimRight(host, "0123456789")
	port = host[len(name):]
	if name, ok := strings.CutSuffix(name, ":"); ok {
		return name, port
	}
	return host, ""
}

// usual reports whether a port goes without saying.
func usual(scheme, port string) bool {
	port = strings.TrimLeft(port, "0")
	return port == "" || scheme == "https" && port == "443" || scheme == "http" && port == "80"
}

// unescape decodes what is escaped, and leaves alone what only looks like it.
func unescape(text string) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var plain []byte
	for text != "" {
		if text[0] == '%' && len(text) >= 3 {
			if c, err := strconv.ParseUint(text[1:3], 16, 8); err == nil {
				plain, text = append(plain, byte(c)), text[3:]
				continue
			}
		}
		plain, text = append(plain, text[0]), text[1:]
	}
	return string(plain)
}
