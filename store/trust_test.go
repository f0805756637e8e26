package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"capgate/store"
)

// TestForeign: what the store did not write, or not like this, is an error and
// never an absent entry.
func TestForeign(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(path string) error
	}{
		{"others may read", func(p string) error { return os.Chmod(p, 0o604) }},
		{"the group may write", func(p string) error { return os.Chmod(p, 0o620) }},
		{"link", func(p string) error { return errors.Join(os.Rename(p, p+"1"), os.Symlink(p+"1", p)) }},
		{"dangling link", func(p string) error { return errors.Join(os.Remove(p), os.Symlink("nowhere", p)) }},
		{"second name", func(p string) error { return os.Link(p, p+"1") }},
		{"folder", func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }},
		{"pipe", func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }},
		{"empty", func(p string) error { return os.Truncate(p, 0) }},
		{"cut in the head", func(p string) error { return os.Truncate(p, 30) }},
		{"cut in the key", func(p string) error { return edit(p, "damage-me\n", "damage-m\n") }},
		{"no format", func(p string) error { return edit(p, "capgate-store-1", "capgate-store-2") }},
		{"other key", func(p string) error { return os.Rename(filepath.Join(filepath.Dir(p), "other"), p) }},
		{"endless head", func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("x"), 1<<16), 0o600) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, dir := open(t)
			version := put(t, s, "damage-me", "the data", "")
			put(t, s, "other", "the data", "")
			if got, err := s.Changed("pins", "damage-me", version); got || err != nil {
				t.Fatal(got, err) // and from now on the file is held
			}
			if err := tc.spoil(filepath.Join(dir, "pins", "damage-me")); err != nil {
				t.Fatal(err)
			}
			if data, now, err := s.Get("pins", "damage-me"); err == nil {
				t.Errorf("read %q at %q", data, now)
			}
			if got, err := s.Changed("pins", "damage-me", version); !got || err == nil {
				t.Errorf("unchanged: %v", err)
			}
			for _, v := range []string{"", version} {
				if _, err := s.Put("pins", "damage-me", nil, v); err == nil || errors.Is(err, store.ErrChanged) {
					t.Errorf("put at %q: %v", v, err)
				}
				if err := s.Delete("pins", "damage-me", v); err == nil || errors.Is(err, store.ErrChanged) {
					t.Errorf("delete at %q: %v", v, err)
				}
			}
			if err := s.Update("pins", "damage-me", func(b []byte) ([]byte, error) { return []byte("x"), nil }); err == nil {
				t.Error("updated")
			}
		})
	}
}

// edit replaces a text in a file by one of the same size or not.
func edit(path, was, is string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(was)) {
		return fmt.Errorf("there is no %q in %q", was, data)
	}
	return os.WriteFile(path, bytes.Replace(data, []byte(was), []byte(is), 1), 0o600)
}

// TestEveryFlippedBit: no damage to an entry goes unnoticed.
func TestEveryFlippedBit(t *testing.T) {
	s, dir := open(t)
	put(t, s, "k", "some data", "")
	path := filepath.Join(dir, "pins", "k")
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range sound {
		for bit := range 8 {
			spoiled := bytes.Clone(sound)
			spoiled[i] ^= 1 << bit
			if err := os.WriteFile(path, spoiled, 0o600); err != nil {
				t.Fatal(err)
			}
			if data, _, err := s.Get("pins", "k"); err == nil {
				t.Fatalf("bit %d of byte %d: %q", bit, i, data)
			}
		}
	}
	if err := os.WriteFile(path, append(sound, 'x'), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Get("pins", "k"); err == nil {
		t.Error("a byte more")
	}
}

func TestOpenRefuses(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, err := range []error{
		os.Mkdir(at("real"), 0o700), os.Symlink("real", at("link")),
		os.WriteFile(at("file"), nil, 0o600),
		os.Mkdir(at("group"), 0o700), os.Chmod(at("group"), 0o770),
		os.Mkdir(at("world"), 0o700), os.Chmod(at("world"), 0o702),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"link", "file", "group", "world"} {
		if _, err := store.Open(at(name)); err == nil {
			t.Errorf("%s was opened", name)
		}
	}
	if os.Getuid() == 0 {
		if err := os.Chown(at("real"), 65534, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Open(at("real")); err == nil {
			t.Error("somebody else's folder was opened")
		}
	}
}

func TestModes(t *testing.T) {
	s, dir := open(t)
	put(t, s, "k", "x", "")
	for path, want := range map[string]os.FileMode{
		filepath.Dir(dir): 0o700, dir: 0o700, filepath.Join(dir, "pins"): 0o700,
		filepath.Join(dir, "pins", "k"): 0o600, filepath.Join(dir, "pins", ".lock"): 0o600,
	} {
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s: mode %o", path, info.Mode().Perm())
		}
	}
}

// TestFolderGone: a folder that was removed or replaced holds nothing that is absent.
func TestFolderGone(t *testing.T) {
	s, dir := open(t)
	put(t, s, "k", "x", "")
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	refuses := func(what string) {
		t.Helper()
		if _, _, err := s.Get("pins", "k"); err == nil {
			t.Errorf("%s: absent", what)
		}
		if _, err := s.Keys("pins"); err == nil {
			t.Errorf("%s: listed", what)
		}
		if _, err := s.Changed("pins", "k", ""); err == nil {
			t.Errorf("%s: unchanged", what)
		}
		if _, err := s.Put("pins", "k", nil, ""); err == nil {
			t.Errorf("%s: written", what)
		}
	}
	refuses("removed")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	refuses("replaced")
}

func TestForeignBucket(t *testing.T) {
	s, dir := open(t)
	put(t, s, "k", "x", "")
	if err := os.Chmod(filepath.Join(dir, "pins"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("pins", "new", nil, ""); err == nil {
		t.Error("written where others may write")
	}
	if err := os.Symlink("pins", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put("link", "k", nil, ""); err == nil {
		t.Error("written through a link")
	}
}

// TestLeftover: what a crashed writer left is neither read nor in the way.
func TestLeftover(t *testing.T) {
	s, dir := open(t)
	version := put(t, s, "k", "x", "")
	for _, leave := range []func(string) error{
		func(p string) error { return os.WriteFile(p, []byte("capgate-store-1 half"), 0o600) },
		func(p string) error { return os.Symlink(filepath.Join(dir, "pins", "k"), p) },
	} {
		if err := leave(filepath.Join(dir, "pins", ".new")); err != nil {
			t.Fatal(err)
		}
		get(t, s, "k", "x", version)
		version = put(t, s, "k", "x", version)
		get(t, s, "k", "x", version)
		if _, err := os.Lstat(filepath.Join(dir, "pins", ".new")); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
	}
}

// TestStuck: whoever does not let go of the lock is not waited for in vain.
func TestStuck(t *testing.T) {
	late := func(t *testing.T, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "has not ended") {
			t.Errorf("got %v", err)
		}
	}
	t.Run("process", func(t *testing.T) {
		_, dir := open(t)
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, "pins"), 0o700), os.Rename(f.Name(), filepath.Join(dir, "pins", ".lock"))); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			s, err := store.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.Put("pins", "k", nil, "")
			late(t, err)
		})
	})
	t.Run("edit that uses the store", func(t *testing.T) {
		_, dir := open(t)
		synctest.Test(t, func(t *testing.T) {
			s, err := store.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			late(t, s.Update("pins", "k", func([]byte) ([]byte, error) {
				_, err := s.Put("pins", "other", nil, "")
				return nil, err
			}))
			put(t, s, "k", "x", "")
		})
	})
}
