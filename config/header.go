package config

import (
	"net/http"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// env reads the environment of a program. Its folders and secrets are looked at
// when the sections that name them are read.
func (r *reader) env(n *yaml.Node, u *described) {
	u.Env = map[string]string{}
	r.entries(n, "env", "a map of variables", func(name, n *yaml.Node) {
		if !isVariable(name.Value) {
			r.at(name, "a name is letters, digits and _", "%q cannot be the name of a variable", clip(name.Value))
		}
		u.Env[name.Value], _ = r.line(n, "a variable", "text")
	})
}

// headers reads what goes with every request to an upstream.
func (r *reader) headers(n *yaml.Node, u *described) {
	u.Headers = map[string]string{}
	r.entries(n, "headers", "a map of headers", func(name, n *yaml.Node) {
		canonical := http.CanonicalHeaderKey(name.Value)
		_, twice := u.Headers[canonical]
		switch {
		case !isToken(name.Value):
			r.at(name, "a name is letters, digits and -", "%q cannot be the name of a header", clip(name.Value))
			return
		case isReserved(canonical):
			r.at(name, "remove it", "the header %s is the gateway's to write", canonical)
			return
		case twice:
			r.at(name, "keep one of them", "the header %s stands twice", canonical)
		}
		text, ok := r.text(n, "a header", "text")
		if ok && (strings.TrimSpace(text) != text || strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })) {
			r.at(n, "", "the value of a header is visible ASCII, without spaces around it")
		}
		if ok && strings.Contains(text, "${") {
			r.at(n, handleHint+", and say under secrets: where it comes from", "variables are not filled in here")
		}
		u.Headers[canonical] = text
	})
}

// isToken reports whether a text may be the name of a header.
func isToken(name string) bool {
	return name != "" && strings.Trim(name, letters+digits+"!#$%&'*+-.^_`|~") == ""
}

// isReserved reports whether a header says how a message is sent, or what is in
// it, so that another one than the gateway's would say it wrong.
func isReserved(canonical string) bool {
	for _, prefix := range []string{"Content-", "Mcp-", "Proxy-"} {
		if strings.HasPrefix(canonical, prefix) {
			return true
		}
	}
	return slices.Contains([]string{
		"Accept", "Accept-Encoding", "Connection", "Expect", "Host", "Keep-Alive", "Last-Event-Id",
		"Range", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	}, canonical)
}

// credentials checks the handles of secrets in the environment, the headers and oauth:,
// and says where one would be in place.
func (r *reader) credentials(n *yaml.Node, u *Upstream, c *Config) {
	for _, section := range []string{"env", "headers"} {
		list := value(n, section)
		if list == nil || list.Kind != yaml.MappingNode {
			continue
		}
		for i := 0; i < len(list.Content); i += 2 {
			r.handles(list.Content[i+1], c)
		}
	}
	if oauth := value(n, "oauth"); oauth != nil && oauth.Kind == yaml.MappingNode && value(oauth, "client_secret") != nil {
		r.handles(value(oauth, "client_secret"), c)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key"} {
		if text, ok := u.Headers[name]; ok && !strings.Contains(text, handleOpen) {
			r.warn(u.Pos, "clear_secret", "the header "+name+" of the upstream "+u.Name+" stands in this file in clear",
				handleHint+", and say under secrets: where it comes from")
		}
	}
}
