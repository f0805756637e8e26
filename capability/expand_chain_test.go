package capability_test

import (
	"io/fs"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// TestExpansionOfChains: what an agent above does not hold is looked into for nobody, and is not
// what the agent is told that it lacks.
func TestExpansionOfChains(t *testing.T) {
	base := linkTree(t)
	lists := 0
	view := capability.View{Cwd: base + "/work", FS: curious{lists: &lists}}
	set := func(in string) *capability.Set {
		s, _ := capability.Compile([]capability.Spec{spec("fs.read").With("in", base+in)}, capability.Options{Config: capability.Root{Dir: "/", Real: "/"}, View: view})
		return s
	}
	for _, test := range []struct {
		own, parent, arg string
		allows           bool
		link, says       string
		lists            int
	}{
		{"", "", "li*/key.txt", true, "", "", 3},
		{"", "/out", "li*/key.txt", false, "parent", "outside what is held (held", 0},
		{"", "/work", "li*/key.txt", false, "parent", "outside what is held (held", 1},
		{"", "/work", "li*/deep/*", false, "parent", "outside what is held (held", 1},
		{"/work", "", "li*/key.txt", false, "", "meets a link that leads there", 1},
		{"", "", "loop/*", false, "", "meets a link that leads there", 1},
		{"/work", "/work", "p*/key.txt", true, "", "", 3},
	} {
		p, err := view.Glob(test.arg)
		if err != nil {
			t.Fatal(err)
		}
		lists = 0
		d := capability.Chain{{Name: "own", Set: set(test.own)}, {Name: "parent", Set: set(test.parent)}}.Decide(capability.File("fs.read", p))
		if d.Allowed() != test.allows || d.Link() != test.link || !strings.Contains(d.String(), test.says) || lists != test.lists {
			t.Errorf("%q below %q, %s: %s (link %q), looked into %d", test.own, test.parent, test.arg, d, d.Link(), lists)
		}
	}
}

// TestExpansionIsKept: what has been found for one is decided on for another.
func TestExpansionIsKept(t *testing.T) {
	base := linkTree(t)
	lists := 0
	view := capability.View{Cwd: base + "/work", FS: curious{lists: &lists}}
	for arg, want := range map[string]int{"li*/key*": 3, "li*/key.txt": 4} { // of which two find nothing out
		p, err := view.Glob(arg)
		if err != nil {
			t.Fatal(err)
		}
		lists = 0
		for _, held := range []struct{ dir, want string }{{"/work", deny}, {"", allow}, {"/work", deny}, {"", allow}} {
			table := new(capability.PathTable)
			table.Subtree(base+held.dir, 0)
			if got := decidePath(table, p, err); got != held.want {
				t.Errorf("%s with %s: %s", arg, held.dir, got)
			}
		}
		if lists != want {
			t.Errorf("%s: looked into %d directories", arg, lists)
		}
	}
}

// TestExpansionStays: what is allowed is allowed once more, also where a link leads to a file.
func TestExpansionStays(t *testing.T) {
	view := capability.View{Cwd: linkTree(t) + "/work", FS: hostfs.FS{}}
	table := new(capability.PathTable)
	table.Subtree(view.Cwd, 0)
	for _, arg := range []string{"mixed/f*/x", "mixed/f*/x*", "gone/*/x"} {
		p, err := view.Path(arg)
		for range 2 {
			if got := decidePath(table, p, err); got != allow {
				t.Errorf("%s: %s", arg, got)
			}
		}
	}
}

// hidden says of nothing what it is.
type hidden struct{ hostfs.FS }

func (h hidden) Real(place string) (string, error) {
	if strings.HasSuffix(place, "/..") {
		return "", fs.ErrPermission
	}
	return h.FS.Real(place)
}

// TestExpansionOfUnknown: where a link leads to what may not be looked at, it may be a directory.
func TestExpansionOfUnknown(t *testing.T) {
	view := capability.View{Cwd: linkTree(t) + "/work", FS: hidden{}}
	table := new(capability.PathTable)
	table.Subtree(view.Cwd, 0)
	p, err := view.Path("mixed/f*/x")
	if got := decidePath(table, p, err); got != deny {
		t.Error(got)
	}
}

// TestExpansionMeetsFences: no link leads behind a fence.
func TestExpansionMeetsFences(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: base + "/work", FS: hostfs.FS{}}
	set, _ := capability.Compile([]capability.Spec{spec("fs.read").With("in", base)}, capability.Options{Config: capability.Root{Dir: "/", Real: "/"}, View: view})
	fence := capability.NewFence(capability.Root{Dir: base + "/out/deep", Real: base + "/out/deep"})
	for arg, want := range map[string]bool{"l*/deep/key.txt": true, "li*/*/key.txt": true, "li*/key.txt": false, "p*/sub/key.txt": false} {
		p, err := view.Glob(arg)
		if err != nil {
			t.Fatal(err)
		}
		need := capability.File("fs.read", p)
		if d := set.Decide(need); !d.Allowed() {
			t.Errorf("%s: %s", arg, d)
		}
		if got := fence.Touches(need); got != want {
			t.Errorf("%s: %t", arg, got)
		}
	}
}
