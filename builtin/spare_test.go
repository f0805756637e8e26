package builtin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"capgate/builtin"
	"capgate/capability"
)

// fenced is an agent that may do anything to files but for what is fenced off.
func fenced(t testing.TB, fence capability.Fence) func(*capability.Requirement) error {
	decide := everything(t)
	return func(r *capability.Requirement) error {
		if fence.Touches(r) {
			return &capability.Denied{Decision: capability.Denial(capability.ScopeViolation, r)}
		}
		return decide(r)
	}
}

// TestDeleteSpares: a directory is not deleted with what may not be deleted by itself, and
// what that is called is not told (R-SEC-09).
func TestDeleteSpares(t *testing.T) {
	root := tree(t, "proj/.claude/settings.json={}", "proj/a=x", "deep/x/.claude/agents/a.md=x", "alike/claude/settings.json={}",
		"skills/.claude/skills/a/SKILL.md=x", "app/node_modules/p/.claude/settings.json={}", "node_modules/q/.mcp.json={}",
		"link -> proj", "many/", "odd/\xff=x")
	for i := range 30 {
		if err := os.WriteFile(fmt.Sprintf("%s/many/%02d", root.Dir, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	fence := capability.NewFence().Hiding(".mcp.json", ".claude/settings.json").SealingNamed(".claude/agents")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: fenced(t, fence), Limits: builtin.Limits{Entries: 1}})
	for _, s := range []step{
		{"a file that is kept", "delete", `{"path":"proj","recursive":true}`, "denied scope_violation"},
		{"far beneath", "delete", `{"path":"deep","recursive":true}`, "denied scope_violation"},
		{"of another name", "delete", `{"path":"alike","recursive":true}`, "deleted"},
		{"skills", "delete", `{"path":"skills","recursive":true}`, "deleted"},
		{"packages", "delete", `{"path":"app","recursive":true}`, "deleted"},
		{"packages themselves", "delete", `{"path":"node_modules","recursive":true}`, "deleted"},
		{"a link", "delete", `{"path":"link","recursive":true}`, "deleted"},
		{"a file", "delete", `{"path":"proj/a","recursive":true}`, "deleted"},
		{"an odd name", "delete", `{"path":"odd","recursive":true}`, "deleted"},
		{"too many", "delete", `{"path":"many","recursive":true}`, "error: there are more entries"},
	} {
		s.run(t, conn)
	}
	for _, kept := range []string{"proj/.claude/settings.json", "deep/x/.claude/agents/a.md", "many/00"} {
		if _, err := os.Lstat(root.Dir + "/" + kept); err != nil {
			t.Error(err)
		}
	}
	if o := call(t, conn, "delete", `{"path":"proj","recursive":true}`); o.denied == nil || strings.Contains(o.denied.Decision.String(), "settings") {
		t.Errorf("the denial is %v", o.denied)
	}
}

// TestParentsOfClients: a folder that is kept for what it may bring along can be made to
// write in it what is allowed there (R-SEC-09).
func TestParentsOfClients(t *testing.T) {
	root := tree(t, "a=x")
	fence := capability.NewFence().Hiding(".cursor/mcp.json", ".claude/settings.json").SealingNamed(".claude/agents")
	conn := open(t, "fs", builtin.Options{Root: root, Decide: fenced(t, fence)})
	for _, s := range []step{
		{"rules", "write", `{"path":".cursor/rules/a.mdc","content":"x","parents":true}`, "wrote"},
		{"skills", "write", `{"path":"sub/.claude/skills/a/SKILL.md","content":"x","parents":true}`, "wrote"},
		{"a hidden file", "write", `{"path":"new/.cursor/mcp.json","content":"x","parents":true}`, "denied scope_violation"},
		{"a sealed folder", "write", `{"path":"new/.claude/agents/a.md","content":"x","parents":true}`, "denied scope_violation"},
	} {
		s.run(t, conn)
	}
	if _, err := os.Lstat(root.Dir + "/new"); err == nil {
		t.Error("a folder was made for what may not be written")
	}
}
