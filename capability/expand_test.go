package capability_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// linkTree is a directory of links, some of which lead out of work.
func linkTree(t testing.TB) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"out/key.txt", "out/deep/key.txt", "work/plain/key.txt", "work/plain/sub/key.txt", "work/mixed/sub/key.txt", "work/C++(draft).pdf", "work/odd/@(l)/x", "work/odd/(l)/x", "work/wide/aa/zz/key.txt", "work/iso/abc/key.txt", "work/deep/abc/q/key.txt", "work/star/z*/x", "work/star/zb/x", "work/names/i/x", "work/names/secret", "work/names/a.ts", "work/names/{a,b}/x", "work/names/a/x", "work/names/b/x", "work/names/{q,r}.md"} {
		if err := os.MkdirAll(path.Dir(base+"/"+file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(base+"/"+file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"work/link":            "../out",
		"work/Höhle":           "../out",
		"work/mixed/inner":     "../plain",
		"work/mixed/round":     "..",
		"work/mixed/file":      "../../out/key.txt",
		"work/venv":            "../out/key.txt",
		"work/second/again":    "third",
		"work/second/third":    "../../out",
		"work/loop/a":          "b",
		"work/loop/b":          "a",
		"work/form/\u1d4f.txt": "../../out/key.txt",
		"work/gone/dangles":    "../../out/none",
		"work/only/sub/f":      "../../../out/key.txt",
		"work/only/g":          "../../out/key.txt",
		"work/case/Kern":       "../../out",
		"work/app/[id]":        "../../out",
		"work/iso/z":           "abc",
		"work/deep/s/l":        "../abc/q",
		"work/form/Höhle":      "../../out/key.txt",
		"work/type/ﬁ":          "../../out",
		"work/wide/link":       "aa/zz",
		"work/self/ring":       "../self",
		"work/odd/l":           "../../out/deep",
		"work/zlink":           "plain/sub",
		"work/odd/[z]z":        "../../out",
		"work/odd/k+x.ts":      "../../out/key.txt",
		"work/odd/n{a,b}":      "../../out/key.txt",
		"work/odd/k{a,b}":      "../../out",
		"work/star/zb/link":    "../../../out",
		"out/back":             "../work/plain",
	} {
		if err := os.MkdirAll(path.Dir(base+"/"+link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, base+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	return base
}

// TestExpansion: where a text with wildcards meets a link, where that leads has to be
// covered as well, for whoever expands it (R-SEC-05).
func TestExpansion(t *testing.T) {
	const never = "deny, whatever is granted"
	base := linkTree(t)
	view := capability.View{Cwd: base + "/work", Home: base + "/work", FS: hostfs.FS{}}
	roles := map[string]func(string) (capability.Path, error){"path": view.Path, "tree": view.Tree, "glob": view.Glob}
	for _, tc := range []struct{ roles, arg, want string }{
		{"path tree", "l[i]nk/key.txt", deny},
		{"path tree glob", "l?nk/key.txt", deny},
		{"path tree glob", "li*", deny},
		{"path tree glob", "li*/", deny},
		{"path tree glob", "*/key.txt", deny},
		{"path tree glob", "plain/../l*/key.txt", never},
		{"path tree glob", path.Join(base, "work/l*/key.txt"), deny},
		{"path tree glob", base + "/w*/link/key.txt", deny},
		{"path tree glob", base + "/w*/plain/key.txt", deny}, // other names may match as well
		{"path tree glob", "~/l*/key.txt", deny},
		{"path tree glob", "{x,l*}/key.txt", deny},
		{"path tree glob", "%6c*/key.txt", deny},
		{"path tree", `l\*\k/key.txt`, deny},
		{"path tree", `l\i*/key.txt`, deny},
		{"glob", `l\i*/key.txt`, never},
		{"glob", `plain/(sub\)`, never},
		{"path tree glob", "L*K/key.txt", deny},
		{"path tree glob", "H?hle/key.txt", deny},
		{"path tree glob", "H??hle/key.txt", deny}, // two bytes to some
		{"path tree", "l[!x]nk/key.txt", deny},
		{"path tree", "l[a-z]nk/key.txt", deny},
		{"path tree glob", "p*/key.txt", allow},
		{"path tree glob", "p*/s*/key.txt", allow},
		{"path tree glob", "p*/none/x*", allow},
		{"path tree glob", "none/*", allow},
		{"path tree glob", "plain/key.txt/*", allow},
		{"path tree glob", "**/key.txt", never}, // it meets a link that leads round
		{"path tree glob", "**", never},
		{"path tree glob", "p**", never}, // to some it stands for names
		{"path tree glob", "p*/**", allow},
		{"path tree glob", "p**/x", never},
		{"path tree glob", "mixed/*/key.txt", allow},
		{"path tree glob", "mixed/*/link/key.txt", deny},
		{"path tree glob", "mixed/*/sub/key.txt", allow},
		{"path tree glob", "mixed/f*", deny},
		{"path tree glob", "mixed/f*/x", allow}, // nothing is below a file
		{"path tree glob", "mixed/i*", allow},
		{"path tree glob", "mixed/**/sub", never},
		{"path tree glob", "second/a*/key.txt", deny},
		{"path tree glob", "loop/*", never},
		{"path tree glob", "loop/**/a/x", never},
		{"path tree glob", "only/s*/**", deny},
		{"path tree glob", "only/**/g", deny},
		{"path tree glob", "only/**/g*", deny},
		{"path tree glob", "only/**/h", allow},
		{"path tree glob", "only/**/\u1d4d", deny}, // a small g, which is one to who composes names
		{"path tree glob", "form/**/k.txt", deny},
		{"path tree glob", "case/**/Kern/key.txt", deny},
		{"path tree glob", "case/**/kern/key.txt", deny},
		{"path tree glob", "form/**/Ho\u0308hle", deny},
		{"path tree", "type/[ﬁ]/*", deny}, // which is two letters in one case
		{"path tree", "app/[id]/*/*", deny},
		{"path tree glob", "plain/[.]./l*/key.txt", never},
		{"path tree glob", "[.]/l*/key.txt", never},
		{"path tree glob", "[.-.]./l*/key.txt", never},
		{"path tree glob", "{plain,[.].}/*", never},
		{"path tree glob", "*(.)/l*/key.txt", never},
		{"path", "+(.)/out/key.txt", never},
		{"path tree glob", `{a,"{",/etc/hostname}`, never},
		{"glob", "p*/(zz/a/)?sub", never},
		{"glob", "(s/)+key.txt", never},
		{"glob", "..()/*", never},
		{"glob", "..x/*", never},
		{"glob", `..""/out/key.txt`, never},
		{"glob", "..[+-9]key.txt", never},
		{"glob", "..{+,..,..9}key.txt", never},
		{"glob", "{a,{b,..9}}/x", never},
		{"glob", `.''./out/key.tx[t{}]`, never},
		{"glob", "`..`/{*,x}", never},
		{"glob", "{a,[[]{],../key.txt}", never},
		{"glob", "plain/{sub,s}+/key.txt", never},
		{"glob", "plain/[s]ub[/x]key.txt", never},
		{"glob", "plain/..()/*", never},
		{"glob", "plain/{+,x..y,z}b", never},
		{"glob", "plain/{a,b}{x..y,z}c", never},
		{"glob", "{plain,on*}", deny},
		{"glob", "{plain,app/*}", never}, // beyond a slash
		{"glob", "p{lain,*}", allow},
		{"glob", "o*y", deny},
		{"glob", "only*/s*", allow},
		{"glob", "{only,x}/s*", deny},
		{"glob", "o*", allow},
		{"glob", "pla?n", allow},
		{"glob", "w*/link", allow},
		{"path tree", "app/[id]/**", deny},
		{"path tree glob", "v*/**", deny},
		{"path tree glob", "x|l*/key.txt", never},
		{"glob", "x|link/key.txt", never},
		{"glob", "!link", never},
		{"glob", path.Join(base, "work/!!../out/key.txt"), never}, // who leaves out the marks climbs
		{"glob", path.Join(base, "work/!../out/*"), never},
		{"glob", "plain/!x/key.txt", never},
		{"glob", "{!x,plain}/key.txt", never},
		{"glob", "plain/sub!/wow!.txt", allow},
		{"glob", "plain/ä!*", allow},
		{"glob", "plain/s\u00a0ub/{key,x}.txt", never}, // which some leave out
		{"glob", "plain/\ufeffx*", never},
		{"glob", "plain/{sub,q/x*", never},
		{"glob", "plain/q}*", never},
		{"glob", "plain/q}{r", never},
		{"glob", "plain/q}{r}", never},
		{"glob", "plain/{q,{r}", never},
		{"glob", "plain/" + strings.Repeat("{a,aa}", 7) + "*", never},
		{"path tree", "odd/[z]*/key.txt", allow},
		{"glob", "star/z*", deny}, // a folder is called that, and what is in it is meant
		{"path tree", "star/z*", allow},
		{"glob", path.Join(base, "work/star/z*"), deny},
		{"glob", "star/y*", allow},
		{"glob", "plain/report (2).txt", never},
		{"glob", "plain/(group)/*.ts", never}, // what is in parentheses is a name of its own
		{"glob", "plain/a)b(c", never},
		{"glob", "plain/(a", never},
		{"path tree glob", "plain/.*/x", never},
		{"path tree glob", "plain/{a,.}?/x", never},
		{"glob", "plain/??", never},
		{"glob", "{plain,}*.*/x", never},
		{"glob", "{*,x}/y", never},
		{"glob", "plain/?{**,q}x", never},
		{"glob", "plain/s[a-z]*", never}, // to some also a name with brackets
		{"glob", "plain/{s,t}*", allow},
		{"glob", "plain/{*.ts,*.js}", allow},
		{"glob", "plain/?.ts", allow},
		{"glob", "odd/k++*.ts", never}, // one sign or many to some
		{"glob", "odd/k++", never},
		{"glob", "plain/+x+y.ts", allow},
		{"glob", "plain/{+}x/y", never},
		{"glob", "odd/n{a,b}", deny}, // to some a name as well
		{"glob", "odd/k{a,b}/*.txt", deny},
		{"path", "odd/k{a,b}/*.txt", deny},
		{"glob", "odd/k{a,b}", deny},
		{"glob", "o*d/k{a,b}*/*", deny},
		{"glob", "plain/{s,{t,u}}/x", never}, // doublestar seeks the second beneath the first
		{"glob", "plain/{s,t}{u,v}/x", never},
		{"glob", "{plain,none/*/sub}/x", never},
		{"glob", "plain/*.{a,{b,c}}", never},
		{"glob", "{plain,none}/x/*.{a,b}{c,d}", allow},
		{"glob", "plain/{s,t}/{u,v}/*.{a,c}", allow},
		{"glob", "l^nk/key.txt", never},
		{"glob", ":../out/key.txt", never}, // git's, as those that follow
		{"glob", "::../out/*.txt", never},
		{"glob", ":/out/*.txt", never},
		{"path", ":/out/key.txt", never},
		{"path tree", "::../out/*.txt", never},
		{"path", "%3A../out/key.txt", never},
		{"path tree", "plain/:x", allow},
		{"glob", "regex:.*.ts", never},
		{"glob", "plain/*.txt,../../out/*", never},
		{"glob", "plain/{a,b},.env", never},
		{"glob", "plain/*.txt ../../out/*", never},
		{"glob", "plain/*.txt;.env", never},
		{"glob", "plain/x /etc/passwd", never},
		{"glob", "plain/x only", deny},
		{"glob", "only plain", deny},
		{"glob", "plain plain", allow},
		{"glob", "plain/" + wordsUpTo(65), never},
		{"glob", "plain/#x", never},
		{"glob", "plain/x ~root/*", never},
		{"glob", "plain/x .//etc/*", never},
		{"glob", "plain/x %7Eroot", never},
		{"glob", "plain/a/**/a/x", never}, // to some, one a is both
		{"glob", "plain/a/**/b/a/x", never},
		{"glob", "plain/**/plain/x*", allow},
		{"glob", "plain/{a b,c}", never},
		{"glob", "plain/{x,l?nk,y}*", deny}, // three, to who parts them at commas
		{"glob", "plain/{x,~root,y}*", never},
		{"glob", "plain/*/**/*", allow},
		{"glob", "plain/a\ufe50b", never},
		{"glob", "plain/\u2047", never},
		{"glob", "plain/a**b", never},
		{"glob", `l\w*k/key.txt`, never},
		{"glob", `(link)/key.txt`, never},
		{"glob", `"link"/key.txt`, never},
		{"glob", `p*/(?:sub)/key.txt`, never},
		{"glob", "only", deny},
		{"glob", "only/sub/", deny},
		{"glob", "plain/sub", allow},
		{"glob", ".", never},
		{"path tree glob", "gone/*", deny},
		{"path tree glob", "gone/*/x", allow},
		{"path tree glob", "gone/d*", deny},
		{"path tree glob", "gone/e*", allow},
		{"tree", "l[ink/key.txt", deny},
		{"tree", "p/l[ink", allow},
		{"path tree", "odd/@(l)/../key.txt", never},
		{"glob", "odd/(l)/../key.txt", never},
		{"path", "@(link)/key.txt", deny},
		{"path", "@(link)/k*", deny},
		{"path", "+(l)ink/key.txt", deny},
		{"path", "a(b)/@(link)", allow},
		{"path", "l@(i)nk/key.txt", deny},
		{"path", "C++(draft).pdf", allow},
		{"path", "l+(draft).pdf", allow},
		{"path", "!x*.md", allow},
		{"glob", "@(link)/key.txt", never},
		{"glob", "+(plain)/key.txt", never},
		{"glob", "link/key.txt", deny},
		{"glob", "plain/key.txt", allow},
	} {
		for role := range strings.FieldsSeq(tc.roles) {
			p, err := roles[role](tc.arg)
			table := new(capability.PathTable)
			table.Subtree(base+"/work", 0)
			if got := decidePath(table, p, err); (got == deny) != (tc.want != allow) {
				t.Errorf("%s %s: got %s, want %s (readings %q, opaque %q, error %v)", role, tc.arg, got, tc.want, p.Readings(), p.Opaque(), err)
			}
			table.Subtree(base, 0)
			if got := decidePath(table, p, err); (got == deny) != (tc.want == never) {
				t.Errorf("%s %s with all granted: got %s (opaque %q)", role, tc.arg, got, p.Opaque())
			}
		}
	}
	for arg, want := range map[string]string{"l*/key.txt": allow, "l*/*": deny, "v*": allow, "l*": deny, "H*/key.txt": allow} {
		p, err := view.Glob(arg)
		table := new(capability.PathTable)
		table.Subtree(base+"/work", 0)
		table.Subtree(base+"/out/key.txt", 0)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s with one file granted: %s", arg, got)
		}
	}
	view.Plain = true
	for _, arg := range []string{"l[i]nk/key.txt", "@(link)/key.txt"} {
		p, err := view.Path(arg)
		table := new(capability.PathTable)
		table.Subtree(base+"/work", 0)
		if got := decidePath(table, p, err); got != allow {
			t.Errorf("%s for who takes it for letters: %s", arg, got)
		}
	}
}

// TestExpansionIsBounded: more globs behind links than anybody looks at are more than any
// grant covers.
func TestExpansionIsBounded(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: base + "/many", FS: sorted{}}
	if err := os.Mkdir(base+"/many", 0o755); err != nil {
		t.Fatal(err)
	}
	table := new(capability.PathTable)
	table.Subtree(base, 0)
	for i := range 65 {
		if err := os.MkdirAll(fmt.Sprintf("%s/inner/dir/%d", base, i), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(fmt.Sprintf("dir/%d", i), fmt.Sprintf("%s/inner/%d", base, i)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(fmt.Sprintf("../out/%d", i), fmt.Sprintf("%s/many/%d", base, i)); err != nil {
			t.Fatal(err)
		}
	}
	for arg, want := range map[string]string{"*": allow, "*/x": allow, "*/x*": deny, "1*/x*": allow, base + "/inner/**/*x": allow, base + "/inner/**/*": allow, base + "/inner/*/x*": deny, "**/x": deny, base + "/out/" + strings.Repeat("*/", 60) + "x": allow, base + "/out/" + strings.Repeat("*/", 62) + "x": deny} {
		p, err := view.Glob(arg)
		if got := decidePath(table, p, err); got != want || (p.Opaque() != "") != (want == deny) {
			t.Errorf("%s: %s (opaque %q)", arg, got, p.Opaque())
		}
	}
}

// busy takes too long for whatever it is asked.
type busy struct{ hostfs.FS }

func (busy) Real(string) (string, error) { return "", capability.ErrTooMuch }

// TestTooMuchIsNotTold: that it takes long to look up is said of what a glob meets, and not
// of where a path lies that is not held.
func TestTooMuchIsNotTold(t *testing.T) {
	table := new(capability.PathTable)
	table.Subtree("/w", 0)
	p, err := capability.View{Cwd: "/w", FS: busy{}}.Path("a")
	if got := decidePath(table, p, err); got != deny || p.Opaque() != "" {
		t.Errorf("%s (opaque %q)", got, p.Opaque())
	}
}

// TestExpansionTree: a tree that a glob names goes on below the links that it meets.
func TestExpansionTree(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: base + "/work", FS: hostfs.FS{}}
	table := new(capability.PathTable)
	table.Subtree(base+"/work", 0)
	table.Glob(mustUnder(t, base, "out"), 0) // not what is beneath
	p, err := view.Tree("li*")
	if got := decidePath(table, p, err); got != deny {
		t.Error(got)
	}
	if p, err = view.Glob("li*"); decidePath(table, p, err) != allow {
		t.Error("the link itself is not one that is covered")
	}
}

// curious counts what it is asked to list.
type curious struct {
	hostfs.FS
	lists *int
}

func (c curious) List(dir string) ([]fs.DirEntry, error) {
	*c.lists++
	return c.FS.List(dir)
}

// TestExpansionComesLast: nothing is listed for a glob that is denied as it is written, so
// that nobody learns by it what lies where. What is covered is looked up once.
func TestExpansionComesLast(t *testing.T) {
	base := linkTree(t)
	for _, test := range []struct {
		paths string
		arg   string
		lists int
		also  string
	}{
		{"plain", "*/key.txt", 0, ""},
		{"", "l*/key.txt", 0, ""},
		{"none", "loop/*", 0, ""},
		{"*/key.txt", "p*/key.txt", 3, ""},
		{".", "l*/key.txt", 2, "BASE/out/key.txt"},
		{".", "mixed/i*/*", 2, "BASE/work/plain/*"},
		{".", "loop/*", 2, ""},
	} {
		lists := 0
		view := capability.View{Cwd: base + "/work", FS: curious{lists: &lists}}
		root := capability.Root{Dir: base + "/work", Real: base + "/work"}
		set, findings := capability.Compile([]capability.Spec{spec("fs.read").With("paths", test.paths)}, capability.Options{Config: root, View: view})
		if test.paths == "" {
			set, findings = capability.Compile(nil, capability.Options{Config: root, View: view})
		}
		p, err := view.Glob(test.arg)
		if err != nil || len(findings) > 0 {
			t.Fatal(err, findings)
		}
		need := capability.File("fs.read", p)
		for range 2 {
			set.Decide(need)
		}
		if want := strings.ReplaceAll(test.also, "BASE", base); lists != test.lists || strings.Join(need.Also(), " ") != want {
			t.Errorf("%s with %s: looked into %d directories, also %q", test.arg, test.paths, lists, need.Also())
		}
	}
}

// sorted lists directories by name.
type sorted struct{ hostfs.FS }

func (s sorted) List(dir string) ([]fs.DirEntry, error) {
	entries, err := s.FS.List(dir)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// TestExpansionOfInnerLinks: a link to below a directory that has been looked into is not
// that directory.
func TestExpansionOfInnerLinks(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: base + "/work", FS: sorted{}}
	for held, want := range map[string]string{`{[pz],\[pz\]}l*/key.txt`: deny, "**/key.txt": allow} {
		table := new(capability.PathTable)
		table.Glob(mustUnder(t, base+"/work", held), 0)
		p, err := view.Path("[pz]l*/key.txt")
		if got := decidePath(table, p, err); got != want {
			t.Errorf("with %s: %s", held, got)
		}
	}
}

// TestExpansionOfWiderWalks: what a glob is taken to stand for while links are looked for is more
// than it is granted for.
func TestExpansionOfWiderWalks(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: base + "/work", FS: sorted{}}
	for _, test := range []struct {
		read            func(string) (capability.Path, error)
		arg, held, want string
	}{
		{view.Path, "iso/?/key.txt", "iso/?/key.txt", deny},
		{view.Path, "iso/?/key.txt", "iso/*/key.txt", allow},
		{view.Path, "deep/?/*/key.txt", "deep/?/*/key.txt", deny},
		{view.Path, "deep/?/*/key.txt", "deep/*/*/key.txt", allow},
		{view.Path, "wide/p**/x", "wide/p**/x wide/aa/zz/x", deny},
		{view.Path, "wide/p**/x", "wide/**", allow},
		{view.Glob, "wide/**/x", "wide/**/x", allow},
		{view.Glob, "self/**", "self/**", deny}, // which the folder itself is not one of
		{view.Glob, "self/**", "self self/**", allow},
		{view.Path, "self/r**/x", "self/r**/x", deny},
		{view.Path, "self/r**/x", "self/**/x", allow},
		{view.Glob, "self/**/x", "self/**/x", allow},
	} {
		table := new(capability.PathTable)
		for held := range strings.FieldsSeq(test.held) {
			table.Glob(mustUnder(t, base+"/work", held), 0)
		}
		p, err := test.read(test.arg)
		if got := decidePath(table, p, err); got != test.want {
			t.Errorf("%s with %s: %s (%q)", test.arg, test.held, got, p.Opaque())
		}
	}
}

// TestGlobOfFolder: to some, a glob that is the name of a folder stands for all that is beneath it.
func TestGlobOfFolder(t *testing.T) {
	base := linkTree(t)
	view := capability.View{Cwd: base + "/work", FS: hostfs.FS{}}
	for arg, want := range map[string]string{"plain": deny, "plain/": deny, "plain/key.txt": allow, "none": allow, "loop/b": deny} {
		table := new(capability.PathTable)
		for _, held := range []string{"plain", "plain/key.txt", "none", "loop/b"} {
			table.Glob(mustUnder(t, base+"/work", held), 0)
		}
		p, err := view.Glob(arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s: %s", arg, got)
		}
		table.Subtree(view.Cwd+"/plain", 0)
		if got := decidePath(table, p, err); got != allow && arg != "loop/b" {
			t.Errorf("%s with all in it: %s", arg, got)
		}
	}
}
