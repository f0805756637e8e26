package builtin_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"capgate/builtin"
	"capgate/capability"
)

// TestExchanged: a file and a link trade names in a single step, which is fast
// enough to fall between looking at a file and opening it.
func TestExchanged(t *testing.T) {
	root := tree(t, "key=outside", "real=inside", "other -> key")
	decide := holds(t, "fs.read{in="+root.Dir+",paths=[real]}", "fs.write{in="+root.Dir+",paths=[real]}")
	conn := open(t, "fs", builtin.Options{Root: capability.Root{Dir: root.Dir, Real: root.Dir}, Decide: decide})
	exchange := func(int) error {
		return unix.Renameat2(unix.AT_FDCWD, root.Dir+"/real", unix.AT_FDCWD, root.Dir+"/other", unix.RENAME_EXCHANGE)
	}
	if err := exchange(0); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		skip(t, "renameat2", "names cannot be exchanged here")
	}
	swapping(t, exchange, func(i int) {
		if o := call(t, conn, "read", `{"path":"real"}`); !o.IsError && strings.Contains(o.text(), "outside") {
			t.Fatalf("round %d: %s", i, o.text())
		}
		call(t, conn, "write", `{"path":"real","content":"","mode":"append"}`)
	})
	if data, err := os.ReadFile(root.Dir + "/key"); err != nil || string(data) != "outside" {
		t.Errorf("the other file holds %q %v", data, err)
	}
}
