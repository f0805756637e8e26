package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPolicyHash: the name of a policy in events is another one when something else is
// decided by: in the mappings and in what grants hang from, too.
func TestPolicyHash(t *testing.T) {
	p := newPlace(t)
	for _, folder := range []string{"mappings", "work/other"} {
		if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p.write(map[string]string{
		"capgate.yml":      "agents: ./agents\nmappings: [./mappings]\nsandbox: ./work\nupstreams:\n  up: { url: \"http://127.0.0.1:1/mcp\", mapping: own }\n",
		"agents/scout.md":  "---\nclass: agent\nsandbox: ./docs\ncapabilities:\n  - fs.read: { paths: [.] }\n---\n",
		"mappings/own.yml": "server: own\ntools: { peek: { path: fs.read } }\n",
	})
	hash := func() string {
		t.Helper()
		a := &app{}
		a.settings.Config = filepath.Join(p.dir, "capgate.yml")
		w, err := a.load()
		if err != nil {
			t.Fatal(err)
		}
		return w.policy.Hash
	}
	seen := map[string]string{hash(): "what was there first"}
	if seen[hash()] == "" {
		t.Error("the same has two names")
	}
	for name, files := range map[string]map[string]string{
		"a mapping": {"mappings/own.yml": "server: own\ntools: { peek: { path: fs.write } }\n"},
		"a root":    {"agents/scout.md": "---\nclass: agent\nsandbox: ./other\ncapabilities:\n  - fs.read: { paths: [.] }\n---\n"},
	} {
		p.write(files)
		if before := seen[hash()]; before != "" {
			t.Errorf("after an edit of %s the policy has the name of %s", name, before)
		}
		seen[hash()] = name
	}
}

// TestNarrowedHash: nor have two policies one name that each were narrowed by records.
func TestNarrowedHash(t *testing.T) {
	p := newPlace(t)
	a := &app{}
	a.settings.Config = filepath.Join(p.dir, "capgate.yml")
	load := func() *world {
		t.Helper()
		w, err := a.load()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	noted := make(notices, 3)
	g, err := newGateway(t.Context(), load(), slog.New(slog.DiscardHandler), noted)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"docs/one", "docs/two"} {
		p.write(map[string]string{"agents/scout.md": "---\nclass: agent\ncapabilities:\n  - fs.read: { paths: [" + path + "] }\n---\n"})
		if err := g.narrow(load().roster); err != nil {
			t.Fatal(err)
		}
	}
	<-noted
	if one, two := <-noted, <-noted; one == two {
		t.Errorf("both: %s", one)
	}
	if err := g.server.Close(); err != nil {
		t.Error(err)
	}
}

// TestNarrowedSkills: while not all that is written can be in force, no skill is shown that is gone or
// another by now, and none that was not there.
func TestNarrowedSkills(t *testing.T) {
	p := newPlace(t)
	for _, folder := range []string{"agents", "skills/same", "skills/more", "skills/other", "skills/gone", "skills/torn", "skills/new"} {
		p.must(os.MkdirAll(filepath.Join(p.dir, folder), 0o700))
	}
	md := func(name, more string) string { return "---\nname: " + name + "\ndescription: x\n" + more + "---\n" }
	p.write(map[string]string{
		"capgate.yml": "agents: ./agents\nskills: [./skills]\n", "skills/same/SKILL.md": md("same", ""), "skills/more/SKILL.md": md("more", ""), "skills/more/a": "",
		"skills/other/SKILL.md": md("other", ""), "skills/other/a": "", "skills/gone/SKILL.md": md("gone", ""), "skills/torn/SKILL.md": md("torn", ""),
	})
	a := &app{}
	a.settings.Config = filepath.Join(p.dir, "capgate.yml")
	w, err := a.load()
	if err != nil {
		t.Fatal(err)
	}
	noted := make(notices, 2)
	g, err := newGateway(t.Context(), w, slog.New(slog.DiscardHandler), noted)
	if err != nil {
		t.Fatal(err)
	}
	p.write(map[string]string{
		"skills/more/SKILL.md": md("more", "allowed-tools: Bash\n"), "skills/other/a": "b", "skills/torn/SKILL.md": "x", "skills/new/SKILL.md": md("new", ""),
	})
	p.must(os.RemoveAll(filepath.Join(p.dir, "skills/gone")))
	p.must(g.narrow(w.roster))
	var left []string
	for s := range g.policy.Skills.All() {
		left = append(left, s.Path)
	}
	if diff := cmp.Diff([]string{"same"}, left); diff != "" {
		t.Error(diff)
	}
	if one, two := <-noted, <-noted; one == two {
		t.Errorf("both: %s", one)
	}
	p.must(g.server.Close())
}
