package gate_test

import (
	"slices"
	"testing"
	"time"

	"capgate/capability"
)

// TestNobodyIsAsked: a decision is a matter of the policy and of what is needed: the
// same each time, at once, and with nobody to wait for, not even where somebody has to
// approve (R-EGG-03).
func TestNobodyIsAsked(t *testing.T) {
	g, view := newGate(t)
	for _, text := range []string{
		"net.get{url=https://api.github.com/}", "net.get{url=https://example.org/}", "fs.read{path=docs/a}", "fs.write{path=a}",
		"tool.invoke{tool=files.read}", "tool.invoke{tool=deploy.now}", "tool.invoke{tool=other.tool}", "proc.exec{argv=[git,status]}",
	} {
		need, err := capability.ParseRequirement(text, view)
		if err != nil {
			t.Fatal(err)
		}
		const rounds = 500
		took := make([]time.Duration, rounds)
		first := g.Require("agents/scout", need)
		for i := range took {
			begin := time.Now()
			v := g.Require("agents/scout", need)
			took[i] = time.Since(begin)
			if v.Decision.Effect != first.Decision.Effect || v.Decision.Code != first.Decision.Code || v.Why != first.Why || v.Approve != first.Approve {
				t.Fatalf("%s: first %+v, then %+v", text, first, v)
			}
		}
		slices.Sort(took)
		if slow := took[rounds*99/100]; slow > time.Millisecond {
			t.Errorf("%s: one in a hundred decisions takes %s", text, slow)
		}
	}
}
