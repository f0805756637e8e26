package main

import (
	"cmp"
	"fmt"

	"capgate/config"
	"capgate/provider"
	"capgate/proxy"
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
			Vendor: vendor, URL: cmp.Or(p.URL, vendor.Base), Rules: rules(p), Start: p.Start, Idle: p.Idle,
			Key: func() (string, error) { return s.keeper.Expand(p.Key) },
		})
	}
	return all, nil
}

// rules are what the operator says of a provider for every agent.
func rules(p *config.Provider) provider.Policy {
	r := provider.Policy{Strict: p.Strict, Relayed: p.URL != "", Pass: p.Pass}
	for _, c := range p.Connectors {
		r.Connectors = append(r.Connectors, provider.Connector{Name: c.Name, URL: c.URL, Tools: c.Tools})
	}
	return r
}

// clientVariable is what the clients of a vendor read its address from, "" where
// there is no such custom.
func clientVariable(vendor string) (address, key string) {
	switch vendor {
	case "anthropic":
		return "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"
	case "openai":
		return "OPENAI_BASE_URL", "OPENAI_API_KEY"
	case "gemini":
		return "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"
	}
	return "", ""
}

// introduce says how agents reach the providers of a gateway at an address.
func (u *ui) introduce(at string, providers []*proxy.Provider) {
	for _, p := range providers {
		base := p.Vendor.BaseURL(at)
		if address, key := clientVariable(p.Vendor.Name); address != "" {
			u.note("provider %s: %s=%s, with the agent's token as %s", p.Vendor.Name, address, base, key)
		} else {
			u.note("provider %s: %s, with the agent's token for a key", p.Vendor.Name, base)
		}
	}
}
