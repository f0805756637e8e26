package gate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
)

// records is a small family: lead, scout under it, a broken one, and one that
// hangs from nobody.
var records = map[string]string{
	"lead.md": `---
class: agent
capabilities:
  - net.get: { hosts: ["*.github.com"] }
  - fs.read: { in: . }
  - fs.write: { in: . }
  - tool.invoke:*
  - rye.execute.*
approve: ["fs.write"]
---`,
	"scout.md": `---
class: agent
parent: lead
capabilities:
  - net.get: { hosts: ["*"] }
  - fs.read: { in: . }
  - fs.write: { in: . }
  - tool.invoke: { tools: ["files.*", "deploy.now", "other.tool"] }
  - rye.execute.tool.files.*
  - rye.execute.tool.other.*
toolset: ["files.*", "deploy.*"]
approve: ["deploy.now"]
---`,
	"broken.md": "---\nclass: agent\ncapabilites: []\n---\n",
	"orphan.md": "---\nclass: agent\nparent: nobody\ncapabilities: [records.read]\n---\n",
}

// gateOf makes a gate of records alone.
func gateOf(t *testing.T, records map[string]string) *gate.Gate {
	t.Helper()
	dir := t.TempDir()
	for name, text := range records {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roster, err := agents.Load(agents.Options{View: capability.View{Cwd: "/w"}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range roster.Findings() {
		t.Log(f)
	}
	return &gate.Gate{Roster: roster, Fence: capability.NewFence()}
}

func newGate(t *testing.T) (*gate.Gate, capability.View) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range records {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := capability.Root{Dir: "/w", Real: "/w"}
	view := capability.View{Cwd: "/w", Home: "/home/u"}
	roster, err := agents.Load(agents.Options{Config: root, View: view}, dir)
	if err != nil {
		t.Fatal(err)
	}
	own := capability.Root{Dir: "/w/agents", Real: "/w/agents"}
	return &gate.Gate{Roster: roster, Fence: capability.NewFence(own)}, view
}

// TestRequire: known agent, sound record, every link of the chain, the fence,
// ceilings on tool names, and approval last, for what is otherwise allowed
// (R-SCA-10, R-SCA-13, R-RYE-12, R-ETH-05, R-ETH-07).
func TestRequire(t *testing.T) {
	g, view := newGate(t)
	for _, c := range []struct{ agent, need, want string }{
		{"agents/scout", "net.get{url=https://api.github.com/}", "allow"},
		{"agents/scout", "net.get{url=https://example.org/}", "deny scope_violation parent agents/lead"},
		{"agents/scout", "net.post{url=https://api.github.com/}", "deny capability_absent"},
		{"agents/scout", "fs.read{path=docs/a}", "allow"},
		{"agents/scout", "fs.read{path=agents/scout.md}", "deny scope_violation " + gate.Fenced},
		{"agents/scout", "fs.read{tree=.}", "deny scope_violation " + gate.Fenced},
		{"agents/scout", "fs.write{path=a}", "deny requires_approval"},
		{"agents/scout", "fs.write{path=/etc/passwd}", "deny scope_violation"},
		{"agents/scout", "tool.invoke{tool=files.read}", "allow"},
		{"agents/scout", "tool.invoke{tool=deploy.now}", "deny requires_approval"},
		{"agents/scout", "tool.invoke{tool=deploy.later}", "deny scope_violation"},
		{"agents/scout", "tool.invoke{tool=other.tool}", "deny scope_violation toolset of"},
		{"agents/scout", "rye.execute.tool{id=files/read}", "allow"},
		{"agents/scout", "rye.execute.tool{id=other/tool}", "deny scope_violation toolset of"},
		{"agents/lead", "tool.invoke{tool=deploy.now}", "allow"},
		{"agents/lead", "fs.write{path=a}", "deny requires_approval"},
		{"agents/orphan", "records.read", "deny scope_violation"},
		{"agents/nobody", "records.read", "deny unauthenticated there is no record of the agent any more"},
		{"agents/broken", "records.read", "deny invalid_config"},
	} {
		need, err := capability.ParseRequirement(c.need, view)
		if err != nil {
			t.Fatal(err)
		}
		v := g.Require(c.agent, need)
		got := strings.TrimSpace(v.Decision.Effect.String() + " " + string(v.Decision.Code) + " " + v.Why)
		if got = strings.ReplaceAll(got, "  ", " "); !strings.HasPrefix(got, c.want) || c.want == "allow" && got != "allow" {
			t.Errorf("%s %s: got %s, want %s", c.agent, c.need, got, c.want)
		}
		if v.Decision.Code == capability.RequiresApproval && len(v.Decision.Held()) == 0 {
			t.Errorf("%s %s waits for approval of what is not held", c.agent, c.need)
		}
		if v.Decision.Need() != need {
			t.Errorf("%s %s is a decision about %v", c.agent, c.need, v.Decision.Need())
		}
	}
}

// TestRequireAll: what one call needs is needed together; nothing is not allowed.
func TestRequireAll(t *testing.T) {
	g, view := newGate(t)
	need := func(text string) *capability.Requirement {
		r, err := capability.ParseRequirement(text, view)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	read, fetch, bad := need("fs.read{path=a}"), need("net.get{url=https://api.github.com/}"), need("net.get{url=https://example.org/}")
	if v := g.Require("agents/scout", read, fetch); !v.Decision.Allowed() {
		t.Error(v)
	}
	if v := g.Require("agents/scout", read, bad, fetch); v.Decision.Allowed() || v.Decision.Need() != bad {
		t.Error(v)
	}
	if v := g.Require("agents/scout"); v.Decision.Allowed() {
		t.Error("nothing was asked for, and allowed")
	}
	if v := g.Require("agents/scout", read, need("fs.write{path=a}")); v.Approve != "fs.write" || v.Decision.Code != capability.RequiresApproval {
		t.Error(v)
	}
}

// TestCovers: a whole grant is compared with the whole chain (R-ETH-04).
func TestCovers(t *testing.T) {
	g, _ := newGate(t)
	for _, c := range []struct {
		agent, grant string
		want         bool
	}{
		{"agents/scout", "net.get{hosts=[api.github.com]}", true},
		{"agents/scout", "net.get{hosts=[example.org]}", false},
		{"agents/lead", "net.get{hosts=[*]}", false},
		{"agents/scout", "tool.invoke{tools=[files.read]}", true},
		{"agents/scout", "tool.invoke{tools=[other.tool]}", false},
		{"agents/scout", "rye.execute.tool.other.tool", false},
		{"agents/scout", "fs.read{in=/w/docs}", true},
		{"agents/scout", "fs.read{in=/w}", false},
		{"agents/broken", "records.read", false},
		{"agents/nobody", "records.read", false},
	} {
		spec, err := capability.ParseSpec(c.grant)
		if err != nil {
			t.Fatal(err)
		}
		set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		if gaps, v := g.Covers(c.agent, set); v.Decision.Allowed() != c.want {
			t.Errorf("%s %s: %v %v", c.agent, c.grant, gaps, v)
		}
	}
}
