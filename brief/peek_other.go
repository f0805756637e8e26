//go:build !unix || aix

package brief

import "syscall"

// CanPeek says that a connection can be looked at without reading from it.
const CanPeek = false

func peek(uintptr) (int, syscall.Errno) { return 0, syscall.ENOSYS }
