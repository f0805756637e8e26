package skills

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Manifest is the file in which a skill names the servers that it uses for agents
// which do not read allowed-tools.
const Manifest = "agents/openai.yaml"

// depend adds what the manifest of a skill asks for. One that cannot be read hides
// the skill.
func (s *Skill) depend(at place, text []byte, o Options) {
	if text == nil {
		return
	}
	if len(text) > maxHead {
		s.fail(Manifest + " is too large")
		return
	}
	root, err := parseYAML(string(text))
	if err != nil {
		s.fail(Manifest + ": " + strings.Replace(err.Error(), "the frontmatter", "it", 1))
		return
	}
	d := derivation{place: at, opts: o}
	defer func() { s.Findings = append(s.Findings, d.findings...) }()
	tools := member(member(root, "dependencies"), "tools")
	if tools == nil {
		return
	}
	if tools.Kind != yaml.SequenceNode {
		s.fail(Manifest + ": dependencies.tools is " + nounOf(tools) + ", not a list")
		return
	}
	for _, tool := range tools.Content {
		s.Needs = append(s.Needs, d.dependency(tool)...)
	}
}

// dependency reads one entry of dependencies.tools: a server, and all its tools.
func (d *derivation) dependency(tool *yaml.Node) []Need {
	token, why := Manifest, "it depends on something that is no MCP server"
	var specs []capability.Spec
	kind, value := member(tool, "type"), member(tool, "value")
	if kind != nil && value != nil && kind.Value == "mcp" && isText(value) {
		token += ": " + clip(value.Value)
		specs, why = d.invoke(value.Value, "")
	}
	if at := member(tool, "url"); at != nil && !isEmpty(at) {
		why = "a client that lacks the server connects to its url, beside this gateway"
	}
	var needs []Need
	if why != "" {
		needs = d.unknown(token, why)
	} else {
		needs = []Need{{Token: token, Spec: specs[0]}}
	}
	if command := member(tool, "command"); command != nil && !isEmpty(command) {
		needs = append(needs, evaluated(token)...) // a client that lacks the server starts it so
	}
	return needs
}

// member finds a key of a map; nil has none.
func member(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for k, v := range pairs(n) {
		if k.Value == key {
			return v
		}
	}
	return nil
}
