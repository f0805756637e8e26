package upstream

import (
	"errors"
	"os/exec"
	"syscall"
)

// dieWithUs has the process killed when the gateway ends, however it does.
func dieWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// reap waits for a process and ends its group while the number of the group is
// still taken by the dead process, so that no other can be meant.
func reap(cmd *exec.Cmd, killGroup func()) {
	const byPid = 1 // P_PID
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_WAITID, byPid, uintptr(cmd.Process.Pid), 0,
			syscall.WEXITED|syscall.WNOWAIT, 0, 0)
		if !errors.Is(errno, syscall.EINTR) {
			break
		}
	}
	killGroup()
	_ = cmd.Wait() // it says how the process ended, which is in its state
}
