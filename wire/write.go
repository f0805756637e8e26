package wire

import (
	"encoding/binary"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string that every reader reads alike, and
// that Parse accepts: what is not valid UTF-8 becomes U+FFFD, and so does NUL,
// which no accepted document holds.
func AppendString(dst []byte, text string) []byte {
	return append(AppendText(append(dst, '"'), text), '"')
}

// AppendText appends text as AppendString does, as a part of a string that is put together
// from several.
func AppendText(dst []byte, text string) []byte {
	for start := 0; ; {
		end := start + plain(text[start:])
		dst = append(dst, text[start:end]...)
		if end == len(text) {
			return dst
		}
		r, size := utf8.DecodeRuneInString(text[end:])
		dst = appendRune(dst, r, size)
		start = end + size
	}
}

// plain counts the bytes at the start of a text that stand in a JSON string as they are: those of
// ASCII that are seen, and blanks.
func plain(text string) (n int) {
	for ; n+8 <= len(text) && arePlain(text[n:n+8]); n += 8 {
	}
	for n < len(text) && isPlain(text[n]) {
		n++
	}
	return n
}

// arePlain reports whether eight bytes are plain. Of each, the highest bit of one of the terms is
// set if it is not; a byte behind one that is not may be taken for such a one too.
func arePlain(text string) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	eight := binary.LittleEndian.Uint64([]byte(text))
	quote, slash, del := eight^each*'"', eight^each*'\\', eight^each*0x7f
	return (eight|(eight-each*' ')|(quote-each)|(slash-each)|(del-each))&high == 0
}

func isPlain(c byte) bool {
	return c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' && c != 0x7f
}

func appendRune(dst []byte, r rune, size int) []byte {
	switch {
	case r == utf8.RuneError && size == 1, r == 0:
		return append(dst, `\ufffd`...)
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r == '\n':
		return append(dst, `\n`...)
	case r == '\t':
		return append(dst, `\t`...)
	case r < ' ' || r == 0x7f:
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
	case r == '\u2028' || r == '\u2029':
		return append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
	}
	return utf8.AppendRune(dst, r)
}
