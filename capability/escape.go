package capability

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// decodePercent resolves %2e and %u002e. An escape that is not one stays.
func decodePercent(text string) []string {
	if strings.IndexByte(text, '%') < 0 {
		return nil
	}
	made := make([]byte, 0, len(text))
	for rest := text; rest != ""; {
		if b, ok := hexDigits(rest, "%", 2); ok && isFormat(rest, b) {
			rest = rest[len("%04"):]
		} else if ok {
			made, rest = append(made, byte(b)), rest[len("%2e"):]
		} else if r, ok := hexDigits(rest, "%u", 4); ok {
			made, rest = utf8.AppendRune(made, rune(r)), rest[len("%u002e"):]
		} else {
			made, rest = append(made, rest[0]), rest[1:]
		}
	}
	return []string{string(made)}
}

// isFormat reports whether an escape of what no name has is a number that is filled in, as in %04d. Who decodes it leaves
// it out.
func isFormat(text string, b uint64) bool {
	_, ok := filledIn(text[1:])
	return ok && b < ' ' && b != 0 && !unicode.IsSpace(rune(b))
}

// hexDigits reads n hexadecimal digits after a prefix.
func hexDigits(text, prefix string, n int) (uint64, bool) {
	digits, ok := strings.CutPrefix(text, prefix)
	if !ok || len(digits) < n {
		return 0, false
	}
	v, err := strconv.ParseUint(digits[:n], 16, 32)
	return v, err == nil
}

// turnBackslashes reads a backslash as a separator, as nothing, and as the quote of
// what follows it.
func turnBackslashes(text string) []string {
	if strings.IndexByte(text, '\\') < 0 {
		return nil
	}
	var quoted strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		quoted.WriteByte(text[i])
	}
	return []string{strings.ReplaceAll(text, `\`, "/"), strings.ReplaceAll(text, `\`, ""), quoted.String()}
}

// decodeC resolves the escapes \056, \x2e, \u2e and \U0000002e, as tar does, and as echo does \0056, where they are of a name
// or part it. Others are more likely folders that are called like a number.
func decodeC(text string, echo bool) string {
	made := make([]byte, 0, len(text))
	for rest := text; rest != ""; {
		b, size := escapeC(rest, echo)
		if b > '~' || !isWord(rune(b)) && strings.IndexByte("./~-", byte(b)) < 0 {
			b, size = uint64(rest[0]), 1
		}
		made, rest = append(made, byte(b)), rest[size:]
	}
	return string(made)
}

// escapeC reads the escape that a text begins with; it is 0 of one that begins with none.
func escapeC(text string, echo bool) (b uint64, size int) {
	rest, ok := strings.CutPrefix(text, `\`)
	if !ok || rest == "" {
		return 0, 1
	}
	if i := strings.IndexByte("xuU", rest[0]); i >= 0 {
		b, n := number(rest[1:], 16, 2<<i)
		return b, len(`\x`) + n
	}
	most := 3
	if echo && rest[0] == '0' {
		most = 4
	}
	b, n := number(rest, 8, most)
	return b & 0xff, len(`\`) + n // of more, a byte is taken
}

// number reads up to some digits.
func number(text string, base, most int) (v uint64, digits int) {
	for ; digits < min(len(text), most); digits++ {
		d := strings.IndexByte("0123456789abcdef"[:base], text[digits]|0x20)
		if d < 0 {
			break
		}
		v = v*uint64(base) + uint64(d) //nolint:gosec // neither is negative
	}
	return v, digits
}
