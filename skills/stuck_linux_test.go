package skills_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"capgate/skills"
)

// TestMirrorStuckAside: what cannot be taken out is tried again until it is out, although
// it does not lie where it lay.
func TestMirrorStuckAside(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x"})
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
	}
	if err := os.Chmod(filepath.Join(dir, ".capgate-aside-a/more"), 0o700); err != nil {
		t.Fatal(err)
	}
	update(t, dir, nil)
	same(t, dir, map[string]string{})
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
