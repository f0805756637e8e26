package mapping

import (
	"io/fs"

	"capgate/capability"
)

// mostLooked is what it may cost to look up all the paths of one call, as the file system
// counts it: a thousand that lie deep take minutes, which nobody who asks could end.
const mostLooked = 1 << 20

// measured is a file system that counts what looking costs.
type measured interface {
	// Within is Real of [capability.FS]. What it costs is taken off the effort, and once
	// nothing is left, it fails.
	Within(path string, effort *int) (string, error)
	// ListWithin is List, in the same way.
	ListWithin(dir string, effort *int) ([]fs.DirEntry, error)
}

// lookups are those of one call.
type lookups struct {
	files measured
	left  int
}

// Real looks one path up.
func (l *lookups) Real(path string) (string, error) { return l.files.Within(path, &l.left) }

// List looks at one directory.
func (l *lookups) List(dir string) ([]fs.DirEntry, error) { return l.files.ListWithin(dir, &l.left) }

// Spend takes an effort for something else.
func (l *lookups) Spend(effort int) bool {
	l.left -= effort
	return l.left >= 0
}

// measure has the paths of the call looked up with one effort.
func (r *reading) measure() {
	if files, ok := r.View.FS.(measured); ok {
		r.lookups = lookups{files, mostLooked}
		r.View.FS = &r.lookups
	}
}

// overlong refuses a call whose paths take too long to look up.
func (r *reading) overlong(at place) error {
	if r.lookups.left >= 0 {
		return nil
	}
	return refuse(capability.LimitExceeded, at.name, "takes too long to look up, with what stands before it")
}
