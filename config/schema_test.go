package config_test

import (
	"slices"
	"strings"
	"testing"

	"capgate/config"
)

func TestSchema(t *testing.T) {
	var names, sections []string
	for _, k := range config.Schema() {
		if k.Takes == "" || k.Help == "" || strings.HasSuffix(k.Help, ".") {
			t.Errorf("%s is not documented as the others are: %+v", k.Name, k)
		}
		if slices.Contains(names, k.Name) {
			t.Errorf("%s stands twice", k.Name)
		}
		names = append(names, k.Name)
		if !strings.Contains(k.Name, ".") {
			sections = append(sections, k.Name)
		}
	}
	want := []string{
		"listen", "agents", "skills", "sandbox", "state", "upstreams", "mappings",
		"secrets", "providers", "limits", "guardrail", "introspection", "tests",
		"egress", "approvals", "memory", "records", "learn",
	}
	if !slices.Equal(sections, want) {
		t.Errorf("the sections are %v, want %v", sections, want)
	}
	for _, name := range []string{
		"sandbox.root", "sandbox.backend", "tests[].agent", "tests[].allow[].covers", "tests[].allow[].tool",
		"listen.tls.key", "upstreams.*.url", "upstreams.*.limits.call", "upstreams.*.tools.*.pins", "secrets.*.env",
	} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is missing from the schema", name)
		}
	}
}

// A section is either served or refused by name. None is passed over.
func TestEverySection(t *testing.T) {
	for _, k := range config.Schema() {
		if strings.Contains(k.Name, ".") {
			continue
		}
		got := wrong(t, k.Name+": 5\n", view())
		refused := "capgate.yml:1:1: " + k.Name + ": not in this version | remove it; what can be written here is " + served
		switch {
		case len(got) != 1:
			t.Errorf("%s: 5 says %q", k.Name, got)
		case k.Served != (got[0] != refused):
			t.Errorf("%s: 5 says %s", k.Name, got[0])
		}
	}
}

func TestUnknownSections(t *testing.T) {
	const keys = "what can be written here is " + served
	for name, hint := range map[string]string{
		"agnets": "did you mean agents?", "Agents": "did you mean agents?", "sandbok": "did you mean sandbox?",
		"upstream": "did you mean upstreams?", "zzz": keys, "READ.me": keys,
	} {
		want := `capgate.yml:1:1: "` + name + `" is no key of capgate.yml | ` + hint
		if got := wrong(t, name+": x\n", view()); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: x says %q, want %s", name, got, want)
		}
	}
}
