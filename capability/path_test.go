package capability_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/capability/hostfs"
)

// TestPathAttacks holds the path family of the attack corpus that is decided by
// one path, and its variants. This is R-SEC-05.
func TestPathAttacks(t *testing.T) {
	tree := newFileTree(t)
	expand := strings.NewReplacer("ROOTNAME", "root", "ROOTUPPER", strings.ToUpper(tree.root), "ROOT", tree.root).Replace
	for _, tc := range []struct {
		name, paths, arg, want string
	}{
		{"ABSOLUTE", ".", "/etc/passwd", deny},
		{"COMPOSED not as a name", "src/Na\u207a.csv", "src/Na\u207a.csv", allow},
		{"COMPOSED as a glob", "src/Na\u207a*", "src/Na\u207a*", deny},
		{"ADS", "src/*.go", "ROOT/src/main.go::$DATA", deny},
		{"ARRAY element inside", ".", "ROOT/src/main.go", allow},
		{"BACKSLASH", ".", `ROOT\..\..\outside\secret.txt`, deny},
		{"BACKSLASH relative", ".", `..\outside\secret.txt`, deny},
		{"BACKSLASH-MIXED", ".", `ROOT/src\..\..\..\etc/passwd`, deny},
		{"BACKSLASH quotes", ".", `.\./outside/secret.txt`, deny},
		{"BACKSLASH counted as a segment", ".", `a\b\c/../../outside`, deny},
		{"BRACE", ".", "{ROOT/ok.txt,/etc/passwd}", deny},
		{"BRACE nested", ".", "{ok.txt,{src,/etc}/passwd}", deny},
		{"BRACE dots", ".", "{.,x}{.,y}/outside/secret.txt", deny},
		{"BRACE lone", ".", "{..}/outside/secret.txt", deny},
		{"BRACE in quotes", ".", `{ok.txt,"{",link_out}`, deny},
		{"BRACE inside", ".", "src/{main,other}.go", allow},
		{"BRACE sequence", ".", "file{1..3}.txt", deny},
		{"BRACE open", ".", "a{b}}.txt", allow},
		{"BRACE too many", ".", "{" + strings.Repeat("a,", 100) + "b}", deny},
		{"CASE", "src/**", "ROOTUPPER/ok.txt", deny},
		{"CONTROL", ".", "ROOT/ok.txt\n/etc/passwd", malformed},
		{"CONTROL line separator", ".", "ROOT/ok.txt\u2028/etc/passwd", malformed},
		{"CONTROL C1", ".", "ROOT/ok\u0085.txt", malformed},
		{"DEVICE", ".", "/dev/tcp/evil.example/80", deny},
		{"DOTDOT", ".", "ROOT/../outside/secret.txt", deny},
		{"DOTDOT-MANY", ".", "../../../../../../../../etc/passwd", deny},
		{"DOTDOT-REL", ".", "../outside/secret.txt", deny},
		{"DRIVE", ".", `C:\Windows\win.ini`, deny},
		{"DRIVE slashes", ".", "C:/Windows/win.ini", deny},
		{"DRIVE relative", ".", "c:win.ini", deny},
		{"EMPTY", ".", "", malformed},
		{"EMPTY blank", ".", " \u3000", malformed},
		{"EMPTY quotes", ".", `""`, deny},
		{"EMPTY encoded", ".", "%20", deny},
		{"ENV-VAR", ".", "$HOME/.aws/credentials", deny},
		{"ENV-VAR braces", ".", "${HOME}/x", deny},
		{"ENV-VAR command", ".", "$(pwd)/x", deny},
		{"ENV-VAR empty", ".", "..$1/outside", deny},
		{"ENV-VAR-WIN", ".", `%USERPROFILE%\.ssh\id_rsa`, deny},
		{"ENV-VAR-WIN short", ".", "%CD%/x", deny},
		{"ENV-VAR fullwidth", ".", "＄HOME/x", deny},
		{"FD", ".", "/dev/fd/3", deny},
		{"FILE-URI", ".", "file:///etc/passwd", deny},
		{"FILE-URI inside", ".", "file://ROOT/ok.txt", allow},
		{"FILE-URI inside encoded", ".", "file://ROOT/caf%C3%A9.txt", allow},
		{"FILE-URI localhost", ".", "file://localhost/etc/passwd", deny},
		{"FILE-URI localhost inside", ".", "file://LOCALHOSTROOT/ok.txt", allow},
		{"FILE-URI host", ".", "file://evil.exampleROOT/ok.txt", deny},
		{"FILE-URI-ODD", ".", "FILE:/etc/passwd", deny},
		{"FILE-URI-ODD relative", ".", "file:etc/passwd", deny},
		{"FILE-URI-ODD encoded", ".", "fil%65:%2f/%2fetc/passwd", deny},
		{"FILE-URI-ODD backslashes", ".", `file:\\\etc\passwd`, deny},
		{"FILE-URI-ODD quoted", ".", `"file:///etc/passwd"`, deny},
		{"FILE-URI-ODD inner", "/", ".file://./outside/secret.txt", deny},
		{"FILE-URI-ODD nested", ".", "url:file:///etc/passwd", deny},
		{"FILE-URI-ODD fragment", "ok.txt", "file://ROOT/ok.txt#/../src/main.go", deny},
		{"FILE-URI-ODD query", "ok.txt.bak", "file://ROOT/ok.txt?.bak", deny},
		{"GLOB-DOTDOT", ".", "ROOT/*/../../outside/*", deny},
		{"GLOB-DOTDOT back inside", ".", "src/*/../main.go", deny},
		{"GLOB in a path", ".", "src/*.go", allow},
		{"GLOB link in front", ".", "dirlink_out/*.txt", deny},
		{"GLOB wider than the grant", "src/*.go", "src/*", deny},
		{"GLOB negated class", "src/*.go", "src/[!a].go", allow},
		{"GLOB class over segments", ".", "[a/b]", deny},
		{"GLOB extended", ".", "@(..|x)/outside", deny},
		{"GLOB extended dots", ".", "@(../outside)/secret.txt", deny},
		{"HOME", ".", "~", deny},
		{"LONG", ".", strings.Repeat("a/", 2049), malformed},
		{"LONG segment", ".", strings.Repeat("a", 256), malformed},
		{"NUL", ".", "ROOT/ok.txt\x00.png", malformed},
		{"OK", ".", "ROOT/ok.txt", allow},
		{"OK-INNER-DOTDOT", ".", "ROOT/src/../ok.txt", allow},
		{"OK-LINK-INSIDE", ".", "ROOT/link_in", allow},
		{"OK-LINK-INSIDE absolute", ".", "link_abs_in/main.go", allow},
		{"OK-NEW-FILE", ".", "ROOT/notes/new.md", allow},
		{"OK-NEW-FILE deep", ".", "new/folder/new.md", allow},
		{"OK-ODD-NAME", ".", "ROOT/with space.txt", allow},
		{"OK-ODD-NAME accent", ".", "ROOT/café.txt", allow},
		{"OK-PATTERN", "src/**", "ROOT/src/sub/deep.txt", allow},
		{"OK-PERCENT-NAME", ".", "ROOT/100%25.txt", allow},
		{"OK-PERCENT-NAME no escape", ".", "ROOT/50% off.txt", allow},
		{"OK-REL", ".", "src/main.go", allow},
		{"OK-ROOT", ".", "ROOT", allow},
		{"OK-ROOT slash", ".", "ROOT/", allow},
		{"OK-ROOT dot", ".", ".", allow},
		{"OTHER-URI", ".", "http://127.0.0.1/x", deny},
		{"OTHER-URI one slash", ".", "http:/127.0.0.1/x", deny},
		{"OTHER-URI no slash", ".", "HTTPS:evil.example", deny},
		{"OTHER-URI archive", ".", "jar:file:/etc/passwd!/x", deny},
		{"PARENT-MISSING-LINK", ".", "ROOT/dirlink_out/newdir/newfile", deny},
		{"PATTERN-DEPTH", "src/*.go", "ROOT/src/sub/deep.txt", deny},
		{"PATTERN-MISS", "src/**", "ROOT/ok.txt", deny},
		{"PATTERN-SUFFIX", "src/*.go", "ROOT/src/main.go.bak", deny},
		{"PATTERN-SUFFIX slash", "src/*.go", "ROOT/src/main.go/", deny},
		{"PATTERN-SUFFIX braces", "src/*", "ROOT/src/main.go{,/}", deny},
		{"PATTERN-SUFFIX dot", "src/*.go", "ROOT/src/main.go/.", deny},
		{"PCT", ".", "ROOT/%2e%2e/outside/secret.txt", deny},
		{"PCT slash", ".", "..%2Foutside%2fsecret.txt", deny},
		{"PCT-BACKSLASH", ".", "ROOT/..%5c..%5coutside%5csecret.txt", deny},
		{"PCT-DOUBLE", ".", "ROOT/%252e%252e/outside/secret.txt", deny},
		{"PCT triple", ".", "%25252e%25252e/outside/secret.txt", deny},
		{"PCT wide", ".", "%u002e%u002e/outside/secret.txt", deny},
		{"PCT half decoded", ".", "a%2fb%2fc/%2e%2e/%2e%2e/outside", deny},
		{"PCT without end", ".", "%" + strings.Repeat("25", 100) + "41", deny},
		{"PCT-NUL", ".", "ROOT/ok.txt%00.png", deny},
		{"PCT-OVERLONG", ".", "ROOT/%c0%ae%c0%ae/outside/secret.txt", deny},
		{"PREFIX-SIBLING", ".", "ROOT-evil/secret.txt", deny},
		{"PREFIX-SIBLING joined", ".", "ROOTevil/secret.txt", deny},
		{"PREFIX-SIBLING-REL", ".", "../ROOTNAME-evil/secret.txt", deny},
		{"MAGIC", ".", ":x", deny},
		{"PROC", ".", "/proc/self/root/ROOT/ok.txt", deny},
		{"PROC-ENV", ".", "/proc/self/environ", deny},
		{"QUOTES", ".", `"/etc/passwd"`, deny},
		{"QUOTES one", ".", `'/etc/passwd`, deny},
		{"SPACE", ".", " /etc/passwd", deny},
		{"SPACE no break", ".", "\u00a0/etc/passwd", deny},
		{"SYMLINK-DANGLING", ".", "ROOT/dangling", deny},
		{"SYMLINK-DIR", ".", "ROOT/dirlink_out/secret.txt", deny},
		{"SYMLINK-DIR itself", ".", "ROOT/dirlink_out", deny},
		{"SYMLINK-LOOP quoted", ".", `"loop_a"`, deny},
		{"OTHER-URI data", ".", "data:text/plain,x", deny},
		{"SYMLINK-DIR encoded", ".", "dirlink%5fout/secret.txt", deny},
		{"SYMLINK-DOTDOT", ".", "ROOT/dirlink_out/../secret_parent.txt", deny},
		{"SYMLINK-DOTDOT back inside", ".", "ROOT/dirlink_out/../root/ok.txt", deny}, // whether there is such a folder would be told
		{"SYMLINK-DOTDOT beneath", ".", "ROOT/dirlink_out/sub/../../root/ok.txt", deny},
		{"DOTDOT over others", ".", "/etc/../ROOT/ok.txt", deny},
		{"DOTDOT over others that are none", ".", "/nowhere/../ROOT/ok.txt", deny},
		{"DOTDOT over a neighbour", ".", "../outside/../ROOTNAME/ok.txt", deny},
		{"DOTDOT over what is not held", "notes/**", "src/../notes/todo.md", deny},
		{"DOTDOT over what is held", "notes/**", "notes/sub/../todo.md", deny},
		{"DOTDOT over what is held and there", "src/**", "src/sub/../main.go", allow},
		{"DOTDOT over what is above", ".", "../ROOTNAME/src/../ok.txt", allow},
		{"DOTDOT over a link inside", ".", "link_abs_in/../ok.txt", allow},

		{"SYMLINK-FILE", ".", "ROOT/link_out", deny},
		{"SYMLINK-FILE chain", ".", "ROOT/link_chain", deny},
		{"SYMLINK-LOOP", ".", "ROOT/loop_a", deny},
		{"SYMLINK-MISSING-DOTDOT", ".", "ROOT/nowhere/../ok.txt", deny},
		{"SYMLINK-DOTDOT cleaned", ".", "sub_link/../link_out", deny},
		{"SYMLINK-ROOT", ".", "ROOT/link_root/etc/passwd", deny},
		{"SYMLINK-ROOT back inside", ".", "ROOT/link_rootROOT/ok.txt", allow},
		{"TILDE", ".", "~/.ssh/id_rsa", deny},
		{"TILDE fullwidth", ".", "～/.ssh/id_rsa", deny},
		{"TILDE after a dot", ".", "./~/.ssh/id_rsa", deny},
		{"TILDE user", ".", "~root/.ssh/id_rsa", deny},
		{"TRAILING-DOT", "src/*.go", "ROOT/src/main.go.", deny},
		{"TRAILING-DOT whole root", ".", "ROOT/src/main.go.", allow},
		{"TRAILING-DOT-DIR", ".", "ROOT/.. /outside/secret.txt", deny},
		{"TRAILING-DOT-DIR three", ".", ".../outside/secret.txt", deny},
		{"UNC", ".", `\\evil.example\share\x`, deny},
		{"UNC with all granted", "/", `\\evil.example\share\x`, deny},
		{"UNC fullwidth", ".", "＼＼evil.example＼share", deny},
		{"UNICODE-DOTS", ".", "ROOT/\uff0e\uff0e/outside/secret.txt", deny},
		{"UNICODE-DOTS two dot leader", ".", "\u2025/outside/secret.txt", deny},
		{"UNICODE-DOTS ideographic", ".", "。。/outside/secret.txt", deny},
		{"UNICODE-DOTS mixed", ".", "．%2e％2foutside/secret.txt", deny},
		{"UNICODE-DOTS invisible", ".", ".\u200b./outside/secret.txt", deny},
		{"UNICODE-LOOKALIKE-ROOT", "notes/*.md", "ROOT/n\u043etes/todo.md", deny},
		{"UNICODE-SLASH", ".", "..\u2215outside\u2215secret.txt", deny},
		{"UNICODE-SLASH fraction", ".", "..\u2044outside\u2044secret.txt", deny},
		{"UNICODE-SLASH big solidus", ".", "\u29f8etc\u29f8passwd", deny},
		{"UNICODE-SLASH link", ".", "dirlink_out\uff0fsecret.txt", deny},
		{"UTF-8", ".", "ok\xff.txt", malformed},
	} {
		t.Run("PATH-"+tc.name, func(t *testing.T) {
			p, err := tree.view().Path(strings.Replace(expand(tc.arg), "LOCALHOST", "localhost", 1))
			if got := decidePath(tree.table(t, tc.paths), p, err); got != tc.want {
				t.Errorf("got %s, want %s (readings %q, opaque %q, error %v)", got, tc.want, p.Readings(), p.Opaque(), err)
			}
		})
	}
}

func TestPathCwdUnknown(t *testing.T) {
	tree := newFileTree(t)
	for _, cwd := range []string{"/", "", "relative"} {
		v := tree.view()
		v.Cwd = cwd
		p, err := v.Path("etc/passwd")
		if got := decidePath(tree.table(t, "."), p, err); got != deny {
			t.Errorf("in %q: %s", cwd, got)
		}
	}
}

// Without a file system to ask, the text alone decides.
func TestPathLexical(t *testing.T) {
	tree := newFileTree(t)
	v, table := tree.view(), tree.table(t, ".")
	v.FS = nil
	for arg, want := range map[string]string{
		"a/../b":                        allow,
		"dirlink_out/secret.txt":        allow,
		"../root/ok.txt":                allow,
		"../rootevil/x":                 deny,
		"a%2fb%2fc/%2e%2e/%2e%2e/x":     deny,
		"a∕b∕c/../../x":                 deny,
		"a／b／c/．．/．．/x":                 deny,
		"a b /../x":                     deny,
		`a\b/../x`:                      deny,
		"{a,b}/../x":                    allow,
		"a b/../x":                      allow,
		"src/*/../x":                    deny,
		"50% off/../x":                  allow,
		"src/../café.txt":               allow,
		"file://" + tree.root + "/a/..": deny,
	} {
		p, err := v.Path(arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s: got %s, want %s (readings %q, opaque %q)", arg, got, want, p.Readings(), p.Opaque())
		}
	}
	if p := v.Argument("a\x00b"); p[0].Opaque() == "" {
		t.Error("a NUL byte was read")
	}
}

// Names that people give to files are no attack, with and without a file system.
func TestPathOrdinaryNames(t *testing.T) {
	tree := newFileTree(t)
	for _, name := range []string{
		"café.txt", "cafe\u0301.txt", "100%25.txt", "50% off.txt", "100%", "a%zz.txt", "[id].tsx", "app/[id]/page.tsx", "[[...slug]].tsx",
		"a+b", "#x", "C++(draft).pdf", "v1.2.", "wait....txt", "read more….txt", "it's.md", `5".txt`, "a, b.txt", "x=y", "a@b.c", "(1).txt", "a&b;c|d!",
		"12:30 notes.txt", "日本語。txt", "（株）報告 １／２.txt", "👩‍👩‍👧.png", "price$.txt", "cost $ 5.txt", ".env", "..hidden", "a..b", "a~", "foo~1.txt",
		"a//b", "./a/./b", "src/sub/..", "src/../ok.txt", "Screenshot at 1.23.45\u202fPM.png", "quote'd", "what?.txt", "a*b", "!x*.md", "{id}.tsx", "a{b.txt",
		"xx:y", "report%20final.txt", "%41%.txt", "%1%2x", "100%%", "°C.txt", "back\\slash.txt",
	} {
		v := tree.view()
		for range 2 {
			p, err := v.Path(name)
			if got := decidePath(tree.table(t, "."), p, err); got != allow {
				t.Errorf("%q: %s (readings %q, opaque %q, error %v)", name, got, p.Readings(), p.Opaque(), err)
			}
			v.FS = nil
		}
	}
	for _, name := range []string{"[id].tsx", "[[...slug]].tsx", "[a-z].tsx", "page.tsx"} {
		p, err := tree.view().Path("app/x/" + name)
		if got := decidePath(tree.table(t, "app/**/*.tsx"), p, err); got != allow {
			t.Errorf("%q under a glob: %s", name, got)
		}
	}
}

func TestPathReadings(t *testing.T) {
	v := capability.View{Cwd: "/w", Home: "/h"}
	for _, tc := range []struct {
		arg  string
		want []string
	}{
		{"a/b", []string{"/w/a/b"}},
		{"/a//./b/../c", []string{"/a/c"}},
		{"/../..", []string{"/"}},
		{"a/", []string{"/w/a", "/w/a/"}},
		{"a/.", []string{"/w/a", "/w/a/"}},
		{"a/..", []string{"/w", "/w/"}},
		{"~", []string{"/w/~", "/h"}},
		{"~/a", []string{"/w/~/a", "/h/a"}},
		{"a%2fb", []string{"/w/a%2fb", "/w/a/b"}},
		{"a /b", []string{"/w/a /b", "/b", "/w/a/b"}},
		{"a\u00a0b", []string{"/w/a\u00a0b", "/w/a b"}},
		{"a%u002fb", []string{"/w/a%u002fb", "/w/a/b"}},
		{"a%252fb", []string{"/w/a%252fb", "/w/a%2fb", "/w/a/b"}},
		{`a\b`, []string{`/w/a\b`, "/w/a/b", "/w/ab"}},
		{"a ", []string{"/w/a ", "/w/a"}},
		{"．a", []string{"/w/．a", "/w/.a"}},
		{"x{1,2}", []string{"/w/x{1,2}", "/w/x1", "/w/x2"}},
		{"file:///a%20b", []string{"/w/file:/a%20b", "/w/file:/a b", "/a%20b", "/a b"}},
		{"file:a?b", []string{"/w/file:a?b", "/w/a?b", "/a?b", "/w/a", "/a"}},
		{"%C3%A9", []string{"/w/%C3%A9", "/w/é"}},
	} {
		p, err := v.Path(tc.arg)
		if err != nil {
			t.Errorf("%q: %v", tc.arg, err)
		}
		got := p.Readings()
		slices.Sort(got[min(1, len(got)):])
		slices.Sort(tc.want[1:])
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q (opaque %q):\n%s", tc.arg, p.Opaque(), diff)
		}
		if p.String() != tc.arg {
			t.Errorf("%q is shown as %q", tc.arg, p)
		}
	}
	p, _ := v.Path("a")
	p.Readings()[0] = "/etc"
	if got := p.Readings()[0]; got != "/w/a" {
		t.Errorf("a caller could change a path to %s", got)
	}
}

// brokenFS answers what no file system should.
type brokenFS struct {
	hostfs.FS
	real string
	err  error
}

func (f brokenFS) Real(string) (string, error) { return f.real, f.err }

func TestPathWithoutAnswer(t *testing.T) {
	table := new(capability.PathTable)
	table.Subtree("/", 0)
	for _, fs := range []brokenFS{{err: errors.New("/secret/place: permission denied")}, {real: ""}, {real: "w"}, {real: "/w/../x"}, {real: "/w/"}} {
		v := capability.View{Cwd: "/w", FS: fs}
		p, err := v.Path("a")
		if got := decidePath(table, p, err); got != deny {
			t.Errorf("%+v: %s", fs, got)
		}
		if got := p.Opaque(); got != "" {
			t.Errorf("%+v: opaque %q, which tells that something is there", fs, got)
		}
	}
	for _, place := range []string{"/out/\xff", "/out/\x00"} {
		v := capability.View{Cwd: "/w", FS: brokenFS{real: place}}
		inner := new(capability.PathTable)
		inner.Subtree("/w", 0)
		inner.Glob(mustUnder(t, "/", "x*"), 0)
		for _, read := range []func(string) (capability.Path, error){v.Path, v.Tree, v.Glob} {
			if p, err := read("a*"); decidePath(inner, p, err) != deny {
				t.Errorf("a link to %q was covered", place)
			}
		}
	}
	if p, err := (capability.View{Cwd: "/w"}).Path("~/x"); decidePath(table, p, err) != deny {
		t.Errorf("a home that nobody knows was covered: %q", p.Readings())
	}
	if _, ok := table.Covers(capability.Path{}); ok {
		t.Error("the zero path was covered")
	}
}

func TestTree(t *testing.T) {
	tree := newFileTree(t)
	for _, tc := range []struct{ paths, arg, want string }{
		{".", ".", allow},
		{".", "src", allow},
		{".", "src/", allow},
		{".", "src/*", allow},
		{".", "/", deny},
		{".", "..", deny},
		{".", "dirlink_out", deny},
		{".", "dirlink_out/*", deny},
		{".", "link_abs_in", allow},
		{".", "", malformed},
		{"src", "src/sub", allow},
		{"src", ".", deny},
		{"src/**", "src/sub", allow},
		{"src/**", "src", deny},
		{"src/*", "src/sub", deny},
		{"src/**/*.go", "src/sub/x.go", deny},
		{"src/*", "src/*", deny},
	} {
		p, err := tree.view().Tree(tc.arg)
		if got := decidePath(tree.table(t, tc.paths), p, err); got != tc.want {
			t.Errorf("%s under %s: got %s, want %s (readings %q, opaque %q)", tc.arg, tc.paths, got, tc.want, p.Readings(), p.Opaque())
		}
	}
}

// What a glob in a tree's place matches has a tree of its own, which is not the
// tree of a directory that is called like the glob.
func TestTreeOfGlob(t *testing.T) {
	tree := newFileTree(t)
	table := tree.table(t, "src/*")
	table.Subtree(tree.root+"/src/*", 1)
	p, err := tree.view().Tree("src/*")
	if got := decidePath(table, p, err); got != deny {
		t.Errorf("got %s (readings %q)", got, p.Readings())
	}
}

func TestGlob(t *testing.T) {
	tree := newFileTree(t)
	expand := strings.NewReplacer("ROOT", tree.root).Replace
	for _, tc := range []struct{ name, paths, arg, want string }{
		{"PATH-GLOB-ARG-01", "src/**", "src/**/*.go", allow},
		{"PATH-GLOB-ARG-03", "src/**", "**/*.go", deny},
		{"itself", "src/*.go", "src/*.go", allow},
		{"a star and a sign", "src/*.go", "src/a*b.go", allow},
		{"a class", ".", "src/[ab].go", deny},
		{"absolute", ".", "ROOT/src/*.go", allow},
		{"absolute outside", ".", "/etc/*", deny},
		{"from the top", ".", "/*", deny},
		{"home", ".", "~/*", deny},
		{"no wildcard", "src/*.go", "src/main.go", allow},
		{"alternatives", "src/*.go", "src/{main,x*}.go", allow},
		{"an alternative outside", ".", "{src,/etc}/*", deny},
		{"an alternative that climbs", ".", "{src,..}/*", deny},
		{"a lone brace", ".", "src/{a}*", allow},
		{"an open brace", ".", "src/{a*", deny},
		{"through a link", ".", "dirlink_out/*", deny},
		{"through a link inside", ".", "link_abs_in/*.go", allow},
		{"excluding", ".", "!src/*", deny},
		{"extended", ".", "src/!(main).*", deny},
		{"encoded", ".", "%2e%2e/*", deny},
		{"open class", ".", "src/[a*", deny},
		{"open class at the end", ".", "src/[a]*[", deny},
		{"beyond a pattern", "src/*.go", "src/" + strings.Repeat("a?", 120) + ".go/" + strings.Repeat("b?", 120), deny},
		{"malformed", ".", "a\x00*", malformed},
	} {
		p, err := tree.view().Glob(expand(tc.arg))
		if got := decidePath(tree.table(t, tc.paths), p, err); got != tc.want {
			t.Errorf("%s: %s under %s: got %s, want %s (readings %q, opaque %q)", tc.name, tc.arg, tc.paths, got, tc.want, p.Readings(), p.Opaque())
		}
	}
}

func BenchmarkPath(b *testing.B) {
	tree := newFileTree(b)
	for _, bc := range []struct{ name, arg string }{
		{"plain", "src/main.go"},
		{"encoded", "src%2fmain.go"},
		{"accent", "café.txt"},
		{"class", "app/[id]/page.tsx"},
	} {
		for _, fs := range []capability.FS{nil, hostfs.FS{}} {
			v := tree.view()
			name := bc.name + "/hostfs"
			if v.FS = fs; fs == nil {
				name = bc.name + "/lexical"
			}
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := v.Path(bc.arg); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// TestTold: a relative path is read from every directory that an upstream may hang it
// from, the words of a program only from its own (R-SEC-05).
func TestTold(t *testing.T) {
	view := capability.View{Cwd: "/w", Told: []string{"/w/a", "/w"}, Home: "/home/u"}
	for text, want := range map[string]string{
		"docs/x": "/w/docs/x /w/a/docs/x",
		"/w/x":   "/w/x",
		"~/x":    "/w/~/x /w/a/~/x /home/u/x",
	} {
		p, err := view.Path(text)
		if got := strings.Join(p.Readings(), " "); err != nil || got != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
	cwd, err := view.Path("/w/sub")
	if err != nil {
		t.Fatal(err)
	}
	r, err := capability.Exec(view, cwd, []string{"cat", "x"})
	if err != nil {
		t.Fatal(err)
	}
	if d := compile(t, "proc.exec{in=/w/sub,cmds=[cat]}").Decide(r); !d.Allowed() {
		t.Error(d)
	}
}
