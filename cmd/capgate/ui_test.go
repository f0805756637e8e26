package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// full is a disk that takes nothing.
type full struct{}

func (*full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestLostOutput: a command whose answer cannot be written has not done what was asked. A token
// is never printed again.
func TestLostOutput(t *testing.T) {
	p := newPlace(t)
	for _, args := range [][]string{{"agents", "token", "issue", "scout"}, {"catalogue"}, {"check"}, {"doctor"}, {"--json", "catalogue"}} {
		var errs bytes.Buffer
		code := run(t.Context(), append([]string{"-c", filepath.Join(p.dir, "capgate.yml")}, args...), stdio{out: new(full), err: &errs})
		if code == exitOK || strings.Count(errs.String(), "error: ") != 1 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit %d: %s", args, code, errs.String())
		}
	}
}

// TestFailRemedy: what a disk refuses has a hint of its own, whoever wanted to write.
func TestFailRemedy(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{broken(fmt.Errorf("update x: %w", syscall.ENOSPC), "capgate agents token list shows which tokens there are"), "make room on the disk"},
		{fmt.Errorf("the log of events: %w", &os.PathError{Op: "mkdir", Path: "/x", Err: syscall.EROFS}), "for what the gateway keeps, state: of the configuration names another folder"},
		{broken(errors.New("odd"), "do this"), "do this"},
	} {
		var errs bytes.Buffer
		newUI(stdio{out: &errs, err: &errs}).fail(c.err)
		if got := errs.String(); !strings.HasSuffix(got, "capgate: hint: "+c.want+"\n") {
			t.Errorf("%v: %s", c.err, got)
		}
	}
}
