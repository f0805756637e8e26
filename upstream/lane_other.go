//go:build !unix

package upstream

import "syscall"

// canPeek says that a connection can be looked at without reading from it.
const canPeek = false

// quiet is never asked.
func quiet(syscall.RawConn) bool { return false }
