//go:build unix

package upstream

import "syscall"

// canPeek says that a connection can be looked at without reading from it.
const canPeek = true

// quiet reports whether nothing has come on a connection that nobody uses, neither
// bytes that were not asked for nor its end.
func quiet(raw syscall.RawConn) bool {
	silent := false
	err := raw.Read(func(fd uintptr) bool {
		var one [1]byte
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = err == syscall.EAGAIN
		return true
	})
	return err == nil && silent
}
