package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestCatalogueHelp: every verb says what it is, and those of providers are of high risk
// and take no scope.
func TestCatalogueHelp(t *testing.T) {
	for _, e := range capability.Catalogue() {
		if r := e.Verb.Resource(); e.Help == "" || r == "provider" && (e.Risk != capability.High || len(e.Keys) > 0 || !e.Bare()) {
			t.Errorf("%+v", e)
		}
	}
}

// TestUnknownProviderVerb: a tool that nobody knows yet can be granted like those that
// stand in the catalogue.
func TestUnknownProviderVerb(t *testing.T) {
	for verb, want := range map[capability.Verb]bool{
		"provider.code_execution": true, "provider.time_travel": true, "provider.": false, "provider.A": false, "provider.a-b": false, "provider.a.b": false,
		"provider." + capability.Verb(strings.Repeat("a", 64)): true, "provider." + capability.Verb(strings.Repeat("a", 65)): false,
	} {
		if e, ok := capability.Lookup(verb); ok != want || ok && (e.Verb != verb || e.Risk != capability.High || !e.Bare() || e.Help == "") {
			t.Errorf("%s: %+v", verb, e)
		}
	}
}

// TestImplying: grants of Rye's verbs count for those that the gateway asks for.
func TestImplying(t *testing.T) {
	for verb, want := range map[capability.Verb]string{
		"tool.invoke": "rye.execute.tool", "prompt.get": "rye.execute.directive rye.load.directive", "resource.read": "rye.load.knowledge", "fs.read": "",
	} {
		var got []string
		for _, v := range capability.Implying(verb) {
			got = append(got, string(v))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %s", verb, got, want)
		}
	}
}
