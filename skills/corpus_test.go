package skills_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/skills"
)

// TestAttackCorpus decides the skills of the attack corpus: R-EGG-34.
func TestAttackCorpus(t *testing.T) {
	file := os.Getenv("CAPGATE_CORPUS")
	if file == "" {
		file = filepath.Join("testdata", "attacks.jsonl") // the part of it that is kept here
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	decided := 0
	for line := range strings.Lines(string(data)) {
		var a struct {
			ID, Family, Expect, Code, Why string
			Grant, Args                   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		if a.Family != "skill" {
			continue
		}
		decided++
		t.Run(a.ID, func(t *testing.T) {
			var skill struct{ Name string }
			if err := json.Unmarshal(a.Args, &skill); err != nil {
				t.Fatal(err)
			}
			// JSON is YAML, and so is a list of grants.
			head := strings.Replace(string(a.Args), "{", `{"description": "x", `, 1)
			dir := t.TempDir()
			record := "---\nid: agents/one\nclass: agent\ncapabilities: " + string(a.Grant) + "\n---\n"
			if err := os.WriteFile(filepath.Join(dir, "one.md"), []byte(record), 0o600); err != nil {
				t.Fatal(err)
			}
			roster, err := agents.Load(agents.Options{View: capability.View{Cwd: "/"}}, dir)
			if err != nil {
				t.Fatal(err)
			}
			g := &gate.Gate{Roster: roster, Fence: capability.NewFence()}
			s := skills.Parse(skill.Name, []byte("---\n"+head+"\n---\n"), skills.Options{})
			if s.Broken != "" {
				t.Fatal(s.Broken)
			}
			got := g.Skill("one", s)
			want := a.Expect == "allow"
			if got.Satisfied != want || string(got.Code) != a.Code {
				t.Errorf("satisfied: %v %q, want %v %q (%s)", got.Satisfied, got.Code, want, a.Code, a.Why)
			}
		})
	}
	if decided == 0 {
		t.Errorf("%s holds no skill", file)
	}
}
