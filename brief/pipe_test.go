//go:build unix

package brief_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"capgate/brief"
)

// TestPipeReads compares what an end of a pipe says with what one says that is read without a word.
func TestPipeReads(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(r, w *os.File)
		length  int
		is      error
	}{
		{"some", func(_, w *os.File) { _, _ = w.WriteString("some") }, 10, nil},
		{"more", func(_, w *os.File) { _, _ = w.WriteString("more than that") }, 10, nil},
		{"nothing", func(*os.File, *os.File) {}, 0, nil},
		{"later", func(_, w *os.File) { time.AfterFunc(20*time.Millisecond, func() { _, _ = w.WriteString("later") }) }, 10, nil},
		{"the end", func(_, w *os.File) { _ = w.Close() }, 10, io.EOF},
		{"too late", func(r, _ *os.File) { _ = r.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) }, 10, os.ErrDeadlineExceeded},
		{"closed", func(r, _ *os.File) { _ = r.Close() }, 10, os.ErrClosed},
		{"closed meanwhile", func(r, _ *os.File) { time.AfterFunc(20*time.Millisecond, func() { _ = r.Close() }) }, 10, os.ErrClosed},
		{"very long", func(_, w *os.File) { _, _ = w.WriteString("some") }, 1 << 20, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var said [2]string
			for i, of := range []func(*os.File) io.Reader{
				func(f *os.File) io.Reader { return f },
				func(f *os.File) io.Reader { return brief.NewPipe(f) },
			} {
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				defer w.Close()
				reader := of(r)
				tt.prepare(r, w)
				p := make([]byte, tt.length)
				n, err := reader.Read(p)
				if !errors.Is(err, tt.is) {
					t.Errorf("it says %v", err)
				}
				said[i] = string(p[:n])
				if err != nil {
					said[i] += err.Error()
				}
			}
			if said[0] != said[1] {
				t.Errorf("a file says %q, and a pipe %q", said[0], said[1])
			}
		})
	}
}

// TestPipeOnce writes until a pipe is full, and after somebody has read.
func TestPipeOnce(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	p := brief.NewPipe(w)
	raw, err := w.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var sent bytes.Buffer
	fill := func() error {
		var failed error
		if err := raw.Write(func(fd uintptr) bool {
			for failed == nil {
				piece := bytes.Repeat([]byte{byte('a' + sent.Len()%26)}, 100<<10) // some of which it takes
				var n int
				n, failed = p.Once(fd, piece[:10<<10+sent.Len()%2*90<<10])
				sent.Write(piece[:max(n, 0)])
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		return failed
	}
	var got []byte
	for range 3 {
		if err := fill(); !errors.Is(err, syscall.EAGAIN) {
			t.Fatalf("a pipe that is full says %v", err)
		}
		piece := make([]byte, sent.Len()-len(got))
		if _, err := io.ReadFull(r, piece); err != nil {
			t.Fatal(err)
		}
		got = append(got, piece...)
	}
	if !bytes.Equal(got, sent.Bytes()) || len(got) == 0 {
		t.Errorf("%d bytes were sent, and others came", sent.Len())
	}
	_ = r.Close()
	if err := fill(); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("a pipe that nobody reads says %v", err)
	}
}

// TestPipeBlocks: what may keep its reader waiting is not read without a word.
func TestPipeBlocks(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		t.Fatal(err)
	}
	r, w := os.NewFile(uintptr(ends[0]), "r"), os.NewFile(uintptr(ends[1]), "w")
	defer r.Close()
	defer w.Close()
	if p := brief.NewPipe(r); p.IsUnannounced() {
		t.Error("a pipe that blocks is read without a word")
	}
	if err := syscall.SetNonblock(ends[0], true); err != nil {
		t.Fatal(err)
	}
	if p := brief.NewPipe(r); p.IsUnannounced() != brief.IsServed {
		t.Errorf("a pipe that does not block is read without a word: %v", p.IsUnannounced())
	}
}
