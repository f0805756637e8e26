package proxy_test

import (
	"fmt"
	"runtime"
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
