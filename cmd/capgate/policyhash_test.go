package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
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
