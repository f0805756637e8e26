package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/mapping"
	"capgate/wire"
)

// wrapped is one server that the command line describes.
type wrapped struct {
	agent, url, mapping, listen, sandbox string
	grants, mayAsk, env                  []string
	unpinned                             bool
	command                              []string

	folder string // where a program runs, if only the command line says so
}

func (a *app) wrap() *cobra.Command {
	var o wrapped
	cmd := &cobra.Command{
		Use:   "wrap --agent AGENT [--grant GRANT]... -- COMMAND [ARGUMENT]...",
		Short: "Put the gateway in front of one server",
		Long: "wrap serves one MCP server to one agent, its tools under their own names. Where a\n" +
			"configuration is found, the agent is one of it; elsewhere the grants stand on the\n" +
			"command line, and no file is needed.",
		Example: "  capgate wrap --agent me --sandbox . --grant 'fs.read{paths=[docs]}' --mapping filesystem -- npx -y @modelcontextprotocol/server-filesystem .\n" +
			"  capgate wrap --agent scout --url https://example.com/mcp --listen 127.0.0.1:8421",
		RunE: func(cmd *cobra.Command, args []string) error {
			o.command = args
			if o.agent == "" || (o.url == "") == (len(args) == 0) {
				return usage(errors.New("wrap needs --agent, and either a command behind -- or --url"), "capgate wrap --help shows an example")
			}
			ctx, stop := untilEnded(cmd.Context())
			defer stop()
			return a.runWrap(ctx, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the agent's `id`")
	f.StringArrayVar(&o.grants, "grant", nil, "a `grant` of the agent, where there is no configuration: fs.read{paths=[docs]}")
	f.StringVar(&o.sandbox, "sandbox", "", "the `folder` that grants hang from, where there is no configuration")
	f.StringVar(&o.mapping, "mapping", "", "the `name` of the mapping that says what the arguments mean: a built-in one, or one of the configuration")
	f.StringVar(&o.url, "url", "", "the `address` of a server instead of a command")
	f.StringVar(&o.listen, "listen", "", "serve HTTP at an `address` of this machine, or unix:PATH, instead of standard input and output")
	f.StringSliceVar(&o.mayAsk, "may-ask", []string{"roots"}, "what the server may ask of the client: roots, elicitation, sampling")
	f.StringArrayVar(&o.env, "env", nil, "`NAME=VALUE` for the server's environment")
	f.BoolVar(&o.unpinned, "unpinned", false, "show tools whose definition has changed, too")
	return cmd
}

func (a *app) runWrap(ctx context.Context, o wrapped) error {
	for _, e := range o.env {
		if !strings.Contains(e, "=") {
			return usage(fmt.Errorf("--env: %q gives no value", e), "write NAME=VALUE")
		}
	}
	dir, err := os.MkdirTemp("", "capgate-wrap-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left over is in the temporary folder
	w, found, err := a.wrapWorld(o, dir)
	if err != nil {
		return err
	}
	if err := startable(w.cfg); err != nil {
		return err
	}
	ag, err := w.sound(o.agent)
	if err != nil {
		return err
	}
	switch {
	case found:
	case len(o.grants) == 0:
		a.ui.note("no --grant is given, so that nothing of the server is shown; capgate wrap --help has an example")
	case o.mapping == "" && slices.ContainsFunc(o.grants, needsMapping):
		a.ui.note("no --mapping is given, so that nothing but tool.invoke grants a tool of it; there are mappings of: %s", strings.Join(mapping.Builtins(), ", "))
	}
	if o.listen == "" {
		return a.runStdio(ctx, w, ag.ID, func(*gateway) (source, error) { return source{fixed: w.cfg, view: w.view}, nil })
	}
	return a.wrapHTTP(ctx, w, ag.ID, found)
}

// needsMapping reports whether a grant is of what tools do, which only a mapping says of them.
func needsMapping(grant string) bool {
	for _, verb := range []string{"tool.", "prompt.", "resource.", "provider.", "rye."} {
		if strings.HasPrefix(grant, verb) {
			return false
		}
	}
	return true
}

// wrapHTTP serves over HTTP. Without a configuration nobody could have issued a
// token, so that one is made, which is good until the process ends.
func (a *app) wrapHTTP(ctx context.Context, w *world, agent string, found bool) error {
	tune()
	w.only = agent
	log := a.logger(w, slog.LevelInfo)
	g, err := openGateway(ctx, w, log)
	if err != nil {
		return broken(err, "")
	}
	l, err := listen(ctx, w, log)
	if err != nil {
		return errors.Join(broken(err, listenHint(err)), g.close())
	}
	a.ui.note("listening at %s", w.address(l))
	if !found {
		p := *w.policy
		token, creds, err := p.Credentials.Issue(agent, "wrap", 365*24*time.Hour, time.Now(), rand.Reader)
		if err != nil {
			return errors.Join(err, l.Close(), g.close())
		}
		p.Credentials = creds
		g.server.Adopt(&p)
		a.ui.note("the token of %s, until this ends: %s", agent, token)
	}
	follow := g.recheck
	if found {
		follow = func(ctx context.Context) error { return g.watch(ctx, source{fixed: w.cfg, view: w.view}) }
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		defer stop() // as for serve
		done <- follow(ctx)
	}()
	err = serveHTTP(ctx, l, g.server, log)
	stop()
	return errors.Join(err, <-done, g.close())
}

// wrapWorld writes the configuration that the command line means, so that it is
// read as strictly as any other.
func (a *app) wrapWorld(o wrapped, dir string) (w *world, found bool, err error) {
	view, err := hostView()
	if err != nil {
		return nil, false, broken(err, "")
	}
	file, err := config.Find(a.settings.Config, view.Cwd, os.Getenv("XDG_CONFIG_HOME"), view.Home)
	if err != nil && !errors.Is(err, config.ErrNone) {
		return nil, false, broken(err, "")
	}
	if found = err == nil; found {
		if err := o.outOfPlace(file); err != nil {
			return nil, false, err
		}
	}
	var text bytes.Buffer
	var whole *config.Config
	if found {
		whole, err = underConfig(&text, o.mapping, file, view)
	} else {
		file, o.command, o.folder = filepath.Join(dir, config.FileName), hung(o.command, view.Cwd), view.Cwd
		err = a.underGrants(&text, &o, dir, view)
	}
	if err != nil {
		return nil, found, err
	}
	fmt.Fprintln(&text, "introspection: false") // one server is shown, and nothing else
	o.describe(&text)
	cfg, _, err := config.Parse(file, text.Bytes(), view)
	if err != nil {
		return nil, found, ofLine(err)
	}
	if !found {
		startHere(&cfg.Upstreams[0], cfg, view)
	}
	a.listen = o.listen
	if cfg, err = a.at(cfg, view); err != nil {
		return nil, found, err
	}
	cfg.Wrapped = true
	if cfg.Above = whole; found {
		cfg.Tests = slices.DeleteFunc(slices.Clone(whole.Tests), isElsewhere)
	}
	roster, err := agents.Load(agents.Options{Config: cfg.Sandbox, View: view}, cfg.Agents...)
	if err != nil {
		return nil, found, broken(err, "")
	}
	if err := sayable(roster, found); err != nil {
		return nil, found, err
	}
	if w, err = newWorld(cfg, roster, view); err != nil {
		return nil, found, broken(err, "")
	}
	w.policy.Flags = !found
	return w, found, nil
}

// outOfPlace refuses what is for where there is no configuration.
func (o wrapped) outOfPlace(file string) error {
	const text = "%s is for where there is no configuration, and there is %s"
	switch {
	case len(o.grants) > 0:
		return usage(fmt.Errorf(text, "--grant", file), "capgate agents grant changes the record of an agent")
	case o.sandbox != "":
		return usage(fmt.Errorf(text, "--sandbox", file), "sandbox: of the configuration, or of the agent's record, says it there")
	}
	return nil
}

// isElsewhere reports whether a policy test is about a server or a folder of skills that wrap does
// not have: nothing is allowed of those.
func isElsewhere(t config.Test) bool { return t.Tool != "" || t.Skill != "" }

// ofLine is what is wrong with a configuration that the command line has described: nobody has
// written the file that it would stand in.
func ofLine(err error) error {
	for _, e := range config.Errors(err) {
		e.Pos = capability.Pos{}
	}
	return usage(err, "")
}

// hung is a command whose program hangs from where its caller is, as a shell has it, and
// not from the file that says so. Where there is a configuration, its folder is meant, as
// clients start wrap in any.
func hung(command []string, cwd string) []string {
	if len(command) == 0 || !strings.Contains(command[0], "/") || strings.ContainsRune("/~$", rune(command[0][0])) {
		return command
	}
	return append([]string{cwd + "/" + command[0]}, command[1:]...) // not cleaned: a .. is refused
}

// startHere has a program run where its caller is, unless there is a sandbox: the file
// that was read lies where nobody is.
func startHere(u *config.Upstream, cfg *config.Config, view capability.View) {
	if u.Command != nil && cfg.Sandbox.IsZero() {
		u.Cwd = view.Cwd
	}
}

// mapped refuses a mapping that there is not, as of a flag: nobody has written the
// configuration that it would stand in.
func mapped(name string, whole *config.Config) error {
	if name == "" || slices.Contains(mapping.Builtins(), name) {
		return nil
	}
	all, own := mapping.Builtins(), "; one of your own needs a configuration, with its folder in mappings:"
	if whole != nil {
		known, _, err := config.LoadMappings(&config.Config{File: whole.File, Mappings: whole.Mappings})
		if err != nil {
			return broken(err, "")
		}
		all, own = slices.AppendSeq(all, maps.Keys(known)), ""
		slices.Sort(all)
	}
	if slices.Contains(all, name) {
		return nil
	}
	return usage(fmt.Errorf("--mapping: there is no mapping %q", name), "it takes a name, as in server: of a mapping: "+strings.Join(all, ", ")+own)
}

// startable refuses a program that is not there, for the same reason as sayable.
func startable(cfg *config.Config) error {
	for _, u := range cfg.Upstreams {
		if u.Command == nil {
			continue
		}
		if _, err := exec.LookPath(u.Command[0]); err != nil {
			return broken(fmt.Errorf("the server cannot be started: %w", err), "name a program that PATH leads to, or one by its whole path")
		}
		if _, err := os.Stat(cmp.Or(u.Cwd, cfg.Sandbox.Dir, ".")); err != nil {
			return broken(fmt.Errorf("the server cannot be started: the directory to run it in: %w", err), "make it, or name another with --sandbox or in the configuration")
		}
	}
	return nil
}

// sayable refuses grants of the command line that do not say what they were meant to.
// Nobody reads the log of what a client launches, which would see a server without tools.
func sayable(roster *agents.Roster, found bool) error {
	if found {
		return nil // they are not of the command line
	}
	for _, f := range roster.Findings() {
		if f.Severity < capability.Warning {
			continue
		}
		hint := f.Hint
		if f.Code == "no_root" {
			hint = "name the folder that grants hang from with --sandbox"
		}
		return usage(fmt.Errorf("--grant: %s", f.Text), hint)
	}
	return nil
}

// underConfig takes over where agents and state are from a configuration, and how much
// agents may cost. It returns the configuration.
func underConfig(text *bytes.Buffer, named, file string, view capability.View) (*config.Config, error) {
	cfg, _, err := config.Load(file, view)
	if err != nil {
		return nil, broken(err, "")
	}
	if err := mapped(named, cfg); err != nil {
		return nil, err
	}
	g := cfg.Guardrail
	onError, targets := "deny", "clear"
	if g.Continue {
		onError = "continue"
	}
	if g.HMAC {
		targets = "hmac"
	}
	fmt.Fprintf(text, "agents: %s\nstate: %s\n", quotedList(cfg.Agents), quoted(cfg.State))
	fmt.Fprintf(text, "guardrail: { log: %s, on_error: %s, targets: %s, fsync: %s }\n", quoted(g.Log), onError, targets, g.Fsync)
	l := cfg.Limits
	fmt.Fprintf(text, "limits: { call: %s, start: %s, body: %dKiB, answer: %dKiB, calls_per_minute: %d, upstream_processes: %d, sessions: %d }\n",
		l.Call, l.Start, l.Body>>10, l.Answer>>10, l.CallsPerMinute, l.UpstreamProcesses, l.Sessions)
	if len(cfg.Mappings) > 0 {
		fmt.Fprintf(text, "mappings: %s\n", quotedList(cfg.Mappings))
	}
	if !cfg.Sandbox.IsZero() {
		fmt.Fprintf(text, "sandbox: %s\n", quoted(cfg.Sandbox.Dir))
	}
	return cfg, nil
}

// underGrants writes the record of an agent that only the command line knows.
func (a *app) underGrants(text *bytes.Buffer, o *wrapped, dir string, view capability.View) error {
	id, err := agentID(o.agent)
	if err != nil {
		return err
	}
	if err := mapped(o.mapping, nil); err != nil {
		return err
	}
	draft := agents.Draft{ID: id, Grants: []capability.Spec{}}
	if o.sandbox != "" { // the root only: as a line of the record it would grant something
		root, err := capability.ParseRoot(o.sandbox, view.Cwd, view)
		if err != nil {
			return usage(err, "")
		}
		fmt.Fprintf(text, "sandbox: %s\n", quoted(root.Dir))
		o.folder = root.Dir
	}
	for _, g := range o.grants {
		spec, err := capability.ParseSpec(g)
		if err != nil {
			return usage(err, "a grant is written verb{key=[a,b]}")
		}
		draft.Grants = append(draft.Grants, spec)
	}
	data, err := agents.New(draft)
	if err != nil {
		return usage(err, "")
	}
	records := filepath.Join(dir, "agents")
	if err := os.Mkdir(records, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(records, "agent.md"), data, 0o600); err != nil {
		return err
	}
	state := stateOfWrap(view.Home)
	if state == "" {
		return broken(errors.New("nothing here says where wrap may keep pins and events"), "set HOME, or XDG_STATE_HOME to a whole path")
	}
	if err := os.MkdirAll(filepath.Dir(state), 0o700); err != nil {
		return broken(fmt.Errorf("keep pins and events: %w", err), "set XDG_STATE_HOME to a folder that may be written")
	}
	fmt.Fprintf(text, "agents: %s\nstate: %s\n", quoted(records), quoted(state))
	return nil
}

// describe writes the server.
func (o wrapped) describe(text *bytes.Buffer) {
	sum := sha256.Sum256([]byte(cmp.Or(o.url, o.folder) + "\x00" + strings.Join(o.command, "\x00")))
	name := "wrapped-" + hex.EncodeToString(sum[:6]) // its pins are not those of another server
	fmt.Fprintf(text, "upstreams:\n  %s:\n    prefix: none\n    may_ask: %s\n", name, quotedList(o.mayAsk))
	if o.url != "" {
		fmt.Fprintf(text, "    url: %s\n", quoted(o.url))
	} else {
		fmt.Fprintf(text, "    command: %s\n", quotedList(o.command))
	}
	if o.mapping != "" {
		fmt.Fprintf(text, "    mapping: %s\n", quoted(o.mapping))
	}
	if o.unpinned {
		fmt.Fprintln(text, "    pins: off")
	}
	if len(o.env) > 0 {
		fmt.Fprintln(text, "    env:")
		for _, e := range o.env {
			key, value, _ := strings.Cut(e, "=")
			fmt.Fprintf(text, "      %s: %s\n", quoted(key), quoted(value))
		}
	}
}

// quoted writes text as a scalar that YAML reads as this text.
func quoted(text string) string { return string(wire.AppendString(nil, text)) }

func quotedList(list []string) string {
	all := make([]string, len(list))
	for i, s := range list {
		all[i] = quoted(s)
	}
	return "[" + strings.Join(all, ", ") + "]"
}
