package wire

import (
	"bytes"
	"hash/maphash"
	"math/bits"
)

// distinct refuses an object of size members if two of its keys are one key to
// some reader; read loosely, if they are one key to every reader. The keys go into a hash table, folded, so that its time is linear;
// the seed is random, so that nobody can choose keys that collide.
func (d *Doc) distinct(object, size int32) error {
	if size < 2 || d.apart(object, size) {
		return nil
	}
	key, other := d.twins(object, size, appendFolded)
	switch {
	case key == 0:
		return nil
	case !d.loose:
		return d.duplicate(key, other)
	}
	d.faults = append(d.faults, d.nodes[key].start)
	if key, other = d.twins(object, size, appendDecoded); key != 0 {
		return d.duplicate(key, other)
	}
	return nil
}

// twins returns a key of an object of size members, and one before it that reads
// the same; both are 0 if there is none.
func (d *Doc) twins(object, size int32, read func(dst, body []byte) []byte) (key, other int32) {
	slots := d.emptySlots(2 * int(size))
	key = object + 1
	for range size {
		d.folded = read(d.folded[:0], d.body(key))
		hash := maphash.Bytes(d.seed, d.folded)
		at := int(hash) & (len(slots) - 1)
		for slots[at] != 0 {
			other := int32(uint32(slots[at]))
			if slots[at]>>32 == hash>>32 && bytes.Equal(read(nil, d.body(other)), d.folded) {
				return key, other
			}
			at = (at + 1) & (len(slots) - 1)
		}
		slots[at] = hash>>32<<32 | uint64(key) // never 0: the root is no key
		key = d.nodes[key+1].next
	}
	return 0, 0
}

// apart reports whether it can be seen without folding that the keys of a small
// object are distinct: each has a length, first and last character of its own.
// It says no when in doubt.
func (d *Doc) apart(object, size int32) bool {
	const small = 16
	if size > small {
		return false
	}
	marks, key := uint64(0), object+1
	for range size {
		body := d.body(key)
		if len(body) == 0 || d.nodes[key].size > literal {
			return false
		}
		first, last := body[0]|0x20, body[len(body)-1]|0x20 // one for both cases of a letter
		mark := uint64(1) << ((uint(len(body))*29 + uint(first)*11 + uint(last)*5) & 63)
		if marks&mark != 0 {
			return false
		}
		marks |= mark
		key = d.nodes[key+1].next
	}
	return true
}

// emptySlots returns an empty hash table of at least n slots, a power of two.
func (d *Doc) emptySlots(n int) []uint64 {
	n = 1 << bits.Len(uint(n-1))
	if cap(d.slots) < n {
		d.slots = make([]uint64, n)
		d.seed = maphash.MakeSeed()
	}
	slots := d.slots[:n]
	clear(slots)
	return slots
}

func (d *Doc) duplicate(key, other int32) error {
	text, offset := decode(d.body(key)), int(d.nodes[key].start)
	if says(d.body(other), text) {
		return syntaxError(offset, "duplicate key %s", quote(text))
	}
	return syntaxError(offset, "key %s is another key in different case", quote(text))
}

// body returns what stands between the quotes of a string.
func (d *Doc) body(i int32) []byte {
	n := &d.nodes[i]
	return d.data[n.start+1 : n.end-1]
}
