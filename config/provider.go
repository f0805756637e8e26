package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/provider"
)

// Provider is a model's vendor that agents reach through the gateway, as
// providers: describes it.
type Provider struct {
	Name   string // of a vendor that package provider knows
	Pos    capability.Pos
	URL    string        // what paths of its API hang from, "" for the vendor's own
	Key    string        // the handle of the secret that holds its key
	Agents []string      // the ids of those that may use it; nil: all of them
	Strict bool          // a host that is granted alone is not written where the vendor reaches beneath it too
	Start  time.Duration // for its answer to begin
	Idle   time.Duration // for its answer to go on

	Connectors []Connector // the MCP servers that it may connect to, in the order written
	Pass       []string    // members and types of requests that the operator vouches for
}

// Connector is an MCP server that a provider may connect to for an agent.
type Connector struct {
	Name  string
	URL   string   // https
	Tools []string // those that agents may be granted, as tool.invoke of name.tool
	Pos   capability.Pos
}

// The limits that stand unless others are written. An answer that is not streamed
// begins when the model has thought it all out.
const (
	defaultProviderStart = 10 * time.Minute
	defaultProviderIdle  = 5 * time.Minute
)

// providerKeys is the table of one provider.
func providerKeys() []key[Provider] {
	return []key[Provider]{
		{
			name: "key", takes: "the handle of a secret", read: (*reader).providerKey,
			help: "{{secret:name}}: what the gateway shows the provider in place of the agent's token",
		},
		{
			name: "url", takes: "a URL", read: (*reader).providerURL,
			help: "where its API is, if not at the vendor's own address; without the /v1 of its paths",
		},
		{
			name: "agents", takes: "a list of agents", help: "those that may use it; all of them, if this is left out",
			read: func(r *reader, n *yaml.Node, p *Provider) {
				p.Agents = r.words(n, "agents", "a list of agents", func(n *yaml.Node) string {
					text, _ := r.text(n, "agents", "the id of an agent")
					id := capability.AgentID(text)
					if text != "" && id == "" {
						r.at(n, "", "%q is no id of an agent", clip(text))
					}
					return id
				})
			},
		},
		{
			name: "subdomains", takes: "accept or strict",
			help: "what becomes of a host that is granted without what is beneath it, where the vendor cannot tell the two apart",
			read: func(r *reader, n *yaml.Node, p *Provider) {
				p.Strict = r.word(n, "subdomains", "accept", "strict") == "strict"
			},
		},
		{
			name: "connectors", takes: "a map of servers", read: (*reader).connectors, under: lines("providers.*.connectors.*.", connectorKeys()),
			help: "MCP servers that the provider may connect to by itself; no others",
		},
		{
			name: "pass", takes: "a list of names", help: "members and types of requests that this version does not know, and that may go up all the same",
			read: func(r *reader, n *yaml.Node, p *Provider) {
				p.Pass = r.words(n, "pass", "a list of names", func(n *yaml.Node) string {
					text, _ := r.text(n, "pass", "a name")
					return text
				})
			},
		},
		{
			name: "limits", takes: "a map of limits", under: lines("providers.*.limits.", providerLimitKeys()),
			help: "how long the provider may keep an agent waiting",
			read: func(r *reader, n *yaml.Node, p *Provider) { fill(r, n, "limits", providerLimitKeys(), p) },
		},
	}
}

// providerLimitKeys is the table of the limits of one provider.
func providerLimitKeys() []key[Provider] {
	return []key[Provider]{
		{
			name: "start", takes: "a duration", help: "how long an answer may take to begin, 10m unless written",
			read: func(r *reader, n *yaml.Node, p *Provider) { r.wait(n, "limits.start", &p.Start) },
		},
		{
			name: "idle", takes: "a duration", help: "how long an answer may pause, 5m unless written",
			read: func(r *reader, n *yaml.Node, p *Provider) { r.wait(n, "limits.idle", &p.Idle) },
		},
	}
}

// connectorKeys is the table of one connector.
func connectorKeys() []key[Connector] {
	return []key[Connector]{
		{name: "url", takes: "a URL", read: (*reader).connectorURL, help: "the one address that goes by this name"},
		{
			name: "tools", takes: "a list of tools", help: "the tools that agents may be granted, as tool.invoke of the connector's name, a dot and the tool's",
			read: func(r *reader, n *yaml.Node, c *Connector) {
				c.Tools = r.words(n, "tools", "a list of tools", func(n *yaml.Node) string {
					text, _ := r.text(n, "tools", "the name of a tool")
					return text
				})
			},
		},
	}
}

// providers reads providers:.
func (r *reader) providers(n *yaml.Node, c *Config) {
	r.entries(n, "providers", "a map of providers", func(name, n *yaml.Node) {
		if _, known := provider.Lookup(name.Value); !known {
			all := provider.Names()
			r.at(name, meant(name.Value, all, "there are "+strings.Join(all, ", ")), "there is no provider %q", clip(name.Value))
		}
		p := Provider{Name: name.Value, Pos: r.pos(name), Start: defaultProviderStart, Idle: defaultProviderIdle}
		if fill(r, n, "a provider", providerKeys(), &p) && lacks(n, "key") {
			r.at(n, `write key: "`+handleOpen+"name"+handleClose+`"`, "the provider has no key")
		}
		if n.Kind == yaml.MappingNode && value(n, "key") != nil {
			r.later = append(r.later, func(c *Config) { r.handles(value(n, "key"), c) })
		}
		c.Providers = append(c.Providers, p)
	})
}

// providerKey reads the handle of a key. The key itself has no place in the file:
// it is all that keeps an agent from asking the provider by itself.
func (r *reader) providerKey(n *yaml.Node, p *Provider) {
	p.Key = r.handle(n, "key")
}

// connectors reads connectors:. Their names stand before those of their tools, as
// the names of upstreams do.
func (r *reader) connectors(n *yaml.Node, p *Provider) {
	r.entries(n, "connectors", "a map of servers", func(name, n *yaml.Node) {
		r.upstreamName(name)
		c := Connector{Name: name.Value, Pos: r.pos(name)}
		if fill(r, n, "a connector", connectorKeys(), &c) && (lacks(n, "url") || lacks(n, "tools")) {
			r.at(n, "write { url: https://…, tools: [search] }", "a connector takes the URL of a server and the names of its tools")
		}
		at := len(p.Connectors)
		p.Connectors = append(p.Connectors, c)
		r.later = append(r.later, func(all *Config) {
			r.ownName(name, all)
			r.ownAddress(name, at, all)
		})
	})
}

// ownName refuses a connector that is called what an upstream is, or what stands before
// the names of its tools: one grant of tool.invoke would open both, and only the calls of
// an upstream are looked at.
func (r *reader) ownName(name *yaml.Node, c *Config) {
	for i := range c.Upstreams {
		if u := &c.Upstreams[i]; u.Name == name.Value || u.Prefix == name.Value {
			r.at(name, "choose another one", "the name %q would name the tools of the upstream %s too", clip(name.Value), clip(u.Name))
			return
		}
	}
}

// ownAddress refuses a connector whose name means another address elsewhere, and a second
// name for the address of an earlier one, which nothing would be asked by.
func (r *reader) ownAddress(name *yaml.Node, at int, c *Config) {
	pos := r.pos(name)
	i := slices.IndexFunc(c.Providers, func(p Provider) bool { return at < len(p.Connectors) && p.Connectors[at].Pos == pos })
	if i < 0 {
		return
	}
	own := c.Providers[i].Connectors[at]
	for _, other := range c.Providers[i].Connectors[:at] {
		if other.URL == own.URL && own.URL != "" {
			r.at(name, "write its tools there", "the address is that of the connector %s already", clip(other.Name))
			return
		}
	}
	for _, p := range c.Providers[:i] {
		for _, other := range p.Connectors {
			if other.Name == own.Name && other.URL != own.URL && other.URL != "" && own.URL != "" {
				r.at(name, "choose another one", "the name %q is that of another address at %s", clip(own.Name), p.Name)
				return
			}
		}
	}
}

// connectorURL reads a URL that the provider dials, and not the gateway.
func (r *reader) connectorURL(n *yaml.Node, c *Connector) {
	if c.URL = r.webURL(n); c.URL != "" && !strings.HasPrefix(c.URL, "https://") {
		r.at(n, "write https://", "a connector is reached over https")
	}
}

// providerURL reads where the API of a provider is.
func (r *reader) providerURL(n *yaml.Node, p *Provider) {
	text := r.webURL(n)
	target, err := url.Parse(text)
	switch {
	case text == "" || err != nil: // already said
	case strings.ContainsAny(text, "?%") || strings.Contains(target.Path, "//"):
		r.at(n, "write https://host/path", "url holds a ?, a %% or an empty segment")
	case strings.HasSuffix(strings.TrimRight(target.Path, "/"), "/v1") || strings.HasSuffix(strings.TrimRight(target.Path, "/"), "/v1beta"):
		r.at(n, "remove it", "the paths of the API begin with their version themselves")
	case target.Scheme == "http" && !isLoopback(target.Hostname()):
		r.at(n, "write https://", "the key would travel to %s in clear", clip(target.Host))
	default:
		p.URL = strings.TrimRight(text, "/")
	}
}
