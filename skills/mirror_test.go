package skills_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/skills"
)

// listing is what lies below a folder: each file with its text, each link with where
// it leads. The mirror's own files are left out.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(name, dir+"/")
		switch {
		case err != nil:
			return err
		case rel == ".capgate-mirror" || rel == ".capgate-lock":
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			all[rel] = "->" + target
			return err
		case !e.IsDir():
			data, err := os.ReadFile(name)
			all[rel] = string(data)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// library reads the skills of some files.
func library(t *testing.T, files map[string]string) []*skills.Skill {
	t.Helper()
	return slices.Collect(skills.Load(options(), tree(t, files)).All())
}

func update(t *testing.T, dir string, list []*skills.Skill) skills.Mirrored {
	t.Helper()
	done, err := skills.Mirror{Dir: dir, Agent: "agents/scout"}.Update(t.Context(), list)
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// updating takes everything out of a mirror, beside the test.
func updating(t *testing.T, dir string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := skills.Mirror{Dir: dir, Agent: "agents/scout"}.Update(t.Context(), nil)
		done <- err
	}()
	return done
}

// same reports what differs between what lies in a mirror and what should.
func same(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, listing(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestMirror(t *testing.T) {
	both := map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x", "web/b/SKILL.md": md("b")}
	dir := filepath.Join(t.TempDir(), "new", "mirror")
	list := library(t, both)
	if diff := cmp.Diff(skills.Mirrored{Written: []string{"a", "b"}, Removed: []string{}, Kept: []string{}, InTheWay: []string{}, Over: []string{}, Withheld: []string{}}, update(t, dir, list)); diff != "" {
		t.Error(diff)
	}
	whole := map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x", "b/SKILL.md": md("b")}
	same(t, dir, whole)
	if done := update(t, dir, list); len(done.Kept) != 2 || len(done.Written) != 0 {
		t.Errorf("what is right already: %+v", done)
	}

	// What somebody changed or removed of it comes back.
	put(t, filepath.Join(dir, "a/more/x.md"), "y")
	if err := os.Remove(filepath.Join(dir, "b/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	update(t, dir, list)
	same(t, dir, whole)

	// What is not shown any more goes, with its folders.
	if done := update(t, dir, list[1:]); !slices.Equal(done.Removed, []string{"a"}) || !slices.Equal(done.Kept, []string{"b"}) {
		t.Errorf("%+v", done)
	}
	same(t, dir, map[string]string{"b/SKILL.md": md("b")})
	update(t, dir, nil)
	same(t, dir, map[string]string{})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("folders are left: %v %v", entries, err)
	}
}

// TestMirrorNames: clients look for a folder of the skill's name; where two have one
// name, each has the folder of its path.
func TestMirrorNames(t *testing.T) {
	dir := t.TempDir()
	list := library(t, map[string]string{"x/a/SKILL.md": md("a"), "y/a/SKILL.md": md("a"), "z/b/SKILL.md": md("b")})
	update(t, dir, list)
	same(t, dir, map[string]string{"x--a/SKILL.md": md("a"), "y--a/SKILL.md": md("a"), "b/SKILL.md": md("b")})
	accents := library(t, map[string]string{"x/c/SKILL.md": md("\u00e9"), "y/c/SKILL.md": md("e\u0301")})
	if done := update(t, t.TempDir(), accents); !slices.Equal(done.Written, []string{"x--\u00e9", "y--e\u0301"}) {
		t.Errorf("%+v", done)
	}
	list = append(list, library(t, map[string]string{"x--a/SKILL.md": md("x--a")})...)
	if done := update(t, dir, list); !slices.Equal(done.InTheWay, []string{"x--a", "x--a"}) {
		t.Errorf("%+v", done)
	}
	same(t, dir, map[string]string{"y--a/SKILL.md": md("a"), "b/SKILL.md": md("b")})
}

// TestMirrorLeaves: what the mirror did not write stays as it is, and is in the way.
func TestMirrorLeaves(t *testing.T) {
	dir := t.TempDir()
	own := map[string]string{"mine/SKILL.md": "mine", "a/SKILL.md": "mine too", "notes.md": "mine", "c": "->elsewhere"}
	for name, text := range own {
		put(t, filepath.Join(dir, name), text)
	}
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "b/SKILL.md": md("b"), "c/SKILL.md": md("c")})
	if done := update(t, dir, list); !slices.Equal(done.InTheWay, []string{"a", "c"}) || !slices.Equal(done.Written, []string{"b"}) {
		t.Errorf("%+v", done)
	}
	own["b/SKILL.md"] = md("b")
	same(t, dir, own)

	// A file that somebody put into a skill of the mirror stays when the skill goes.
	put(t, filepath.Join(dir, "b/notes.md"), "mine")
	update(t, dir, list[:1])
	delete(own, "b/SKILL.md")
	own["b/notes.md"] = "mine"
	same(t, dir, own)
	// It comes back around that.
	if done := update(t, dir, list); !slices.Equal(done.Written, []string{"b"}) || !slices.Equal(done.InTheWay, []string{"a", "c"}) {
		t.Errorf("%+v", done)
	}
	own["b/SKILL.md"] = md("b")
	same(t, dir, own)
}

// TestMirrorLinks: no link is followed, into or out of the mirror.
func TestMirrorLinks(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x"})
	outside := tree(t, map[string]string{"SKILL.md": "outside", "more/x.md": "outside", "x.md": "outside"})
	kept := listing(t, outside)
	for name, swap := range map[string]func(dir string) error{
		"the folder of a skill": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "a")), os.Symlink(outside, filepath.Join(dir, "a")))
		},
		"a folder in it": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "a/more")), os.Symlink(outside, filepath.Join(dir, "a/more")))
		},
		"a folder in it, to one beside": func(dir string) error {
			return errors.Join(
				os.Mkdir(filepath.Join(dir, "mine"), 0o700), os.WriteFile(filepath.Join(dir, "mine/x.md"), []byte("mine"), 0o600),
				os.RemoveAll(filepath.Join(dir, "a/more")), os.Symlink("../mine", filepath.Join(dir, "a/more")),
			)
		},
		"a file": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "a/SKILL.md")), os.Symlink(filepath.Join(outside, "SKILL.md"), filepath.Join(dir, "a/SKILL.md")))
		},
	} {
		for _, shown := range [][]*skills.Skill{nil, list} {
			dir := t.TempDir()
			update(t, dir, list)
			if err := swap(dir); err != nil {
				t.Fatal(err)
			}
			update(t, dir, shown)
			if diff := cmp.Diff(kept, listing(t, outside)); diff != "" {
				t.Errorf("%s: what lies outside: %s", name, diff)
			}
			for file, text := range listing(t, dir) {
				if shown == nil && strings.HasSuffix(file, ".md") && !strings.HasPrefix(text, "->") && text != "mine" {
					t.Errorf("%s: %s is left: %q", name, file, text)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "mine")); err == nil && listing(t, dir)["mine/x.md"] != "mine" {
				t.Errorf("%s: what is not the mirror's was removed", name)
			}
		}
	}
	link := filepath.Join(t.TempDir(), ".capgate-mirror")
	put(t, link, "->"+filepath.Join(outside, "x.md"))
	if _, err := (skills.Mirror{Dir: filepath.Dir(link), Agent: "agents/scout"}).Update(t.Context(), list); !errors.Is(err, skills.ErrMirror) {
		t.Errorf("a marker that is a link: %v", err)
	}
}

// TestMirrorOfOthers: a folder is the mirror of one agent, and its marker is read
// strictly.
func TestMirrorOfOthers(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a")})
	dir := t.TempDir()
	update(t, dir, list)
	if _, err := (skills.Mirror{Dir: dir, Agent: "agents/lead"}).Update(t.Context(), nil); !errors.Is(err, skills.ErrMirror) || !strings.Contains(err.Error(), "of agents/scout") {
		t.Errorf("another agent's mirror: %v", err)
	}
	same(t, dir, map[string]string{"a/SKILL.md": md("a")})
	update(t, dir, nil)
	if _, err := (skills.Mirror{Dir: dir, Agent: "agents/lead"}).Update(t.Context(), list); err != nil {
		t.Errorf("an empty one: %v", err)
	}
	same(t, dir, map[string]string{"a/SKILL.md": md("a")})
	if _, err := (skills.Mirror{Dir: dir, Agent: "agents/scout"}).Update(t.Context(), nil); !errors.Is(err, skills.ErrMirror) {
		t.Errorf("it is still the first agent's: %v", err)
	}
	outer := tree(t, map[string]string{"x/SKILL.md": "outside", "mirror/keep": "x"})
	var many strings.Builder // more than there ever are
	for i := range 1 << 17 {
		fmt.Fprintf(&many, `"%x":"",`, i)
	}
	for _, marker := range []string{
		"", "{", `{"agent":"agents/lead","skills":{"a":{"b":""}}}`, `{"agent":"agents/scout","skills":{"../x":{"SKILL.md":""}}}`, `{"agent":"agents/scout","skills":{"a":{"../../x/SKILL.md":""}}}`,
		`{"agent":"agents/scout","skills":{"a":{"/etc/passwd":""}}}`, `{"agent":"agents/scout","skills":{".":{"keep":""}}}`, `{"agent":"agents/scout","skills":{"a/b":{"c":""}}}`,
		`{"agent":"agents/scout","skills":{"a\u0000":{}}}`, `{"agent":"agents/scout","skills":{"` + strings.Repeat("a", 513) + `":{}}}`,
		`{"agent":"agents/scout","skills":{"a":{"` + strings.Repeat("x/", 17) + `x":""}}}`, `{"agent":"agents/scout","skills":{"a":{"` + strings.Repeat("x", 513) + `":""}}}`,
		`{"agent":"agents/scout","skills":{"a":{` + many.String() + `"x":""}}}`,
	} {
		put(t, filepath.Join(outer, "mirror/.capgate-mirror"), marker)
		if _, err := (skills.Mirror{Dir: filepath.Join(outer, "mirror"), Agent: "agents/scout"}).Update(t.Context(), list); !errors.Is(err, skills.ErrMirror) {
			t.Errorf("the marker %s: %v", marker, err)
		}
		same(t, filepath.Join(outer, "mirror"), map[string]string{"keep": "x"})
	}
	same(t, filepath.Join(outer, "x"), map[string]string{"SKILL.md": "outside"})
}

// TestMirrorOfTooMuch: what the marker has no room for is left out, so that it can be read
// again and what is not shown any more taken out.
func TestMirrorOfTooMuch(t *testing.T) {
	files := map[string]string{}
	long := strings.Repeat("<", 240)
	for _, name := range []string{"a", "b", "c", "d"} {
		files[name+"/SKILL.md"] = md(name)
		for i := range 500 {
			files[fmt.Sprintf("%s/%s/%s%d", name, long, long, i)] = ""
		}
	}
	dir, list := filepath.Join(t.TempDir(), "mirror"), library(t, files)
	if done := update(t, dir, list); !slices.Equal(done.Written, []string{"a", "b"}) || !slices.Equal(done.Over, []string{"c", "d"}) {
		t.Errorf("written %v, left out %v", done.Written, done.Over)
	}
	if done := update(t, dir, list[3:]); !slices.Equal(done.Removed, []string{"a", "b"}) || !slices.Equal(done.Written, []string{"d"}) {
		t.Errorf("removed %v, written %v", done.Removed, done.Written)
	}
	if done := update(t, dir, nil); !slices.Equal(done.Removed, []string{"d"}) {
		t.Errorf("removed %v", done.Removed)
	}
	same(t, dir, map[string]string{})
}

// TestMirrorOfMany: skills are put in several at once, and what is wrong with one keeps none
// of the others out.
func TestMirrorOfMany(t *testing.T) {
	const count = 150
	files, want := map[string]string{}, map[string]string{"s70/mine.md": "mine"}
	for i := range count {
		name := fmt.Sprintf("s%d", i)
		files[name+"/SKILL.md"] = md(name)
		if i != 70 && i != 71 {
			want[name+"/SKILL.md"] = md(name)
		}
	}
	top, dir := tree(t, files), t.TempDir()
	list := slices.Collect(skills.Load(options(), top).All())
	put(t, filepath.Join(top, "s71/SKILL.md"), "changed")
	put(t, filepath.Join(dir, "s70/mine.md"), "mine")
	for _, written := range []int{count - 2, 0} {
		done := update(t, dir, list)
		if len(done.Written) != written || !slices.Equal(done.InTheWay, []string{"s70"}) {
			t.Errorf("%d were written, want %d; %v is in the way", len(done.Written), written, done.InTheWay)
		}
		same(t, dir, want)
	}
	update(t, dir, nil)
	same(t, dir, map[string]string{"s70/mine.md": "mine"})
}

// TestMirrorCutShort: what an update left half done is finished by the next.
func TestMirrorCutShort(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/x.md": "x"})
	dir := t.TempDir()
	update(t, dir, list)
	put(t, filepath.Join(dir, ".capgate-stage-XYZ/SKILL.md"), "half of one")
	if err := os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, ".capgate-aside-a")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, ".capgate-aside-a/notes.md"), "mine")
	update(t, dir, nil)
	same(t, dir, map[string]string{"a/notes.md": "mine"})
}

// TestMirrorWithOthersInIt: nobody who writes into a mirror keeps an update waiting, or
// keeps in it what is not shown any more.
func TestMirrorWithOthersInIt(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x", "b/SKILL.md": md("b")})
	deep := strings.Repeat("d/", 40)
	for name, meddle := range map[string]func(dir string) error{
		"a pipe that looks moved aside":  func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, ".capgate-aside-x"), 0o600) },
		"a file that looks moved aside":  func(dir string) error { return os.WriteFile(filepath.Join(dir, ".capgate-aside-a"), nil, 0o600) },
		"a pipe that looks like a stage": func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, ".capgate-stage-x"), 0o600) },
		"a pipe in a skill":              func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "a/more/y"), 0o600) },
		"a pipe in place of a skill": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, "a")), syscall.Mkfifo(filepath.Join(dir, "a"), 0o600))
		},
		"a folder that looks moved aside":  func(dir string) error { return os.MkdirAll(filepath.Join(dir, ".capgate-aside-a/mine"), 0o700) },
		"a file where one is moved aside":  func(dir string) error { put(t, filepath.Join(dir, ".capgate-aside-a/mine.md"), "mine"); return nil },
		"folders that nest without an end": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "a", deep), 0o700) },
		"a link that looks moved aside":    func(dir string) error { return os.Symlink("b", filepath.Join(dir, ".capgate-aside-b")) },
	} {
		dir := t.TempDir()
		update(t, dir, list)
		if err := meddle(dir); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-updating(t, dir):
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: the update does not end", name)
		}
		err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
			if filepath.Base(file) == "SKILL.md" || filepath.Base(file) == "x.md" {
				t.Errorf("%s: %s is left", name, strings.TrimPrefix(file, dir))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestMirrorWithoutEnd: what somebody else puts where the mirror takes things out is not
// followed down, however deep it goes, and what they write into the marker leads nowhere.
func TestMirrorWithoutEnd(t *testing.T) {
	dir := t.TempDir()
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x"})
	put(t, filepath.Join(dir, ".capgate-mirror"), `{"agent":"agents/scout","skills":{"a":{".":"","more/..":"","x/../more/x.md":""}}}`)
	put(t, filepath.Join(dir, "a/more/x.md"), "an old one")
	put(t, filepath.Join(dir, "b/SKILL.md"), "somebody's")
	put(t, filepath.Join(dir, ".capgate-stage-old/more/x.md"), "x")
	deep := filepath.Join(dir, ".capgate-stage-deep", strings.Repeat("d/", 40))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if done := update(t, dir, list); len(done.Written) != 1 {
		t.Errorf("the update did %v", done)
	}
	for file, there := range map[string]bool{deep: true, ".capgate-stage-old": false, "a/SKILL.md": true, "b/SKILL.md": true} {
		if _, err := os.Lstat(filepath.Join(dir, strings.TrimPrefix(file, dir))); (err == nil) != there {
			t.Errorf("%s: %v", strings.TrimPrefix(file, dir), err)
		}
	}
}

// TestMirrorBehindALink: a mirror stays where it was: who may move a folder above it
// aside does not choose where it is written.
func TestMirrorBehindALink(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a")})
	top := tree(t, map[string]string{"mine/keep": "x"})
	dir := filepath.Join(top, "agent/skills")
	update(t, dir, list)
	if err := errors.Join(os.Rename(filepath.Join(top, "agent"), filepath.Join(top, "aside")), os.Symlink("mine", filepath.Join(top, "agent"))); err != nil {
		t.Fatal(err)
	}
	if _, err := (skills.Mirror{Dir: dir, Agent: "agents/scout"}).Update(t.Context(), list); err == nil {
		t.Error("it was written behind the link")
	}
	same(t, filepath.Join(top, "mine"), map[string]string{"keep": "x"})
	if _, err := os.Stat(filepath.Join(top, "mine/skills")); err == nil {
		t.Error("a folder was made behind the link")
	}
}

// TestMirrorFolderOfItsOwn: no skill has a folder that the mirror would take for one of
// its own names.
func TestMirrorFolderOfItsOwn(t *testing.T) {
	list := library(t, map[string]string{".capgate-aside-q/x/SKILL.md": md("x"), ".capgate-stage-q/x/SKILL.md": md("x")})
	dir := t.TempDir()
	update(t, dir, list)
	update(t, dir, list)
	update(t, dir, nil)
	same(t, dir, map[string]string{})
}

// TestMirrorChanged: a skill that is not what it was at load is taken out.
func TestMirrorChanged(t *testing.T) {
	src := tree(t, map[string]string{"a/SKILL.md": md("a"), "a/run.sh": "x", "b/SKILL.md": md("b")})
	if err := os.Chmod(filepath.Join(src, "a/run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	list := slices.Collect(skills.Load(options(), src).All())
	dir := t.TempDir()
	update(t, dir, list)
	if info, err := os.Stat(filepath.Join(dir, "a/run.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("a program is %v, %v", info.Mode(), err)
	}
	if err := os.Chmod(filepath.Join(dir, "a/run.sh"), 0o600); err != nil {
		t.Fatal(err)
	}
	if done := update(t, dir, list); !slices.Equal(done.Written, []string{"a"}) {
		t.Errorf("what may be run no more: %+v", done)
	}
	put(t, filepath.Join(src, "a/run.sh"), "another")
	if err := os.Remove(filepath.Join(dir, "a/SKILL.md")); err != nil { // so that the copy is looked at
		t.Fatal(err)
	}
	if done := update(t, dir, list); !slices.Equal(done.Removed, []string{"a"}) {
		t.Errorf("%+v", done)
	}
	same(t, dir, map[string]string{"b/SKILL.md": md("b")})
}

// TestMirrorLock: one process at a time.
func TestMirrorLock(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a")})
	dir := t.TempDir()
	done := make(chan error)
	const at = 8
	for range at {
		go func() {
			_, err := skills.Mirror{Dir: dir, Agent: "agents/scout"}.Update(t.Context(), list)
			done <- err
		}()
	}
	for range at {
		if err := <-done; err != nil && !strings.Contains(err.Error(), "another process") {
			t.Error(err)
		}
	}
	update(t, dir, list)
	same(t, dir, map[string]string{"a/SKILL.md": md("a")})
}

// TestMirrorClean: a skill with a file that may not be shown is not written, and one that
// was is taken out.
func TestMirrorClean(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "the key is hunter2", "b/SKILL.md": md("b"), "c/SKILL.md": md("c"), "c/hunter2.md": ""})
	dir := filepath.Join(t.TempDir(), "mirror")
	m := skills.Mirror{Dir: dir, Agent: "agents/scout", Clean: func(data []byte) bool { return !bytes.Contains(data, []byte("hunter2")) }}
	for _, before := range []int{0, 3} { // skills that lie there
		if before > 0 {
			if done := update(t, dir, list); len(done.Written)+len(done.Kept) != before {
				t.Fatalf("%+v", done)
			}
		}
		done, err := m.Update(t.Context(), list)
		if err != nil || !slices.Equal(done.Withheld, []string{"a", "c"}) {
			t.Errorf("%+v, %v", done, err)
		}
		same(t, dir, map[string]string{"b/SKILL.md": md("b")})
	}
}
