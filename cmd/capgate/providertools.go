package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"capgate/capability"
	"capgate/config"
	"capgate/provider"
)

func (a *app) providers() *cobra.Command {
	cmd := &cobra.Command{Use: "providers", Short: "What the tools of a model's provider become for an agent"}
	cmd.AddCommand(a.providersList(), a.providersShow())
	return cmd
}

// providerLine is one provider as providers list prints it.
type providerLine struct {
	Name       string   `json:"name"`
	URL        string   `json:"url"`
	Configured bool     `json:"configured"`
	Subdomains string   `json:"subdomains"`
	Tools      []string `json:"tools"`
}

func (a *app) providersList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the providers whose requests capgate can read",
		Args:  takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			w, err := a.load()
			if err != nil {
				return err
			}
			var lines []providerLine
			for _, vendor := range provider.Vendors() {
				lines = append(lines, w.providerLine(vendor))
			}
			if a.ui.json {
				return a.ui.emit(lines)
			}
			for _, l := range lines {
				state := "not in the configuration"
				switch vendor, _ := provider.Lookup(l.Name); {
				case l.Configured && !vendor.Widens():
					state = "no tool of it takes hosts"
				case l.Configured:
					state = "subdomains: " + l.Subdomains
				}
				a.ui.printf("%-10s  %-44s  %s\n", l.Name, cell(l.URL), a.ui.paint(faint, state))
			}
			return nil
		},
	}
}

func (w *world) providerLine(vendor provider.Vendor) providerLine {
	l := providerLine{Name: vendor.Name, URL: vendor.Base, Subdomains: "accept"}
	if p := w.configured(vendor.Name); p != nil {
		l.URL, l.Configured = cmp.Or(p.URL, vendor.Base), true
		if p.Strict {
			l.Subdomains = "strict"
		}
	}
	for _, t := range vendor.Translate(provider.Policy{}) {
		l.Tools = append(l.Tools, t.Name)
	}
	return l
}

// configured finds what the configuration says of a provider, nil for nothing.
func (w *world) configured(name string) *config.Provider {
	for i := range w.cfg.Providers {
		if w.cfg.Providers[i].Name == name {
			return &w.cfg.Providers[i]
		}
	}
	return nil
}

func (a *app) providersShow() *cobra.Command {
	var agent, name string
	cmd := &cobra.Command{
		Use:     "show --agent AGENT --provider PROVIDER",
		Short:   "Show the provider's own tools as an agent may ask for them",
		Long:    "show prints the tools that run at a provider, as a request of the agent carries\nthem when the gateway passes it on: with the agent's hosts as their domains. What\nis left out or narrowed is said with its reason.",
		Example: "  capgate providers show --agent scout --provider anthropic",
		Args:    takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			vendor, ok := provider.Lookup(name)
			if !ok {
				return usage(fmt.Errorf("there is no provider %q", name), nearest(name, provider.Names()))
			}
			w, err := a.load()
			if err != nil {
				return err
			}
			ag, err := w.sound(agent)
			if err != nil {
				return err
			}
			tools, err := w.translated(vendor, ag.ID)
			if err != nil {
				return err
			}
			local := w.webTools(ag.ID)
			if a.ui.json {
				return a.ui.emit(map[string]any{"agent": ag.ID, "provider": vendor.Name, "tools": tools, "local": local})
			}
			if len(local) > 0 {
				a.ui.note("what a provider reads comes to the model before anybody has seen it: prefer %s where it can do the same", strings.Join(local, ", "))
			}
			return a.printProviderTools(tools)
		},
	}
	cmd.Flags().StringVar(&agent, "agent", "", "the `id` of the agent")
	cmd.Flags().StringVar(&name, "provider", "", "the `name` of the provider")
	_ = cmd.MarkFlagRequired("agent")    // the flags are there
	_ = cmd.MarkFlagRequired("provider") //
	return cmd
}

// nearest is a hint at the name that was meant, or at those there are.
func nearest(name string, known []string) string {
	if near := capability.Closest(name, known); near != "" {
		return "did you mean " + near + "?"
	}
	return "there are " + strings.Join(known, ", ")
}

// translated writes what an agent holds as the tools of a provider.
func (w *world) translated(vendor provider.Vendor, agent string) ([]provider.Tool, error) {
	reach, denied := w.gate.Provider(agent)
	if denied != nil {
		return nil, broken(fmt.Errorf("%s: %s", denied.Decision.Code, denied.Why), "")
	}
	policy := provider.Policy{}
	if p := w.configured(vendor.Name); p != nil {
		if p.Agents != nil && !slices.Contains(p.Agents, agent) {
			return nil, broken(fmt.Errorf("%s is not for %s: agents: at %s names others", vendor.Name, agent, p.Pos), "")
		}
		policy = rules(vendor, p)
	}
	policy.Authority = reach
	return vendor.Translate(policy), nil
}

// connected decides a tool of a server that some provider connects to, by the name that
// grants have for it. It is allowed if any provider may offer it to the agent.
func (w *world) connected(agent, tool string) (d capability.Decision, ok bool) {
	reach, denied := w.gate.Provider(agent)
	for i := range w.cfg.Providers {
		p := &w.cfg.Providers[i]
		for _, c := range p.Connectors {
			own, named := strings.CutPrefix(tool, c.Name+".")
			if !named || !slices.Contains(c.Tools, own) || d.Allowed() {
				continue
			}
			ok = true
			need, err := capability.Keyed("tool.invoke", capability.Word{Dim: "tool", Value: tool})
			switch {
			case denied != nil:
				d = denied.Decision
			case err != nil:
				d = capability.Denial(capability.UnknownTool, nil)
			case p.Agents != nil && !slices.Contains(p.Agents, agent):
				d = capability.Denial(capability.NotAvailable, need)
			default:
				d = reach.Require(need)
			}
		}
	}
	return d, ok
}

// webTools names the tools behind the gateway that read the web for an agent: what
// they return passes the gateway.
func (w *world) webTools(agent string) []string {
	names := []string{}
	for _, u := range w.policy.Upstreams {
		for _, name := range u.Mapping.Names() {
			if t := u.Tool(name); slices.Contains(t.Mapping.Surface(), "net.get") && w.gate.Visible(agent, t) {
				names = append(names, t.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// printProviderTools prints what may stand in a request, and below it why the rest
// does not.
func (a *app) printProviderTools(tools []provider.Tool) error {
	entries := make([]json.RawMessage, 0, len(tools))
	for _, t := range tools {
		if t.Entry != nil {
			entries = append(entries, t.Entry)
		}
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	a.ui.printf("%s\n", b.Bytes())
	for _, t := range tools {
		for _, c := range t.Changes {
			color := yellow
			if c.Did == provider.Omitted {
				color = red
			}
			word := strings.TrimSpace(c.Did + " " + string(c.Code))
			if c.Did != provider.Omitted {
				word = c.Did
			}
			line := c.Why
			if c.Did == provider.Wider {
				line = strings.Join(c.Hosts, ", ") + ": " + line
			}
			a.ui.printf("%s: %s: %s\n", plain(t.Name), a.ui.paint(color, word), plain(line))
		}
	}
	return nil
}
