package door

import (
	"errors"
	"io"
	"net/http"
)

// body is what comes behind a head.
type body struct {
	guest   *guest
	left    int64
	skipped bool // the answer has begun
}

// Read reads what has come, and not more than was announced.
func (b *body) Read(p []byte) (int, error) {
	g := b.guest
	switch {
	case b.skipped:
		return 0, http.ErrBodyReadAfterClose
	case b.left == 0:
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), b.left)]
	var n int
	var err error
	if len(g.buf) > 0 {
		n = copy(p, g.buf)
		g.buf = g.buf[n:]
	} else {
		n, err = g.line.Read(p)
	}
	b.left -= int64(n)
	switch {
	case b.left == 0:
		g.taken()
		return n, io.EOF
	case errors.Is(err, io.EOF):
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// here reports whether all that is left has come already.
func (b *body) here() bool { return int64(len(b.guest.buf)) >= b.left }

// skip leaves out what has come and nobody has read. Nobody will: the answer begins.
func (b *body) skip() {
	b.skipped = b.left > 0
	n := min(int64(len(b.guest.buf)), b.left)
	b.guest.buf = b.guest.buf[n:]
	b.left -= n
}

// Close does nothing: what is left is skipped or the connection is closed.
func (b *body) Close() error { return nil }
