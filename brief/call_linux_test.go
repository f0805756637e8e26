//go:build (amd64 || arm64) && !race && !msan && !asan

package brief_test

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"capgate/brief"
)

// TestFileToldLong writes to what takes a little long: for far longer, others are announced.
func TestFileToldLong(t *testing.T) {
	piece := make([]byte, 64<<10) // as much as one takes
	b := fifo(t, "0.01")
	if _, err := b.Write(piece); err != nil {
		t.Fatal(err)
	}
	b.Hurry()
	began := time.Now()
	if _, err := b.Write(piece); err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if left := time.Until(b.Until()); left < 50*took {
		t.Errorf("a write took %v, and others are announced for %v", took, left)
	}
}

// TestSocketNeverBlocks reads from and writes to descriptors that somebody who shares them has
// made wait.
func TestSocketNeverBlocks(t *testing.T) {
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

// TestSocketBreaksNoPipe writes to who is gone. The process hears nothing of it, which would
// take it for the end of whoever reads what it prints.
func TestSocketBreaksNoPipe(t *testing.T) {
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

// TestSocketInSandbox writes where a sandbox refuses the system call that is used unannounced.
func TestSocketInSandbox(t *testing.T) {
	networks(t, func(t *testing.T, here, there net.Conn) {
		written := make(chan error)
		go func() { // whose thread ends with it, and the filter with that
			runtime.LockOSThread()
			err := refuse(syscall.SYS_SENDTO, syscall.EPERM)
			if err == nil {
				_, err = brief.NewSocket(here).Write([]byte("well"))
			}
			written <- err
		}()
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 10)
		if n, err := there.Read(got); string(got[:n]) != "well" || err != nil {
			t.Errorf("%q came, and %v", got[:n], err)
		}
	})
}

// refuse has this thread be refused a system call from now on.
func refuse(call uint32, with syscall.Errno) error {
	filter := []syscall.SockFilter{
		{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS}, // the number
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: call, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0x00050000 | uint32(with)}, // SECCOMP_RET_ERRNO
		{Code: syscall.BPF_RET | syscall.BPF_K, K: 0x7fff0000},                // SECCOMP_RET_ALLOW
	}
	const noNewPrivileges, setSeccomp, seccompFilter = 38, 22, 2
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, noNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return err
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, err := syscall.RawSyscall(syscall.SYS_PRCTL, setSeccomp, seccompFilter, uintptr(unsafe.Pointer(&program))); err != 0 {
		return err
	}
	return nil
}
