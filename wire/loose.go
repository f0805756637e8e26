package wire

import "iter"

// ParseLoosely is Parse for a document that is not decided on in every place, such as
// one that carries texts and schemas of somebody else. It accepts, besides what Parse
// does, an escaped NUL or half of a surrogate pair in a string, and keys of one object
// that differ only in case. A value that has such a half says U+FFFD in its place.
// Where they stand [Doc.Faults] says: whoever decides must refuse those in places that
// matter. Keys that are equal are refused as ever.
func (d *Doc) ParseLoosely(data []byte, limits Limits) error {
	return d.read(data, limits, true)
}

// Faults ranges over what Parse would have refused the document for: each string with
// a NUL or half a pair, by the first of them, and each object with keys that differ only
// in case, by one of these. They are in no order.
func (d *Doc) Faults() iter.Seq[*SyntaxError] {
	return func(yield func(*SyntaxError) bool) {
		for _, at := range d.faults {
			if !yield(d.fault(at)) {
				return
			}
		}
	}
}

// Sound reports whether there are none.
func (d *Doc) Sound() bool { return len(d.faults) == 0 }

func (d *Doc) fault(at int32) *SyntaxError {
	if d.data[at] == '"' {
		end, _, _, _ := scanString(d.data, int(at), true) // it was scanned before
		return &SyntaxError{Offset: int(at), Text: "key " + quote(decode(d.data[at+1:end-1])) + " is another key in different case"}
	}
	f := &SyntaxError{Offset: int(at), Text: textNUL}
	if r, _ := unescapeHex(d.data[at:]); r != 0 {
		f.Text = textHalf
	}
	return f
}

// text scans the string at the current byte.
func (d *Doc) text() (end, what int, err error) {
	end, what, fault, err := scanString(d.data, d.pos, d.loose)
	d.numbered = d.numbered || what == numbered
	if fault > 0 && err == nil {
		d.faults = append(d.faults, int32(fault))
	}
	return end, what, err
}
