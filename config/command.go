package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

const fillHint = "${root} is the sandbox root, ${state} the state folder, and {{secret:name}} a secret in env: or headers:"

// command reads a program and its arguments. What stands in them for a folder is
// filled in when that is known.
func (r *reader) command(n *yaml.Node, u *described) {
	const takes = "a program and its arguments, a list"
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		r.at(n, "write a list, which no shell takes apart: [npx, -y, server]", "command takes %s, not text", takes)
		return
	}
	r.each(n, "command", takes, func(entry *yaml.Node) {
		text, ok := r.line(entry, "command", "text")
		if ok {
			r.noHandles(entry)
		}
		if len(u.Command) == 0 && ok && text == "" {
			r.at(entry, "", "the program has no name")
		}
		u.Command = append(u.Command, text)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.at(n, "write [npx, -y, server]", "command names no program")
	}
}

func (r *reader) cwd(n *yaml.Node, u *described) {
	u.Cwd, _ = r.text(n, "cwd", aFolder)
	r.noHandles(n)
}

// program fills in the folders that a command, its working directory and its
// environment name.
func (r *reader) program(n *yaml.Node, u *Upstream, c *Config) {
	if command := value(n, "command"); command != nil && command.Kind == yaml.SequenceNode {
		for i, entry := range command.Content {
			u.Command[i] = r.expand(entry, u.Command[i], c)
			if i == 0 && strings.Contains(u.Command[0], "/") {
				u.Command[0] = r.hang(entry, "command", u.Command[0]).Dir
			}
		}
	}
	if cwd := value(n, "cwd"); cwd != nil && u.Cwd != "" {
		u.Cwd = r.hang(cwd, "cwd", r.expand(cwd, u.Cwd, c)).Dir
	}
	if env := value(n, "env"); env != nil && env.Kind == yaml.MappingNode {
		for i := 0; i < len(env.Content); i += 2 {
			name := env.Content[i].Value
			u.Env[name] = r.expand(env.Content[i+1], u.Env[name], c)
		}
	}
}

// hang reads a path after everything in it has been filled in.
func (r *reader) hang(n *yaml.Node, what, text string) capability.Root {
	path := *n
	path.Value, path.Tag, path.Kind = text, "!!str", yaml.ScalarNode
	root, _ := r.folder(&path, what, aFolder)
	return root
}

// expand fills in the folders that a text names, ${root} and ${state}. Anything
// else that looks like a variable is a fault: it would be passed on as it is.
func (r *reader) expand(n *yaml.Node, text string, c *Config) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, rest, closed := strings.Cut(after, "}")
		switch {
		case closed && name == "state":
			out.WriteString(c.State)
		case closed && name == "root" && !c.Sandbox.IsZero():
			out.WriteString(c.Sandbox.Dir)
		case closed && name == "root":
			if !r.wrote("sandbox") {
				r.at(n, "write sandbox: ~/work", "there is no sandbox that ${root} could be the root of")
			}
			return ""
		default:
			r.at(n, fillHint, "%q is not filled in", clip("${"+after))
			return ""
		}
		text = rest
	}
}

// filled refuses a variable where none is filled in, and a handle likewise.
func (r *reader) filled(n *yaml.Node) bool {
	r.noHandles(n)
	if strings.Contains(n.Value, "${") {
		r.at(n, fillHint, "variables are not filled in here")
	}
	return !strings.Contains(n.Value, handleOpen) && !strings.Contains(n.Value, "${")
}
