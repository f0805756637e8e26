package skills_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"capgate/skills"
)

// TestMirrorLeftovers: what programs leave in the folder of a skill keeps neither the
// skill nor its next version out, and nothing of a version that is not shown any more in.
func TestMirrorLeftovers(t *testing.T) {
	first := library(t, map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "1", "a/old/y.py": "1", "b/SKILL.md": md("b")})
	dir := t.TempDir()
	update(t, dir, first)
	left := map[string]string{
		"a/.DS_Store": "left", "a/run/__pycache__/x.pyc": "left", "a/run/deep/er/z": "left", "a/old/y.pyc": "left", "a/link": "->../b", "b/SKILL.md": md("b"),
	}
	for name, text := range left {
		if name != "b/SKILL.md" {
			put(t, filepath.Join(dir, name), text)
		}
	}
	with := func(files map[string]string) map[string]string {
		all := map[string]string{}
		for _, m := range []map[string]string{left, files} {
			for name, text := range m {
				all[name] = text
			}
		}
		return all
	}

	// It is as it was; the next version has other files, one of them in a folder of others' things.
	if done := update(t, dir, first); len(done.Kept) != 2 {
		t.Errorf("the same again: %+v", done)
	}
	same(t, dir, with(map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "1", "a/old/y.py": "1"}))
	next := library(t, map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "2", "a/run/deep/w.py": "2", "b/SKILL.md": md("b")})
	if done := update(t, dir, next); !slices.Equal(done.Written, []string{"a"}) {
		t.Errorf("the next version: %+v", done)
	}
	same(t, dir, with(map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "2", "a/run/deep/w.py": "2"}))

	// One file less and nothing else changed: it goes.
	if done := update(t, dir, library(t, map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "2", "b/SKILL.md": md("b")})); !slices.Equal(done.Written, []string{"a"}) {
		t.Errorf("a file less: %+v", done)
	}
	same(t, dir, with(map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "2"}))

	// Not shown any more, and shown again.
	for range 2 {
		done := update(t, dir, next[1:])
		same(t, dir, left)
		if len(done.InTheWay) > 0 {
			t.Errorf("%+v", done)
		}
	}
	if done := update(t, dir, next[1:]); len(done.Removed) > 0 {
		t.Errorf("what is gone is taken out again: %+v", done)
	}
	if done := update(t, dir, next); !slices.Equal(done.Written, []string{"a"}) {
		t.Errorf("shown again: %+v", done)
	}
	same(t, dir, with(map[string]string{"a/SKILL.md": md("a"), "a/run/x.py": "2", "a/run/deep/w.py": "2"}))
}

// TestMirrorLeftInTheWay: where something else lies in the place of a skill's file the skill
// stays out, nothing of others is touched, and no link is followed. Once it is gone, the
// skill goes in.
func TestMirrorLeftInTheWay(t *testing.T) {
	first := library(t, map[string]string{"a/SKILL.md": md("a")})
	next := library(t, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x"})
	outside := tree(t, map[string]string{"keep": "x"})
	for name, own := range map[string]map[string]string{
		"the file":                      {"a/more/x.md": "mine"},
		"a link in place of it":         {"a/more/x.md": "->" + filepath.Join(outside, "x.md")},
		"a link in place of a folder":   {"a/more": "->" + outside},
		"a link to a folder in it":      {"a/more": "->notes", "a/notes/y": "mine"},
		"a file in place of a folder":   {"a/more": "mine"},
		"a folder in place of the file": {"a/more/x.md/y": "mine"},
		"a folder in place of another":  {"a/SKILL.md/z": "mine"},
	} {
		dir := t.TempDir()
		update(t, dir, first)
		for file, text := range own {
			if strings.HasPrefix(file, "a/SKILL.md") {
				if err := os.Remove(filepath.Join(dir, "a/SKILL.md")); err != nil {
					t.Fatal(err)
				}
			}
			put(t, filepath.Join(dir, file), text)
		}
		for range 2 {
			if done := update(t, dir, next); !slices.Equal(done.InTheWay, []string{"a"}) {
				t.Errorf("%s: %+v", name, done)
			}
			same(t, dir, own)
			same(t, outside, map[string]string{"keep": "x"})
		}
		for file := range own {
			if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, "a/SKILL.md")); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "a/more")); err != nil {
			t.Fatal(err)
		}
		if done := update(t, dir, next); !slices.Equal(done.Written, []string{"a"}) {
			t.Errorf("%s is gone: %+v", name, done)
		}
		same(t, dir, map[string]string{"a/SKILL.md": md("a"), "a/more/x.md": "x"})
	}
}

// TestMirrorLeftoversEnd: an update that ends before it puts a skill in knows later that
// the folder is the mirror's.
func TestMirrorLeftoversEnd(t *testing.T) {
	dir := t.TempDir()
	list := library(t, map[string]string{"a/SKILL.md": md("a")})
	update(t, dir, list)
	put(t, filepath.Join(dir, "a/notes"), "mine")
	ctx, end := context.WithCancel(t.Context())
	end()
	_, _ = skills.Mirror{Dir: dir, Agent: "agents/scout"}.Update(ctx, nil)
	if done := update(t, dir, list); !slices.Equal(done.Written, []string{"a"}) {
		t.Errorf("%+v", done)
	}

	// Cut short between the two: what is the others' is aside, and the skill is in its place.
	put(t, filepath.Join(dir, ".capgate-aside-a/more/z"), "mine")
	if done := update(t, dir, list); !slices.Equal(done.Kept, []string{"a"}) {
		t.Errorf("%+v", done)
	}
	same(t, dir, map[string]string{"a/SKILL.md": md("a"), "a/notes": "mine", "a/more/z": "mine"})
}

// TestMirrorForgets: of more folders that hold nothing of its own than it keeps in mind, the
// mirror takes the rest for somebody else's.
func TestMirrorForgets(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := range 1025 {
		name := fmt.Sprintf("s%04d", i)
		put(t, filepath.Join(dir, name, "left"), "mine")
		fmt.Fprintf(&b, `,%q:{}`, name)
	}
	put(t, filepath.Join(dir, ".capgate-mirror"), `{"agent":"agents/scout","skills":{`+b.String()[1:]+`}}`)
	update(t, dir, nil)
	done := update(t, dir, library(t, map[string]string{"s0000/SKILL.md": md("s0000"), "s1024/SKILL.md": md("s1024")}))
	if !slices.Equal(done.Written, []string{"s0000"}) || !slices.Equal(done.InTheWay, []string{"s1024"}) {
		t.Errorf("%+v", done)
	}
}

// TestMirrorEnded: an update that must end takes out what is not shown, and puts in nothing.
func TestMirrorEnded(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "b/SKILL.md": md("b")})
	dir := filepath.Join(t.TempDir(), "mirror")
	update(t, dir, list[:1])
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := (skills.Mirror{Dir: dir, Agent: "agents/scout"}).Update(ctx, list[1:]); !errors.Is(err, context.Canceled) {
		t.Errorf("the update says %v", err)
	}
	same(t, dir, map[string]string{})
}

// TestMirrorEndedOnTheWay: an update that ends while it puts skills in says so, wherever it
// was: the mirror is not in step.
func TestMirrorEndedOnTheWay(t *testing.T) {
	list := library(t, map[string]string{"a/SKILL.md": md("a"), "b/SKILL.md": md("b")})
	for files := range 2 {
		ctx, end := context.WithCancel(t.Context())
		m := skills.Mirror{Dir: filepath.Join(t.TempDir(), "mirror"), Agent: "agents/scout", Clean: func(data []byte) bool {
			if bytes.Contains(data, []byte("name: "+list[files].Name)) {
				end()
			}
			return true
		}}
		if _, err := m.Update(ctx, list); !errors.Is(err, context.Canceled) {
			t.Errorf("ended at %s, the update says %v", list[files].Name, err)
		}
		same(t, m.Dir, map[string]string{})
	}
}
