package upstream

import (
	"bytes"
	"errors"
	"io"
)

const (
	// firstRead is how much is read at once, until a line turns out to be longer.
	firstRead = 64 << 10
	// keepRead is the size of the largest buffer that outlives its line.
	keepRead = 2 << 20
)

var errLong = errors.New("a message is too long")

// lines reads what ends with a line break.
type lines struct {
	src   io.Reader
	limit int

	buf              []byte
	start, seen, end int // where the line begins, is known to go on, and was read to
}

// next returns the next line, without its end. It holds until the one after. What
// follows the last line break is no line.
func (r *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.buf[r.seen:r.end], '\n'); i >= 0 {
			line := r.buf[r.start : r.seen+i]
			r.seen += i + 1
			r.start = r.seen
			if len(line) > r.limit {
				return nil, errLong
			}
			return line, nil
		}
		r.seen = r.end
		if r.end-r.start > r.limit {
			return nil, errLong
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads once, behind what there is of the line.
func (r *lines) fill() error {
	r.makeRoom()
	n, err := r.src.Read(r.buf[r.end:])
	r.end += n
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

func (r *lines) makeRoom() {
	rest := r.end - r.start
	size := len(r.buf)
	switch {
	case size == 0, rest == 0 && size > keepRead:
		size = firstRead
	case r.end == size && rest > size/2:
		size = min(2*size, r.limit+firstRead)
	case rest > 0 && r.end < size:
		return
	}
	into := r.buf
	if size != len(r.buf) {
		into = make([]byte, size)
	}
	copy(into, r.buf[r.start:r.end])
	r.buf, r.seen, r.start, r.end = into, r.seen-r.start, 0, rest
}
