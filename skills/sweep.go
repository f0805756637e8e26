package skills

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// What is taken out of a mirror is looked for by the names that were written. Others
// write there too: as much as they like, and folders inside each other as deep as they
// like, which would keep the mirrors of all agents waiting, and every file of the
// gateway's open at once.

// maxLeft bounds what is taken out at once of what updates that were cut short had put
// together. What is more waits for the next.
const maxLeft = maxFiles * atOnce

// finish ends what an update that was cut short had begun.
func (u *update) finish() error {
	var errs []error
	left := maxLeft
	for _, name := range sortedKeys(u.marker.Skills) {
		errs = append(errs, u.sweepAside(name, u.marker.Skills[name]))
	}
	return errors.Join(append(errs, u.each(".", func(e fs.DirEntry) error {
		if strings.HasPrefix(e.Name(), stageName) {
			return u.empty(e.Name(), &left)
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
	var errs []error
	for _, e := range entries {
		errs = append(errs, visit(e))
	}
	return errors.Join(errs...)
}

// empty takes out what an update that was cut short had put together, as deep as skills
// go. What is not the mirror's may be left of it.
func (u *update) empty(name string, left *int) error {
	if *left--; *left < 0 {
		return nil
	}
	info, err := u.root.Lstat(name)
	if err == nil && info.IsDir() && strings.Count(name, "/") <= maxNested {
		err = u.each(name, func(e fs.DirEntry) error { return u.empty(path.Join(name, e.Name()), left) })
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
	if err := u.clear(name, u.marker.Skills[name]); err != nil {
		return err
	}
	delete(u.marker.Skills, name)
	return nil
}

// clear removes the files that the mirror wrote into a folder, and the folders that
// are empty then. The folder is moved aside first, so that whoever looks finds the
// skill whole or not at all; what others put there comes back.
func (u *update) clear(name string, files map[string]string) error {
	info, err := u.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at %s in the mirror: %w", name, err)
	case !info.IsDir(): // a link, or a file: not what the mirror wrote
		return nil
	}
	if err := u.root.Rename(name, asideName+name); err != nil { // something is there: not at once then
		_, err := u.sweep(name, files)
		return err
	}
	return u.sweepAside(name, files)
}

// sweepAside removes what the mirror wrote of a skill that was moved aside, and puts
// the rest back, if nothing else is there by now.
func (u *update) sweepAside(name string, files map[string]string) error {
	info, err := u.root.Lstat(asideName + name)
	if err != nil || !info.IsDir() {
		return nil //nolint:nilerr // nothing was moved aside
	}
	left, err := u.sweep(asideName+name, files)
	if err != nil || !left {
		return err
	}
	if _, err := u.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if err := u.root.Rename(asideName+name, name); err != nil {
			return fmt.Errorf("put back what is not the mirror's in %s: %w", name, err)
		}
	}
	return nil
}

// sweep removes files below a folder, and the folders that are empty then, without
// following links. It reports whether anything is left.
func (u *update) sweep(dir string, files map[string]string) (left bool, err error) {
	dirs := map[string]bool{dir: true} // whether it is one, and nothing above it a link
	var isDir func(at string) bool
	isDir = func(at string) bool {
		is, known := dirs[at]
		if !known {
			info, err := u.root.Lstat(at)
			is = isDir(path.Dir(at)) && err == nil && info.IsDir()
			dirs[at] = is
		}
		return is
	}
	for _, file := range sortedKeys(files) {
		at := path.Join(dir, file)
		if !strings.HasPrefix(at, dir+"/") || !isDir(path.Dir(at)) {
			continue // the marker may say anything
		}
		if info, err := u.root.Lstat(at); err != nil || info.IsDir() {
			continue
		}
		if err := u.root.Remove(at); err != nil {
			return true, fmt.Errorf("take %s out of the mirror: %w", at, err)
		}
	}
	deepest := sortedKeys(dirs)
	slices.SortStableFunc(deepest, func(x, y string) int { return cmp.Compare(strings.Count(y, "/"), strings.Count(x, "/")) })
	for _, at := range deepest {
		if dirs[at] {
			err = u.root.Remove(at)
		}
	}
	return err != nil && !errors.Is(err, fs.ErrNotExist), nil // what is not empty is somebody else's
}
