package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/capability"
	"capgate/config"
	"capgate/proxy"
	"capgate/upstream"
)

// TestBuiltinLimits: what limits: says of a server holds for one of our own too.
func TestBuiltinLimits(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.WriteFile(dir+"/lines", []byte(strings.Repeat("line\n", 100_000)), 0o600), os.WriteFile(dir+"/odd", []byte(strings.Repeat("\x01", 30_000)), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	call := func(file string, limit time.Duration) string {
		t.Helper()
		u := &config.Upstream{Name: "files", Builtin: "fs", Root: capability.Root{Dir: dir, Real: dir}, Answer: 64 << 10, Call: limit}
		conn, err := new(servers).openBuiltin(u)(t.Context(), proxy.Peer{Decide: func(*capability.Requirement) error { return nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		params := []byte(`{"name":"read","arguments":{"path":"` + file + `"}}`)
		answer, err := conn.Call(t.Context(), upstream.Request{Method: "tools/call", Params: params}, nil)
		if err != nil {
			return err.Error()
		}
		return string(answer.Result)
	}
	if got := call("lines", time.Minute); len(got) > 64<<10 || !strings.Contains(got, "there are more, go on with offset") {
		t.Errorf("an answer of %d bytes: …%s", len(got), got[max(0, len(got)-100):])
	}
	if got := call("odd", time.Minute); got != `upstream "files" answers with too much; ask it for less` {
		t.Errorf("an answer that is too long as it is written: %.100s", got)
	}
	if got := call("lines", time.Nanosecond); !strings.Contains(got, "the call took longer than 1ns") {
		t.Errorf("a call that may take no time: %.100s", got)
	}
}
