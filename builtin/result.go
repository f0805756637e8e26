package builtin

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"capgate/wire"
)

const content = `{"content":[`

const (
	blockSize = 128 // bytes of a block, or of the end of a result, besides what it shows
	lineSize  = 64  // bytes of a line, and of the same for programs, besides what they show
)

// result is the result of a tools/call while it is put together. What there is no
// memory for is left out, as the call fails then.
type result struct {
	memory     *memory // nil for a short one
	blocks     []byte  // it, up to the members of content
	structured []byte  // an object, nil for none
}

// lined begins a result of so many bytes of lines, and of the same for programs.
func lined(structured string, size int, m *memory) (result, *strings.Builder) {
	r, lines := result{memory: m, structured: []byte(structured)}, new(strings.Builder)
	if m.take(2*size) == nil {
		r.structured = append(make([]byte, 0, size), structured...)
		lines.Grow(size)
	}
	return r, lines
}

// block begins a block of so many bytes, if there is room for them.
func (r *result) block(kind string, size int) bool {
	blocks, err := r.memory.grow(r.blocks, size+len(r.structured)+2*blockSize)
	if err != nil {
		return false
	}
	before := ","
	if len(blocks) == 0 {
		before = content
	}
	r.blocks = append(append(append(append(blocks, before...), `{"type":"`...), kind...), '"')
	return true
}

// written is how many bytes a text is in JSON, at most.
func written(s string) int {
	size, valid := len(s), utf8.ValidString(s)
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\n' || c == '\t' || c == '"' || c == '\\':
			size++
		case c < ' ' || c == 0x7f || c >= utf8.RuneSelf && !valid:
			size += 5
		case c == 0xe2: // of which two kinds of line breaks are
			size += 3
		}
	}
	return size
}

// text adds a block of text.
func (r *result) text(s string) {
	if r.block("text", written(s)) {
		r.blocks = append(wire.AppendString(append(r.blocks, `,"text":`...), s), '}')
	}
}

// blob adds bytes that are no text: an image that models can see, or a resource.
func (r *result) blob(uri, mime string, data []byte) {
	kind, size := "resource", base64.StdEncoding.EncodedLen(len(data))+written(uri)+written(mime)
	if isPicture(mime) {
		kind = "image"
	}
	switch {
	case !r.block(kind, size):
	case kind == "image":
		r.blocks = base64.StdEncoding.AppendEncode(append(r.blocks, `,"data":"`...), data)
		r.blocks = append(wire.AppendString(append(r.blocks, `","mimeType":`...), mime), '}')
	default:
		r.blocks = wire.AppendString(append(r.blocks, `,"resource":{"uri":`...), uri)
		r.blocks = wire.AppendString(append(r.blocks, `,"mimeType":`...), mime)
		r.blocks = append(base64.StdEncoding.AppendEncode(append(r.blocks, `,"blob":"`...), data), `"}}`...)
	}
}

// encode ends the result, and returns it. Its memory was made with its last block.
func (r *result) encode(failed bool) []byte {
	if len(r.blocks) == 0 {
		r.blocks = []byte(content)
	}
	dst := append(r.blocks, `]`...)
	if r.structured != nil {
		dst = append(append(dst, `,"structuredContent":`...), r.structured...)
	}
	if failed {
		return append(dst, `,"isError":true}`...)
	}
	return append(dst, `,"isError":false}`...)
}

// isText reports whether data can be shown as text and lose nothing.
func isText(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// whole cuts text that was cut anywhere back to the end of a character.
func whole(data []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(data); i++ {
		if b := data[len(data)-i]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(data[len(data)-i:]) {
				return data[:len(data)-i]
			}
			return data
		}
	}
	return data
}

// sniff says what bytes are by what they begin with.
func sniff(data []byte) string {
	mime, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return mime
}

func isPicture(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}
