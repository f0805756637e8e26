package wire

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Eight copies of a byte, and the top bits of eight bytes.
const (
	ones = 0x0101010101010101
	tops = 0x8080808080808080
)

// stops marks the bytes of w at which the plain run of a string ends: quotes,
// backslashes and control characters. Only the lowest mark is exact: subtraction
// borrows from the bytes above it.
func stops(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((w-ones*' ')&^w | (quote-ones)&^quote | (slash-ones)&^slash) & tops
}

// plain returns where the plain run of a string that begins at pos ends, and
// adds to seen the bytes it looked at.
func plain(data []byte, pos int, seen uint64) (int, uint64) {
	for ; len(data)-pos >= 8; pos += 8 {
		w := binary.LittleEndian.Uint64(data[pos:])
		seen |= w
		if m := stops(w); m != 0 {
			return pos + bits.TrailingZeros64(m)/8, seen
		}
	}
	for ; pos < len(data); pos++ {
		c := data[pos]
		seen |= uint64(c)
		if c == '"' || c == '\\' || c < ' ' {
			break
		}
	}
	return pos, seen
}

// scanString checks the string whose opening quote is at pos. It returns where
// it ends and how many special things are in it, escapes and text beyond ASCII;
// none means that it says what its bytes say.
func scanString(data []byte, pos int) (end, special int, err error) {
	i, seen := pos+1, uint64(0)
	for {
		i, seen = plain(data, i, seen)
		if i >= len(data) {
			return 0, 0, syntaxError(i, "the document ends in a string")
		}
		if data[i] == '"' {
			break
		}
		if data[i] != '\\' {
			return 0, 0, syntaxError(i, "raw control character 0x%02x in a string", data[i])
		}
		n, err := scanEscape(data, i)
		if err != nil {
			return 0, 0, err
		}
		i += n
		special++
	}
	if seen&tops != 0 {
		special++
		if err := scanUTF8(data[:i], pos+1); err != nil {
			return 0, 0, err
		}
	}
	return i + 1, special, nil
}

// scanEscape checks the escape at pos and returns its length.
func scanEscape(data []byte, pos int) (int, error) {
	r, n := unescape(data[pos:])
	switch {
	case n == 0:
		return 0, syntaxError(pos, "invalid escape in a string")
	case r == 0:
		return 0, syntaxError(pos, "escaped NUL in a string")
	case utf16.IsSurrogate(r):
		return 0, syntaxError(pos, "half of a surrogate pair in a string")
	}
	return n, nil
}

func scanUTF8(data []byte, pos int) error {
	if utf8.Valid(data[pos:]) {
		return nil
	}
	for {
		r, n := utf8.DecodeRune(data[pos:])
		if r == utf8.RuneError && n == 1 {
			return syntaxError(pos, "invalid UTF-8")
		}
		pos += n
	}
}

const (
	// maxExponent is how many digits an exponent may have.
	maxExponent = 3
	// plainlyFinite is the length up to which a number with an exponent of
	// fewer than maxExponent digits is finite whatever its digits: below 1e300.
	plainlyFinite = 200
)

// scanNumber checks the number at pos and returns where it ends.
func scanNumber(data []byte, pos, limit int) (end int, err error) {
	i := pos
	if data[i] == '-' {
		i++
	}
	whole := i
	if i, err = digits(data, whole); err != nil {
		return 0, err
	}
	if data[whole] == '0' && i > whole+1 {
		return 0, syntaxError(whole, "a number begins with a superfluous zero")
	}
	if i < len(data) && data[i] == '.' {
		if i, err = digits(data, i+1); err != nil {
			return 0, err
		}
	}
	exponent := 0
	if i < len(data) && (data[i] == 'e' || data[i] == 'E') {
		i++
		if i < len(data) && (data[i] == '+' || data[i] == '-') {
			i++
		}
		first := i
		if i, err = digits(data, first); err != nil {
			return 0, err
		}
		exponent = i - first
	}
	return i, bounded(data[pos:i], exponent, pos, limit)
}

// digits returns where the run of digits at pos ends; there must be one.
func digits(data []byte, pos int) (int, error) {
	i := pos
	for i < len(data) && data[i]-'0' <= 9 {
		i++
	}
	if i == pos {
		return 0, unexpected(data, pos, "a digit")
	}
	return i, nil
}

// bounded refuses numbers that are an error, infinity or exact depending on who
// reads them.
func bounded(number []byte, exponent, pos, limit int) error {
	switch {
	case len(number) > limit:
		return syntaxError(pos, "a number is longer than %d bytes", limit)
	case exponent > maxExponent:
		return syntaxError(pos, "a number has more than %d digits of exponent", maxExponent)
	case exponent < maxExponent && len(number) <= plainlyFinite:
		return nil
	}
	if _, err := strconv.ParseFloat(string(number), 64); err != nil {
		return syntaxError(pos, "a number is too large")
	}
	return nil
}

func scanWord(data []byte, pos int, word string) (end int, err error) {
	end = pos + len(word)
	if end > len(data) || string(data[pos:end]) != word {
		return 0, syntaxError(pos, "a value that begins like %s and is not", word)
	}
	return end, nil
}
