//go:build unix

package main

import (
	"math"
	"syscall"
)

// ownersOnly has what is made from now on be the owner's alone, until it is undone.
func ownersOnly() (undo func()) {
	mask := syscall.Umask(0o177)
	return func() { syscall.Umask(mask) }
}

// openFiles is how many files this process may have open.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}
