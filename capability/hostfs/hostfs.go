package hostfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"capgate/capability"
)

const (
	maxLinks = 40   // symbolic links in one walk, as in Linux
	maxSteps = 4096 // components in one walk, those of links included

	// maxEffort is what one walk may cost. The kernel looks each component up from the
	// root, so that it costs more the deeper it lies; every name in a directory that
	// others are compared with counts as well, more where it can be written otherwise.
	maxEffort    = 1 << 18
	depthOfOne   = 8 // bytes of a place that cost one more
	effortOfName = 2

	effortOfList  = 32 // to look into a directory
	effortOfEntry = 4  // for each name in it
	lengthOfOne   = 2  // bytes of a name with accents that cost one more
)

// FS is the file system of this machine. The zero value is ready to use; it
// keeps nothing between calls.
type FS struct{}

// Real returns where an absolute path leads, with every symbolic link followed
// and each ".." taken from where the walk then is. A tail that does not exist
// stays as written, unless it holds "..": nobody knows what it would climb out of.
func (f FS) Real(path string) (string, error) {
	effort := maxEffort
	return f.Within(path, &effort)
}

// Within is Real for one of several paths, which share an effort: what the walk costs is
// taken off it, and once nothing is left, there are no more walks.
func (FS) Within(path string, effort *int) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("the path %q is not absolute", path)
	}
	w := walk{at: make([]byte, 0, len(path)), rest: path, effort: effort}
	for w.rest != "" {
		if err := w.step(); err != nil {
			return "", fmt.Errorf("resolve %q: %w", path, err)
		}
	}
	if len(w.at) == 0 {
		return "/", nil
	}
	return string(w.at), nil
}

// List returns what lies in a directory.
func (f FS) List(dir string) ([]fs.DirEntry, error) {
	effort := maxEffort
	return f.ListWithin(dir, &effort)
}

// ListWithin is List for one of several directories, which share an effort as in Within.
func (FS) ListWithin(dir string, effort *int) ([]fs.DirEntry, error) {
	if *effort -= effortOfList + len(dir)/depthOfOne; *effort < 0 {
		return nil, capability.ErrTooMuch
	}
	f, err := os.Open(dir + "/.") // which no pipe is that somebody puts there
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil, nil
	case err != nil:
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(*effort/effortOfEntry + 1)
	if *effort -= effortOfEntry * len(entries); *effort < 0 {
		return nil, capability.ErrTooMuch
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// walk is a path half resolved.
type walk struct {
	at           []byte // what is resolved: a slash and a name each, free of links
	rest         string // what is still to walk from there
	missing      bool   // at does not exist
	links, steps int
	effort       *int // that is left
}

// step resolves the next component.
func (w *walk) step() error {
	if w.steps++; w.steps > maxSteps {
		return fmt.Errorf("the path has more than %d components", maxSteps)
	}
	name, rest, more := strings.Cut(w.rest, "/")
	w.rest = rest
	switch {
	case name == "" || name == ".":
		return nil
	case name == ".." && w.missing:
		return fmt.Errorf("there is a .. beneath %w", capability.ErrNoDirectory)
	case name == "..":
		w.at = w.at[:max(bytes.LastIndexByte(w.at, '/'), 0)]
		return nil
	}
	parent := len(w.at)
	w.at = append(append(w.at, '/'), name...)
	if w.missing {
		return nil
	}
	return w.enter(parent, more)
}

// enter looks at what at now names, in a directory that exists. More says that
// the path goes on, if only with a slash.
func (w *walk) enter(parent int, more bool) error {
	place := string(w.at)
	if more && isMagicDir(place) {
		return fmt.Errorf("%s names what is open or numbered elsewhere", place)
	}
	if *w.effort -= 1 + len(place)/depthOfOne; *w.effort < 0 {
		return capability.ErrTooMuch
	}
	info, err := os.Lstat(place)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		other, err := alike(place[:parent+1], place[parent+1:], maxEntries, w.effort)
		if other == "" || err != nil {
			w.missing = true
			return err
		}
		w.at = append(w.at[:parent+1], other...)
		return w.enter(parent, more)
	case err == nil && more && isFile(info):
		w.missing = true // nothing is beneath a file either
		return nil
	case err == nil && info.Mode().Type() == fs.ModeSymlink:
		w.at = w.at[:parent]
		return w.follow(place, more)
	}
	return err
}

// isFile reports whether a path can't go on from here.
func isFile(info fs.FileInfo) bool {
	return !info.IsDir() && info.Mode().Type() != fs.ModeSymlink
}

// follow puts the target of a link in front of what is still to walk.
func (w *walk) follow(link string, more bool) error {
	if isMagicLink(link) {
		return fmt.Errorf("%s is no link by name: it leads wherever a process is", link)
	}
	target, err := os.Readlink(link)
	if w.links++; w.links > maxLinks {
		err = fmt.Errorf("the path crosses more than %d symbolic links", maxLinks)
	}
	if err != nil {
		return err
	}
	if strings.HasPrefix(target, "/") {
		w.at = w.at[:0]
	}
	if more {
		target += "/" + w.rest
	}
	w.rest = target
	return nil
}

// isMagicDir reports whether the entries of a directory stand for something
// else without being links: open descriptors, and files by number on macOS.
func isMagicDir(dir string) bool { return dir == "/dev/fd" || dir == "/.vol" }

// isMagicLink reports whether a link below /proc is more than its text. Those
// two are not: they name a directory of /proc.
func isMagicLink(link string) bool {
	return strings.HasPrefix(link, "/proc/") && link != "/proc/self" && link != "/proc/thread-self"
}
