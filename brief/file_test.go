//go:build unix

package brief_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"capgate/brief"
)

func TestFileWrites(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	b := brief.NewFile(f)
	if b.IsLocal() != brief.IsServed {
		t.Errorf("a file on this machine may be written without a word: %v", b.IsLocal())
	}
	var want strings.Builder
	for _, length := range []int{0, 1, 1000, 64 << 10, 1 << 20} {
		piece := strings.Repeat("x", length) + "\n"
		want.WriteString(piece)
		if n, err := b.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Fatalf("%d of %d bytes were written, and %v", n, len(piece), err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want.String() {
		t.Errorf("%d bytes are there of %d, and %v", len(got), want.Len(), err)
	}
}

// TestFileFails compares what a file says with what one says that is written without a word.
func TestFileFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		open func(t *testing.T) *os.File
		is   error
	}{
		{"full", func(t *testing.T) *os.File { return open(t, "/dev/full", os.O_WRONLY) }, syscall.ENOSPC},
		{"not for writing", func(t *testing.T) *os.File { return open(t, "/dev/full", os.O_RDONLY) }, syscall.EBADF},
		{"closed", func(t *testing.T) *os.File {
			f := open(t, "/dev/full", os.O_WRONLY)
			f.Close()
			return f
		}, fs.ErrClosed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, want := tt.open(t).Write([]byte("x"))
			f := tt.open(t)
			b := brief.NewFile(f)
			b.Hurry()
			n, err := b.Write([]byte("x"))
			if n != 0 || !errors.Is(err, tt.is) || err.Error() != want.Error() {
				t.Errorf("a file says %v, and it says %v", want, err)
			}
			var path *fs.PathError
			if !errors.As(err, &path) {
				t.Errorf("%v has no path", err)
			}
		})
	}
}

func open(t *testing.T, name string, flag int) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, flag, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// TestFileClosedLater writes to a file that is closed after it was looked at.
func TestFileClosedLater(t *testing.T) {
	f := open(t, filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_WRONLY)
	b := brief.NewFile(f)
	b.Hurry()
	_ = f.Close()
	_, want := f.Write([]byte("x"))
	if _, err := b.Write([]byte("x")); !errors.Is(err, fs.ErrClosed) || err.Error() != want.Error() {
		t.Errorf("a closed file says %v, and it says %v", want, err)
	}
}

// TestFileElsewhere: what is no file of a file system that is on this machine may wait for ever.
func TestFileElsewhere(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if brief.NewFile(w).IsLocal() {
		t.Error("a pipe may be written to without a word")
	}
}

// fifo is a file on this machine that takes pieces, and has a program read so many of them
// and pause before each.
func fifo(t *testing.T, pauses string) *brief.File {
	t.Helper()
	name := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open(name, syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := brief.NewFile(os.NewFile(uintptr(fd), name))
	t.Cleanup(func() { _ = b.Close() })
	reader := exec.CommandContext(t.Context(), "sh", "-c", `for p in $0; do sleep $p; head -c 65536; done`, pauses)
	reader.Stdin = open(t, name, os.O_RDONLY)
	if err := reader.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Wait() })
	return b
}

// meanwhile counts what goes on in this process while something is done.
func meanwhile(do func()) int64 {
	var ticks atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				ticks.Add(1)
			case <-stop:
				return
			}
		}
	}()
	do()
	n := ticks.Load()
	close(stop)
	<-stopped
	return n
}

// TestFileSlow writes to what takes long twice. Whatever else goes on in this process waits for
// the first write at most.
func TestFileSlow(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b, piece := fifo(t, "0.05 0.3"), make([]byte, 64<<10)
	for range 2 { // the first of which it takes
		b.Hurry()
		if _, err := b.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if b.IsUnannounced() {
		t.Error("a write that took long is followed by others without a word")
	}
	b.Hurry()
	if n := meanwhile(func() {
		if _, err := b.Write(piece); err != nil {
			t.Error(err)
		}
	}); n < 10 {
		t.Errorf("nothing went on while it was written: %d", n)
	}
}

// TestFileAlone writes to what takes long, some time after the write before: it is announced, as
// nobody is in a hurry.
func TestFileAlone(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b, piece := fifo(t, "0.3"), make([]byte, 64<<10)
	if _, err := b.Write(piece); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond)
	if n := meanwhile(func() {
		if _, err := b.Write(piece); err != nil {
			t.Error(err)
		}
	}); n < 10 {
		t.Errorf("nothing went on while it was written: %d", n)
	}
}

// TestFileStaysQuick writes to a quick file: it goes on without a word.
func TestFileStaysQuick(t *testing.T) {
	for range 20 { // others have the processor for longer now and then
		b := brief.NewFile(open(t, filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_WRONLY))
		for range 10 {
			if _, err := b.Write([]byte("line\n")); err != nil {
				t.Fatal(err)
			}
		}
		if b.IsUnannounced() == brief.IsServed {
			return
		}
	}
	t.Error("no write to a quick file is followed by one without a word")
}

// TestFileLong writes a long piece, which is announced.
func TestFileLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := fifo(t, "0.3 0")
	b.Hurry()
	n := meanwhile(func() {
		if _, err := b.Write(make([]byte, 128<<10)); err != nil {
			t.Error(err)
		}
	})
	if n < 10 {
		t.Errorf("nothing went on while it was written: %d", n)
	}
}

func BenchmarkFile(b *testing.B) {
	line := []byte(strings.Repeat("x", 800) + "\n")
	for _, name := range []string{"file", "brief"} {
		b.Run(name, func(b *testing.B) {
			f, err := os.OpenFile(filepath.Join(b.TempDir(), "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			write := f.Write
			if name == "brief" {
				write = brief.NewFile(f).Write
			}
			for b.Loop() {
				if _, err := write(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
