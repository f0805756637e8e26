package provider

import (
	"cmp"
	"slices"

	"capgate/wire"
)

// edit puts a text in the place of a range of the body. Everything outside of
// edits goes up as it came.
type edit struct {
	start, end int
	text       []byte
}

// span is the range of one element of an array, or of one member of an object with
// its key.
type span struct{ start, end int }

func elementSpan(v wire.Value) span {
	start, end := v.Span()
	return span{start, end}
}

func memberSpan(key, v wire.Value) span {
	start, _ := key.Span()
	_, end := v.Span()
	return span{start, end}
}

// prune takes out elements or members, with the commas that they leave behind.
func (r *request) prune(spans []span, drop []bool) {
	kept := -1 // the last one before that stays
	for i := range spans {
		switch {
		case !drop[i]:
			kept = i
		case kept >= 0:
			r.cut(spans[i-1].end, spans[i].end)
		case i+1 < len(spans):
			r.cut(spans[i].start, spans[i+1].start)
		default:
			r.cut(spans[i].start, spans[i].end)
		}
	}
}

func (r *request) cut(start, end int) { r.edits = append(r.edits, edit{start, end, nil}) }

// replace puts a text in the place of a value, unless it says the same already.
func (r *request) replace(v wire.Value, text []byte) bool {
	if string(v.Raw()) == string(text) {
		return false
	}
	start, end := v.Span()
	r.edits = append(r.edits, edit{start, end, text})
	return true
}

// set gives a member of an object a value, and reports whether it had another one.
func (r *request) set(object wire.Value, key string, text []byte) bool {
	if v, ok := object.Get(key); ok {
		return r.replace(v, text)
	}
	member := append(append(wire.AppendString(nil, key), ':'), text...)
	if object.Len() == 0 {
		return r.replace(object, append(append([]byte{'{'}, member...), '}'))
	}
	var last wire.Value
	for _, v := range object.Members() {
		last = v
	}
	_, end := last.Span()
	r.edits = append(r.edits, edit{end, end, append([]byte{','}, member...)})
	return true
}

// without takes members out of an object that has others besides them.
func (r *request) without(object wire.Value, keys ...string) (cut []string) {
	var spans []span
	var drop []bool
	for key, v := range object.Members() {
		name, _ := key.Str()
		spans = append(spans, memberSpan(key, v))
		drop = append(drop, slices.Contains(keys, name))
		if slices.Contains(keys, name) {
			cut = append(cut, name)
		}
	}
	r.prune(spans, drop)
	return cut
}

// apply returns the body with all edits. It reports false when two of them touch
// the same bytes, so that neither can be trusted.
func apply(body []byte, edits []edit) ([]byte, bool) {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	out := make([]byte, 0, len(body)+len(body)/8)
	at := 0
	for _, e := range edits {
		if e.start < at || e.end < e.start || e.end > len(body) {
			return nil, false
		}
		out = append(append(out, body[at:e.start]...), e.text...)
		at = e.end
	}
	return append(out, body[at:]...), true
}

// appendList writes a list of texts.
func appendList(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, text := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = wire.AppendString(dst, text)
	}
	return append(dst, ']')
}
