//go:build unix

package builtin

import (
	"io/fs"
	"syscall"
)

// isShared reports whether a file has another name besides the one it was found
// under, or may have.
func isShared(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return !ok || s.Nlink != 1
}
