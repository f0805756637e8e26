//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package agents

import (
	"io/fs"
	"time"
)

// changedAt is when a file was last written to, as far as it says so.
func changedAt(info fs.FileInfo) time.Time { return info.ModTime() }
