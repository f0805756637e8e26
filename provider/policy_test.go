package provider_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// chain is what an agent holds, and what its ancestors do.
type chain capability.Chain

func (c chain) Hosts(v capability.Verb) []capability.Host { return capability.Chain(c).Hosts(v) }

func (c chain) Require(need *capability.Requirement) capability.Decision {
	return capability.Chain(c).Decide(need)
}

func (c chain) Waits(capability.Verb) bool { return false }

// holding is the policy of an agent with grants in compact form.
func holding(t testing.TB, grants ...string) provider.Policy {
	t.Helper()
	var specs []capability.Spec
	for _, text := range grants {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	set, findings := capability.Compile(specs, capability.Options{})
	for _, f := range findings {
		t.Log(f)
	}
	return provider.Policy{Authority: chain{{Set: set}}}
}

// hosts is the grant of net.get for some hosts.
func hosts(names ...string) string {
	return "net.get{hosts=[" + strings.Join(names, ",") + "]}"
}

// rewrite sends a body to the endpoint of a vendor that is written as
// "anthropic /v1/messages".
func rewrite(t testing.TB, where, body string, p provider.Policy) (string, []provider.Change, *provider.Refused) {
	t.Helper()
	name, path, _ := strings.Cut(where, " ")
	vendor, ok := provider.Lookup(name)
	if !ok {
		t.Fatalf("there is no vendor %q", name)
	}
	place, err := vendor.Endpoint("POST", path, "")
	if err != nil {
		t.Fatal(err)
	}
	out, changes, err := vendor.Rewrite(place, []byte(body), p)
	var refused *provider.Refused
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("the error is no refusal: %v", err)
	}
	return string(out), changes, refused
}

// did writes changes in short: what was done to which tool.
func did(changes []provider.Change) string {
	var all []string
	for _, c := range changes {
		text := c.Did + " " + c.Tool
		if c.Did == provider.Omitted {
			text += " " + string(c.Code)
		}
		if len(c.Hosts) > 0 {
			text += fmt.Sprint(" ", c.Hosts)
		}
		if len(c.Tools) > 0 {
			text += fmt.Sprint(" ", c.Tools)
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}
