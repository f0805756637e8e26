package proxy

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"capgate/guardrail"
)

// hiddenIn returns the first character that a person who looks at the text does
// not see, or that makes the rest of it look otherwise.
func hiddenIn(text []byte) (hidden rune, found bool) {
	var prev rune
	for i := 0; i < len(text); {
		c, size := rune(text[i]), 1
		if c >= utf8.RuneSelf {
			c, size = utf8.DecodeRune(text[i:])
		}
		i += size
		if (c < ' ' || c >= 0x7f) && !isSeen(prev, c, text[i:]) {
			return c, true
		}
		prev = c
	}
	return 0, false
}

// isSeen reports whether a character that is not printable ASCII shows, between
// what stands before and behind it.
func isSeen(prev, c rune, rest []byte) bool {
	switch c {
	case '\n', '\t':
		return true
	case '\r': // alone, a terminal writes over the line
		return len(rest) > 0 && rest[0] == '\n'
	case joiner:
		next, _ := utf8.DecodeRune(rest)
		return (isPicture(prev) || prev == asPicture) && isPicture(next)
	case asText, asPicture:
		return isPicture(prev) || strings.ContainsRune("0123456789#*‼⁉〰〽", prev)
	}
	return !guardrail.Unseen(c)
}

// What emoji are put together with. Anywhere else it carries text that nobody
// sees, and so does what is not needed for an emoji.
const (
	joiner    = '\u200d'
	asText    = '\ufe0e'
	asPicture = '\ufe0f'
)

func isPicture(c rune) bool {
	return c >= utf8.RuneSelf && c != utf8.RuneError && unicode.Is(unicode.S, c)
}
