package main

import (
	"cmp"
	"fmt"
	"os"

	"capgate/agents"
	"capgate/config"
	"capgate/doctor"
	"capgate/provider"
	"capgate/proxy"
	"capgate/secrets"
)

// providers turns those of the configuration into those of a policy. Keys are read
// when they are used.
func (s *servers) providers() ([]*proxy.Provider, error) {
	all := make([]*proxy.Provider, 0, len(s.cfg.Providers))
	for i := range s.cfg.Providers {
		p := &s.cfg.Providers[i]
		vendor, ok := provider.Lookup(p.Name)
		if !ok {
			return nil, fmt.Errorf("%s: there is no provider %q", p.Pos, p.Name)
		}
		all = append(all, &proxy.Provider{
			Vendor: vendor, Agents: p.Agents, URL: cmp.Or(p.URL, vendor.Base), Rules: rules(vendor, p), Start: p.Start, Idle: p.Idle,
			Key: func() (string, error) { return s.keeper.Expand(p.Key) },
		})
	}
	return all, nil
}

// rules are what the operator says of a provider for every agent.
func rules(vendor provider.Vendor, p *config.Provider) provider.Policy {
	r := provider.Policy{Strict: p.Strict, Relayed: vendor.Relayed(p.URL), Pass: p.Pass}
	for _, c := range p.Connectors {
		r.Connectors = append(r.Connectors, provider.Connector{Name: c.Name, URL: c.URL, Tools: c.Tools})
	}
	return r
}

// custom is what the clients of a vendor read from their environment.
type custom struct {
	address string   // of the API, "" where there is no such custom
	keys    []string // the first is the one to set
}

func customOf(vendor string) custom {
	switch vendor {
	case "anthropic":
		return custom{"ANTHROPIC_BASE_URL", []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}}
	case "openai":
		return custom{"OPENAI_BASE_URL", []string{"OPENAI_API_KEY", "CODEX_API_KEY"}}
	case "gemini":
		return custom{"GOOGLE_GEMINI_BASE_URL", []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}}
	case "mistral":
		return custom{"", []string{"MISTRAL_API_KEY"}}
	case "openrouter":
		return custom{"", []string{"OPENROUTER_API_KEY"}}
	case "perplexity":
		return custom{"", []string{"PERPLEXITY_API_KEY"}}
	case "xai":
		return custom{"", []string{"XAI_API_KEY"}}
	}
	return custom{}
}

// introduce says how agents reach the providers of a gateway at an address.
func (u *ui) introduce(at string, providers []*proxy.Provider) {
	for _, p := range providers {
		base := p.Vendor.BaseURL(at)
		if c := customOf(p.Vendor.Name); c.address != "" {
			u.note("provider %s: %s=%s, with the agent's token as %s", p.Vendor.Name, c.address, base, c.keys[0])
		} else {
			u.note("provider %s: %s, with the agent's token for a key", p.Vendor.Name, base)
		}
	}
}

// providerOf is what doctor examines of a provider: where its key comes from, and
// which others a client that is started here would find.
func (w *world) providerOf(p *config.Provider) doctor.Provider {
	d := doctor.Provider{Name: p.Name, Pos: p.Pos, Known: customOf(p.Name).keys}
	if vendor, ok := provider.Lookup(p.Name); ok && vendor.Widens() && vendor.Relayed(p.URL) {
		d.Relay = p.URL
	}
	if handles, err := secrets.Handles(p.Key); err == nil && len(handles) == 1 {
		d.Source = w.cfg.Secrets[handles[0].Name].Env
	}
	for _, name := range d.Known {
		if value := os.Getenv(name); value != "" && !agents.IsToken(value) {
			d.Set = append(d.Set, name)
		}
	}
	return d
}
