package capability_test

import (
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/capability"
)

// TestPathGuesses: what servers are known to do to a path leads nowhere that is not covered.
func TestPathGuesses(t *testing.T) {
	tree := newFileTree(t)
	expand := strings.NewReplacer("ROOTNAME", "root", "ROOT", tree.root).Replace
	for want, args := range map[string][]string{
		deny: {
			// a file that is shown to a model
			"@/etc/passwd", "@../outside/secret.txt", "@~/.ssh/id_rsa", "@link_out", "@@link_out", "@file:///etc/passwd", "@dirlink_out/x", "./@link_out",
			// an option of a program that is given the path
			"--output=/etc/x", "-f/etc/passwd", "--output=x", "./--output=x", " -x", "ROOT/--output=/etc/x", "ROOT/-f/etc/passwd", "-", "-rf", "--help.md", "@--output=x", "–rf", "—output=x", "\ufe63x",
			// a program, or a file that is written
			"=ROOT/ok.txt", "{ok.txt,=ls}", "=ls", "|cat ok.txt", "<ok.txt", ">ok.txt", "cat ok.txt|", "＝ls", "src:|ls",
			// one of several, as text
			"ok.txt,/etc/passwd", "ok.txt, ../outside/secret.txt", "ok.txt ../outside", "ok.txt ~", "ok.txt\u00a0/etc/passwd", `ok.txt "/etc/passwd"`, "[x](/etc/passwd)", `{"path": "/etc/passwd"}`,
			`["ok.txt","/etc/passwd"]`, "path=/etc/passwd", "x=~/y", "a;..", "file=@/etc/passwd", "ok.txt @~/x", "file=@../outside", "ok.txt\ufe50/etc/passwd", "ok.txt\ufe10/etc/passwd", "ok.txt\U0001f102/etc/passwd", "“/etc/passwd”", "ok.txt “/etc/passwd”", "path=“/etc/passwd”", "ok.txt ‘../x’", "x «~/y»", "「/etc」", "﹘rf", "‘~/.ssh/id_rsa’", "«../x»", "\u207cls", "src/a,/etc/passwd", "src/a|../../outside",
			// a kind in front
			"concat:ok.txt|../outside/secret.txt", "subfile,,start,0,end,9,,:/etc/passwd", "png:../outside/secret.txt", "png:link_out", "label:@/etc/passwd", "local:~/x", `NETCDF:"/etc/passwd"`,
			"HEAD:link_out", "cache:png:link_out", "docs/x:link_out", "a/b::c:link_out", "origin/main:../x",
			// what stands behind a sign
			"link_out:foo", "link_out:10: error", "link_out::test_b", "link_out;v=1", "link_out!Sheet1", `NETCDF:"link_out":temp`, "NETCDF:link_out:temp", "src/../link_out;x",
			// numbers that are filled in
			"link_%d[1-1]", "link_%03d", "li%d_out", "%d_out", "GTIFF_RAW:link_out", "HEAD~1:link_out", "1:link_out",
			// signs that somebody leaves out
			"#/etc/passwd", "+/etc/passwd", "!/etc/passwd", "##/etc/passwd", "./#/etc/passwd", ".:./outside/secret.txt", ".|./outside", ".é./outside", ".!./outside", ". ./outside", "src/.<./.>./outside",
			// a beginning that is left out wherever it stands
			"..file:///outside/secret.txt", ".file://./outside/secret.txt", "src/FILE:/x",
			// an ending that is left out
			"link_out#L1", "link_out#L1-L2", "link_out#L1C2-L3C4", "link_out:10", "link_out:10:3", "link_out:1-2", "link_out:10:", "link_out:", "link_out(10,3)", "link_out[4x4]", "link_out[50%]", "link_out[640x480+10+10]", "link_out:10,20", "link_out#10", "..#L1", "..:10", "..?x", "..;x", "..#", "src/../..#L1", "src/..,", "@link_out:1",
			// what is behind the root
			"ROOT//src/main.go", "ROOT/~/.ssh/id_rsa", "ROOT/~", "ROOT/.//etc/passwd", "././/etc/passwd", "ROOT/~root/x", "ROOT/=ls", "ROOT/file:///etc/passwd", "ROOT/C:/x", `ROOT/"/etc/passwd"`,
			"ROOTNAME//etc/passwd", "ROOTNAME/~/x", "ROOTNAME/../outside/secret.txt", "ROOTNAME/src/../ok.txt", "ROOT/:(top)x", "ROOT/ /etc/passwd", "ROOT/%2fetc", "ROOT/#/etc/passwd",
			// a parent that a sign ends, and one behind a sign of names
			".. docs", "src/.. docs/.. x", "..'x", "src/..(x)", "..>x", "..=x", "src/a cd ..|e x", "..\u00a0x", "raw-loader!../outside/secret.txt", "x@../outside", "x#../outside", "x&~/y", "x!!../y",
			// a folder of signs that is left out, and the parent of another, then
			"src/!/../../outside", "x/#/../..", ";x/etc/passwd",
			// escapes of C
			`.\056/outside/secret.txt`, `src/.\56/.\056/outside`, `\x2e\x2e/outside`, `\u002e./outside`, `\U0000002e./outside`, `\57etc\57passwd`, `lin\153_out`, `src/.\0056/.\0056/outside`, `.\456/outside`, `.\0456/outside`, `.\u2e/outside`, `.\u02e/x`, `.\U2e/x`, `.\x2E/x`, `\0176/.ssh`,
			`.\u{00002e}/x`, `.\x{02e}/x`, `.\o{56}/x`, `a\x5c..\x5c..\x5cetc`, `.\x5c./x`, `.\x5cx2e/x`, `.\uff0e/x`, `.\u2024/x`, `.\u200b./x`, `.\x252e/x`, `x\x3a/etc/passwd`, `file\u{3a}///etc/passwd`, "link_out\u037ex", `.\N{FULL STOP}/x`, `x\N{SOLIDUS}..`,
			// a whole path or a parent behind a sign that looks like another
			"x：/etc/passwd", "src/x：../../outside", "src/x%EF%BC%9A/etc", "link_out%3a10", "link_out%{3,4}a10", "link_out%{3,4}a10：",
			// files that Perl writes
			"+>x", "+<x", "+>>x",
			// HTML
			"&#46;&#46;/outside/secret.txt", "&sol;etc&sol;passwd", "&#x2f;etc",
		},
		allow: {
			`photos\2024\a.jpg`, `a\b.txt`, `week\44\notes.md`, `week\40\x`, `week\56\x`, `photos\72\a.jpg`, `DCIM\133APPLE\IMG_0001.JPG`, `src\x24\a`, `src\u\a`, `a\9`, `a\`, `a\0`, `a\0567`, `logs\255\x`, `a\134b`, `a\o\b`, `a\o57`, `a\x{zz}`, `a\u{110000}`, `a\u\b`, `src\xe9`, `src\u00e9\x`, "src/.+/x", "src/../+", "%Y.%m.%d", "{major}.{minor}.{patch}", "... and more", "..x", "a..b", "src/..x/y", "+x", "+", "a+>b", "C#..x", "a !b", "src/.{x}.y", "x@", "a@@",
			"frame_%04d.png", "img_%03d.png", "%02d-%02d.md", "out_%1d.png", "a%5d", "100%d", "src/x:y.md", "src/[id]/x", "wow!.md", "a;b",
			"app/routes/posts.$postId.tsx", "app/routes/$lang.about.tsx", "($lang).about.tsx", "src/$userId/x.ts", "src/$id", "$postId.tsx", "files.$.tsx",
			"test.py::TestA", "conftest.py::x", "Foo::Bar", "report (2)", "x(1).txt", "app/[0]", "@scope/x.ts", "@types", "a@b.c", "ROOT/@scope/x.ts", "Note: x.txt", "TODO:", "src/main.go:10", "12:30", "12:30 notes.txt", "xx:", "#", "#x", "x#L", "C#/x.cs", "c++/x", "src/(group)/page.tsx", "(group)/page.tsx",
			"ROOT/src//main.go", "ROOT/C#/x.cs", "ROOT/(group)/x", "docs/-x", "a - b/x", "AT&T.txt", "x&lt;y", "&", "date=2024-01-01/x", "Profile: J.txt", "wow!/x", "日本/x", "ROOT/日本/x", "Q&A; notes/x", "a, b/c", "it's/x",
			"ROOT/ok.txt:10", "@ROOT/ok.txt", "(ROOT/ok.txt)", "path=ROOT/ok.txt", "x..y", "a=b..c", "@", "..x/y", "file:ROOT/ok.txt", "x~",
		},
	} {
		for _, arg := range args {
			for role, read := range map[string]func(string) (capability.Path, error){"path": tree.view().Path, "tree": tree.view().Tree} {
				p, err := read(expand(arg))
				if got := decidePath(tree.table(t, "."), p, err); got != want && !(want == deny && err != nil) {
					t.Errorf("%s %s: %s (readings %q, opaque %q, error %v)", role, arg, got, p.Readings(), p.Opaque(), err)
				}
			}
		}
	}
}

// TestPathHidden: a parent is another one where a folder in front of it is left out, be it there or not.
func TestPathHidden(t *testing.T) {
	tree := newFileTree(t)
	view := tree.view()
	view.FS = nil
	for want, args := range map[string][]string{
		deny:  {"src/!/../x", "src/!/a/../../x", "src/.+/../x", "src/.#/a/../../x", "src/;x/../x", "src/.;x/../x", "src/;..", "src/;../x"},
		allow: {"src/a/../x", "src/a/../../src/x", "src/.a/../x", "src/./../src/x", "src/日本/../x", "src/.+/x", "src/../src/!"},
	} {
		for _, arg := range args {
			p, err := view.Path(arg)
			if got := decidePath(tree.table(t, "src", "a", "."), p, err); got != want {
				t.Errorf("%s: %s (readings %q, opaque %q)", arg, got, p.Readings(), p.Opaque())
			}
		}
	}
}

// TestPathWithoutGuesses: who opens just what is written does none of that.
func TestPathWithoutGuesses(t *testing.T) {
	tree := newFileTree(t)
	view := tree.view()
	view.Plain = true
	for _, arg := range []string{"@link_out", "-rf", "=ls", "link_out:10", "link_out#L1", "#/etc/passwd", "a, /etc/passwd", "AT&amp;T", `lin\153_out`, tree.root + "//src/main.go", tree.root + "/~/x"} {
		p, err := view.Path(arg)
		if got := decidePath(tree.table(t, "."), p, err); got != allow {
			t.Errorf("%s: %s (readings %q, opaque %q)", arg, got, p.Readings(), p.Opaque())
		}
	}
	for arg, held := range map[string]string{"@scope/x": "@scope/**", "src/main.go:10": "src/main.go:10", "a.$postId.x": "a.$postId.x", "src/x:y": "src/x:y"} {
		for plain, want := range map[bool]string{true: allow, false: deny} {
			view.Plain = plain
			p, err := view.Path(arg)
			if got := decidePath(tree.table(t, held), p, err); got != want {
				t.Errorf("%s under %s, plain %v: %s", arg, held, plain, got)
			}
		}
	}
}

// TestPathNarrow: of what stands around a sign, each part is needed, but for lines and tests in what lies in a folder.
func TestPathNarrow(t *testing.T) {
	tree := newFileTree(t)
	for arg, want := range map[string]string{
		"src/x:.env": deny, "src/x:y.md": deny, "src/12:30.log": deny, "src/a::b:c": deny,
		"src/main.go:10": allow, "src/main.go:10:2": allow, "src/test.py::TestA": allow, "src/test.py::TestA::test_b": allow, "src/a!b": allow, "src/a;b": allow,
		"src/x.png[4x4]": allow, "src/!x.md": allow, "src/;x": allow, "src/!a/b.md": allow, "src/my%20docs/a.md": allow, "src/x_%04d.png": allow, "src/posts.$postId.tsx": allow,
		"src/第1章：はじめに.md": allow, "src/FAQ：よくある質問.md": allow, "src/Title꞉ Sub.md": allow, "src/a∶b.md": allow, "src/すごい！.md": allow, "src/一；二.md": allow, "src/Q&A：よくある質問.md": allow, "src/报告：增长20%.md": allow, "src/20%増：二.md": allow, `src/R&D：note.md`: allow,
		"src/x：y:z.md": deny, "src/x：y%3Az.md": deny, "src/x：y%253az.md": deny, "src/x：y%３az.md": deny, "src/x：y&colon;z.md": deny, `src/：y%\3az.md`: deny,
	} {
		p, err := tree.view().Path(arg)
		if got := decidePath(tree.table(t, "src"), p, err); got != want {
			t.Errorf("%s: %s (readings %q, opaque %q, error %v)", arg, got, p.Readings(), p.Opaque(), err)
		}
	}
}

// TestPathExact: a sign that a name begins with takes no more than that name, nor does an escape that might be a number.
func TestPathExact(t *testing.T) {
	tree := newFileTree(t)
	for arg, held := range map[string][]string{"src/!x.md": {"src/!x.md"}, "my%20data.csv": {"my%20data.csv", "my data.csv"}} {
		p, err := tree.view().Path(arg)
		if got := decidePath(tree.table(t, held...), p, err); got != allow {
			t.Errorf("%s: %s (readings %q)", arg, got, p.Readings())
		}
	}
}

// TestPathVariables: what may be a variable of somebody is denied; what is called as parameters of routes are is none.
func TestPathVariables(t *testing.T) {
	tree := newFileTree(t)
	for want, args := range map[string][]string{
		deny: {
			"src/$HOME", "$home/x", "x/$path", "x/$cwd", "src/$Home", "src/$hOME", "$psHome/x", "x$pwD/y", "x/$idHOME_x", "src/$id_x", "src/$iD2_", "x/${postId}", "x/$(postId)", "x/$$id", "src/$1", "src/$postId$HOME", "$id/etc/passwd", "$postId/etc/passwd", "$postId~/x", "$slug/../../x", "a$postId/../x", "x/$env:userProfile",
			"x/$^HOME", "$=HOME/x", "$~HOME/x", "$+HOME", "$::env(HOME)/x", "$idé/etc/hostname", "x/$aBé", "$id[1]/etc/x", ".$id[1]./outside", ".$postId:t./outside", ".$postId::x./outside", "src/.$postId'x./x",
			".$postId->x./outside", "$postId(x)/etc", "x/$buildInputs/y", "x/$userProfile/y", "x/$pId", "x/$shellId", "x/$Id", "x/$aBId", "x/$a1Id", "x/$postIdé",
			".$postId./outside", "x$postId..", "$lang.$HOME", "$lang.$", "$id-$x.md", ".$id_./outside", "%1d/etc/passwd", "%01d/etc/passwd", "%1d~/.ssh/id", "%1d-rf", ".%1d./outside",
			"%USERPROFILE%/x", "%04%", "a%0db", "frame_%0d.png", "x%00d", "x%09d",
		},
		allow: {"src/$teamSlug/x", "files.$.$id.tsx", "app/($lang)/x", "src/$postId-edit.tsx", "my%20data.csv", "src/$locale/x", "$lang.md", "src/.$postId", "a$postId", "src/$lang.$slug.tsx", "src/$lang-$locale.json", "posts.$postId_.edit.tsx", "src/prefix-{$id}.tsx", "src/{-$locale}/x", "$orgSlug.$postId.$id.tsx"},
	} {
		for _, arg := range args {
			p, err := tree.view().Path(arg)
			if got := decidePath(tree.table(t, "."), p, err); got != want {
				t.Errorf("%s: %s (readings %q, opaque %q, error %v)", arg, got, p.Readings(), p.Opaque(), err)
			}
		}
	}
}

// TestPathEscapesOfC: to echo an octal escape may have a digit more than to C.
func TestPathEscapesOfC(t *testing.T) {
	for arg, want := range map[string]string{`a\0607`: "/w/a07", `a\0141`: "/w/aa", `a\0541`: "/w/aa"} {
		p, err := capability.View{Cwd: "/w"}.Path(arg)
		if !slices.Contains(p.Readings(), want) {
			t.Errorf("%s: %q, %v", arg, p.Readings(), err)
		}
	}
}

// TestPathBehindAName: who cuts off what the root is called climbs from there, as does who leaves out a folder of signs.
func TestPathBehindAName(t *testing.T) {
	table := new(capability.PathTable)
	table.Subtree("/w/x", 0)
	for arg, want := range map[string]string{"x/../y": deny, "x/y/../z": deny, "x/y": allow, "y/../x": allow, "y/!/../z": deny, "y/#/../../z": deny} {
		p, err := capability.View{Cwd: "/w/x"}.Path(arg)
		if got := decidePath(table, p, err); got != want {
			t.Errorf("%s: %s (%q, %s)", arg, got, p.Readings(), p.Opaque())
		}
	}
}

// TestPathManyParents: who climbs again and again keeps nobody busy, as each folder on the way is looked for.
func TestPathManyParents(t *testing.T) {
	tree := newFileTree(t)
	for n, want := range map[int]string{60: allow, 500: deny} {
		for _, plain := range []bool{true, false} {
			view, began := tree.view(), time.Now()
			view.Plain = plain
			p, err := view.Path(strings.Repeat("src/../", n) + "ok.txt")
			if got := decidePath(tree.table(t, "."), p, err); got != want || time.Since(began) > 200*time.Millisecond {
				t.Errorf("%d, plain %v: %s (%s) after %v", n, plain, got, p.Opaque(), time.Since(began))
			}
		}
	}
}

// TestPathAbove: what is above the root is there, as everybody knows.
func TestPathAbove(t *testing.T) {
	tree := newFileTree(t)
	p, err := tree.view().Path("../../" + path.Base(path.Dir(tree.root)) + "/root/ok.txt")
	if got := decidePath(tree.table(t, "."), p, err); got != allow {
		t.Errorf("%s (%s)", got, p.Opaque())
	}
}

// TestPathPassedIsSaid: who is denied for what a .. leaves is told of that.
func TestPathPassedIsSaid(t *testing.T) {
	tree := newFileTree(t)
	p, err := tree.view().Path("src/../ok.txt")
	if err != nil {
		t.Fatal(err)
	}
	if also := capability.File("fs.read", p).Also(); !slices.Equal(also, []string{tree.root + "/src"}) {
		t.Error(also)
	}
}
