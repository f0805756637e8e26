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

// TestLive: a good change takes effect, a bad one leaves the last good one in
// force and says why, and mending it takes effect again (R-EGG-02).
func TestLive(t *testing.T) {
	c := openLive(t, one, nil)
	folder := func() string { return filepath.Base(c.Current().Agents[0]) }
	changed := c.Changed()
	c.write(t, two)
	if err := c.Reload(); err != nil || folder() != "two" || c.Err() != nil {
		t.Fatal(err, folder())
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was told")
	}
	c.write(t, bad)
	if err := c.Reload(); err == nil || folder() != "two" || c.Err() == nil || len(config.Errors(c.Err())) != 1 {
		t.Fatal(err, folder())
	}
	if !strings.Contains(c.log.String(), "the last good one stays in force") {
		t.Error(c.log)
	}
	before := c.log.Len()
	if err := c.Reload(); err == nil || c.log.Len() != before {
		t.Error("the same file was read twice", err)
	}
	if err := os.Remove(c.file); err != nil {
		t.Fatal(err)
	}
	if err := c.Reload(); err == nil || folder() != "two" {
		t.Fatal(err, folder())
	}
	if err := c.Reload(); err == nil {
		t.Error("a missing file is fine the second time")
	}
	c.write(t, one)
	if err := c.Reload(); err != nil || folder() != "one" || c.Err() != nil {
		t.Fatal(err, folder())
	}
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
