package agents

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// netVerbs are the verbs that reaching a host means in Ethos, which knows no methods.
func netVerbs() []string { return []string{"net.get", "net.post", "net.put", "net.delete"} }

// ethos reads a personality: its policy on hosts and paths, and its toolset,
// which is a ceiling and lets it call those of its tools that have no mapping.
func (p *parser) ethos() error {
	if err := p.idFromFile(); err != nil {
		return err
	}
	if safety, ok := child(p.root, "safety"); ok {
		if err := p.safety(safety); err != nil {
			return err
		}
	}
	for i := 0; i < len(p.root.Content); i += 2 {
		key, value := p.root.Content[i], p.root.Content[i+1]
		if key.Value == "safety" || !slices.Contains(ethosKeys(), key.Value) {
			continue
		}
		specs, err := p.category(key, value)
		if err != nil {
			return err
		}
		p.add(specs...)
	}
	if len(p.rec.Toolset) > 0 {
		at, _ := child(p.root, "toolset")
		p.add(capability.Spec{Verb: "tool.invoke", Origin: originToolset, Pos: p.pos(at)}.With("tools", p.rec.Toolset...))
	}
	return nil
}

// safety reads safety.network.allow.
func (p *parser) safety(at *yaml.Node) error {
	network, err := p.only(at, "safety", "network")
	if err != nil || network == nil {
		return err
	}
	allow, err := p.only(network, "safety.network", "allow")
	if err != nil || allow == nil {
		return err
	}
	hosts, err := p.nameList("safety.network.allow", allow)
	if err != nil {
		return err
	}
	p.add(p.grants(allow, netVerbs(), "hosts", hosts)...)
	return nil
}

// Declaration reads what a tool declares of the outside: a map of the five
// categories network, secrets, storage, fs_reach and process. The empty map
// declares that it touches nothing. Positions are those of the node, which the
// caller has read from the file.
func Declaration(node *yaml.Node, file string) ([]capability.Spec, []capability.Finding, error) {
	p := &parser{source: &source{file: file}}
	if node == nil || node.Kind != yaml.MappingNode {
		if node == nil {
			return nil, nil, p.invalid(capability.Pos{}, "nothing is declared", "write {} for a tool that touches nothing")
		}
		return nil, nil, p.wrong(node, "write {} for a tool that touches nothing", "a declaration is a map of categories, not %s", nounOf(node))
	}
	if err := p.strict(node, 1); err != nil {
		return nil, nil, err
	}
	var specs []capability.Spec
	for i := 0; i < len(node.Content); i += 2 {
		one, err := p.category(node.Content[i], node.Content[i+1])
		if err != nil {
			return nil, nil, err
		}
		specs = append(specs, one...)
	}
	return specs, p.findings, nil
}

// categories are what a tool can declare.
func categories() []string { return []string{"network", "secrets", "storage", "fs_reach", "process"} }

// category reads one of the five.
func (p *parser) category(key, value *yaml.Node) ([]capability.Spec, error) {
	switch key.Value {
	case "network":
		return p.single(value, "network", "allowedHosts", netVerbs(), "hosts")
	case "process":
		return p.single(value, "process", "allowedBinaries", []string{"proc.exec"}, "cmds")
	case "fs_reach":
		return p.reach(value)
	case "storage":
		return p.storage(value)
	case "secrets":
		names, err := p.nameList("secrets", value)
		return p.grants(value, []string{"secret.use"}, "names", names), err
	}
	hint := "it is one of " + strings.Join(categories(), ", ")
	if near := mistyped(key.Value, categories()); near != "" {
		hint = fmt.Sprintf("did you mean %s?", near)
	}
	return nil, p.wrong(key, hint, "%q is no category of a declaration", key.Value)
}

// single reads a category whose map has one key, a list.
func (p *parser) single(at *yaml.Node, name, key string, verbs []string, scope string) ([]capability.Spec, error) {
	list, err := p.only(at, name, key)
	if err != nil || list == nil {
		return nil, err
	}
	values, err := p.nameList(name+"."+key, list)
	return p.grants(list, verbs, scope, values), err
}

// grants returns one grant of each verb, none for an empty list.
func (p *parser) grants(at *yaml.Node, verbs []string, key string, values []string) []capability.Spec {
	if len(values) == 0 {
		return nil
	}
	var specs []capability.Spec
	for _, v := range verbs {
		specs = append(specs, capability.Spec{Verb: v, Pos: p.pos(at)}.With(key, values...))
	}
	return specs
}

// only returns the value of the one key that a map may have, nil if it is empty.
func (p *parser) only(at *yaml.Node, name string, known ...string) (*yaml.Node, error) {
	if at.Kind != yaml.MappingNode {
		return nil, p.wrong(at, "", "%s: takes a map, not %s", name, nounOf(at))
	}
	if err := p.members(at, name, known...); err != nil {
		return nil, err
	}
	value, _ := child(at, known[0])
	return value, nil
}

// members refuses keys that a map doesn't know.
func (p *parser) members(at *yaml.Node, name string, known ...string) error {
	for i := 0; i < len(at.Content); i += 2 {
		k := at.Content[i]
		if slices.Contains(known, k.Value) {
			continue
		}
		hint := "its keys are " + strings.Join(known, ", ")
		if near := mistyped(k.Value, known); near != "" {
			hint = fmt.Sprintf("did you mean %s?", near)
		}
		return p.wrong(k, hint, "%q is no key of %s", k.Value, name)
	}
	return nil
}

// reach reads fs_reach: { read: […], write: […] }.
func (p *parser) reach(at *yaml.Node) ([]capability.Spec, error) {
	if at.Kind != yaml.MappingNode {
		return nil, p.wrong(at, "", "fs_reach: takes a map, not %s", nounOf(at))
	}
	if err := p.members(at, "fs_reach", "read", "write"); err != nil {
		return nil, err
	}
	var specs []capability.Spec
	for _, access := range []string{"read", "write"} {
		list, ok := child(at, access)
		if !ok {
			continue
		}
		paths, err := p.nameList("fs_reach."+access, list)
		if err != nil {
			return nil, err
		}
		specs = append(specs, p.pathGrants(list, "fs."+access, paths)...)
	}
	return specs, nil
}

// pathGrants grants relative paths below the root, and gives every other path
// its own.
func (p *parser) pathGrants(at *yaml.Node, verb string, paths []string) []capability.Spec {
	var relative []string
	var specs []capability.Spec
	for _, path := range paths {
		if path[0] != '/' && path != "~" && !strings.HasPrefix(path, "~/") {
			relative = append(relative, path)
			continue
		}
		dir, glob := splitGlob(path)
		s := capability.Spec{Verb: verb, Pos: p.pos(at)}.With("in", dir)
		s.Scope[0].Single = true
		if glob != "" {
			s = s.With("paths", glob)
		}
		specs = append(specs, s)
	}
	return append(p.grants(at, []string{verb}, "paths", relative), specs...)
}

// splitGlob cuts a path into the directory above its first glob and the glob.
func splitGlob(path string) (dir, glob string) {
	i := strings.IndexAny(path, `*?[{\`)
	if i < 0 {
		return path, ""
	}
	cut := strings.LastIndexByte(path[:i], '/')
	return max(path[:cut], "/"), path[cut+1:]
}

// storage reads storage: { scope: name, kind: kv }, which is the memory keys of
// that scope.
func (p *parser) storage(at *yaml.Node) ([]capability.Spec, error) {
	scope, err := p.only(at, "storage", "scope", "kind")
	if err != nil {
		return nil, err
	}
	const scopeChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	kind, ok := child(at, "kind")
	switch {
	case !ok || kind.Value != "kv":
		return nil, p.wrong(at, "", "storage: the only kind: is kv")
	case scope == nil || !isText(scope) || scope.Value == "" || strings.Trim(scope.Value, scopeChars) != "":
		return nil, p.wrong(at, "", "storage: needs a scope: of letters, digits, - _ and .")
	}
	return p.grants(at, []string{"memory.read", "memory.write"}, "keys", []string{scope.Value + "/*"}), nil
}
