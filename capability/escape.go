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

// decodeC resolves the escapes \056, \x2e, \u2e, \U0000002e and \u{2e}, as tar does, and as echo does \0056, where they are of
// a name or part it, as look-alikes are. Others are more likely folders that are called like a number.
func decodeC(text string, echo bool) string {
	made := make([]byte, 0, len(text))
	for rest := text; rest != ""; {
		r, size := escapeC(rest, echo)
		as, signs := lookalike(r), "./~-"
		if size > 1 && isLetter(rest[1]) {
			signs += `\%:` // which begin another escape, or end a scheme
		}
		if size == 1 || !strings.ContainsFunc(as, isWord) && strings.Trim(as, signs) != "" {
			as, size = rest[:1], 1
		}
		made, rest = append(made, as...), rest[size:]
	}
	return string(made)
}

// escapeC reads the escape that a text begins with. The size is 1 where it begins with none.
func escapeC(text string, echo bool) (r rune, size int) {
	rest, ok := strings.CutPrefix(text, `\`)
	if !ok || rest == "" {
		return 0, 1
	}
	form := strings.IndexByte("xuUo", rest[0])
	if form < 0 {
		most := 3
		if echo && rest[0] == '0' {
			most = 4
		}
		b, n := number(rest, 8, most)
		return rune(b & 0xff), len(`\`) + n // of more, a byte is taken
	}
	base, most := [...]int{16, 16, 16, 8}[form], [...]int{2, 4, 8, 0}[form]
	if inner, _, ok := strings.Cut(rest[1:], "}"); ok && strings.HasPrefix(inner, "{") {
		if v, n := number(inner[1:], base, len(inner)); n == len(inner)-1 && v <= unicode.MaxRune {
			return rune(v), len(`\x{}`) + n
		}
	}
	v, n := number(rest[1:], base, most)
	if n == 0 {
		return 0, 1
	}
	return rune(min(v, unicode.MaxRune+1)), len(`\x`) + n //nolint:gosec // it is none of more
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
