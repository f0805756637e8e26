package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"capgate/agents"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/config"
	"capgate/gate"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/secrets"
	"capgate/skills"
)

// world is everything that is loaded from the configuration on: what the
// commands read and the gate decides by.
type world struct {
	cfg      *config.Config
	file     configFile
	roster   *agents.Roster
	gate     *gate.Gate
	servers  *servers
	policy   *proxy.Policy
	view     capability.View
	own      []capability.Root // the gateway's own files
	findings []capability.Finding
	loose    []capability.Finding // of places that others may write, when it was put in force
	only     string               // the agent whose tokens are taken; "" for all
}

// configFile is the configuration as its file has it, whatever the command line changes of it.
type configFile struct {
	cfg      *config.Config
	findings []capability.Finding
}

// load reads the configuration and every record it names.
func (a *app) load() (*world, error) {
	view, err := hostView()
	if err != nil {
		return nil, broken(err, "")
	}
	cfg, findings, err := configuration(a.settings.Config, view)
	if err != nil {
		return nil, err
	}
	file := configFile{cfg, findings}
	if cfg, err = a.at(cfg, view); err != nil {
		return nil, err
	}
	w, err := loadWorld(cfg, view)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrNotExist) {
			hint = "make the folder, or name another under agents: in " + a.ui.short(cfg.File)
		}
		return nil, broken(err, hint)
	}
	w.file, w.findings = file, slices.Concat(findings, w.findings)
	return w, nil
}

// configuration finds the configuration file and reads it.
func configuration(named string, view capability.View) (*config.Config, []capability.Finding, error) {
	file, err := config.Find(named, view.Cwd, os.Getenv("XDG_CONFIG_HOME"), view.Home)
	if err != nil {
		return nil, nil, broken(err, "")
	}
	cfg, findings, err := config.Load(file, view)
	if err != nil {
		return nil, nil, broken(err, "")
	}
	return cfg, findings, nil
}

// loadWorld reads the records that a configuration names beside all else that it does.
func loadWorld(cfg *config.Config, view capability.View) (*world, error) {
	var g *ground
	var unread error
	var beside sync.WaitGroup
	beside.Go(func() { g, unread = readGround(cfg, view) })
	roster, err := agents.Load(agents.Options{Config: cfg.Sandbox, View: view}, cfg.Agents...)
	beside.Wait()
	if err = cmp.Or(err, unread); err != nil {
		return nil, err
	}
	return g.world(roster)
}

// newWorld puts together what a configuration and its records mean. It starts
// nothing.
func newWorld(cfg *config.Config, roster *agents.Roster, view capability.View) (*world, error) {
	g, err := readGround(cfg, view)
	if err != nil {
		return nil, err
	}
	return g.world(roster)
}

// ground is what a configuration means whatever the records say.
type ground struct {
	cfg      *config.Config
	view     capability.View
	own      []capability.Root
	fence    capability.Fence
	mappings map[string]*mapping.Mapping
	keeper   *secrets.Keeper
	skills   *skills.Library
	findings []capability.Finding
}

func readGround(cfg *config.Config, view capability.View) (*ground, error) {
	own, err := cfg.Own(view)
	if err != nil {
		return nil, err
	}
	sealed, err := sealing(cfg, view)
	if err != nil {
		return nil, err
	}
	mappings, findings, err := config.LoadMappings(cfg)
	if err != nil {
		return nil, err
	}
	keep, err := keeper(cfg, nil)
	if err != nil {
		return nil, err
	}
	lib := skills.Load(cfg.SkillOptions(view), cfg.Skills.Folders...)
	return &ground{
		cfg: cfg, view: view, own: own, fence: fence(own, sealed, view), mappings: mappings, keeper: keep, skills: lib,
		findings: append(findings, lib.Findings()...),
	}, nil
}

// world puts together what the configuration means for the agents of a roster.
func (g *ground) world(roster *agents.Roster) (*world, error) {
	cfg := g.cfg
	findings := slices.Concat(roster.Findings(), g.findings, strangers(cfg, roster), unofferedTools(roster), undeclared(cfg, g.mappings, roster))
	w := &world{
		cfg: cfg, roster: roster, view: g.view, own: g.own, findings: findings,
		gate: &gate.Gate{Roster: roster, Fence: g.fence, Wide: cfg.Skills.Wide},
		servers: &servers{
			cfg: cfg, view: g.view, mappings: g.mappings, keeper: g.keeper, log: slog.New(slog.DiscardHandler),
			slots: newSlots(cfg.Limits.UpstreamProcesses),
		},
	}
	ups, err := w.servers.upstreams()
	if err != nil {
		return nil, err
	}
	w.findings = append(w.findings, w.servers.findings...)
	providers, err := w.servers.providers()
	if err != nil {
		return nil, err
	}
	w.policy = &proxy.Policy{
		Gate: w.gate, Credentials: new(agents.Credentials), Upstreams: ups, Providers: providers, Skills: g.skills,
		Introspection: !cfg.Unseen, Secrets: g.keeper,
	}
	w.policy.Hash = policyHash(w)
	w.gate.Tools = w.policy.Tool
	return w, nil
}

// fence is what no grant reaches: what is the gateway's own, what is sealed, and what
// tells clients which servers to use.
func fence(own, sealed []capability.Root, view capability.View) capability.Fence {
	hidden, kept := config.ClientPlaces(os.Getenv("XDG_CONFIG_HOME"), view.Home)
	return ofClients().Enclosing(literals(own, hidden, view)...).Sealing(literals(sealed, kept, view)...)
}

// ofClients is a fence around the files of clients by their names, which every policy has.
var ofClients = sync.OnceValue(func() capability.Fence {
	return capability.NewFence().Hiding(config.ClientFiles()...).SealingNamed(config.ClientFolders()...)
})

// literals adds places by their names.
func literals(roots []capability.Root, places []string, view capability.View) []capability.Root {
	roots = slices.Clip(roots)
	for _, place := range places {
		roots = append(roots, literal(place, view))
	}
	return roots
}

// strangers are agents that the configuration names and that are not there.
func strangers(cfg *config.Config, roster *agents.Roster) []capability.Finding {
	var all []capability.Finding
	say := func(code string, pos capability.Pos, agent, text string) {
		if _, ok := roster.Agent(agent); !ok {
			all = append(all, capability.Finding{Code: code, Severity: capability.Warning, Pos: pos, Text: text})
		}
	}
	for _, m := range cfg.Skills.Mirrors {
		say("skill_mirror", m.Pos, m.Agent, fmt.Sprintf("there is no agent %s, so that its mirror stays empty", m.Agent))
	}
	for i := range cfg.Providers {
		p := &cfg.Providers[i]
		for _, agent := range p.Agents {
			say("provider_agent", p.Pos, agent, fmt.Sprintf("%s: there is no agent %s", p.Name, agent))
		}
	}
	return all
}

// undeclared are the servers whose tools some agent cannot call as nothing is declared of them.
func undeclared(cfg *config.Config, mappings map[string]*mapping.Mapping, roster *agents.Roster) []capability.Finding {
	var all []capability.Finding
	for ag := range roster.All() {
		if ag.Record == nil || ag.Record.Dialect != capability.Ethos {
			continue
		}
		for _, u := range cfg.Upstreams {
			if f, none := u.Undeclared(mappings[u.Mapping]); none {
				all = append(all, f)
			}
		}
		break
	}
	return all
}

// unofferedTools are grants of provider tools that no provider has: they give nothing, and
// are mostly mistyped.
func unofferedTools(roster *agents.Roster) []capability.Finding {
	var all []capability.Finding
	var known []string
	for _, e := range capability.Catalogue() {
		if e.Verb.Resource() == "provider" {
			known = append(known, string(e.Verb))
		}
	}
	for ag := range roster.All() {
		if ag.Set == nil {
			continue
		}
		for g := range ag.Set.All() {
			spec := g.Spec()
			if g.Verb().Resource() != "provider" || slices.Contains(known, string(g.Verb())) || spec.Pos.File != ag.File {
				continue
			}
			all = append(all, capability.Finding{
				Code: "provider_tool", Severity: capability.Warning, Pos: spec.Pos,
				Text: fmt.Sprintf("no provider has a tool that goes by %s, so that the grant gives nothing", g.Verb()),
				Hint: nearest(string(g.Verb()), known),
			})
		}
	}
	return all
}

// hostView is how this machine reads paths: from the working directory, with the
// user's home, following links.
func hostView() (capability.View, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return capability.View{}, fmt.Errorf("the working directory: %w", err)
	}
	home, err := os.UserHomeDir()
	if err != nil || !filepath.IsAbs(home) {
		home = ""
	}
	return capability.View{Cwd: cwd, Home: home, FS: hostfs.FS{}}, nil
}

// agentID is the id of an agent that a person types.
func agentID(name string) (string, error) {
	id := capability.AgentID(name)
	if id == "" {
		return "", usage(fmt.Errorf("%q is no agent id", name), "an id is made of letters, digits, - _ . and /")
	}
	return id, nil
}

// agent finds an agent by the id a person types.
func (w *world) agent(name string) (*agents.Agent, error) {
	id, err := agentID(name)
	if err != nil {
		return nil, err
	}
	ag, ok := w.roster.Agent(id)
	if !ok {
		return nil, broken(fmt.Errorf("there is no agent %q", id), w.meant(id))
	}
	return ag, nil
}

func (w *world) meant(id string) string {
	const folder = "agents/" // which all ids have, so that those are alike which have nothing else in common
	var names []string
	for ag := range w.roster.All() {
		names = append(names, strings.TrimPrefix(ag.ID, folder))
	}
	name := strings.TrimPrefix(id, folder)
	if i := slices.IndexFunc(names, func(other string) bool { return strings.EqualFold(other, name) }); i >= 0 {
		return fmt.Sprintf("did you mean %s?", folder+names[i])
	}
	if near := capability.Closest(name, names); near != "" {
		return fmt.Sprintf("did you mean %s?", folder+near)
	}
	return "capgate agents list shows those there are"
}

// sound is agent, for commands that need a record without errors.
func (w *world) sound(name string) (*agents.Agent, error) {
	ag, err := w.agent(name)
	if err != nil {
		return nil, err
	}
	if ag.Err != nil {
		return nil, broken(ag.Err, "until this is mended the agent may do nothing")
	}
	return ag, nil
}

// asked is how the requirements of people and of policy tests are read: relative
// to the configuration's root, so that no edit of a record changes what they mean.
func (w *world) asked() capability.View {
	v := w.view
	if v.Cwd = w.cfg.Sandbox.Dir; w.cfg.Sandbox.IsZero() {
		v.Cwd = filepath.Dir(w.cfg.File)
	}
	return v
}

// above visits an agent and those it hangs from, nearest first.
func (w *world) above(ag *agents.Agent) []*agents.Agent {
	line := []*agents.Agent{ag}
	const deepest = 32 // the roster refuses longer lines, and circles
	for len(line) < deepest {
		last := line[len(line)-1]
		if last.Record == nil || last.Record.Parent == "" {
			break
		}
		parent, ok := w.roster.Agent(last.Record.Parent)
		if !ok {
			break
		}
		line = append(line, parent)
	}
	return line
}
