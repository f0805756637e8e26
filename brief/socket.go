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
	s.in.step, s.in.late, s.out.step, s.look.step = s.in.receive, s.in.lend, s.out.send, s.look.peek
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

// Memory is lent for what comes.
type Memory interface {
	Lend() []byte
	Return(p []byte)
}

// Receive waits for what comes next, and reads it into memory that is lent when it is there:
// a connection on which nothing comes needs none. Whoever has asked returns it, all of it;
// with an error none is lent.
func (s *Socket) Receive(m Memory) ([]byte, error) {
	if !isServed || s.raw == nil {
		return s.receive(m)
	}
	p, n, err := s.in.fetch(m, s.raw.Read)
	if err == nil {
		return p[:n], nil
	}
	if !errors.Is(err, io.EOF) {
		err = s.failed("read", err)
	}
	return nil, err
}

// receive is Receive as package net has it.
func (s *Socket) receive(m Memory) ([]byte, error) {
	if s.CanPeek() {
		_, _ = s.wait() // the error is that of Read as well
	}
	p := m.Lend()
	n, err := s.conn.Read(p)
	if n == 0 || err != nil {
		m.Return(p)
		return nil, err
	}
	return p[:n], nil
}

// Write writes all there is.
func (s *Socket) Write(p []byte) (int, error) {
	if !s.isServed(p) {
		return s.conn.Write(p)
	}
	n, err := s.out.move(p, s.raw.Write)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.ENOSYS): // some sandboxes know one way to write only
		rest, err := s.conn.Write(p[n:])
		return n + rest, err
	}
	return n, s.failed("write", err)
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
	late func(fd uintptr) (done bool) // one that lends memory
	from Memory
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

// fetch is move to memory that is lent for it.
func (t *transfer) fetch(m Memory, by func(func(fd uintptr) bool) error) ([]byte, int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.from, t.n, t.err = m, 0, nil
	err := by(t.late)
	if err == nil {
		err = t.err
	}
	p := t.p
	t.from, t.p = nil, nil
	if err != nil && p != nil {
		m.Return(p)
		p = nil
	}
	return p, t.n, err
}

// lend receives into memory that it returns where nothing has come.
func (t *transfer) lend(fd uintptr) bool {
	t.p = t.from.Lend()
	if t.receive(fd) {
		return true
	}
	t.from.Return(t.p)
	t.p = nil
	return false
}

func (t *transfer) receive(fd uintptr) bool { return t.took(receive(fd, t.p, 0)) }

func (t *transfer) read(fd uintptr) bool { return t.took(read(fd, t.p)) }

func (t *transfer) send(fd uintptr) bool { return t.all(fd, send) }

func (t *transfer) write(fd uintptr) bool { return t.all(fd, write) }

func (t *transfer) peek(fd uintptr) bool {
	if !t.took(peek(fd)) {
		t.err = syscall.EAGAIN
	}
	return true
}

// all hands over everything, and reports false where it has to wait before.
func (t *transfer) all(fd uintptr, call func(uintptr, []byte) (int, syscall.Errno)) bool {
	for t.n < len(t.p) && t.err == nil {
		if !t.took(call(fd, t.p[t.n:])) {
			return false
		}
	}
	return true
}

// took notes what came of a call, and reports false where there is nothing yet.
func (t *transfer) took(n int, err syscall.Errno) bool {
	switch {
	case err == syscall.EAGAIN:
		return false
	case err != 0:
		t.err = err
	case n == 0:
		t.err = io.EOF // of the connection; none takes nothing
	}
	t.n += n
	return true
}
