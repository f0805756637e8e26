package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/builtin"
	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/config"
	"capgate/gate"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/secrets"
	"capgate/upstream"
)

// servers makes what the gateway knows of the servers behind it.
type servers struct {
	cfg      *config.Config
	view     capability.View
	mappings map[string]*mapping.Mapping
	keeper   *secrets.Keeper
	log      *slog.Logger
	slots    *slots // for the processes that may run
	findings []capability.Finding
}

// upstreams turns those of the configuration into those of a policy. Nothing is
// started by it.
func (s *servers) upstreams() ([]*proxy.Upstream, error) {
	all := make([]*proxy.Upstream, 0, len(s.cfg.Upstreams))
	for i := range s.cfg.Upstreams {
		u, err := s.upstream(&s.cfg.Upstreams[i])
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

func (s *servers) upstream(u *config.Upstream) (*proxy.Upstream, error) {
	p := &proxy.Upstream{
		Name: u.Name, Prefix: u.Prefix, Pins: pins(u.Pins), MayAsk: u.MayAsk, Shared: u.Shared, Timeout: u.Call,
		Identity: s.identity(u), Scrub: s.scrub(u), Unmediated: u.Unmediated, Narrower: map[string]*gate.Declaration{}, PinsOf: map[string]proxy.Pins{},
	}
	var err error
	if p.Mapping, err = s.mapping(u); err != nil {
		return nil, err
	}
	if p.Declared, err = s.declared(u, p.Mapping); err != nil {
		return nil, err
	}
	for name, t := range u.Tools {
		p.PinsOf[name] = pins(t.Pins)
		if t.Declared {
			p.Narrower[name] = s.compile(u, t.Declares).Within(p.Declared)
		}
	}
	switch {
	case u.Builtin != "" && len(p.Narrower) > 0:
		return nil, fmt.Errorf("%s: what single tools of a builtin declare is not in this version; write declares: of the upstream", u.Pos)
	case u.Builtin != "":
		p.View = capability.View{Cwd: u.Root.Dir, FS: hostfs.FS{}, Plain: true}
		p.MayAsk, p.Pins, p.PinsOf, p.Unmediated = nil, proxy.Off, nil, true // they come with this program, and ask again at every use
		p.Open = s.openBuiltin(u)
	case u.Command != nil:
		cwd, home := s.cwd(u), s.home(u)
		p.View = capability.View{Cwd: cwd, Told: told(u, cwd, home), Home: home, FS: hostfs.FS{}}
		p.Process, p.Open = true, s.openProgram(u, p.View.Told)
	default:
		p.Open = s.openURL(u) // what its paths mean is for its machine to say
	}
	return p, nil
}

// declared is what a server touches: what is written of it, or else what its
// mapping says of its kind.
func (s *servers) declared(u *config.Upstream, m *mapping.Mapping) (*gate.Declaration, error) {
	if u.Declared {
		return s.compile(u, u.Declares), nil
	}
	if u.Builtin != "" || u.Unmediated || !m.Declares() {
		return nil, nil
	}
	specs, _, err := m.Declaration(agents.Declaration)
	if err != nil {
		return nil, err
	}
	return s.compile(u, specs), nil
}

func pins(word string) proxy.Pins {
	switch word {
	case "off":
		return proxy.Off
	case "require":
		return proxy.Require
	}
	return proxy.Tofu
}

// identity changes when a server must be started anew to be what is written. The
// directory of a program may be written elsewhere: calls are decided on as if it ran
// in the one that is written now.
func (s *servers) identity(u *config.Upstream) string {
	plain := *u
	plain.Pos, plain.MappingPos, plain.Declares, plain.Tools, plain.Mapping, plain.Pins = capability.Pos{}, capability.Pos{}, nil, nil, "", ""
	oauth := config.OAuth{}
	if u.OAuth != nil {
		oauth = *u.OAuth
	}
	plain.OAuth = nil
	if u.Command != nil {
		plain.Cwd = s.cwd(u)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v %#v %#v", plain, oauth, s.sources(u)))
	return hex.EncodeToString(sum[:8])
}

// sources are where the secrets come from that a server is started with. A connection goes on
// with those there were when it was made.
func (s *servers) sources(u *config.Upstream) map[string]config.Secret {
	texts := slices.AppendSeq(slices.Collect(maps.Values(u.Env)), maps.Values(u.Headers))
	if u.OAuth != nil {
		texts = append(texts, u.OAuth.ClientSecret)
	}
	from := map[string]config.Secret{}
	for _, text := range texts {
		handles, _ := secrets.Handles(text) // they were checked when it was read
		for _, h := range handles {
			from[h.Name] = s.cfg.Secrets[h.Name]
		}
	}
	return from
}

func (s *servers) mapping(u *config.Upstream) (*mapping.Mapping, error) {
	switch {
	case u.Builtin != "":
		m, err := builtin.Mapping(u.Builtin)
		if err != nil {
			return nil, fmt.Errorf("the mapping of the builtin %s: %w", u.Builtin, err)
		}
		return m, nil
	case u.Mapping == "":
		return nil, nil
	}
	m, ok := s.mappings[u.Mapping]
	if !ok {
		return nil, fmt.Errorf("%s: there is no mapping %q", u.MappingPos, u.Mapping)
	}
	return m, nil
}

// compile reads a declaration against the configuration's root.
func (s *servers) compile(u *config.Upstream, specs []capability.Spec) *gate.Declaration {
	d := gate.Declare(specs, capability.Options{Config: s.cfg.Sandbox, Agent: s.cfg.Sandbox, View: s.view})
	for _, g := range d.Inert() {
		f := capability.Finding{
			Code: "invalid_value", Severity: capability.Warning, Pos: u.Pos,
			Text: fmt.Sprintf("the upstream %s declares %s, which stands for nothing: %s", u.Name, g, g.Inert()),
			Hint: "write declares: with what it may touch; until then nothing of the kind is called",
		}
		if s.cfg.Sandbox.IsZero() {
			f.Code, f.Hint = "no_root", "write sandbox: in the configuration, which what servers declare hangs from, or declares: with whole paths"
		}
		s.findings = append(s.findings, f)
	}
	return d
}

// cwd is the directory that a program runs in: the one written, the root that
// grants hang from, or else where the configuration lies.
func (s *servers) cwd(u *config.Upstream) string {
	switch {
	case u.Cwd != "":
		return u.Cwd
	case !s.cfg.Sandbox.IsZero():
		return s.cfg.Sandbox.Dir
	}
	return filepath.Dir(s.cfg.File)
}

// home is what ~ stands for to a program: the user's, unless its environment says
// otherwise. What that is must be seen here, or nobody knows it.
func (s *servers) home(u *config.Upstream) string {
	home, ok := u.Env["HOME"]
	switch {
	case !ok:
		return s.view.Home
	case strings.Contains(home, "{{"):
		return ""
	}
	return home
}

// environment is all that a program gets to see of the gateway's: where programs
// are, where its user's files are, in which language it speaks. Git is kept from
// repositories above the directory that it is called in, and from ones that
// somebody has put inside another as plain files.
func (s *servers) environment(u *config.Upstream) ([]string, error) {
	env := map[string]string{
		"GIT_CEILING_DIRECTORIES": filepath.Dir(s.cwd(u)),
		"GIT_CONFIG_COUNT":        "2",
		"GIT_CONFIG_KEY_0":        "safe.bareRepository", "GIT_CONFIG_VALUE_0": "explicit",
		"GIT_CONFIG_KEY_1": "protocol.file.allow", "GIT_CONFIG_VALUE_1": "never",
	}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "USER", "SHELL"} {
		if value, ok := os.LookupEnv(name); ok {
			env[name] = value
		}
	}
	for name, value := range u.Env {
		expanded, err := s.keeper.Expand(value)
		if err != nil {
			return nil, fmt.Errorf("env %s: %w", name, err)
		}
		env[name] = expanded
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// needed are variables of the gateway that many programs do not reach the network without.
var needed = []string{
	"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "npm_config_registry",
}

// withheld adds to why a program did not start which of them it was not given. Their
// values may hold a password, and are not said.
func withheld(err error, env []string) error {
	var names []string
	for _, name := range needed {
		given := slices.ContainsFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
		if os.Getenv(name) != "" && !given {
			names = append(names, name)
		}
	}
	if neverRan := errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission); len(names) == 0 || neverRan {
		return err
	}
	return fmt.Errorf("%w (%s of the gateway's environment is not handed on: write it into env: of the upstream, or --env NAME=… of wrap)", err, strings.Join(names, ", "))
}

// options are those of every connection.
func (s *servers) options(u *config.Upstream, p proxy.Peer) upstream.Options {
	client := p.Client
	if u.Protocol != "" {
		client.Protocol = u.Protocol
	}
	return upstream.Options{
		Client: client, Events: p.Events, Limits: upstream.Limits{Message: u.Answer}, Shared: p.Agent == "",
		Log: s.log, Scrub: s.scrub(u),
	}
}

// scrub is what takes secrets out of what a server says: by the keeper that there is by then, as another
// takes the place of the first when the configuration comes into force.
func (s *servers) scrub(u *config.Upstream) func([]byte) []byte {
	return func(text []byte) []byte { return s.keeper.ScrubOf(u.Name, text) }
}

// openProgram starts a program, unless it would be told of a directory that was not counted
// when its configuration was read. That is read again soon.
func (s *servers) openProgram(u *config.Upstream, counted []string) func(context.Context, proxy.Peer) (upstream.Conn, error) {
	return func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		for _, dir := range told(u, s.cwd(u), s.home(u)) {
			if !slices.Contains(counted, dir) && !slices.Contains(counted, "") {
				return nil, &upstream.Failed{
					Upstream: u.Name, Text: "cannot be started before its configuration is read again", Unsent: true,
					Err: fmt.Errorf("one of its arguments leads to %q, which has been there only since", dir),
				}
			}
		}
		env, err := s.environment(u)
		if err != nil {
			return nil, &upstream.Failed{Upstream: u.Name, Text: "cannot be started", Unsent: true, Err: err}
		}
		slots := s.slots // a reload keeps them
		if !slots.await(ctx, p.Agent, p.Room) {
			return nil, &upstream.Failed{Upstream: u.Name, Text: fmt.Sprintf("cannot be started: of %d processes, all run that may for this agent", slots.most), Unsent: true}
		}
		ctx, cancel := context.WithTimeout(ctx, u.Start)
		defer cancel()
		conn, err := upstream.Start(ctx, upstream.Program{Name: u.Name, Argv: u.Command, Dir: s.cwd(u), Env: env}, s.options(u, p))
		if err != nil {
			slots.give(p.Agent)
			if errors.Is(err, context.DeadlineExceeded) {
				err = fmt.Errorf("it has not answered as an MCP server in time: %w", err)
			}
			return nil, withheld(err, env)
		}
		go func() {
			<-conn.Done()
			_ = conn.Close() // until it has ended, the process takes its place
			slots.give(p.Agent)
		}()
		return conn, nil
	}
}

func (s *servers) openURL(u *config.Upstream) func(context.Context, proxy.Peer) (upstream.Conn, error) {
	authorize := s.authorize(u)
	return func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		e := upstream.Endpoint{Name: u.Name, URL: u.URL, Transport: u.Transport, Authorize: authorize}
		e.Renew = func() ([]upstream.Field, error) { return s.headers(u) }
		var err error
		if e.Header, err = e.Renew(); err != nil {
			return nil, &upstream.Failed{Upstream: u.Name, Text: "cannot be reached", Unsent: true, Err: err}
		}
		ctx, cancel := context.WithTimeout(ctx, u.Start)
		defer cancel()
		return upstream.Dial(ctx, e, s.options(u, p))
	}
}

// headers are those of a server as the secrets in them are now.
func (s *servers) headers(u *config.Upstream) ([]upstream.Field, error) {
	var fields []upstream.Field
	for name, value := range u.Headers {
		expanded, err := s.keeper.Expand(value)
		if err != nil {
			return nil, fmt.Errorf("header %s: %w", name, err)
		}
		fields = append(fields, upstream.Field{Name: name, Value: expanded})
	}
	return fields, nil
}

func (s *servers) openBuiltin(u *config.Upstream) func(context.Context, proxy.Peer) (upstream.Conn, error) {
	return func(_ context.Context, p proxy.Peer) (upstream.Conn, error) {
		return builtin.Open(u.Builtin, builtin.Options{
			Name: u.Name, Root: u.Root, Decide: p.Decide, Version: version, Limits: builtin.Limits{Answer: u.Answer, Time: u.Call},
		})
	}
}

// keeper reads which secrets there are. Their values are read when they are used.
//
// One that takes the place of another knows the values that were handed out before.
func keeper(cfg *config.Config, before *secrets.Keeper) (*secrets.Keeper, error) {
	sources := make(map[string]secrets.Source, len(cfg.Secrets))
	for name, from := range cfg.Secrets {
		sources[name] = secrets.Source{Env: from.Env, File: from.File}
	}
	if before != nil {
		return before.With(sources)
	}
	return secrets.New(sources, secrets.Options{})
}

// learn has all secrets scrubbed from now on: a server that was given one by another
// process still has it. It says which cannot be had, and why: what needs one fails when it
// is used, and that may be long after.
func learn(k *secrets.Keeper) (lacking []error) {
	for _, name := range k.Names() {
		if err := k.Check(name); err != nil {
			lacking = append(lacking, err)
		}
	}
	return lacking
}

// deplore logs which secrets cannot be had, each once for as long as it is for the same reason.
func (g *gateway) deplore(lacking []error) {
	before := g.lacking
	g.lacking = map[string]bool{}
	for _, err := range lacking {
		text := err.Error()
		if g.lacking[text] = true; !before[text] {
			g.log.Warn("a secret cannot be had; what needs it is refused until then", "error", text)
		}
	}
}

// policyHash names a policy: what stands in the configuration, in the mappings and in
// every record.
func policyHash(w *world) string {
	h := sha256.New()
	h.Write(w.cfg.Hash[:])
	for _, name := range slices.Sorted(maps.Keys(w.servers.mappings)) {
		fmt.Fprintln(h, w.servers.mappings[name].Digest())
	}
	for ag := range w.roster.All() {
		fmt.Fprintf(h, "\n%s\n", ag.ID)
		hashSet(h, ag.Set)
		if ag.Record != nil {
			fmt.Fprintln(h, strings.Join(ag.Record.Toolset, ","), ag.Record.Parent, strings.Join(ag.Record.Approve, ","))
		}
		if line, err := w.roster.Lineage(ag.ID); err == nil && w.roster.Resting() { // it holds what the agent is kept within as well
			for _, link := range slices.Concat(line.Chain, line.Ceilings, line.Declared) {
				hashSet(h, link.Set)
			}
			fmt.Fprintln(h, line.Approve)
		}
	}
	fmt.Fprintln(h, w.policy.Skills.Digest())
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func hashSet(h hash.Hash, set *capability.Set) {
	for g := range set.All() {
		fmt.Fprintln(h, g)
	}
}
