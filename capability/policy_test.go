package capability_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"capgate/capability"
)

// TestPolicy runs the cases of testdata/policy. Each file is named after the
// rule it states and holds:
//
//	-- roots --    config=/w agent=/w/a cwd=/w/a home=/home/u dialect=scarab
//	-- grants --   one grant a line, in compact form or as a token
//	-- set --      what they compile to: the spec in effect, "# inert: …", "# note: …"
//	-- findings -- code of each finding, and its text
//	-- decide --   allow REQUIREMENT | deny CODE REQUIREMENT
//	-- covers --   yes SPEC | no SPEC => WITNESS
func TestPolicy(t *testing.T) {
	files, err := filepath.Glob("testdata/policy/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			runPolicy(t, a)
		})
	}
}

var caseName = regexp.MustCompile(`^[a-z]+$`)

func runPolicy(t *testing.T, a *txtar.Archive) {
	t.Helper()
	opts := capability.Options{}
	var set *capability.Set
	var findings []capability.Finding
	compiled := false
	for _, f := range a.Files {
		if !caseName.MatchString(f.Name) {
			t.Fatalf("no section %q", f.Name)
		}
		lines := sectionLines(f.Data)
		if f.Name == "roots" {
			opts = parseRoots(t, strings.Join(lines, " "))
			continue
		}
		if f.Name == "grants" {
			set, findings = capability.Compile(parseSpecs(t, lines), opts)
			compiled = true
			continue
		}
		if !compiled {
			t.Fatalf("section %q stands before the grants", f.Name)
		}
		(&policyCase{set, findings, opts}).check(t, f.Name, lines)
	}
}

// policyCase is what the grants of a case compile to.
type policyCase struct {
	set      *capability.Set
	findings []capability.Finding
	opts     capability.Options
}

func (c *policyCase) check(t *testing.T, name string, lines []string) {
	t.Helper()
	switch name {
	case "set":
		if diff := cmp.Diff(lines, describe(c.set)); diff != "" {
			t.Errorf("set (-want +got):\n%s", diff)
		}
	case "findings":
		var got []string
		for _, f := range c.findings {
			got = append(got, strings.TrimSuffix(fmt.Sprintf("%s %s: %s; %s", f.Severity, f.Code, f.Text, f.Hint), "; "))
		}
		if diff := cmp.Diff(lines, got); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
	case "decide":
		for _, line := range lines {
			checkDecision(t, line, c.set, c.opts)
		}
	case "covers":
		for _, line := range lines {
			checkCovers(t, line, c.set, c.opts)
		}
	default:
		t.Fatalf("no section %q", name)
	}
}

func describe(set *capability.Set) []string {
	var got []string
	for g := range set.All() {
		line := g.String()
		if g.Inert() != "" {
			line += " # inert: " + g.Inert()
		}
		if g.Note() != "" {
			line += " # note: " + g.Note()
		}
		if g.Wide() != "" {
			line += " # wide: " + g.Wide()
		}
		got = append(got, line)
	}
	return got
}

// decide parses and decides as the gateway does: the verb must be held before
// anything is said about the arguments.
func decide(set *capability.Set, text string, v capability.View) string {
	verb, _, _ := strings.Cut(text, "{")
	if !set.Holds(capability.Verb(verb)) {
		return string("deny " + capability.CapabilityAbsent)
	}
	r, err := capability.ParseRequirement(text, v)
	if err != nil {
		return "deny " + string(capability.MalformedArguments)
	}
	d := set.Decide(r)
	if d.Allowed() {
		return "allow"
	}
	return "deny " + string(d.Code)
}

func checkDecision(t *testing.T, line string, set *capability.Set, opts capability.Options) {
	t.Helper()
	want, text, _ := strings.Cut(line, " ")
	if want == "deny" {
		var code string
		code, text, _ = strings.Cut(text, " ")
		want += " " + code
	}
	if got := decide(set, text, opts.View); got != want {
		t.Errorf("%s: got %s, want %s", text, got, want)
	}
}

func checkCovers(t *testing.T, line string, set *capability.Set, opts capability.Options) {
	t.Helper()
	want, text, _ := strings.Cut(line, " ")
	text, witness, _ := strings.Cut(text, " => ")
	other, findings := capability.Compile(parseSpecs(t, []string{text}), opts)
	if len(findings) > 0 {
		t.Fatalf("%s: %v", text, findings)
	}
	gaps := set.Covers(other)
	got, gotWitness := "yes", ""
	if len(gaps) > 0 {
		got, gotWitness = "no", gaps[0].Witness
	}
	if got != want || gotWitness != witness {
		t.Errorf("covers %s: got %s %q, want %s %q", text, got, gotWitness, want, witness)
	}
}

func parseSpecs(t *testing.T, lines []string) []capability.Spec {
	t.Helper()
	var specs []capability.Spec
	for i, line := range lines {
		s, err := capability.ParseSpec(line)
		if err != nil {
			t.Fatalf("grant %q: %v", line, err)
		}
		s.Pos = capability.Pos{Line: i + 1}
		specs = append(specs, s)
	}
	return specs
}

func parseRoots(t *testing.T, text string) capability.Options {
	t.Helper()
	opts := capability.Options{}
	dialects := map[string]capability.Dialect{"egghead": capability.Egghead, "scarab": capability.Scarab, "rye": capability.Rye, "ethos": capability.Ethos}
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "config":
			opts.Config = capability.Root{Dir: value, Real: value}
		case "agent":
			opts.Agent = capability.Root{Dir: value, Real: value}
		case "cwd":
			opts.View.Cwd = value
		case "home":
			opts.View.Home = value
		case "dialect":
			opts.Dialect = dialects[value]
		default:
			t.Fatalf("no root %q", key)
		}
	}
	return opts
}

func sectionLines(data []byte) []string {
	var lines []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}
