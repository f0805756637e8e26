package capability_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
)

// TestChainLimits: an argument counts when a grant in effect names it, in any link.
func TestChainLimits(t *testing.T) {
	own := compile(t, "tool.invoke{tools=[a.b],args={owner=[acme]}}", "tool.invoke{tools=[*]}", "rye.execute.tool{ids=[a.b]}")
	above := compile(t, "tool.invoke{tools=[*],args={repo.name=[x,y]}}", "tool.invoke{args={inert=[x]}}")
	chain := capability.Chain{{Set: own}, {Set: above}, {Set: compile(t, "fs.read{paths=[a]}")}, {}}
	for argument, want := range map[string]bool{
		"owner": true, "repo.name": true, "repo": false, "Owner": false, "inert": false, "": false,
	} {
		if got := chain.Limits(argument); got != want {
			t.Errorf("%q: got %t", argument, got)
		}
	}
	if d := cmp.Diff([]string{"owner", "repo.name"}, chain.Limited()); d != "" {
		t.Error(d)
	}
	if (capability.Chain{}).Limits("owner") {
		t.Error("the empty chain limits something")
	}
}
