//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package guardrail

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// hold marks a file as being written, until it is closed or the process ends.
func hold(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}

// held reports whether a process still writes to a file.
func held(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err == nil {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing the file does it too
	}
	return errors.Is(err, syscall.EWOULDBLOCK)
}

// nameless is what removed finds out, by asking for all that is known of the file.
func nameless(f *os.File) bool {
	var info syscall.Stat_t
	return syscall.Fstat(int(f.Fd()), &info) == nil && info.Nlink == 0
}

// shared reports whether others than the owner have any of some rights.
func shared(info fs.FileInfo, rights fs.FileMode) bool { return info.Mode().Perm()&rights != 0 }
