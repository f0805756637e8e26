package guardrail

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"unicode/utf8"
)

// draft is the text of one event before it gets its place in the chain. It is
// written without holding the log.
type draft struct {
	buf   []byte
	about string // the upstream
	scrub func(upstream, text string) string
	mac   hash.Hash // nil: objects stand in clear
	clear []byte    // the object that is being hashed
	sum   []byte
}

func newDraft(scrub func(upstream, text string) string, key []byte) *draft {
	d := &draft{scrub: scrub, buf: make([]byte, 0, 1<<10)}
	if key != nil {
		d.mac = hmac.New(sha256.New, key)
	}
	return d
}

func (d *draft) scrubbed(text string) string {
	if d.scrub == nil || text == "" {
		return text
	}
	return d.scrub(d.about, text)
}

// name appends a member whose value is a short word; none if there is no value.
func (d *draft) name(key, value string) { d.member(key, value, maxName) }

// text appends a member for people to read.
func (d *draft) text(key, value string) { d.member(key, value, maxText) }

func (d *draft) member(key, value string, most int) {
	if value == "" {
		return
	}
	d.key(key)
	d.buf = appendString(d.buf, value, most)
}

func (d *draft) number(key string, n int64) {
	if n == 0 {
		return
	}
	d.key(key)
	d.buf = strconv.AppendInt(d.buf, n, 10)
}

func (d *draft) key(key string) {
	d.buf = append(d.buf, `,"`...)
	d.buf = append(d.buf, key...)
	d.buf = append(d.buf, `":`...)
}

// object appends a target, in clear or as a keyed hash of the whole of it: the
// hash of a short path without a key can be guessed.
func (d *draft) object(target string, most int) {
	target = d.scrubbed(target)
	if d.mac == nil || target == "" {
		d.buf = appendString(d.buf, target, most)
		return
	}
	d.mac.Reset()
	d.clear = append(d.clear[:0], target...)
	d.mac.Write(d.clear)
	d.sum = d.mac.Sum(d.sum[:0])
	d.buf = append(d.buf, `"hmac:`...)
	d.buf = hex.AppendEncode(d.buf, d.sum)
	d.buf = append(d.buf, '"')
}

const hexDigits = "0123456789abcdef"

// appendString appends text as a JSON string of at most most bytes that no
// terminal, editor or line reader can take for anything else: all that is not
// printed is escaped. What is no UTF-8 becomes U+FFFD. Text beyond the limit is
// replaced by an ellipsis and the number of bytes that are missing.
func appendString(buf []byte, text string, most int) []byte {
	buf = append(buf, '"')
	start, plain := len(buf), 0
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf && c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			i++
			continue
		}
		buf = append(buf, text[plain:i]...)
		r, size := utf8.DecodeRuneInString(text[i:])
		if len(buf)-start > most {
			break // cut below, before more is written that is not kept
		}
		buf = appendRune(buf, r)
		i += size
		plain = i
	}
	buf = append(buf, text[min(plain, len(text)):]...)
	if len(buf)-start <= most {
		return append(buf, '"')
	}
	return appendCut(buf[:start], text, most)
}

// appendCut appends as much of a text as fits, and the number of bytes that do not.
func appendCut(buf []byte, text string, most int) []byte {
	start := len(buf)
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		mark := len(buf)
		if buf = appendRune(buf, r); len(buf)-start > most {
			buf = append(buf[:mark], "…(+"...)
			buf = strconv.AppendInt(buf, int64(len(text)-i), 10)
			return append(buf, `)"`...)
		}
		i += size
	}
	return append(buf, '"')
}

func appendRune(buf []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(buf, '\\', byte(r))
	case r == '\n':
		return append(buf, `\n`...)
	case r == '\t':
		return append(buf, `\t`...)
	case r == utf8.RuneError:
		return append(buf, `\ufffd`...)
	case !Hidden(r):
		return utf8.AppendRune(buf, r)
	case r > 0xffff:
		r -= 0x10000
		return appendUnit(appendUnit(buf, 0xd800+r>>10), 0xdc00+r&0x3ff)
	}
	return appendUnit(buf, r)
}

func appendUnit(buf []byte, u rune) []byte {
	return append(buf, '\\', 'u', hexDigits[u>>12&15], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
