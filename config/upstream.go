package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
	"capgate/mapping"
)

// Upstream is one MCP server behind the gateway, as upstreams: describes it.
// Exactly one of Command, URL and Builtin is set.
type Upstream struct {
	Name string
	Pos  capability.Pos

	Command []string // the program, absolute if it was written with a slash, and its arguments
	URL     string   // http or https
	Builtin string   // fs or net: in this process

	Cwd     string            // of Command: absolute, "" for none written
	Env     map[string]string // of Command: all of its environment; values may hold handles of secrets
	Headers map[string]string // of URL: by canonical name; values may hold handles of secrets
	OAuth   *OAuth            // of URL: nil for none
	Root    capability.Root   // of the builtin fs: the sandbox unless written, and never beyond it

	Transport string // of URL: http or sse, "" to find out
	Protocol  string // the only revision to speak, "" to find out

	Mapping    string         // what its tools' arguments mean: a name of [LoadMappings], "" for none
	MappingPos capability.Pos // where Mapping is written

	Declared   bool              // declares: is written, also when it is {}
	Declares   []capability.Spec // all that it may touch of the outside
	Unmediated bool              // it may be called although it declares nothing
	Tools      map[string]Tool   // what is written of single tools, by the server's name for them

	Pins   string   // tofu, require or off
	MayAsk []string // of roots, elicitation, sampling: what it may ask of the client
	Prefix string   // what stands before the names of its tools, "" for nothing
	Shared bool     // agents share one connection; else each has its own

	Call   time.Duration // for the answer to a call
	Start  time.Duration // for the start and the handshake
	Answer int           // bytes of one message from it
}

// Tool is what is written of one tool of an upstream.
type Tool struct {
	Declared bool
	Declares []capability.Spec // narrower than those of the upstream
	Pins     string            // tofu, require or off; the upstream's unless written
}

// OAuth is how the gateway gets a token for an upstream.
type OAuth struct {
	ClientID     string // "" to register
	ClientSecret string // the handle of the secret that goes with it; "" for none
	Issuer       string // the only authorization server there is for it; "" for the one that the upstream names
	Scopes       []string
}

const (
	maxName = 40 // bytes of an upstream's name, which stands in front of every tool's

	separator = "__" // between the name of an upstream and that of its tool
	ownName   = "capgate"

	nameHint = "a name is lower-case letters, digits, - and _, at most 40 of them"
)

// kinds are what an upstream can be.
func kinds() []string { return []string{"command", "url", "builtin"} }

// kindsOf returns the kinds of upstream that a key has a meaning for, nil for all.
func kindsOf(key string) []string {
	switch key {
	case "cwd", "env":
		return []string{"command"}
	case "headers", "oauth", "transport", "insecure":
		return []string{"url"}
	case "protocol", "mapping", "pins", "may_ask", "unmediated", "share":
		return []string{"command", "url"}
	case "root":
		return []string{"builtin"}
	}
	return nil
}

// upstreams reads upstreams:.
func (r *reader) upstreams(n *yaml.Node, c *Config) {
	r.entries(n, "upstreams", "a map of servers", func(name, n *yaml.Node) {
		r.upstreamName(name)
		u := described{Upstream: Upstream{
			Name: name.Value, Pos: r.pos(name), Prefix: name.Value, Pins: pinFirst, MayAsk: []string{"roots"},
		}}
		ok := fill(r, n, "an upstream", upstreamKeys(), &u)
		if n.Kind == yaml.MappingNode {
			r.kind(n, ok)
			r.contradictions(n, &u)
		}
		at := len(c.Upstreams)
		c.Upstreams = append(c.Upstreams, u.Upstream)
		r.later = append(r.later, func(c *Config) { r.complete(n, u.limits, at, c) })
	})
}

// upstreamName checks the name of an upstream, or what stands in its place
// before the names of its tools.
func (r *reader) upstreamName(n *yaml.Node) {
	name := n.Value
	const first = "abcdefghijklmnopqrstuvwxyz" + digits
	switch {
	case name == ownName:
		r.at(n, "call it something else", "%q is the gateway's own name", name)
	case strings.Contains(name, separator) || strings.HasSuffix(name, "_"):
		r.at(n, "use a single _ or a -, with something behind", "%q would run into %s, which ends the name before a tool's", clip(name), separator)
	case name == "" || len(name) > maxName || strings.Trim(name, first+"-_") != "" || !strings.ContainsAny(name[:1], first):
		r.at(n, nameHint, "%q cannot be the name of an upstream", clip(name))
	}
}

// kind checks that an upstream is of one kind, and says nothing that only another
// kind would heed.
func (r *reader) kind(n *yaml.Node, ok bool) {
	kind := ""
	for i := 0; i < len(n.Content); i += 2 {
		switch k := n.Content[i]; {
		case !slices.Contains(kinds(), k.Value): // looked at below
		case kind != "":
			r.at(k, "keep one of them", "an upstream is a command, a url or a builtin, and this one is a %s already", kind)
		default:
			kind = k.Value
		}
	}
	if kind == "" {
		if ok {
			r.at(n, "add one of command: [program, argument], url: https://… and builtin: fs", "nothing says where the server is")
		}
		return
	}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if heeded := kindsOf(k.Value); heeded != nil && !slices.Contains(heeded, kind) {
			r.at(k, "remove it", "%s belongs to an upstream with %s, and this one has %s", k.Value, strings.Join(heeded, " or "), kind)
		}
	}
}

// contradictions refuses what cannot both be meant.
func (r *reader) contradictions(n *yaml.Node, u *described) {
	if u.Builtin != "fs" && u.Builtin != "" && value(n, "root") != nil {
		r.at(value(n, "root"), "remove it", "only the builtin fs has a root")
	}
	if u.Declared && u.Unmediated {
		r.at(value(n, "unmediated"), "remove it, or remove declares:", "what declares its reach is held to it, and is not unmediated")
	}
	if _, written := u.Headers["Authorization"]; written && u.OAuth != nil {
		r.at(value(n, "oauth"), "keep one of them", "the token comes from oauth or from the header Authorization, not from both")
	}
	if u.Transport == "sse" && u.Protocol == revisions()[0] {
		r.at(value(n, "protocol"), "remove it", "the revision %s has no transport sse", u.Protocol)
	}
	if u.URL != "" {
		r.clear(n, u)
	}
}

// clear refuses to send anything over the network that others can read there.
func (r *reader) clear(n *yaml.Node, u *described) {
	target, err := url.Parse(u.URL)
	if err != nil {
		return // already said
	}
	open := target.Scheme == "http" && !isLoopback(target.Hostname())
	switch {
	case open && !u.insecure:
		r.at(value(n, "url"), "write https://", "what is sent to %s would travel in clear", clip(target.Host))
	case !open && u.insecure:
		r.at(value(n, "insecure"), "remove it", "nothing about this URL is insecure")
	}
}

// complete fills in what depends on other sections, and checks it against them.
func (r *reader) complete(n *yaml.Node, own Limits, at int, c *Config) {
	u := &c.Upstreams[at]
	u.Call = cmp.Or(own.Call, c.Limits.Call)
	u.Start = cmp.Or(own.Start, c.Limits.Start)
	u.Answer = cmp.Or(own.Answer, c.Limits.Answer)
	for name, t := range u.Tools {
		t.Pins = cmp.Or(t.Pins, u.Pins)
		u.Tools[name] = t
	}
	if n.Kind != yaml.MappingNode {
		return // already said
	}
	r.program(n, u, c)
	r.within(n, u, c)
	r.credentials(n, u, c)
	r.prefixes(n, at, c)
	r.known(u)
}

// known refuses a mapping that cannot be anywhere. Where there are folders of
// them, [LoadMappings] looks.
func (r *reader) known(u *Upstream) {
	if all := mapping.Builtins(); u.Mapping != "" && !r.wrote("mappings") && !slices.Contains(all, u.Mapping) {
		hint := "there are " + strings.Join(all, ", ") + "; your own need mappings: [./mappings]"
		r.add(u.MappingPos, meant(u.Mapping, all, hint), "there is no mapping %q", clip(u.Mapping))
	}
}

// Undeclared says of a server that nothing is declared of it, by itself or by its mapping,
// which only agents of the Ethos dialect demand.
func (u *Upstream) Undeclared(m *mapping.Mapping) (capability.Finding, bool) {
	none := !u.Declared && !u.Unmediated && u.Builtin == "" && !m.Declares()
	for _, t := range u.Tools {
		none = none && !t.Declared
	}
	return capability.Finding{
		Code: "undeclared", Severity: capability.Warning, Pos: u.Pos,
		Text: "the upstream " + u.Name + " declares nothing, so that agents of the Ethos dialect cannot call its tools",
		Hint: "write declares: with what it may touch, or unmediated: true",
	}, none
}

// within keeps the root of the builtin fs inside the sandbox.
func (r *reader) within(n *yaml.Node, u *Upstream, c *Config) {
	switch {
	case u.Builtin != "fs":
	case u.Root.IsZero():
		u.Root = c.Sandbox
	case !c.Sandbox.IsZero() && !u.Root.Within(c.Sandbox):
		r.at(value(n, "root"), "name a folder below the sandbox root", "the root of a builtin lies within the sandbox, and %s does not", clip(u.Root.Dir))
	}
}

// prefixes refuses two upstreams whose tools would go by the same names.
func (r *reader) prefixes(n *yaml.Node, at int, c *Config) {
	u, written := c.Upstreams[at], value(n, "prefix")
	if written == nil || u.Prefix == "" || u.Prefix == u.Name {
		return
	}
	for i, other := range c.Upstreams {
		if i != at && (other.Name == u.Prefix || i < at && other.Prefix == u.Prefix) {
			r.at(written, "choose another one", "the prefix %q would name the tools of %s too", clip(u.Prefix), clip(other.Name))
		}
	}
}

// Otherwise says how a name that begins with that of an upstream and a dot has to be written where the
// tools of that upstream are named in another way, and in which one. It says nothing of other names, nor
// of a tool that the configuration knows by that name. The name may be a pattern.
func (c *Config) Otherwise(name string) (instead, how string) {
	before, tool, ok := strings.Cut(name, ".")
	if !ok || tool == "" {
		return "", ""
	}
	for _, u := range c.Upstreams {
		_, known := u.Tools[name]
		switch {
		case u.Prefix == before, known && u.Prefix == "":
			return "", ""
		case u.Name != before:
		case u.Prefix == "":
			instead, how = tool, "without its name"
		default:
			instead, how = u.Prefix+"."+tool, "with the prefix "+u.Prefix
		}
	}
	return instead, how
}
