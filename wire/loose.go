package wire

import (
	"bytes"
	"iter"
)

// ParseLoosely is Parse for a document that is not decided on in every place, such as
// one that carries texts and schemas of somebody else. It accepts, besides what Parse
// does, an escaped NUL in a string, and keys of one object that differ only in case.
// Where they stand [Doc.Faults] says: whoever decides must refuse those in places that
// matter. Keys that are equal are refused as ever.
func (d *Doc) ParseLoosely(data []byte, limits Limits) error {
	return d.read(data, limits, true)
}

// Faults ranges over what Parse would have refused the document for: each string with
// a NUL, by the first of them, and each object with keys that differ only in case, by
// one of these. They are in no order.
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
	f := &SyntaxError{Offset: int(at), Text: "escaped NUL in a string"}
	if d.data[at] == '"' {
		end, _, _ := scanString(d.data, int(at), true) // it was scanned before
		f.Text = "key " + quote(decode(d.data[at+1:end-1])) + " is another key in different case"
	}
	return f
}

// text scans the string at the current byte.
func (d *Doc) text() (end, special int, err error) {
	end, special, err = scanString(d.data, d.pos, d.loose)
	if d.loose && special > 0 && err == nil {
		if at := indexNUL(d.data[d.pos:end]); at >= 0 {
			d.faults = append(d.faults, int32(d.pos+at))
		}
	}
	return end, special, err
}

// indexNUL returns where the first escaped NUL of a string is, -1 for nowhere.
func indexNUL(text []byte) int {
	nul := []byte(`\u0000`)
	for from := 0; ; {
		i := bytes.Index(text[from:], nul)
		if i < 0 {
			return -1
		}
		i += from
		slashes := 0
		for i-slashes > 0 && text[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 { // or the backslash is escaped itself
			return i
		}
		from = i + 1
	}
}
