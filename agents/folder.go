package agents

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"capgate/capability"
)

const (
	maxFiles   = 100_000 // entries below the folders of one roster
	maxFolders = 64      // how deep folders may nest
)

// folders is what a walk found.
type folders struct {
	dirs     []string // every folder that was read
	files    []string // every file that may hold a record, sorted within its folder
	failed   []failure
	findings []capability.Finding

	entries int
	seen    map[string]bool // absolute, so that overlapping folders count once
}

// failure is a folder that could not be read.
type failure struct {
	dir string
	err error
}

// lost returns the agents that lived in the folder, all of them broken now: a
// folder that cannot be read may hold any revocation.
func (f failure) lost(before *Roster) []loaded {
	if before == nil {
		return nil
	}
	var files []loaded
	for file, ids := range before.claims {
		if within(file, f.dir) {
			err := &Invalid{Pos: capability.Pos{File: file}, Text: f.err.Error()}
			files = append(files, loaded{file: file, ids: ids, err: err})
		}
	}
	slices.SortFunc(files, func(a, b loaded) int { return strings.Compare(a.file, b.file) })
	return files
}

// walk finds the record files below the folders. Hidden files and folders are
// left out; symbolic links are not followed.
func walk(dirs []string) folders {
	w := folders{seen: map[string]bool{}}
	for _, dir := range dirs {
		w.folder(filepath.Clean(dir), 0)
	}
	return w
}

func (w *folders) folder(dir string, depth int) {
	key, err := filepath.Abs(dir)
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	var entries []fs.DirEntry
	if err == nil {
		entries, err = os.ReadDir(dir)
	}
	if err == nil && depth > maxFolders {
		err = fmt.Errorf("folders nest deeper than %d", maxFolders)
	}
	if w.entries += len(entries); err == nil && w.entries > maxFiles {
		err = fmt.Errorf("the folders hold more than %d files", maxFiles)
	}
	if err != nil {
		w.failed = append(w.failed, failure{dir, fmt.Errorf("read the agents folder %s: %w", dir, plain(err))})
		return
	}
	w.dirs = append(w.dirs, dir)
	for _, e := range entries {
		w.entry(filepath.Join(dir, e.Name()), e, depth)
	}
}

func (w *folders) entry(path string, e fs.DirEntry, depth int) {
	switch {
	case strings.HasPrefix(e.Name(), "."):
	case e.IsDir():
		w.folder(path, depth+1)
	case kindOf(path) == otherFile:
	case e.Type()&fs.ModeSymlink != 0:
		w.findings = append(w.findings, capability.Finding{
			Code: "symlink", Severity: capability.Warning, Pos: capability.Pos{File: path},
			Text: "the file is a symbolic link and was not read", Hint: "put the record itself into the folder",
		})
	case e.Type().IsRegular():
		w.files = append(w.files, path)
	}
}

// plain leaves the path out of a file error, where the message has it already.
func plain(err error) error {
	if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

// readFile reads a regular file of bounded size, and notices when it is not the
// one that was found or changes under its eyes.
func readFile(path string) ([]byte, error) {
	found, err := os.Lstat(path)
	if err != nil {
		return nil, plain(err)
	}
	// A pipe that took the file's place must not hold up the load.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, plain(err)
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return nil, plain(err)
	}
	if !found.Mode().IsRegular() || !os.SameFile(found, opened) {
		return nil, errors.New("it is no regular file, or was replaced while it was being read")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err != nil {
		return nil, plain(err)
	}
	if len(data) <= maxRecord && int64(len(data)) != opened.Size() {
		return data, errors.New("it was changed while it was being read")
	}
	return data, nil
}

// claimed returns the agents that a broken file may stand for: those that a
// lenient look at its text names, else the one of its own name.
func claimed(file string, data []byte) []string {
	const most = 64 << 10 // how far down a name is looked for
	text := string(data[:min(len(data), most)])
	front := text
	if kindOf(file) == markdownFile {
		if front = ""; strings.HasPrefix(text, fence) {
			front, _, _ = strings.Cut(text[len(fence):], "\n"+fence)
		}
	}
	for _, look := range []struct{ text, pattern string }{
		{front, `(?m)^["']?id["']?[ \t]*:[ \t]*["']?([\w./-]+)`},
		{front, `(?m)^metadata[ \t]*:(?:[^\n]*\n(?:[ \t]+[^\n]*\n)*?[ \t]+|[ \t]*\{[^\n}]*?)name[ \t]*:[ \t]*["']?([\w./-]+)`},
		{text, `<directive\b[^>]*?\bname=["']([\w./-]+)`},
	} {
		if ids := idsIn(look.text, regexp.MustCompile(look.pattern)); len(ids) > 0 {
			return ids
		}
	}
	if id := fileID(file); id != "" {
		return []string{id}
	}
	return nil
}

func idsIn(text string, pattern *regexp.Regexp) []string {
	var ids []string
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		if id := capability.AgentID(m[1]); id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
