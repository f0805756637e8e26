package store

import (
	"errors"
	"io/fs"
	"os"
	"sync"
)

// maxHeld is how many files are held open to be compared with. What goes beyond
// is read each time.
const maxHeld = 64

// held are the files that Changed has read, kept open. A file is only ever
// replaced, and while one is open no other file gets its number, so a name that
// leads to the same file still has the same version. Times alone would not say
// so: they stand still for longer than two writes take.
type held struct {
	mu    sync.Mutex
	files map[string]heldFile // by path
}

type heldFile struct {
	file    *os.File // open for as long as the number is relied on
	info    fs.FileInfo
	version string
}

// version is the version of the entry, from its file or from what is held.
func (h *held) version(p place) (string, error) {
	now, err := os.Lstat(p.path)
	if err == nil {
		if v, ok := h.known(p.path, now); ok {
			return v, nil
		}
		return h.read(p)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", p.store.here()
	}
	return "", err
}

func (h *held) known(path string, now fs.FileInfo) (version string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, ok := h.files[path]
	// Beyond the number: whoever edits a file in place does what the store does not.
	if !ok || !os.SameFile(now, f.info) || ownFile(now) != nil ||
		now.Size() != f.info.Size() || !now.ModTime().Equal(f.info.ModTime()) {
		return "", false
	}
	return f.version, true
}

func (h *held) read(p place) (version string, err error) {
	f, err := openEntry(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", p.store.here()
	}
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err == nil {
		version, err = p.versionIn(f)
	}
	if err != nil {
		f.Close()
		return "", err
	}
	h.hold(p.path, heldFile{f, info, version})
	return version, nil
}

func (h *held) hold(path string, f heldFile) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, ok := h.files[path]
	if ok {
		before.file.Close()
	} else if len(h.files) >= maxHeld {
		f.file.Close()
		return
	}
	h.files[path] = f
}
