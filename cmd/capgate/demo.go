package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
	"capgate/guardrail"
	"capgate/wire"
)

func (a *app) demo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "A gateway, an agent, one allowed and one denied call, the event: in ten seconds",
		Long:  "demo runs a gateway in a folder that is gone afterwards, with the server that comes\nwith capgate, and calls it as an agent would, over HTTP.",
		Args:  takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.MkdirTemp("", "capgate-demo-")
			if err != nil {
				return err
			}
			defer func() { _ = os.RemoveAll(dir) }() // what is left over is in the temporary folder
			ctx, cancel := context.WithTimeout(cmd.Context(), demoTime)
			defer cancel()
			return a.runDemo(ctx, dir)
		},
	}
}

const demoTime = 30 * time.Second

// What the demo's folder holds.
const (
	demoConfig = "agents: ./agents\nsandbox: ./work\nstate: ./state\nlisten: 127.0.0.1:0\nupstreams:\n  files: { builtin: fs }\n"
	demoRecord = "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\nYou are the scout: you read the documentation.\n"
)

// stage writes the folder of the demo.
func stage(dir string) error {
	for name, text := range map[string]string{
		config.FileName: demoConfig, "agents/scout.md": demoRecord,
		"work/docs/guide.md": "Read me: this is within what scout was granted.\n", "work/notes/plans.md": "Nobody gave this to scout.\n",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) runDemo(ctx context.Context, dir string) (err error) {
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if err := stage(dir); err != nil {
		return err
	}
	a.settings.Config = filepath.Join(dir, config.FileName)
	w, err := a.load()
	if err != nil {
		return err
	}
	g, err := openGateway(ctx, w, a.logger(w, quiet))
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", w.cfg.Listen.Address)
	if err != nil {
		return errors.Join(err, g.close())
	}
	token, creds, err := new(agents.Credentials).Issue("agents/scout", "demo", time.Hour, time.Now(), rand.Reader)
	if err != nil {
		return errors.Join(err, l.Close(), g.close())
	}
	p := *w.policy
	p.Credentials = creds
	g.server.Adopt(&p)
	ctx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- serveHTTP(ctx, l, g.server, g.log) }()
	err = a.play(ctx, w, "http://"+l.Addr().String()+"/mcp", token)
	stop()
	return errors.Join(err, <-served, g.close())
}

// scene is the demo: what an agent does, and what comes of it.
type scene struct {
	Record  string            `json:"record"`
	Grants  []string          `json:"grants"`
	Tools   []string          `json:"tools"`
	Calls   []sceneCall       `json:"calls"`
	Events  []json.RawMessage `json:"events"`
	Explain explanation       `json:"explanation"`

	agent   *agents.Agent
	entries []guardrail.Entry
}

type sceneCall struct {
	Path   string          `json:"path"`
	Denied bool            `json:"denied"`
	Text   string          `json:"text"`
	Result json.RawMessage `json:"result"`
}

// play has the agent do it.
func (a *app) play(ctx context.Context, w *world, at, token string) (err error) {
	s := scene{Record: demoRecord, Grants: []string{}}
	if s.agent, err = w.sound("scout"); err != nil {
		return err
	}
	for _, grant := range s.agent.Set.ByRisk() {
		s.Grants = append(s.Grants, grant.String())
	}
	agent := demoAgent{ctx: ctx, at: at, token: token}
	list, err := agent.ask("tools/list", "", `{}`)
	if err != nil {
		return err
	}
	var tools struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(list, &tools); err != nil {
		return err
	}
	for _, t := range tools.Tools {
		s.Tools = append(s.Tools, t.Name)
	}
	for _, path := range []string{"docs/guide.md", "notes/plans.md"} {
		result, err := agent.ask("tools/call", "files__read", `{"name":"files__read","arguments":{"path":`+quoted(path)+`}}`)
		if err != nil {
			return err
		}
		s.Calls = append(s.Calls, sceneCall{path, bytes.Contains(result, []byte(`"isError":true`)), strings.TrimSpace(textOf(result)), result})
	}
	for e, err := range guardrail.Read(w.cfg.Guardrail.Log, guardrail.Filter{Kind: "decision"}) {
		if err != nil {
			return err
		}
		s.entries, s.Events = append(s.entries, e), append(s.Events, json.RawMessage(e.Line))
	}
	if s.Explain, err = w.explain(s.agent, "fs.read{path=notes/plans.md}"); err != nil {
		return err
	}
	if a.ui.json {
		return a.ui.emit(s)
	}
	a.show(&s)
	return nil
}

// show prints a scene for people.
func (a *app) show(s *scene) {
	u := a.ui
	head := func(text string) { u.printf("\n%s\n", u.paint(bold, text)) }
	head("The record of the agent")
	u.printf("%s", indented(s.Record))
	head("What it means: capgate agents capabilities scout")
	for _, grant := range s.agent.Set.ByRisk() {
		u.printf("  %s  %s\n", u.paint(riskColor(grant.Risk()), grant.Risk().String()), grant)
	}
	head("The agent asks for its tools, of which the server has more")
	for _, name := range s.Tools {
		u.printf("  %s\n", cell(name))
	}
	for _, c := range s.Calls {
		head("The agent calls files__read of " + c.Path)
		color := green
		if c.Denied {
			color = red
		}
		u.printf("  %s\n", u.paint(color, plain(c.Text)))
	}
	head("What stands in the log of events: capgate events query --agent scout")
	for i := range s.entries {
		e := &s.entries[i]
		needs := ""
		for _, n := range e.Needs {
			needs += " " + n.Verb + " " + n.Object
		}
		u.printf("  %s %s %s%s %s\n", e.Ref, u.paint(effectColor(e.Decision), e.Decision), e.Tool, plain(needs), e.Code)
	}
	head("Why, and what would change it: capgate explain --agent scout --requirement 'fs.read{path=notes/plans.md}'")
	a.printExplanation(s.Explain)
}

func effectColor(decision string) string {
	if decision == capability.Allow.String() {
		return green
	}
	return red
}

func indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

// demoAgent is a client as agents have one.
type demoAgent struct {
	ctx       context.Context //nolint:containedctx // the demo is one run
	at, token string
}

const demoMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

const maxDemo = 1 << 20 // bytes of an answer

// ask makes a request and returns its result.
func (d demoAgent) ask(method, name, params string) (json.RawMessage, error) {
	params = strings.TrimSuffix(params, "}")
	if params != "{" {
		params += ","
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + demoMeta + `}}`
	r, err := http.NewRequestWithContext(d.ctx, http.MethodPost, d.at, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, h := range [][2]string{
		{"Authorization", "Bearer " + d.token},
		{"Content-Type", "application/json"},
		{"Accept", "application/json, text/event-stream"},
		{"MCP-Protocol-Version", "2026-07-28"},
		{"Mcp-Method", method},
		{"Mcp-Name", name},
	} {
		if h[1] != "" {
			r.Header.Set(h[0], h[1])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it has been read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxDemo))
	if err != nil {
		return nil, err
	}
	doc, err := wire.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("the gateway answered %q: %w", data, err)
	}
	result, ok := doc.Root().Get("result")
	if !ok {
		return nil, fmt.Errorf("the gateway answered %s", data)
	}
	return json.RawMessage(result.Raw()), nil
}

// textOf is what a model reads of a result.
func textOf(result []byte) string {
	var r struct{ Content []struct{ Text string } }
	if json.Unmarshal(result, &r) != nil {
		return string(result)
	}
	var all []string
	for _, c := range r.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}
