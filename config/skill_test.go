package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/config"
	"capgate/skills"
)

// skillsOf reads a configuration that must be right.
func skillsOf(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _, err := config.Parse("/w/capgate.yml", []byte(text), capability.View{Cwd: "/w", Home: "/home/me"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSkills(t *testing.T) {
	list := skillsOf(t, "skills: [./skills, ~/.claude/skills]\n").Skills
	if diff := cmp.Diff(config.Skills{Folders: []string{"/w/skills", "/home/me/.claude/skills"}}, list); diff != "" {
		t.Error(diff)
	}
	c := skillsOf(t, `upstreams: { files: { builtin: fs, root: . }, web: { builtin: net, prefix: none } }
skills:
  folders: [./skills]
  undeclared: hide
  unknown: ignore
  bare: wide
  vouched: { deploy: "sha256:`+strings.Repeat("0a", 32)+`" }
  mirror: { scout: ./mirror }
`)
	want := config.Skills{
		Folders: []string{"/w/skills"}, HideUndeclared: true, IgnoreUnknown: true, Wide: true,
		Mirrors: []config.Mirror{{Agent: "scout", Dir: "/w/mirror", Pos: capability.Pos{File: "/w/capgate.yml", Line: 8, Col: 13}}},
		Vouched: map[string]string{"deploy": "sha256:" + strings.Repeat("0a", 32)},
	}
	if diff := cmp.Diff(want, c.Skills); diff != "" {
		t.Error(diff)
	}
	opts := skills.Options{Upstreams: []string{"files", ""}, Home: "/home/me", HideUndeclared: true, IgnoreUnknown: true, Vouched: want.Vouched}
	if diff := cmp.Diff(opts, c.SkillOptions(capability.View{Home: "/home/me"})); diff != "" {
		t.Error(diff)
	}
	plain := skillsOf(t, "skills: { folders: [./skills], undeclared: show, unknown: hide, bare: any }\n").Skills
	if diff := cmp.Diff(config.Skills{Folders: []string{"/w/skills"}}, plain); diff != "" {
		t.Error(diff)
	}
}

// TestSealed: the folders of skills and the copies of them may be read, and nothing
// else.
func TestSealed(t *testing.T) {
	c := skillsOf(t, "skills: { folders: [./skills], mirror: { scout: ./mirror } }\n")
	sealed, err := c.Sealed(capability.View{})
	if err != nil {
		t.Fatal(err)
	}
	if below, err := (&config.Config{Above: c}).Sealed(capability.View{}); err != nil || !cmp.Equal(sealed, below) {
		t.Errorf("a configuration that was made under another one seals %v, %v", below, err)
	}
	fence := capability.NewFence().Sealing(sealed...)
	view := capability.View{Cwd: "/w"}
	for text, want := range map[string]bool{
		"fs.read{path=skills/a/SKILL.md}":          false,
		"fs.write{path=skills/a/SKILL.md}":         true,
		"fs.delete{path=skills}":                   true,
		"fs.delete{path=.}":                        true,
		"fs.write{path=mirror/a/SKILL.md}":         true,
		"fs.write{path=skill/a}":                   false,
		"proc.exec{argv=[rm,-r,skills/a]}":         true,
		"proc.eval{command=true,cwd=skills/a}":     true,
		"proc.eval{command=true}":                  false,
		"net.get{url=https://example.com/skills/}": false,
	} {
		need, err := capability.ParseRequirement(text, view)
		if err != nil {
			t.Fatal(err)
		}
		if got := fence.Touches(need); got != want {
			t.Errorf("%s touches the fence: %v", text, got)
		}
	}
	for text, want := range map[string]bool{"fs.read{in=/w}": false, "fs.write{in=/w}": true, "fs.write{in=/w/src}": false} {
		spec, err := capability.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		set, _ := capability.Compile([]capability.Spec{spec}, capability.Options{})
		if got := fence.Overlaps(set); got != want {
			t.Errorf("%s overlaps the fence: %v", text, got)
		}
	}
}
