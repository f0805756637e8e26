package builtin

import (
	"os"
	"strconv"
	"syscall"
)

// isAt reports whether an open file is at a place, as the kernel knows it: not
// by walking the path again, which could lead elsewhere by now.
func isAt(file *os.File, place string) bool {
	at := ""
	ok := control(file, func(fd int) (err error) {
		at, err = os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		return err
	})
	return ok && at == place
}

// The file systems in which a file is a view of the kernel, a process or a
// device, as statfs names them: reading one tells what is in the gateway's own
// memory and environment, writing one changes the machine.
func kernels() []int64 {
	return []int64{
		0x9fa0,     // proc
		0x62656572, // sysfs
		0x62656570, // configfs
		0x64626720, // debugfs
		0x74726163, // tracefs
		0x73636673, // securityfs
		0xf97cff8c, // selinuxfs
		0xcafe4a11, // bpf
		0xde5e81e4, // efivarfs
		0x27e0eb,   // cgroup
		0x63677270, // cgroup2
		0x42494e4d, // binfmt_misc
		0x1cd1,     // devpts
		0x6e736673, // nsfs
		0x6165676c, // pstore
	}
}

// isKernels reports whether a file is in such a file system, or in one that
// cannot be told.
func isKernels(file *os.File) bool {
	var s syscall.Statfs_t
	if !control(file, func(fd int) error { return syscall.Fstatfs(fd, &s) }) {
		return true
	}
	for _, magic := range kernels() {
		if uint32(s.Type) == uint32(magic) {
			return true
		}
	}
	return false
}

func control(file *os.File, do func(fd int) error) bool {
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	failed := error(nil)
	err = conn.Control(func(fd uintptr) { failed = do(int(fd)) })
	return err == nil && failed == nil
}
