package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
