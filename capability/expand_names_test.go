package capability_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// TestExpansionOfNames: what libraries of globs take for names and for more than names has to
// be covered as either.
func TestExpansionOfNames(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: path.Join(base, "work/names"), FS: hostfs.FS{}}
	for _, tc := range []struct {
		arg  string
		held []string
		want string
	}{
		{"secret/**", []string{"*/**"}, deny}, // which is a file
		{"secret/**/**", []string{"*/**"}, deny},
		{"{i,secret}/**", []string{"*/**"}, deny},
		{"*.ts/**", []string{"*/**"}, deny},
		{"{a*,z}/**", []string{"*/**"}, deny},
		{"a*/**", []string{"*/**"}, deny}, // as for a file
		{"a*/**", []string{"*/**", "a*"}, allow},
		{"i/**", []string{"*/**"}, allow},
		{"none/**", []string{"*/**"}, allow},
		{"secret/**", []string{"*/**", "secret"}, allow},
		{"*.ts/**", []string{"*/**", "*.ts"}, allow},
		{"{a,b}/x", []string{"a/x", "b/x"}, deny}, // of {a,b}, too
		{"{a,i}/x", []string{"a/x", "i/x"}, allow},
		{"{a,b}/*", []string{"a/*", "b/*"}, deny},
		{"{a,i}/*", []string{"a/**", "i/**"}, allow},
		{"{q,r}*", []string{"q*/**", "r*/**", "q*", "r*"}, deny},
		{"{q,r}.md", []string{"q.md", "r.md"}, deny},
		{"{q,r}.md/**", []string{"q.md/**", "r.md/**", "q.md", "r.md"}, deny},
		{"{q,s}.md/**", []string{"q.md/**", "s.md/**", "q.md", "s.md"}, allow},
		{"??.md", []string{"??.md"}, deny},
		{"??.md", []string{"*.md"}, allow},
		{"i {q,r}.md", []string{"i*", "i/**", "i */**", "q.md", "q.md/**", "r.md", "r.md/**"}, deny}, // and {q,r}.md
		{"i {q,r}.md", []string{"i*", "i/**", "i */**", "q.md", "q.md/**", "r.md", "r.md/**", `\{q,r\}.md`, `\{q,r\}.md/**`}, allow},
		{"i{,s} {q,r}.md", []string{"i*", "i/**", "i*/**", "q.md", "q.md/**", "r.md", "r.md/**"}, deny},
		{"{q,r}.md. {q,r}.md", []string{"[a-z]*", "[a-z]*/**"}, deny},
		{"i/{x,a.ts,z}*", []string{"i/**"}, deny},  // a file, to who parts texts at commas
		{"i/{x,no.ts,z}*", []string{"i/**"}, deny}, // also if there is none: that would be told
		{"i/{x,no.ts,z}*", []string{"i/**", "no.*", "no.ts/**"}, allow},
		{"i/{x,id_rsa,z}*", []string{"i/**"}, deny},
		{"i/{x,secret,z}*", []string{"i/**"}, allow}, // as tsx and js are
		{"i/{x,*.ts,z}", []string{"i/**"}, deny},
		{"i/{x,~,z}*", []string{"i/**"}, deny},
		{"i/{x,z}*", []string{"i/**"}, allow},
		{"**/\u1d43.ts", []string{"**/\u1d43.ts", "**/\u1d43.ts/**"}, deny}, // a small a
		{"**/\u1d43.ts", []string{"**"}, allow},
		{"*.*", []string{"*.*"}, deny}, // which is * to .NET
		{"*.*", []string{"*"}, allow},
		{"a.*", []string{"a.*"}, deny},
		{"a.*", []string{"a*"}, allow},
		{"*.?", []string{"*.*"}, deny},
		{"a.???", []string{"a.*"}, deny},
		{"a*.*.*", []string{"a*.*"}, deny},
		{"a*.*.*", []string{"a*"}, allow},
		{"a.*.ts", []string{"a.*.ts"}, allow},
		{"a b.ts", []string{"a b.ts"}, deny}, // two, to who splits at spaces
		{"a b.ts", []string{"a", "b.ts", "b.ts/**"}, deny},
		{"a b.ts", []string{"a*", "a/**", "b.ts", "b.ts/**"}, allow},
		{"i? s*", []string{"i*/**", "i*", "i* s*", "s*"}, allow},
		{"i? s*", []string{"i*", "i* s*", "s*"}, deny}, // and all that is in such a folder
		{"i/x =ls", []string{"**"}, deny},
		{`i/x"y"*`, []string{"**"}, deny},
		{"i/a\u037eb", []string{"**"}, deny}, // a semicolon
		{"i/\u226eb", []string{"**"}, deny},  // a sign and its stroke
	} {
		table := new(capability.PathTable)
		for _, held := range tc.held {
			table.Glob(mustUnder(t, path.Join(base, "work/names"), held), 0)
		}
		p, err := view.Glob(tc.arg)
		if got := decidePath(table, p, err); got != tc.want {
			t.Errorf("%s under %q: %s (readings %q, opaque %q)", tc.arg, tc.held, got, p.Readings(), p.Opaque())
		}
	}
}

// TestExpansionOfFiles: a file is beneath itself to some who expand any path.
func TestExpansionOfFiles(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: path.Join(base, "work/names"), FS: hostfs.FS{}}
	table := new(capability.PathTable)
	table.Glob(mustUnder(t, path.Join(base, "work/names"), "*/**"), 0)
	for arg, want := range map[string]string{"secret/**": deny, "secre[t]/**": deny, "i/**": allow, "*.ts/**": allow, "nowhere/**": allow} {
		p, err := view.Path(arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s: %s", arg, got)
		}
	}
	view.FS = closed{}
	for arg, want := range map[string]string{"secret/**": deny, "i/**": allow} {
		p, err := view.Path(arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s where nobody may look: %s", arg, got)
		}
	}
}

// closed is a file system with a folder that may not be listed.
type closed struct{ hostfs.FS }

func (c closed) List(dir string) ([]fs.DirEntry, error) {
	if path.Base(dir) == "names" {
		return nil, fs.ErrPermission
	}
	return c.FS.List(dir)
}

// wordsUpTo writes as many words, each once.
func wordsUpTo(n int) string {
	var words strings.Builder
	for i := range n {
		fmt.Fprintf(&words, " %d", i)
	}
	return words.String()
}

// TestExpansionOfRoots: to who joins the two, what a glob hangs from is a part of it.
func TestExpansionOfRoots(t *testing.T) {
	for _, tc := range []struct{ dir, arg, glob, path string }{
		{"[id]", "*.ts", deny, deny},
		{"[id]", "x.ts", deny, allow}, // no server that takes it for a path expands it
		{"[id]", "/w/[id]/x.ts", deny, deny},
		{"[id]", "/w/x/*.ts", allow, allow},
		{"x (copy)", "*.ts", deny, allow},
		{"x (copy)", "/w/x (copy)/*.ts", deny, allow},
		{"{a,b}", "a/*.ts", deny, deny},
		{"src", "**/src/x.ts", deny, allow}, // to some, one src is both
		{"src", "/w/src/**/src/x.ts", deny, allow},
		{"src", "**/src/x*.ts", allow, allow},
		{"c++", "*.ts", allow, allow},
		{"c++", "/w/c++/*.ts", allow, allow},
		{"c++", "/w/c++/c++/*.ts", deny, allow},
		{"my src", "/w/my src/it/*.ts", allow, allow},
		{"my src", "/w/my src/it /etc/*.ts", deny, deny},
		{"src", "/w/src//it/x.ts", deny, deny}, // a whole path, to who cuts off what it hangs from
		{"src", "/w/src//it/*.ts", deny, deny},
		{"src", "/w/src/it//x.ts", allow, allow},
	} {
		cwd := "/w/" + tc.dir
		for _, view := range []capability.View{{Cwd: cwd}, {Cwd: "/w", Told: []string{cwd}}, {Cwd: "/w", Home: cwd}} {
			arg := tc.arg
			if view.Home != "" && path.IsAbs(arg) {
				continue
			} else if view.Home != "" {
				arg = "~/" + arg
			}
			table := new(capability.PathTable)
			table.Subtree("/w", 0)
			p, err := view.Glob(arg)
			if got := decidePath(table, p, err); got != tc.glob {
				t.Errorf("%s in %+v: %s (%s)", arg, view, got, p.Opaque())
			}
			p, err = view.Path(arg)
			if got := decidePath(table, p, err); got != tc.path {
				t.Errorf("%s in %+v, no glob: %s (%s)", arg, view, got, p.Opaque())
			}
		}
	}
}

// TestExpansionOfRootItself: that a root has a space in its name makes it no two globs.
func TestExpansionOfRootItself(t *testing.T) {
	table := new(capability.PathTable)
	table.Subtree("/w/my src", 0)
	p, err := capability.View{Cwd: "/w/my src"}.Glob("/w/my src")
	if got := decidePath(table, p, err); got != allow {
		t.Errorf("%s (%q, %s)", got, p.Readings(), p.Opaque())
	}
}

// TestExpansionOfLinkedRoots: that root may be a link, and the server know where it leads.
func TestExpansionOfLinkedRoots(t *testing.T) {
	base := linkTree(t)
	if err := os.Mkdir(base+"/(x) [id]", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("(x) [id]", base+"/proj"); err != nil {
		t.Fatal(err)
	}
	view := capability.View{Cwd: base + "/proj", FS: hostfs.FS{}}
	table := new(capability.PathTable)
	table.Subtree(base, 0)
	for arg, want := range map[string]string{"*.ts": deny, "x.ts": allow} {
		p, err := view.Path(arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s: %s (%s)", arg, got, p.Opaque())
		}
		p, err = view.Glob(arg)
		if got := decidePath(table, p, err); got != deny {
			t.Errorf("%s, a glob: %s", arg, got)
		}
	}
}

// TestExpansionOfForms: what is written out is also the name of what is called so in other letters.
func TestExpansionOfForms(t *testing.T) {
	base := linkTree(t)
	for _, dir := range []string{"in/sub", "in/\u1d4f/q"} {
		if err := os.MkdirAll(path.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(base+"/in/sub/\u1d4f.txt", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	view := capability.View{Cwd: path.Join(base, "in"), FS: hostfs.FS{}}
	for _, tc := range []struct{ arg, held, want string }{
		{"**/k.txt", "**/k.txt", deny},
		{"**/k.txt", "**/?.txt", allow},
		{"**/k/q", "**/k/q", deny},
		{"**/k/q", "**/?/q", allow},
		{"**/\u1d4f.txt", "**/?.txt", allow},
		{"**/q.txt", "**/q.txt", allow},
	} {
		for role, read := range map[string]func(string) (capability.Path, error){"path": view.Path, "glob": view.Glob} {
			table := new(capability.PathTable)
			table.Glob(mustUnder(t, view.Cwd, tc.held), 0)
			table.Glob(mustUnder(t, view.Cwd, tc.held+"/**"), 0)
			p, err := read(tc.arg)
			if got := decidePath(table, p, err); got != tc.want {
				t.Errorf("%s under %s, a %s: %s (%s)", tc.arg, tc.held, role, got, p.Opaque())
			}
		}
	}
}

// TestPathGoesOn: a folder that a path hangs from may be a link, and be cut off as what it is.
func TestPathGoesOn(t *testing.T) {
	base := linkTree(t)
	if err := os.Symlink("work", base+"/proj"); err != nil {
		t.Fatal(err)
	}
	view := capability.View{Cwd: base + "/proj", FS: hostfs.FS{}}
	table := new(capability.PathTable)
	table.Subtree(base, 0)
	for arg, want := range map[string]string{"proj//plain/x": deny, "work//plain/x": deny, "work/plain//x": allow, "out//plain/x": allow} {
		p, err := view.Path(base + "/" + arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s: %s (%s)", arg, got, p.Opaque())
		}
	}
}

// TestExpansionSaysWhatIsRead: who writes a glob that is not read is told how to write it.
func TestExpansionSaysWhatIsRead(t *testing.T) {
	for _, arg := range []string{"!x", "src/!(x).ts", "src/*.(js|ts)", "src/@(a|b)", `src/\d`, "{1..3}", "{x},y}", "{a/b,c}/*", "[a-z]*", "report (2).txt"} {
		p, err := capability.View{Cwd: "/w"}.Glob(arg)
		if want := "is a glob that servers read in different ways: *, **, ? and {a,b} within a name are read here"; p.Opaque() != want {
			t.Errorf("%s: %q, %v", arg, p.Opaque(), err)
		}
	}
}

// wide is a file system with more directories than anybody looks at.
type wide struct{ hostfs.FS }

func (wide) Real(place string) (string, error) { return path.Clean(place), nil }

func (wide) List(dir string) ([]fs.DirEntry, error) {
	if path.Base(dir) == "closed" {
		return nil, fs.ErrPermission
	}
	var all []fs.DirEntry
	for i := range 200 {
		if strings.Count(dir, "/") < 4 && path.Base(dir) != "x" {
			all = append(all, fs.FileInfoToDirEntry(folder(fmt.Sprint(i))))
		}
	}
	return all, nil
}

// folder is a directory of that name, or a link where that is no text.
type folder string

func (f folder) Name() string     { return string(f) }
func (folder) Size() int64        { return 0 }
func (folder) ModTime() time.Time { return time.Time{} }
func (folder) IsDir() bool        { return true }
func (folder) Sys() any           { return nil }

func (f folder) Mode() fs.FileMode {
	if !utf8.ValidString(string(f)) {
		return fs.ModeSymlink
	}
	return fs.ModeDir
}

// odd holds one link, by a name that is no text.
type odd struct{ hostfs.FS }

func (odd) Real(place string) (string, error) {
	if strings.Contains(place, "\xff") {
		return "/out", nil
	}
	return path.Clean(place), nil
}

func (odd) List(string) ([]fs.DirEntry, error) {
	return []fs.DirEntry{fs.FileInfoToDirEntry(folder("l\xff"))}, nil
}

// TestExpansionOfOddNames: a name that no pattern matches is one of each.
func TestExpansionOfOddNames(t *testing.T) {
	table := new(capability.PathTable)
	table.Subtree("/w", 0)
	p, err := capability.View{Cwd: "/w", FS: odd{}}.Glob("l*")
	if got := decidePath(table, p, err); got != deny {
		t.Error(got)
	}
}

// TestExpansionEnds: what takes too many steps to find out is covered by nothing, nor is
// what may not be looked at.
func TestExpansionEnds(t *testing.T) {
	table := new(capability.PathTable)
	table.Subtree("/w", 0)
	view := capability.View{Cwd: "/w", FS: wide{}}
	for arg, want := range map[string]string{"*/x": allow, "*/*/x": deny, "**/x": deny, "10*/*/x": allow, "closed/*": deny} {
		p, err := view.Glob(arg)
		if got := decidePath(table, p, err); got != want || (p.Opaque() != "") != (want == deny && arg[0] == '*') {
			t.Errorf("%s: %s (opaque %q)", arg, got, p.Opaque())
		}
	}
}
