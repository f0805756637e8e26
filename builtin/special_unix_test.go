//go:build unix

package builtin_test

import (
	"net"
	"os"
	"syscall"
	"testing"
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
