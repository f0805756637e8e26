package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/wire"
)

// toolName reads the name of the tool that a test calls.
func (r *reader) toolName(n *yaml.Node, t *Test) {
	const longest = 512 // bytes
	text, ok := r.text(n, "tool", "a tool's name")
	switch {
	case !ok:
		return
	case len(text) > longest || strings.TrimSpace(text) != text:
		r.at(n, "", "a tool's name is at most %d bytes, without spaces around it", longest)
	}
	t.Tool = text
	r.later = append(r.later, func(c *Config) { r.served(n, c) })
}

// served refuses a test of a tool that no upstream can have. That it were denied
// would prove nothing. Where an upstream has no prefix, any name may be of it.
func (r *reader) served(n *yaml.Node, c *Config) {
	prefix, tool, found := strings.Cut(n.Value, ".")
	found = found && tool != ""
	var all []string
	for _, u := range c.Upstreams {
		all = append(all, u.Prefix)
	}
	free := slices.Contains(all, "")
	if found && slices.Contains(all, prefix) {
		return
	}
	instead, how := c.Otherwise(n.Value)
	switch {
	case free && instead != "":
		r.warn(r.pos(n), "unserved", fmt.Sprintf("the tools of the upstream %q are named %s", clip(prefix), how), "write "+clip(instead))
	case free:
	case instead != "":
		r.at(n, "write "+clip(instead), "the tools of the upstream %q are named %s", clip(prefix), how)
	case found && prefix == ownName:
	case !found && strings.Contains(n.Value, separator):
		r.at(n, "write "+strings.Replace(clip(n.Value), separator, ".", 1), "a test calls a tool as grants name it, not as agents see it")
	case !found:
		r.at(n, "write files.read_file", "a tool's name begins with that of its upstream and a dot")
	default:
		r.at(n, meant(prefix, all, "add it to upstreams:"), "there is no upstream %q", clip(prefix))
	}
}

// args reads the arguments of a call: what JSON and YAML both have, with the
// digits of numbers as they are written.
func (r *reader) args(n *yaml.Node, t *Test) {
	if n.Kind != yaml.MappingNode {
		r.at(n, "write { path: docs/guide.md }", "args takes a map of arguments, not %s", describe(n))
		return
	}
	t.Args = r.json(nil, n)
	if _, err := wire.Parse(t.Args); err != nil {
		r.at(n, "", "no gateway would take these arguments: %v", err)
	}
}

// json appends a value as JSON.
func (r *reader) json(out []byte, n *yaml.Node) []byte {
	switch n.Kind {
	case yaml.MappingNode:
		out = append(out, '{')
		for i := 0; i < len(n.Content); i += 2 {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(quoted(out, n.Content[i].Value), ':')
			out = r.json(out, n.Content[i+1])
		}
		return append(out, '}')
	case yaml.SequenceNode:
		out = append(out, '[')
		for i, entry := range n.Content {
			if i > 0 {
				out = append(out, ',')
			}
			out = r.json(out, entry)
		}
		return append(out, ']')
	}
	return append(out, r.leaf(n)...)
}

// leaf returns text, a number or a boolean as JSON, null for what is none of them.
func (r *reader) leaf(n *yaml.Node) []byte {
	switch n.Tag {
	case "!!str":
		if n.Style == 0 && json.Valid([]byte(n.Value)) { // beyond what YAML can hold: 1e999
			r.at(n, "quote it if it is meant as text", "%s is no number that every reader takes for one", clip(n.Value))
		}
		return quoted(nil, n.Value)
	case "!!bool":
		return []byte(strings.ToLower(n.Value))
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return []byte(n.Value)
		}
		r.at(n, "write it in plain digits, or quote it if it is meant as text", "JSON has no number %s", clip(n.Value))
	default:
		r.at(n, "quote it if it is meant as text", "an argument is text, a number, true or false, a list or a map, not %s", describe(n))
	}
	return []byte("null")
}

// quoted appends text as JSON, with no more escapes than it needs.
func quoted(out []byte, text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // any text can be written
	return append(out, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}
