package capability_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// expand finds what a glob matches as servers do that follow every link, some steps deep.
func expand(dir string, segs []string, deep int) (found []string) {
	if len(segs) == 0 {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || deep == 0 {
		return nil
	}
	rest := segs[1:]
	if segs[0] == "**" {
		found, rest = expand(dir, rest, deep-1), segs
	}
	for _, entry := range entries {
		ok, err := path.Match(segs[0], entry.Name())
		if place := dir + "/" + entry.Name(); segs[0] == "**" || ok && err == nil {
			found = append(found, expand(place, rest, deep-1)...)
			if len(segs) == 1 {
				found = append(found, place)
			}
		}
	}
	return found
}

// randomLinks makes a tree of random names, many of which are links to others, inside of w
// and out.
func randomLinks(t *testing.T, pick func(...string) string) (base string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := func() string { return pick("/a", "/b", "/ab", "/.a", "") }
	place := func() string { return base + pick("/w", "/w", "/out") + name() + name() + name() }
	for _, dir := range []string{"/w", "/out"} {
		if err := os.Mkdir(base+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 { // of which some are in each other's way
		at := place()
		_ = os.MkdirAll(path.Dir(at), 0o755)
		switch pick("file", "dir", "link", "link") {
		case "file":
			_ = os.WriteFile(at, nil, 0o644)
		case "dir":
			_ = os.MkdirAll(at, 0o755)
		default:
			_ = os.Symlink(base+pick("/w", "/out")+name(), at)
		}
	}
	return base
}

// uncovered returns where something is that a glob matches and a table does not cover, ""
// if there is nothing.
func uncovered(table *capability.PathTable, dir string, segs []string) (found string) {
	for _, match := range expand(dir, segs, 6) {
		real, err := filepath.EvalSymlinks(match)
		if err != nil {
			continue
		}
		if p, err := (capability.View{}).Path(real); decidePath(table, p, err) != allow {
			found = real
		}
	}
	return found
}

// TestExpansionAgrees: what is allowed expands to nothing that is not, in trees of random
// links.
func TestExpansionAgrees(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	segment := func() string { return pick("a", "b", "*", "*", "?", "[ab]", "a*", "?b", "**", ".*a", "[.]a") }
	tally := map[string]int{}
	for n := range 120 {
		dir := randomLinks(t, pick) + "/w"
		view, table := capability.View{Cwd: dir, FS: hostfs.FS{}}, new(capability.PathTable)
		if table.Subtree(dir+pick("", "", "/a"), 0); n%2 > 0 {
			for _, held := range []string{"*", "*/a", "*/*", "*/*/b"}[r.IntN(4):] {
				table.Glob(mustUnder(t, dir, held), 1)
			}
		}
		for n := range 20 {
			segs := []string{segment(), segment(), segment()}[:1+n%3]
			out := uncovered(table, dir, segs)
			for _, read := range []func(string) (capability.Path, error){view.Glob, view.Path, view.Tree} {
				p, err := read(strings.Join(segs, "/"))
				got := decidePath(table, p, err)
				if tally[fmt.Sprintf("%s %t", got, out != "")]++; got == allow && out != "" {
					t.Errorf("%s is allowed, and matches %s", p, out)
				}
			}
		}
	}
	if t.Log(tally); tally["allow false"] < 500 || tally["deny true"] < 500 {
		t.Error("it tells nothing")
	}
}
