//go:build unix

package builtin_test

import (
	"strings"
	"syscall"
	"testing"

	"capgate/builtin"
)

// TestCrowd: a search for which too few files can be opened says so, and not that there is no more.
func TestCrowd(t *testing.T) {
	deep := strings.Repeat("d/", 40) + "a"
	root := tree(t, deep+"=hello", "b=hello")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read{in="+root.Dir+"}")})
	all := step{"all", "search", `{"text":"hello"}`, "b:1: hello\n" + deep + ":1: hello"}
	all.run(t, conn)
	var most syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		t.Fatal(err)
	}
	few := most
	few.Cur = 36
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	got := call(t, conn, "search", `{"text":"hello"}`).text()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &most); err != nil {
		t.Fatal(err)
	}
	if want := "error: too many files are open"; !strings.HasPrefix(got, want) {
		t.Errorf("with few files it says %q, not %q", got, want)
	}
	all.run(t, conn)
}
