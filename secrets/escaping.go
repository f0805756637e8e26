package secrets

import (
	"bytes"
	"encoding/hex"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLayers is how many escapings are looked under: JSON in a JSON string has two.
const maxLayers = 2

// escaping is a way to write a text in which one byte begins what stands for
// others. Nothing says which reading of a text is meant, so each is searched.
type escaping struct {
	mark byte
	// read reads what begins with the mark. It takes no bytes when that is no
	// escape and only stands for itself.
	read func(text []byte) (size int, plain rune)
	wide bool // what is read is a character, not a byte
}

func escapings() [2]escaping {
	return [2]escaping{{'\\', readJSON, true}, {'%', readPercent, false}}
}

// appendPlain appends what was read.
func (e escaping) appendPlain(to []byte, plain rune) []byte {
	if e.wide {
		return utf8.AppendRune(to, plain)
	}
	return append(to, byte(plain))
}

// len is how many bytes appendPlain appends.
func (e escaping) len(plain rune) int {
	if e.wide {
		return utf8.RuneLen(plain)
	}
	return 1
}

// decode returns the text that is written. It is not ok when that is the same.
func (e escaping) decode(text []byte) (plain []byte, ok bool) {
	next := bytes.IndexByte(text, e.mark)
	if next < 0 {
		return nil, false
	}
	plain = make([]byte, 0, len(text))
	for next >= 0 {
		plain = append(plain, text[:next]...)
		text = text[next:]
		size, r := e.read(text)
		if size > 0 {
			plain, ok = e.appendPlain(plain, r), true
		} else {
			plain, size = append(plain, e.mark), 1
		}
		text = text[size:]
		next = bytes.IndexByte(text, e.mark)
	}
	return append(plain, text...), ok
}

// origins says where spans of the decoded text, in order and apart, stand in the
// text that it was decoded from.
func (e escaping) origins(text []byte, spans []span) []span {
	at, done := 0, 0 // in the text, and in what was decoded of it
	find := func(offset int) (start, end int) {
		for {
			size, n := 1, 1
			if text[at] == e.mark {
				if s, r := e.read(text[at:]); s > 0 {
					size, n = s, e.len(r)
				}
			}
			if done+n > offset {
				return at, at + size
			}
			at, done = at+size, done+n
		}
	}
	for i := range spans {
		spans[i].start, _ = find(spans[i].start)
		_, spans[i].end = find(spans[i].end - 1)
	}
	return spans
}

func readPercent(text []byte) (size int, plain rune) {
	var b [1]byte
	if len(text) < 3 {
		return 0, 0
	}
	if _, err := hex.Decode(b[:], text[1:3]); err != nil {
		return 0, 0
	}
	return 3, rune(b[0])
}

func readJSON(text []byte) (size int, plain rune) {
	if len(text) < 2 {
		return 0, 0
	}
	if text[1] == 'u' {
		return readUnicode(text)
	}
	const short, long = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(short, text[1]); i >= 0 {
		return 2, rune(long[i])
	}
	return 0, 0
}

// isEscapedInJSON is true of what can stand in no JSON string, or is escaped in
// some by a letter. A slash may be as well, and is looked for in the text.
func isEscapedInJSON(r rune) bool { return r < ' ' || r == '"' || r == '\\' }

// unitSize is the length of an escape such as \u00e9.
const unitSize = 6

// readUnicode reads one such escape, or two that are a pair of surrogates.
func readUnicode(text []byte) (size int, plain rune) {
	r, ok := readUnit(text)
	switch {
	case !ok:
		return 0, 0
	case !utf16.IsSurrogate(r):
		return unitSize, r
	}
	low, _ := readUnit(text[unitSize:])
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
		return 0, 0
	}
	return 2 * unitSize, r
}

func readUnit(text []byte) (r rune, ok bool) {
	var b [2]byte
	if len(text) < unitSize || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	_, err := hex.Decode(b[:], text[2:unitSize])
	return rune(b[0])<<8 | rune(b[1]), err == nil
}
