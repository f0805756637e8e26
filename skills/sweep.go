package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// What is taken out of a mirror is looked for by the names that were written. Others
// write there too: as much as they like, and folders inside each other as deep as they
// like, which would keep the mirrors of all agents waiting, and every file of the
// gateway's open at once.

// maxLeft bounds what one update looks at of what it does not know by name: what updates
// that were cut short had put together, and what others have left. What is more waits for
// the next.
const maxLeft = maxFiles * atOnce

// finish ends what an update that was cut short had begun.
func (u *update) finish() error {
	var errs []error
	for _, name := range sortedKeys(u.marker.Skills) {
		errs = append(errs, u.sweepAside(name, u.marker.Skills[name]))
	}
	return few(append(errs, u.each(".", func(e fs.DirEntry) error {
		if strings.HasPrefix(e.Name(), stageName) {
			return u.empty(e.Name())
		}
		if of, ok := strings.CutPrefix(e.Name(), asideName); ok && isFolder(of) {
			return u.sweepAside(of, u.marker.Skills[of])
		}
		return nil
	}))...)
}

// each visits what a folder of the mirror holds, all of it whatever goes wrong, but for
// what is more than a skill may hold. It may be a pipe by now, which must not keep
// anybody waiting.
func (u *update) each(dir string, visit func(fs.DirEntry) error) error {
	f, err := u.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("look through the mirror: %w", err)
	}
	entries, err := f.ReadDir(maxEntries)
	_ = f.Close() // nothing was written
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("look through the mirror: %w", err)
	}
	err = nil
	for _, e := range entries {
		err = few(err, visit(e))
	}
	return err
}

// maxSaid is how many errors of one update are said. In its mirror an agent has as many
// of them happen as it likes, every five seconds.
const maxSaid = 8

// unsaid is how many more there were.
type unsaid int

func (n unsaid) Error() string { return fmt.Sprintf("and %d more", int(n)) }

// few joins errors, and only counts those that would be too many.
func few(errs ...error) error {
	var said []error
	var more unsaid
	var add func(error)
	add = func(err error) {
		switch many, ok := err.(interface{ Unwrap() []error }); {
		case err == nil:
		case ok:
			for _, one := range many.Unwrap() {
				add(one)
			}
		case len(said) < maxSaid:
			said = append(said, err)
		default:
			n := unsaid(1)
			errors.As(err, &n)
			more += n
		}
	}
	for _, err := range errs {
		add(err)
	}
	if more > 0 {
		said = append(said, more)
	}
	return errors.Join(said...)
}

// empty takes out what an update that was cut short had put together, as deep as skills
// go. What is not the mirror's may be left of it.
func (u *update) empty(name string) error {
	if u.left--; u.left < 0 {
		return nil
	}
	info, err := u.root.Lstat(name)
	if err == nil && info.IsDir() && strings.Count(name, "/") <= maxNested {
		if err := u.each(name, func(e fs.DirEntry) error { return u.empty(path.Join(name, e.Name())) }); err != nil {
			return err // with more around it on each level, it would grow without end
		}
	}
	if err == nil {
		err = u.root.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("clear away %s in the mirror: %w", clip(name), err)
	}
	return nil
}

// digests are those of a skill's files.
func digests(s *Skill) map[string]string {
	all := map[string]string{}
	for _, f := range s.Files {
		all[f.Path] = f.Digest
	}
	return all
}

// discard removes a skill that was put together and does not go in.
func (u *update) discard(stage string, s *Skill) error {
	_, err := u.sweep(stage, digests(s))
	return err
}

// remove takes a skill out of the mirror.
func (u *update) remove(name string) error {
	files := u.marker.Skills[name]
	if err := u.clear(name, files); err != nil {
		return err
	}
	if u.forget(name); len(files) > 0 {
		u.Removed = append(u.Removed, name)
	}
	return nil
}

// clear removes the files that the mirror wrote into a folder, and the folders that
// are empty then. The folder is moved aside first, so that whoever looks finds the
// skill whole or not at all; what others put there comes back.
func (u *update) clear(name string, files map[string]string) error {
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // unless it could not be taken out the last time
	case err != nil:
		return fmt.Errorf("look at %s in the mirror: %w", name, err)
	case !info.IsDir(): // a link, or a file: not what the mirror wrote
	case len(files) == 0:
		_ = u.root.Remove(name) // if nothing is left in it
	default:
		if err := u.root.Rename(name, asideName+name); err != nil { // something is there: not at once then
			if _, err := u.sweep(name, files); err != nil {
				return err
			}
		}
	}
	return u.sweepAside(name, files)
}

// sweepAside removes what the mirror wrote of a skill that was moved aside, and puts
// the rest back.
func (u *update) sweepAside(name string, files map[string]string) error {
	if !u.isDir(asideName + name) {
		return nil // nothing was moved aside
	}
	left, err := u.sweep(asideName+name, files)
	if err != nil || !left {
		return err
	}
	return u.putBack(name)
}

// sweep removes files below a folder, and the folders that are empty then, without
// following links. It reports whether anything is left.
func (u *update) sweep(dir string, files map[string]string) (left bool, err error) {
	if !u.isDir(dir) {
		return false, nil
	}
	names := make([]string, 0, len(files))
	for _, file := range sortedKeys(files) {
		names = append(names, path.Clean(file)) // the marker may say anything
	}
	if err := sweepIn(u.root, dir, names); err != nil {
		return true, fmt.Errorf("take %s out of the mirror: %w", dir, err)
	}
	err = u.root.Remove(dir)
	return err != nil && !errors.Is(err, fs.ErrNotExist), nil // what is not empty is somebody else's
}

// sweepIn is sweep for what one folder has in another. Each is opened once: to go down to
// every file from the top takes a minute for as many as a marker can name. What cannot be taken
// out keeps nothing else there.
func sweepIn(above *os.Root, dir string, files []string) error {
	root := opened(above, dir)
	if root == nil {
		return nil
	}
	defer func() { _ = root.Close() }() // nothing was written
	var errs []error
	below := map[string][]string{}
	for _, file := range files {
		name, rest, deeper := strings.Cut(file, "/")
		if deeper {
			below[name] = append(below[name], rest)
			continue
		}
		if info, err := root.Lstat(name); err != nil || info.IsDir() {
			continue
		}
		errs = append(errs, root.Remove(name))
	}
	for _, name := range sortedKeys(below) {
		if info, err := root.Lstat(name); err != nil || !info.IsDir() {
			continue
		}
		errs = append(errs, sweepIn(root, name, below[name]))
		_ = root.Remove(name) // if nothing is left in it
	}
	return few(errs...)
}

// opened is a folder in another, nil if it cannot be read, or is none any more.
func opened(above *os.Root, dir string) *os.Root {
	root, err := above.OpenRoot(asFolder(dir))
	if err != nil {
		return nil
	}
	return root
}

// footing tells what below a folder is a folder itself, and nothing on the way there a
// link.
type footing struct {
	update *update
	known  map[string]bool
}

func (u *update) below(dir string) footing { return footing{u, map[string]bool{dir: u.isDir(dir)}} }

func (f footing) has(at string) bool {
	is, known := f.known[at]
	if !known {
		is = f.has(path.Dir(at)) && f.update.isDir(at)
		f.known[at] = is
	}
	return is
}

func (u *update) isDir(at string) bool {
	info, err := u.root.Lstat(at)
	return err == nil && info.IsDir()
}
