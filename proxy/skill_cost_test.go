package proxy_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestServedSkillsAreReadOnce: a server that says again and again that something has changed
// has none of its skills read anew that have not.
func TestServedSkillsAreReadOnce(t *testing.T) {
	const many, size = 32, 100 << 10
	served := map[string]string{}
	for i := range many {
		served[fmt.Sprintf("skill://s%d/SKILL.md", i)] = fmt.Sprintf("---\nname: s%d\ndescription: About s%d.\n---\n%s", i, i, strings.Repeat("word ", size/5))
	}
	s := newSkillServer(false, served)
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	c := w.client("scout")
	list := func() (allocated uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if a := c.modern("skills/list", `{}`, `{}`); strings.Count(a.Raw, `"name":"s`) != many {
			t.Fatalf("%.300s", a.Raw)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	if n := list(); n < many*size {
		t.Fatalf("to read them takes %d bytes, and so this test says nothing", n)
	}
	for range 3 {
		s.changed()
		if n := list(); n >= many*size {
			t.Errorf("they are read anew: %d bytes", n)
		}
	}
}

// TestServedFrontmatterIsBounded: so is what it takes to read a server's skills, as whoever lists anything waits for that.
func TestServedFrontmatterIsBounded(t *testing.T) {
	const size, count = 60 << 10, 20 // 18 of them are a little more than may be read
	own := map[string]string{"skill://first/SKILL.md": skillText("first", "", "x"), "skill://last/SKILL.md": skillText("last", "", "x")}
	for i := range count {
		name := fmt.Sprintf("i%02d", i)
		own["skill://"+name+"/SKILL.md"] = "---\nname: " + name + "\ndescription: About " + name + ".\nnote: " + strings.Repeat("x", size) + "\n---\n"
	}
	own["skill://i01/SKILL.md"] = strings.Replace(own["skill://i01/SKILL.md"], "About", "Not about", 1) // it is read before it is found out
	s := newSkillServer(false, own)
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	c := w.client("scout")
	c.initialize("{}")
	got := skillURIs(listSkills(t, c.request))
	if len(got) != 1+18-1 || !slices.Contains(got, "skill://files/first/SKILL.md") || slices.Contains(got, "skill://files/last/SKILL.md") {
		t.Errorf("%v are listed", got)
	}
}

// TestServedFilesAreBounded: what every list of every agent is compared with has an end.
func TestServedFilesAreBounded(t *testing.T) {
	for many, shown := range map[int]bool{8: true, 18: false} { // of half a thousand files, each with a URI of half a thousand bytes
		own := map[string]string{}
		for i := range many {
			name := fmt.Sprintf("s%02d", i)
			own["skill://"+name+"/SKILL.md"] = skillText(name, "", "x")
			for j := range 500 {
				own[fmt.Sprintf("skill://%s/%s/%d", name, strings.Repeat("x", 480), j)] = ""
			}
		}
		s := newSkillServer(false, own)
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		c.initialize("{}")
		if got := skillURIs(listSkills(t, c.request)); (len(got) == many) != shown {
			t.Errorf("of %d skills %d are listed", many, len(got))
		}
	}
}

// TestServedSkillsAreTheSame: nor is anything made anew for them, nor for one that is shown to nobody.
func TestServedSkillsAreTheSame(t *testing.T) {
	for _, speaks := range []bool{true, false} {
		const main = "skill://a/SKILL.md"
		s := newSkillServer(false, map[string]string{main: skillText("a", "", "A.\n")})
		s.lists["resources/list"] = `"resources":[{"uri":"` + main + `","name":"a"},{"uri":"skill://%62/SKILL.md","name":"b"}]`
		if !speaks {
			s.info.Capabilities = []byte(serverAbilities)
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		known := func() any {
			if a := c.modern("skills/list", "{}", "{}"); !strings.Contains(a.Raw, "About a.") {
				t.Fatal(a.Raw)
			}
			cat, err := w.server.Known("scout")
			if err != nil {
				t.Fatal(err)
			}
			return cat
		}
		before := known()
		if s.changed(); known() != before {
			t.Errorf("speaks %t: all is made anew", speaks)
		}
		s.mu.Lock()
		s.files = map[string]string{main: skillText("a", "", "Another.\n")}
		s.mu.Unlock()
		s.list(s.entries()...)
		if s.changed(); known() == before {
			t.Errorf("speaks %t: another is not seen", speaks)
		}
	}
}
