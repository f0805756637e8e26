package brief

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// maxPiece is what a socket takes without a word. Copying more takes long enough for the
// scheduler to know.
const maxPiece = 64 << 10

// Socket reads from a connection and writes to it, as its own methods do.
type Socket struct {
	conn    net.Conn
	raw     syscall.RawConn // nil if there is none
	in, out transfer
	look    transfer // moves nothing
}

// NewSocket returns what reads from a connection and writes to it.
func NewSocket(conn net.Conn) *Socket {
	s := &Socket{conn: conn}
	if c, ok := conn.(syscall.Conn); ok {
		s.raw, _ = c.SyscallConn() // nil if there is none
	}
	s.in.step, s.out.step, s.look.step = s.in.receive, s.out.send, s.look.peek
	return s
}

// Read reads what has come, or waits for it.
func (s *Socket) Read(p []byte) (int, error) {
	if !s.isServed(p) {
		return s.conn.Read(p)
	}
	n, err := s.in.move(p, s.raw.Read)
	if err != nil && !errors.Is(err, io.EOF) {
		err = s.failed("read", err)
	}
	return n, err
}

// Write writes all there is.
func (s *Socket) Write(p []byte) (int, error) {
	if !s.isServed(p) {
		return s.conn.Write(p)
	}
	n, err := s.out.move(p, s.raw.Write)
	if err != nil {
		return n, s.failed("write", err)
	}
	return n, nil
}

func (s *Socket) isServed(p []byte) bool {
	return isServed && s.raw != nil && len(p) > 0 && len(p) <= maxPiece
}

// failed is an error as a connection returns it.
func (s *Socket) failed(op string, err error) error {
	local := s.conn.LocalAddr()
	return &net.OpError{Op: op, Net: local.Network(), Source: local, Addr: s.conn.RemoteAddr(), Err: reason(op, err)}
}

// reason is why a system call failed, or could not be made.
func reason(op string, err error) error {
	var before *net.OpError // of the one that could not
	if errors.As(err, &before) {
		return before.Err
	}
	return os.NewSyscallError(op, err)
}

// transfer moves bytes in one direction. One at a time does.
type transfer struct {
	mu   sync.Mutex
	step func(fd uintptr) (done bool) // a method of it; made once
	p    []byte
	n    int
	err  error
}

// move has a descriptor take steps until it is done, and says how far it came.
func (t *transfer) move(p []byte, by func(func(fd uintptr) bool) error) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.p, t.n, t.err = p, 0, nil
	err := by(t.step)
	t.p = nil
	if err == nil {
		err = t.err
	}
	return t.n, err
}

func (t *transfer) receive(fd uintptr) bool {
	n, err := receive(fd, t.p, 0)
	if err == syscall.EAGAIN {
		return false
	}
	t.took(n, err)
	return true
}

func (t *transfer) send(fd uintptr) bool { return t.all(fd, send) }

func (t *transfer) write(fd uintptr) bool { return t.all(fd, write) }

func (t *transfer) peek(fd uintptr) bool {
	t.took(peek(fd))
	return true
}

// all hands over everything, and reports false where it has to wait before.
func (t *transfer) all(fd uintptr, call func(uintptr, []byte) (int, syscall.Errno)) bool {
	for t.n < len(t.p) && t.err == nil {
		n, err := call(fd, t.p[t.n:])
		if err == syscall.EAGAIN {
			return false
		}
		t.took(n, err)
	}
	return true
}

func (t *transfer) took(n int, err syscall.Errno) {
	switch {
	case err != 0:
		t.err = err
	case n == 0:
		t.err = io.EOF // of the connection; none takes nothing
	}
	t.n += n
}
