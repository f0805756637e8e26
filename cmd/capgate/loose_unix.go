//go:build unix

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"capgate/doctor"
)

// mostPlaces are looked at: what lies beyond is not found to be loose.
const mostPlaces = 100_000

// places are the files and folders that say what agents may do, and the folders above them.
func (w *world) places() []doctor.Place {
	s := &survey{seen: map[string]bool{}}
	records := map[string]bool{}
	for ag := range w.roster.All() {
		records[ag.File] = true
	}
	if w.cfg.File != "" {
		s.add(doctor.Place{File: w.cfg.File})
	}
	for _, dir := range w.cfg.Agents {
		s.tree(dir, func(file string) bool { return records[file] })
	}
	for _, dir := range w.cfg.Mappings {
		s.tree(dir, func(file string) bool { return slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(file)) })
	}
	for _, dir := range w.cfg.Skills.Folders {
		s.tree(dir, func(string) bool { return true })
	}
	if w.cfg.State != "" {
		s.add(doctor.Place{File: w.cfg.State, Listed: true})
	}
	names := slices.Concat([]string{w.cfg.File, w.cfg.State}, w.cfg.Agents, w.cfg.Mappings, w.cfg.Skills.Folders)
	s.above(slices.DeleteFunc(names, func(name string) bool { return name == "" }))
	return s.places
}

// survey is what was looked at.
type survey struct {
	places []doctor.Place
	seen   map[string]bool
}

// add looks at a place, unless nobody can write to it as it is mounted.
func (s *survey) add(p doctor.Place) {
	if s.seen[p.File] {
		return
	}
	s.seen[p.File] = true
	if len(s.places) >= mostPlaces {
		return
	}
	info, err := os.Stat(p.File)
	if err != nil {
		return // whoever reads it says so
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&0o022 != 0 && errors.Is(unix.Access(p.File, unix.W_OK), unix.EROFS) {
		return
	}
	p.Mode, p.Owner, p.Group = info.Mode(), int(stat.Uid), int(stat.Gid)
	s.places = append(s.places, p)
}

// tree adds a folder, which may be reached by a link, and all that counts beneath it. There,
// links are not followed, and no hidden folder is read.
func (s *survey) tree(top string, counts func(file string) bool) {
	_ = filepath.WalkDir(top+"/", func(path string, e fs.DirEntry, _ error) error {
		switch {
		case e == nil: // whoever reads it says so
		case filepath.Clean(path) == top:
			s.add(doctor.Place{File: top, Listed: true})
		case strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case e.IsDir():
			s.add(doctor.Place{File: path, Under: top, Listed: true})
		case e.Type().IsRegular() && counts(path):
			s.add(doctor.Place{File: path, Under: top})
		}
		return nil
	})
}

// above adds the folders that hold places, and those that lead there, by their names and
// without links.
func (s *survey) above(names []string) {
	for _, name := range slices.Clone(names) {
		if real, err := filepath.EvalSymlinks(name); err == nil && real != name {
			names = append(names, real)
		}
	}
	for _, name := range names {
		s.add(doctor.Place{File: filepath.Dir(name)})
	}
	for _, name := range names {
		for dir := filepath.Dir(filepath.Dir(name)); !s.seen[dir]; dir = filepath.Dir(dir) {
			s.add(doctor.Place{File: dir, Above: true})
		}
	}
}

// ownUser is the user that this process is.
func ownUser() int { return os.Geteuid() }
