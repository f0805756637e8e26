//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package store

import (
	"errors"
	"io/fs"
)

const noFollow = 0

// Without a lock two writers could undo each other, so nothing is opened.

func ownFolder(string) (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

func ownFile(fs.FileInfo) error { return errors.ErrUnsupported }

func (s *Store) lock(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
