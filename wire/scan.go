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

// marks has the top bit of every byte of w that is not plain text: quotes,
// backslashes, control characters and all beyond ASCII, whose top bit survives in
// quote or in slash. None is missing, but only the lowest mark is exact:
// subtraction borrows from the bytes above it.
func marks(w uint64) uint64 {
	quote, slash := w^ones*'"', w^ones*'\\'
	return ((w - ones*' ') | (quote - ones) | (slash - ones)) & tops
}

func word(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

// skipPlain returns where the plain text at pos ends.
func skipPlain(data []byte, pos int) int {
	for ; len(data)-pos >= 16; pos += 16 {
		b := (*[16]byte)(data[pos:])
		if m := marks(word(b[:8])); m != 0 {
			return pos + bits.TrailingZeros64(m)/8
		}
		if m := marks(word(b[8:])); m != 0 {
			return pos + 8 + bits.TrailingZeros64(m)/8
		}
	}
	for ; pos < len(data); pos++ {
		if c := data[pos]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return pos
}

// What is special in a string.
const (
	literal  = iota // nothing: it says what its bytes say
	special         // escapes, or text beyond ASCII
	numbered        // and one of the escapes is a number
)

// scanString checks the string whose opening quote is at pos. It returns where it ends
// and what is special in it. An escaped NUL and half of a surrogate pair are errors; read
// loosely, the fault is where the first of them is, 0 for nowhere.
func scanString(data []byte, pos int, loose bool) (end, what, fault int, err error) {
	i := skipPlain(data, pos+1)
	if i < len(data) && data[i] == '"' {
		return i + 1, literal, 0, nil
	}
	return scanText(data, i, loose)
}

// stride is how much text the automaton reads before skipPlain is tried again,
// which is faster where plain text follows and wasted where it does not.
const stride = 1024

// scanText checks the rest of a string, from what is special on.
func scanText(data []byte, pos int, loose bool) (end, what, fault int, err error) {
	what = special
	for at := ready; ; {
		reach := min(pos+stride, len(data))
		pos, at = inText.read(data[:reach], pos, at)
		switch {
		case pos == len(data):
			return 0, 0, 0, misread(data, pos, at)
		case pos == reach:
			if at == ready {
				pos = skipPlain(data, pos)
			}
		case at == ready && data[pos] == '"':
			return pos + 1, what, fault, nil
		case at == escaped && data[pos] == 'u':
			what = numbered
			n, err := scanHex(data, pos-1)
			switch {
			case err == nil:
			case n == 0 || !loose:
				return 0, 0, 0, err
			case fault == 0:
				fault = pos - 1
			}
			pos, at = pos-1+n, ready
		default:
			return 0, 0, 0, misread(data, pos, at)
		}
	}
}

// misread says what is wrong where the automaton stopped, at pos.
func misread(data []byte, pos int, at state) error {
	switch {
	case at == escaped:
		return syntaxError(pos-1, "invalid escape in a string")
	case at != ready: // inside a character: the fault is where it begins
		for pos--; !utf8.RuneStart(data[pos]); pos-- {
		}
	case pos == len(data):
		return syntaxError(pos, "the document ends in a string")
	case data[pos] < ' ':
		return syntaxError(pos, "raw control character 0x%02x in a string", data[pos])
	}
	return syntaxError(pos, "invalid UTF-8")
}

// What a string is refused for that is read loosely.
const (
	textNUL  = "escaped NUL in a string"
	textHalf = "half of a surrogate pair in a string"
)

// scanHex checks the \u escape at pos and returns its length, 0 when it is none.
func scanHex(data []byte, pos int) (int, error) {
	r, n := unescapeHex(data[pos:])
	switch {
	case n == 0:
		return 0, syntaxError(pos, "invalid escape in a string")
	case r == 0:
		return n, syntaxError(pos, textNUL)
	case utf16.IsSurrogate(r):
		return n, syntaxError(pos, textHalf)
	}
	return n, nil
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
