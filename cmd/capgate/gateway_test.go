package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/config"
	"capgate/guardrail"
	"capgate/proxy"
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

// watched is a gateway that watches its configuration and records.
type watched struct {
	place
	late   <-chan struct{} // closed when it takes too long
	from   source
	first  *config.Config
	noted  notices
	looked said
	built  atomic.Int32 // worlds put together
}

// watch starts one whose only agent holds what is given, and whose folder holds further ones.
func watch(t *testing.T, capabilities string, folders ...string) *watched {
	t.Helper()
	w := &watched{place: place{t, t.TempDir()}, noted: make(notices, 100), looked: make(said, 100)}
	for _, folder := range append(folders, "agents") {
		w.must(os.MkdirAll(filepath.Join(w.dir, folder), 0o700))
	}
	w.write(map[string]string{"capgate.yml": "agents: ./agents\n"})
	w.hold(capabilities)
	view := capability.View{Cwd: w.dir, FS: hostfs.FS{}}
	log := slog.New(slog.NewTextHandler(w.looked, &slog.HandlerOptions{Level: slog.LevelError}))
	live, err := config.Open(filepath.Join(w.dir, "capgate.yml"), view, nil, log)
	w.must(err)
	count := func(cfg *config.Config, _ capability.View) (*config.Config, error) {
		w.built.Add(1)
		return cfg, nil
	}
	w.from, w.first = source{live: live, view: view, at: count}, live.Current()
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	w.late = ctx.Done()
	g, err := newGateway(ctx, w.written(), log, w.noted)
	w.must(err)
	done := make(chan error, 1)
	go func() { done <- g.watch(ctx, w.from) }()
	t.Cleanup(func() {
		stop()
		w.must(<-done)
		w.must(g.close())
	})
	return w
}

// hold writes what the agent holds.
func (w *watched) hold(capabilities string) {
	w.t.Helper()
	w.write(map[string]string{"agents/scout.md": "---\nclass: agent\ncapabilities: [" + capabilities + "]\n---\n"})
}

// written is what the first configuration makes of the records as they are.
func (w *watched) written() *world {
	w.t.Helper()
	roster, err := agents.Load(agents.Options{Config: w.first.Sandbox, View: w.from.view}, w.first.Agents...)
	w.must(err)
	made, err := w.from.world(w.first, roster)
	w.must(err)
	return made
}

// reaches waits for a policy to come into force, and returns what is said of it.
func (w *watched) reaches(what string, is func(noted string) bool) string {
	w.t.Helper()
	for {
		select {
		case got := <-w.noted:
			if is(got) {
				return got
			}
		case <-w.late:
			w.t.Fatalf("%s: no such policy came into force", what)
		}
	}
}

// TestWatchGoesOn: when the records of a new configuration cannot be read, such as in
// the moment in which their folder is exchanged, those in force are still watched, and
// what is taken away in them is.
func TestWatchGoesOn(t *testing.T) {
	w := watch(t, "records.read, records.create")
	reached := func(what string) {
		t.Helper()
		want := "the policy " + w.written().policy.Hash + " is in force"
		w.reaches(what, func(got string) bool { return got == want })
	}
	w.hold("records.read, records.update")
	reached("as it is watched")
	w.write(map[string]string{"capgate.yml": "agents: ./gone\n"})
	w.must(w.from.live.Reload())
	select {
	case <-w.looked:
	case <-w.late:
		t.Fatal("the configuration is not looked at")
	}
	w.hold("records.read")
	reached("after a configuration whose records are not there")
}

// TestWatchRests: a record that has just been written counts no sooner because the configuration
// is another one as well.
func TestWatchRests(t *testing.T) {
	w := watch(t, "records.read")
	final := func() string { return "the policy " + w.written().policy.Hash + " is in force" }
	w.hold("records.read, records.update")
	want := final()
	w.reaches("as it is watched", func(got string) bool { return got == want })
	const rest = 450 * time.Millisecond
	begun := time.Now()
	w.hold("records.read, records.create")
	w.write(map[string]string{"capgate.yml": "agents: ./agents # again\n"})
	w.must(w.from.live.Reload())
	w.first = w.from.live.Current()
	want = final()
	if w.reaches("when it has rested", func(got string) bool { return got == want }); time.Since(begun) < rest {
		t.Error("what was written a moment ago counts at once")
	}
}

// TestWatchFromTheStart: what is written before the records are first looked at again is an edit like any other.
func TestWatchFromTheStart(t *testing.T) {
	w := watch(t, "records.read")
	begun := time.Now()
	w.hold("records.read, records.create")
	want := "the policy " + w.written().policy.Hash + " is in force"
	if w.reaches("when it has rested", func(got string) bool { return got == want }); time.Since(begun) < 450*time.Millisecond {
		t.Error("what was written as the gateway started counts at once")
	}
}

// TestTokensUnread: while nobody can read which tokens there are, what is taken away in the
// records is gone all the same, and the log says once what is wrong. Nothing else is read
// again for it.
func TestTokensUnread(t *testing.T) {
	const credentials = ".capgate/store/tokens/credentials"
	w := watch(t, "records.read, records.create", filepath.Dir(credentials))
	next := func(narrowed bool) string {
		t.Helper()
		return w.reaches("tokens", func(got string) bool { return strings.Contains(got, "-narrowed-") == narrowed })
	}
	next(false)
	<-time.After(2 * tokenLook)
	if n := len(w.noted); n != 0 {
		t.Errorf("%d times more it was said that the policy is in force", n)
	}
	w.write(map[string]string{credentials: "{garbage"})
	before := next(true)
	built := w.built.Load()
	<-time.After(4 * tokenLook)
	if again := w.built.Load() - built; again > 1 {
		t.Errorf("all was put together %d times more, and nothing had changed", again)
	}
	if n := len(w.looked); n != 2 {
		t.Errorf("%d lines were logged about one thing that is wrong in two ways", n)
	}
	w.hold("records.read")
	if after := next(true); after == before {
		t.Errorf("%s again", after)
	}
	w.must(os.Remove(filepath.Join(w.dir, credentials)))
	next(false)
}

// TestSecretsOfBefore: a secret is taken out of what comes back although nothing has used
// it since the gateway was started, or since it stands in the configuration. One that
// cannot be read stops nothing, and is logged, once.
func TestSecretsOfBefore(t *testing.T) {
	dir := t.TempDir()
	world := func(secrets string) *world {
		t.Helper()
		for name, text := range map[string]string{
			"one": "first-of-two", "two": "second-of-two", "capgate.yml": "agents: ./agents\nupstreams: { notes: { url: \"http://127.0.0.1:1/mcp\" } }\nsecrets: {" + secrets + "}\n",
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
	var log bytes.Buffer
	warned := func(want string) {
		t.Helper()
		if got := log.String(); strings.Count(got, "\n") != strings.Count(want, "\n") || !strings.Contains(got, strings.TrimSuffix(want, "\n")) {
			t.Errorf("it logs %q, want %q", got, want)
		}
		log.Reset()
	}
	g, err := newGateway(t.Context(), first, slog.New(slog.NewTextHandler(&log, nil)), unrecorded{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	warned("level=WARN msg=\"a secret cannot be had; what needs it is refused until then\" error=\"secret \\\"gone\\\": open \n")
	if got := first.scrubText("first-of-two second-of-two"); got != "{{secret:a}} second-of-two" {
		t.Errorf("at the start: %s", got)
	}
	second := world("b: { file: ./two }, gone: { file: ./none }")
	if err := g.adopt(second); err != nil {
		t.Fatal(err)
	}
	warned("")
	if got := first.scrubText("first-of-two second-of-two"); got != "{{secret:a}} {{secret:b}}" {
		t.Errorf("with another configuration: %s", got)
	}
	for of, p := range map[string]*proxy.Policy{"before": first.policy, "now": second.policy} {
		if got := p.Upstreams[0].Scrub([]byte("first-of-two second-of-two")); string(got) != "{{secret:a}} {{secret:b}}" {
			t.Errorf("what a server says by the configuration of %s: %s", of, got)
		}
	}
	if err := g.adopt(world("gone: { file: ./none }, left: { file: ./none }")); err != nil {
		t.Fatal(err)
	}
	warned("secret \\\"left\\\"\n")
}

// TestGoneFolder: it is logged once that a folder shows no skills any more.
func TestGoneFolder(t *testing.T) {
	w := watch(t, "records.read", "skills")
	w.write(map[string]string{"new.yml": "agents: ./agents\nskills: [./skills]\n"})
	w.must(os.Rename(filepath.Join(w.dir, "new.yml"), filepath.Join(w.dir, "capgate.yml")))
	w.must(w.from.live.Reload())
	w.must(os.Remove(filepath.Join(w.dir, "skills")))
	select {
	case got := <-w.looked:
		if !strings.Contains(got, "shows no skills") {
			t.Error(got)
		}
	case <-w.late:
		t.Fatal("nothing is logged")
	}
	for _, held := range []string{"records.create", "records.update"} { // read twice more
		for len(w.noted) > 0 {
			<-w.noted
		}
		w.hold(held)
		w.reaches(held, func(string) bool { return true })
	}
	if len(w.looked) > 0 {
		t.Error("it is logged again")
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
