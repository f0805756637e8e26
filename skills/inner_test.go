package skills_test

import (
	"slices"
	"strings"
	"testing"

	"capgate/config"
	"capgate/skills"
)

// TestInnerFolder: clients put the folder of a skill before its text, and look in both for
// what they run. It is not taken for a skill where the folder of one inside is no name.
func TestInnerFolder(t *testing.T) {
	for dir, shown := range map[string]bool{
		"in": true, "in/of v1.2": true, ".claude/skills/in": true, "größe": true,
		"in !`date`": false, ".claude/skills/in !`date`": false, "in !`date`/more": false, ".!`date`": false, "y @general": false, "@~": false, "$1": false,
		"~~~!": false, strings.Repeat("a", 65): false,
	} {
		for _, file := range []string{"SKILL.md", "skill.md"} {
			files := map[string]string{"a/SKILL.md": md("a"), "a/" + dir + "/" + file: md("in")}
			s, _ := skills.Load(options(), tree(t, files)).Skill("a")
			if _, ok := s.Requires(); ok != (shown && file == "SKILL.md") {
				t.Errorf("with %s in %q it is hidden: %q", file, dir, s.Broken)
			}
			var l *skills.Library
			served := l.Parse(skills.Served{Path: "a", SkillMD: []byte(md("a")), Files: []string{"SKILL.md", dir + "/" + file}})
			if (served.Broken == "") != shown {
				t.Errorf("of a server, with %s in %q, it is hidden: %q", file, dir, served.Broken)
			}
		}
		s, _ := skills.Load(options(), tree(t, map[string]string{"a/SKILL.md": md("a"), "a/" + dir + "/notes.md": "x"})).Skill("a")
		if _, ok := s.Requires(); !ok {
			t.Errorf("with no skill in %q it is hidden: %q", dir, s.Broken)
		}
	}
}

// TestStartFiles: what the configuration takes for files and folders that clients start servers
// from is that in a skill as well, but for a repository, as many skills are one, and skills, which
// are read as such. What is called alike is not.
func TestStartFiles(t *testing.T) {
	all := map[string]bool{"settings.json": false, "config.yaml": false, ".claude/skills/x.md": false, "amp.json": false, "docs/mcp.json.md": false, "my-crush.json": false, ".git/config": false, ".github/workflows/x.yml": false}
	for _, name := range config.ClientFiles() {
		all[name], all["in/"+name] = true, true
	}
	for _, name := range config.ClientFolders() {
		if name != ".git" && name != ".claude/skills" {
			all[name+"/x"], all["in/"+name+"/x"] = true, true
		}
	}
	for name, starts := range all {
		s, _ := skills.Load(options(), tree(t, map[string]string{"a/SKILL.md": md("a"), "a/" + name: ""})).Skill("a")
		if n := needs(s); slices.Contains(n, "proc.eval") != starts {
			t.Errorf("with %s it needs %v", name, n)
		}
	}
}
