package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// write puts files into the place.
func (p place) write(files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// talk is a conversation with a gateway that runs over standard input and output.
type talk struct {
	t    *testing.T
	in   io.Writer
	out  *bufio.Scanner
	said int
}

// talk runs capgate stdio until the test ends.
func (p place) talk() *talk {
	p.t.Helper()
	ctx, stop := context.WithCancel(p.t.Context())
	down, in := io.Pipe()
	out, up := io.Pipe()
	var errs bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(ctx, []string{"-c", filepath.Join(p.dir, "capgate.yml"), "stdio", "--agent", "scout"}, stdio{in: down, out: up, err: &errs})
		_ = up.Close()
	}()
	p.t.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		if code := <-ended; code != exitOK {
			p.t.Errorf("the gateway exits with %d: %s", code, errs.String())
		}
		stop()
	})
	c := &talk{t: p.t, in: in, out: bufio.NewScanner(out)}
	c.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

// ask makes a request and waits for its answer.
func (c *talk) ask(method, params string) string {
	c.t.Helper()
	c.said++
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", c.said, method, params)
	for c.out.Scan() {
		var m struct{ ID json.RawMessage }
		if json.Unmarshal(c.out.Bytes(), &m) == nil && string(m.ID) == fmt.Sprint(c.said) {
			return c.out.Text()
		}
	}
	c.t.Fatalf("%s is not answered: %v", method, c.out.Err())
	return ""
}

// toolServer is a program that lists the tools of the file in its argument.
func (p place) toolServer() string {
	p.t.Helper()
	self, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	server := filepath.Join(p.dir, "toolserver") // the test binary goes by the name it is called by
	if err := os.Symlink(self, server); err != nil {
		p.t.Fatal(err)
	}
	return server
}

// TestApprovedAtOnce: an agent is told which command shows the definition that
// waits, and may call the tool as soon as it is approved, without a restart.
func TestApprovedAtOnce(t *testing.T) {
	p := newPlace(t)
	server := p.toolServer()
	p.write(map[string]string{
		"tools.json":      `[{"name":"read","inputSchema":{"type":"object"}}]`,
		"agents/scout.md": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [\"files.*\"] }\n---\n",
		"capgate.yml": fmt.Sprintf("agents: ./agents\nupstreams:\n  files: { command: [%q, %q], unmediated: true, pins: require }\n",
			server, filepath.Join(p.dir, "tools.json")),
	})
	gateway := p.talk()
	const call = `{"name":"files__read","arguments":{}}`
	if got := gateway.ask("tools/call", call); !strings.Contains(got, "tool_quarantined") || !strings.Contains(got, "capgate pins diff files read") {
		t.Fatalf("a tool that nobody approved is called, or the command that shows it is not named: %s", got)
	}
	var rows []pinRow
	if err := json.Unmarshal([]byte(p.run("pins", "diff", "files", "read", "--json")), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("pins diff: %v, %v", rows, err)
	}
	p.run("pins", "approve", "files", "read", rows[0].Offered.Hash)
	for end := time.Now().Add(20 * tokenLook); !strings.Contains(gateway.ask("tools/list", "{}"), `"files__read"`); {
		if time.Now().After(end) {
			t.Fatal("what was approved is not shown")
		}
	}
	if got := gateway.ask("tools/call", call); !strings.Contains(got, `"called"`) {
		t.Errorf("what was approved is not called: %s", got)
	}
}

// TestApprovedWhileWrapped: the same holds where there is no configuration.
func TestApprovedWhileWrapped(t *testing.T) {
	p := newPlace(t)
	p.must(os.Remove(filepath.Join(p.dir, "capgate.yml")))
	t.Chdir(p.dir)
	for _, home := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(home, p.dir)
	}
	p.write(map[string]string{"tools.json": `[{"name":"read","description":"Reads\u200b.","inputSchema":{"type":"object"}}]`})
	ctx, stop := context.WithCancel(t.Context())
	token, ended := saying(ctx, "until this ends: ", "wrap", "--agent", "scout", "--listen", "unix:gate.sock", "--grant", "tool.invoke{tools=[**]}",
		"--", p.toolServer(), filepath.Join(p.dir, "tools.json"))
	dial := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", "gate.sock")
	}}
	list := func() string {
		_, got := p.modern(dial, "http://localhost/mcp", token, "tools/list")
		return got
	}
	if got := list(); !strings.Contains(got, `"tools":[]`) {
		t.Fatalf("what was not approved is shown: %s", got)
	}
	var out bytes.Buffer
	if code := run(ctx, []string{"pins", "diff", "--json"}, stdio{out: &out, err: t.Output()}); code != exitOK {
		t.Fatalf("pins diff: exit %d", code)
	}
	var rows []pinRow
	if err := json.Unmarshal(out.Bytes(), &rows); err != nil || len(rows) != 1 {
		t.Fatalf("pins diff: %v, %v", rows, err)
	}
	if code := run(ctx, []string{"pins", "approve", rows[0].Upstream, "read", rows[0].Offered.Hash}, stdio{out: io.Discard, err: t.Output()}); code != exitOK {
		t.Fatalf("pins approve: exit %d", code)
	}
	for end := time.Now().Add(20 * tokenLook); !strings.Contains(list(), `"read"`); {
		if time.Now().After(end) {
			t.Fatal("what was approved is not shown")
		}
	}
	dial.CloseIdleConnections()
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}
