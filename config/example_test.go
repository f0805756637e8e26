package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/config"
)

// example is the configuration that users start from, where it stands.
func example(t *testing.T) (*config.Config, capability.View) {
	t.Helper()
	dir, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	v := capability.View{Cwd: dir, Home: "/home/me"}
	c, findings, err := config.Load("config.example.yml", v)
	if err != nil || len(findings) > 0 {
		t.Fatalf("the example loads with %v and %v", findings, err)
	}
	return c, v
}

// Everything that is served is shown in the example.
func TestExampleShowsEverything(t *testing.T) {
	text := string(read(t, "../config.example.yml"))
	for _, k := range config.Schema() {
		name := k.Name[strings.LastIndexByte(k.Name, '.')+1:]
		if shown := strings.Contains(text, name+": ") || strings.Contains(text, name+":\n"); k.Served && !shown {
			t.Errorf("%s does not stand in the example", k.Name)
		}
	}
}

// What the example promises about its agents holds.
func TestExample(t *testing.T) {
	c, v := example(t)
	roster, err := agents.Load(agents.Options{Config: c.Sandbox, View: v}, c.Agents...)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range roster.Findings() {
		t.Errorf("the example finds %v", f)
	}
	if len(c.Tests) == 0 {
		t.Error("the example tests nothing")
	}
	for _, test := range c.Tests {
		if test.Tool != "" || test.Skill != "" {
			continue // what those need is not in the records; capgate check asks the gate
		}
		effect, code := ask(t, roster, test, v)
		if !test.Met(effect, code) {
			t.Errorf("%v: %s: %s is %v %s, want %s", test.Pos, test.Agent, test.Text(), effect, code, test.Want())
		}
	}
}

// ask puts a policy test to the records alone.
func ask(t *testing.T, roster *agents.Roster, test config.Test, v capability.View) (capability.Effect, capability.Code) {
	t.Helper()
	agent, ok := roster.Agent(test.Agent)
	if !ok || agent.Err != nil {
		t.Fatalf("the agent %s is %+v", test.Agent, agent)
	}
	chain, err := roster.Chain(test.Agent)
	if err != nil {
		t.Fatal(err)
	}
	if test.Covers != nil {
		set, findings := capability.Compile([]capability.Spec{*test.Covers}, capability.Options{Config: agent.Root, View: v})
		if len(findings) > 0 {
			t.Errorf("%v: %v", test.Pos, findings)
		}
		if slices.ContainsFunc(chain, func(l capability.Link) bool { return len(l.Set.Covers(set)) > 0 }) {
			return capability.Deny, capability.ScopeViolation
		}
		return capability.Allow, ""
	}
	need, err := capability.ParseRequirement(test.Requirement, capability.View{Cwd: agent.Root.Dir, Home: v.Home})
	if err != nil {
		t.Fatalf("%v: %v", test.Pos, err)
	}
	d := chain.Decide(need)
	if d.Allowed() && slices.Contains(agent.Record.Approve, string(need.Verb())) {
		return capability.Deny, capability.RequiresApproval
	}
	return d.Effect, d.Code
}
