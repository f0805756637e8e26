//go:build !linux || (!amd64 && !arm64) || race || msan || asan

package brief

import (
	"os"
	"syscall"
)

// isServed says that system calls can be made without a word.
const isServed = false

func receive(uintptr, []byte, uintptr) (int, syscall.Errno) { return 0, syscall.ENOSYS }
func send(uintptr, []byte) (int, syscall.Errno)             { return 0, syscall.ENOSYS }
func read(uintptr, []byte) (int, syscall.Errno)             { return 0, syscall.ENOSYS }
func write(uintptr, []byte) (int, syscall.Errno)            { return 0, syscall.ENOSYS }

func blocks(*os.File) bool  { return true }
func isLocal(*os.File) bool { return false }
