package upstream

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"sync"
)

// largeBody is the length from which a body is one that says when it has been
// read. A shorter one is a reader that net/http knows, which goes out in one write
// with the headers.
const largeBody = 32 << 10

// parcel is the body of a request. net/http may read it after a response has
// come, or once more for another connection: it is out of use when whoever made
// it has released it and every reader of it is closed.
type parcel struct {
	data []byte
	sent func() // called then, of a large one; nil: nobody wants to know

	may     func() error // says why it must not go any more; nil: nothing does
	refused error        // what it said

	mu   sync.Mutex
	uses int
}

func newParcel(data []byte) *parcel { return &parcel{data: data, uses: 1} }

var errReleased = errors.New("the body is out of use")

// open returns a reader of the body, if it may go still. Without anybody to be told there
// is no need to know when it is closed.
func (p *parcel) open() (io.ReadCloser, error) {
	if p.may != nil {
		if p.refused = p.may(); p.refused != nil {
			return nil, p.refused
		}
	}
	if p.sent == nil {
		return io.NopCloser(bytes.NewReader(p.data)), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.uses == 0 {
		return nil, errReleased
	}
	p.uses++
	return &unpacking{parcel: p, rest: p.data}, nil
}

func (p *parcel) release() {
	if p.sent == nil {
		return
	}
	p.mu.Lock()
	p.uses--
	last := p.uses == 0
	p.mu.Unlock()
	if last {
		p.sent()
	}
}

// unpacking reads a parcel. Once it is closed, and whoever is reading has
// returned, it touches no byte of it any more.
type unpacking struct {
	parcel *parcel

	mu     sync.Mutex
	rest   []byte
	busy   bool
	closed bool
}

// Read copies what comes next.
func (u *unpacking) Read(dst []byte) (int, error) {
	return u.use(func(rest []byte) (int, error) { return copy(dst, rest), nil }, len(dst))
}

// WriteTo writes what is left in one piece.
func (u *unpacking) WriteTo(w io.Writer) (int64, error) {
	n, err := u.use(w.Write, math.MaxInt)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return int64(n), err
}

// use has fn look at as much as most of what is left. Close does not wait for it.
func (u *unpacking) use(fn func(rest []byte) (int, error), most int) (int, error) {
	u.mu.Lock()
	switch {
	case u.closed || u.busy:
		u.mu.Unlock()
		return 0, errReleased
	case len(u.rest) == 0:
		u.mu.Unlock()
		return 0, io.EOF
	}
	u.busy = true
	rest := u.rest[:min(len(u.rest), most)]
	u.mu.Unlock()
	n, err := fn(rest)
	u.mu.Lock()
	u.busy = false
	u.rest = u.rest[n:]
	closed := u.closed
	u.mu.Unlock()
	if closed {
		u.parcel.release()
	}
	return n, err
}

// Close ends the use of the parcel.
func (u *unpacking) Close() error {
	u.mu.Lock()
	again, busy := u.closed, u.busy
	u.closed = true
	u.mu.Unlock()
	if !again && !busy {
		u.parcel.release()
	}
	return nil
}

// outlet is a connection to a server that takes a parcel in one piece, where
// net/http would take it through a small buffer.
type outlet struct{ *net.TCPConn }

// ReadFrom writes what a reader has.
func (o *outlet) ReadFrom(r io.Reader) (int64, error) {
	limited, ok := r.(*io.LimitedReader)
	if !ok {
		return o.TCPConn.ReadFrom(r)
	}
	u, ok := limited.R.(*unpacking)
	if !ok {
		return o.TCPConn.ReadFrom(r)
	}
	var written int64
	for limited.N > 0 {
		n, err := u.use(o.TCPConn.Write, int(min(limited.N, maxPiece)))
		written += int64(n)
		limited.N -= int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return written, nil
		case err != nil:
			return written, err
		}
	}
	return written, nil
}

// maxPiece is how much of a parcel is written at once.
const maxPiece = 1 << 20
