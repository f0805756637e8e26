package agents

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// manifestLimits are the keys of a manifest's spec: that bear authority and that
// this version does not read. Ignoring one would grant more than it says.
func manifestLimits() []string {
	return []string{
		"network", "secrets", "secret_policy", "tools", "trust_level", "sandbox", "filesystem", "workspace",
		"permissions", "policy", "approvals", "env", "mounts", "volumes", "allow", "deny",
	}
}

// scarab reads a manifest: tokens in spec.capabilities, and the names in its
// tool.invoke tokens as the ceiling on tools.
func (p *parser) scarab() error {
	if err := p.manifestID(); err != nil {
		return err
	}
	if p.rec.Toolset != nil {
		at, _ := child(p.root, "toolset")
		return p.wrong(at, "list them as tool.invoke tokens", "toolset: the tool.invoke tokens of a manifest set its ceiling already")
	}
	p.rec.Toolset = []string{}
	spec, ok := child(p.root, "spec")
	switch {
	case !ok:
		return nil
	case spec.Kind != yaml.MappingNode:
		return p.wrong(spec, "", "spec: takes a map, not %s", nounOf(spec))
	}
	for i := 0; i < len(spec.Content); i += 2 {
		if err := p.manifestKey(spec.Content[i]); err != nil {
			return err
		}
	}
	list, ok := child(spec, "capabilities")
	if !ok {
		return nil
	}
	entries, err := p.list("spec.capabilities", list)
	if err != nil {
		return err
	}
	p.add(specsOf(entries)...)
	for _, s := range p.rec.Grants {
		p.rec.Toolset = append(p.rec.Toolset, invoked(s)...)
	}
	return nil
}

// manifestID takes the id from metadata.name, where the record has none.
func (p *parser) manifestID() error {
	meta, ok := child(p.root, "metadata")
	if name, named := child(meta, "name"); ok && named && p.rec.ID == "" {
		if !isText(name) || capability.AgentID(name.Value) == "" {
			return p.wrong(name, idForm, "metadata.name: is no agent id")
		}
		p.rec.ID = capability.AgentID(name.Value)
	}
	return p.idFromFile()
}

func (p *parser) manifestKey(k *yaml.Node) error {
	if k.Value == "capabilities" {
		return nil
	}
	near := mistyped(k.Value, append(manifestLimits(), "capabilities"))
	instead, limits := limiting(k.Value)
	switch {
	case limits && !slices.Contains(manifestLimits(), near):
		return p.wrong(k, instead, "spec.%s limits nothing in a manifest", k.Value)
	case slices.Contains(manifestLimits(), near):
		return p.wrong(k, "say it in capabilities, or leave it out", "spec.%s is not read in this version", k.Value)
	case near != "":
		return p.wrong(k, "did you mean "+near+"?", "spec.%s is no key of a manifest", k.Value)
	}
	return nil
}

// invoked returns the tool names that a grant names for calling.
func invoked(s capability.Spec) []string {
	if s.Verb != "tool.invoke" {
		return nil
	}
	if s.Bare {
		return []string{"*"}
	}
	tools, _ := s.Get("tools")
	return slices.DeleteFunc(slices.Clone(tools.Values), func(t string) bool { return strings.TrimSpace(t) == "" })
}
