//go:build unix

package brief_test

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"capgate/brief"
)

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

// TestFileToldLong writes to what takes a little long: for far longer, others are announced.
func TestFileToldLong(t *testing.T) {
	if !brief.IsServed {
		t.Skip("all is announced here")
	}
	piece := make([]byte, 64<<10) // as much as one takes
	b := fifo(t, "0.01")
	if _, err := b.Write(piece); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if _, err := b.Write(piece); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if left := time.Until(b.Until()); left < 50*took {
		t.Errorf("a write took %v, and others are announced for %v", took, left)
	}
}

// TestFileLong writes a long piece, which is announced.
func TestFileLong(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := fifo(t, "0.3 0")
	n := meanwhile(func() {
		if _, err := b.Write(make([]byte, 128<<10)); err != nil {
			t.Error(err)
		}
	})
	if n < 10 {
		t.Errorf("nothing went on while it was written: %d", n)
	}
}

// TestSocketNeverBlocks reads from and writes to descriptors that somebody who shares them has
// made wait.
func TestSocketNeverBlocks(t *testing.T) {
	if !brief.IsServed {
		t.Skip("package net waits on such")
	}
	networks(t, func(t *testing.T, here, _ net.Conn) {
		c, ok := here.(syscall.Conn)
		if !ok {
			t.Fatal("it has no descriptor")
		}
		raw, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		set := func(nonblock bool) {
			t.Helper()
			if failed := raw.Control(func(fd uintptr) { err = syscall.SetNonblock(int(fd), nonblock) }); failed != nil || err != nil {
				t.Fatal(failed, err)
			}
		}
		set(false)
		over := time.AfterFunc(2*time.Second, func() {
			t.Error("it waits in a system call")
			_ = syscall.Shutdown(descriptor(raw), syscall.SHUT_RDWR)
		})
		defer over.Stop()
		s := brief.NewSocket(here)
		if !s.Quiet() {
			t.Error("a connection on which nothing came is not quiet")
		}
		_ = here.SetDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := s.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("reading says %v", err)
		}
		for err = nil; err == nil; {
			_, err = s.Write(make([]byte, 64<<10))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("writing says %v", err)
		}
	})
}

func descriptor(raw syscall.RawConn) (n int) {
	_ = raw.Control(func(fd uintptr) { n = int(fd) })
	return n
}

// TestSocketSaysHowFar writes until it is too late: what is said to be written is there.
func TestSocketSaysHowFar(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		s, said := brief.NewSocket(here), int64(0)
		_ = here.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		for {
			n, err := s.Write(make([]byte, 60_000))
			said += int64(n)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				break
			}
			if n != 60_000 || err != nil {
				t.Fatalf("%d bytes were written, and %v", n, err)
			}
		}
		_ = here.Close()
		if came, err := io.Copy(io.Discard, there); came != said || err != nil {
			t.Errorf("%d bytes came of %d, and %v", came, said, err)
		}
	})
}

// TestSocketBreaksNoPipe writes to who is gone. The process hears nothing of it, which would
// take it for the end of whoever reads what it prints.
func TestSocketBreaksNoPipe(t *testing.T) {
	if !brief.IsServed {
		t.Skip("package net has the signal come")
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGPIPE)
	defer signal.Stop(heard)
	networks(t, func(t *testing.T, here, there net.Conn) {
		_ = there.Close()
		s := brief.NewSocket(here)
		var err error
		for range 1000 {
			if _, err = s.Write([]byte("x")); errors.Is(err, syscall.EPIPE) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("it says %v", err)
		}
		select {
		case <-heard:
			t.Error("a signal came")
		case <-time.After(20 * time.Millisecond):
		}
	})
}
