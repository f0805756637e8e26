//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	lockWait  = 10 * time.Second      // how long a writer waits for the others
	firstPoll = 50 * time.Microsecond // how soon it looks again, at first
	lastPoll  = 5 * time.Millisecond  // and in the end
)

// noFollow opens what a name is, not what it leads to, and at once.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lockName is a file and not the folder itself, as network file systems lock
// only what can be written. It is never removed.
const lockName = ".lock"

// lock waits until nobody else writes to a bucket. The goroutines of a process
// stand in line, so that only one of them at a time looks at the file.
func (s *Store) lock(folder string) (unlock func(), err error) {
	turn := s.turn(folder)
	late := time.NewTimer(lockWait)
	defer late.Stop()
	select {
	case turn <- struct{}{}:
	case <-late.C:
		return nil, errLate()
	}
	f, err := lockFile(filepath.Join(folder, lockName))
	if err != nil {
		<-turn
		return nil, err
	}
	return func() { f.Close(); <-turn }, nil
}

// turn holds one thing while a goroutine is at the lock.
func (s *Store) turn(folder string) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[folder] == nil {
		s.turns[folder] = make(chan struct{}, 1)
	}
	return s.turns[folder]
}

func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, fileMode)
	if err != nil {
		return nil, err
	}
	wait := firstPoll
	for deadline := time.Now().Add(lockWait); ; time.Sleep(wait) {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock the bucket: %w", err)
		case time.Now().After(deadline):
			f.Close()
			return nil, errLate()
		}
		wait = min(2*wait, lastPoll)
	}
}

func errLate() error {
	return fmt.Errorf("another write to the bucket has not ended within %s", lockWait)
}

// ownFolder refuses what is not a folder that we alone may write to.
func ownFolder(dir string) (fs.FileInfo, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, plain(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errors.New("it is a symbolic link")
	case !info.IsDir():
		return nil, errors.New("it is not a folder")
	case !ok || int(stat.Uid) != os.Geteuid():
		return nil, errors.New("it belongs to another user")
	case info.Mode().Perm()&0o022 != 0:
		return nil, fmt.Errorf("others may write to it: its mode is %04o, chmod 700 makes it private", info.Mode().Perm())
	}
	return info, nil
}

// ownFile refuses a file that the store has not written like this. One without
// a name has been replaced since it was opened; it is whole all the same.
func ownFile(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case !ok || int(stat.Uid) != os.Geteuid():
		return errors.New("the file belongs to another user")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others may use the file: its mode is %04o, chmod 600 makes it private", info.Mode().Perm())
	case stat.Nlink > 1:
		return errors.New("the file has another name")
	}
	return nil
}
