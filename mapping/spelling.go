package mapping

import (
	"iter"
	slashes "path"
	"strconv"
	"strings"
)

// meets reports whether an entry is of a URI that is spelt plainly, if its own is as well.
func (res *resource) meets(as spelt) bool {
	own := res.plain
	if own.place == "" {
		return false
	}
	if !res.prefix {
		return own.place == as.place && (own.query == "" || own.query == as.query)
	}
	if own.query != "" {
		return own.place == as.place && strings.HasPrefix(as.query, own.query)
	}
	if strings.HasSuffix(res.uri, "/") {
		own.place += "/"
	}
	return strings.HasPrefix(as.place+"/", own.place)
}

// Among goes through the entries of resources that begin like a text and are not what all of them
// are that do: their URIs, with what may stand below where there is more.
func (m *Mapping) Among(begin, below string) iter.Seq[string] {
	as := plainly(begin)
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
	place string // the scheme, the host and the path
	query string // with the fragment
}

// decodings is how often a URI is decoded: readers do so one behind the other.
const decodings = 4

// plainly takes out of a URI what readers differ in: case, escapes, slashes, dots, a user, and
// a host or port that need not be written.
func plainly(uri string) spelt {
	scheme, rest, _ := strings.Cut(strings.ToLower(uri), ":")
	for range decodings {
		rest = strings.ToLower(unescape(rest))
	}
	at := len(rest)
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		at = i
	}
	where, query := strings.ReplaceAll(rest[:at], `\`, "/"), rest[at:]
	authority, ok := strings.CutPrefix(where, "//")
	if host, below, _ := strings.Cut(authority, "/"); ok {
		host = host[strings.LastIndexByte(host, '@')+1:]
		if i := strings.LastIndexByte(host, ':'); i >= 0 && usual(scheme, host[i+1:]) {
			host = host[:i]
		}
		if scheme == "file" && host == "localhost" {
			host = ""
		}
		where = host + "/" + below
	}
	return spelt{scheme + ":" + slashes.Clean("/"+where), query}
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
