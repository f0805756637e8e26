//go:build !linux

package builtin

import (
	"os"

	"capgate/capability/hostfs"
)

// isAt reports whether an open file is at a place: what the place leads to now is
// the place itself, and the same file.
func isAt(file *os.File, place string) bool {
	real, err := (hostfs.FS{}).Real(place)
	if err != nil || real != place {
		return false
	}
	here, err := os.Lstat(place)
	if err != nil {
		return false
	}
	open, err := file.Stat()
	return err == nil && os.SameFile(here, open)
}

// isKernels knows nothing here: only Linux shows processes as files.
func isKernels(*os.File) bool { return false }
