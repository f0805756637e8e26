//go:build !unix || aix

package door

import "syscall"

// canPeek says that a connection can be looked at without reading from it.
const canPeek = false

func gone(syscall.RawConn) bool { return false }
