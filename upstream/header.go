package upstream

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// The names of the headers of the protocol, as net/http writes them.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerResume  = "Last-Event-Id"
)

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="

	// maxHeaderValue is how long a header's value gets: servers accept some
	// 8 KB of headers, if nothing else is set.
	maxHeaderValue = 4 << 10
)

// EncodeHeader writes a text as the value of an Mcp-Name or Mcp-Param header: as
// it is when every receiver reads it as that, and in base64 otherwise. There are
// receivers that take an empty header for none.
func EncodeHeader(text string) string {
	if text != "" && isPlainHeader(text) && !looksEncoded(text) {
		return text
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(text)) + encodedSuffix
}

// DecodeHeader reads what EncodeHeader writes. A value that no client may send is
// not ok.
func DecodeHeader(value string) (text string, ok bool) {
	if !isPlainHeader(value) {
		return "", false
	}
	if !looksEncoded(value) {
		return value, true
	}
	body, ok := strings.CutSuffix(strings.TrimPrefix(value, encodedPrefix), encodedSuffix)
	if !ok {
		return "", false // the marks overlap
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(body)
	if err != nil || !utf8.Valid(decoded) {
		return "", false
	}
	return string(decoded), true
}

func looksEncoded(text string) bool {
	return strings.HasPrefix(text, encodedPrefix) && strings.HasSuffix(text, encodedSuffix)
}

// isPlainHeader reports whether a text is visible ASCII, with spaces only inside.
func isPlainHeader(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return text == "" || text[0] != ' ' && text[len(text)-1] != ' '
}

// isToken reports whether a text can be the name of a header, or a part of one.
func isToken(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isAlphanumeric(c) && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return text != ""
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
