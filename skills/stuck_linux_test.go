package skills_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"capgate/skills"
)

// TestMirrorStuckAside: what cannot be taken out is tried again until it is out, although
// it does not lie where it lay. The rest of the skill is out at once.
func TestMirrorStuckAside(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x", "a/next/y.md": "y"})
	dir := t.TempDir()
	update(t, dir, list)
	if err := os.Chmod(filepath.Join(dir, "a/more"), 0o500); err != nil { // nobody takes anything out of it
		t.Fatal(err)
	}
	mortal(t, filepath.Dir(dir))
	for range 3 {
		if _, err := (skills.Mirror{Dir: dir, Agent: "agents/scout"}).Update(t.Context(), nil); err == nil {
			t.Error("what stays is no error")
		}
		if _, err := os.Lstat(filepath.Join(dir, "a")); err == nil {
			t.Error("the skill is back")
		}
		if _, err := os.Lstat(filepath.Join(dir, ".capgate-aside-a/next/y.md")); err == nil {
			t.Error("what could be taken out is there")
		}
	}
	if err := os.Chmod(filepath.Join(dir, ".capgate-aside-a/more"), 0o700); err != nil {
		t.Fatal(err)
	}
	update(t, dir, nil)
	same(t, dir, map[string]string{})
}

// TestMirrorManyErrors: of what somebody has go wrong in a mirror only the beginning is said,
// however much it is and however deep it lies.
func TestMirrorManyErrors(t *testing.T) {
	dir := t.TempDir()
	for i := range 400 {
		put(t, filepath.Join(dir, fmt.Sprintf(".capgate-stage-x/%d/%d/%d", i%10, i/10%10, i)), "")
		put(t, filepath.Join(dir, fmt.Sprintf(".capgate-aside-a/%d/%d", i%10, i)), "")
		put(t, filepath.Join(dir, fmt.Sprintf("a/%d/x", i%10)), "")
	}
	put(t, filepath.Join(dir, ".capgate-mirror"), `{"agent":"agents/scout","skills":{"a":{}}}`)
	modes := func(mode fs.FileMode) {
		for i := range 10 {
			for j := range 10 {
				_ = os.Chmod(filepath.Join(dir, fmt.Sprintf(".capgate-stage-x/%d/%d", i, j)), mode) // most of them are there
			}
			if err := os.Chmod(filepath.Join(dir, fmt.Sprintf("a/%d", i)), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	modes(0o500)
	mortal(t, filepath.Dir(dir))
	t.Cleanup(func() { modes(0o700) })
	_, err := skills.Mirror{Dir: dir, Agent: "agents/scout"}.Update(t.Context(), nil)
	if err == nil {
		t.Fatal("what stays is no error")
	}
	said := strings.Split(err.Error(), "\n")
	if len(said) != 9 || said[8] != "and 1592 more" {
		t.Errorf("%d lines, the last of which is %q", len(said), said[len(said)-1])
	}
}

// TestMirrorFull: a skill that there is no room for is an error, and no other is left out for
// it. What was there before is not what its agent is shown, and goes.
func TestMirrorFull(t *testing.T) {
	const alone = "CAPGATE_TEST_FULL_DISK"
	if os.Getenv(alone) == "" { // the limit is that of a whole process, which may write more
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMirrorFull$")
		cmd.Env = append(os.Environ(), alone+"=1")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return
	}
	const most, more = 100 << 10, 300 << 10 // bytes of a file
	src, dir := tree(t, map[string]string{"a/SKILL.md": md("a"), "b/SKILL.md": md("b"), "b/big": strings.Repeat("x", more)}), t.TempDir()
	load := func() []*skills.Skill { return slices.Collect(skills.Load(options(), src).All()) }
	old := load()
	var all syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &all); err != nil {
		t.Fatal(err)
	}
	full := func(list []*skills.Skill) (skills.Mirrored, error) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: most, Max: all.Max}); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &all); err != nil {
				t.Fatal(err)
			}
		}()
		return skills.Mirror{Dir: dir, Agent: "agents/scout"}.Update(t.Context(), list)
	}
	done, err := full(old)
	if err == nil || !strings.Contains(err.Error(), "put the skill b into the mirror: ") || !slices.Equal(done.Written, []string{"a"}) {
		t.Errorf("%+v, %v", done, err)
	}
	same(t, dir, map[string]string{"a/SKILL.md": md("a")})
	if done := update(t, dir, old); !slices.Equal(done.Written, []string{"b"}) {
		t.Errorf("once there is room: %+v", done)
	}
	if _, err := full(old); err != nil {
		t.Errorf("what is right already: %v", err)
	}
	put(t, filepath.Join(src, "b/big"), strings.Repeat("y", more))
	if done, err = full(load()); err == nil || !slices.Equal(done.Removed, []string{"b"}) {
		t.Errorf("%+v, %v", done, err)
	}
	same(t, dir, map[string]string{"a/SKILL.md": md("a")})
}

// TestMirrorLease: whoever holds a lease on the lock of its mirror keeps nobody waiting.
func TestMirrorLease(t *testing.T) {
	dir := t.TempDir()
	f, err := os.OpenFile(filepath.Join(dir, ".capgate-lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	const setLease = 1024            // F_SETLEASE
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, syscall.F_WRLCK); errno != 0 {
		t.Fatal(errno)
	}
	done := updating(t, dir)
	select {
	case err := <-done:
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it waits")
		_ = f.Close() // and so the lease ends
		<-done
	}
}

// mortal has the test go on as somebody whom permissions bind, and to whom a folder belongs.
func mortal(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	err := filepath.WalkDir(dir, func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(name, nobody, nobody)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	if err := syscall.Setfsuid(nobody); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Setfsuid(0)
		runtime.UnlockOSThread()
	})
}

// TestMirrorDeepMarker: how deep what a marker names would lie makes no update much longer.
// Somebody can have written it, and the mirrors of all agents wait.
func TestMirrorDeepMarker(t *testing.T) {
	took := func(folder string) time.Duration {
		const files = 6000
		dir := t.TempDir()
		put(t, filepath.Join(dir, "a", folder, "keep"), "")
		var all []string
		for i := range files {
			all = append(all, fmt.Sprintf("%q:%q", fmt.Sprintf("%s%d", folder, i), ""))
		}
		put(t, filepath.Join(dir, ".capgate-mirror"), `{"agent":"agents/scout","skills":{"a":{`+strings.Join(all, ",")+`}}}`)
		begin := time.Now()
		update(t, dir, nil)
		return time.Since(begin)
	}
	flat, deep := time.Hour, time.Hour
	for range 10 { // somebody else may be busy here
		flat, deep = min(flat, took("x/")), min(deep, took(strings.Repeat("x/", 16)))
	}
	if deep > 4*flat {
		t.Errorf("deep %v, flat %v", deep, flat)
	}
}

// TestStampOfTheSameTime: a file that is written with the length and time that it had, as
// rsync and archives do, is another one all the same.
func TestStampOfTheSameTime(t *testing.T) {
	dir := tree(t, map[string]string{"a/SKILL.md": md("a"), "a/x.md": "one"})
	name := filepath.Join(dir, "a/x.md")
	for _, change := range []func() error{
		func() error { return os.WriteFile(name, []byte("two"), 0o600) },
		func() error {
			return errors.Join(os.WriteFile(name+"~", []byte("six"), 0o600), os.Rename(name+"~", name))
		},
	} {
		before, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		stamp := skills.Stamp(dir)
		beside, err := os.Stat(filepath.Dir(name))
		if err == nil {
			err = errors.Join(change(), os.Chtimes(name, before.ModTime(), before.ModTime()), os.Chtimes(filepath.Dir(name), beside.ModTime(), beside.ModTime()))
		}
		if err != nil {
			t.Fatal(err)
		}
		if skills.Stamp(dir) == stamp {
			t.Error("the change is not seen")
		}
	}
}
