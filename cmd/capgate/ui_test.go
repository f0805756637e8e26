package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
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
