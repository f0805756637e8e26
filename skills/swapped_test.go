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
