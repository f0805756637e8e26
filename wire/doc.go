// Package wire reads MCP messages strictly and keeps their bytes.
//
// A message is decided on and then forwarded. If the two are not the same, or if
// the receiver may read the same bytes differently, a call can be allowed that
// should have been denied. So wire refuses every document that JSON parsers are
// known to disagree on, and for the rest it builds an index over the bytes
// instead of a copy of them: what was read is what can be sent.
//
//	var doc wire.Doc // reuse it: parsing again allocates nothing
//	if err := doc.Parse(body, wire.Limits{}); err != nil {
//		return err // a sentence: duplicate key "path" at byte 12
//	}
//	params, _ := doc.Root().Get("params")
//	name, _ := params.Get("name")
//	arguments, _ := params.Get("arguments")
//	if name.Equal("read_file") {
//		forward(arguments.Raw())
//	}
//
// A document is accepted when it is exactly one JSON value, as RFC 8259 has it,
// with JSON whitespace around it, and
//
//   - it is valid UTF-8 without a byte order mark;
//   - it holds no NUL, raw or escaped, and no raw control character in a string;
//   - no \u escape is half of a surrogate pair without the other half behind it;
//   - no object, at any depth, has two keys that are equal once unescaped, or
//     that differ only in case, as [strings.EqualFold] compares: some parsers
//     take the first, some the last, some ignore case;
//   - its numbers are at most 64 bytes long, have at most 3 digits of exponent
//     and are finite as a float64;
//   - it keeps to the [Limits] in bytes, depth and number of values.
//
// A document that carries texts and schemas which nobody decides on can be read by
// [Doc.ParseLoosely]: NULs, halves of pairs and keys in different case are then faults
// to look at, and no errors.
//
// Everything else is a [*SyntaxError]. An accepted document is accepted by
// encoding/json too, with the same strings, keys and numbers.
//
// A [Value] is a view into the index and the bytes. The zero Value is [Invalid]
// and answers no to everything, and so does a Value whose Doc has since been
// given another document.
//
// # Limitations
//
// Keys are compared by simple case folding of single characters. Keys that only
// look alike, that differ in Unicode normalization ("é" as one character or as
// two), or that only full folding makes equal ("ß" and "ss") are different keys.
//
// Names that are special to some receivers, such as "__proto__", are keys like
// any other here: whether an argument is allowed at all is decided where it is
// known which arguments a tool declares.
//
// A number too small for a float64 is accepted, although some parsers read it
// as zero. Get takes time in proportion to the members of the object.
//
// Raw may hold line breaks between its tokens. On a transport that ends a
// message at a line break they would cut it in two, so that the second half
// could be a message of its own: send AppendLine there.
package wire
