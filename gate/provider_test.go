package gate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/gate"
)

// TestProvider: what a provider may do for an agent is what its whole chain allows,
// and what nobody has to approve.
func TestProvider(t *testing.T) {
	record := func(rest string) string { return "---\nclass: agent\n" + rest + "---\n" }
	g := gateOf(t, map[string]string{
		"lead.md":    record("capabilities:\n  - net.get: { hosts: [\"*.github.com\"] }\n  - provider.code_execution\n"),
		"child.md":   record("parent: lead\ncapabilities:\n  - net.get: { hosts: [\"*\"] }\n  - provider.code_execution\n  - provider.file_search\n"),
		"waiting.md": record("approve: [\"net.get\", \"provider.*\"]\ncapabilities:\n  - net.get: { hosts: [\"*\"] }\n  - provider.code_execution\n"),
		"asking.md":  record("approve: [\"net.*\"]\ncapabilities:\n  - net.get: { hosts: [\"*\"] }\n  - provider.code_execution\n"),
		"meek.md":    record("approve: [\"*\"]\ncapabilities:\n  - net.get: { hosts: [\"*\"] }\n  - provider.code_execution\n"),
		"posting.md": record("approve: [\"net.post\"]\ncapabilities:\n  - net.get: { hosts: [\"*\"] }\n  - provider.code_execution\n"),
		"broken.md":  record("capabilites: []\n"),
		"ethos.yaml": "dialect: ethos\ntoolset: [\"hub.*\"]\nsafety: { network: { allow: [a.example] } }\n",
		"ward.md":    record("parent: ethos\ncapabilities:\n  - tool.invoke: { tools: [hub.read] }\n"),
		"named.md":   record("toolset: [\"files.*\"]\ncapabilities:\n  - tool.invoke: { tools: [\"**\"] }\n"),
	})
	verb := func(v capability.Verb, words ...capability.Word) *capability.Requirement {
		need, err := capability.Keyed(v, words...)
		if err != nil {
			t.Fatal(err)
		}
		return need
	}
	code, files := verb("provider.code_execution"), verb("provider.file_search")
	for name, test := range map[string]struct {
		agent string
		hosts []string
		need  *capability.Requirement
		code  capability.Code
	}{
		"an agent alone":             {"lead", []string{"*.github.com"}, code, ""},
		"its parent narrows":         {"child", []string{"*.github.com"}, files, capability.ScopeViolation},
		"both hold it":               {"child", []string{"*.github.com"}, code, ""},
		"nobody approves in between": {"waiting", nil, code, capability.RequiresApproval},
		"for all of a resource":      {"asking", nil, code, ""},
		"for everything":             {"meek", nil, code, capability.RequiresApproval},
		"for something else":         {"posting", []string{"*"}, code, ""},
		"a ceiling on names":         {"named", nil, verb("tool.invoke", capability.Word{Dim: "tool", Value: "github.search"}), capability.ScopeViolation},
		"what nothing declares":      {"ethos", []string{"a.example"}, verb("tool.invoke", capability.Word{Dim: "tool", Value: "hub.read"}), capability.NotAvailable},
		"the same, for a child":      {"ward", nil, verb("tool.invoke", capability.Word{Dim: "tool", Value: "hub.read"}), capability.NotAvailable},
		"within the ceiling":         {"named", nil, verb("tool.invoke", capability.Word{Dim: "tool", Value: "files.read"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			reach, denied := g.Provider("agents/" + test.agent)
			if denied != nil {
				t.Fatal(denied.Why)
			}
			var hosts []string
			for _, h := range reach.Hosts("net.get") {
				hosts = append(hosts, h.String())
			}
			if diff := cmp.Diff(test.hosts, hosts); diff != "" {
				t.Error(diff)
			}
			if d := reach.Require(test.need); d.Code != test.code || d.Allowed() != (test.code == "") {
				t.Errorf("%v; want %q", d, test.code)
			}
		})
	}
	for agent, want := range map[string]capability.Code{"nobody": capability.Unauthenticated, "broken": capability.InvalidConfig} {
		if _, denied := g.Provider("agents/" + agent); denied == nil || denied.Decision.Code != want {
			t.Errorf("%s: %v, want %s", agent, denied, want)
		}
	}
	for agent, want := range map[string]bool{"waiting": true, "meek": true, "lead": false, "asking": false} {
		reach, _ := g.Provider("agents/" + agent)
		if got := reach.Waits("provider.web_search"); got != want {
			t.Errorf("a search of %s waits: %t", agent, got)
		}
	}
	if d := (gate.Reach{}).Require(code); d.Allowed() || (gate.Reach{}).Hosts("net.get") != nil {
		t.Error("the zero Reach reaches something")
	}
}

// TestProviderWithin: a reach in force within an older gate is no wider than that.
func TestProviderWithin(t *testing.T) {
	record := func(hosts string) map[string]string {
		return map[string]string{"scout.md": "---\nclass: agent\ncapabilities:\n  - net.get: { hosts: [" + hosts + "] }\n---\n"}
	}
	now := gateOf(t, record("a.example, b.example"))
	now.Within = gateOf(t, record("b.example, c.example"))
	reach, denied := now.Provider("agents/scout")
	if denied != nil {
		t.Fatal(denied.Why)
	}
	if hosts := reach.Hosts("net.get"); len(hosts) != 1 || hosts[0].String() != "b.example" {
		t.Errorf("%v", hosts)
	}
}
