//go:build unix && !aix

package brief

import (
	"errors"
	"syscall"
)

// CanPeek says that a connection can be looked at without reading from it.
const CanPeek = true

// peek looks at the next byte, and does not wait for it.
func peek(fd uintptr) (int, syscall.Errno) {
	var one [1]byte
	if isServed {
		return receive(fd, one[:], syscall.MSG_PEEK)
	}
	for {
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		var why syscall.Errno
		if !errors.As(err, &why) || why != syscall.EINTR {
			return n, why
		}
	}
}

// once writes what can be written at once to what does not block.
func once(fd uintptr, p []byte) (int, error) { return syscall.Write(int(fd), p) }
