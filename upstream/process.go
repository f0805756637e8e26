package upstream

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The patience with a process that is to end.
const (
	quitTime = 2 * time.Second // after its input is closed
	termTime = 3 * time.Second // after it is asked to terminate
	killTime = 5 * time.Second // after it is killed: only the kernel can be in its way

	// drainTime is how long the output of a process that has ended is read on.
	// Who holds it open then is a process that ran away from its group.
	drainTime = time.Second
)

// Program is a server that is started here.
type Program struct {
	Name string // of the upstream

	// Argv is the program and its arguments. A program without a slash is looked
	// up in the PATH of the gateway.
	Argv []string
	Dir  string
	Env  []string // all of it: nothing is inherited

	// Confine changes the command so that it runs in a sandbox. It may add files,
	// which are closed here once the process has them. It is asked each time the
	// program is started. Nil runs the program unconfined.
	Confine func(*exec.Cmd) error
}

// command makes the command of a program, and the pipes to it.
func (p Program) command() (*exec.Cmd, error) {
	if len(p.Argv) == 0 {
		return nil, errors.New("there is no command")
	}
	path := p.Argv[0]
	if filepath.Base(path) == path {
		found, err := exec.LookPath(path)
		if err != nil {
			return nil, err
		}
		path = found
	}
	cmd := &exec.Cmd{
		Path: path,
		Args: slices.Clone(p.Argv),
		Dir:  p.Dir,
		Env:  append([]string{}, p.Env...), // nil would mean to inherit
	}
	if p.Confine != nil {
		if err := p.Confine(cmd); err != nil {
			return nil, fmt.Errorf("confine: %w", err)
		}
		if cmd.Env == nil {
			return nil, errors.New("confine: the environment would be inherited")
		}
	}
	return cmd, nil
}

// process is a server that was started.
type process struct {
	stdin, stdout, stderr *os.File // our ends
	pid                   int
	exited                chan struct{} // closed when it has ended and is reaped
	status                string        // how it ended, once it has

	mu     sync.Mutex
	reaped bool
}

// start starts a program in a process group of its own.
func start(p Program) (*process, error) {
	cmd, err := p.command()
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, f := range cmd.ExtraFiles {
			_ = f.Close()
		}
	}()
	proc := &process{exited: make(chan struct{})}
	theirs, err := proc.pipes()
	if err != nil {
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	begun := make(chan error)
	go proc.run(cmd, begun)
	err = <-begun
	closeAll(theirs[:]...)
	if err != nil {
		closeAll(proc.stdin, proc.stdout, proc.stderr)
		if _, missing := os.Stat(p.Dir); p.Dir != "" && missing != nil { // else it would be said of the program
			err = fmt.Errorf("the directory to run it in: %w", missing)
		}
		return nil, err
	}
	return proc, nil
}

// pipes makes the three pipes and returns the ends of the process, as far as there are
// files for them. They are not those of exec.Cmd, whose Wait would close them before all
// is read.
func (p *process) pipes() (theirs [3]*os.File, err error) {
	var ours [3]*os.File
	for i := range theirs {
		r, w, err := os.Pipe()
		if err == nil && crowds(w) {
			closeAll(r, w)
			err = errCrowd
		}
		if err != nil {
			closeAll(ours[:i]...)
			closeAll(theirs[:i]...)
			return theirs, err
		}
		theirs[i], ours[i] = w, r
		if i == 0 {
			theirs[i], ours[i] = r, w
		}
	}
	p.stdin, p.stdout, p.stderr = ours[0], ours[1], ours[2]
	return theirs, nil
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

// stop ends the process, politely first.
func (p *process) stop() error {
	_ = p.stdin.Close()
	if p.ended(quitTime) {
		return nil
	}
	p.signal(terminate)
	if p.ended(termTime) {
		return nil
	}
	return p.kill()
}

// kill ends the process.
func (p *process) kill() error {
	_ = p.stdin.Close()
	p.signal(kill)
	if !p.ended(killTime) {
		return fmt.Errorf("process %d does not end although it was killed", p.pid)
	}
	return nil
}

// ended waits for the end of the process, for some time.
func (p *process) ended(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// finished notes that the process has ended.
func (p *process) finished(cmd *exec.Cmd) {
	p.status = cmd.ProcessState.String()
	_ = p.stdout.SetReadDeadline(time.Now().Add(drainTime))
	_ = p.stderr.SetReadDeadline(time.Now().Add(drainTime))
	close(p.exited)
}
