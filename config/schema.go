package config

import (
	"go.yaml.in/yaml/v3"

	"capgate/capability"
)

// Key is one line of the schema: something that may be written in capgate.yml.
type Key struct {
	Name   string // with the keys it stands under: "sandbox.root", "tests[].agent"
	Takes  string // what is written there, in words
	Served bool   // false for what this version refuses by name
	Help   string
}

// Schema returns every key of capgate.yml, a section before what stands under it.
func Schema() []Key {
	var all []Key
	for _, k := range sections() {
		all = append(all, k.line(""))
		all = append(all, k.under...)
	}
	return all
}

// key is one line of the table that a map is read by. To serve one more, give it
// a reader, and the value it fills a field.
type key[T any] struct {
	name  string
	takes string
	help  string
	read  func(r *reader, n *yaml.Node, into *T) // nil: known, and not in this version
	under []Key                                  // what stands below it, for the schema
}

func (k key[T]) line(above string) Key {
	return Key{Name: above + k.name, Takes: k.takes, Served: k.read != nil, Help: k.help}
}

// lines returns a table as the schema shows it below another key.
func lines[T any](above string, keys []key[T]) []Key {
	var list []Key
	for _, k := range keys {
		list = append(list, k.line(above))
		list = append(list, k.under...)
	}
	return list
}

// sections is the table of the file itself.
func sections() []key[Config] {
	return []key[Config]{
		{
			name: "listen", takes: "an address or a map", read: (*reader).listen, under: lines("listen.", listenKeys()),
			help: "where agents connect over HTTP, " + defaultAddress + " unless written",
		},
		{
			name: "agents", takes: "a folder or a list of folders", read: (*reader).agents,
			help: "where the agent records are; an agent without a record may do nothing",
		},
		{
			name: "skills", takes: "a list of folders or a map", read: (*reader).skills, under: lines("skills.", skillKeys()),
			help: "where the skills are; each agent is shown those that its grants satisfy",
		},
		{
			name: "sandbox", takes: "a folder or a map", read: (*reader).sandbox, under: lines("sandbox.", sandboxKeys()),
			help: "the root that fs and proc grants hang from; no record reaches beyond it",
		},
		{
			name: "state", takes: "a folder", read: (*reader).state,
			help: "what capgate keeps between runs, ./" + defaultState + " unless written",
		},
		{
			name: "upstreams", takes: "a map of servers", read: (*reader).upstreams, under: lines("upstreams.*.", upstreamKeys()),
			help: "the MCP servers behind the gateway",
		},
		{name: "mappings", takes: "a list of folders", read: (*reader).mappings, help: "where your own mappings are: what the arguments of tools mean"},
		{
			name: "secrets", takes: "a map of secrets", read: (*reader).secrets, under: lines("secrets.*.", secretKeys()),
			help: "where the values behind secret handles come from",
		},
		{
			name: "providers", takes: "a map of providers", read: (*reader).providers, under: lines("providers.*.", providerKeys()),
			help: "model providers that agents reach through the gateway, which narrows the tools that run there",
		},
		{
			name: "limits", takes: "a map of limits", read: (*reader).limits, under: lines("limits.", limitKeys()),
			help: "how long, how large and how often",
		},
		{
			name: "guardrail", takes: "a map", read: (*reader).guardrail, under: lines("guardrail.", guardrailKeys()),
			help: "where decisions are recorded",
		},
		{
			name: "introspection", takes: "true or false", help: "whether agents see the gateway's own tools, whoami and explain; true unless written",
			read: func(r *reader, n *yaml.Node, c *Config) { c.Unseen = !r.flag(n, "introspection") },
		},
		{
			name: "tests", takes: "a list of policy tests", read: (*reader).tests, under: testLines(),
			help: "what must be allowed and what must be denied",
		},
		{name: "egress", takes: "a map", help: "what the processes of servers may connect to"},
		{name: "approvals", takes: "a map", help: "who is asked about what waits for approval"},
		{name: "memory", takes: "a map", help: "what agents keep from one session to the next"},
		{name: "records", takes: "a map", help: "which records agents may write"},
		{name: "learn", takes: "a map", help: "where calls are gathered that a record is made of"},
	}
}

// sandboxKeys is the table of sandbox: written as a map.
func sandboxKeys() []key[capability.Root] {
	return []key[capability.Root]{
		{name: "root", takes: "a folder", read: (*reader).sandboxRoot, help: "the same as sandbox: with a folder"},
		{name: "backend", takes: "auto", read: (*reader).backend, help: "what confines programs; auto is the best there is"},
	}
}

// testKeys is the table of one entry of tests:.
func testKeys() []key[block] {
	return []key[block]{
		{name: "agent", takes: "an agent's id", read: (*reader).testAgent, help: "who is asked about"},
		{name: "allow", takes: "a list of requirements", read: (*reader).testAllow, help: "what must be allowed"},
		{name: "deny", takes: "a list of requirements", read: (*reader).testDeny, help: "what must be denied"},
	}
}

// entryKeys is the table of one entry of allow: or deny: written as a map.
func entryKeys() []key[Test] {
	return []key[Test]{
		{
			name: "requirement", takes: "a requirement", read: (*reader).requirement,
			help: "a verb and the one thing it touches: fs.read{path=notes/todo.md}",
		},
		{
			name: "covers", takes: "a grant", read: (*reader).covers,
			help: "a grant that is, or is not, inside all that the agent holds: net.get{hosts=[github.com]}",
		},
		{name: "code", takes: "a code", read: (*reader).code, help: "under deny: only: the code of the denial, such as scope_violation"},
		{name: "tool", takes: "a tool's name", read: (*reader).toolName, help: "a whole tool call: files.read_file"},
		{name: "args", takes: "a map of arguments", read: (*reader).args, help: "the arguments of the tool call, none unless written"},
		{name: "skill", takes: "the path of a skill", read: (*reader).skillPath, help: "a skill that is, or is not, shown: web/fetch-docs"},
	}
}

func testLines() []Key {
	return append(lines("tests[].", testKeys()), lines("tests[].allow[].", entryKeys())...)
}
