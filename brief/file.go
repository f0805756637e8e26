package brief

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

const (
	soon      = time.Millisecond // after another write one may go without a word
	longWrite = time.Millisecond
	told      = 100 // times as long as a long write took, the scheduler is told of others
)

// File writes to a file, as its own method does.
type File struct {
	*os.File
	raw   syscall.RawConn // nil where nothing goes without a word
	out   transfer
	last  time.Time // one was over
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
	write := f.File.Write
	if f.raw != nil && len(p) > 0 && len(p) <= maxPiece && f.isBusy(began) {
		write = f.unannounced
	}
	n, err := write(p)
	f.last = time.Now()
	if took := f.last.Sub(began); took > longWrite {
		f.until = f.last.Add(told * took)
	}
	return n, err
}

// isBusy reports whether there is a reason to hurry, and none to fear that it takes long.
func (f *File) isBusy(now time.Time) bool { return now.Sub(f.last) < soon && !now.Before(f.until) }

// unannounced writes without a word.
func (f *File) unannounced(p []byte) (int, error) {
	n, err := f.out.move(p, f.raw.Write)
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
