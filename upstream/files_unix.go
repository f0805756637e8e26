//go:build unix

package upstream

import "syscall"

// crowds reports whether what was opened for a server has taken one of the last files that the process
// may open, a third of them, which are for what it reads and writes itself, and for those who connect to
// it. A file has the lowest number that was free.
func crowds(opened any) bool {
	c, ok := opened.(syscall.Conn)
	if !ok {
		return false // it is no file
	}
	var most syscall.Rlimit
	raw, err := c.SyscallConn()
	if err != nil || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &most) != nil {
		return true
	}
	last := true
	_ = raw.Control(func(number uintptr) { last = number >= uintptr(most.Cur/3*2) }) // one that is closed is the last
	return last
}
