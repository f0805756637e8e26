package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Programs leave things in the folders of skills: caches, notes, what a file manager
// keeps in mind. They are not the mirror's and stay there, and skills go in and out around
// them.

// maxEmptied bounds the folders in the account that hold nothing of the mirror's any more.
// What is more than that is nobody's from then on.
const maxEmptied = 1024

// forget takes a skill out of the account. A folder of the mirror's that something is left
// in stays in it, without files, so that the skill can go there again.
func (u *update) forget(name string) {
	if delete(u.marker.Skills, name); u.isDir(name) {
		u.marker.Skills[name] = map[string]string{}
	}
}

// crop takes out of the account what are too many folders without files.
func (u *update) crop() {
	emptied := 0
	for _, name := range sortedKeys(u.marker.Skills) {
		if len(u.marker.Skills[name]) > 0 {
			continue
		}
		if emptied++; emptied > maxEmptied {
			delete(u.marker.Skills, name)
		}
	}
}

// fits reports whether a skill can go into a folder without touching what is there.
func (u *update) fits(name string, s *Skill) bool {
	if !u.isDir(name) {
		return false
	}
	for _, f := range s.Files {
		at := path.Join(name, f.Path)
		if _, err := u.root.Lstat(at); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
		for up := path.Dir(at); up != name; up = path.Dir(up) {
			if info, err := u.root.Lstat(up); err == nil && !info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false
			}
		}
	}
	return true
}

// errInTheWay is why a skill that was put together does not go in.
var errInTheWay = errors.New("something else is there")

// place has a skill that was put together take its folder. What is left in one of the
// mirror's is moved aside for it, to be put back.
func (u *update) place(name string, from staged, s *Skill) error {
	if !from.mine || !u.isDir(name) {
		return u.root.Rename(from.dir, name)
	}
	if !u.fits(name, s) {
		return errInTheWay
	}
	if err := u.root.Rename(name, asideName+name); err != nil {
		return err
	}
	if err := u.root.Rename(from.dir, name); err != nil {
		return errors.Join(err, u.root.Rename(asideName+name, name))
	}
	return nil
}

// putBack returns to a folder what was moved aside and is not the mirror's, unless
// somebody else's is there by now.
func (u *update) putBack(name string) error {
	if !u.isDir(asideName + name) {
		return nil
	}
	if _, err := u.root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		if err := u.root.Rename(asideName+name, name); err != nil {
			return fmt.Errorf("put back what is not the mirror's in %s: %w", name, err)
		}
		return nil
	}
	if _, mine := u.marker.Skills[name]; mine && u.isDir(name) {
		return u.merge(asideName+name, name)
	}
	return nil
}

// merge moves what a folder holds into another, as far as its place is free there and as
// deep as skills go. What stays is tried again by the next update.
func (u *update) merge(from, to string) error {
	err := u.each(from, func(e fs.DirEntry) error {
		src, dst := path.Join(from, e.Name()), path.Join(to, e.Name())
		if u.left--; u.left < 0 || strings.Count(dst, "/") > maxNested {
			return nil
		}
		if _, err := u.root.Lstat(dst); errors.Is(err, fs.ErrNotExist) {
			return u.root.Rename(src, dst)
		}
		if u.isDir(src) && u.isDir(dst) {
			return u.merge(src, dst)
		}
		return nil
	})
	_ = u.root.Remove(from) // if it is empty
	return err
}
