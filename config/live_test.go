package config_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/capability"
	"capgate/config"
)

type liveCase struct {
	*config.Live
	file string
	log  *strings.Builder
}

func openLive(t *testing.T, text string, accept func(*config.Config) error) liveCase {
	t.Helper()
	c := liveCase{file: filepath.Join(t.TempDir(), "capgate.yml"), log: &strings.Builder{}}
	c.write(t, text)
	live, err := config.Open(c.file, capability.View{Cwd: "/"}, accept, slog.New(slog.NewTextHandler(c.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Live = live
	return c
}

func (c liveCase) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(c.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const (
	one = "agents: ./one\n"
	two = "agents: ./two\n"
	bad = "agents: ./three\nsandbx: /\n"
)

// inForce checks which configuration is in force, and whether the file is that one.
func (c liveCase) inForce(t *testing.T, folder string, err error, refused bool) {
	t.Helper()
	if got := filepath.Base(c.Current().Agents[0]); got != folder {
		t.Errorf("%s is in force, not %s", got, folder)
	}
	if (err != nil) != refused || (c.Err() != nil) != refused {
		t.Errorf("the file was refused: %v, %v; it should be %v", err, c.Err(), refused)
	}
}

// TestLive: a good change takes effect, a bad one leaves the last good one in
// force and says why, and mending it takes effect again (R-EGG-02).
func TestLive(t *testing.T) {
	c := openLive(t, one, nil)
	changed := c.Changed()
	c.write(t, two)
	c.inForce(t, "two", c.Reload(), false)
	select {
	case <-changed:
	default:
		t.Error("nobody was told")
	}
	c.write(t, bad)
	c.inForce(t, "two", c.Reload(), true)
	all := config.Errors(c.Err())
	if len(all) != 1 || all[0].Hint == "" || !strings.Contains(c.log.String(), "the last good one stays in force") || !strings.Contains(c.log.String(), "; "+all[0].Hint) {
		t.Error(c.Err(), c.log)
	}
	before := c.log.Len()
	c.inForce(t, "two", c.Reload(), true)
	if c.log.Len() != before {
		t.Error("the same file was read twice")
	}
	c.write(t, one)
	c.inForce(t, "one", c.Reload(), false)
}

// TestLiveWithout: a file that is gone leaves the last good one in force as well.
func TestLiveWithout(t *testing.T) {
	c := openLive(t, one, nil)
	if err := os.Remove(c.file); err != nil {
		t.Fatal(err)
	}
	c.inForce(t, "one", c.Reload(), true)
	c.inForce(t, "one", c.Reload(), true)
	c.write(t, two)
	c.inForce(t, "two", c.Reload(), false)
}

// TestLiveAccepts: whoever loads has the last word, at the start and later.
func TestLiveAccepts(t *testing.T) {
	red := errors.New("a policy test is red")
	accept := func(c *config.Config) error {
		if strings.HasSuffix(c.Agents[0], "two") {
			return red
		}
		return nil
	}
	c := openLive(t, one, accept)
	c.write(t, two)
	if err := c.Reload(); !errors.Is(err, red) || !strings.HasSuffix(c.Current().Agents[0], "one") {
		t.Error(err)
	}
	if _, err := config.Open(c.file, capability.View{Cwd: "/"}, accept, slog.New(slog.DiscardHandler)); !errors.Is(err, red) {
		t.Error(err)
	}
	if _, err := config.Open(c.file+".not", capability.View{Cwd: "/"}, nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("there is no such file")
	}
}

// TestFollow: a configuration that was loaded and accepted is not asked about again, unless
// its file says something else by now.
func TestFollow(t *testing.T) {
	var asked int
	accept := func(*config.Config) error { asked++; return nil }
	c := openLive(t, one, nil)
	loaded, _, err := config.Load(c.file, capability.View{Cwd: "/"})
	if err != nil {
		t.Fatal(err)
	}
	follow := func(log *strings.Builder) *config.Live {
		t.Helper()
		live, err := config.Follow(loaded, []capability.Finding{{Text: "mind this"}}, capability.View{Cwd: "/"}, accept, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		return live
	}
	live := follow(c.log)
	if live.Current() != loaded || asked != 0 || !strings.Contains(c.log.String(), "mind this") {
		t.Errorf("asked %d times; said %s", asked, c.log)
	}
	c.Live = live
	c.inForce(t, "one", c.Reload(), false)
	if c.Current() != loaded {
		t.Error("the same file was read twice")
	}
	c.write(t, two)
	c.inForce(t, "two", c.Reload(), false)
	if asked != 1 {
		t.Errorf("asked %d times of what was changed later", asked)
	}
	var log strings.Builder
	c.Live = follow(&log)
	c.inForce(t, "two", nil, false)
	if asked != 2 || log.Len() != 0 {
		t.Errorf("asked %d times of what was changed before; said %s", asked, &log)
	}
	c.write(t, bad)
	if _, err := config.Follow(loaded, nil, capability.View{Cwd: "/"}, accept, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a bad file is followed")
	}
}

// TestLiveWatch: a file that is replaced as editors do it is noticed.
func TestLiveWatch(t *testing.T) {
	c := openLive(t, one, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Watch(ctx) }()
	for _, text := range []string{two, bad, one} {
		changed := c.Changed()
		next := c.file + ".new"
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, c.file)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("nobody noticed %q", text)
		}
	}
	if c.Err() != nil || !strings.HasSuffix(c.Current().Agents[0], "one") {
		t.Error(c.Err())
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestLiveBusy: a file beside the configuration that is written all the time puts nothing off
// until it is looked at without any event.
func TestLiveBusy(t *testing.T) {
	c := openLive(t, one, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = c.Watch(ctx) }()
	changed := c.Changed()
	c.write(t, two)
	<-changed
	changed = c.Changed()
	late := time.After(4 * time.Second)
	for i := 0; ; i++ {
		select {
		case <-changed:
			return
		case <-late:
			t.Fatal("nobody noticed")
		default:
		}
		if i == 10 {
			c.write(t, one)
		}
		if err := os.WriteFile(c.file+".log", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}
