package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/config"
	"capgate/guardrail"
)

// notices passes on what a gateway notes of its policies.
type notices chan string

func (n notices) Record(e *guardrail.Event) (string, error) {
	if strings.HasPrefix(e.Text, "the policy ") {
		n <- e.Text
	}
	return "", nil
}

func (notices) Close() error { return nil }

// said passes on what is logged.
type said chan string

func (s said) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

// TestWatchGoesOn: when the records of a new configuration cannot be read, such as in
// the moment in which their folder is exchanged, those in force are still watched, and
// what is taken away in them is.
func TestWatchGoesOn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("agents/scout.md", "---\nclass: agent\ncapabilities: [records.read, records.create]\n---\n")
	write("capgate.yml", "agents: ./agents\n")
	view := capability.View{Cwd: dir, FS: hostfs.FS{}}
	looked := make(said, 100)
	log := slog.New(slog.NewTextHandler(looked, &slog.HandlerOptions{Level: slog.LevelError}))
	live, err := config.Open(filepath.Join(dir, "capgate.yml"), view, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	from, first := source{live: live, view: view}, live.Current()
	written := func() *world {
		t.Helper()
		roster, err := agents.Load(agents.Options{Config: first.Sandbox, View: view}, first.Agents...)
		if err != nil {
			t.Fatal(err)
		}
		w, err := from.world(first, roster)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	noted := make(notices, 100)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	g, err := newGateway(ctx, written(), log, noted)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- g.watch(ctx, from) }()
	reached := func(what string) {
		t.Helper()
		want := "the policy " + written().policy.Hash + " is in force"
		for got := ""; got != want; {
			select {
			case got = <-noted:
			case <-ctx.Done():
				t.Fatalf("%s: %q, want %q", what, got, want)
			}
		}
	}
	write("agents/scout.md", "---\nclass: agent\ncapabilities: [records.read, records.update]\n---\n")
	reached("as it is watched")
	write("capgate.yml", "agents: ./gone\n")
	if err := live.Reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-looked:
	case <-ctx.Done():
		t.Fatal("the configuration is not looked at")
	}
	write("agents/scout.md", "---\nclass: agent\ncapabilities: [records.read]\n---\n")
	reached("after a configuration whose records are not there")
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}

// TestTokensUnread: while nobody can read which tokens there are, what is taken away in the
// records is gone all the same, and the log says once what is wrong.
func TestTokensUnread(t *testing.T) {
	dir := t.TempDir()
	p := place{t, dir}
	p.must(os.MkdirAll(filepath.Join(dir, "agents"), 0o700))
	p.must(os.MkdirAll(filepath.Join(dir, ".capgate/store/tokens"), 0o700))
	write := func(name, text string) { p.write(map[string]string{name: text}) }
	write("agents/scout.md", "---\nclass: agent\ncapabilities: [records.read, records.create]\n---\n")
	write("capgate.yml", "agents: ./agents\n")
	view := capability.View{Cwd: dir, FS: hostfs.FS{}}
	looked := make(said, 100)
	log := slog.New(slog.NewTextHandler(looked, &slog.HandlerOptions{Level: slog.LevelError}))
	live, err := config.Open(filepath.Join(dir, "capgate.yml"), view, nil, log)
	p.must(err)
	from := source{live: live, view: view}
	roster, err := agents.Load(agents.Options{View: view}, filepath.Join(dir, "agents"))
	p.must(err)
	w, err := from.world(live.Current(), roster)
	p.must(err)
	noted := make(notices, 100)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	g, err := newGateway(ctx, w, log, noted)
	p.must(err)
	done := make(chan error, 1)
	go func() { done <- g.watch(ctx, from) }()
	next := func(narrowed bool) string {
		t.Helper()
		for {
			select {
			case got := <-noted:
				if strings.Contains(got, "-narrowed-") == narrowed {
					return got
				}
			case <-ctx.Done():
				t.Fatal("no such policy came into force")
			}
		}
	}
	next(false)
	write(".capgate/store/tokens/credentials", "{garbage")
	before := next(true)
	<-time.After(4 * tokenLook)
	if n := len(looked); n != 2 {
		t.Errorf("%d lines were logged about one thing that is wrong in two ways", n)
	}
	write("agents/scout.md", "---\nclass: agent\ncapabilities: [records.read]\n---\n")
	if after := next(true); after == before {
		t.Errorf("%s again", after)
	}
	p.must(os.Remove(filepath.Join(dir, ".capgate/store/tokens/credentials")))
	next(false)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}

// TestSecretsOfBefore: a secret is taken out of what comes back although nothing has used
// it since the gateway was started, or since it stands in the configuration. One that
// cannot be read stops nothing.
func TestSecretsOfBefore(t *testing.T) {
	dir := t.TempDir()
	world := func(secrets string) *world {
		t.Helper()
		for name, text := range map[string]string{
			"one": "first-of-two", "two": "second-of-two", "capgate.yml": "agents: ./agents\nsecrets: {" + secrets + "}\n",
		} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		view := capability.View{Cwd: dir, FS: hostfs.FS{}}
		cfg, _, err := config.Load(filepath.Join(dir, "capgate.yml"), view)
		if err != nil {
			t.Fatal(err)
		}
		roster, err := agents.Load(agents.Options{}, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		w, err := newWorld(cfg, roster, view)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	first := world("a: { file: ./one }, gone: { file: ./none }")
	g, err := newGateway(t.Context(), first, slog.New(slog.DiscardHandler), unrecorded{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	if got := first.scrubText("first-of-two second-of-two"); got != "{{secret:a}} second-of-two" {
		t.Errorf("at the start: %s", got)
	}
	if err := g.adopt(world("b: { file: ./two }")); err != nil {
		t.Fatal(err)
	}
	if got := first.scrubText("first-of-two second-of-two"); got != "{{secret:a}} {{secret:b}}" {
		t.Errorf("with another configuration: %s", got)
	}
}

// TestLogUnsecret: what a provider sends back of its key is not logged, in either form.
func TestLogUnsecret(t *testing.T) {
	const key = "key-of-the-gateway-0123456789"
	keep, err := keeper(&config.Config{Secrets: map[string]config.Secret{"k": {Env: "CAPGATE_TEST_KEY"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CAPGATE_TEST_KEY", key)
	if _, err := keep.Expand("{{secret:k}}"); err != nil {
		t.Fatal(err)
	}
	w := &world{servers: &servers{keeper: keep}}
	for _, form := range []string{"text", "json"} {
		var log strings.Builder
		a := &app{ui: &ui{std: stdio{err: &log}}, settings: config.Settings{LogFormat: form}}
		a.logger(w, slog.LevelInfo).Warn("it says "+key, "error", fmt.Errorf("malformed HTTP status code %q", key), "provider", key, "times", 3, "all", []string{key}, "by", map[string]string{key: key}, "in", 4*time.Second)
		if text := log.String(); strings.Contains(text, key) || strings.Count(text, "{{secret:k}}") != 6 || !strings.Contains(text, "3") || !strings.Contains(text, "4") {
			t.Errorf("%s: %s", form, text)
		}
	}
}
