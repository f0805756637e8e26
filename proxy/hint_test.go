package proxy_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"capgate/proxy"
)

// hinted is a server for denials that say what to do.
func hinted(t *testing.T, s *scripted) *proxy.Upstream {
	s.lists = map[string]string{"tools/list": `"tools":[` + strings.Join([]string{
		tool("read", "path"), tool("move", "from", "to"), tool("get", "url"), tool("bare", "x"), tool("many", "paths"), tool("loose", "x", "y"), tool("fetch", "url", "path"),
	}, ",") + `]`}
	m := parsed(t, "server: s\ntools:\n  read: {path: fs.read}\n  move: {from: [fs.read, fs.delete], to: fs.write}\n  get: {url: net.get}\n  fetch: {url: net.get, path: fs.read}\n  bare: {x: free}\n  many: {\"paths[*]\": fs.read}\n")
	return &proxy.Upstream{Name: "up", Prefix: "up", Mapping: m, Open: s.open}
}

// scoped is the record of an agent below a root.
func scoped(more ...string) string {
	return "---\nclass: agent\nsandbox: $ROOT\n" + strings.Join(more, "") + "---\n"
}

// TestHints: a denial names the narrowest grants that would allow the call, and
// names none where none would. What it names is tried.
func TestHints(t *testing.T) {
	const docs = "capabilities:\n  - fs.read: { paths: [docs] }\n  - net.get: { hosts: [example.com] }\n  - fs.write: { paths: [out] }\n"
	const elsewhere = "stay within what is held, or ask the operator, who finds the reason in the event"
	for name, c := range map[string]struct {
		record, parent, toolset string
		flags                   bool
		tool, args              string
		hint, blocked           string
	}{
		"outside the scope": {
			record: docs, tool: "read", args: `{"path":"$ROOT/notes/a"}`,
			hint: "stay within what is held, or ask the operator for: capgate agents grant scout 'fs.read{paths=[notes/a]}'",
		},
		"nothing held": {
			record: docs, tool: "move", args: `{"from":"$ROOT/docs/a","to":"$ROOT/b"}`,
			hint: "ask the operator for: capgate agents grant scout 'fs.delete{paths=[docs/a]}' 'fs.write{paths=[b]}'",
		},
		"nothing held, and no arguments to read": {
			record: docs, tool: "move", args: `{"from":7}`,
			hint: "ask the operator for a grant of fs.delete",
		},
		"outside the root": {
			record: docs, tool: "read", args: `{"path":"/etc/passwd"}`,
			hint: elsewhere, blocked: "no grant of fs.read in the record of agents/scout would do",
		},
		"a special address": {
			record: docs, tool: "get", args: `{"url":"http://169.254.169.254/latest"}`,
			hint: "stay within what is held (no wildcard covers what is not of the public internet), or ask the operator for: capgate agents grant scout 'net.get{hosts=[169.254.169.254]}'",
		},
		"a public address": {
			record: docs, tool: "get", args: `{"url":"https://example.org/"}`,
			hint: "stay within what is held, or ask the operator for: capgate agents grant scout 'net.get{hosts=[example.org]}'",
		},
		"the parent denies": {
			record: docs + "parent: agents/boss\n", parent: "capabilities:\n  - fs.read: { paths: [other] }\n",
			tool: "read", args: `{"path":"$ROOT/docs/a"}`, hint: elsewhere, blocked: "parent agents/boss",
		},
		"the parent denies as well": {
			record: docs + "parent: agents/boss\n", parent: "capabilities:\n  - fs.read: { paths: [other] }\n",
			tool: "read", args: `{"path":"$ROOT/notes/a"}`, hint: elsewhere, blocked: "parent agents/boss would have to allow fs.read of it too",
		},
		"the parent allows": {
			record: docs + "parent: agents/boss\n", parent: "capabilities:\n  - fs.read: { paths: [notes] }\n",
			tool: "read", args: `{"path":"$ROOT/notes/a"}`,
			hint: "stay within what is held, or ask the operator for: capgate agents grant scout 'fs.read{paths=[notes/a]}'",
		},
		"outside the toolset": {
			record: docs + "toolset: [other.*]\n", tool: "read", args: `{"path":"$ROOT/docs/a"}`,
			hint: elsewhere, blocked: "toolset of agents/scout",
		},
		"a tool by name": {
			record: docs, tool: "bare", args: `{"x":"y"}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.bare]}'",
		},
		"a tool that no mapping covers": {
			record: docs, tool: "loose", args: `{"x":"docs/a","y":7}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose],args={x=[docs/a],y=[7]}}'",
		},
		"the same once more, with another argument": {
			record: docs + "  - tool.invoke: { tools: [up.loose], args: { x: [docs/b] } }\n", tool: "loose", args: `{"x":"docs/a","y":7}`,
			hint: "stay within what is held, or ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose],args={x=[docs/a],y=[7]}}'",
		},
		"the same with more than one would read": {
			record: docs, tool: "loose", args: `{"x":"` + strings.Repeat("a", 3000) + `"}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose]}'",
		},
		"the same, and the parent denies": {
			record: docs + "parent: agents/boss\n", parent: "capabilities:\n  - fs.read: { paths: [docs] }\n",
			tool: "loose", args: `{"x":"docs/a"}`, hint: elsewhere, blocked: "parent agents/boss would have to allow tool.invoke of it too",
		},
		"the same with what no grant can say": {
			record: docs, tool: "loose", args: `{"x":""}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose]}'",
		},
		"the same with more than a pattern holds": {
			record: docs, tool: "loose", args: `{"x":"` + strings.Repeat("a", 600) + `"}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose]}'",
		},
		"the same with another name in a name": {
			record: docs, tool: "loose", args: `{"x=y":"c"}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose]}'",
		},
		"the same with a mark": {
			record: docs, tool: "loose", args: `{"x":"!a"}`,
			hint: "ask the operator for: capgate agents grant scout 'tool.invoke{tools=[up.loose]}'",
		},
		"on the command line": {
			record: docs, flags: true, tool: "move", args: `{"from":"$ROOT/docs/a","to":"$ROOT/b"}`,
			hint: "ask the operator to start capgate wrap with: --grant 'fs.delete{paths=[docs/a]}' --grant 'fs.write{paths=[b]}'",
		},
		"words for a shell": {
			record: docs, tool: "read", args: `{"path":"$ROOT/a'&ls&'b"}`,
			hint: `stay within what is held, or ask the operator for: capgate agents grant scout 'fs.read{paths=[a'\''&ls&'\''b]}'`,
		},
		"words that are not seen": {
			record: docs, tool: "read", args: `{"path":"$ROOT/a\u202eb"}`, hint: elsewhere,
		},
		"more than one would read": {
			record: docs, tool: "many", args: `{"paths":["$ROOT/1","$ROOT/2","$ROOT/3","$ROOT/4","$ROOT/5","$ROOT/6","$ROOT/7","$ROOT/8","$ROOT/9"]}`, hint: elsewhere,
		},
		"the same twice": {
			record: docs, tool: "many", args: `{"paths":["$ROOT/1","$ROOT/docs/a","$ROOT/1"]}`,
			hint: "stay within what is held, or ask the operator for: capgate agents grant scout 'fs.read{paths=[1]}'",
		},
		"longer than one would read": {
			record: docs, tool: "many", args: `{"paths":["` + strings.Join([]string{long("a"), long("b"), long("c"), long("d"), long("e"), long("f"), long("g"), long("h")}, `","`) + `"]}`, hint: elsewhere,
		},
		"words without end": {
			record: docs, tool: "read", args: `{"path":"$ROOT/` + strings.Repeat("a/", 1500) + `"}`, hint: elsewhere, blocked: "no grant of fs.read in the record",
		},
	} {
		t.Run(name, func(t *testing.T) {
			records := map[string]string{"scout": scoped(c.record)}
			if c.parent != "" {
				records["boss"] = scoped(c.parent)
			}
			w := start(t, records, hinted(t, &scripted{}))
			w.flags = c.flags
			w.adopt()
			agent := w.client("scout")
			agent.initialize("{}")
			call := `{"name":"up__` + c.tool + `","arguments":` + strings.ReplaceAll(c.args, "$ROOT", w.root) + `}`
			answer := agent.request("tools/call", call)
			d := denialOf(t, answer)
			if d.Hint != c.hint {
				t.Errorf("the hint is\n %s\nand not\n %s", d.Hint, c.hint)
			}
			if wide := strings.HasSuffix(c.hint, "{tools=[up.loose]}'"); wide != strings.Contains(answer.Raw, "none can be written with all of these arguments") {
				t.Errorf("that a grant is for any arguments: %s", answer.Raw)
			}
			if strings.Contains(answer.Raw, "boss") {
				t.Errorf("the agent is told of another one: %s", answer.Raw)
			}
			events := w.events.of("decision")
			if link := events[len(events)-1].Link; c.blocked != "" && strings.Count(link, c.blocked) != 1 || (c.blocked == "") != (link == "") {
				t.Errorf("the operator is told %q, not %q", link, c.blocked)
			}
			if grants := asked(d.Hint); len(grants) > 0 {
				record := strings.ReplaceAll(c.record, "capabilities:\n", "capabilities:\n  - "+strings.Join(grants, "\n  - ")+"\n")
				w.write("scout", scoped(record))
				w.adopt()
				if again := denialOf(t, agent.request("tools/call", call)); again.Code != "" {
					t.Errorf("what was asked for does not do: %+v", again)
				}
			}
		})
	}
}

// asked are the grants that a hint names, as YAML.
func asked(hint string) (grants []string) {
	hint = strings.ReplaceAll(hint, `'\''`, "\x00")
	for _, m := range regexp.MustCompile(`'([^']*)'`).FindAllStringSubmatch(hint, -1) {
		text, _ := json.Marshal(strings.ReplaceAll(m[1], "\x00", "'"))
		grants = append(grants, string(text))
	}
	return grants
}

// long is a path of some length.
func long(name string) string {
	return "$ROOT/" + strings.Repeat(name, 150) + "/" + strings.Repeat(name, 150)
}
