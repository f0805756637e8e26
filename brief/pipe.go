package brief

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Pipe is one end of a pipe to another program.
type Pipe struct {
	*os.File
	raw syscall.RawConn // nil where nothing goes without a word
	in  transfer
}

// NewPipe returns what reads from an end, or writes to it. One that blocks is read and
// written as ever.
func NewPipe(f *os.File) *Pipe {
	p := &Pipe{File: f}
	if isServed && !blocks(f) {
		p.raw, _ = f.SyscallConn() // nil if there is none
	}
	p.in.step = p.in.read
	return p
}

// Read reads what has come, or waits for it.
func (p *Pipe) Read(b []byte) (int, error) {
	if p.raw == nil || len(b) == 0 || len(b) > maxPiece {
		return p.File.Read(b)
	}
	n, err := p.in.move(b, p.raw.Read)
	var failed syscall.Errno
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case errors.As(err, &failed):
		return n, &fs.PathError{Op: "read", Path: p.Name(), Err: failed}
	}
	return p.File.Read(b) // it is closed, or too late
}

// Once writes to the descriptor of the pipe what it takes now, and says that it is full by EAGAIN.
func (p *Pipe) Once(fd uintptr, b []byte) (int, error) {
	if p.raw == nil || len(b) == 0 || len(b) > maxPiece {
		return once(fd, b)
	}
	n, err := write(fd, b)
	if err != 0 {
		return n, err
	}
	return n, nil
}
