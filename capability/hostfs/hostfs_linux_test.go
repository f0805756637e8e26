package hostfs_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"

	"capgate/capability/hostfs"
)

// A magic link leads wherever a process has something open, whatever its text.
func TestRealRefusesMagicLinks(t *testing.T) {
	base := dir(t, map[string]string{"proc": "/proc"})
	for _, p := range []string{
		"/proc/self/root", "/proc/self/root/etc", "/proc/self/cwd", "/proc/self/exe", "/proc/self/fd/0", "/proc/thread-self/cwd", "/proc/mounts",
		"/proc/" + strconv.Itoa(os.Getpid()) + "/cwd", base + "/proc/self/root", "/dev/fd/0", "/dev/stdin",
	} {
		if got, err := (hostfs.FS{}).Real(p); err == nil {
			t.Errorf("%s leads to %s", p, got)
		}
	}
	if got, err := (hostfs.FS{}).Real("/proc/self/status"); err != nil || got != "/proc/"+strconv.Itoa(os.Getpid())+"/status" {
		t.Errorf("/proc/self is a directory of /proc: got %q, %v", got, err)
	}
}

// What may not be looked at is an error, never a missing tail.
func TestRealClosedDirectory(t *testing.T) {
	base := dir(t, nil, "closed/a")
	for at, mode := range map[string]os.FileMode{base + "/closed": 0, filepath.Dir(base): 0o755} {
		if err := os.Chmod(at, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(base+"/closed", 0o700) })
	if os.Geteuid() == 0 {
		// Root may look anywhere; this thread no more, which ends with the test.
		runtime.LockOSThread()
		const nobody = 65534
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setfsuid(0) }()
	}
	if got, err := (hostfs.FS{}).Real(base + "/closed/a"); err == nil {
		t.Errorf("got %q", got)
	}
	if got, err := (hostfs.FS{}).List(base + "/closed"); err == nil {
		t.Errorf("found %v", got)
	}
}
