package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLongClaims: what a server calls its skills and prompts takes no time, however long it is,
// and however deep.
func TestLongClaims(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		name := fmt.Sprintf("s%d", i)
		files["skill://"+name+"/SKILL.md"] = skillText(name, "", "Fine.\n")
	}
	s := newSkillServer(true, files)
	deep := func(segments int) string {
		return `{"uri":"skill://x` + strings.Repeat("/a", segments) + `/SKILL.md","frontmatter":{"name":"a","description":"x"},"resources":[]}`
	}
	s.list(append(s.entries(), deep(128<<10), deep(100))...)
	s.lists["prompts/list"] = `"prompts":[{"name":"` + strings.Repeat("_", 1<<20) + `"},{"name":"` + strings.Repeat("ab", 1<<19) + `"}]`
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	begun := time.Now()
	if n := strings.Count(w.client("scout").modern("skills/list", "{}", "{}").Raw, `"frontmatter"`); n != len(files) || time.Since(begun) > 2*time.Second {
		t.Errorf("%d skills after %v", n, time.Since(begun))
	}
}
