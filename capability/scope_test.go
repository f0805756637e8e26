package capability_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
)

// TestScopeRefuses: whatever is wrong in a scope makes its grant inert, and says
// what (R-EGG-31).
func TestScopeRefuses(t *testing.T) {
	long := strings.Repeat("a", 600)
	for _, c := range []struct {
		spec capability.Spec
		want string
	}{
		{spec("fs.read").With("in"), "in: is empty"},
		{spec("fs.read").With("in", "/w").With("paths", ""), "an entry is empty"},
		{spec("fs.read").With("in", " /w"), "begins or ends in a space"},
		{spec("fs.read").With("in", ""), "is empty or begins"},
		{spec("fs.read").With("in", "/w\x01"), "control characters"},
		{spec("fs.read").With("in", "/"+strings.Repeat("a", 5000)), "over 4096 bytes"},
		{spec("fs.read").With("in", "/w/*"), "is a glob where a directory must stand"},
		{spec("fs.read").With("paths", long), "paths:"},
		{spec("fs.read").With("paths", "a["), "paths:"},
		{spec("fs.write").With("in", "/").With("paths", "w/!x*"), "paths:"},
		{spec("proc.exec").With("cmds", "a b"), "cmds:"},
		{spec("proc.exec").With("cmds", "sh"), "runs whatever its arguments say"},
		{spec("proc.exec").With("patterns", "* x"), "patterns:"},
		{spec("records.update").With("paths", "a/../b"), "holds an empty, . or .. segment"},
		{spec("memory.read").With("keys", "a["), "keys:"},
		{spec("memory.read").With("keys", strings.Repeat("a", 511)), "keys:"},
		{spec("rye.load.tool").With("ids", "a b"), "is no Rye id pattern"},
		{args(param("owner")), "args: owner allows no value"},
		{args(param("owner", "a[")), "args: owner:"},
		{args(), "takes 1 to 16 arguments"},
		{args(capability.Param{Key: "owner", IsMap: true}), "args: owner takes a list of patterns"},
		{args(capability.Param{Key: "owner", Wrong: "a number"}), "args: owner takes a list of patterns"},
		{scope("tool.invoke", capability.Param{Key: "args", IsMap: true, Args: []capability.Param{param("o", "x")}}), "tools: is missing"},
		{scope("net.get", capability.Param{Key: "hosts", Wrong: "a number"}), "takes a list of hosts, not a number"},
		{scope("net.get", capability.Param{Key: "hosts", IsMap: true}), "takes a list of hosts"},
		{scope("tool.invoke", param("args", "x")), "takes a map of arguments"},
		{spec("net.get").With("hosts", make([]string, 1025)...), "has more than 1024 values"},
	} {
		set, findings := capability.Compile([]capability.Spec{c.spec}, capability.Options{Config: capability.Root{Dir: "/w", Real: "/w"}})
		if len(set.ByRisk()) == 0 {
			t.Errorf("%.80s compiles to nothing", c.spec)
		}
		for g := range set.All() {
			if !strings.Contains(g.Inert(), c.want) || len(findings) == 0 {
				t.Errorf("%.80s: %q %v, want %q", c.spec, g.Inert(), findings, c.want)
			}
		}
	}
}

func spec(verb string) capability.Spec { return capability.Spec{Verb: verb} }

func scope(verb string, params ...capability.Param) capability.Spec {
	return capability.Spec{Verb: verb, Scope: params}
}

func param(key string, values ...string) capability.Param {
	return capability.Param{Key: key, Values: values}
}

func args(rules ...capability.Param) capability.Spec {
	return scope("tool.invoke", param("tools", "x"), capability.Param{Key: "args", IsMap: true, Args: rules})
}

// TestRootsOfAGrant: several roots are several grants, each with the same scope,
// and a home is written out.
func TestRootsOfAGrant(t *testing.T) {
	view := capability.View{Home: "/home/u", Cwd: "/"}
	set, findings := capability.Compile([]capability.Spec{
		spec("fs.read").With("in", "/a", "~/b").With("paths", "x"),
		spec("fs.write").With("in", "~").With("paths", "~/notes", "/home/u/docs/"),
		spec("fs.delete").With("in", "."),
	}, capability.Options{View: view, Config: capability.Root{}})
	want := []string{
		"fs.read{in=/a,paths=[x]}", "fs.read{in=/home/u/b,paths=[x]}", "fs.write{in=/home/u,paths=[~/notes,/home/u/docs/]}",
		`fs.delete{in=.} # inert: in: "." is relative, and nothing here says to what`,
	}
	got := describe(set)
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(findings) != 1 {
		t.Errorf("got %q %v, want %q", got, findings, want)
	}
	for text, allowed := range map[string]bool{
		"fs.read{path=/a/x}": true, "fs.read{path=/home/u/b/x/y}": true, "fs.read{path=/a/y}": false, "fs.read{path=/home/u/x}": false,
		"fs.write{path=/home/u/notes/a}": true, "fs.write{path=/home/u/docs}": true, "fs.write{path=/home/u/a}": false,
	} {
		if d := set.Decide(need(t, text)); d.Allowed() != allowed {
			t.Errorf("%s: %s", text, d)
		}
	}
}

// links is a file system in which some directories are links.
type links map[string]string

var errLoop = errors.New("loop")

func (l links) Real(p string) (string, error) {
	for from, to := range l {
		if rest, ok := strings.CutPrefix(p, from); ok && (rest == "" || rest[0] == '/') {
			if to == "" {
				return "", errLoop
			}
			return to + rest, nil
		}
	}
	return p, nil
}

func (links) List(string) ([]fs.DirEntry, error) { return nil, nil }

// TestLinkedRoots: a root may be a link itself; what hangs from it is known by
// both names, and a root that leads out of the outer one is outside (R-EGG-16).
func TestLinkedRoots(t *testing.T) {
	view := capability.View{Cwd: "/here", Home: "/home/u", FS: links{"/here": "/data/kept", "/data/kept/out": "/etc", "/loop": "", "/data/kept/loop": ""}}
	config, err := capability.ParseRoot("/here", "", view)
	if err != nil || config.Real != "/data/kept" {
		t.Fatal(config, err)
	}
	set, findings := capability.Compile([]capability.Spec{
		spec("fs.read").With("in", "/data/kept").With("paths", "docs"),
		spec("fs.write").With("in", "/data/kept/out"),
		spec("fs.delete").With("in", "/data/kept/loop"),
		spec("proc.exec").With("cmds", "ls"),
	}, capability.Options{Config: config, View: view})
	want := []string{
		"fs.read{in=/data/kept,paths=[docs]}",
		"fs.write{in=/data/kept/out} # inert: in: /data/kept/out leads out of the sandbox root /here through a link",
		`fs.delete{in=/data/kept/loop} # inert: in: the directory "/data/kept/loop" cannot be resolved`,
		"proc.exec{in=/here,cmds=[ls]}",
	}
	if got := describe(set); strings.Join(got, "\n") != strings.Join(want, "\n") || len(findings) != 2 {
		t.Errorf("got %q %v", got, findings)
	}
	for text, allowed := range map[string]bool{
		"fs.read{path=/data/kept/docs/a}":         true,
		"fs.read{path=/here/docs/a}":              false, // the grant was written for the other name
		"proc.exec{argv=[ls],cwd=/here}":          true,
		"proc.exec{argv=[ls],cwd=/data/kept/sub}": true,
		"proc.exec{argv=[ls],cwd=/etc}":           false,
		"proc.exec{argv=[ls,/loop],cwd=/here}":    false,
	} {
		r, err := capability.ParseRequirement(text, view)
		if err != nil {
			t.Fatal(err)
		}
		if d := set.Decide(r); d.Allowed() != allowed {
			t.Errorf("%s: %s", text, d)
		}
	}
	// A grant by one name is within one by the other only where both names are.
	inner, _ := capability.Compile([]capability.Spec{spec("proc.exec").With("cmds", "ls")}, capability.Options{Config: config, View: view})
	if gaps := set.Covers(inner); len(gaps) > 0 {
		t.Error(gaps)
	}
	if gaps := inner.Covers(compile(t, "proc.exec{in=/w,cmds=[ls]}")); len(gaps) != 1 {
		t.Error(gaps)
	}
}

// TestEscapingRoot: a directory that by its name lies in the sandbox root, and is a
// link to what holds that root, is not clamped to all of it (R-EGG-16).
func TestEscapingRoot(t *testing.T) {
	tree := newFileTree(t)
	view := tree.view()
	linked := filepath.Dir(tree.root) + "/linked"
	for link, to := range map[string]string{tree.root + "/up": "..", linked: "root"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	for _, config := range []string{tree.root, linked} {
		root, err := capability.ParseRoot(config, "", view)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{"up", "link_root", "up/root/up", tree.root + "/up", config + "/link_root"} {
			for _, spec := range []capability.Spec{
				spec("fs.read").With("in", in),
				spec("fs.write").With("in", in).With("paths", "notes", "."),
				spec("proc.exec").With("in", in).With("cmds", "ls"),
			} {
				set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{Config: root, View: view})
				for g := range set.All() {
					if g.Inert() == "" {
						t.Errorf("root %s: %s is in effect", config, g)
					}
				}
			}
		}
	}
}

func TestClamp(t *testing.T) {
	outer := capability.Root{Dir: "/w", Real: "/w"}
	for _, c := range []struct {
		root    capability.Root
		outer   capability.Root
		want    string
		changed bool
	}{
		{capability.Root{Dir: "/w/a", Real: "/w/a"}, outer, "/w/a", false},
		{capability.Root{Dir: "/etc", Real: "/etc"}, outer, "/w", true},
		{capability.Root{Dir: "/w/link", Real: "/etc"}, outer, "/w", true},
		{capability.Root{Dir: "/", Real: "/"}, outer, "/w", true},
		{capability.Root{Dir: "/etc", Real: "/etc"}, capability.Root{}, "/etc", false},
	} {
		if got, changed := c.root.Clamp(c.outer); got.Dir != c.want || changed != c.changed {
			t.Errorf("%v: %v %v", c.root, got, changed)
		}
	}
}

// TestClampedGlobs: a glob that is clamped and not inert allows what it allowed
// before, beneath the narrower root, and nothing else.
func TestClampedGlobs(t *testing.T) {
	within := capability.Root{Dir: "/s/a/b", Real: "/s/a/b"}
	var paths []string
	for _, p := range []string{"", "/s", "/s/a", "/s/a/b", "/s/a/bc", "/s/x", "/s/a/b/a", "/s/a/b/s"} {
		paths = append(paths, p+"/f", p+"/.h/g", p+"/a/b/f", "/"+strings.TrimPrefix(p, "/"))
	}
	exact := 0
	for _, glob := range []string{
		"**", "s/**", "s/a/**", "s/a/b/**", "s/a/bc/**", "s/x/**", "a/**", "s/a/b/a/**", "s/a/b/*", "s/a/b/**/f",
		"**/f", "*", "*/**", "s**", "s/a/b**", "s/*/**", "s/a/?/**", "s/{a,x}/**", "s/[a]/**", `s/\a/**`, "s/a/b/a/*",
	} {
		grants := []capability.Spec{spec("fs.read").With("in", "/").With("paths", glob)}
		wide, _ := capability.Compile(grants, capability.Options{})
		narrow, _ := capability.Compile(grants, capability.Options{Config: within})
		clamped := false
		for g := range narrow.All() {
			clamped = g.Inert() == ""
		}
		if clamped {
			exact++
		}
		for _, p := range paths {
			inside := p == within.Dir || strings.HasPrefix(p, within.Dir+"/")
			before := wide.Decide(need(t, "fs.read{path="+p+"}")).Allowed()
			if got := narrow.Decide(need(t, "fs.read{path="+p+"}")).Allowed(); got != (clamped && inside && before) {
				t.Errorf("%s clamped to %s: %s is allowed: %v", glob, within.Dir, p, got)
			}
		}
	}
	if exact < 8 {
		t.Errorf("only %d globs were clamped", exact)
	}
}

// TestProductCap: a comparison of more products than the cap is a no without a
// witness, and says so.
func TestProductCap(t *testing.T) {
	many := make([]string, 80)
	for i := range many {
		many[i] = fmt.Sprintf("k%d*", i)
	}
	wide, _ := capability.Compile([]capability.Spec{spec("records.update").With("classes", many...).With("paths", many...)}, capability.Options{})
	gaps := wide.Covers(wide)
	if len(gaps) != 1 || gaps[0].Witness != "" || !strings.Contains(gaps[0].String(), "could not be shown to be within it") {
		t.Errorf("%v", gaps)
	}
	gaps = compile(t, "net.get{hosts=[a.com]}").Covers(compile(t, "net.get", "net.get{hosts=[b.com]}"))
	if len(gaps) != 1 || gaps[0].String() != "net.get{hosts=[b.com]} would also allow b.com" {
		t.Errorf("%v", gaps)
	}
}

// TestUnreadable: what has no reading is denied, and nothing is proposed for it.
func TestUnreadable(t *testing.T) {
	set := compile(t, "proc.exec{in=/w}", "proc.exec{in=/w,cmds=[ls]}", "fs.read{in=/w}")
	opaqueCwd := need(t, "proc.exec{argv=[ls],cwd=$HOME}")
	globCwd := need(t, "proc.exec{argv=[ls],cwd=\"a*\"}")
	argument := need(t, "proc.exec{argv=[ls,~root/x]}")
	for _, r := range []*capability.Requirement{
		opaqueCwd, globCwd, argument,
		capability.File("fs.read", capability.Path{}),
	} {
		if d := set.Decide(r); d.Allowed() {
			t.Errorf("%s: %s", r, d)
		}
		if s, ok := r.Smallest(capability.Root{}); ok && r != globCwd {
			t.Errorf("%s: %s", r, s)
		}
	}
	if argument.Opaque() == "" || argument.Verb() != "proc.exec" {
		t.Errorf("%q", argument.Opaque())
	}
	line, err := capability.Shell("proc.exec", view, mustPath(t, "/w"), "ls -l")
	if err != nil || !set.Decide(line).Allowed() {
		t.Errorf("%v %v", line, err)
	}
	piped, err := capability.Shell("proc.exec", view, mustPath(t, "/w"), "ls | sh")
	if err != nil || set.Decide(piped).Allowed() {
		t.Errorf("%v %v", piped, err)
	}
	named, _ := capability.Compile([]capability.Spec{spec("proc.exec").With("in", "/w").With("cmds", "ls")}, capability.Options{})
	if d := named.Decide(piped); d.Allowed() {
		t.Error(d)
	}
	if _, ok := piped.Smallest(capability.Root{}); ok {
		t.Error("a grant for what needs a shell")
	}
}

func mustPath(t *testing.T, text string) capability.Path {
	t.Helper()
	p, err := view.Path(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestChangingDirectory: paths are read from where a program goes first.
func TestChangingDirectory(t *testing.T) {
	set := compile(t, "proc.exec{in=/w/a,cmds=[git]}", "proc.exec{in=/w/a,cmds=[tar]}")
	for text, allowed := range map[string]bool{
		"proc.exec{argv=[git,-C,sub,log,--,x],cwd=a}":          true,
		"proc.exec{argv=[git,-C,/w/a/sub,log,--,x],cwd=a}":     true,
		"proc.exec{argv=[git,-C,sub,log,--,../x],cwd=a/b}":     true,
		"proc.exec{argv=[git,-C,sub,log,--,../x],cwd=a}":       false, // from where it starts, that is outside
		"proc.exec{argv=[git,-C,/w/a,log,--,../x],cwd=a/sub}":  false,
		"proc.exec{argv=[git,-C,/etc,log],cwd=a}":              false,
		"proc.exec{argv=[tar,-C,sub,-cf,x.tar,../../y],cwd=a}": false,
	} {
		if d := set.Decide(need(t, text)); d.Allowed() != allowed {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestNarrowed(t *testing.T) {
	set := compile(t, "tool.invoke:*")
	d := set.Decide(need(t, "tool.invoke{tool=a.b}"))
	if g := d.Grant(); g == nil || g.Verb() != "tool.invoke" {
		t.Error(g)
	}
	d = d.Narrowed("toolset")
	if d.Allowed() || d.Code != capability.ScopeViolation || d.Link() != "toolset" || d.Grant() != nil {
		t.Errorf("%v", d)
	}
	chain := capability.Chain{{Set: compile(t)}, {Name: "parent", Set: compile(t)}}
	if d := chain.Decide(need(t, "records.read")); d.Code != capability.CapabilityAbsent || len(d.Held()) > 0 {
		t.Error(d)
	}
	if capability.RunsProject("make") == capability.RunsProject("ls") {
		t.Error("make and ls")
	}
	for _, e := range capability.Catalogue() {
		for _, k := range e.Keys {
			if k.Type.String() == "" {
				t.Errorf("%s %s", e.Verb, k.Name)
			}
		}
	}
}

// TestUnconfined: where nothing confines programs, a grant of any of them is inert,
// however it is written, and one that names them is not (R-EGG-19).
func TestUnconfined(t *testing.T) {
	o := capability.Options{Config: capability.Root{Dir: "/w", Real: "/w"}, Dialect: capability.Scarab}
	specs := []capability.Spec{
		{Verb: "proc.exec", Bare: true},
		capability.Spec{Verb: "proc.exec"}.With("in", "/w/a"),
		capability.Spec{Verb: "proc.exec"}.With("cmds", "git"),
		capability.Spec{Verb: "proc.exec"}.With("patterns", "sh build.sh"),
		capability.Spec{Verb: "proc.eval"}.With("in", "/w"),
		capability.Spec{Verb: "fs.read"}.With("in", "/w"),
	}
	for _, confined := range []bool{true, false} {
		want := len(specs)
		if o.Unconfined = !confined; o.Unconfined {
			want -= 2
		}
		set, findings := capability.Compile(specs, o)
		held := 0
		for g := range set.All() {
			if g.Inert() == "" {
				held++
			}
		}
		if held != want || len(findings) != len(specs)-want {
			t.Errorf("confined %v: %d are held, want %d; %v", confined, held, want, findings)
		}
	}
	short := capability.Spec{Verb: "proc.exec", Origin: "sandbox:"}.With("in", "/w")
	if _, found := capability.Compile([]capability.Spec{short}, o); len(found) != 1 || found[0].Severity != capability.Note {
		t.Errorf("of what a shorthand stands for besides it is said: %v", found)
	}
}
