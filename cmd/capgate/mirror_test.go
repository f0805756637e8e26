package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/gate"
	"capgate/proxy"
	"capgate/secrets"
	"capgate/skills"
)

// mirrorPolicy is a policy with some skills, which these agents are shown.
func mirrorPolicy(t *testing.T, lib *skills.Library, ids ...string) *proxy.Policy {
	t.Helper()
	dir := t.TempDir()
	for _, id := range ids {
		if err := os.WriteFile(filepath.Join(dir, id+".md"), []byte("---\nclass: agent\ncapabilities: []\n---\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roster, err := agents.Load(agents.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	return &proxy.Policy{Gate: &gate.Gate{Roster: roster, Fence: capability.NewFence()}, Skills: lib}
}

// mirrorLibrary is some skills, in a folder beside which there is room for mirrors.
func mirrorLibrary(t *testing.T) (dir string, lib *skills.Library) {
	t.Helper()
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
	return dir, skills.Load(skills.Options{}, filepath.Join(dir, "skills"))
}

// mirroredSkills counts the skills that a mirror holds.
func mirroredSkills(t *testing.T, mirror string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(mirror, "s*", "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestMirrorsAreInterrupted: what is being written ends when there is something newer, and
// what is not shown any more is taken out all the same.
func TestMirrorsAreInterrupted(t *testing.T) {
	dir, lib := mirrorLibrary(t)
	m := &mirrors{log: slog.New(slog.DiscardHandler), next: make(chan mirrored, 1)}
	names := []config.Mirror{{Agent: "scout", Dir: filepath.Join(dir, "mirror")}}
	held := func() int { return mirroredSkills(t, names[0].Dir) }
	all, none := mirrored{mirrorPolicy(t, lib, "scout"), names}, mirrored{mirrorPolicy(t, lib), names}

	m.renew(all)
	m.adopt(<-m.next)
	m.renew(none) // before it is written
	if m.write(t.Context()); held() != 0 {
		t.Errorf("%d skills are written that nobody is shown any more", held())
	}
	m.adopt(<-m.next)
	m.renew(all)
	m.adopt(<-m.next)
	if m.write(t.Context()); held() != 3 {
		t.Fatalf("%d skills are in the mirror", held())
	}
	m.adopt(none)
	ended, end := context.WithCancel(t.Context())
	end()
	if m.update(ended); held() != 0 {
		t.Errorf("%d skills are left in the mirror", held())
	}
	m.adopt(all)
	if m.update(ended); held() != 0 {
		t.Errorf("%d skills are put in by what has ended", held())
	}
	if m.keepUp(t.Context()); held() != 3 {
		t.Errorf("%d skills are put in later", held())
	}
	m.adopt(mirrored{policy: all.policy})
	if m.update(ended); held() != 0 {
		t.Errorf("%d skills are not taken out of what is no mirror any more", held())
	}

	ctx, stop := context.WithCancel(t.Context())
	m.mu.Lock()
	m.stop = func() { // of what is being written
		if stop(); len(m.next) != 0 {
			t.Error("what is newer can be taken before what is being written has ended, and would be ended for it")
		}
	}
	m.mu.Unlock()
	if m.renew(none); ctx.Err() == nil {
		t.Error("what is being written goes on")
	}
}

// TestMirrorsTakeOutFirst: nothing is put into any mirror before what is not shown any more
// is out of all of them. What is in the way in each is told as soon as that one was
// written, and in which order they are is chance.
func TestMirrorsTakeOutFirst(t *testing.T) {
	const often = 30 // a wrong order is the right one half of the time
	dir, lib := mirrorLibrary(t)
	ids := []string{"scout", "boss"}
	var names []config.Mirror
	for _, id := range ids {
		names = append(names, config.Mirror{Agent: id, Dir: filepath.Join(dir, id)})
		if err := os.MkdirAll(filepath.Join(dir, id, "s0"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	told, loser := 0, names[0].Dir
	log := onRecord(func() {
		if told++; mirroredSkills(t, loser) != 0 {
			t.Errorf("when another mirror was written, %s held %d skills that are not shown", loser, mirroredSkills(t, loser))
		}
	})
	m := &mirrors{log: slog.New(slog.NewTextHandler(log, nil)), next: make(chan mirrored, 1)}
	policies := []*proxy.Policy{mirrorPolicy(t, lib, ids[0]), mirrorPolicy(t, lib, ids[1])}
	for i := range often {
		loser = names[(i+1)%2].Dir
		m.adopt(mirrored{policies[i%2], names})
		if m.update(t.Context()); mirroredSkills(t, names[i%2].Dir) != 2 || told != i+1 {
			t.Fatalf("the mirror holds %d skills, and %d were told of", mirroredSkills(t, names[i%2].Dir), told)
		}
	}
}

// TestMirrorsAreTriedAlone: a mirror that cannot be brought in step is tried again, and no
// other is for it: an agent may keep its own from being so for as long as it likes.
func TestMirrorsAreTriedAlone(t *testing.T) {
	dir, lib := mirrorLibrary(t)
	ids := []string{"scout", "boss"}
	var names []config.Mirror
	for _, id := range ids {
		names = append(names, config.Mirror{Agent: id, Dir: filepath.Join(dir, id)})
	}
	stuck, log := filepath.Join(names[0].Dir, ".capgate-mirror"), new(bytes.Buffer)
	if err := os.MkdirAll(stuck, 0o700); err != nil {
		t.Fatal(err)
	}
	m := &mirrors{log: slog.New(slog.NewTextHandler(log, nil)), next: make(chan mirrored, 1)}
	m.adopt(mirrored{mirrorPolicy(t, lib, ids...), names})
	m.update(t.Context())
	if n := mirroredSkills(t, names[1].Dir); n != 3 || !strings.Contains(log.String(), "not in step") {
		t.Fatalf("the other mirror holds %d skills: %s", n, log)
	}
	if err := os.Remove(filepath.Join(names[1].Dir, "s0", "SKILL.md")); err != nil { // as nobody looks there, nobody will know
		t.Fatal(err)
	}
	log.Reset()
	if m.keepUp(t.Context()); !strings.Contains(log.String(), "not in step") || mirroredSkills(t, names[1].Dir) != 2 {
		t.Errorf("it was not tried again, or the other one was: %s", log)
	}
	if err := os.Remove(stuck); err != nil {
		t.Fatal(err)
	}
	if m.keepUp(t.Context()); mirroredSkills(t, names[0].Dir) != 3 {
		t.Errorf("it is still not in step: %s", log)
	}
}

// TestMirrorsLook: a skill that was in nobody's way, or that somebody took out, comes back,
// and where nothing has happened nothing is written.
func TestMirrorsLook(t *testing.T) {
	dir, lib := mirrorLibrary(t)
	names := []config.Mirror{{Agent: "scout", Dir: filepath.Join(dir, "mirror")}}
	in := func(name string) string { return filepath.Join(names[0].Dir, name) }
	if err := os.MkdirAll(in("s0"), 0o700); err != nil {
		t.Fatal(err)
	}
	log := new(bytes.Buffer)
	m := &mirrors{log: slog.New(slog.NewTextHandler(log, nil)), next: make(chan mirrored, 1)}
	m.adopt(mirrored{mirrorPolicy(t, lib, "scout"), names})
	if m.update(t.Context()); mirroredSkills(t, names[0].Dir) != 2 {
		t.Fatalf("the mirror holds %d skills: %s", mirroredSkills(t, names[0].Dir), log)
	}
	log.Reset()
	if m.keepUp(t.Context()); log.Len() > 0 {
		t.Errorf("what is in the way still was looked at: %s", log)
	}
	for _, gone := range []string{"s0", "s1", "."} {
		time.Sleep(20 * time.Millisecond) // clocks of file systems are coarse
		if err := os.RemoveAll(in(gone)); err != nil {
			t.Fatal(err)
		}
		if m.keepUp(t.Context()); mirroredSkills(t, names[0].Dir) != 3 {
			t.Errorf("without %s the mirror holds %d skills: %s", gone, mirroredSkills(t, names[0].Dir), log)
		}
	}
	before := touched(names[0].Dir)
	time.Sleep(20 * time.Millisecond)
	m.held[names[0]].behind = true // as for another process that looks, too
	if m.keepUp(t.Context()); !touched(names[0].Dir).Equal(before) {
		t.Error("what is in step is written")
	}
}

// TestMirrorsLearn: a skill goes as soon as a value that stands in it has become known as a
// secret, as one is that is read anew when it is used.
func TestMirrorsLearn(t *testing.T) {
	dir, lib := mirrorLibrary(t)
	var known []byte
	names := []config.Mirror{{Agent: "scout", Dir: filepath.Join(dir, "mirror")}}
	m := &mirrors{
		log: slog.New(slog.DiscardHandler), next: make(chan mirrored, 1),
		clean:   func(data []byte) bool { return known == nil || !bytes.Contains(data, known) },
		secrets: func() int { return len(known) },
	}
	m.adopt(mirrored{mirrorPolicy(t, lib, "scout"), names})
	m.update(t.Context())
	known = []byte("name: s1")
	if m.keepUp(t.Context()); mirroredSkills(t, names[0].Dir) != 2 {
		t.Errorf("%d skills are in the mirror", mirroredSkills(t, names[0].Dir))
	}
}

// onRecord is called for what is written to a log.
type onRecord func()

func (f onRecord) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// TestMirrorWordsOfServers: a server whose token reads like a word takes no skill away in which somebody
// else has written it, and a token that nobody writes by chance still does.
func TestMirrorWordsOfServers(t *testing.T) {
	keep, err := secrets.New(nil, secrets.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const token = "gho_16C7e42F292c6912E7710c838347Ae178B4a"
	for _, value := range []string{"description", token} {
		if err := keep.Learn("tracker", "oauth.tracker", value); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{servers: &servers{keeper: keep}}
	if text := "---\nname: s\ndescription: d\n---\n"; !w.isClean([]byte(text)) || w.isClean([]byte(text+token)) {
		t.Errorf("clean: %t, with the token: %t", w.isClean([]byte(text)), w.isClean([]byte(text+token)))
	}
}
