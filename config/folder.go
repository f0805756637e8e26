package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

const (
	aFolder = "a folder"
	auto    = "auto" // what capgate is to find out
)

// agents reads agents:, one folder or a list of them.
func (r *reader) agents(n *yaml.Node, c *Config) {
	const takes = "a folder or a list of folders"
	if n.Kind != yaml.SequenceNode {
		if dir, ok := r.folder(n, "agents", takes); ok {
			c.Agents = []string{dir.Dir}
		}
		return
	}
	c.Agents = r.folders(n, "agents")
}

// mappings reads mappings:.
func (r *reader) mappings(n *yaml.Node, c *Config) { c.Mappings = r.folders(n, "mappings") }

// folders reads a list of folders, each once, whichever way it is reached.
func (r *reader) folders(n *yaml.Node, what string) []string {
	var list []string
	seen := map[string]bool{}
	r.each(n, what, "a list of folders", func(entry *yaml.Node) {
		dir, ok := r.folder(entry, what, aFolder)
		switch {
		case !ok: // already said
		case seen[dir.Real]:
			r.at(entry, "remove one of them", "the folder %q stands twice", clip(entry.Value))
		default:
			seen[dir.Real] = true
			list = append(list, dir.Dir)
		}
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.at(n, "write "+what+": [./"+what+"]", "%s names no folder", what)
	}
	return list
}

// sandbox reads sandbox:, a folder or a map with one.
func (r *reader) sandbox(n *yaml.Node, c *Config) {
	if n.Kind != yaml.MappingNode {
		c.Sandbox, _ = r.folder(n, "sandbox", "a folder or a map")
		return
	}
	if fill(r, n, "sandbox", sandboxKeys(), &c.Sandbox) && lacks(n, "root") {
		r.at(n, "write sandbox: { root: ~/work }", "sandbox names no root")
	}
}

func (r *reader) sandboxRoot(n *yaml.Node, into *capability.Root) {
	*into, _ = r.folder(n, "sandbox.root", aFolder)
}

// backend takes the one backend that chooses itself. To name one and get another
// would be a promise broken in silence.
func (r *reader) backend(n *yaml.Node, _ *capability.Root) {
	if text, ok := r.text(n, "sandbox.backend", auto); ok && text != auto {
		hint := "remove it, or write backend: auto"
		if capability.Closest(text, []string{auto}) != "" {
			hint = "did you mean auto?"
		}
		r.at(n, hint, "backend %q: not in this version", clip(text))
	}
}

func (r *reader) state(n *yaml.Node, c *Config) {
	dir, _ := r.folder(n, "state", aFolder)
	c.State = dir.Dir
}

// folder reads a directory: absolute, below ~, or relative to the file's own.
func (r *reader) folder(n *yaml.Node, what, takes string) (capability.Root, bool) {
	text, ok := r.text(n, what, takes)
	if !ok {
		return capability.Root{}, false
	}
	hint := ""
	switch {
	case strings.Contains(text, "$"):
		r.at(n, "write the folder itself, or ~/… for one below home", "%s: variables are not filled in, and %q holds one", what, clip(text))
		return capability.Root{}, false
	case strings.HasPrefix(text, "~") && text != "~" && !strings.HasPrefix(text, "~/"):
		r.at(n, "write ~/…, or the absolute path", "%s: only one's own home is known, and %q is another's", what, clip(text))
		return capability.Root{}, false
	case strings.HasPrefix(text, "~") && r.view.Home == "":
		r.at(n, "set HOME, or write the absolute path", "%s: nothing here says which folder is home, and %q is below it", what, clip(text))
		return capability.Root{}, false
	case strings.Contains(text, ".."):
		hint = "write the absolute path, or ~/… for one below home"
	}
	dir, err := capability.ParseRoot(text, r.dir, r.view)
	if err != nil {
		r.at(n, hint, "%s: %v", what, err)
	}
	return dir, err == nil
}
