package brief

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	longWrite = time.Millisecond
	told      = 100 // times as long as a long write took, the scheduler is told of others
)

// File writes to a file, as its own method does.
type File struct {
	*os.File
	raw   syscall.RawConn // nil where nothing goes without a word
	out   transfer
	until time.Time // the scheduler is told
}

// NewFile returns what writes to a file. One goroutine at a time does.
func NewFile(f *os.File) *File {
	b := &File{File: f}
	if isServed && isLocal(f) {
		b.raw, _ = f.SyscallConn() // nil if there is none
	}
	b.out.step = b.out.write
	return b
}

// Write writes all there is.
func (f *File) Write(p []byte) (int, error) {
	began := time.Now()
	if f.raw == nil || len(p) == 0 || len(p) > maxPiece || began.Before(f.until) {
		return f.File.Write(p)
	}
	n, err := f.out.move(p, f.raw.Write)
	if took := time.Since(began); took > longWrite {
		f.until = began.Add(told * took)
	}
	var failed syscall.Errno
	switch {
	case err == nil:
		return n, nil
	case errors.As(err, &failed):
		return n, &fs.PathError{Op: "write", Path: f.Name(), Err: failed}
	}
	rest, err := f.File.Write(p[n:]) // it is closed, or waits
	return n + rest, err
}
