package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/config"
)

func TestPolicyTests(t *testing.T) {
	c := parse(t, `tests:
  - agent: scout
    allow:
      - fs.read{path=notes/todo.md}
      - { requirement: "net.get{url=https://github.com/}" }
      - covers: net.get{hosts=[github.com]}
    deny:
      - requirement: fs.read{path=/etc/passwd}
        code: scope_violation
      - covers: rye.*
      - requirement: 'net.get{url="https://a.b\\@c.d/"}'
        code: malformed_arguments
  - { agent: agents/Lead.2, deny: [agent.discover] }
`)
	at := func(line, col int) capability.Pos { return capability.Pos{File: file, Line: line, Col: col} }
	grant := func(text string, pos capability.Pos) *capability.Spec {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		spec.Pos = pos
		return &spec
	}
	want := []config.Test{
		{Agent: "scout", Requirement: "fs.read{path=notes/todo.md}", Effect: capability.Allow, Pos: at(4, 9)},
		{Agent: "scout", Requirement: "net.get{url=https://github.com/}", Effect: capability.Allow, Pos: at(5, 9)},
		{Agent: "scout", Covers: grant("net.get{hosts=[github.com]}", at(6, 17)), Effect: capability.Allow, Pos: at(6, 9)},
		{Agent: "scout", Requirement: "fs.read{path=/etc/passwd}", Code: capability.ScopeViolation, Pos: at(8, 9)},
		{Agent: "scout", Covers: grant("rye.*", at(10, 17)), Pos: at(10, 9)},
		{Agent: "scout", Requirement: `net.get{url="https://a.b\\@c.d/"}`, Code: capability.MalformedArguments, Pos: at(11, 9)},
		{Agent: "agents/Lead.2", Requirement: "agent.discover", Pos: at(13, 36)},
	}
	if diff := cmp.Diff(want, c.Tests); diff != "" {
		t.Fatalf("the tests differ (-want +got):\n%s", diff)
	}
}

func TestTestWords(t *testing.T) {
	c := parse(t, `tests:
- agent: scout
  allow: [agent.discover, covers: obs.append]
  deny: [memory.read, {requirement: obs.append, code: scope_violation}]
`)
	for i, want := range []struct {
		text, want string
		met        [3]bool // by allow, deny with scope_violation, deny with another code
	}{
		{"agent.discover", "allow", [3]bool{true, false, false}},
		{"covers obs.append", "allow", [3]bool{true, false, false}},
		{"memory.read", "deny", [3]bool{false, true, true}},
		{"obs.append", "deny scope_violation", [3]bool{false, true, false}},
	} {
		test := c.Tests[i]
		met := [3]bool{
			test.Met(capability.Allow, ""),
			test.Met(capability.Deny, capability.ScopeViolation),
			test.Met(capability.Deny, capability.CapabilityAbsent),
		}
		if test.Text() != want.text || test.Want() != want.want || met != want.met {
			t.Errorf("test %d is %s: %s, met %v; want %+v", i, test.Text(), test.Want(), met, want)
		}
	}
}

func TestWrongPolicyTests(t *testing.T) {
	const (
		oneTest  = "tests:\n- "
		oneAllow = "tests:\n- agent: scout\n  allow:\n  - "
		oneDeny  = "tests:\n- agent: scout\n  deny:\n  - "
		keys     = "what can be written here is requirement, covers, code, tool, args, skill"
		perLine  = "write each entry on a line of its own, after a dash"
	)
	for _, tc := range []struct{ in, want string }{
		{"tests: {}", "1:8: tests takes a list of policy tests, not a map | " + perLine},
		{oneTest + "5", "2:3: a test takes a map, not a number | write agent, allow, deny"},
		{oneTest + "{}", "2:3: the test names no agent | add agent: with its id"},
		{oneTest + "allow: [agent.discover]", "2:3: the test names no agent | add agent: with its id"},
		{oneTest + "agent: scout", "2:3: the test expects nothing | add allow: or deny:"},
		{oneTest + "{agent: scout, allow: [], deny: []}", "2:3: the test expects nothing | add allow: or deny:"},
		{oneTest + "{agent: 'a b', allow: [agent.discover]}", `2:11: "a b" is no agent id | an id is letters, digits, - _ . and / between names`},
		{oneTest + "{agent: ../lead, allow: [agent.discover]}", `2:11: "../lead" is no agent id | an id is letters, digits, - _ . and / between names`},
		{oneTest + "{agent: 5, allow: [agent.discover]}", "2:11: agent takes an agent's id, not a number | quote it if it is meant as text"},
		{oneTest + "{agent: scout, alow: [agent.discover]}", `2:18: "alow" is no key of a test | did you mean allow?`},
		{oneTest + "{agent: scout, allow: agent.discover}", "2:25: allow takes a list of requirements, not text | " + perLine},
		{oneTest + "{agent: scout, deny: agent.discover}", "2:24: deny takes a list of requirements, not text | " + perLine},

		{oneAllow + "fs.reed{path=x}", `4:5: "fs.reed" is no verb | did you mean fs.read?`},
		{oneAllow + "quite.else", `4:5: "quite.else" is no verb`},
		{oneAllow + "fs.read", "4:5: a requirement of fs.read names one of path, tree, glob"},
		{oneAllow + "fs.read{pth=x}", `4:5: "pth" does not belong to a requirement of fs.read: it takes path, tree, glob`},
		{oneAllow + "fs.read{path=x", `4:5: grant "fs.read{path=x": a comma or a closing brace is missing after "path"`},
		{oneAllow + "5", "4:5: an entry takes a requirement, not a number | quote it if it is meant as text"},
		{oneAllow + "''", "4:5: an entry takes a requirement, not an empty text"},
		{oneAllow + "", "4:4: an entry takes a requirement, and nothing is written"},
		{oneAllow + "[agent.discover]", "4:5: an entry takes a requirement, not a list"},
		{oneAllow + "{}", "4:5: the entry names neither a requirement nor a grant nor a tool nor a skill | add requirement:, covers:, tool: or skill:"},
		{oneAllow + "{requirement: agent.discover, code: scope_violation}", "4:41: only a denial has a code | move the entry to deny:, or remove the code"},
		{oneAllow + "{tool: files.read}", `4:12: there is no upstream "files" | add it to upstreams:`},
		{oneAllow + "{skill: 5}", "4:13: skill takes the path of a skill, not a number | quote it if it is meant as text"},
		{oneAllow + "{skill: review, covers: agent.discover}", "4:29: an entry is a requirement, a grant, a tool call or a skill, not two of them | make them two entries"},
		{oneAllow + "{skill: review, code: capability_absent}", "4:27: only a denial has a code | move the entry to deny:, or remove the code"},
		{oneAllow + "{reqirement: agent.discover}", `4:6: "reqirement" is no key of an entry | did you mean requirement?`},
		{oneAllow + "{requirement: agent.discover, covers: agent.discover}", "4:43: an entry is a requirement, a grant, a tool call or a skill, not two of them | make them two entries"},
		{oneAllow + "{requirement: [agent.discover]}", "4:19: an entry takes a requirement, not a list"},
		{oneAllow + "{covers: 5}", "4:14: an entry takes a grant, not a number | quote it if it is meant as text"},
		{oneAllow + "{covers: net.get}", "4:14: net.get is inert: it grants nothing without a scope | write net.get{hosts=[*.example.com]}"},
		{oneAllow + "{covers: 'net.get{hosts=[]}'}", "4:14: net.get is inert: hosts: is empty"},
		{oneAllow + "{covers: 'net.get{host=[a.b]}'}", `4:14: net.get is inert: "host" is no scope key of net.get | did you mean hosts?`},
		{oneAllow + "{covers: 'net.gte{hosts=[a.b]}'}", `4:14: "net.gte" is no verb | did you mean net.get?`},

		{oneDeny + "{requirement: agent.discover, code: scope_violatoin}", `4:41: code takes a code of a denial, which "scope_violatoin" is not | did you mean scope_violation?`},
		{oneDeny + "{requirement: agent.discover, code: 5}", "4:41: code takes a code of a denial, not a number | quote it if it is meant as text"},
		{oneDeny + "{covers: agent.discover, code: scope_violation}", "4:36: a comparison of grants has no code | remove it"},
		{oneDeny + "{code: scope_violation}", "4:5: the entry names neither a requirement nor a grant nor a tool nor a skill | add requirement:, covers:, tool: or skill:"},
	} {
		want := []string{"capgate.yml:" + tc.want}
		if diff := cmp.Diff(want, wrong(t, tc.in+"\n", view())); diff != "" {
			t.Errorf("Parse(%q): the errors differ (-want +got):\n%s", tc.in, diff)
		}
	}
}

// A code that is none at all gets the list of those there are.
func TestUnknownCode(t *testing.T) {
	got := wrong(t, "tests:\n- agent: scout\n  deny:\n  - {requirement: agent.discover, code: nope}\n", view())
	if len(got) != 1 {
		t.Fatalf("the errors are %q", got)
	}
	for _, code := range capability.Codes() {
		if !strings.Contains(got[0], string(code)) {
			t.Errorf("%s does not stand in %s", code, got[0])
		}
	}
}

// What names policy is kept to the letter: nothing lower-cases it, splits it at
// dots, or merges what differs in case.
func TestToTheLetter(t *testing.T) {
	ids := []string{"Read_File", "read_file", "Scout.v2", "agents/READ.file", "a.b.c"}
	const call = "tool.invoke{tool=Files.Read_File,args={Owner=Acme.Inc,owner=acme.inc}}"
	var b strings.Builder
	b.WriteString("agents: [./Agents.d, ./agents.d]\nsandbox: ~/Work.Dir\ntests:\n")
	for _, id := range ids {
		fmt.Fprintf(&b, "- agent: %s\n  allow:\n  - %s\n", id, call)
	}
	c := parse(t, b.String())
	if c.Sandbox.Dir != "/home/me/Work.Dir" || len(c.Agents) != 2 || c.Agents[0] != "/srv/gate/Agents.d" || c.Agents[1] != "/srv/gate/agents.d" {
		t.Errorf("the folders are %v and %v", c.Sandbox, c.Agents)
	}
	for i, id := range ids {
		if got := c.Tests[i]; got.Agent != id || got.Requirement != call {
			t.Errorf("%s became %+v", id, got)
		}
	}
}
