package wire

import (
	"bytes"
	"hash/maphash"
	"math"
)

// The limits that stand where [Limits] has none.
const (
	MaxBytes  = 32 << 20 // length of the document
	MaxDepth  = 64       // objects and arrays inside each other
	MaxNodes  = 1 << 20  // values and keys
	MaxNumber = 64       // length of a number
)

// keepNodes is the size of the largest index that [Doc.Reset] keeps, so that one
// huge message does not pin its memory in a pool.
const keepNodes = 1 << 14

// Limits bounds what a document may cost. Zero, or less, means the default:
// [MaxBytes], [MaxDepth], [MaxNodes], [MaxNumber].
type Limits struct {
	Bytes, Depth, Nodes, Number int
}

func (l Limits) orDefault() Limits {
	set := func(n, byDefault int) int {
		if n <= 0 {
			return byDefault
		}
		return min(n, math.MaxInt32) // what an offset in the index can hold
	}
	return Limits{
		Bytes:  set(l.Bytes, MaxBytes),
		Depth:  set(l.Depth, MaxDepth),
		Nodes:  set(l.Nodes, MaxNodes),
		Number: set(l.Number, MaxNumber),
	}
}

// Doc is one parsed document: its bytes and an index over them. The zero Doc is
// ready to use and has no root. A parsed Doc may be read from several goroutines.
type Doc struct {
	data  []byte
	nodes []node // in document order; the root is the first
	parse uint32 // counts documents, so that a Value knows its own

	numbered bool // there is an escape by a number in some text

	// What parsing needs, kept for the next document.
	limits Limits
	loose  bool    // so that the below are no errors
	faults []int32 // where escaped NULs and halves of pairs stand, and keys that another one differs from in case only
	pos    int
	open   int32 // innermost open container, or none
	depth  int
	seed   maphash.Seed
	slots  []uint64
	folded []byte
}

// node is a value or a key; its first byte tells its kind. The children of a
// container follow it; in an object every key is followed by its value.
type node struct {
	start, end int32
	next       int32 // node behind this one and its children; parent while open
	size       int32 // keys and values in a container; what is special in a string
}

const nodeSize = 16 // bytes of a node

// none is the container that nothing is in.
const none = -1

// Parse reads data as one strict JSON document within the default limits.
func Parse(data []byte) (*Doc, error) {
	d := new(Doc)
	if err := d.Parse(data, Limits{}); err != nil {
		return nil, err
	}
	return d, nil
}

// Parse reads data in place of the document d had, reusing its memory. It keeps
// data, which must not change as long as d or a Value of it is used. After an
// error, always a [*SyntaxError], d has no root.
func (d *Doc) Parse(data []byte, limits Limits) error {
	return d.read(data, limits, false)
}

func (d *Doc) read(data []byte, limits Limits, loose bool) error {
	d.forget()
	d.loose = loose
	d.limits = limits.orDefault()
	d.data, d.pos, d.open, d.depth = data, 0, none, 0
	if err := d.document(); err != nil {
		d.forget()
		return err
	}
	return nil
}

// Reset forgets the document and keeps the memory of its index, unless that has
// grown large. It is for a Doc that goes back to a pool.
func (d *Doc) Reset() {
	d.forget()
	if cap(d.faults) > keepNodes {
		d.faults = nil
	}
	if cap(d.nodes) > keepNodes || cap(d.slots) > keepNodes || cap(d.folded) > keepNodes {
		d.nodes, d.slots, d.folded = nil, nil, nil
	}
}

// Memory is about how many bytes the index of the document takes.
func (d *Doc) Memory() int { return len(d.nodes) * nodeSize }

func (d *Doc) forget() {
	d.data, d.nodes, d.faults = nil, d.nodes[:0], d.faults[:0]
	d.parse, d.numbered = d.parse+1, false
}

// Root returns the value that is the document. It is [Invalid] when there is none.
func (d *Doc) Root() Value {
	if len(d.nodes) == 0 {
		return Value{}
	}
	return Value{doc: d, parse: d.parse}
}

func (d *Doc) document() error {
	if len(d.data) > d.limits.Bytes {
		return syntaxError(d.limits.Bytes, "the document is longer than %d bytes", d.limits.Bytes)
	}
	if bytes.HasPrefix(d.data, []byte("\ufeff")) {
		return syntaxError(0, "the document begins with a byte order mark")
	}
	for {
		if err := d.value(); err != nil {
			return err
		}
		if done, err := d.follow(); done || err != nil {
			return err
		}
	}
}

// value reads up to the end of a scalar or of the opening of an empty container,
// opening the containers on the way.
func (d *Doc) value() error {
	for {
		c := d.peek()
		if c != '{' && c != '[' {
			return d.scalar(c)
		}
		if err := d.enter(); err != nil {
			return err
		}
		if d.peek() == closer(c) {
			return nil
		}
		if c == '{' {
			if err := d.key(); err != nil {
				return err
			}
		}
	}
}

// closer returns the bracket that closes what opener opens.
func closer(opener byte) byte { return opener + '}' - '{' } // as far apart as ] and [

func (d *Doc) scalar(c byte) (err error) {
	end, what := 0, literal
	switch c {
	case '"':
		end, what, err = d.text()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		end, err = scanNumber(d.data, d.pos, d.limits.Number)
	case 't':
		end, err = scanWord(d.data, d.pos, "true")
	case 'f':
		end, err = scanWord(d.data, d.pos, "false")
	case 'n':
		end, err = scanWord(d.data, d.pos, "null")
	default:
		err = unexpected(d.data, d.pos, "a value")
	}
	if err != nil {
		return err
	}
	return d.add(end, what)
}

// follow reads what follows a value: the ends of containers, and the comma and
// the key before the next value. It is done at the end of the document.
func (d *Doc) follow() (done bool, err error) {
	for d.open != none {
		opener, c := d.data[d.nodes[d.open].start], d.peek()
		switch {
		case c == closer(opener):
			if err := d.leave(); err != nil {
				return false, err
			}
		case c != ',':
			return false, unexpected(d.data, d.pos, `"," or "`+string(closer(opener))+`"`)
		case opener == '{':
			d.pos++
			return false, d.key()
		default:
			d.pos++
			return false, nil
		}
	}
	if d.peek(); d.pos < len(d.data) {
		return false, unexpected(d.data, d.pos, "the end of the document")
	}
	return true, nil
}

func (d *Doc) key() error {
	if d.peek() != '"' {
		return unexpected(d.data, d.pos, "a key")
	}
	end, what, err := d.text()
	if err != nil {
		return err
	}
	if err := d.add(end, what); err != nil {
		return err
	}
	if d.peek() != ':' {
		return unexpected(d.data, d.pos, `":"`)
	}
	d.pos++
	return nil
}

// peek skips whitespace and returns the byte behind it. It returns 0 at the end
// of the document; no byte 0 is ever right, so the two need no telling apart.
func (d *Doc) peek() byte {
	for ; d.pos < len(d.data); d.pos++ {
		switch c := d.data[d.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// add appends the node that stands from the current byte to end, and goes there.
func (d *Doc) add(end, size int) error {
	if len(d.nodes) >= d.limits.Nodes {
		return syntaxError(d.pos, "the document has more than %d values and keys", d.limits.Nodes)
	}
	if d.open != none {
		d.nodes[d.open].size++
	}
	d.nodes = append(d.nodes, node{
		start: int32(d.pos), end: int32(end), next: int32(len(d.nodes) + 1), size: int32(size),
	})
	d.pos = end
	return nil
}

func (d *Doc) enter() error {
	if d.depth >= d.limits.Depth {
		return syntaxError(d.pos, "the document is nested more than %d deep", d.limits.Depth)
	}
	if err := d.add(d.pos+1, 0); err != nil {
		return err
	}
	inner := int32(len(d.nodes) - 1)
	d.nodes[inner].next, d.open = d.open, inner
	d.depth++
	return nil
}

func (d *Doc) leave() error {
	inner := d.open
	n := &d.nodes[inner]
	d.pos++
	d.open, n.next, n.end = n.next, int32(len(d.nodes)), int32(d.pos)
	d.depth--
	if d.data[n.start] == '{' {
		return d.distinct(inner, n.size/2)
	}
	return nil
}
