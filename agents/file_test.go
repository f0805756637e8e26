package agents_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
)

func constant(text string) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return []byte(text), nil }
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// alone checks that an edit left nothing lying about.
func alone(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %v, want %v", got, names)
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "scout.md", "old")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := agents.WriteFile(path, constant("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || read(t, path) != "new" || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, mode %s, %v", read(t, path), info.Mode(), err)
	}
	alone(t, dir, "scout.md")

	refused := errors.New("refused")
	if err := agents.WriteFile(path, func([]byte) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if err := agents.WriteFile(path, constant("new")); err != nil {
		t.Errorf("writing nothing new: %v", err)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(info, after) {
		t.Error("a file that did not change was replaced")
	}
	alone(t, dir, "scout.md")
}

func TestWriteFileRefuses(t *testing.T) {
	tests := []struct {
		name string
		lay  func(t *testing.T, dir, path string)
		says string
	}{
		{"missing", func(*testing.T, string, string) {}, "no such file"},
		{"symbolic link", func(t *testing.T, dir, path string) {
			if err := os.Symlink(write(t, dir, "real.md", "old"), path); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		{"hard link", func(t *testing.T, dir, path string) {
			if err := os.Link(write(t, dir, "real.md", "old"), path); err != nil {
				t.Fatal(err)
			}
		}, "another name"},
		{"folder", func(t *testing.T, _, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
		{"pipe", func(t *testing.T, _, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "no regular file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "scout.md")
			tt.lay(t, dir, path)
			err := agents.WriteFile(path, constant("new"))
			if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v", err)
			}
			if data, err := os.ReadFile(filepath.Join(dir, "real.md")); err == nil && string(data) != "old" {
				t.Error("the target was written")
			}
		})
	}
	if err := agents.WriteFile(filepath.Join(t.TempDir(), "no", "scout.md"), constant("x")); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

// TestWriteFileMeanwhile: somebody else's change is never overwritten.
func TestWriteFileMeanwhile(t *testing.T) {
	for name, meddle := range map[string]func(t *testing.T, path string){
		"written":  func(t *testing.T, path string) { write(t, filepath.Dir(path), "scout.md", "odd") },
		"replaced": func(t *testing.T, path string) { over(t, path, "old") },
		"rewritten": func(t *testing.T, path string) {
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte("old"), 0o600)) // which may go on
			must(t, os.Chtimes(path, time.Time{}, info.ModTime()))
		},
		"removed": func(t *testing.T, path string) { remove(t, path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := write(t, dir, "scout.md", "old")
			err := agents.WriteFile(path, func([]byte) ([]byte, error) {
				meddle(t, path)
				return []byte("new"), nil
			})
			if err == nil {
				t.Error("the change was overwritten")
			}
			if data, err := os.ReadFile(path); err == nil && string(data) == "new" {
				t.Error("the file was written all the same")
			}
			if name != "removed" {
				alone(t, dir, "scout.md")
			}
		})
	}
}

// TestWriteFileHalf: what somebody is writing is not taken for a record, nor half of it put in its place.
func TestWriteFileHalf(t *testing.T) {
	const half, tail = "half", " and the rest"
	for name, begin := range map[string]func(t *testing.T, path string){
		"anew": func(*testing.T, string) {},
		"of an edit": func(t *testing.T, path string) {
			must(t, agents.WriteFile(path, constant("what was here")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, t.TempDir(), "eve.yml", "what was there")
			begin(t, path)
			info, err := os.Stat(path)
			must(t, err)
			must(t, os.WriteFile(path, []byte(half), 0o600))
			must(t, os.Chtimes(path, time.Time{}, info.ModTime())) // as whoever copies may
			done := make(chan error, 1)
			go func() {
				done <- agents.WriteFile(path, func(data []byte) ([]byte, error) { return append(data, '!'), nil })
			}()
			time.Sleep(2 * agents.Settle)
			extend(t, path, tail)
			must(t, <-done)
			if got := read(t, path); got != half+tail+"!" {
				t.Errorf("the record is %q", got)
			}
		})
	}
	t.Run("for ever", func(t *testing.T) {
		t.Parallel()
		path := write(t, t.TempDir(), "eve.yml", half)
		done := make(chan error, 1)
		go func() { done <- agents.WriteFile(path, constant("new")) }()
		for {
			select {
			case err := <-done:
				if err == nil || !strings.Contains(err.Error(), "somebody else is writing it") || strings.Contains(read(t, path), "new") {
					t.Errorf("it is %q: %v", read(t, path), err)
				}
				return
			case <-time.After(agents.Settle):
				extend(t, path, tail)
			}
		}
	})
}

// TestWriteFileInARow: one edit does not wait for what another one has written, nor for a new record.
func TestWriteFileInARow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "eve.yml")
	const n = 10
	begun := time.Now()
	must(t, agents.CreateFile(path, nil))
	for range n {
		must(t, agents.WriteFile(path, func(data []byte) ([]byte, error) { return append(data, 'x'), nil }))
	}
	if took := time.Since(begun); len(read(t, path)) != n || took > n*agents.Settle*5 {
		t.Errorf("%q took %s", read(t, path), took)
	}
}

// TestWriteFileTurns: edits at the same time all take place.
func TestWriteFileTurns(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "scout.md", "")
	const n = 20
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := agents.WriteFile(path, func(data []byte) ([]byte, error) { return append(data, 'x'), nil }); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := len(read(t, path)); got != n {
		t.Errorf("%d of %d edits took place", got, n)
	}
	alone(t, dir, "scout.md")
}

func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "scout.md")
	if err := agents.CreateFile(path, []byte("a")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || read(t, path) != "a" {
		t.Errorf("mode %s, %v", info.Mode(), err)
	}
	if err := agents.CreateFile(path, []byte("b")); err == nil || read(t, path) != "a" {
		t.Errorf("wrote over a file: %v", err)
	}
	if err := agents.CreateFile(filepath.Join(dir, "no", "scout.md"), nil); err == nil {
		t.Error("wrote into a folder that is not there")
	}
	alone(t, dir, "scout.md")
}

func specs(t testing.TB, texts ...string) []capability.Spec {
	t.Helper()
	out := []capability.Spec{}
	for _, text := range texts {
		s, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

// TestNew writes a record as agents create does.
func TestNew(t *testing.T) {
	data, err := agents.New(agents.Draft{
		ID: "team/scout", Parent: "agents/lead", Sandbox: "~/p: q", Access: "r",
		Grants:  specs(t, "net.get{hosts=[*.github.com]}", "fs.read"),
		Toolset: []string{"files.*"}, Approve: []string{"fs.write"}, Body: "You are the scout.",
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `---
id: agents/team/scout
class: agent
parent: agents/lead
sandbox: "~/p: q"
access: r
capabilities:
  - net.get: { hosts: ["*.github.com"] }
  - fs.read
toolset: [files.*]
approve: [fs.write]
---
You are the scout.
`
	if string(data) != want {
		t.Errorf("got\n%s", data)
	}
	for text, d := range map[string]agents.Draft{
		"---\nid: agents/a\nclass: agent\n---\n":                              {ID: "a"},
		"---\nid: agents/a\nclass: agent\ncapabilities: []\n---\n":            {ID: "a", Grants: specs(t)},
		"---\nid: agents/a\nclass: agent\ntoolset: []\napprove: []\n---\nx\n": {ID: "a", Toolset: []string{}, Approve: []string{}, Body: "x\n"},
	} {
		if data, err := agents.New(d); err != nil || string(data) != text {
			t.Errorf("got %q, %v, want %q", data, err, text)
		}
	}
	for name, d := range map[string]agents.Draft{
		"id":          {ID: "../a"},
		"parent":      {ID: "a", Parent: "a b"},
		"access":      {ID: "a", Access: "x"},
		"control":     {ID: "a", Sandbox: "a\nb"},
		"permissions": {ID: "a", Grants: specs(t), Body: "<permissions>*</permissions>"},
		"bad grant":   {ID: "a", Grants: []capability.Spec{{Verb: "net.get:x", Bare: true}}},
		"no verb":     {ID: "a", Grants: []capability.Spec{{Verb: "net", Bare: true}}},
	} {
		if data, err := agents.New(d); err == nil {
			t.Errorf("%s: wrote %q", name, data)
		}
	}
}
