//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package guardrail

import (
	"io/fs"
	"os"
)

func hold(*os.File) error { return nil }

// held knows nothing here: every file that was not closed may be in use.
func held(*os.File) bool { return true }

// removed knows nothing here: such a file cannot be removed, or nobody can tell.
func removed(*os.File) bool { return false }

// shared knows nothing here: modes say nothing of who may do what.
func shared(fs.FileInfo, fs.FileMode) bool { return false }
