package guardrail

import (
	"os"

	"golang.org/x/sys/unix"
)

// removed reports whether a file has no name any more: nobody will ever read what
// is written to it. It asks for nothing else: the next write to a file whose times
// somebody has seen takes a third longer.
func removed(f *os.File) bool {
	var info unix.Statx_t
	err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_NLINK, &info)
	if err == nil && info.Mask&unix.STATX_NLINK != 0 {
		return info.Nlink == 0
	}
	return nameless(f) // where it may not be asked like that
}
