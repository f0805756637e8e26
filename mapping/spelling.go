package mapping

import (
	"iter"
	slashes "path"
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

// spellings are what readers take a URI for, by how often they decode it before they take it apart,
// whether they know of queries, and whether they look at what stands behind another ://. The first is
// by who decodes nothing, and knows of queries.
func spellings(uri string) (all []spelt) {
	scheme, rest, _ := strings.Cut(strings.ToLower(uri), ":")
	for range decodings + 1 {
		at := len(rest)
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			at = i
		}
		all = append(all, plainly(scheme, rest[:at], rest[at:]))
		if strings.Contains(rest[at:], "/.") { // which leads out of it
			all = append(all, plainly(scheme, rest, ""))
		}
		if between, ok := betweenMarks(rest); ok {
			all = append(all, plainly(scheme, "//"+between, ""))
		}
		decoded := strings.ToLower(unescape(rest))
		if decoded == rest {
			break
		}
		rest = decoded
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
	name, port := cutPort(host)
	if usual(scheme, port) {
		host = name
	}
	if scheme == "https" || scheme == "http" { // where another port is another server
		name = host
	}
	if scheme == "file" && name == "localhost" {
		host, name = "", ""
	}
	return spelt{placed(scheme, host+"/"+below), placed(scheme, name+"/"+below), decoded(query)}
}

func placed(scheme, where string) string {
	return scheme + ":" + slashes.Clean("/"+strings.ReplaceAll(decoded(where), `\`, "/"))
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
