package agents_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
)

// write puts a file below a folder.
func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustLoad(t testing.TB, dirs ...string) *agents.Roster {
	t.Helper()
	r, err := agents.Load(agents.Options{View: capability.View{Home: home}}, dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ids(r *agents.Roster) string {
	var list []string
	for a := range r.All() {
		list = append(list, strings.TrimPrefix(a.ID, "agents/"))
	}
	return strings.Join(list, " ")
}

func TestLoadFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "b.md", record(""))
	write(t, dir, "sub/deep/a.yml", "class: agent")
	write(t, dir, ".hidden.md", record(""))
	write(t, dir, ".git/c.md", record(""))
	write(t, dir, "notes.txt", record(""))
	write(t, dir, "README.md", "# Agents\n")
	write(t, dir, "X.MD", record(""))
	other := t.TempDir()
	write(t, other, "d.xml", "<permissions/>")
	r := mustLoad(t, dir, filepath.Join(dir, "sub"), other, dir+"/")
	if got := ids(r); got != "X a b d" {
		t.Errorf("got %s", got)
	}
	if _, ok := r.Agent("b"); !ok {
		t.Error("an id without its prefix is not found")
	}
	if _, ok := r.Agent("agents/b"); !ok {
		t.Error("an id with its prefix is not found")
	}
	if _, ok := r.Agent("agents/agents/b"); ok {
		t.Error("found under another id")
	}
	if _, err := r.Chain("nobody"); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("got %v", err)
	}
	if _, err := agents.Load(agents.Options{}, filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "missing: no such file") {
		t.Errorf("a missing folder: %v", err)
	}
	if _, err := agents.Load(agents.Options{}, filepath.Join(dir, "b.md")); err == nil {
		t.Error("a file was read as a folder")
	}
}

func TestLoadLinks(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	target := write(t, outside, "evil.md", record("capabilities: [records.delete]"))
	write(t, outside, "agents/inner.md", record(""))
	for link, to := range map[string]string{"evil.md": target, "more": outside, "note.txt": target} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := mustLoad(t, dir)
	if got := ids(r); got != "" {
		t.Errorf("followed a link to %s", got)
	}
	if f := r.Findings(); len(f) != 1 || f[0].Code != "symlink" {
		t.Errorf("findings %v", f)
	}
	// The folder itself may be a link: whoever configured it meant where it leads.
	if got := ids(mustLoad(t, filepath.Join(dir, "more", "agents"))); got != "inner" {
		t.Errorf("got %s", got)
	}
	if got := ids(mustLoad(t, filepath.Join(dir, "more"))); got != "evil inner" {
		t.Errorf("got %s", got)
	}
}

// mounted is a file system in which ~/w is a link to /data/w, and its folder up one
// to what is above it.
type mounted struct{ hostfs.FS }

func (mounted) Real(path string) (string, error) {
	switch rest, ok := strings.CutPrefix(path, home+"/w"); {
	case strings.HasSuffix(path, "/w/up"):
		return "/data", nil
	case ok:
		return "/data/w" + rest, nil
	}
	return path, nil
}

// TestEscapingSandbox: a sandbox: that by either name of the configuration's root
// lies in it, and leads out, is not clamped to all of it (R-EGG-16).
func TestEscapingSandbox(t *testing.T) {
	view := capability.View{Cwd: home, Home: home, FS: mounted{}}
	config, err := capability.ParseRoot("~/w", "", view)
	if err != nil {
		t.Fatal(err)
	}
	for _, sandbox := range []string{"up", "~/w/up", "/data/w/up"} {
		dir := lay(t, []string{"scout.md"}, map[string]string{"scout.md": record("sandbox: " + sandbox)})
		r, err := agents.Load(agents.Options{Config: config, View: view}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := r.Agent("scout"); a.Err == nil {
			t.Errorf("sandbox: %s is clamped to %s", sandbox, a.Root.Dir)
		}
	}
}

func TestLoadDepth(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, strings.Repeat("d/", 70)+"a.md", record(""))
	if _, err := agents.Load(agents.Options{}, dir); err == nil || !strings.Contains(err.Error(), "deeper than 64") {
		t.Errorf("got %v", err)
	}
}

// TestUnreadable: what cannot be read is no reason to forget an agent.
func TestUnreadable(t *testing.T) {
	if os.Getuid() == 0 {
		asNobody(t, "TestUnreadable")
		return
	}
	dir := t.TempDir()
	path := write(t, dir, "scout.md", record(""))
	locked := filepath.Dir(write(t, dir, "locked/lead.md", record("")))
	r := open(t, &journal{}, dir)
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	r.Reload()
	a, ok := r.Current().Agent("scout")
	if !ok || a.Err == nil || !strings.Contains(a.Err.Error(), "permission denied") {
		t.Errorf("got %+v", a)
	}
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(locked, 0o700) })
	r.Reload()
	if got := stateOf(r.Current(), "lead"); got != "broken" {
		t.Errorf("in a locked folder lead is %s", got)
	}
	if _, err := agents.Load(agents.Options{}, dir); err == nil {
		t.Error("a folder that cannot be read was left out")
	}
}

// asNobody runs a test again as a user whom permissions bind, which they don't
// bind root.
func asNobody(t *testing.T, name string) {
	t.Helper()
	const nobody = 65534
	dir, err := os.MkdirTemp("", "") //nolint:usetesting // the parents of TempDir are closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "agents.test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "-test.run=^"+name+"$", "-test.v")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		needs(t, "a user other than root")
	}
	if err != nil || !strings.Contains(string(out), "--- PASS: "+name) {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}

// needs skips a test that cannot run here, and fails it where all must.
func needs(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("CAPGATE_REQUIRE") == "all" {
		t.Fatalf("this test needs %s", what)
	}
	t.Skipf("this test needs %s", what)
}

// TestBroken: the agent of a broken record is known, holds nothing, and says why.
func TestBroken(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file.md", "---\nid: agents/scout\nclass: agent\naccess: x\n---\nid: agents/prose\n")
	write(t, dir, "manifest.yaml", "kind: Agent\nmetadata:\n  labels: { name: no }\n  name: fetcher\nspec: 5\n")
	write(t, dir, "flow.yaml", "metadata: { x: y, name: flow }\nspec: { capabilities: 5 }\n")
	write(t, dir, "directive.md", "```xml\n<directive version='1' name=\"kiwi/lead\"><permissions><x/></permissions></directive>\n```\n")
	write(t, dir, "garbage.md", "---\n[\n---\n")
	write(t, dir, "cut.md", "---\nid: cut-off\nclass: agent")
	write(t, dir, "nested.md", record("data:\n  id: other\naccess: x"))
	r := mustLoad(t, dir)
	if got := ids(r); got != "cut-off fetcher flow garbage kiwi/lead nested scout" {
		t.Errorf("got %s", got)
	}
	for a := range r.All() {
		if a.Err == nil || a.Code() != capability.InvalidConfig || !strings.HasPrefix(a.Err.Error(), dir) {
			t.Errorf("%s: %v", a.ID, a.Err)
		}
		if _, err := r.Chain(a.ID); !errors.Is(err, a.Err) {
			t.Errorf("%s has a chain: %v", a.ID, err)
		}
		if a.Set.Holds("records.read") || a.Giveable().Holds("records.read") {
			t.Errorf("%s holds something", a.ID)
		}
	}
}

// TestClaims: an id that two records claim belongs to neither, whatever they say
// and in whatever order they are read.
func TestClaims(t *testing.T) {
	for name, texts := range map[string][2]string{
		"both sound":    {record("id: x"), record("id: agents/x")},
		"first broken":  {record("id: x\naccess: y"), record("id: x")},
		"second broken": {record("id: x"), record("id: x\naccess: y")},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "a.md", texts[0])
			write(t, dir, "b.md", texts[1])
			write(t, dir, "c.md", texts[0])
			r := mustLoad(t, dir)
			a, _ := r.Agent("x")
			if got := ids(r); got != "x" || a.Err == nil || !strings.Contains(a.Err.Error(), "claimed by") {
				t.Errorf("got %s: %v", got, a.Err)
			}
			broken := strings.Contains(name, "broken")
			text := fmt.Sprint(r.Findings())
			if strings.Contains(text, `"y" is no access`) != broken {
				t.Errorf("findings %s", text)
			}
		})
	}
}

// TestLongLine: sixteen ancestors are enough for anybody.
func TestLongLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a0.md", record("access: r"))
	for i := 1; i <= 18; i++ {
		write(t, dir, fmt.Sprintf("a%d.md", i), record(fmt.Sprintf("access: r\nparent: a%d", i-1)))
	}
	r := mustLoad(t, dir)
	chain, err := r.Chain("a16")
	if err != nil || len(chain) != 17 {
		t.Errorf("a16: %d links, %v", len(chain), err)
	}
	for _, id := range []string{"a17", "a18"} {
		if _, err := r.Chain(id); err == nil || !strings.Contains(err.Error(), "more than 16") {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestLineage(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.md", record("capabilities: [records.read]\ntoolset: []\napprove: [fs.write]"))
	write(t, dir, "b.md", record("capabilities: [records.read]\nparent: a\napprove: [net.post, fs.write]"))
	write(t, dir, "c.md", record("capabilities: [records.read]\nparent: b\ntoolset: [x.*]"))
	l, err := mustLoad(t, dir).Lineage("c")
	if err != nil {
		t.Fatal(err)
	}
	names := func(links []capability.Link) (out []string) {
		for _, l := range links {
			out = append(out, l.Name)
		}
		return out
	}
	if diff := cmp.Diff([]string{"agents/c", "parent agents/b", "parent agents/a"}, names(l.Chain)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"agents/c", "parent agents/a"}, names(l.Ceilings)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"net.post", "fs.write"}, l.Approve); diff != "" {
		t.Error(diff)
	}
	if cap(l.Chain) > len(l.Chain) || cap(l.Ceilings) > len(l.Ceilings) || cap(l.Approve) > len(l.Approve) {
		t.Error("whoever appends to a lineage writes into everybody's")
	}
	need, _ := capability.ParseRequirement("tool.invoke{tool=x.y}", capability.View{})
	if !l.Ceilings[0].Set.Decide(need).Allowed() || l.Ceilings[1].Set.Decide(need).Allowed() {
		t.Error("the ceilings are not those of the records")
	}
}

// TestInheritedBelowSandbox: what a directive has from its parent stays within its own
// sandbox:, a token with a root of its own too. Without one it is the parent's, whole.
func TestInheritedBelowSandbox(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "up.md", record("capabilities: [\"fs.read:/srv/**\", { fs.write: { in: /srv } }]\nsandbox: /srv"))
	write(t, dir, "in.md", "---\ndialect: rye\nparent: up\nsandbox: /srv/a\n---\n")
	write(t, dir, "as.md", "---\ndialect: rye\nparent: up\n---\n")
	write(t, dir, "below.md", "---\ndialect: rye\nparent: in\n---\n")
	r := mustLoad(t, dir)
	for _, c := range []struct {
		agent, need string
		want        bool
	}{
		{"in", "fs.read{path=/srv/a/f}", true},
		{"in", "fs.read{path=/srv/b/f}", false},
		{"in", "fs.write{path=/srv/a/f}", true},
		{"in", "fs.write{path=/srv/b/f}", false},
		{"below", "fs.read{path=/srv/a/f}", true},
		{"below", "fs.read{path=/srv/b/f}", false},
		{"as", "fs.read{path=/srv/b/f}", true},
		{"as", "fs.write{path=/srv/b/f}", true},
	} {
		chain, err := r.Chain(c.agent)
		if err != nil {
			t.Fatal(err)
		}
		need, err := capability.ParseRequirement(c.need, capability.View{})
		if err != nil {
			t.Fatal(err)
		}
		if got := chain.Decide(need).Allowed(); got != c.want {
			t.Errorf("%s, %s: %v", c.agent, c.need, got)
		}
	}
}

// fleet writes records with a line of parents.
func fleet(t testing.TB, records, grants int) string {
	dir := t.TempDir()
	for i := range records {
		var b strings.Builder
		fmt.Fprintf(&b, "id: agents/a%d\nsandbox: ~/p\n", i)
		if i%10 > 0 {
			fmt.Fprintf(&b, "parent: agents/a%d\n", i-1)
		}
		b.WriteString("capabilities:\n")
		for g := range grants {
			switch g % 5 {
			case 0:
				fmt.Fprintf(&b, "  - net.get: { hosts: [\"*.h%d.example\", api%d.example] }\n", g, g)
			case 1:
				fmt.Fprintf(&b, "  - fs.read: { paths: [\"src/d%d/**/*.go\"] }\n", g)
			case 2:
				fmt.Fprintf(&b, "  - tool.invoke:up%d.*\n", g)
			case 3:
				fmt.Fprintf(&b, "  - proc.exec: { in: ~/p/d%d, cmds: [git, rg] }\n", g)
			default:
				fmt.Fprintf(&b, "  - memory.read: { keys: [k%d] }\n", g)
			}
		}
		write(t, dir, fmt.Sprintf("a%d.md", i), record(b.String()))
	}
	return dir
}

// TestLoadMany: what is benchmarked is what is meant.
func TestLoadMany(t *testing.T) {
	r := mustLoad(t, fleet(t, 30, 50))
	if f := r.Findings(); len(f) > 0 {
		t.Fatal(f[0])
	}
	chain, err := r.Chain("a29")
	if err != nil || len(chain) != 10 {
		t.Fatal(len(chain), err)
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := fleet(b, 1000, 50)
	opts := agents.Options{View: capability.View{Home: home}}
	for b.Loop() {
		if _, err := agents.Load(opts, dir); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChain(b *testing.B) {
	r := mustLoad(b, fleet(b, 10, 50))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Chain("agents/a9"); err != nil {
			b.Fatal(err)
		}
	}
}

// counted is a file system that counts how often it is asked.
type counted struct {
	hostfs.FS
	asked *atomic.Int64
}

func (c counted) Real(path string) (string, error) {
	c.asked.Add(1)
	return path, nil
}

// TestBase: what relative paths in skills hang from is found at load. It is asked for once
// for each skill: looked for each time, it took longer than all the rest where there are
// many grants, and what an agent makes of the folders there could make it take minutes.
func TestBase(t *testing.T) {
	view := capability.View{Cwd: home, Home: home, FS: counted{asked: new(atomic.Int64)}}
	config, err := capability.ParseRoot("~/w", "", view)
	if err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]string{
		"": home + "/w",
		"capabilities: [net.get: { hosts: [a.example] }]":                                     home + "/w",
		"sandbox: a\ncapabilities: [fs.read: { in: /x, paths: [a] }]":                         home + "/w/a",
		"capabilities: [fs.read: { in: a, paths: [a] }, fs.write: { in: ~/w/a/ }]":            home + "/w/a",
		"capabilities: [fs.read: { in: a, paths: [a] }, fs.write: { in: b }]":                 home + "/w",
		"capabilities: [fs.read: { in: a, paths: [a] }, fs.write: { paths: [a] }]":            home + "/w",
		"capabilities: [fs.read: { in: /x, paths: [a] }]":                                     home + "/w",
		"capabilities: [fs.read: { in: a, paths: [a] }, net.get: { hosts: [a.example] }]":     home + "/w/a",
		"capabilities: [fs.read: { in: a/.., paths: [a] }]":                                   home + "/w",
		"capabilities: [fs.read: { in: a, paths: [a] }]\nparent: agents/nobody":               home + "/w/a",
		"capabilities: [fs.read: { in: a, paths: [a] }, fs.read: { in: [a, b], paths: [a] }]": home + "/w",
	} {
		dir := lay(t, []string{"scout.md"}, map[string]string{"scout.md": record(fields)})
		r, err := agents.Load(agents.Options{Config: config, View: view}, dir)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := r.Agent("scout")
		before := view.FS.(counted).asked.Load()
		if got := r.Base(a).Dir; got != want {
			t.Errorf("%q: got %s, want %s (%v)", fields, got, want, a.Err)
		}
		if asked := view.FS.(counted).asked.Load() - before; asked > 0 {
			t.Errorf("%q: the file system is asked %d times", fields, asked)
		}
	}
}

// TestBaseInherited: who has what its parent has, has that directory from it too, whether
// sandbox: is written out or not.
func TestBaseInherited(t *testing.T) {
	view := capability.View{Cwd: home, Home: home}
	config, err := capability.ParseRoot("~/w", "", view)
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range []string{"sandbox: a", "capabilities: [fs.read: { in: a }, fs.write: { in: a }]"} {
		dir := t.TempDir()
		write(t, dir, "scout.md", record(fields))
		write(t, dir, "kid.md", "---\ndialect: rye\nparent: scout\n---\n")
		r, err := agents.Load(agents.Options{Config: config, View: view}, dir)
		if err != nil {
			t.Fatal(err)
		}
		if kid, ok := r.Agent("kid"); !ok || r.Base(kid).Dir != home+"/w/a" {
			t.Errorf("%s: %v", fields, r.Base(kid))
		}
	}
}
