//go:build unix

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEndsInOrder: a gateway whose client or terminal is gone records what became of a call,
// closes its log and leaves nothing behind. One that is to outlast its terminal does.
func TestEndsInOrder(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{}}}`
	gateway := []string{"capgate", "wrap", "--agent", "me", "--grant", "tool.invoke:*", "--", "toolserver", "tools.json"}
	for name, test := range map[string]struct {
		command []string
		hup     bool // its terminal goes
		mute    bool // its client does not wait for the answer
	}{
		"client":   {gateway, false, true},
		"terminal": {gateway, true, true},
		"nohup":    {append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, gateway...), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := place{t, t.TempDir()}
			p.write(map[string]string{"tools.json": `[{"name":"read","inputSchema":{"type":"object"}}]`})
			temporary := t.TempDir()
			cmd := exec.CommandContext(t.Context(), test.command[0], test.command[1:]...)
			cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "XDG_STATE_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir, "TMPDIR="+temporary)
			in, err := cmd.StdinPipe()
			p.must(err)
			out, err := cmd.StdoutPipe()
			p.must(err)
			p.must(cmd.Start())
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
			answers := bufio.NewScanner(out)
			answers.Scan()
			fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			if test.hup {
				p.must(cmd.Process.Signal(syscall.SIGHUP))
			}
			if test.mute {
				p.must(out.Close())
			} else {
				time.Sleep(200 * time.Millisecond) // in which it would end
			}
			fmt.Fprintln(in, call)
			if !test.mute {
				for answers.Scan() && !strings.Contains(answers.Text(), `"called"`) {
				}
			}
			_ = in.Close()
			_ = cmd.Wait()
			if end, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || end.Signaled() {
				t.Errorf("it ends with %s", cmd.ProcessState)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("it leaves %v, %v", left, err)
			}
			if got := p.recorded(); !strings.Contains(got, "the gateway ends") || name != "terminal" && !strings.Contains(got, `"kind":"outcome"`) {
				t.Errorf("recorded is %s", got)
			}
		})
	}
}

// recorded is what a gateway without a configuration has recorded.
func (p place) recorded() string {
	p.t.Helper()
	logs, err := filepath.Glob(filepath.Join(p.dir, "capgate", "events", "*"))
	p.must(err)
	var all strings.Builder
	for _, file := range logs {
		text, err := os.ReadFile(file)
		p.must(err)
		all.Write(text)
	}
	return all.String()
}

// TestEndIsSaidToProcess: so is a client that has launched the gateway. Who is told twice that it is to end
// does not have it wait.
func TestEndIsSaidToProcess(t *testing.T) {
	for name, signals := range map[string]int{"once": 1, "twice": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{t, t.TempDir()}
			called := make(chan struct{}, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hang(w, r, called) }))
			defer server.Close()
			cmd := exec.CommandContext(t.Context(), "capgate", "wrap", "--agent", "me", "--grant", "tool.invoke:*", "--url", server.URL)
			cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "XDG_STATE_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
			in, err := cmd.StdinPipe()
			p.must(err)
			out, err := cmd.StdoutPipe()
			p.must(err)
			p.must(cmd.Start())
			answers := bufio.NewScanner(out)
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
			answers.Scan()
			fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait","arguments":{}}}`)
			<-called
			begun := time.Now()
			for range signals {
				p.must(cmd.Process.Signal(syscall.SIGTERM))
				time.Sleep(300 * time.Millisecond)
			}
			for answers.Scan() && !strings.Contains(answers.Text(), `"id":2`) {
			}
			took := time.Since(begun)
			if got := answers.Text(); !strings.Contains(got, "the gateway ends; what was asked may or may not have been done") {
				t.Errorf("it is answered %q", got)
			}
			if late := took > endTime-2*lastTime; late != (signals == 1) {
				t.Errorf("it took %s", took)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("it ends with %s", err)
			}
		})
	}
}
