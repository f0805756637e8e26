package builtin_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/builtin"
	"capgate/capability"
	"capgate/upstream"
)

// everything is an agent that may do anything to files, so that what stops a call
// is the server's own.
func everything(t testing.TB) func(*capability.Requirement) error {
	return holds(t, "fs.read{in=/}", "fs.write{in=/}", "fs.delete{in=/}")
}

// TestOutside: nothing leads out of the root, whatever is granted (R-EGG-15, R-SEC-06).
func TestOutside(t *testing.T) {
	outer := tree(t, "secret=outside", "top/in=x", "top/d/", "top/out -> ../secret", "top/abs -> $ROOT/secret", "top/up -> ..",
		"top/chain -> d/next", "top/d/next -> ../out", "top/dangling -> ../made", "top/loop -> loop", "top/self -> /proc/self")
	root := capability.Root{Dir: outer.Dir + "/top", Real: outer.Dir + "/top"}
	conn := open(t, "fs", builtin.Options{Root: root, Decide: everything(t)})
	var calls [][2]string
	for _, path := range []string{
		"out", "abs", "up/secret", "chain", "d/next", "dangling", "loop", "self/environ", "../secret", "d/../../secret", "d/../in",
		"/etc/passwd", outer.Dir + "/secret", root.Dir + "/../secret", root.Dir + "x", "//etc/passwd", "~/x", "~", "..", " ", "",
		"%2e%2e/secret", `..\secret`, "up", "file:///etc/passwd",
	} {
		for _, tool := range []string{"read", "list", "search", "info"} {
			calls = append(calls, [2]string{tool, fmt.Sprintf(`{"path":%q}`, path)})
		}
		for _, mode := range []string{"create", "overwrite", "append"} {
			calls = append(calls, [2]string{"write", fmt.Sprintf(`{"path":%q,"content":"gone","mode":%q,"parents":true}`, path, mode)})
		}
	}
	for _, path := range []string{"up/secret", "../secret", outer.Dir + "/secret", "."} {
		calls = append(calls, [2]string{"delete", fmt.Sprintf(`{"path":%q,"recursive":true}`, path)})
	}
	for _, c := range calls {
		if o := call(t, conn, c[0], c[1]); o.denied == nil && !o.IsError {
			t.Errorf("%s %s: %s", c[0], c[1], o.text())
		}
	}
	if got, want := call(t, conn, "list", `{}`).text(), "directory\td\nfile\tin\t1\n"; got != want {
		t.Errorf("the list shows %q, want %q", got, want)
	}
	if data, err := os.ReadFile(outer.Dir + "/secret"); string(data) != "outside" {
		t.Errorf("the file outside holds %q %v", data, err)
	}
	if _, err := os.Lstat(outer.Dir + "/made"); err == nil {
		t.Error("a file was made outside")
	}
}

// TestDenialTellsNothing: a denial shows the path as it was written, and not where
// it leads (R-EGG-33).
func TestDenialTellsNothing(t *testing.T) {
	root := tree(t, "open/a=x", "hidden/place=y", "open/link -> ../hidden/place")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.read{in="+root.Dir+",paths=[open]}")})
	step{"allowed", "read", `{"path":"open/a"}`, "x"}.run(t, conn)
	for _, path := range []string{"open/link", "hidden/place", "hidden/nothing"} {
		o := call(t, conn, "read", fmt.Sprintf(`{"path":%q}`, path))
		if o.denied == nil {
			t.Fatalf("%s: %s", path, o.text())
		}
		if d := o.denied.Decision; d.Need().Object() != path || path == "open/link" && strings.Contains(d.String(), "hidden") {
			t.Errorf("%s: %s", path, d)
		}
	}
}

// TestSpecial: what is no file is never opened.
func TestSpecial(t *testing.T) {
	root := tree(t, "a=x", "shared=x", "setuid=x")
	makeSpecial(t, root.Dir)
	if err := errors.Join(os.Link(root.Dir+"/shared", root.Dir+"/other"), os.Chmod(root.Dir+"/setuid", 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	conn := open(t, "fs", builtin.Options{Root: root, Decide: everything(t)})
	for _, s := range []step{
		{"pipe", "read", `{"path":"pipe"}`, "error: the path is neither"},
		{"pipe", "write", `{"path":"pipe","content":"x","mode":"append"}`, "error: the path is neither"},
		{"pipe", "write", `{"path":"pipe","content":"x","mode":"overwrite"}`, "error: the path is neither"},
		{"pipe", "info", `{"path":"pipe"}`, "special"},
		{"socket", "read", `{"path":"socket"}`, "error: the path is neither"},
		{"pipe in a search", "search", `{"text":"x","pattern":"[ap]*"}`, "a:1: x\n"},
		{"extend a shared file", "write", `{"path":"shared","content":"y","mode":"append"}`, "error: the file has another name"},
		{"replace a shared file", "write", `{"path":"shared","content":"y","mode":"overwrite"}`, "wrote"},
		{"the other name keeps it", "read", `{"path":"other"}`, "x"},
		{"extend setuid", "write", `{"path":"setuid","content":"y","mode":"append"}`, "error: the file runs with"},
		{"replace setuid", "write", `{"path":"setuid","content":"y","mode":"overwrite"}`, "error: the file runs with"},
	} {
		s.run(t, conn)
	}
}

// TestKernel: the gateway's own memory and environment are no files.
func TestKernel(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		skip(t, "proc", "there is no /proc")
	}
	conn := open(t, "fs", builtin.Options{Root: capability.Root{Dir: "/", Real: "/"}, Decide: everything(t)})
	for _, s := range []step{
		{"environment", "read", `{"path":"/proc/self/environ"}`, "error: "},
		{"by number", "read", fmt.Sprintf(`{"path":"/proc/%d/environ"}`, os.Getpid()), "error: the path is in a file system that shows"},
		{"link to the root", "read", `{"path":"/proc/self/root/etc/passwd"}`, "error: "},
		{"descriptors", "read", `{"path":"/dev/fd/0"}`, "error: "},
		{"device", "read", `{"path":"/dev/zero"}`, "error: the path is neither"},
		{"list", "list", `{"path":"/proc"}`, "error: the path is in a file system that shows"},
		{"info", "info", `{"path":"/proc/version"}`, "error: the path is in a file system that shows"},
		{"settings", "write", `{"path":"/proc/sys/kernel/hostname","content":"x","mode":"overwrite"}`, "error: "},
		{"sys", "list", `{"path":"/sys"}`, "error: "},
	} {
		s.run(t, conn)
	}
}

// TestSizes: each limit ends the call, and says so.
func TestSizes(t *testing.T) {
	root := tree(t, "many/")
	for i := range 20 {
		if err := os.WriteFile(fmt.Sprintf("%s/many/%02d", root.Dir, i), []byte("line\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(root.Dir+"/deep"+strings.Repeat("/d", 80), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(root.Dir + "/sparse")
	if err == nil {
		err = errors.Join(file.Truncate(1<<40), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	o := builtin.Options{Root: root, Decide: everything(t), Limits: builtin.Limits{Entries: 10, Write: 10, Read: 1000}}
	conn := open(t, "fs", o)
	for _, s := range []step{
		{"write", "write", `{"path":"w","content":"12345678901"}`, "error: the argument content is longer than 10"},
		{"list", "list", `{"path":"many"}`, "error: there are more entries"},
		{"search", "search", `{"path":"many","text":"line"}`, "error: there are more entries"},
		{"read far", "read", `{"path":"sparse","offset":2}`, "error: there are more than"},
		{"read bytes", "read", `{"path":"sparse"}`, "error: the file is not text and holds more"},
	} {
		s.run(t, conn)
	}
	o.Limits = builtin.Limits{}
	conn = open(t, "fs", o)
	step{"deep", "search", `{"path":"deep"}`, "error: there are more than 64 directories"}.run(t, conn)
	step{"deep delete", "delete", `{"path":"deep","recursive":true}`, "deleted"}.run(t, conn)
	step{"large file", "search", `{"text":"line","pattern":"sparse"}`, "[1 files are over"}.run(t, conn)
	o.Limits.Time = time.Nanosecond
	conn = open(t, "fs", o)
	step{"time", "search", `{"text":"line"}`, "error: the call took longer than 1ns"}.run(t, conn)
}

// rounds is how often a race is run: enough that the gap between two system calls
// is met many times over.
const rounds = 1000

// swapping runs what an attacker does to a directory while use runs in another
// goroutine.
func swapping(t *testing.T, swap func(i int) error, use func(i int)) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if err := swap(i); err != nil {
				t.Error(err)
				return
			}
		}
	})
	defer wg.Wait()
	defer close(done)
	for i := range rounds {
		use(i)
	}
}

// relink puts a link in the place of another at once.
func relink(target, link string) error {
	return errors.Join(os.Symlink(target, link+".next"), os.Rename(link+".next", link))
}

// TestSwappedLink: a link that changes between the decision and the use leads to
// what was decided on or nowhere, inside the root as well as out of it.
func TestSwappedLink(t *testing.T) {
	outer := tree(t, "secret/f=outside", "top/open/f=inside", "top/hidden/f=outside", "top/link -> open")
	dir := outer.Dir + "/top"
	grants := []string{}
	for _, verb := range []string{"fs.read", "fs.write", "fs.delete"} {
		grants = append(grants, verb+"{in="+dir+",paths=[open,link]}")
	}
	conn := open(t, "fs", builtin.Options{Root: capability.Root{Dir: dir, Real: dir}, Decide: holds(t, grants...)})
	targets := []string{"open", "hidden", "../secret", dir + "/hidden", "open"}
	allowed := 0
	swapping(t, func(i int) error { return relink(targets[i%len(targets)], dir+"/link") }, func(i int) {
		for _, c := range [][2]string{
			{"read", `{"path":"link/f"}`},
			{"search", `{"path":"link","text":"side"}`},
			{"write", `{"path":"link/f","content":"inside","mode":"overwrite"}`},
			{"write", `{"path":"link/g","content":"made","mode":"append"}`},
			{"delete", `{"path":"link/g"}`},
		} {
			o := call(t, conn, c[0], c[1])
			if o.denied == nil && !o.IsError {
				allowed++
			}
			if strings.Contains(o.text(), "outside") && !o.IsError {
				t.Fatalf("round %d: %s %s: %s", i, c[0], c[1], o.text())
			}
		}
	})
	if allowed == 0 {
		t.Error("no call was allowed: the race was not run")
	}
	for _, name := range []string{"secret", "top/hidden"} {
		data, err := os.ReadFile(filepath.Join(outer.Dir, name, "f"))
		if err != nil || string(data) != "outside" {
			t.Errorf("%s/f holds %q %v", name, data, err)
		}
		if left, _ := filepath.Glob(filepath.Join(outer.Dir, name, "*")); len(left) != 1 {
			t.Errorf("%s was written to: %v", name, left)
		}
	}
}

// TestSwappedByDecision: the same, at the worst moment, with certainty: a directory
// becomes a link, or moves away, as soon as it was decided on.
func TestSwappedByDecision(t *testing.T) {
	swaps := map[string]func(dir string) error{
		"link inside": func(dir string) error {
			return errors.Join(os.Rename(dir+"/d", dir+"/old"), os.Symlink("hidden", dir+"/d"))
		},
		"link outside": func(dir string) error {
			return errors.Join(os.Rename(dir+"/d", dir+"/old"), os.Symlink("/etc", dir+"/d"))
		},
		"moved away":  func(dir string) error { return os.Rename(dir+"/d", dir+"/hidden/d") },
		"file linked": func(dir string) error { return relink("../hidden/f", dir+"/d/f") },
		"file piped":  func(dir string) error { return errors.Join(os.Remove(dir+"/d/f"), os.Mkdir(dir+"/d/f", 0o755)) },
		"parent linked": func(dir string) error {
			return errors.Join(os.Rename(dir+"/d", dir+"/old"), relink("hidden", dir+"/d"))
		},
	}
	for name, swap := range swaps {
		for _, c := range [][2]string{
			{"read", `{"path":"d/f"}`},
			{"write", `{"path":"d/f","content":"gone","mode":"append"}`},
			{"write", `{"path":"d/f","content":"gone","mode":"overwrite"}`},
			{"write", `{"path":"d/g/h/i","content":"gone","parents":true}`},
			{"delete", `{"path":"d/f"}`},
			{"search", `{"path":"d/f/.."}`},
			{"search", `{"path":"d","text":"hidden"}`},
		} {
			root := tree(t, "d/f=open", "hidden/f=hidden")
			decide, swapped := everything(t), false
			conn := open(t, "fs", builtin.Options{Root: root, Decide: func(r *capability.Requirement) error {
				if !swapped {
					swapped = true
					if err := swap(root.Dir); err != nil {
						t.Error(err)
					}
				}
				return decide(r)
			}})
			o := call(t, conn, c[0], c[1])
			if data, err := os.ReadFile(root.Dir + "/hidden/f"); err != nil || string(data) != "hidden" || strings.Contains(o.text(), "hidden") {
				t.Errorf("%s, %s %s: %s, the other file holds %q %v", name, c[0], c[1], o.text(), data, err)
			}
			if left, _ := filepath.Glob(root.Dir + "/hidden/*"); len(left) > 1 && name != "moved away" {
				t.Errorf("%s, %s %s: %v", name, c[0], c[1], left)
			}
			if left, _ := filepath.Glob(root.Dir + "/hidden/d/*"); len(left) > 1 {
				t.Errorf("%s, %s %s: %v", name, c[0], c[1], left)
			}
		}
	}
}

// TestSwappedInPlace: a file becomes a link to one beside it, which no directory
// that is held open keeps apart.
func TestSwappedInPlace(t *testing.T) {
	for _, c := range [][2]string{
		{"read", `{"path":"f"}`},
		{"write", `{"path":"f","content":"gone","mode":"append"}`},
	} {
		root := tree(t, "f=open", "key=hidden")
		decide := holds(t, "fs.read{in="+root.Dir+",paths=[f]}", "fs.write{in="+root.Dir+",paths=[f]}")
		conn := open(t, "fs", builtin.Options{Root: root, Decide: func(r *capability.Requirement) error {
			if err := relink("key", root.Dir+"/f"); err != nil {
				t.Error(err)
			}
			return decide(r)
		}})
		o := call(t, conn, c[0], c[1])
		if data, err := os.ReadFile(root.Dir + "/key"); err != nil || string(data) != "hidden" || !o.IsError {
			t.Errorf("%s: %s, the other file holds %q %v", c[0], o.text(), data, err)
		}
	}
}

// TestMovedWhileMade: a directory that moves away while others are made in it.
func TestMovedWhileMade(t *testing.T) {
	root := tree(t, "d/", "hidden/")
	decide, asked := everything(t), 0
	conn := open(t, "fs", builtin.Options{Root: root, Decide: func(r *capability.Requirement) error {
		if asked++; asked == 2 {
			if err := os.Rename(root.Dir+"/d", root.Dir+"/hidden/d"); err != nil {
				t.Error(err)
			}
		}
		return decide(r)
	}})
	step{"made", "write", `{"path":"d/e/f","content":"x","parents":true}`, "error: the path changed"}.run(t, conn)
	if left, _ := filepath.Glob(root.Dir + "/hidden/d/*"); len(left) != 0 {
		t.Errorf("made in another directory: %v", left)
	}
}

// TestMore: what a call touches besides its path is decided on as well.
func TestMore(t *testing.T) {
	root := tree(t, "p/q=x", "s")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: holds(t, "fs.delete{in="+root.Dir+",paths=[*]}", "fs.write{in="+root.Dir+",paths=[new/deep/file,.new/deep/file]}")})
	for _, s := range []step{
		{"all beneath it", "delete", `{"path":"p","recursive":true}`, "denied scope_violation"},
		{"itself", "delete", `{"path":"s"}`, "deleted"},
		{"parents", "write", `{"path":"new/deep/file","content":"x","parents":true}`, "denied scope_violation"},
		{"parents with a dot", "write", `{"path":".new/deep/file","content":"x","parents":true}`, "denied scope_violation"},
	} {
		s.run(t, conn)
	}
	if left, err := filepath.Glob(root.Dir + "/*"); err != nil || len(left) != 1 {
		t.Errorf("there is %v %v", left, err)
	}
	if _, err := builtin.Open("fs", builtin.Options{Root: capability.Root{Dir: root.Dir, Real: linkTo(t, root.Dir)}}); err == nil {
		t.Error("a root that is a link was opened as if it were its own place")
	}
}

func linkTo(t *testing.T, dir string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	return link
}

// TestSwappedFile: a file that becomes a link between the decision and the use, to
// one outside or to one beside it.
func TestSwappedFile(t *testing.T) {
	outer := tree(t, "secret=outside", "top/key=outside", "top/real=inside")
	dir := outer.Dir + "/top"
	decide := holds(t, "fs.read{in="+dir+",paths=[real]}", "fs.write{in="+dir+",paths=[real]}")
	conn := open(t, "fs", builtin.Options{Root: capability.Root{Dir: dir, Real: dir}, Decide: decide})
	swap := func(i int) error {
		switch i % 4 {
		case 0:
			return relink("../secret", dir+"/real")
		case 2:
			return relink("key", dir+"/real")
		}
		next := dir + "/real.next"
		return errors.Join(os.WriteFile(next, []byte("inside"), 0o644), os.Rename(next, dir+"/real"))
	}
	swapping(t, swap, func(i int) {
		if o := call(t, conn, "read", `{"path":"real"}`); !o.IsError && strings.Contains(o.text(), "outside") {
			t.Fatalf("round %d: %s", i, o.text())
		}
		call(t, conn, "write", `{"path":"real","content":"inside","mode":"append"}`)
		call(t, conn, "write", `{"path":"real","content":"inside","mode":"overwrite"}`)
	})
	for _, name := range []string{"/secret", "/top/key"} {
		if data, err := os.ReadFile(outer.Dir + name); err != nil || string(data) != "outside" {
			t.Errorf("%s holds %q %v", name, data, err)
		}
	}
}

// TestSwappedParents: a directory that is being made becomes a link.
func TestSwappedParents(t *testing.T) {
	outer := tree(t, "secret/", "top/")
	dir := outer.Dir + "/top"
	conn := open(t, "fs", builtin.Options{Root: capability.Root{Dir: dir, Real: dir}, Decide: everything(t)})
	swap := func(i int) error {
		if err := os.RemoveAll(dir + "/a"); err != nil {
			return nil //nolint:nilerr // the other side was making it
		}
		if i%2 == 0 {
			os.Symlink("../secret", dir+"/a")
		}
		return nil
	}
	swapping(t, swap, func(int) {
		call(t, conn, "write", `{"path":"a/b/c","content":"x","parents":true}`)
	})
	if left, _ := filepath.Glob(outer.Dir + "/secret/*"); len(left) != 0 {
		t.Errorf("made outside: %v", left)
	}
}

// TestMovedRoot: a root that was moved away is no longer what was granted.
func TestMovedRoot(t *testing.T) {
	outer := tree(t, "top/a=x")
	root := capability.Root{Dir: outer.Dir + "/top", Real: outer.Dir + "/top"}
	conn := open(t, "fs", builtin.Options{Root: root, Decide: everything(t)})
	if err := os.Rename(root.Dir, outer.Dir+"/else"); err != nil {
		t.Fatal(err)
	}
	step{"read", "read", `{"path":"a"}`, "error: "}.run(t, conn)
	step{"write", "write", `{"path":"b","content":"x"}`, "error: "}.run(t, conn)
	var denied *capability.Denied
	if _, err := conn.Call(t.Context(), upstream.Request{Method: "tools/list"}, nil); errors.As(err, &denied) {
		t.Error(err)
	}
}

// skip ends a test that cannot run here, or fails it where everything must.
func skip(t *testing.T, reason, why string) {
	t.Helper()
	if os.Getenv("CAPGATE_REQUIRE") == "all" {
		t.Fatalf("%s: %s", reason, why)
	}
	t.Skipf("%s: %s", reason, why)
}
