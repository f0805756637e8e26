//go:build unix

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	commandTime = 2 * time.Minute  // for a command that ends by itself
	awaitTime   = 20 * time.Second // for something to come about
	endTime     = 5 * time.Second  // for a process to end when it is told to
)

// command makes a command with a home of its own, and of this process's
// environment nothing but the PATH. Ending it ends the group of its processes.
func command(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTime)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = t.TempDir()
	path := filepath.Join(kit(), filepath.Dir(node)) + string(os.PathListSeparator) + os.Getenv("PATH")
	cmd.Env = []string{"PATH=" + path, "HOME=" + cmd.Dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = endTime
	return cmd
}

// outcome is what a command left behind.
type outcome struct {
	out, err string
	code     int
}

// run runs a command to its end.
func run(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatalf("run %s: %v\n%s\n%s", cmd.Path, err, out.String(), errs.String())
	}
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// process is a command that runs until the test ends.
type process struct {
	pid   int
	said  *transcript   // what it writes, but for a standard output that somebody reads
	ended chan struct{} // closed when it has
}

// start starts a command.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{said: newTranscript(), ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p.said
	}
	cmd.Stderr = p.said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // it was told to end
		if out, ok := cmd.Stdout.(*io.PipeWriter); ok {
			_ = out.Close() // never an error
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Cancel() // it may have ended
		<-p.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Path), p.said)
		}
	})
	return p
}

// await waits for the end.
func (p *process) await(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(awaitTime):
		t.Fatalf("the process has not ended within %s", awaitTime)
	}
}

// transcript is what a process writes, and what others wait for.
type transcript struct {
	mu    sync.Mutex
	text  []byte
	grown chan struct{}
}

func newTranscript() *transcript { return &transcript{grown: make(chan struct{})} }

func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, p...)
	close(s.grown)
	s.grown = make(chan struct{})
	return len(p), nil
}

func (s *transcript) read() (text []byte, grown <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.text), s.grown
}

func (s *transcript) String() string {
	text, _ := s.read()
	return string(text)
}

// await waits until an expression matches and returns its first group.
func (s *transcript) await(t *testing.T, expr string) string {
	t.Helper()
	re, late := regexp.MustCompile(expr), time.After(awaitTime)
	for {
		text, grown := s.read()
		if m := re.FindSubmatch(text); m != nil {
			return string(m[1])
		}
		select {
		case <-grown:
		case <-late:
			t.Fatalf("nothing like %q in:\n%s", expr, text)
		}
	}
}

// eventually waits until something is the case.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	look, late := time.NewTicker(20*time.Millisecond), time.After(awaitTime)
	defer look.Stop()
	for !is() {
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%s: not within %s", what, awaitTime)
		}
	}
}
