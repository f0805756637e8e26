//go:build unix

package e2e_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// backTime is how soon a call must work again after its server has died.
const backTime = 2 * time.Second

// children are the processes that a process has started.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	if _, none := errors.AsType[*exec.ExitError](err); err != nil && !none {
		unavailable(t, "there is no pgrep: "+err.Error())
	}
	for _, word := range strings.Fields(string(out)) {
		child, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, child)
	}
	return pids
}

// gone reports whether a process has ended, whoever has yet to learn of it.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if _, none := errors.AsType[*exec.ExitError](err); err != nil && !none {
		unavailable(t, "there is no ps: "+err.Error())
	}
	return err != nil || bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

// kill ends a process as nothing ends itself.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %d: %v", pid, err)
	}
}

// workshop serves one server of everything, and returns the process of it.
func workshop(t *testing.T) (g *gateway, child int) {
	t.Helper()
	dir := tree(t, map[string]string{
		"capgate.yml":      fmt.Sprintf("agents: ./agents\nstate: ./state\nupstreams:\n  tools: { command: [%q, stdio] }\n", installed(t, serverEverything)),
		"agents/worker.md": "---\nid: agents/worker\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [tools.*] }\n---\nYou work.\n",
	})
	g = serve(t, dir, "capgate.yml", "worker")
	allowed(t, g.sum(t), "42")
	pids := children(t, g.pid)
	if len(pids) != 1 || gone(t, pids[0]) {
		t.Fatalf("the gateway has the children %v, want one that runs", pids)
	}
	return g, pids[0]
}

// sum has the server of a workshop do something.
func (g *gateway) sum(t *testing.T) answer {
	t.Helper()
	return agent{g.at, g.token}.call(t, "tools__get-sum", `{"a":2,"b":40}`)
}

// soon fails unless the server works again soon enough, as another process, and
// unless calls until then say that it does not.
func soon(t *testing.T, g *gateway, was int) {
	t.Helper()
	began := time.Now()
	eventually(t, "the server works again", func() bool {
		a := g.sum(t)
		if !a.ok() {
			denied(t, a, "upstream_failed")
		}
		return a.ok()
	})
	if took := time.Since(began); took > backTime {
		t.Errorf("calls work again after %s, the most is %s", took, backTime)
	}
	if pids := children(t, g.pid); len(pids) != 1 || pids[0] == was {
		t.Errorf("the gateway has the children %v, want another than %d", pids, was)
	}
}

// TestServerDiesBetweenCalls: it is started again.
func TestServerDiesBetweenCalls(t *testing.T) {
	g, child := workshop(t)
	kill(t, child)
	soon(t, g, child)
}

// TestServerDiesDuringCall: whoever waits is told which server failed, and who
// calls next is served.
func TestServerDiesDuringCall(t *testing.T) {
	g, child := workshop(t)
	params := `{"name":"tools__trigger-long-running-operation","arguments":{"duration":60,"steps":200},` + strings.Replace(agentMeta, `{`, `{"progressToken":"p",`, 1) + `}`
	resp, err := agent{g.at, g.token}.send(t, "tools/call", "tools__trigger-long-running-operation", params)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var lines [][]byte
	for s := bufio.NewScanner(resp.Body); s.Scan(); {
		event, ok := bytes.CutPrefix(s.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		if lines = append(lines, bytes.Clone(event)); len(lines) == 1 {
			kill(t, child) // the first step was told: the call is being worked on
		}
	}
	a := conversation(t, lines)
	denied(t, a, "upstream_failed")
	if !strings.Contains(a.text(), `"tools"`) {
		t.Errorf("%q does not name the server", a.text())
	}
	soon(t, g, child)
}

// TestGatewayEnds: what it has started ends with it, however it ends.
func TestGatewayEnds(t *testing.T) {
	signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL}
	if !signal.Ignored(syscall.SIGHUP) { // as below nohup, which the gateway heeds
		signals = append(signals, syscall.SIGHUP)
	}
	for _, sig := range signals {
		t.Run(sig.String(), func(t *testing.T) {
			g, child := workshop(t)
			if err := syscall.Kill(g.pid, sig); err != nil {
				t.Fatal(err)
			}
			g.await(t)
			eventually(t, "the server has ended", func() bool { return gone(t, child) })
		})
	}
}

// TestClientEnds: a gateway that a client has started ends when the client closes
// its input, and its server with it.
func TestClientEnds(t *testing.T) {
	server := installed(t, serverEverything)
	c := launch(t, `{}`, nil, "wrap", "--agent", "me", "--grant", "tool.invoke{tools=[**]}", "--", server, "stdio")
	allowed(t, c.call(t, "get-sum", `{"a":2,"b":40}`), "42")
	pids := children(t, c.pid)
	if len(pids) != 1 || gone(t, pids[0]) {
		t.Fatalf("the gateway has the children %v, want one that runs", pids)
	}
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	c.await(t)
	eventually(t, "the server has ended", func() bool { return gone(t, pids[0]) })
}
