package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestAttenuate is what R-EGG-26 asks for.
func TestAttenuate(t *testing.T) {
	boss := compileAnywhere(t, []string{"agent.grant", "net.get{hosts=[*.github.com]}", "fs.read{in=/w}"})
	narrow := compileAnywhere(t, []string{"agent.grant{id=scout}", "net.get{hosts=[*.github.com]}"})
	idle := compileAnywhere(t, []string{"net.get{hosts=[*.github.com]}"})
	parent := capability.Link{Name: "parent agents/lead", Set: compileAnywhere(t, []string{"agent.grant", "net.get{hosts=[api.github.com]}"})}
	gone := capability.Link{Name: "parent agents/gone"}
	own := func(s *capability.Set) capability.Chain { return capability.Chain{{Name: "agents/boss", Set: s}} }
	for _, tt := range []struct {
		name           string
		giver, target  string
		held, giveable capability.Chain
		passed         string
		want, gap      string
	}{
		{"inside", "agents/boss", "agents/scout", own(boss), own(boss), "net.get{hosts=[github.com]}", "allow", ""},
		{"outside", "agents/boss", "agents/scout", own(boss), own(boss), "net.get{hosts=[*]}", "exceeds_grantor_authority", "net.get{hosts=[*]} would also allow"},
		{"another verb", "agents/boss", "agents/scout", own(boss), own(boss), "net.post{hosts=[github.com]}", "exceeds_grantor_authority", "net.post"},
		{"the verb itself", "agents/boss", "agents/scout", own(boss), own(boss), "agent.grant", "allow", ""},
		{"more of the verb itself", "agents/boss", "agents/scout", own(narrow), own(narrow), "agent.grant", "exceeds_grantor_authority", "agent.grant"},
		{"without the verb", "agents/boss", "agents/scout", own(idle), own(boss), "net.get{hosts=[github.com]}", "capability_absent", ""},
		{"to an agent out of reach", "agents/boss", "agents/other", own(narrow), own(narrow), "net.get{hosts=[github.com]}", "scope_violation", ""},
		{"to itself", "agents/boss", "agents/boss", own(boss), own(boss), "net.get{hosts=[github.com]}", "self_modification", ""},
		{"to itself by its short name", "agents/boss", "boss", own(boss), own(boss), "fs.read{in=/w}", "self_modification", ""},
		{"to itself in another case", "agents/boss", "agents/Boss", own(boss), own(boss), "fs.read{in=/w}", "self_modification", ""},
		{"to itself by a path", "agents/boss", "agents/./boss", own(boss), own(boss), "fs.read{in=/w}", "malformed_arguments", ""},
		{"to nobody", "agents/boss", "", own(boss), own(boss), "fs.read{in=/w}", "malformed_arguments", ""},
		{"by nobody", "", "agents/scout", own(boss), own(boss), "fs.read{in=/w}", "malformed_arguments", ""},
		{"what the parent has", "agents/boss", "agents/scout", append(own(boss), parent), append(own(boss), parent), "net.get{hosts=[api.github.com]}", "allow", ""},
		{"what the parent has not", "agents/boss", "agents/scout", append(own(boss), parent), append(own(boss), parent), "fs.read{in=/w}", "exceeds_grantor_authority", "fs.read"},
		{"when the parent is gone", "agents/boss", "agents/scout", own(boss), append(own(boss), gone), "fs.read{in=/w}", "exceeds_grantor_authority", "fs.read"},
		{"what may be delegated only", "agents/boss", "agents/scout", own(narrow), own(boss), "fs.read{in=/w/a}", "allow", ""},
		{"with no chain", "agents/boss", "agents/scout", nil, own(boss), "fs.read{in=/w}", "capability_absent", ""},
		{"with nothing to give", "agents/boss", "agents/scout", own(boss), nil, "fs.read{in=/w}", "exceeds_grantor_authority", ""},
	} {
		d, gaps := capability.Attenuate(tt.giver, tt.target, tt.held, tt.giveable, compileAnywhere(t, []string{tt.passed}))
		got := string(d.Code)
		if d.Allowed() {
			got = "allow"
		}
		if got != tt.want || d.Need() == nil {
			t.Errorf("%s: got %s for %v, want %s", tt.name, got, d.Need(), tt.want)
		}
		if (tt.gap != "") != (len(gaps) > 0) || tt.gap != "" && !strings.HasPrefix(gaps[0].String(), tt.gap) {
			t.Errorf("%s: got gaps %v, want %q", tt.name, gaps, tt.gap)
		}
	}
}

func TestChainCovers(t *testing.T) {
	wide := compileAnywhere(t, []string{"fs.read{in=/w}"})
	deep := compileAnywhere(t, []string{"fs.read{in=/w/a}"})
	chain := capability.Chain{{Name: "agents/boss", Set: wide}, {Name: "parent agents/lead", Set: deep}}
	if d, gaps := chain.Covers(deep); !d.Allowed() || len(gaps) > 0 {
		t.Errorf("what both hold: %s %v", d, gaps)
	}
	if d, gaps := chain.Covers(wide); d.Allowed() || d.Link() != "parent agents/lead" || len(gaps) != 1 {
		t.Errorf("what only the first holds: %s, link %q, %v", d, d.Link(), gaps)
	}
	if d, _ := chain[:1].Covers(compileAnywhere(t, []string{"fs.write{in=/w}"})); d.Link() != "" {
		t.Errorf("the agent's own link is named %q", d.Link())
	}
	if d, _ := (capability.Chain{}).Covers(deep); d.Allowed() {
		t.Error("the empty chain covers something")
	}
	if d, _ := chain.Covers(nil); !d.Allowed() {
		t.Error("nothing cannot be passed on")
	}
}
