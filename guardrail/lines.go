package guardrail

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// readAhead is how much of a file is read at a time.
const readAhead = 32 << 10

// lines reads a file line by line.
type lines struct {
	f    *os.File
	r    *bufio.Reader
	buf  []byte
	n    int   // lines read
	size int64 // their bytes
}

// errLong is said of a line that no log has written.
var errLong = fmt.Errorf("a line is longer than %d bytes", maxLine)

// tornError is the rest of a file that is no whole line.
type tornError struct{ rest []byte }

func (e *tornError) Error() string {
	return fmt.Sprintf("the last %d bytes are no whole line", len(e.rest))
}

func readLines(dir, name string) (*lines, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &lines{f: f, r: bufio.NewReaderSize(f, readAhead)}, nil
}

// next returns a line without its line feed, valid until the next call; io.EOF
// behind the last one, and a *tornError if that one is not whole.
func (l *lines) next() ([]byte, error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		whole := err == nil
		if whole && len(l.buf) == 0 {
			l.took(len(part))
			return part[:len(part)-1], nil
		}
		l.buf = append(l.buf, part...)
		switch {
		case len(l.buf) > maxLine+1:
			return nil, errLong
		case whole:
			l.took(len(l.buf))
			return l.buf[:len(l.buf)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case !errors.Is(err, io.EOF):
			return nil, err
		case len(l.buf) > 0:
			return nil, &tornError{bytes.Clone(l.buf)}
		default:
			return nil, io.EOF
		}
	}
}

func (l *lines) took(n int) {
	l.n++
	l.size += int64(n)
}

func (l *lines) close() { l.f.Close() }
