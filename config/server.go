package config

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/agents"
	"capgate/capability"
)

// described is an upstream while it is read.
type described struct {
	Upstream
	insecure bool
	limits   Limits // its own, zero where none is written
}

const pinFirst = "tofu" // trust on first use

// revisions are the revisions of the protocol, newest first.
func revisions() []string {
	return []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}
}

// upstreamKeys is the table of one upstream.
func upstreamKeys() []key[described] {
	return slices.Concat(placeKeys(), speechKeys(), authorityKeys())
}

// placeKeys says where a server is and how it is reached.
func placeKeys() []key[described] {
	return []key[described]{
		{
			name: "command", takes: "a program and its arguments, a list", read: (*reader).command,
			help: "a server that is started here; ${root} is the sandbox root, ${state} the state folder",
		},
		{name: "url", takes: "a URL", read: (*reader).url, help: "a server that is reached over HTTP"},
		{name: "builtin", takes: "fs or net", read: (*reader).builtin, help: "tools of the gateway itself"},
		{name: "cwd", takes: aFolder, read: (*reader).cwd, help: "where the program starts"},
		{
			name: "env", takes: "a map of variables", read: (*reader).env,
			help: "all of the program's environment; a value may hold {{secret:name}}",
		},
		{
			name: "headers", takes: "a map of headers", read: (*reader).headers,
			help: "what goes with every request to the URL; a value may hold {{secret:name}}",
		},
		{
			name: "oauth", takes: "a map", read: (*reader).oauth, under: lines("upstreams.*.oauth.", oauthKeys()),
			help: "how the gateway gets a token for the URL",
		},
		{
			name: "insecure", takes: "true or false", help: "true: what is sent to the URL may travel in clear",
			read: func(r *reader, n *yaml.Node, u *described) { u.insecure = r.flag(n, "insecure") },
		},
		{
			name: "root", takes: aFolder, help: "the root of the builtin fs, the sandbox root unless written",
			read: func(r *reader, n *yaml.Node, u *described) { u.Root, _ = r.folder(n, "root", aFolder) },
		},
	}
}

// speechKeys says how a server is talked to.
func speechKeys() []key[described] {
	return []key[described]{
		{
			name: "transport", takes: "auto, http or sse", help: "how the URL is talked to; auto finds out",
			read: func(r *reader, n *yaml.Node, u *described) {
				u.Transport = r.wordOrAuto(n, "transport", "http", "sse")
			},
		},
		{name: "protocol", takes: "auto or a revision", read: (*reader).protocol, help: "the one revision of MCP to speak; auto finds out"},
		{
			name: "may_ask", takes: "a list of roots, elicitation, sampling", help: "what the server may ask of the client, [roots] unless written",
			read: func(r *reader, n *yaml.Node, u *described) {
				u.MayAsk = r.words(n, "may_ask", "a list of roots, elicitation, sampling", func(n *yaml.Node) string {
					return r.word(n, "may_ask", "roots", "elicitation", "sampling")
				})
			},
		},
		{
			name: "share", takes: "agents", help: "all agents share one connection; else each has its own",
			read: func(r *reader, n *yaml.Node, u *described) { u.Shared = r.word(n, "share", "agents") != "" },
		},
		{
			name: "limits", takes: "a map of limits", under: lines("upstreams.*.limits.", patienceKeys("")),
			help: "those of this server, in place of the gateway's",
			read: func(r *reader, n *yaml.Node, u *described) { fill(r, n, "limits", patienceKeys("limits."), &u.limits) },
		},
		{
			name: "prefix", takes: "none or a name", help: "what stands before the names of its tools, its own name unless written",
			read: (*reader).prefix,
		},
	}
}

// authorityKeys says what a server's tools mean, and what they may touch.
func authorityKeys() []key[described] {
	return []key[described]{
		{name: "mapping", takes: "the name of a mapping", read: (*reader).mapping, help: "what the arguments of its tools mean"},
		{
			name: "declares", takes: "a declaration", help: "all that it may touch of the outside; {} is nothing",
			read: func(r *reader, n *yaml.Node, u *described) { u.Declares, u.Declared = r.declaration(n), true },
		},
		{
			name: "unmediated", takes: "true or false", help: "true: it may be called although it declares nothing",
			read: func(r *reader, n *yaml.Node, u *described) { u.Unmediated = r.flag(n, "unmediated") },
		},
		{
			name: "pins", takes: "tofu, require or off", help: "whether a changed tool is held back; tofu trusts the first one seen",
			read: func(r *reader, n *yaml.Node, u *described) { u.Pins = r.pins(n) },
		},
		{
			name: "tools", takes: "a map of tools", read: (*reader).tools, under: lines("upstreams.*.tools.*.", toolKeys()),
			help: "what is to be said of single tools, by the server's name for them",
		},
	}
}

// toolKeys is the table of one tool of an upstream.
func toolKeys() []key[Tool] {
	return []key[Tool]{
		{
			name: "declares", takes: "a declaration", help: "what this tool may touch of what its server may",
			read: func(r *reader, n *yaml.Node, t *Tool) { t.Declares, t.Declared = r.declaration(n), true },
		},
		{
			name: "pins", takes: "tofu, require or off", help: "in place of the upstream's",
			read: func(r *reader, n *yaml.Node, t *Tool) { t.Pins = r.pins(n) },
		},
	}
}

// oauthKeys is the table of oauth:.
func oauthKeys() []key[OAuth] {
	return []key[OAuth]{
		{
			name: "client_id", takes: "an id", help: "the id the gateway is registered by; without one it registers itself",
			read: func(r *reader, n *yaml.Node, o *OAuth) {
				if o.ClientID, _ = r.text(n, "oauth.client_id", "an id"); strings.Contains(o.ClientID, handleOpen) {
					r.at(n, "write the id itself, which is none", "oauth.client_id takes an id, and no secret is filled in")
				}
			},
		},
		{
			name: "client_secret", takes: "the handle of a secret", help: "what goes with that id, if it was given one",
			read: func(r *reader, n *yaml.Node, o *OAuth) { o.ClientSecret = r.handle(n, "oauth.client_secret") },
		},
		{
			name: "issuer", takes: "a URL", help: "the authorization server that gave them; it is sent the secret, and no other is",
			read: (*reader).issuer,
		},
		{
			name: "scopes", takes: "a list of scopes", help: "what is asked for",
			read: func(r *reader, n *yaml.Node, o *OAuth) {
				o.Scopes = r.words(n, "oauth.scopes", "a list of scopes", r.scope)
			},
		},
	}
}

func (r *reader) oauth(n *yaml.Node, u *described) {
	u.OAuth = &OAuth{}
	if fill(r, n, "oauth", oauthKeys(), u.OAuth) && u.OAuth.ClientSecret != "" && (lacks(n, "client_id") || lacks(n, "issuer")) {
		r.at(
			value(n, "client_secret"), "write client_id and issuer as well",
			"oauth.client_secret belongs to an id, and to the server that gave both: else it would be sent to whichever the upstream names",
		)
	}
}

// issuer reads by which URL an authorization server calls itself.
func (r *reader) issuer(n *yaml.Node, o *OAuth) {
	text, ok := r.text(n, "oauth.issuer", "the URL of an authorization server")
	if !ok {
		return
	}
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Scheme != "https" && !(target.Scheme == "http" && isLoopback(target.Hostname())) || !isAuthority(target.Host),
		target.User != nil, strings.ContainsAny(text, "?#\\ "),
		!strings.HasPrefix(text, target.Scheme+":"): // as it is compared letter by letter
		r.at(n, "write https://host, or what its metadata says for issuer", "%q cannot be an authorization server", clip(text))
	default:
		o.Issuer = text
	}
}

func (r *reader) scope(n *yaml.Node) string {
	text, ok := r.text(n, "oauth.scopes", "a scope")
	if ok && strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
		r.at(n, "write each scope as an entry of its own", "%q cannot be a scope", clip(text))
		return ""
	}
	return text
}

// url reads where a server is.
func (r *reader) url(n *yaml.Node, u *described) { u.URL = r.webURL(n) }

// webURL reads a URL that requests are sent to, "" when it cannot be one.
func (r *reader) webURL(n *yaml.Node) string {
	const takes = "an https or http URL"
	text, ok := r.text(n, "url", takes)
	if !ok || !r.filled(n) {
		return ""
	}
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Scheme != "https" && target.Scheme != "http" || !isAuthority(target.Host):
		r.at(n, "write https://host/path", "url takes %s, which this is not", takes)
	case target.User != nil:
		r.at(n, "remove it, and write credentials as {{secret:name}} where they are taken", "a password does not belong into a URL")
	case strings.ContainsAny(text, "#\\ "):
		r.at(n, "remove it, or write it in percent signs", "url holds a #, a backslash or a space")
	default:
		return text
	}
	return ""
}

// builtin reads which of the gateway's own tools are meant.
func (r *reader) builtin(n *yaml.Node, u *described) {
	served, known := []string{"fs", "net"}, []string{"fs", "net", "proc", "records", "memory", "obs", "agents", "skills"}
	text, ok := r.text(n, "builtin", "fs or net")
	switch {
	case !ok:
	case slices.Contains(served, text):
		u.Builtin = text
	case slices.Contains(known, text):
		r.at(n, "remove the upstream; there are fs and net", "builtin %q: not in this version", text)
	default:
		r.at(n, meant(text, known, "there are fs and net"), "there is no builtin %q", clip(text))
	}
}

// protocol reads a revision, which YAML takes for a date.
func (r *reader) protocol(n *yaml.Node, u *described) {
	date := *n
	if date.Tag == "!!timestamp" {
		date.Tag = "!!str"
	}
	u.Protocol = r.wordOrAuto(&date, "protocol", revisions()...)
}

func (r *reader) prefix(n *yaml.Node, u *described) {
	const none = "none"
	text, ok := r.text(n, "prefix", "none or a name")
	switch {
	case !ok:
	case text == none:
		u.Prefix = ""
	default:
		r.upstreamName(n)
		u.Prefix = text
	}
}

func (r *reader) pins(n *yaml.Node) string { return r.word(n, "pins", pinFirst, "require", "off") }

func (r *reader) mapping(n *yaml.Node, u *described) {
	u.Mapping, _ = r.text(n, "mapping", "the name of a mapping")
	u.MappingPos = r.pos(n)
}

func (r *reader) tools(n *yaml.Node, u *described) {
	const longest = 256 // bytes of a tool's name
	u.Tools = map[string]Tool{}
	r.entries(n, "tools", "a map of tools", func(name, n *yaml.Node) {
		if name.Value == "" || len(name.Value) > longest {
			r.at(name, "write the name as the server does", "a tool's name is 1 to %d bytes", longest)
		}
		var t Tool
		if fill(r, n, "a tool", toolKeys(), &t) && len(n.Content) == 0 {
			r.at(n, "add declares: or pins:, or remove the tool", "nothing is said of the tool")
		}
		u.Tools[name.Value] = t
	})
}

// declaration reads what an upstream or a tool may touch. What would declare
// nothing, because of how it is written, is a fault.
func (r *reader) declaration(n *yaml.Node) []capability.Spec {
	specs, findings, err := agents.Declaration(n, r.file)
	if invalid, ok := errors.AsType[*agents.Invalid](err); ok {
		r.add(invalid.Pos, invalid.Hint, "%s", invalid.Text)
		return nil
	} else if err != nil {
		r.at(n, "", "%v", err)
		return nil
	}
	_, inert := capability.Compile(specs, capability.Options{
		Config: capability.Root{Dir: "/", Real: "/"}, View: capability.View{Home: "/"},
	})
	for _, f := range append(findings, inert...) {
		if f.Severity > capability.Note {
			r.add(f.Pos, f.Hint, "%s", f.Text)
		}
	}
	return specs
}
