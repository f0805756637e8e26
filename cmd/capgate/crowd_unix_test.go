//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCrowdLeavesFiles: whoever can connect takes no file that records, tokens, events and
// servers need. Who was there is answered, and is gone when its token is.
func TestCrowdLeavesFiles(t *testing.T) {
	p := newPlace(t)
	token := p.run("agents", "token", "issue", "scout")
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 64; exec capgate "$@"`, "sh", "-c", filepath.Join(p.dir, "capgate.yml"), "serve", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Cancel = os.Environ(), func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	said, err := cmd.StderrPipe()
	p.must(err)
	p.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended it
	at := ""
	lines := bufio.NewScanner(said)
	for lines.Scan() && at == "" {
		_, at, _ = strings.Cut(lines.Text(), "listening at ")
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
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
