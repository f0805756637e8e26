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
	// mostSkipped is how many times its limit a line may be longer than that, to be
	// passed over.
	mostSkipped = 16
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
// follows the last line break is no line. Of one that is too long it returns the
// beginning, with errLong: then skip goes on.
func (r *lines) next() ([]byte, error) {
	for {
		if i := bytes.IndexByte(r.buf[r.seen:r.end], '\n'); i >= 0 {
			line := r.buf[r.start : r.seen+i]
			if len(line) > r.limit {
				return line, errLong
			}
			r.seen += i + 1
			r.start = r.seen
			return line, nil
		}
		r.seen = r.end
		if line := r.buf[r.start:r.end]; len(line) > r.limit {
			return line, errLong
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// skip passes over a line that is too long, and returns the end of it, which holds
// until the next line. It keeps no more of it, and gives up on one without an end.
func (r *lines) skip() ([]byte, error) {
	for passed := 0; passed/mostSkipped <= r.limit; {
		if i := bytes.IndexByte(r.buf[r.seen:r.end], '\n'); i >= 0 {
			end := r.buf[max(r.start, r.seen+i-idWithin) : r.seen+i]
			r.seen += i + 1
			r.start = r.seen
			return end, nil
		}
		from := max(r.start, r.end-idWithin)
		passed += from - r.start
		r.start, r.seen = from, r.end
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	return nil, errLong
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
