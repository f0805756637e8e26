//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package agents

import (
	"errors"
	"io/fs"
	"os"
)

// lockFolder refuses: without a lock two edits could undo each other.
func lockFolder(dir string) (unlock func(), err error) {
	return nil, errors.New("lock " + dir + ": records cannot be edited by command on this platform")
}

func sole(fs.FileInfo) error { return errors.ErrUnsupported }

func alike(*os.File, fs.FileInfo) error { return errors.ErrUnsupported }

func inode(fs.FileInfo) uint64 { return 0 }
