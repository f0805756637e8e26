package capability_test

import (
	"fmt"
	"testing"

	"capgate/capability"
	"capgate/capability/pattern"
)

func mustUnder(t testing.TB, dir, glob string) *pattern.Pattern {
	t.Helper()
	p, err := pattern.Parse(glob, pattern.Slash)
	if err != nil {
		t.Fatal(err)
	}
	return pattern.Under(dir, p)
}

func TestPathTableFind(t *testing.T) {
	table := new(capability.PathTable)
	if n, ok := table.Find("/"); ok {
		t.Errorf("an empty table allows / by %d", n)
	}
	table.Subtree("/w/a", 1)
	table.Subtree("/w/a", 2)
	table.Glob(mustUnder(t, "/w/b", "*.go"), 3)
	table.Glob(mustUnder(t, "/w/b", "**/*.md"), 4)
	table.Glob(mustUnder(t, "/w", "?/x"), 5)
	table.Glob(mustUnder(t, "/w/a/deep", "*"), 6)
	table.Glob(mustUnder(t, "/", "*.top"), 7)
	for _, tc := range []struct {
		reading string
		n       int32
		ok      bool
	}{
		{"/w/a", 1, true},
		{"/w/a/", 1, true},
		{"/w/a/x/y", 1, true},
		{"/w/a/deep/x", 6, true}, // the nearest
		{"/w/ab", 0, false},
		{"/w", 0, false},
		{"/", 0, false},
		{"/w/b/x.go", 3, true},
		{"/w/b/x.go/", 0, false},
		{"/w/b/c/x.go", 0, false},
		{"/w/b/c/x.md", 4, true},
		{"/w/c/x", 5, true},
		{"/w/cc/x", 0, false},
		{"/x.top", 7, true},
	} {
		if n, ok := table.Find(tc.reading); ok != tc.ok || n != tc.n {
			t.Errorf("%s: got %d, %v, want %d, %v", tc.reading, n, ok, tc.n, tc.ok)
		}
	}
	everything := new(capability.PathTable)
	everything.Subtree("/", 9)
	for _, reading := range []string{"/", "/a", "/a/b/"} {
		if n, ok := everything.Find(reading); !ok || n != 9 {
			t.Errorf("%s under /: got %d, %v", reading, n, ok)
		}
	}
}

func TestPathTableCovers(t *testing.T) {
	v := capability.View{Cwd: "/w", Home: "/h"}
	for _, tc := range []struct {
		name  string
		read  func(string) (capability.Path, error)
		arg   string
		allow []string
		n     int32
		ok    bool
	}{
		{"one grant", v.Path, "a", []string{"/x", "/w"}, 1, true},
		{"a reading by each grant", v.Path, "~/a", []string{"/h", "/w"}, 1, true},
		{"a reading by none", v.Path, "~/a", []string{"/w"}, 0, false},
		{"a glob in a subtree", v.Glob, "s/*.go", []string{"/x", "/w"}, 1, true},
		{"a glob in a glob", v.Glob, "s/*.go", []string{"/w/s/*"}, 0, true},
		{"a glob in another's place", v.Glob, "s/*.go", []string{"/w/t/*"}, 0, false},
		{"a glob in none", v.Glob, "s/*.go", nil, 0, false},
		{"a tree", v.Tree, "s", []string{"/w/s"}, 0, true},
		{"a tree by its files only", v.Tree, "s", []string{"/w/s/**"}, 0, false},
		{"opaque", v.Path, "$HOME", []string{"/"}, 0, false},
	} {
		table := new(capability.PathTable)
		for i, text := range tc.allow {
			p, err := pattern.Parse(text, pattern.Slash)
			if err != nil {
				t.Fatal(err)
			}
			if _, literal := p.Literal(); literal {
				table.Subtree(text, int32(i))
			} else {
				table.Glob(p, int32(i))
			}
		}
		p, err := tc.read(tc.arg)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := table.Covers(p); ok != tc.ok || ok && n != tc.n {
			t.Errorf("%s: got %d, %v, want %d, %v", tc.name, n, ok, tc.n, tc.ok)
		}
	}
}

// Globs in one place are held against a glob only up to a cap, and what is left
// out denies.
func TestPathTableManyGlobs(t *testing.T) {
	table := new(capability.PathTable)
	for i := range 100 {
		table.Glob(mustUnder(t, "/w", fmt.Sprintf("*.%d", i)), int32(i))
	}
	v := capability.View{Cwd: "/w"}
	for arg, want := range map[string]bool{"a*.3": true, "a*.99": false} {
		p, err := v.Glob(arg)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := table.Covers(p); ok != want {
			t.Errorf("%s: got %v, want %v", arg, ok, want)
		}
	}
}

// grownTable holds n grants, four fifths of them subtrees.
func grownTable(t testing.TB, n int) *capability.PathTable {
	table := new(capability.PathTable)
	for i := range n {
		dir := fmt.Sprintf("/home/agent/work/project%d", i)
		if i%5 == 0 {
			table.Glob(mustUnder(t, dir, "src/**/*.go"), int32(i))
		} else {
			table.Subtree(dir, int32(i))
		}
	}
	return table
}

func TestPathTableAllocates(t *testing.T) {
	table := grownTable(t, 50)
	p, err := capability.View{Cwd: "/home/agent/work/project7"}.Path("src/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, ok := table.Covers(p); !ok {
			t.Fatal("not covered")
		}
	}); n != 0 {
		t.Errorf("%v allocations to cover a path", n)
	}
}

func BenchmarkPathTable(b *testing.B) {
	for _, n := range []int{10, 50, 1_000, 100_000} {
		table := grownTable(b, n)
		for _, cwd := range []string{"project7", "project5", "elsewhere"} {
			p, err := capability.View{Cwd: "/home/agent/work/" + cwd}.Path("src/sub/main.go")
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("%s/%d", cwd, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					table.Covers(p)
				}
			})
		}
	}
}
