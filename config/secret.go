package config

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Secret is where the value of a secret comes from: one of the two.
type Secret struct {
	Env  string // the name of a variable in the gateway's own environment
	File string // a file, absolute
}

const (
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits  = "0123456789"

	maxSecretName = 128 // bytes, as in a mapping
)

// secretKeys is the table of one secret.
func secretKeys() []key[Secret] {
	return []key[Secret]{
		{
			name: "env", takes: "the name of a variable", help: "the value is in this variable of the gateway's environment",
			read: func(r *reader, n *yaml.Node, s *Secret) { s.Env = r.variable(n) },
		},
		{
			name: "file", takes: "a file", help: "the value is in this file",
			read: func(r *reader, n *yaml.Node, s *Secret) {
				file, _ := r.folder(n, "file", "a file")
				s.File = file.Dir
			},
		},
	}
}

// secrets reads secrets:.
func (r *reader) secrets(n *yaml.Node, c *Config) {
	c.Secrets = map[string]Secret{}
	r.entries(n, "secrets", "a map of secrets", func(name, n *yaml.Node) {
		if !isSecretName(name.Value) {
			r.at(name, "a name is letters, digits, - _ and .", "%q cannot be the name of a secret", clip(name.Value))
		}
		if n.Kind == yaml.ScalarNode {
			r.at(n, "write { env: NAME } or { file: /path }", "the value of a secret does not stand in this file")
			return
		}
		var s Secret
		ok := fill(r, n, "a secret", secretKeys(), &s)
		switch {
		case value(n, "env") != nil && value(n, "file") != nil:
			r.at(n, "keep one of them", "a secret comes from env or from file, not from both")
		case ok && lacks(n, "env", "file"):
			r.at(n, "write { env: NAME } or { file: /path }", "the secret comes from nowhere")
		}
		c.Secrets[name.Value] = s
	})
}

func isSecretName(name string) bool {
	return name != "" && len(name) <= maxSecretName && strings.Trim(name, letters+digits+"_.-") == ""
}

// variable reads the name of an environment variable.
func (r *reader) variable(n *yaml.Node) string {
	text, ok := r.text(n, "env", "the name of a variable")
	if ok && !isVariable(text) {
		r.at(n, "a name is letters, digits and _, without a $", "%q cannot be the name of a variable", clip(text))
	}
	return text
}

func isVariable(name string) bool {
	return name != "" && strings.Trim(name, letters+digits+"_") == "" && !strings.ContainsAny(name[:1], digits)
}

const (
	handleOpen  = "{{secret:"
	handleClose = "}}"
	handleHint  = "write " + handleOpen + "name" + handleClose
)

// handles checks that every handle in a text is the handle of a secret, and that
// nothing in it looks like one that would be passed on as it is.
func (r *reader) handles(n *yaml.Node, c *Config) {
	rest := n.Value
	for {
		_, after, found := strings.Cut(rest, "{{")
		if !found {
			return
		}
		rest = after
		if !strings.HasPrefix(strings.ToLower(strings.TrimLeft(after, " ")), "secret") {
			continue
		}
		inside, whole := strings.CutPrefix("{{"+after, handleOpen)
		name, _, closed := strings.Cut(inside, handleClose)
		switch _, known := c.Secrets[name]; {
		case !whole || !closed || !isSecretName(name):
			r.at(n, handleHint, "this is not how the handle of a secret is written")
			return
		case !known:
			r.at(n, meant(name, slices.Sorted(maps.Keys(c.Secrets)), "add it to secrets:"), "there is no secret %q", name)
		}
	}
}

// handle reads the handle of a secret where nothing else may stand, "" when it is none.
func (r *reader) handle(n *yaml.Node, key string) string {
	text, ok := r.text(n, key, "the handle of a secret")
	name, opened := strings.CutPrefix(text, handleOpen)
	name, closed := strings.CutSuffix(name, handleClose)
	if ok && (!opened || !closed || !isSecretName(name)) {
		r.at(n, handleHint+", and say under secrets: where it comes from", "%s takes the handle of a secret and nothing else", key)
		return ""
	}
	return text
}

// noHandles refuses a handle where none is filled in.
func (r *reader) noHandles(n *yaml.Node) {
	if strings.Contains(n.Value, handleOpen) {
		r.at(n, "pass it in env: or headers:", "secrets are filled in nowhere else than in env:, headers: and oauth: client_secret:")
	}
}
