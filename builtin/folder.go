package builtin

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// moved is said when what was opened is not where the decision was about.
const moved = problem("the path changed while it was being opened")

// missing is said of what is not there.
const missing = problem("there is no such file or directory")

// crowd is said when something was not opened that may be opened later.
const crowd = problem("too many files are open at the moment: try again later")

// folder is a directory held open: what happens to its path from then on does
// not change which directory it is.
type folder struct {
	root *os.Root
	self *os.File
	real string
}

// folder opens a directory by where it really is.
func (f *files) folder(real string) (*folder, error) {
	if !beneath(real, f.Root.Real) {
		return nil, moved
	}
	rel := path.Join(".", strings.TrimPrefix(real, f.Root.Real))
	root, err := f.root.OpenRoot(asFolder(rel))
	if err != nil {
		return nil, explain(err)
	}
	return settle(root, real)
}

// asFolder is a path that leads to a directory or nowhere: whoever opens a pipe that
// stands there waits for somebody to write into it. One that ends in a slash would do
// too, but leads an [os.Root] of Go before 1.26.5 out through a link.
func asFolder(name string) string { return name + "/." }

// parent opens the directory that holds a spot, and returns the spot's name in it.
func (f *files) parent(s spot) (*folder, string, error) {
	if s.real == f.Root.Real {
		d, err := f.folder(s.real)
		return d, ".", err
	}
	dir, name := path.Split(s.real)
	d, err := f.folder(path.Clean(dir))
	return d, name, err
}

// sub opens a directory in the directory.
func (d *folder) sub(name string) (*folder, error) {
	root, err := d.root.OpenRoot(asFolder(name))
	if err != nil {
		return nil, explain(err)
	}
	return settle(root, path.Join(d.real, name))
}

// settle makes a folder of a directory that is where it should be.
func settle(root *os.Root, real string) (*folder, error) {
	d := &folder{root: root, real: real}
	var err error
	if d.self, err = root.Open("."); err != nil {
		root.Close() //nolint:errcheck // it was only read
		return nil, explain(err)
	}
	if err := d.check(d.self, real); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

func (d *folder) close() {
	d.self.Close()
	d.root.Close() //nolint:errcheck // it was only read
}

// check refuses a file that is not where it should be, or that is no file of
// anyone but the kernel.
func (d *folder) check(file *os.File, real string) error {
	switch {
	case !isAt(file, real):
		return moved
	case isKernels(file):
		return problem("the path is in a file system that shows the system itself")
	}
	return nil
}

// still refuses to go on in a directory that was moved meanwhile.
func (d *folder) still() error { return d.check(d.self, d.real) }

// stat describes an entry, which is not a link: links were followed before.
func (d *folder) stat(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	switch {
	case err != nil:
		return nil, explain(err)
	case info.Mode().Type() == fs.ModeSymlink:
		return nil, moved
	}
	return info, nil
}

// open opens a regular file without making, emptying or waiting for anything.
// What else stands there is refused before it is opened, because opening a device
// can already do something, and again after, in case it was put there meanwhile.
func (d *folder) open(name string, flag int) (*os.File, fs.FileInfo, error) {
	info, err := d.stat(name)
	if err != nil {
		return nil, nil, err
	}
	if err := regular(info); err != nil {
		return nil, nil, err
	}
	file, err := d.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, explain(err)
	}
	if info, err = file.Stat(); err == nil {
		err = regular(info)
	}
	if err == nil {
		err = d.check(file, path.Join(d.real, name))
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func regular(info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return problem("the path is a directory")
	}
	return problem("the path is neither a file nor a directory")
}

// explain says in the agent's terms why the file system refused something. An
// error of the system repeats paths, which the agent is not told.
func explain(err error) error {
	for _, c := range [...]struct {
		err  error
		text problem
	}{
		{fs.ErrNotExist, missing},
		{fs.ErrPermission, "the gateway itself has no permission to do that"},
		{syscall.ENOTDIR, "a directory in the path, or the path itself, is not a directory"},
		{syscall.ENOTEMPTY, "the directory is not empty"}, // which is an ErrExist too
		{fs.ErrExist, "there is a file or directory of that name already"},
		{syscall.EISDIR, "the path is a directory"},
		{syscall.ENOSPC, "there is no space left"},
		{syscall.EROFS, "the file system is read-only"},
		{syscall.ELOOP, moved},
		{syscall.EMFILE, crowd},
		{syscall.ENFILE, crowd},
		{syscall.ENXIO, "the path is neither a file nor a directory"},
		{syscall.ENAMETOOLONG, "the name is too long"},
	} {
		if errors.Is(err, c.err) {
			return c.text
		}
	}
	if told := problem(""); errors.As(err, &told) {
		return told
	}
	return problem("the file system refused that")
}
