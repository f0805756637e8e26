//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// serveWith serves with so many files until the test ends, and returns where.
func (p place) serveWith(files int) (at string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "sh", "-c", fmt.Sprintf(`ulimit -n %d; exec capgate "$@"`, files), "sh", "-c", filepath.Join(p.dir, "capgate.yml"), "serve", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Cancel = os.Environ(), func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	said, err := cmd.StderrPipe()
	p.must(err)
	p.must(cmd.Start())
	p.t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended it
	lines := bufio.NewScanner(said)
	for lines.Scan() && at == "" {
		_, at, _ = strings.Cut(lines.Text(), "listening at ")
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	return at
}

// TestCrowdLeavesFiles: whoever can connect takes no file that records, tokens, events and
// servers need. Who was there is answered, and is gone when its token is.
func TestCrowdLeavesFiles(t *testing.T) {
	p := newPlace(t)
	token := p.run("agents", "token", "issue", "scout")
	at := p.serveWith(64)
	one := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: 10 * time.Second}
	defer one.CloseIdleConnections()
	ask := func() string {
		r, err := whoami(t.Context(), at, token)
		p.must(err)
		resp, err := one.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // what is missing is missed below
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	works := func() bool { return strings.Contains(ask(), `"agent\":\"agents/scout`) }
	if got := ask(); !works() {
		t.Fatalf("before, it is answered %s", got)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(at, "http://"), "/")
	for range 100 {
		c, err := net.Dial("tcp", address)
		p.must(err)
		defer c.Close()
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) { // records are looked at meanwhile
		if got := ask(); !works() {
			t.Fatalf("in a crowd, it is answered %s", got)
		}
	}
	p.run("agents", "token", "revoke", "--agent", "scout")
	for end := time.Now().Add(2 * time.Second); works(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a token that is revoked is good in a crowd")
		}
	}
	if got := ask(); !strings.HasPrefix(got, "401 ") {
		t.Errorf("after that, it is answered %s", got)
	}
}

// slowServer is a server over HTTP whose tool wait takes until the test ends, and which tells
// its sessions events. It counts what is up.
func slowServer(t *testing.T) (url string, up *atomic.Int32) {
	over := make(chan struct{})
	up = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			up.Add(1)
			select {
			case <-over:
			case <-r.Context().Done():
			}
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}`,
			"tools/list": `{"tools":[{"name":"wait","inputSchema":{"type":"object"}},{"name":"echo","inputSchema":{"type":"object"}}]}`,
			"tools/call": `{"content":[{"type":"text","text":"called"}]}`,
		}
		switch {
		case json.NewDecoder(r.Body).Decode(&m) != nil || m.ID != nil && result[m.Method] == "":
			w.WriteHeader(http.StatusBadRequest)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if m.Params.Name == "wait" {
			up.Add(1)
			<-over
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result[m.Method])
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	return server.URL, up
}

// before serves before a server with few files, to an agent that may call all of it.
func (p place) before(server string) (token, at string) {
	p.t.Helper()
	p.write(map[string]string{
		"agents/scout.md": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [\"web.*\"] }\n---\n",
		"capgate.yml":     fmt.Sprintf("agents: ./agents\nupstreams:\n  web: { %s }\n", server),
	})
	token = p.run("agents", "token", "issue", "scout")
	return token, p.serveWith(96)
}

// TestCrowdOfCalls: nor do calls of agents, each of which has a connection to its server.
func TestCrowdOfCalls(t *testing.T) {
	url, up := slowServer(t)
	token, at := newPlace(t).before(fmt.Sprintf("url: %q", url))
	call := func(by *http.Client, tool string) string {
		r, err := calling(t.Context(), at, token, tool)
		if err != nil {
			return err.Error()
		}
		resp, err := by.Do(r)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body) // what is missing is missed below
		return string(body)
	}
	one := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: 10 * time.Second}
	defer one.CloseIdleConnections()
	if got := call(one, "web__echo"); !strings.Contains(got, "called") {
		t.Fatalf("before, it is answered %s", got)
	}
	many := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	early := make(chan string, 60)
	for range cap(early) {
		go func() { early <- call(many, "web__wait") }()
	}
	for earlier := int32(-1); up.Load() > earlier; time.Sleep(time.Second) { // until no more come in
		earlier = up.Load()
	}
	if up.Load() < 10 {
		t.Errorf("only %d calls are up", up.Load())
	}
	select {
	case got := <-early:
		t.Errorf("beside %d calls that are up, one more is answered %s", up.Load(), got)
	default:
	}
}

// TestCrowdOfSessions: nor do sessions, each of which has connections of its own to a server that may ask,
// or a program of its own.
func TestCrowdOfSessions(t *testing.T) {
	t.Run("url", func(t *testing.T) {
		url, _ := slowServer(t)
		newPlace(t).crowdOfSessions(fmt.Sprintf("url: %q, may_ask: [elicitation]", url))
	})
	t.Run("command", func(t *testing.T) {
		p := newPlace(t)
		p.write(map[string]string{"tools.json": `[{"name":"echo","inputSchema":{"type":"object"}}]`})
		p.crowdOfSessions(fmt.Sprintf("command: [%q, %q], may_ask: [elicitation]", p.toolServer(), filepath.Join(p.dir, "tools.json")))
	})
}

func (p place) crowdOfSessions(server string) {
	p.t.Helper()
	token, at := p.before(server)
	one := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}, Timeout: 10 * time.Second}
	defer one.CloseIdleConnections()
	ask := func(session, body string) (answer, opened string) {
		r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, at, strings.NewReader(body))
		p.must(err)
		for name, value := range map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Session-Id": session,
		} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		resp, err := one.Do(r)
		if err != nil {
			return err.Error(), ""
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.Status + " " + string(text), resp.Header.Get("Mcp-Session-Id")
	}
	up, failed := 0, false
	for ; up < 90; up++ {
		answer, session := ask("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
		if !strings.HasPrefix(answer, "200 ") {
			p.t.Fatalf("in the %dth session, initialize is answered %s", up, answer)
		}
		answer, _ = ask(session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"web__echo","arguments":{}}}`)
		if failed = strings.Contains(answer, "upstream_failed"); failed {
			break
		}
		if !strings.Contains(answer, "called") {
			p.t.Fatalf("in the %dth session, a call is answered %s", up, answer)
		}
	}
	if !failed || up < 5 {
		p.t.Errorf("in the %dth session, a call has failed: %v", up, failed)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(at, "http://"), "/")
	for range 40 { // as many as come in
		c, err := net.Dial("tcp", address)
		p.must(err)
		defer c.Close()
	}
	p.run("agents", "token", "revoke", "--agent", "scout")
	for end := time.Now().Add(2 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		answer, _ := ask("", `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
		if strings.HasPrefix(answer, "401 ") {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("a token that is revoked is good in a crowd: %s", answer)
		}
	}
}
