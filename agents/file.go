package agents

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	lockWait = 5 * time.Second       // how long an edit waits for another one
	calmWait = 3 * time.Second       // how long it waits for somebody who is writing the file
	lockPoll = 10 * time.Millisecond // how often it looks
)

// newMode is the mode of a fresh record: it says what an agent may do, which is
// nobody's business but its owner's.
const newMode = 0o600

// WriteFile edits a record in place. Edits of one folder take turns; the file is read under the lock,
// once nobody is writing it, and replaced as a whole, with its mode and owner. A file that is a link,
// has another name, changed meanwhile, or does not rest is left alone.
func WriteFile(path string, edit func(data []byte) ([]byte, error)) error {
	c := calm{path: path}
	unlock, err := c.lock()
	if err != nil {
		return err
	}
	defer unlock()
	out, err := edit(c.data)
	if err != nil || bytes.Equal(out, c.data) {
		return err
	}
	if err := replace(path, c.found, c.data, out); err != nil {
		return fmt.Errorf("edit %s: %w", path, err)
	}
	return nil
}

// calm is a record that is to be edited: half of one would count as a whole, once it is renamed into
// its place.
type calm struct {
	path  string
	found fs.FileInfo // as it was last found
	since time.Time   // when it was first found so
	data  []byte
}

// lock takes the lock of the folder when the record has rested, as it does in a registry. In between
// others may have it.
func (c *calm) lock() (unlock func(), err error) {
	for deadline := time.Now().Add(calmWait); ; time.Sleep(lockPoll) {
		unlock, err := lockFolder(filepath.Dir(c.path))
		if err != nil {
			return nil, err
		}
		rested, err := c.read()
		if err == nil && rested {
			return unlock, nil
		}
		unlock()
		if err == nil && time.Now().After(deadline) {
			err = errors.New("somebody else is writing it: try again when that has ended")
		}
		if err != nil {
			return nil, fmt.Errorf("edit %s: %w", c.path, err)
		}
	}
}

// read reports whether the record has been as it is for long enough, or is as an edit has left it.
func (c *calm) read() (rested bool, err error) {
	now := time.Now()
	found, err := os.Lstat(c.path)
	if err != nil {
		return false, plain(err)
	}
	if err := sole(found); err != nil {
		return false, err
	}
	if c.found == nil || !sameState(c.found, found) {
		c.found, c.since = found, now
	}
	rested = isCalm(now, changedAt(found), c.since)
	if c.data, err = readFile(c.path); rested || err == nil {
		return rested || signed(found, c.data), err
	}
	return false, nil // it is being written
}

// isCalm reports whether a file that changed then, and has been seen as it is since, has rested. A disk that
// tells no more than seconds may tell one that is over.
func isCalm(now, changed, since time.Time) bool {
	quiet := now.Sub(since)
	if changed.Nanosecond() != 0 {
		quiet = max(quiet, now.Sub(changed))
	}
	return quiet >= rest+settle
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
	if !sameState(found, now) || !bytes.Equal(again, was) {
		return errors.New("it was changed by somebody else meanwhile")
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return plain(err)
	}
	return syncFolder(filepath.Dir(path))
}

// finish writes, signs, flushes and closes a file.
func finish(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		_ = sign(f, data) // without it, the next edit waits
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// sign has the time of a file say, by its nanoseconds, that it holds these bytes, all of them: the next
// edit need not wait for it to rest. Whoever writes to it sets another time.
func sign(f *os.File, data []byte) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	now := time.Now()
	at := now.Truncate(time.Second).Add(nanoseconds(info, data))
	if at.After(now) {
		at = at.Add(-time.Second)
	}
	return os.Chtimes(f.Name(), now, at)
}

// signed reports whether a file is as sign has left it.
func signed(info fs.FileInfo, data []byte) bool {
	return time.Duration(info.ModTime().Nanosecond()) == nanoseconds(info, data)
}

// nanoseconds is less than a second, for one file and one text.
func nanoseconds(info fs.FileInfo, data []byte) time.Duration {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\n%s", inode(info), data))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(time.Second))
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return plain(err)
	}
	defer f.Close()
	return f.Sync()
}
