package guardrail_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"capgate/guardrail"
)

// writerDir tells the test binary to be a writer in this folder instead.
const writerDir = "GUARDRAIL_WRITER_DIR"

const (
	processes    = 6
	perProcess   = 40
	killedWriter = "killed" // the writer that ends without closing
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		if err := write(dir, os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func write(dir, session string) error {
	l, err := guardrail.Open(guardrail.Options{Dir: dir, Rotate: 8000})
	if err != nil {
		return err
	}
	for n := range perProcess {
		if _, err := l.Record(&guardrail.Event{Kind: guardrail.Decision, Call: fmt.Sprint(n), Session: session}); err != nil {
			return err
		}
	}
	if session == killedWriter {
		os.Exit(0)
	}
	return l.Close()
}

// TestProcesses: processes that start at the same time share one key and one
// folder, and one that ends without a word loses nothing that was recorded.
func TestProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	var cmds []*exec.Cmd
	for i := range processes {
		session := fmt.Sprint("s-", i)
		if i == 0 {
			session = killedWriter
		}
		cmd := exec.Command(os.Args[0], session)
		cmd.Env = append(os.Environ(), writerDir+"="+dir)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	next := map[string]int{}
	for _, e := range events(t, dir, guardrail.Filter{}) {
		if e.Call != fmt.Sprint(next[e.Session]) {
			t.Fatalf("%s: call %s, want %d", e.Session, e.Call, next[e.Session])
		}
		next[e.Session]++
	}
	if len(next) != processes || next[killedWriter] != perProcess {
		t.Errorf("%v", next)
	}
	oneOpen(t, dir)
}

// oneOpen checks that all files but one were closed, and nothing else is left.
func oneOpen(t *testing.T, dir string) {
	t.Helper()
	open := 0
	for _, f := range sound(t, dir).Files {
		if !f.Closed {
			open++
		}
		if f.Live {
			t.Errorf("%s is live", f.Name)
		}
	}
	if open != 1 {
		t.Errorf("%d files were not closed", open)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.new"))
	if err != nil || len(left) > 0 {
		t.Error("left over:", left, err)
	}
}
