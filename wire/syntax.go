package wire

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxEcho is how many bytes of the input an error repeats at most.
const maxEcho = 40

// SyntaxError says why a document was refused, and where.
type SyntaxError struct {
	// Offset is the byte at which the document was found wrong.
	Offset int
	// Text says what is wrong there. It repeats at most a few bytes of the
	// document, with control characters escaped.
	Text string
}

// Error returns the sentence: duplicate key "path" at byte 12.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.Text, e.Offset)
}

func syntaxError(offset int, format string, args ...any) error {
	return &SyntaxError{Offset: offset, Text: fmt.Sprintf(format, args...)}
}

// unexpected reports what stands at pos instead of what was due there.
func unexpected(data []byte, pos int, due string) error {
	if pos >= len(data) {
		return syntaxError(pos, "the document ends where %s was due", due)
	}
	if c := data[pos]; c > ' ' && c < utf8.RuneSelf {
		return syntaxError(pos, "unexpected %q where %s was due", c, due)
	}
	return syntaxError(pos, "unexpected byte 0x%02x where %s was due", data[pos], due)
}

// quote returns text in quotes, cut to [maxEcho] bytes. All but ASCII is escaped:
// characters that look like others are what an error here is often about.
func quote(text string) string {
	if len(text) <= maxEcho {
		return strconv.QuoteToASCII(text)
	}
	cut := maxEcho
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.QuoteToASCII(text[:cut]) + "…"
}
