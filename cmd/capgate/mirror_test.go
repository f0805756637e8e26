package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/gate"
	"capgate/proxy"
	"capgate/skills"
)

// mirrorPolicy is a policy with some skills, which one agent is shown or nobody is.
func mirrorPolicy(t *testing.T, lib *skills.Library, named bool) *proxy.Policy {
	t.Helper()
	dir := t.TempDir()
	if named {
		if err := os.WriteFile(filepath.Join(dir, "scout.md"), []byte("---\nclass: agent\ncapabilities: []\n---\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roster, err := agents.Load(agents.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return &proxy.Policy{Gate: &gate.Gate{Roster: roster, Fence: capability.NewFence()}, Skills: lib}
}

// TestMirrorsAreInterrupted: what is being written ends when there is something newer, and
// what is not shown any more is taken out all the same.
func TestMirrorsAreInterrupted(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		place := filepath.Join(dir, "skills", fmt.Sprintf("s%d", i))
		if err := os.MkdirAll(place, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(place, "SKILL.md"), fmt.Appendf(nil, "---\nname: s%d\ndescription: d\n---\n", i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lib := skills.Load(skills.Options{}, filepath.Join(dir, "skills"))
	m := &mirrors{log: slog.New(slog.DiscardHandler), next: make(chan mirrored, 1)}
	names := []config.Mirror{{Agent: "scout", Dir: filepath.Join(dir, "mirror")}}
	held := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "mirror", "s*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	all, none := mirrored{mirrorPolicy(t, lib, true), names}, mirrored{mirrorPolicy(t, lib, false), names}

	m.renew(all)
	m.last = <-m.next
	m.renew(none) // before it is written
	if m.write(t.Context()); held() != 0 {
		t.Errorf("%d skills are written that nobody is shown any more", held())
	}
	m.last = <-m.next
	m.renew(all)
	m.last = <-m.next
	if m.write(t.Context()); held() != 3 {
		t.Fatalf("%d skills are in the mirror", held())
	}
	m.last = none
	ended, end := context.WithCancel(t.Context())
	end()
	if m.update(ended); held() != 0 {
		t.Errorf("%d skills are left in the mirror", held())
	}
	m.last = all
	if m.update(ended); held() != 0 || !m.behind {
		t.Errorf("%d skills are put in by what has ended, which is behind: %v", held(), m.behind)
	}
	if m.keepUp(t.Context()); held() != 3 {
		t.Errorf("%d skills are put in later", held())
	}
	m.held[names[0]] = nil
	if m.takeOut(t.Context()); held() != 0 {
		t.Errorf("%d skills are not taken out", held())
	}

	ctx, stop := context.WithCancel(t.Context())
	m.mu.Lock()
	m.stop = stop // of what is being written
	m.mu.Unlock()
	if m.renew(none); ctx.Err() == nil {
		t.Error("what is being written goes on")
	}
}
