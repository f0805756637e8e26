package skills_test

import (
	"maps"
	"os"
	"path/filepath"
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

// TestCopies: clients look in folders of their own, so that one skill often lies in several. Copies
// that are the same in every byte, in which files may be run and in what they require, are one skill,
// and so is what lies in them. Any others of one path are shown to nobody.
func TestCopies(t *testing.T) {
	one := map[string]string{"x/SKILL.md": md("x", "allowed-tools: Read"), "x/in/SKILL.md": md("in"), "x/run.sh": "run"}
	a := tree(t, one)
	for _, tt := range []struct {
		name    string
		changed map[string]string
		shown   bool
	}{
		{"the same", nil, true},
		{"other tools", map[string]string{"x/SKILL.md": md("x", "allowed-tools: Grep")}, false},
		{"another file", map[string]string{"x/run.sh": "ran"}, false},
		{"a file more", map[string]string{"x/more": ""}, false},
		{"one inside that needs more", map[string]string{"x/in/SKILL.md": md("in", "allowed-tools: Bash")}, false},
	} {
		files := maps.Clone(one)
		maps.Copy(files, tt.changed)
		l := skills.Load(options(), a, tree(t, files))
		s, _ := l.Skill("x")
		if _, ok := s.Requires(); ok != tt.shown {
			t.Errorf("%s: it is shown: %v, %q", tt.name, ok, s.Broken)
		}
		want := map[string]string{"x": "fs.read", "x/in": ""}
		if diff := cmp.Diff(want, outline(l)); (diff == "") != tt.shown {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	b := tree(t, one)
	if err := os.Chmod(filepath.Join(b, "x/run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	placed := map[string]string{"x/SKILL.md": md("x", "allowed-tools: Bash({baseDir}/run.sh:*)"), "x/run.sh": ""}
	for _, dirs := range [][]string{{a, b}, {tree(t, placed), tree(t, placed)}} {
		s, _ := skills.Load(options(), dirs...).Skill("x")
		if _, ok := s.Requires(); ok {
			t.Errorf("what %v hold is shown", dirs)
		}
	}
}
