package agents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	lockWait = 5 * time.Second       // how long an edit waits for another one
	lockPoll = 10 * time.Millisecond // how often it looks
)

// newMode is the mode of a fresh record: it says what an agent may do, which is
// nobody's business but its owner's.
const newMode = 0o600

// WriteFile edits a record in place. Edits of one folder take turns; the file is
// read under the lock and replaced as a whole, with its mode and owner. A file
// that is a link, has another name, or changed meanwhile is left alone.
func WriteFile(path string, edit func(data []byte) ([]byte, error)) error {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	found, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, plain(err))
	}
	if err := sole(found); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	data, err := readFile(path)
	if err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	out, err := edit(data)
	if err != nil || bytes.Equal(out, data) {
		return err
	}
	if err := replace(path, found, data, out); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	return nil
}

// CreateFile writes a fresh record, and never over another file.
func CreateFile(path string, data []byte) error {
	unlock, err := lockFolder(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, newMode)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, plain(err))
	}
	if err := finish(f, data); err != nil {
		os.Remove(path)
		return fmt.Errorf("create %s: %w", path, plain(err))
	}
	return syncFolder(filepath.Dir(path))
}

// replace puts new bytes in the place of a file, if it still is what was read.
func replace(path string, found fs.FileInfo, was, is []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".capgate-*")
	if err != nil {
		return plain(err)
	}
	defer os.Remove(tmp.Name()) // a no-op once it has been renamed
	if err := alike(tmp, found); err != nil {
		tmp.Close()
		return plain(err)
	}
	if err := finish(tmp, is); err != nil {
		return plain(err)
	}
	now, err := os.Lstat(path)
	if err != nil {
		return plain(err)
	}
	again, err := readFile(path)
	if err != nil {
		return err
	}
	if !os.SameFile(found, now) || !bytes.Equal(again, was) {
		return errors.New("it was changed by somebody else meanwhile")
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return plain(err)
	}
	return syncFolder(filepath.Dir(path))
}

// finish writes, flushes and closes a file.
func finish(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return plain(err)
	}
	defer f.Close()
	return f.Sync()
}
