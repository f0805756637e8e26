//go:build unix

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestMain builds the binary once. The tests, and those of their processes that
// are this program again, find it in CAPGATE_BIN.
func TestMain(m *testing.M) {
	if to := os.Getenv(anchorOf); to != "" {
		fmt.Fprintln(os.Stderr, serveAnchor(to))
		os.Exit(1)
	}
	os.Exit(withBinary(m.Run))
}

func withBinary(run func() int) int {
	if os.Getenv("CAPGATE_BIN") != "" {
		return run()
	}
	dir, err := os.MkdirTemp("", "capgate-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin := filepath.Join(dir, "capgate")
	if out, err := exec.Command("go", "build", "-o", bin, "../cmd/capgate").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the binary: %v\n%s", err, out)
		return 1
	}
	if err := os.Setenv("CAPGATE_BIN", bin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return run()
}
