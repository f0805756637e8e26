//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package main

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// aloneTime is how long is waited for others, who need none to speak of.
const aloneTime = time.Second

// alone waits until no other gateway is about to listen in a folder, and has others wait until it is undone. Where the
// folder cannot be locked, nobody waits.
func alone(dir string) (undo func()) {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0) //nolint:gosec // it is the one to listen in
	if err != nil {
		return func() {}
	}
	for end := time.Now().Add(aloneTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	return func() { _ = f.Close() }
}
