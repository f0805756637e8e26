//go:build unix

package builtin_test

import (
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"capgate/builtin"
)

// makeSpecial makes a pipe and a socket.
func makeSpecial(t *testing.T, dir string) {
	t.Helper()
	if err := syscall.Mkfifo(dir+"/pipe", 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the path of a socket must be short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if _, err := os.Lstat(dir + "/socket"); err != nil {
		t.Fatal(err)
	}
}

// TestPipeIsNoDirectory: nobody is kept waiting by a pipe where a directory could be.
func TestPipeIsNoDirectory(t *testing.T) {
	root := tree(t, "a=x")
	pipe := root.Dir + "/pipe"
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	conn := open(t, "fs", builtin.Options{Root: root, Decide: everything(t)})
	for _, s := range []step{
		{"it has no entries", "list", `{"path":"pipe"}`, "error: "},
		{"nothing is to be found in it", "search", `{"path":"pipe","text":"x"}`, "error: "},
		{"nothing is below it", "read", `{"path":"pipe/x"}`, "error: "},
		{"nothing is put there", "write", `{"path":"pipe/x","content":"x"}`, "error: "},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.run(t, conn)
		}()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil { // lets it go on
				_ = w.Close() // nothing was written
			}
			<-done
			t.Fatalf("%s: the call waits", s.name)
		}
	}
}
