package brief_test

import (
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"capgate/brief"
)

// TestFileSaysHowFar writes more than a file may hold: what is said to be written is there.
func TestFileSaysHowFar(t *testing.T) {
	heard := make(chan os.Signal, 8) // else it ends the process
	signal.Notify(heard, syscall.SIGXFSZ)
	defer signal.Stop(heard)
	f := open(t, filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_WRONLY)
	b := brief.NewFile(f)
	b.Hurry()
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	n, err := b.Write(make([]byte, 3000))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	info, failed := os.Stat(f.Name())
	if failed != nil {
		t.Fatal(failed)
	}
	var path *fs.PathError
	if n != 1000 || info.Size() != 1000 || !errors.Is(err, syscall.EFBIG) || !errors.As(err, &path) {
		t.Errorf("it says %d and %v, and %d bytes are there", n, err, info.Size())
	}
}
