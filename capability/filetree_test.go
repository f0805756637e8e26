package capability_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/capability/pattern"
)

// fileTree is a directory with files and links to try paths on: a root, and a
// folder beside it that no path may lead to.
type fileTree struct {
	root, outside string
}

// newFileTree builds the tree that the attack corpus is written against.
func newFileTree(t testing.TB) fileTree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := fileTree{root: base + "/root", outside: base + "/outside"}
	for _, dir := range []string{"root/src/sub", "root/notes", "root/app/[id]", "outside/sub", "root-evil", "rootevil"} {
		if err := os.MkdirAll(base+"/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		"root/ok.txt", "root/.env", "root/src/main.go", "root/src/sub/deep.txt", "root/src/sub/x.go", "root/notes/todo.md",
		"root/with space.txt", "root/café.txt", "root/100%25.txt", "root/50% off.txt", "root/app/[id]/page.tsx",
		"outside/secret.txt", "root-evil/secret.txt", "rootevil/secret.txt", "secret_parent.txt",
	} {
		if err := os.WriteFile(base+"/"+file, []byte(file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"link_in":     "src/main.go",
		"link_abs_in": tree.root + "/src",
		"sub_link":    "src/sub",
		"link_out":    tree.outside + "/secret.txt",
		"link_chain":  "link_chain2",
		"link_chain2": "../outside/secret.txt",
		"dirlink_out": tree.outside,
		"link_root":   "/",
		"dangling":    tree.outside + "/newfile",
		"loop_a":      "loop_b",
		"loop_b":      "loop_a",
	} {
		if err := os.Symlink(target, tree.root+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

func (f fileTree) view() capability.View {
	return capability.View{Cwd: f.root, Home: filepath.Dir(f.root) + "/home", FS: hostfs.FS{}}
}

// table allows entries below the root: all of it for ".", a subtree, or a glob.
func (f fileTree) table(t testing.TB, entries ...string) *capability.PathTable {
	t.Helper()
	table := new(capability.PathTable)
	for i, e := range entries {
		switch {
		case e == ".":
			table.Subtree(f.root, int32(i))
		case e == "/":
			table.Subtree("/", int32(i))
		case strings.ContainsAny(e, "*?["):
			p, err := pattern.Parse(e, pattern.Slash)
			if err != nil {
				t.Fatal(err)
			}
			table.Glob(pattern.Under(f.root, p), int32(i))
		default:
			table.Subtree(f.root+"/"+e, int32(i))
		}
	}
	return table
}

const (
	allow     = "allow"
	deny      = "deny"
	malformed = "malformed"
)

func decidePath(table *capability.PathTable, p capability.Path, err error) string {
	if bad := (*capability.Malformed)(nil); errors.As(err, &bad) {
		return malformed
	}
	if _, ok := table.Covers(p); ok && err == nil {
		return allow
	}
	return deny
}

// escapes says where a path opens, if that is outside the root.
func (f fileTree) escapes(p string) string {
	if !strings.HasPrefix(p, "/") {
		p = f.root + "/" + p
	}
	// An upstream creates what does not exist: then its directory counts.
	for _, at := range []string{p, path.Dir(p)} {
		if place, err := filepath.EvalSymlinks(at); err == nil {
			if place != f.root && !strings.HasPrefix(place, f.root+"/") {
				return place
			}
			break
		}
	}
	return ""
}

// checkRoot holds a covered path against os.Root, which refuses to leave its
// directory. It refuses absolute links and absolute paths too, also inside.
func (f fileTree) checkRoot(t *testing.T, root *os.Root, arg string) {
	t.Helper()
	if strings.HasPrefix(arg, "/") || strings.Contains(arg, "link_") {
		return
	}
	if _, err := root.Stat(arg); err != nil && strings.Contains(err.Error(), "escapes") {
		t.Errorf("%q was covered, and os.Root says: %v", arg, err)
	}
}

// randomTree grows a tree of directories and links whose targets are anything.
func randomTree(t *testing.T, r *rand.Rand) fileTree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := fileTree{root: base + "/root", outside: base + "/outside"}
	for _, dir := range []string{"root", "outside/a/b", "root/a/b/c", "root/b/a", "root/c"} {
		if err := os.MkdirAll(base+"/"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The links are made through a root that they cannot lead out of.
	within, err := os.OpenRoot(tree.root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = within.Close() }()
	for range 12 {
		target := randomPath(r, 5)
		if r.IntN(4) == 0 {
			target = base + "/" + target
		}
		_ = within.Symlink(target, randomPath(r, 3)) // what exists or has no parent stays as it is
	}
	return tree
}

func randomPath(r *rand.Rand, n int) string {
	segs := make([]string, 1+r.IntN(n))
	for i := range segs {
		segs[i] = []string{"a", "b", "c", "d", "..", ".", "root", "outside", ""}[r.IntN(9)]
	}
	return strings.TrimLeft(strings.Join(segs, "/"), "/")
}
