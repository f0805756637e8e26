package wire

import (
	"bytes"
	"iter"
	"strconv"
)

// Kind is what a [Value] is.
type Kind uint8

// The kinds of JSON values. Invalid is the kind of no value at all.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the name of the kind, as it stands in a sentence.
func (k Kind) String() string {
	names := [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}
	if int(k) < len(names) {
		return names[k]
	}
	return names[Invalid]
}

// Value is one value of a [Doc], or a key. It is small and comparable, and holds
// as long as its Doc keeps the document. The zero Value is [Invalid].
type Value struct {
	doc   *Doc
	i     int32
	parse uint32
}

// kindOf returns the kind of the value that begins with c.
func kindOf(c byte) Kind {
	switch c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}
	return Number
}

// node returns the zero node for a Value without a document.
func (v Value) node() node {
	if v.doc == nil || v.parse != v.doc.parse {
		return node{}
	}
	return v.doc.nodes[v.i]
}

func (v Value) at(i int32) Value { return Value{doc: v.doc, i: i, parse: v.parse} }

// Kind returns what v is.
func (v Value) Kind() Kind {
	n := v.node()
	if n.end == 0 {
		return Invalid
	}
	return kindOf(v.doc.data[n.start])
}

// Raw returns the exact bytes of v, without the whitespace around them.
// They belong to the document and must not be changed.
func (v Value) Raw() []byte {
	n := v.node()
	if n.end == 0 {
		return nil
	}
	return v.doc.data[n.start:n.end:n.end]
}

// Span returns where in the document Raw stands.
func (v Value) Span() (start, end int) {
	n := v.node()
	return int(n.start), int(n.end)
}

// AppendLine appends Raw as one line: every line break in it, which can only
// stand between tokens, becomes a space.
func (v Value) AppendLine(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, v.Raw()...)
	for _, c := range []byte("\n\r") {
		rest := dst[from:]
		for i := bytes.IndexByte(rest, c); i >= 0; i = bytes.IndexByte(rest, c) {
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return dst
}

// Str returns the text of a string.
func (v Value) Str() (text string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	body := v.doc.body(v.i)
	if v.node().size > literal {
		return decode(body), true
	}
	return string(body), true
}

// Numbered reports whether some text of the document that v is of may be written with an escape by a number, as
// "\u0041" for "A". Any other is told by its bytes but for the escapes of quotes, slashes and white space.
func (v Value) Numbered() bool { return v.node().end > 0 && v.doc.numbered }

// Equal reports whether v is a string whose text is s.
func (v Value) Equal(s string) bool {
	if v.Kind() != String {
		return false
	}
	body := v.doc.body(v.i)
	if v.node().size > literal {
		return says(body, s)
	}
	return string(body) == s
}

// Int64 returns a number written as an integer, without fraction or exponent,
// that fits an int64.
func (v Value) Int64() (number int64, ok bool) {
	const longest = len("-9223372036854775808")
	raw := v.Raw()
	if v.Kind() != Number || len(raw) > longest {
		return 0, false
	}
	number, err := strconv.ParseInt(string(raw), 10, 64)
	return number, err == nil
}

// Bool returns the value of a boolean.
func (v Value) Bool() (value, ok bool) {
	if v.Kind() != Bool {
		return false, false
	}
	return v.Raw()[0] == 't', true
}

// Len returns the number of members of an object or elements of an array.
func (v Value) Len() int {
	switch v.Kind() {
	case Object:
		return int(v.node().size) / 2
	case Array:
		return int(v.node().size)
	}
	return 0
}

// Get returns the member of an object whose key is exactly key.
func (v Value) Get(key string) (member Value, ok bool) {
	for k, member := range v.Members() {
		if k.Equal(key) {
			return member, true
		}
	}
	return Value{}, false
}

// Members ranges over the keys and values of an object, as they stand in it.
func (v Value) Members() iter.Seq2[Value, Value] {
	return func(yield func(key, member Value) bool) {
		if v.Kind() != Object {
			return
		}
		key := v.at(v.i + 1)
		for range v.Len() {
			member := v.at(key.i + 1)
			next := member.node().next
			if !yield(key, member) {
				return
			}
			key = v.at(next)
		}
	}
}

// Elems ranges over the elements of an array, as they stand in it.
func (v Value) Elems() iter.Seq[Value] {
	return func(yield func(elem Value) bool) {
		if v.Kind() != Array {
			return
		}
		elem := v.at(v.i + 1)
		for range v.Len() {
			next := elem.node().next
			if !yield(elem) {
				return
			}
			elem = v.at(next)
		}
	}
}
