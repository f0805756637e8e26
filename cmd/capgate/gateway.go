package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/guardrail"
	"capgate/proxy"
	"capgate/store"
)

// gateway is everything that runs while capgate serves.
type gateway struct {
	log    *slog.Logger
	store  *store.Store
	events *guardrail.Log
	server *proxy.Server

	world  *world // the one in force
	tokens string // the version of the credentials in force
}

// openGateway opens the state, the log of events and the front.
func openGateway(ctx context.Context, w *world, log *slog.Logger) (*gateway, error) {
	st, err := store.Open(filepath.Join(w.cfg.State, "store"))
	if err != nil {
		return nil, fmt.Errorf("the state folder: %w", err)
	}
	events, err := w.recorder()
	if err != nil {
		return nil, fmt.Errorf("the log of events: %w", err)
	}
	key, err := sealKey(st)
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	l := w.cfg.Limits
	server, err := proxy.New(ctx, proxy.Options{
		Events: events, Pins: pinStore{st}, Log: log, Key: key, Version: version,
		Hosts: w.cfg.Listen.Hosts, Origins: w.cfg.Listen.Origins, Scrub: w.servers.keeper.Scrub, Files: w.view.FS,
		Limits: proxy.Limits{Body: l.Body, Calls: l.CallsPerMinute, Sessions: l.Sessions, Call: l.Call},
	})
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	g := &gateway{log: log, store: st, events: events, server: server}
	if err := g.adopt(w); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// adopt puts a world in force.
func (g *gateway) adopt(w *world) error {
	creds, version, err := credentials(g.store)
	if err != nil {
		return err
	}
	if g.world != nil {
		w.servers.slots = g.world.servers.slots
	}
	w.servers.log = g.log
	if g.world != nil {
		keep, err := keeper(w.cfg, g.world.servers.keeper)
		if err != nil {
			return err
		}
		w.servers.keeper = keep
	}
	p := *w.policy
	p.Credentials = creds
	g.server.Adopt(&p)
	g.world, g.tokens = w, version
	g.notice("the policy " + p.Hash + " is in force")
	return nil
}

func (g *gateway) notice(text string) {
	if _, err := g.events.Record(&guardrail.Event{Kind: "notice", Text: text}); err != nil {
		g.log.Error("an event could not be recorded", "error", err)
	}
}

// close ends the connections, and then the log, so that what they say last is in it.
func (g *gateway) close() error {
	err := g.server.Close()
	g.notice("the gateway ends")
	return errors.Join(err, g.events.Close())
}

const tokenLook = 300 * time.Millisecond // between looks at whether tokens were issued or revoked

// watch keeps the policy in step with the configuration, the records and the
// tokens, until the context ends.
func (g *gateway) watch(ctx context.Context, file string, view capability.View) error {
	live, err := config.Open(file, view, acceptable(view), g.log)
	if err != nil {
		return err
	}
	go func() { _ = live.Watch(ctx) }() // it ends with the context, and that is no news
	look := time.NewTicker(tokenLook)
	defer look.Stop()
	cfg := live.Current()
	var records *agents.Registry
	stop := func() {}
	defer func() { stop() }()
	for {
		if now := live.Current(); records == nil || now != cfg {
			cfg = now
			stop()
			next, end, err := g.follow(ctx, cfg, view)
			if err != nil && records == nil {
				return err
			}
			if stop = end; err != nil {
				g.log.Error("the records cannot be loaded; those in force stay", "error", err)
			} else {
				records = next
			}
		}
		configured, recorded := live.Changed(), records.Changed()
		g.refresh(cfg, records, view)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
			case <-configured:
				again = true
			case <-recorded:
				again = true
			case <-look.C:
				g.server.Recheck()
				changed, err := g.store.Changed(tokenBucket, tokenKey, g.tokens)
				again = changed || err != nil
			}
		}
	}
}

// follow watches the folders of records that a configuration names.
func (g *gateway) follow(ctx context.Context, cfg *config.Config, view capability.View) (*agents.Registry, func(), error) {
	records, err := agents.Open(agents.Options{Config: cfg.Sandbox, View: view}, cfg.Agents, g.log)
	if err != nil {
		return nil, func() {}, err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { _ = records.Watch(ctx) }() // as above
	return records, stop, nil
}

// refresh puts in force what is written now. A test that finds more allowed than
// it should be keeps it from taking effect; one that finds less allowed does not:
// who takes authority away must be obeyed even by mistake.
func (g *gateway) refresh(cfg *config.Config, records *agents.Registry, view capability.View) {
	w, err := newWorld(cfg, records.Current(), view)
	if err != nil {
		g.log.Error("what is written now cannot be put in force; the last policy stays", "error", err)
		return
	}
	for _, o := range w.check().Tests {
		if o.Pass {
			continue
		}
		g.log.Error("a policy test fails", "test", o.Test, "agent", o.Agent, "want", o.Want, "got", o.Got)
		if o.Got == capability.Allow.String() {
			g.log.Error("what is written now allows more than its tests do; the last policy stays")
			return
		}
	}
	if err := g.adopt(w); err != nil {
		g.log.Error("the tokens cannot be read; the last policy stays", "error", err)
	}
}

// acceptable refuses a configuration whose own tests are red.
func acceptable(view capability.View) func(*config.Config) error {
	return func(cfg *config.Config) error {
		roster, err := agents.Load(agents.Options{Config: cfg.Sandbox, View: view}, cfg.Agents...)
		if err != nil {
			return err
		}
		w, err := newWorld(cfg, roster, view)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(w.check().Tests, func(o outcome) bool { return !o.Pass })
		if i < 0 {
			return nil
		}
		o := w.check().Tests[i]
		return &config.Error{Pos: o.Pos, Text: fmt.Sprintf("the policy test %s of %s wants %s and gets %s", o.Test, o.Agent, o.Want, o.Got), Hint: "capgate check runs them all"}
	}
}

// logger is the log that people and machines read on standard error.
func (a *app) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(a.settings.LogLevel)); err != nil {
		level = slog.LevelInfo
	}
	opts := &slog.HandlerOptions{Level: level}
	if a.settings.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.ui.std.err, opts))
	}
	return slog.New(slog.NewTextHandler(a.ui.std.err, opts))
}

// hush is what a program that a client has started says on standard error: only
// what somebody must know.
func hush() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
