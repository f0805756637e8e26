package skills_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
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
	inside := map[string]string{"o/SKILL.md": md("o"), "o/z/SKILL.md": md("z", "allowed-tools: Bash"), "o/zz/SKILL.md": md("z", "allowed-tools: Bash")}
	if diff := cmp.Diff(map[string]string{"o": "proc.eval; proc.eval", "o/z": "proc.eval"}, outline(skills.Load(options(), tree(t, inside)))); diff != "" {
		t.Error(diff)
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

// TestIrregular: of a skill that clients would refuse by the letter of the format it is said, and
// it is not hidden for it.
func TestIrregular(t *testing.T) {
	for text, why := range map[string]string{
		md("a-b2"): "", md("a", "metadata: { version: \"1.0\", date: 2026-01-02 }", "compatibility: Linux"): "",
		md("a", "allowed-tools: [Read]", "version: 2", "license: [MIT]"): "", md("a", "metadata: {}"): "",
		"---\nname: a\ndescription: " + strings.Repeat("ß", 1024) + "\n---\n": "",

		md("A"): "a name is", md("a_b"): "a name is", md("a b"): "a name is", md("a--b"): "a name is", md("-a"): "a name is", md("größe"): "a name is",
		"---\nname: a\ndescription: " + strings.Repeat("ß", 1025) + "\n---\n": "the description is over 1024",
		md("a", "compatibility: [Linux]"):                                     "compatibility:", md("a", "compatibility:"): "compatibility:", md("a", "compatibility: \"\""): "compatibility:",
		md("a", "compatibility: "+strings.Repeat("x", 501)): "compatibility:",
		md("a", "metadata: text"):                           "metadata:", md("a", "metadata:"): "metadata:", md("a", "metadata: [a, b]"): "metadata:",
		md("a", "metadata: { version: 1.0 }"): "metadata:", md("a", "metadata: {\"claw\":{\"emoji\":\"x\"}}"): "metadata:",
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "---\nname: "), "\n")
		s := skills.Parse(name, []byte(text), skills.Options{})
		if _, ok := s.Requires(); !ok || !strings.HasPrefix(s.Irregular, why) || (s.Irregular == "") != (why == "") {
			t.Errorf("%q is irregular as %q, want %q; hidden: %q", text, s.Irregular, why, s.Broken)
		}
		said := slices.ContainsFunc(s.Findings, func(f capability.Finding) bool {
			return f.Code == "skill_format" && strings.HasSuffix(f.Text, s.Irregular)
		})
		if said != (why != "") {
			t.Errorf("of %q it is said: %v", text, s.Findings)
		}
	}
}

// TestWithin: of a library is left what is in another as it was, and it requires what it does in both.
func TestWithin(t *testing.T) {
	dir := tree(t, map[string]string{"a/SKILL.md": md("a") + "Run !`date`.\n", "b/SKILL.md": md("b"), "c/SKILL.md": md("c"), "d/SKILL.md": md("d")})
	s, _ := skills.Load(options(), dir).Skill("a")
	read := options()
	read.Vouched = map[string]string{"a": s.Digest}
	before := skills.Load(read, dir)
	put(t, filepath.Join(dir, "b/SKILL.md"), md("b", "allowed-tools: Bash"))
	put(t, filepath.Join(dir, "c/more"), "x")
	if err := os.Remove(filepath.Join(dir, "d/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "e/SKILL.md"), md("e"))
	now := skills.Load(options(), dir)
	for _, one := range []*skills.Library{before.Within(now), now.Within(before)} {
		if diff := cmp.Diff(map[string]string{"a": "proc.eval"}, outline(one)); diff != "" {
			t.Error(diff)
		}
		if one.Digest() == before.Digest() || one.Digest() == now.Digest() {
			t.Error("it has the name of another")
		}
	}
}
