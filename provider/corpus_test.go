package provider_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// attack is one line of the attack corpus, as far as it is about provider tools.
type attack struct {
	ID, Family, Expect, Code, Why string

	Grant []any
	Hint  struct{ Provider, Tool string } `json:"tool_args_schema_hint"`
	Args  struct {
		Asked map[string]any `json:"request_config"`
		Sent  map[string]any `json:"expect_config"`
	}
}

// TestAttackCorpus sends what each case asks for: it is allowed when the tool goes
// up as asked, with what the case expects in it, and denied when it does not.
func TestAttackCorpus(t *testing.T) {
	decided := 0
	for _, a := range readAttacks(t) {
		decided++
		want := "allow"
		if a.Expect != want {
			want = a.Code
		}
		if got := a.decide(t); got != want {
			t.Errorf("%s: got %s, want %s (%s)", a.ID, got, want, a.Why)
		}
	}
	if decided == 0 {
		t.Error("the corpus holds no case of provider tools")
	}
	t.Logf("%d cases are decided", decided)
}

// decide rewrites a request for the tool of a case.
func (a attack) decide(t *testing.T) string {
	t.Helper()
	vendor, ok := provider.Lookup(a.Hint.Provider)
	if !ok {
		t.Fatalf("%s: there is no vendor %q", a.ID, a.Hint.Provider)
	}
	where, kind := messages, a.Hint.Tool+"_20250305"
	if vendor.Name == "openai" {
		where, kind = responses, a.Hint.Tool
	}
	entry := map[string]any{"type": kind}
	for key, value := range a.Args.Asked {
		entry[key] = value
	}
	body, err := json.Marshal(map[string]any{"tools": []any{entry}})
	if err != nil {
		t.Fatal(err)
	}
	out, changes, refused := rewrite(t, where, string(body), a.policy(t))
	if refused != nil {
		return string(refused.Code)
	}
	var sent struct{ Tools []map[string]any }
	if err := json.Unmarshal([]byte(out), &sent); err != nil {
		t.Fatal(err)
	}
	if len(sent.Tools) == 1 && has(sent.Tools[0], a.Args.Asked) && has(sent.Tools[0], a.Args.Sent) {
		return "allow"
	}
	return string(changes[0].Code)
}

// has reports whether a tool has members with these values.
func has(tool, members map[string]any) bool {
	for key, value := range members {
		if !reflect.DeepEqual(tool[key], value) {
			return false
		}
	}
	return true
}

// policy is what the grants of a case give.
func (a attack) policy(t *testing.T) provider.Policy {
	t.Helper()
	var specs []capability.Spec
	for _, g := range a.Grant {
		switch g := g.(type) {
		case string:
			specs = append(specs, capability.Spec{Verb: g, Bare: true})
		case map[string]any:
			for verb, scope := range g {
				specs = append(specs, specOf(t, verb, scope))
			}
		}
	}
	set, _ := capability.Compile(specs, capability.Options{})
	return provider.Policy{Authority: chain{{Set: set}}}
}

func specOf(t *testing.T, verb string, scope any) capability.Spec {
	t.Helper()
	spec := capability.Spec{Verb: verb}
	for key, values := range scope.(map[string]any) {
		var texts []string
		for _, v := range values.([]any) {
			texts = append(texts, v.(string))
		}
		spec = spec.With(key, texts...)
	}
	return spec
}

// readAttacks reads the corpus that CAPGATE_CORPUS names, or the part of it that is
// kept here.
func readAttacks(t *testing.T) []attack {
	t.Helper()
	file := os.Getenv("CAPGATE_CORPUS")
	if file == "" {
		file = filepath.Join("testdata", "attacks.jsonl")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []attack
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var head struct{ Family string }
		if err := json.Unmarshal(lines.Bytes(), &head); err != nil {
			t.Fatal(err)
		}
		if head.Family != "provider" {
			continue // whose arguments have other forms
		}
		var a attack
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}
