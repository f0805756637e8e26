package door

import (
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

const (
	maxHead    = 8 << 10 // bytes of a head
	maxLines   = 64      // headers
	firstStart = "POST "
	firstEnd   = " HTTP/1.1"
)

// plain reads a head, without the empty line behind it, if nothing in it says anything
// about how the message is to be read but its length. Else it returns nil.
func plain(head, path string) *http.Request {
	first, rest, _ := strings.Cut(head, "\r\n")
	if target, ok := strings.CutPrefix(first, firstStart); !ok || target != path+firstEnd {
		return nil
	}
	lines := strings.Count(rest, "\n") + 1
	if lines > maxLines {
		return nil
	}
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: path}, RequestURI: path,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: make(http.Header, lines-1),
	}
	values := make([]string, lines)
	for i := range values {
		line, after, more := strings.Cut(rest, "\r")
		var ended bool
		if rest, ended = strings.CutPrefix(after, "\n"); more != ended {
			return nil
		}
		name, value, ok := strings.Cut(line, ":")
		key := canonical(name)
		if value = trim(value); !ok || key == "" || !isValue(value) || !frames(r, key, value) {
			return nil
		}
		if key == "Host" { // which is in the request, as in those of net/http
			continue
		}
		if before := r.Header[key]; before != nil {
			r.Header[key] = append(before, value)
			continue
		}
		values[i] = value
		r.Header[key] = values[i : i+1 : i+1]
	}
	if r.Host == "" || r.ContentLength == 0 {
		return nil
	}
	return r
}

// frames reads a header that says whose a message is and how long, and reports whether
// the request is still plain.
func frames(r *http.Request, key, value string) bool {
	switch key {
	case "Host":
		if r.Host != "" || !isHost(value) {
			return false
		}
		r.Host = value
	case "Content-Length":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || n == 0 || r.ContentLength != 0 || value[0] < '1' || value[0] > '9' {
			return false
		}
		r.ContentLength = int64(n)
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Transfer-Encoding", "Te", "Trailer", "Expect", "Upgrade", "Proxy-Connection", "Keep-Alive", "Pragma", "Http2-Settings":
		return false
	}
	return true
}

// trim takes off the blanks and tabs around a value.
func trim(value string) string {
	for value != "" && (value[0] == ' ' || value[0] == '\t') {
		value = value[1:]
	}
	for n := len(value); n > 0 && (value[n-1] == ' ' || value[n-1] == '\t'); n-- {
		value = value[:n-1]
	}
	return value
}

// canonical writes a header's name as net/http does, "" if it is no token.
func canonical(name string) string {
	is, starts := true, true
	for i := range len(name) {
		c := name[i]
		if !isLetterOrDigit(c) && c != '-' && strings.IndexByte("!#$%&'*+.^_`|~", c) < 0 {
			return ""
		}
		is = is && (starts && c-'a' >= 26 || !starts && c-'A' >= 26)
		starts = c == '-'
	}
	if is {
		return name
	}
	return textproto.CanonicalMIMEHeaderKey(name)
}

// isValue reports whether a header's value is visible ASCII, blanks and tabs.
func isValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	return true
}

// isHost reports whether a text is a name or an address, with or without a port.
func isHost(host string) bool {
	for i := range len(host) {
		if !isLetterOrDigit(host[i]) && strings.IndexByte(".-_:[]", host[i]) < 0 {
			return false
		}
	}
	return host != ""
}

func isLetterOrDigit(c byte) bool {
	return c-'0' < 10 || c|' '-'a' < 26
}
