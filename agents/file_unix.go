//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lockFolder takes the lock of a folder: on the folder itself, so that nothing
// is left lying in it.
func lockFolder(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, plain(err))
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { f.Close() }, nil
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		case time.Now().After(deadline):
			f.Close()
			return nil, fmt.Errorf("lock %s: another edit has not ended within %s", dir, lockWait)
		}
	}
}

// sole refuses what is no regular file of one name.
func sole(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link")
	case !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case !ok || stat.Nlink != 1:
		return errors.New("the file has another name, which would keep the old text")
	}
	return nil
}

// alike gives a new file the mode and owner of the one it replaces.
func alike(f *os.File, info fs.FileInfo) error {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && (int(stat.Uid) != os.Getuid() || int(stat.Gid) != os.Getgid()) {
		if err := f.Chown(int(stat.Uid), int(stat.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(info.Mode().Perm())
}

// inode tells a file from its copies.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino) //nolint:unconvert // it is narrower on some systems
	}
	return 0
}
