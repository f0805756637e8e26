package provider_test

import (
	"fmt"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/provider"
)

// What an agent holds is asked of the gate, which knows the whole chain above it; from
// one record nobody can tell. Of an agent that is unknown or broken it is a verdict.
func ExampleVendor_Translate() {
	work := capability.Root{Dir: "/srv/work", Real: "/srv/work"} // sandbox: of the configuration
	roster, err := agents.Load(agents.Options{Config: work}, "../examples/agents")
	if err != nil {
		fmt.Println(err)
		return
	}
	g := &gate.Gate{Roster: roster}
	reach, denied := g.Provider("agents/scout")
	if denied != nil {
		fmt.Println(denied.Decision.Code, denied.Why)
		return
	}
	vendor, _ := provider.Lookup("anthropic")
	for _, tool := range vendor.Translate(provider.Policy{Authority: reach}) {
		if tool.Entry == nil {
			fmt.Printf("%s is omitted: %s\n", tool.Name, tool.Changes[0].Why)
			continue
		}
		fmt.Println(string(tool.Entry))
	}
	// Output:
	// {"type":"web_search_20260318","name":"web_search","allowed_domains":["github.com"],"allowed_callers":["direct"]}
	// {"type":"web_fetch_20260318","name":"web_fetch","allowed_domains":["github.com"],"allowed_callers":["direct"]}
	// code_execution_20260521 is omitted: it takes no scope, and needs provider.code_execution
	// advisor_20260301 is omitted: it takes no scope, and needs provider.advisor
}
