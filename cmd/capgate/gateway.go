package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/proxy"
	"capgate/skills"
	"capgate/store"
)

// gateway is everything that runs while capgate serves.
type gateway struct {
	log    *slog.Logger
	store  *store.Store
	events journal
	server *proxy.Server

	mirrors *mirrors           // copies of the skills that are kept in step, nil if none are
	hurry   chan chan struct{} // has tokens looked at now, and closes what it is given

	world  *world        // the one in force
	policy *proxy.Policy // the one in force: that of the world, or narrower
	tokens string        // the version of the credentials in force
	blind  bool          // they could not be read since

	waiting []string          // the settings that were said to wait for another start
	trouble map[string]string // what was logged of what is wrong now
	lacking map[string]bool   // what was logged of secrets that cannot be had
	red     []outcome         // the policy tests that were said to fail
}

// openGateway opens the state, the log of events and the front, unless a policy test finds
// more allowed than it says. Whoever starts it should know what it does not confine.
func openGateway(ctx context.Context, w *world, log *slog.Logger) (*gateway, error) {
	red, err := wider(w)
	if err != nil {
		return nil, err
	}
	events, err := w.recorder()
	if err != nil {
		return nil, fmt.Errorf("the log of events: %w", err)
	}
	w.unconfined(log)
	w.logMissing(log)
	w.logUnsearched(nil, log)
	w.logLoose(nil, log)
	g, err := newGateway(ctx, w, log, &telling{Log: events, log: log})
	if err == nil {
		g.redden(red)
	}
	return g, err
}

// newGateway opens the state and the front.
func newGateway(ctx context.Context, w *world, log *slog.Logger, events journal) (*gateway, error) {
	st, err := w.kept().store()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the state folder: %w", err), events.Close())
	}
	key, err := sealKey(st)
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	g := &gateway{log: log, store: st, events: events, hurry: make(chan chan struct{}), trouble: map[string]string{}}
	l, keep := w.cfg.Limits, w.servers.keeper
	g.server, err = proxy.New(ctx, proxy.Options{
		Events: events, Pins: pinStore{st}, Log: log, Key: key, Version: version,
		Hosts: w.cfg.Listen.Hosts, Origins: w.cfg.Listen.Origins, Renew: g.renewNow,
		Scrub:     func(text []byte) []byte { return keep.ScrubOf("", text) },
		ScrubText: func(text string) string { return keep.ScrubTextOf("", text) },
		Limits:    proxy.Limits{Body: l.Body, Calls: l.CallsPerMinute, Sessions: l.Sessions, Call: l.Call},
	})
	if err != nil {
		return nil, errors.Join(err, events.Close())
	}
	if err := g.adopt(w); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// adopt puts a world in force.
func (g *gateway) adopt(w *world) error {
	before := g.world
	w.servers.log = g.log
	if before != nil {
		w.servers.slots, w.policy.Flags, w.only = before.servers.slots, before.policy.Flags, before.only
		keep, err := keeper(w.cfg, before.servers.keeper)
		if err != nil {
			return err
		}
		w.servers.keeper, w.policy.Secrets = keep, keep
	}
	g.deplore(learn(w.servers.keeper))
	g.world = w
	err := g.enforce(*w.policy)
	if err != nil {
		g.world = before
	}
	return err
}

// enforce puts a policy in force, for the tokens that there are now.
func (g *gateway) enforce(p proxy.Policy) error {
	creds, version, err := credentials(g.store)
	if only := g.world.only; only != "" && err == nil {
		creds, err = creds.Only(only)
	}
	if err != nil {
		return err
	}
	p.Credentials, g.tokens, g.blind = creds, version, false
	g.put(&p)
	return nil
}

// put has a policy decide from now on.
func (g *gateway) put(p *proxy.Policy) {
	g.server.Adopt(p)
	known := g.policy != nil && g.policy.Hash == p.Hash // for other tokens, or read again
	if g.policy = p; !known {
		g.notice("the policy " + p.Hash + " is in force")
	}
	g.mirror(p)
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

const (
	tokenLook    = 300 * time.Millisecond // between looks at whether tokens were issued or revoked
	atRest       = 200 * time.Millisecond // before the first look at whether anything has been written since the start
	recordsAgain = 5 * time.Second        // before records that could not be read are tried again
)

// source is where a gateway's configuration comes from: a file that is watched, or
// what the command line says once and for all.
type source struct {
	live  *config.Live // nil: fixed
	fixed *config.Config
	view  capability.View
	at    func(*config.Config, capability.View) (*config.Config, error) // what the command line changes of it
	first *config.Config                                                // that the gateway was started with, nil where it is not another
}

func (s source) current() *config.Config {
	if s.live == nil {
		return s.fixed
	}
	return s.live.Current()
}

// changed is closed when there is another configuration; never for a fixed one.
func (s source) changed() <-chan struct{} {
	if s.live == nil {
		return nil
	}
	return s.live.Changed()
}

// watched opens the configuration that a gateway keeps in step with, of the world in force.
func (g *gateway) watched(w *world, at func(*config.Config, capability.View) (*config.Config, error)) (source, error) {
	live, err := config.Follow(w.file.cfg, w.file.findings, w.view, acceptable(w.view), g.log)
	return source{live: live, view: w.view, at: at, first: w.cfg}, err
}

// watch keeps the policy in step with the configuration, the records, the mappings
// and the tokens, until the context ends.
func (g *gateway) watch(ctx context.Context, from source) error {
	look := time.NewTicker(tokenLook)
	defer look.Stop()
	files, cfg := &fileWatch{}, from.current()
	var records *agents.Registry
	var retry <-chan time.Time // when records that could not be read are tried again
	stop := func() {}
	defer func() { stop() }()
	g.rest(ctx)
	if from.live != nil { // it begins with a look at what has changed meanwhile
		go func() { _ = from.live.Watch(ctx) }() // it ends with the context, and that is no news
	}
	for {
		configured := from.changed() // before what is current, so that no change falls between
		if now := from.current(); records == nil || now != cfg {
			next, end, err := g.follow(ctx, now, from.view, records)
			switch {
			case err == nil:
				stop()
				cfg, records, stop, retry = now, next, end, nil
			case records == nil:
				return err
			default:
				retry = time.After(recordsAgain)
				g.log.Error("the records cannot be loaded; the configuration and the records in force stay", "error", err)
			}
		}
		recorded := records.Changed()
		files.look(cfg)
		g.refresh(cfg, records, from)
		for again := false; !again; {
			select {
			case <-ctx.Done():
				return nil
			case <-configured:
				again = true
			case <-recorded:
				again = true
			case <-retry:
				again = true
			case seen := <-g.hurry:
				_ = g.renew() // what is wrong is said when the time has come to look
				close(seen)
			case now := <-look.C:
				g.server.Recheck()
				again = g.renew() != nil || files.changed(cfg, now)
			}
		}
	}
}

// rest leaves what is in force as it was read a moment ago, while whoever has started the gateway
// waits for a first call.
func (g *gateway) rest(ctx context.Context) {
	ctx, over := context.WithTimeout(ctx, atRest)
	defer over()
	for {
		select {
		case <-ctx.Done():
			return
		case seen := <-g.hurry:
			_ = g.renew() // as in watch
			close(seen)
		}
	}
}

// recheck shows what is approved elsewhere, where there is nothing else to keep in step
// with, until the context ends.
func (g *gateway) recheck(ctx context.Context) error {
	look := time.NewTicker(tokenLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case seen := <-g.hurry:
			close(seen) // there are no tokens but one
		case <-look.C:
			g.server.Recheck()
		}
	}
}

// renewNow has whoever watches do so now, and waits for it as long as it would be until
// that is done anyway.
func (g *gateway) renewNow() {
	patience := time.NewTimer(tokenLook)
	defer patience.Stop()
	seen := make(chan struct{})
	select {
	case g.hurry <- seen:
	case <-patience.C:
		return
	}
	select {
	case <-seen:
	case <-patience.C:
	}
}

// renew puts tokens in force that were issued or revoked, without reading all else for
// it.
func (g *gateway) renew() error {
	if g.blind {
		if _, _, err := credentials(g.store); err == nil {
			return errSeeing
		}
		return nil // nothing else would come of reading all again
	}
	changed, err := g.store.Changed(tokenBucket, tokenKey, g.tokens)
	switch {
	case err != nil:
		return err
	case !changed:
		return nil
	}
	return g.enforce(*g.policy)
}

// errSeeing says that tokens can be read again, which they could not be.
var errSeeing = errors.New("the policy was put together without tokens")

// follow watches the folders of records that a configuration names, in the place of those that
// were watched before, if any were.
func (g *gateway) follow(ctx context.Context, cfg *config.Config, view capability.View, before *agents.Registry) (*agents.Registry, func(), error) {
	opts := agents.Options{Config: cfg.Sandbox, View: view}
	open := func() (*agents.Registry, error) { return g.world.roster.Follow(opts, cfg.Agents, g.log) }
	if before != nil {
		open = func() (*agents.Registry, error) { return before.Again(opts, cfg.Agents) }
	}
	records, err := open()
	if err != nil {
		return nil, func() {}, err
	}
	ctx, stop := context.WithCancel(ctx)
	go func() { _ = records.Watch(ctx) }() // as above
	return records, stop, nil
}

// refresh puts in force what is written now. Where it allows more than a test says,
// or cannot be put together, it only narrows: what was allowed before and is allowed
// now. Who takes authority away is obeyed, whatever else is wrong.
func (g *gateway) refresh(cfg *config.Config, records *agents.Registry, from source) {
	before := g.world
	var red []outcome
	w, err := from.world(cfg, records.Current())
	if err == nil {
		red, err = wider(w)
	}
	if err == nil {
		err = g.adopt(w)
	}
	if err == nil {
		g.redden(red)
		clear(g.trouble)
		w.logUnsearched(before, g.log)
		w.logLoose(before, g.log)
		g.announce(from.waiting(w.cfg))
		return
	}
	g.lament("what it takes away is", err)
	if err := g.narrow(records.Current()); err != nil {
		g.lament("the tokens of before are good", err)
	}
}

// lament logs what keeps a policy from being put in force, once for each time that it is
// something else.
func (g *gateway) lament(text string, err error) {
	if g.trouble[text] != err.Error() {
		g.trouble[text] = err.Error()
		g.log.Error("not all that is written is in force", "but", text, "error", err)
	}
}

// announce says, once for each edit, which settings are those from the start.
func (g *gateway) announce(waiting []string) {
	if slices.Equal(waiting, g.waiting) {
		return
	}
	if g.waiting = waiting; len(waiting) > 0 {
		g.log.Warn("some of what is written now is in force when the gateway is started anew", "settings", strings.Join(waiting, " "))
	}
}

// world is what a configuration means, with what the command line changes of it.
func (s source) world(cfg *config.Config, roster *agents.Roster) (*world, error) {
	if s.at != nil {
		var err error
		if cfg, err = s.at(cfg, s.view); err != nil {
			return nil, err
		}
	}
	if first := s.first; first != nil && len(s.waiting(cfg)) > 0 { // what is in use is out of reach until it no longer is
		under := *cfg
		under.Above = &config.Config{State: first.State, Guardrail: first.Guardrail, Listen: first.Listen}
		cfg = &under
	}
	return newWorld(cfg, roster, s.view)
}

// waiting names the settings that a gateway reads when it starts, and that say
// something else by now.
func (s source) waiting(cfg *config.Config) (names []string) {
	if s.first == nil {
		return nil
	}
	was, now := s.first.Limits, cfg.Limits
	for _, setting := range [...]struct {
		name string
		same bool
	}{
		{"listen", reflect.DeepEqual(s.first.Listen, cfg.Listen)},
		{"state", s.first.State == cfg.State},
		{"guardrail", s.first.Guardrail == cfg.Guardrail},
		{"limits.body", was.Body == now.Body},
		{"limits.calls_per_minute", was.CallsPerMinute == now.CallsPerMinute},
		{"limits.upstream_processes", was.UpstreamProcesses == now.UpstreamProcesses},
		{"limits.sessions", was.Sessions == now.Sessions},
	} {
		if !setting.same {
			names = append(names, setting.name)
		}
	}
	return names
}

// redden logs which policy tests fail, each once for as long as it does.
func (g *gateway) redden(red []outcome) {
	for _, o := range red {
		if !slices.Contains(g.red, o) {
			g.log.Warn("a policy test fails", "test", o.Test, "agent", o.Agent, "want", o.Want, "got", o.Got)
		}
	}
	g.red = red
}

// narrow puts records and skills in force within the last policy, also while it cannot be read which
// tokens there are: then those of before are good.
func (g *gateway) narrow(roster *agents.Roster) error {
	p, now := *g.world.policy, *g.world
	cfg := now.cfg
	p.Skills = p.Skills.Within(skills.Load(cfg.SkillOptions(now.view), cfg.Skills.Folders...))
	now.roster, now.policy = roster, &proxy.Policy{Skills: p.Skills}
	p.Hash += "-narrowed-" + policyHash(&now)
	before := g.world.gate
	p.Gate = &gate.Gate{Roster: roster, Fence: before.Fence, Tools: before.Tools, Wide: before.Wide, Within: before}
	err := g.enforce(p)
	if g.blind = err != nil; g.blind && p.Hash != g.policy.Hash {
		p.Credentials = g.policy.Credentials
		g.put(&p)
	}
	return err
}

// acceptable refuses a configuration that allows more than its own tests say.
func acceptable(view capability.View) func(*config.Config) error {
	return func(cfg *config.Config) error {
		w, err := loadWorld(cfg, view)
		if err != nil {
			return err
		}
		_, err = wider(w)
		return err
	}
}

// logger is the log that people and machines read on standard error, from a level on
// where no setting says which.
func (a *app) logger(w *world, level slog.Level) *slog.Logger {
	if said := a.settings.LogLevel; said != "" {
		_ = level.UnmarshalText([]byte(said)) // it is one of the words of the setting
	}
	if a.lines == nil {
		a.lines = newLines(a.ui.std.err)
	}
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: w.unsecret}
	if a.settings.LogFormat == "json" {
		return slog.New(late{slog.NewJSONHandler(&a.lines.text, opts), a.lines})
	}
	return slog.New(late{slog.NewTextHandler(&a.lines.text, opts), a.lines})
}

// quiet is the level of a program that a client has started, which shows what it says
// to nobody or to everybody: only what somebody must know.
const quiet = slog.LevelWarn

// unsecret takes the values of secrets out of what is logged: an error of net/http
// quotes what a server has sent, and that may be the key that it was shown.
func (w *world) unsecret(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(w.scrubText(a.Value.String()))
	case slog.KindAny:
		if _, is := a.Value.Any().(slog.Level); is {
			break
		}
		_, isError := a.Value.Any().(error)
		text := fmt.Sprint(a.Value.Any())
		if scrubbed := w.scrubText(text); isError || scrubbed != text {
			a.Value = slog.StringValue(scrubbed)
		}
	}
	return a
}
