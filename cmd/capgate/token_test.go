package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/store"
)

// place is a configuration with one agent, and a way to run commands in it.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t, t.TempDir()}
	for name, text := range map[string]string{
		"capgate.yml":        "listen: 127.0.0.1:0\nagents: ./agents\nsandbox: ./work\nupstreams:\n  files: { builtin: fs }\n",
		"agents/scout.md":    "---\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\n",
		"work/docs/guide.md": "Read me.\n",
	} {
		file := filepath.Join(p.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// run runs a command that is done, and returns what it printed.
func (p place) run(args ...string) string {
	p.t.Helper()
	var out, errs bytes.Buffer
	code := run(context.Background(), append([]string{"-c", filepath.Join(p.dir, "capgate.yml")}, args...), stdio{out: &out, err: &errs})
	if code != exitOK {
		p.t.Fatalf("%v: exit %d\n%s", args, code, errs.String())
	}
	return strings.TrimSpace(out.String())
}

// recognised asks what a gateway asks of a token.
func (p place) recognised(token string) bool {
	p.t.Helper()
	st, err := store.Open(filepath.Join(p.dir, ".capgate", "store"))
	if err != nil {
		p.t.Fatal(err)
	}
	creds, _, err := credentials(st)
	if err != nil {
		p.t.Fatal(err)
	}
	have, ok := creds.Recognise(token, time.Now())
	return ok && have.Agent == "agents/scout"
}

// TestTokenRecognised: what is issued lets the agent in, until it is taken back.
func TestTokenRecognised(t *testing.T) {
	p := newPlace(t)
	first := p.run("agents", "token", "issue", "scout")
	if !p.recognised(first) {
		t.Fatal("what was issued is not recognised")
	}
	second := p.run("agents", "token", "rotate", "scout", "--grace", "1h")
	if !p.recognised(first) || !p.recognised(second) {
		t.Error("the time of grace is none")
	}
	third := p.run("agents", "token", "rotate", "scout")
	if p.recognised(first) || p.recognised(second) || !p.recognised(third) {
		t.Error("what was rotated out is still recognised, or what came in its place is not")
	}
	fourth := p.run("agents", "token", "issue", "scout", "--for", "never")
	p.run("agents", "token", "revoke", strings.Split(third, "_")[1])
	if p.recognised(third) || !p.recognised(fourth) {
		t.Error("what was revoked is still recognised, or what was not is gone")
	}
	p.run("agents", "token", "revoke", "--agent", "scout")
	if p.recognised(fourth) {
		t.Error("what was revoked is still recognised")
	}
}

// TestTokenAtOnce: a token is good as soon as the command that issues it has printed it.
func TestTokenAtOnce(t *testing.T) {
	p := newPlace(t)
	ctx, stop := context.WithCancel(t.Context())
	at, ended := p.serving(ctx)
	by := new(http.Transport)
	for range 5 {
		token := p.run("agents", "token", "issue", "scout")
		if status, got := p.modern(by, at, token, "server/discover"); status != http.StatusOK {
			t.Errorf("%d %s", status, got)
		}
	}
	strange := newPlace(t).run("agents", "token", "issue", "scout")
	var all sync.WaitGroup
	start := time.Now()
	for range 100 {
		all.Go(func() {
			if status, _ := p.modern(by, at, strange, "server/discover"); status != http.StatusUnauthorized {
				t.Error(status)
			}
		})
	}
	all.Wait()
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("100 requests at once with a token that nobody issued took %s", took)
	}
	by.CloseIdleConnections()
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// TestTokensAreNotWrittenDown: an agent that says its token where no token belongs has it in no
// event, for whoever reads these.
func TestTokensAreNotWrittenDown(t *testing.T) {
	p := newPlace(t)
	token := p.run("agents", "token", "issue", "scout")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at, ended := p.serving(ctx)
	r, err := calling(ctx, at, token, token)
	p.must(err)
	resp, err := http.DefaultClient.Do(r)
	p.must(err)
	p.must(resp.Body.Close())
	stop()
	<-ended
	id, secret, _ := strings.Cut(strings.TrimPrefix(token, "cg_"), "_")
	if text := p.run("events", "query", "--json", "--code", "unknown_tool"); !strings.Contains(text, `"cg_`+id+`_…"`) || strings.Contains(text, secret) {
		t.Error(text)
	}
}
