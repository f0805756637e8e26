package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/proxy"
)

// TestMovedSandbox: a program for which no directory is written runs in the sandbox.
// When that is another one, calls are decided on from there, so that the program has
// to be there too.
func TestMovedSandbox(t *testing.T) {
	p := newPlace(t)
	server := p.toolServer()
	for _, dir := range []string{"other", "maps"} {
		if err := os.Mkdir(filepath.Join(p.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	written := fmt.Sprintf("agents: ./agents\nmappings: [./maps]\nupstreams:\n  rd: { command: [%q, %q], mapping: rd, share: agents }\nsandbox: ./",
		server, filepath.Join(p.dir, "tools.json"))
	p.write(map[string]string{
		"tools.json":      `[{"name":"read","inputSchema":{"type":"object","properties":{"path":{"type":"string"}}}}]`,
		"maps/rd.yml":     "server: rd\ntools:\n  read: { path: fs.read }\n",
		"agents/scout.md": "---\nclass: agent\ncapabilities:\n  - fs.read: { paths: [.] }\n---\n",
		"capgate.yml":     written + "work\n",
	})
	p.run("check")
	gateway := p.talk()
	call := func(dir string) (got string, there bool) {
		got = gateway.ask("tools/call", `{"name":"rd__read","arguments":{"path":"secret.txt"}}`)
		return got, strings.Contains(got, "called") && strings.Contains(got, dir+`"`)
	}
	if got, there := call("/work"); !there {
		t.Fatalf("the program does not run in the sandbox: %s", got)
	}
	p.write(map[string]string{"capgate.yml": written + "other\n"})
	for end := time.Now().Add(60 * tokenLook); time.Now().Before(end); time.Sleep(tokenLook / 3) {
		if _, there := call("/other"); there {
			return
		}
	}
	t.Fatal("the program still runs where calls are no longer decided on")
}

// TestLateFolder: an argument that has become a folder since it was counted as none keeps
// the program from being started, until the configuration is read again (R-SEC-05).
func TestLateFolder(t *testing.T) {
	p := newPlace(t)
	p.write(map[string]string{
		"tools.json":  "[]",
		"capgate.yml": fmt.Sprintf("agents: ./agents\nsandbox: ./work\nupstreams:\n  rd: { command: [%q, ../tools.json, late], unmediated: true }\n", p.toolServer()),
	})
	load := func() *world {
		t.Helper()
		a := &app{}
		a.settings.Config = filepath.Join(p.dir, "capgate.yml")
		w, err := a.load()
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	before, files := load(), &fileWatch{}
	if files.look(before.cfg); files.changed(before.cfg, time.Now()) {
		t.Error("it is read again while nothing has changed")
	}
	if err := os.Mkdir(filepath.Join(p.dir, "work", "late"), 0o700); err != nil {
		t.Fatal(err)
	}
	if !files.changed(before.cfg, time.Now()) {
		t.Error("it is not read again")
	}
	for w, starts := range map[*world]bool{before: false, load(): true} {
		conn, err := w.policy.Upstreams[0].Open(t.Context(), proxy.Peer{Agent: "agents/scout"})
		if (err == nil) != starts {
			t.Errorf("want it started %v: %v", starts, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}
