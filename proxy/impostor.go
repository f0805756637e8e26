package proxy

import (
	"strings"
	"unicode/utf8"
)

// ownName is what no text of a server's may say: what stands in a definition behind the
// name of the gateway reads as if the gateway had said it.
const ownName = "capgate"

// isImpostor reports whether a text has the name of the gateway in it, also in letters
// that only look like it.
func isImpostor(text []byte) bool {
	n := 0
	for i := 0; i < len(text) && n < len(ownName); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(text[i:])
		}
		i += size
		switch letter := looksLike(c); {
		case letter == ownName[n]:
			n++
		case letter == ownName[0]: // which stands in the name once
			n = 1
		case n > 0 && (c == '-' || c == '_'): // may stand between
		default:
			n = 0
		}
	}
	return n == len(ownName)
}

// looksLike returns the small letter that a character is read as, 0 for none of those
// in the gateway's name.
func looksLike(c rune) byte {
	switch {
	case 'a' <= c && c <= 'z':
		return byte(c)
	case 'A' <= c && c <= 'Z':
		return lower(byte(c))
	case c < utf8.RuneSelf:
		return 0
	case '\uFF41' <= c && c <= '\uFF5A':
		return byte(c-'\uFF41') + 'a'
	case '\uFF21' <= c && c <= '\uFF3A':
		return byte(c-'\uFF21') + 'a'
	case mathFirst <= c && c <= mathLast:
		return "abcdefghijklmnopqrstuvwxyz"[(c-mathFirst)%26]
	}
	for _, alike := range lookalikes() {
		if strings.ContainsRune(alike, c) {
			return alike[0]
		}
	}
	return 0
}

// lookalikes are letters of other scripts behind the one that each is read as: Cyrillic,
// Greek, Armenian, phonetic, Roman numerals.
func lookalikes() [6]string {
	return [...]string{
		"a\u0430\u0410\u03B1\u0391\u0251",
		"c\u0441\u0421\u03F2\u03F9\u217D\u216D",
		"e\u0435\u0415\u0395\u04BD",
		"g\u0261\u0581\u050C",
		"p\u0440\u0420\u03C1\u03A1",
		"t\u0442\u0422\u03C4\u03A4",
	}
}

// The mathematical letters come as thirteen alphabets, capitals and small ones.
const (
	mathFirst = '\U0001D400'
	mathLast  = '\U0001D6A3'
)
