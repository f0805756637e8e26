//go:build (amd64 || arm64) && !race && !msan && !asan

package brief

import (
	"os"
	"slices"
	"syscall"
	"unsafe"
)

// isServed says that system calls can be made without a word.
const isServed = true

func receive(fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	return call(syscall.SYS_RECVFROM, fd, p, flags|syscall.MSG_DONTWAIT)
}

func send(fd uintptr, p []byte) (int, syscall.Errno) {
	return call(syscall.SYS_SENDTO, fd, p, syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
}

func read(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.SYS_READ, fd, p, 0) }

func write(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.SYS_WRITE, fd, p, 0) }

// call makes a system call on some bytes, again where a signal came between.
func call(number, fd uintptr, p []byte, flags uintptr) (int, syscall.Errno) {
	for {
		n, _, err := syscall.RawSyscall6(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), flags, 0, 0)
		switch err {
		case 0:
			return int(n), 0
		case syscall.EINTR:
			continue
		}
		return 0, err
	}
}

// blocks reports whether whoever reads from a file or writes to it may be kept waiting.
func blocks(f *os.File) bool {
	raw, err := f.SyscallConn()
	if err != nil {
		return true
	}
	blocking := true
	failed := raw.Control(func(fd uintptr) {
		flags, _, err := syscall.Syscall(syscall.SYS_FCNTL, fd, syscall.F_GETFL, 0)
		blocking = err != 0 || flags&syscall.O_NONBLOCK == 0
	})
	return failed != nil || blocking
}

// local are the kinds of file systems that are on this machine: ext, XFS, Btrfs, F2FS, ZFS,
// memory, and layers of such.
var local = []int64{0xef53, 0x58465342, 0x9123683e, 0xf2f52010, 0x2fc12fc1, 0x01021994, 0x794c7630}

func isLocal(f *os.File) bool {
	var s syscall.Statfs_t
	raw, err := f.SyscallConn()
	if err != nil {
		return false
	}
	failed := raw.Control(func(fd uintptr) { err = syscall.Fstatfs(int(fd), &s) })
	return failed == nil && err == nil && slices.Contains(local, s.Type)
}
