//go:build !unix || aix

package brief

import (
	"errors"
	"syscall"
)

// CanPeek says that a connection can be looked at without reading from it.
const CanPeek = false

func peek(uintptr) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func once(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
