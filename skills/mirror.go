package skills

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Mirror is a folder that holds a copy of the skills which one agent is shown, for
// clients that read the disk. What somebody else put there is left as it is.
type Mirror struct {
	Dir   string // where it leads: an update follows no link on the way there
	Agent string

	// Clean reports whether a file, or the path of one, may be written where the agent reads
	// it, as one that a secret stands in may not. Nil: all may.
	Clean func(data []byte) bool
}

// Mirrored is what an update of a mirror did, by the folders of skills in it.
type Mirrored struct {
	Written  []string `json:"written"`
	Removed  []string `json:"removed"`
	Kept     []string `json:"kept"`       // they were right already
	InTheWay []string `json:"in_the_way"` // of something that is not the mirror's
	Over     []string `json:"over"`       // left out, since there are too many files
	Withheld []string `json:"withheld"`   // left out, since a file of theirs, or its name, is not clean
}

const (
	ownPrefix  = ".capgate-"       // of the names that are the mirror's own
	markerName = ".capgate-mirror" // says which files of a folder are the mirror's
	maxMarker  = 8 << 20           // bytes
	lockName   = ".capgate-lock"
	stageName  = ".capgate-stage-" // where a skill is put together
	asideName  = ".capgate-aside-" // where one is moved to be taken out
)

// marker is what the mirror wrote into a folder.
type marker struct {
	Agent  string                       `json:"agent"`
	Skills map[string]map[string]string `json:"skills"` // folder: file: digest
}

// ErrMirror is returned for a folder that is the mirror of somebody else, or whose
// marker cannot be read.
var ErrMirror = errors.New("the folder is not a mirror of this agent")

// keptFrom says why an agent may not have the folder, which is another's. One that holds
// nothing may become anybody's, though what was taken out may be named still.
func (m marker) keptFrom(agent string) error {
	if m.Agent == agent {
		return nil
	}
	for _, files := range m.Skills {
		if len(files) > 0 {
			return fmt.Errorf("%w, but of %s: remove its %s to give it to another", ErrMirror, clip(m.Agent), markerName)
		}
	}
	return nil
}

// Update makes a mirror hold these skills and no others. A skill is there whole or not
// at all. One that cannot be read as it was at load, or not be written, is taken out. Once the context has ended
// nothing more is put in.
func (m Mirror) Update(ctx context.Context, shown []*Skill) (Mirrored, error) {
	done := Mirrored{Written: []string{}, Removed: []string{}, Kept: []string{}, InTheWay: []string{}, Over: []string{}, Withheld: []string{}}
	root, err := openHere(filepath.Clean(m.Dir))
	if err != nil {
		return done, err
	}
	defer func() { _ = root.Close() }() // each file that was written has been closed
	unlock, err := lock(root)
	if err != nil {
		return done, err
	}
	defer unlock()
	u := update{root: root, clean: m.Clean, left: maxLeft, Mirrored: &done}
	if err := u.open(m.Agent); err != nil {
		return done, err
	}
	errFinish := u.finish()
	want, clash := folders(shown)
	done.InTheWay = append(done.InTheWay, clash...)
	done.Over = append(done.Over, fit(want)...)
	return done, few(errFinish, u.run(ctx, want))
}

// openHere opens a folder that no link leads to, and makes it if it is not there.
// Whoever may move folders on the way there may do so at any time: it is the folder
// that was opened which must lie there.
func openHere(dir string) (*os.Root, error) {
	above := dir
	for _, err := os.Lstat(above); errors.Is(err, fs.ErrNotExist) && above != filepath.Dir(above); _, err = os.Lstat(above) {
		above = filepath.Dir(above)
	}
	if err := noLink(above); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the mirror: %w", err)
	}
	root, err := os.OpenRoot(asFolder(dir))
	if err != nil {
		return nil, fmt.Errorf("open the mirror: %w", err)
	}
	opened, errOpened := root.Stat(".")
	err = noLink(dir)
	there, errThere := os.Lstat(dir)
	if err = errors.Join(errOpened, err, errThere); err == nil && !os.SameFile(opened, there) {
		err = errors.New("open the mirror: another folder took its place")
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

// noLink is an error for a folder that lies behind a link.
func noLink(dir string) error {
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return fmt.Errorf("open the mirror: %s lies behind a link now, which may lead anywhere", dir)
	}
	return nil
}

// maxFolder is how many bytes the name of a skill's folder may have, so that there is room
// for what stands before it when the folder is moved aside.
const maxFolder = 255 - len(asideName)

// folders gives each skill the folder of its name, which is what clients look for, or
// of its path where two have one name. Where even those clash there is neither.
func folders(shown []*Skill) (all map[string]*Skill, clash []string) {
	named, claimed := map[string]int{}, map[string]int{}
	for _, s := range shown {
		named[oneCase(s.Name)]++
	}
	folder := func(s *Skill) string {
		if named[oneCase(s.Name)] == 1 {
			return s.Name
		}
		return strings.ReplaceAll(s.Path, "/", "--")
	}
	for _, s := range shown {
		claimed[oneCase(folder(s))]++
	}
	all = map[string]*Skill{}
	for _, s := range shown {
		if name := folder(s); claimed[oneCase(name)] == 1 && !strings.HasPrefix(name, ownPrefix) && len(name) <= maxFolder {
			all[name] = s
		} else {
			clash = append(clash, name)
		}
	}
	return all, clash
}

// maxWanted bounds what of the marker is said of what the mirror should hold: some 25,000
// files. The rest is for what cannot be taken out.
const maxWanted = maxMarker / 2

// fit takes out of what a mirror should hold what its marker has no room for. One that is
// too long to be read again would keep in the mirror whatever is there.
func fit(want map[string]*Skill) (over []string) {
	const around = 64 // bytes of blanks and marks around an entry
	left := maxWanted
	for _, name := range sortedKeys(want) {
		left -= len(name) + around
		for _, f := range want[name].Files {
			written, err := json.Marshal(f.Path)
			if err != nil { // a string can always be written
				left = 0
			}
			left -= len(written) + len(f.Digest) + around
		}
		if left < 0 {
			over = append(over, name)
			delete(want, name)
		}
	}
	return over
}

// update is a mirror while it is brought up to date.
type update struct {
	*Mirrored
	root   *os.Root
	clean  func([]byte) bool
	marker marker
	saved  []byte // the marker as it lies there
	left   int    // how much that nobody has counted may still be looked at
}

// errUnclean is why a skill is not put together.
var errUnclean = errors.New("a file of the skill may not be shown")

// isClean reports whether a file of a skill may be in the mirror, as to what stands in it and
// what it is called.
func (u *update) isClean(s *Skill, f File, data []byte) bool {
	return u.clean == nil || u.clean(data) && u.clean([]byte(path.Join(s.Path, f.Path)))
}

// open reads the marker. A folder without one belongs to somebody, and gets one.
func (u *update) open(agent string) error {
	u.marker = marker{Agent: agent, Skills: map[string]map[string]string{}}
	info, err := u.root.Lstat(markerName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return ErrMirror
	}
	text, err := readFile(u.root, markerName, maxMarker)
	var read marker
	if err != nil || json.Unmarshal(text, &read) != nil {
		return ErrMirror
	}
	if err := read.keptFrom(agent); err != nil {
		return err
	}
	u.saved = text
	entries := 0
	for name, files := range read.Skills {
		if entries += 1 + len(files); entries > maxMarked || !isFolder(name) || !isFileName(name) {
			return ErrMirror
		}
		for file := range files {
			if !filepath.IsLocal(file) || !isFileName(file) || strings.Count(file, "/") > maxNested {
				return ErrMirror
			}
		}
		u.marker.Skills[name] = files
	}
	u.crop()
	return nil
}

// maxMarked bounds the skills and files of a marker that others may have written. One with
// more than an update ever writes is not the mirror's.
const maxMarked = 1 << 17

// isFolder reports whether a text is the name of one folder.
func isFolder(name string) bool {
	return filepath.IsLocal(name) && filepath.Base(name) == name && name != "."
}

// save writes the marker, all of it or nothing. One that is there already is left, so that
// whoever looks at the folder sees that nothing has happened.
func (u *update) save() error {
	u.crop()
	text, err := json.MarshalIndent(u.marker, "", "  ")
	if err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	if len(text) > maxMarker {
		return fmt.Errorf("write the marker: it is over %d bytes", maxMarker)
	}
	if bytes.Equal(text, u.saved) {
		return nil
	}
	name := stageName + rand.Text()
	if err := u.write(name, text, 0o644); err != nil {
		return err
	}
	if err := u.root.Rename(name, markerName); err != nil {
		return fmt.Errorf("write the marker: %w", err)
	}
	u.saved = text
	return nil
}

// run takes out first what is not shown any more. What cannot be done with one skill
// keeps no other in the mirror, nor out of it.
func (u *update) run(ctx context.Context, want map[string]*Skill) error {
	var errs []error
	for _, name := range sortedKeys(u.marker.Skills) {
		if want[name] == nil {
			errs = append(errs, u.remove(name))
		}
	}
	for names := range slices.Chunk(sortedKeys(want), atOnce) {
		errs = append(errs, u.putAll(ctx, names, want))
		if err := ctx.Err(); err != nil { // what has not gone in by now is not known to be in step
			errs = append(errs, fmt.Errorf("put skills into the mirror: %w", err))
			break
		}
	}
	return few(append(errs, u.save())...)
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// atOnce is how many skills are put in after the marker was written once, which takes long
// where there are many.
const atOnce = 64

// putAll makes the folders of some skills right. They stand in the marker before they are
// there, so that they are never nobody's.
func (u *update) putAll(ctx context.Context, names []string, want map[string]*Skill) error {
	var errs []error
	put := map[string]staged{}
	for _, name := range names {
		if ctx.Err() != nil {
			break
		}
		stage, err := u.prepare(name, want[name])
		if errs = append(errs, err); stage == "" {
			continue
		}
		_, mine := u.marker.Skills[name]
		put[name], u.marker.Skills[name] = staged{stage, mine}, digests(want[name])
	}
	if len(put) == 0 {
		return few(errs...)
	}
	errSave := u.save()
	over := errSave != nil || ctx.Err() != nil
	for _, name := range sortedKeys(put) {
		if over {
			errs = append(errs, u.drop(name, put[name], want[name]))
		} else {
			errs = append(errs, u.settle(name, put[name], want[name]))
		}
	}
	return few(append(errs, errSave)...)
}

// staged is a skill that was put together.
type staged struct {
	dir  string
	mine bool // where it goes is the mirror's already
}

// settle has a skill that was put together take its folder, and what was left in that come
// back.
func (u *update) settle(name string, from staged, s *Skill) error {
	if err := u.place(name, from, s); err != nil { // what is there now is somebody else's
		return errors.Join(fmt.Errorf("put the skill %s into the mirror: %w", name, err), u.drop(name, from, s))
	}
	u.Written = append(u.Written, name)
	return u.putBack(name)
}

// drop discards a skill that was put together and does not go in.
func (u *update) drop(name string, from staged, s *Skill) error {
	if delete(u.marker.Skills, name); from.mine {
		u.forget(name)
	}
	return u.discard(from.dir, s)
}

// prepare puts a skill together beside its folder, and makes way for it. The stage is "" if
// there is nothing to be put in.
func (u *update) prepare(name string, s *Skill) (stage string, err error) {
	files, mine := u.marker.Skills[name]
	if mine && u.holds(name, s) {
		u.Kept = append(u.Kept, name)
		return "", nil
	}
	if _, err := u.root.Lstat(name); !mine && !errors.Is(err, fs.ErrNotExist) { // before it is put together in vain
		u.InTheWay = append(u.InTheWay, name)
		return "", nil
	}
	stage = stageName + rand.Text()
	if err := u.stage(stage, s); err != nil {
		_ = u.discard(stage, s) // it is the first error that counts
		return "", u.leaveOut(name, err)
	}
	if mine {
		if err := u.clear(name, files); err != nil {
			return "", err
		}
	}
	if _, err := u.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) && (!mine || !u.fits(name, s)) {
		if mine {
			u.forget(name)
		}
		u.InTheWay = append(u.InTheWay, name)
		return "", u.discard(stage, s)
	}
	return stage, nil
}

// leaveOut says why a skill could not be put together. One of before goes as well: what
// whoever is shown this one may not see could be in that.
func (u *update) leaveOut(name string, why error) error {
	switch {
	case errors.Is(why, errUnclean):
		u.Withheld, why = append(u.Withheld, name), nil
	case errors.Is(why, ErrChanged): // it will be read anew
		why = nil
	default:
		why = fmt.Errorf("put the skill %s into the mirror: %w", name, why)
	}
	if _, mine := u.marker.Skills[name]; mine {
		why = few(why, u.remove(name))
	}
	return why
}

// holds reports whether a skill is in its folder, and nothing of an earlier one. What
// others have left beside it does not count.
func (u *update) holds(name string, s *Skill) bool {
	in := u.below(name)
	return maps.Equal(u.marker.Skills[name], digests(s)) && !slices.ContainsFunc(s.Files, func(f File) bool {
		at := path.Join(name, f.Path)
		info, err := u.root.Lstat(at)
		if err != nil || !info.Mode().IsRegular() || f.Exec && info.Mode()&anybody == 0 || !in.has(path.Dir(at)) {
			return true
		}
		data, err := readFile(u.root, at, f.Size)
		return err != nil || Digest(data) != f.Digest || !u.isClean(s, f, data)
	})
}

// stage writes a copy of a skill.
func (u *update) stage(dir string, s *Skill) error {
	for _, f := range s.Files {
		data, err := s.Read(f.Path)
		if err != nil {
			return err
		}
		if !u.isClean(s, f, data) {
			return errUnclean
		}
		at := path.Join(dir, f.Path)
		if err := u.root.MkdirAll(path.Dir(at), 0o755); err != nil {
			return fmt.Errorf("write the mirror: %w", err)
		}
		mode := fs.FileMode(0o644)
		if f.Exec {
			mode = 0o755
		}
		if err := u.write(at, data, mode); err != nil {
			return err
		}
	}
	return nil
}

func (u *update) write(name string, data []byte, mode fs.FileMode) error {
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("write the mirror: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the mirror: %w", err)
	}
	return nil
}
