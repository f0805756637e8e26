package wire

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// unescape decodes the escape that b begins with and returns its length, which
// is 0 when it is none. A surrogate that is not half of a pair is returned as it
// is; no document that holds one is accepted.
func unescape(b []byte) (r rune, n int) {
	if len(b) < 2 {
		return 0, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return rune(b[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		return unescapeHex(b)
	}
	return 0, 0
}

func unescapeHex(b []byte) (r rune, n int) {
	r, ok := hex4(b[2:])
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(r) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
		low, _ := hex4(b[8:])
		if pair := utf16.DecodeRune(r, low); pair != unicode.ReplacementChar {
			return pair, 12
		}
	}
	return r, 6
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	v0, v1, v2, v3 := hexValues[b[0]], hexValues[b[1]], hexValues[b[2]], hexValues[b[3]]
	return v0<<12 | v1<<8 | v2<<4 | v3, v0|v1|v2|v3 >= 0
}

// hexValues has the value of each hexadecimal digit and -1 for other bytes, so
// that four are checked at once, without a branch for letters and one for digits.
var hexValues = newHexValues()

func newHexValues() (values [256]rune) {
	for c := range values {
		v, err := strconv.ParseUint(string([]byte{byte(c)}), 16, 8)
		if err != nil {
			values[c] = -1
		} else {
			values[c] = rune(v)
		}
	}
	return values
}

// decode returns what the body of an accepted string says.
func decode(body []byte) string {
	var text strings.Builder
	text.Grow(len(body)) // no escape is shorter than what it stands for
	for {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			text.Write(body)
			return text.String()
		}
		r, n := unescape(body[i:])
		text.Write(body[:i])
		text.WriteRune(r)
		body = body[i+n:]
	}
}

// appendDecoded appends what the body of an accepted string says.
func appendDecoded(dst, body []byte) []byte { return append(dst, decode(body)...) }

// says reports whether the body of an accepted string decodes to s.
func says(body []byte, s string) bool {
	for {
		i := bytes.IndexByte(body, '\\')
		if i < 0 {
			return string(body) == s
		}
		if len(s) < i || string(body[:i]) != s[:i] {
			return false
		}
		r, n := unescape(body[i:])
		got, size := utf8.DecodeRuneInString(s[i:])
		if got != r || size != utf8.RuneLen(r) { // the size tells U+FFFD from a bad byte
			return false
		}
		body, s = body[i+n:], s[i+size:]
	}
}

// appendFolded appends what the body of an accepted string says, every character
// replaced by the least that [strings.EqualFold] takes for the same.
func appendFolded(dst, body []byte) []byte {
	for len(body) > 0 {
		c, n := body[0], 1
		switch {
		case 'a' <= c && c <= 'z':
			dst = append(dst, c-'a'+'A')
		case c == '\\':
			var r rune
			r, n = unescape(body)
			dst = utf8.AppendRune(dst, fold(r))
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			var r rune
			r, n = utf8.DecodeRune(body)
			dst = utf8.AppendRune(dst, fold(r))
		}
		body = body[n:]
	}
	return dst
}

func fold(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}
