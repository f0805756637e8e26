//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package upstream

import (
	"os/exec"
	"syscall"
)

// dieWithUs is for systems that can do it: here a process that is killed leaves
// its servers to notice that their input has ended.
func dieWithUs(*syscall.SysProcAttr) {}

// reap waits for a process and ends its group.
func reap(cmd *exec.Cmd, killGroup func()) {
	_ = cmd.Wait() // it says how the process ended, which is in its state
	killGroup()
}
