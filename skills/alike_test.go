package skills_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/skills"
)

// TestOneName: of skills with one name it is said that nobody who sees several of them can ask
// for one by it. A hidden one is in nobody's way.
func TestOneName(t *testing.T) {
	l := skills.Load(skills.Options{}, tree(t, map[string]string{
		"a/x/SKILL.md": md("x"), "b/x/SKILL.md": md("x"), "c/x/SKILL.md": md("x"), "d/X/SKILL.md": md("X"),
		"a/y/SKILL.md": md("y"), "b/y/SKILL.md": md("y") + "\x00",
	}))
	var got []string
	for _, f := range l.Findings() {
		if f.Code == "skill_prompt" {
			got = append(got, f.Severity.String()+" "+f.Text)
		}
	}
	want := []string{
		"note a/x is called x too: who sees both has neither as a prompt",
		"note a/x is called x too: who sees both has neither as a prompt",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
