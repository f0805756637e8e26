//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package upstream

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// run starts the process and stays until it is reaped. The thread is kept: on
// Linux the process dies with the thread that started it.
func (p *process) run(cmd *exec.Cmd, begun chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	// A leader of a session leads a group of the same number.
	cmd.SysProcAttr.Setpgid = !cmd.SysProcAttr.Setsid
	cmd.SysProcAttr.Pgid = 0
	dieWithUs(cmd.SysProcAttr)
	err := keepFiles()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		begun <- err
		return
	}
	p.pid = cmd.Process.Pid
	begun <- nil
	reap(cmd, p.killGroup)
	p.finished(cmd)
}

// keepFiles lets no file go to a new process that was not meant for it. Those that
// the gateway opens stay here anyway, but not those that it was started with.
func keepFiles() error {
	const list, firstOther = "/dev/fd", 3
	entries, err := os.ReadDir(list)
	if err != nil {
		return fmt.Errorf("see which files are open: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= firstOther {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}

// signal sends a signal to all that the process has started, unless they left
// the group.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.pid, s) // there is nobody left, or they hear it
	}
}

// killGroup kills what the process leaves behind.
func (p *process) killGroup() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = syscall.Kill(-p.pid, kill)
	p.reaped = true // the number may be another's from here on
}
