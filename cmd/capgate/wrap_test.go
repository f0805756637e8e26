package main

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"
	"time"
)

// TestWrapIsForOne: where wrap takes the agents of a configuration, it takes the tokens of the one
// that it is for, also of those that are issued meanwhile and by records that are written meanwhile.
func TestWrapIsForOne(t *testing.T) {
	p := newPlace(t)
	const record = "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [read] }\n---\n"
	p.write(map[string]string{
		"tools.json":      `[{"name":"read","inputSchema":{"type":"object"}}]`,
		"agents/scout.md": record, "agents/other.md": record,
	})
	first, other := p.run("agents", "token", "issue", "scout"), p.run("agents", "token", "issue", "other")
	ctx, stop := context.WithCancel(t.Context())
	at, ended := saying(ctx, "listening at ", "-c", filepath.Join(p.dir, "capgate.yml"), "wrap", "--agent", "scout", "--listen", "127.0.0.1:0",
		"--", p.toolServer(), filepath.Join(p.dir, "tools.json"))
	by := new(http.Transport)
	look := func(when string) {
		t.Helper()
		if status, got := p.modern(by, at, first, "tools/list"); status != http.StatusOK {
			t.Errorf("%s: the agent that wrap is for: %d %s", when, status, got)
		}
		if status, got := p.modern(by, at, other, "tools/list"); status != http.StatusUnauthorized {
			t.Errorf("%s: another agent: %d %s", when, status, got)
		}
	}
	look("at first")
	p.write(map[string]string{"agents/other.md": record + "Again.\n"})
	time.Sleep(2 * tokenLook)
	look("with other records")
	first, other = p.run("agents", "token", "issue", "scout"), p.run("agents", "token", "issue", "other")
	look("with other tokens")
	by.CloseIdleConnections()
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}
