package skills_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"capgate/skills"
)

// TestSwappedFolder: a folder and a link that trade places while skills are read lead to
// what lies below the folder that was named, or nowhere.
func TestSwappedFolder(t *testing.T) {
	dir := tree(t, map[string]string{
		"all/a/SKILL.md": md("a"), "all/node_modules/a": "->../other",
		"other/SKILL.md": md("a"), "other/private": "x",
	})
	at, link, aside := filepath.Join(dir, "all/a"), filepath.Join(dir, "all/node_modules/a"), filepath.Join(dir, "aside")
	done := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(done)
	wg.Go(func() {
		for there := link; ; {
			if err := errors.Join(os.Rename(at, aside), os.Rename(there, at), os.Rename(aside, there)); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	for range 2000 {
		for s := range skills.Load(options(), filepath.Join(dir, "all")).All() {
			if slices.ContainsFunc(s.Files, func(f skills.File) bool { return f.Path == "private" }) {
				t.Fatal("another folder was read")
			}
		}
	}
}

// TestStampOfModules: what comes and goes where no skills are looked for is no reason to read them all anew.
func TestStampOfModules(t *testing.T) {
	for at, seen := range map[string]bool{
		"node_modules/x/b.md": false, "web/node_modules/x/SKILL.md": false, "a/node_modules/x/b.md": true, "a/in/node_modules/x/b.md": true,
		"b/node_modules/x/SKILL.md": true, "web/b.md": true,
	} {
		dir := tree(t, map[string]string{"node_modules/x/a.md": "", "web/node_modules/x/a.md": "", "a/SKILL.md": md("a"), "a/in/node_modules/x/a.md": "", "b/skill.md": md("b")})
		for _, top := range []string{dir, dir + "/"} {
			before := skills.Stamp(top)
			put(t, filepath.Join(dir, at), "x")
			if got := skills.Stamp(top) != before; got != seen {
				t.Errorf("%s: seen %t", at, got)
			}
			if err := os.RemoveAll(filepath.Join(dir, at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := filepath.Join(tree(t, map[string]string{"node_modules/a/SKILL.md": md("a")}), "node_modules")
	before := skills.Stamp(dir)
	put(t, filepath.Join(dir, "a", "b.md"), "x")
	if skills.Stamp(dir) == before {
		t.Error("what is said to hold skills is not looked at")
	}
}
