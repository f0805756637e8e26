package builtin

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"unicode/utf8"

	"capgate/wire"
)

// result is the result of a tools/call while it is put together.
type result struct {
	blocks     []byte // the members of content
	structured []byte // an object, nil for none
}

func (r *result) block(kind string) {
	if len(r.blocks) > 0 {
		r.blocks = append(r.blocks, ',')
	}
	r.blocks = append(append(append(r.blocks, `{"type":"`...), kind...), '"')
}

// text adds a block of text.
func (r *result) text(s string) {
	r.block("text")
	r.blocks = append(wire.AppendString(append(r.blocks, `,"text":`...), s), '}')
}

// blob adds bytes that are no text: an image that models can see, or a resource.
func (r *result) blob(uri, mime string, data []byte) {
	encoded := base64.StdEncoding.EncodeToString(data)
	if isPicture(mime) {
		r.block("image")
		r.blocks = wire.AppendString(append(r.blocks, `,"data":`...), encoded)
		r.blocks = append(wire.AppendString(append(r.blocks, `,"mimeType":`...), mime), '}')
		return
	}
	r.block("resource")
	r.blocks = wire.AppendString(append(r.blocks, `,"resource":{"uri":`...), uri)
	r.blocks = wire.AppendString(append(r.blocks, `,"mimeType":`...), mime)
	r.blocks = append(wire.AppendString(append(r.blocks, `,"blob":`...), encoded), "}}"...)
}

// encode writes the result.
func (r *result) encode(failed bool) []byte {
	dst := make([]byte, 0, len(r.blocks)+len(r.structured)+64)
	dst = append(append(append(dst, `{"content":[`...), r.blocks...), ']')
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
