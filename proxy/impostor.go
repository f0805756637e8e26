package proxy

import (
	"strings"
	"unicode"
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
		case n > 0 && (c == '-' || c == '_' || c == '\u2010' || c == '\u2011'): // may stand between
		case n > 0 && unicode.Is(unicode.Mn, c): // stands on the letter before
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
	}
	for _, set := range alphabets() {
		if set.first <= c && c <= set.last {
			return 'a' + byte((c-set.first)%26)
		}
	}
	for _, alike := range lookalikes() {
		if strings.ContainsRune(alike, c) {
			return alike[0]
		}
	}
	return 0
}

// lookalikes are letters of other scripts behind the one that each is read as: Cyrillic,
// Greek, Armenian, phonetic and its small capitals, Roman numerals.
func lookalikes() [6]string {
	return [...]string{
		"a\u0430\u0410\u03B1\u0391\u0251\u1D00",
		"c\u0441\u0421\u03F2\u03F9\u217D\u216D\u1D04",
		"e\u0435\u0415\u0395\u04BD\u1D07",
		"g\u0261\u0581\u050C\u0262",
		"p\u0440\u0420\u03C1\u03A1\u1D18",
		"t\u0442\u0422\u03C4\u03A4\u1D1B",
	}
}

// alphabet is the letters of the alphabet, once or more often, as they stand in Unicode.
type alphabet struct{ first, last rune }

// alphabets are the wide letters, those in circles, and the mathematical ones: thirteen
// alphabets, capitals and small ones.
func alphabets() [4]alphabet {
	return [...]alphabet{{'\uFF21', '\uFF3A'}, {'\uFF41', '\uFF5A'}, {'\u24B6', '\u24E9'}, {'\U0001D400', '\U0001D6A3'}}
}
