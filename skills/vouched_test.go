package skills_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/skills"
)

// reasons are what a skill requires, and for what.
func reasons(s *skills.Skill) []string {
	list := needs(s)
	for i, n := range s.Needs {
		list[i] = n.Token + ": " + list[i]
	}
	return list
}

// usage is a skill whose text has clients do all that they do, and what is known of it.
var usage = map[string]string{
	"commit/SKILL.md": md("commit", "allowed-tools: Read", "hooks: {Stop: x}") + "Say `$ARGUMENTS` and `x`, see @/etc/hosts, @general and @notes.md.\n",
	"commit/notes.md": "!`date`", "commit/agents/openai.yaml": "dependencies: {tools: [{type: mcp, value: files, command: x}]}\n",
	"commit/more/plain/SKILL.md": md("plain") + "!`date`\n",
}

// commitIn loads it from a folder.
func commitIn(t *testing.T, dir string, vouched map[string]string) (*skills.Skill, *skills.Library) {
	t.Helper()
	l := skills.Load(skills.Options{Upstreams: []string{"files"}, Vouched: vouched}, dir)
	s, ok := l.Skill("commit")
	if !ok || s.Broken != "" || s.Digest == "" {
		t.Fatal(ok, s)
	}
	return s, l
}

// TestVouched: of a skill that somebody has read is not required what clients do with its
// text. What it declares is.
func TestVouched(t *testing.T) {
	dir := tree(t, usage)
	whole, _ := commitIn(t, dir, nil)
	s, l := commitIn(t, dir, map[string]string{"commit": whole.Digest})
	declared := []string{
		"Read: fs.read", "hooks: proc.eval", "agents/openai.yaml: files: tool.invoke{tools=[files.*]}", "agents/openai.yaml: files: proc.eval",
		"commit/more/plain: !`date`: proc.eval",
	}
	if diff := cmp.Diff(declared, reasons(s)); diff != "" || len(l.Findings()) > 0 {
		t.Error(l.Findings(), diff)
	}
	if _, l := commitIn(t, dir, map[string]string{"comit": whole.Digest}); len(l.Findings()) != 1 || l.Findings()[0].Code != "skill_vouched" {
		t.Error(l.Findings())
	}
}

// TestVouchedBefore: a byte that is another, a file more or one that may be run now, and
// everything is required again.
func TestVouchedBefore(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, dir string){
		"text":  func(t *testing.T, dir string) { put(t, filepath.Join(dir, "SKILL.md"), usage["commit/SKILL.md"]+"\n") },
		"notes": func(t *testing.T, dir string) { put(t, filepath.Join(dir, "notes.md"), "!`date +%s`") },
		"new":   func(t *testing.T, dir string) { put(t, filepath.Join(dir, "new"), "") },
		"inner": func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "more/plain/SKILL.md"), md("plain")+"!`id`\n")
		},
		"run": func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, "notes.md"), 0o700); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, usage)
			whole, _ := commitIn(t, dir, nil)
			change(t, filepath.Join(dir, "commit"))
			s, l := commitIn(t, dir, map[string]string{"commit": whole.Digest})
			if got := l.Findings(); len(got) != 1 || got[0].Code != "skill_vouched" || !strings.Contains(got[0].Hint, s.Digest) {
				t.Error(got)
			}
			was := strings.Join(reasons(s), "\n")
			for _, need := range []string{"$ARGUMENTS", "@/etc/hosts", "@general", "notes.md: proc.eval"} {
				if !strings.Contains(was, need) {
					t.Errorf("%s is left out of %s", need, was)
				}
			}
		})
	}
}

// TestVouchedInner: who vouches for a skill does so for that one alone, and a hidden one
// stays hidden.
func TestVouchedInner(t *testing.T) {
	dir := tree(t, map[string]string{
		"a/SKILL.md": md("a", "allowed-tools: Skill(b)"), "b/SKILL.md": md("b") + "!`date`\n", "c/SKILL.md": md("c", "allowed-tools: Wirte") + "!`date`\n", "d/SKILL.md": md("e e") + "\x00",
	})
	vouched := map[string]string{}
	for s := range skills.Load(skills.Options{}, dir).All() {
		if s.Path != "b" {
			vouched[s.Path] = s.Digest
		}
	}
	l := skills.Load(skills.Options{Vouched: vouched}, dir)
	if a, _ := l.Skill("a"); a.Needs[0].Untold {
		t.Error("what another skill requires is said to be of the text of this one")
	}
	got := outline(l)
	want := map[string]string{"a": "proc.eval", "b": "proc.eval", "c": "? no such tool is known", "d": "hidden: SKILL.md is not plain UTF-8 text"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
