//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package skills

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps other processes from bringing the same mirror up to date.
func lock(root *os.Root) (unlock func(), err error) {
	// Whoever holds a lease on the file must not keep anybody waiting.
	f, err := root.OpenFile(lockName, os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the mirror: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another process is writing the mirror"), f.Close())
	}
	return func() { _ = f.Close() }, nil // closing it unlocks it
}
