//go:build unix

package e2e_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMirror: while the gateway serves, the copy of what an agent is shown keeps in
// step with the records, the skills and the configuration.
func TestMirror(t *testing.T) {
	dir := library(t)
	config := "agents: ./agents\nsandbox: ./work\nstate: ./state\nskills: { folders: [./skills], mirror: { scout: ./mirror } }\n"
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, "mirror", name, "SKILL.md"))
		return err == nil
	}
	holds := func(what string, names map[string]bool) {
		t.Helper()
		eventually(t, what, func() bool {
			for name, want := range names {
				if there(name) != want {
					return false
				}
			}
			return true
		})
	}
	write("capgate.yml", config)
	g := serve(t, dir, "capgate.yml", "scout")
	holds("the copy is made", map[string]bool{"notes": true, "review": true, "secret": false})
	want, err := os.ReadFile(filepath.Join(dir, "skills/notes/assets/dot.png"))
	got, errGot := os.ReadFile(filepath.Join(dir, "mirror/notes/assets/dot.png"))
	if err != nil || errGot != nil || string(want) != string(got) {
		t.Errorf("the copy is %q, %v %v", got, err, errGot)
	}

	write("agents/scout.md", "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - net.get: { hosts: [example.com] }\n---\nYou fetch.\n")
	holds("the copy follows the record", map[string]bool{"notes": true, "review": false, "secret": true})

	write("skills/notes/SKILL.md", "---\nname: notes\ndescription: Now it reads.\nallowed-tools: Read\n---\n")
	holds("the copy follows the skill", map[string]bool{"notes": false, "secret": true})

	// A record that is broken, or gone, is shown nothing.
	write("agents/scout.md", "---\nid: agents/scout\nclass: agent\ncapabilites: []\n---\n")
	holds("the copy follows a broken record", map[string]bool{"notes": false, "review": false, "secret": false})

	write("agents/scout.md", "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - net.get: { hosts: [example.com] }\n---\n")
	holds("the copy follows a mended record", map[string]bool{"secret": true})

	// Whoever holds the copy meanwhile only delays that.
	lock, err := os.OpenFile(filepath.Join(dir, "mirror/.capgate-lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	write("agents/scout.md", "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - net.get: { hosts: [example.org] }\n---\n")
	g.said.await(t, `(another process is writing the mirror)`)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	holds("the copy follows in the end", map[string]bool{"secret": false})
	write("agents/scout.md", "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - net.get: { hosts: [example.com] }\n---\n")
	holds("and goes on", map[string]bool{"secret": true})
	write("capgate.yml", "agents: ./agents\nsandbox: ./work\nstate: ./state\nskills: [./skills]\n")
	holds("a copy that nobody asks for is emptied", map[string]bool{"secret": false})
}
