//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package upstream

import (
	"errors"
	"os/exec"
	"syscall"
)

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// run starts nothing: without process groups what a server has started would
// outlive it.
func (p *process) run(_ *exec.Cmd, begun chan<- error) {
	begun <- errors.New("servers cannot be started on this system")
}

func (p *process) signal(syscall.Signal) {}
