package guardrail_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/guardrail"
)

// TestRemovedAll: a folder that only has a key in it had a log; one that has nothing, or of which
// the files were removed on purpose, is in order.
func TestRemovedAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 1, guardrail.Options{})
	for _, name := range files(t, dir) {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := faults(t, dir, guardrail.VerifyOptions{}); !strings.Contains(got, "there is a key but no log") {
		t.Errorf("without its files: %q", got)
	}
	if got := faults(t, dir, guardrail.VerifyOptions{Since: time.Now()}); got != "" {
		t.Errorf("without files that were removed on purpose: %q", got)
	}
	key := filepath.Join(dir, guardrail.KeyFile)
	if got := faults(t, t.TempDir(), guardrail.VerifyOptions{KeyFile: key}); got != "" {
		t.Errorf("before the first file, with a key from elsewhere: %q", got)
	}
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if got := faults(t, dir, guardrail.VerifyOptions{}); got != "" {
		t.Errorf("with nothing in it: %q", got)
	}
}

// TestAdmitted: a folder vouches for nothing against whoever may put another one there.
func TestAdmitted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "events")
	closed(t, dir, 1, guardrail.Options{})
	r, err := guardrail.Verify(dir, guardrail.VerifyOptions{})
	if err != nil || !strings.Contains(strings.Join(r.Unknown, "\n"), "may write to the folder and put another key there") {
		t.Errorf("not known: %q, %v", r.Unknown, err)
	}
}
