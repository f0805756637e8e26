//go:build unix && !aix

package door

import "syscall"

// canPeek says that a connection can be looked at without reading from it.
const canPeek = true

// gone waits until something comes on a connection, and reports whether it is the end.
func gone(raw syscall.RawConn) bool {
	end := false
	err := raw.Read(func(fd uintptr) bool {
		for {
			var one [1]byte
			n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			switch err {
			case syscall.EINTR:
				continue
			case syscall.EAGAIN:
				return false
			}
			end = err != nil || n == 0
			return true
		}
	})
	return err == nil && end
}
