package wire

import (
	"bytes"
	"unicode/utf8"
)

// Edit is a change of what a string says: another text in the place of its bytes
// from Start to End. Both lie between characters.
type Edit struct {
	Start, End int
	Text       string
}

// AppendEdited appends v, a string, with changes of what it says, which stand in
// order and apart. What they do not touch is appended byte for byte, as it was
// written. A value that is no string is appended as it is.
func (v Value) AppendEdited(dst []byte, edits ...Edit) []byte {
	if v.Kind() != String {
		return append(dst, v.Raw()...)
	}
	body := v.doc.body(v.i)
	dst = append(dst, '"')
	at := 0 // in the text
	for _, e := range edits {
		n := written(body, e.Start-at)
		dst = append(dst, body[:n]...)
		body = body[n:]
		quote := len(dst)
		dst = AppendString(dst, e.Text)
		dst = append(dst[:quote], dst[quote+1:len(dst)-1]...)
		body = body[written(body, e.End-e.Start):]
		at = e.End
	}
	return append(append(dst, body...), '"')
}

// written returns how many bytes of the body of an accepted string say the first n
// bytes of its text.
func written(body []byte, n int) int {
	size := 0
	for n > 0 {
		rest := body[size:]
		plain := bytes.IndexByte(rest[:min(n, len(rest))], '\\')
		if plain < 0 {
			return size + min(n, len(rest))
		}
		r, escape := unescape(rest[plain:])
		size += plain + escape
		n -= plain + utf8.RuneLen(r)
	}
	return size
}
