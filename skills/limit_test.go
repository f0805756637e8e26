package skills_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/skills"
)

// TestFolderLimit: where a limit is hit, nothing is shown.
func TestFolderLimit(t *testing.T) {
	files := map[string]string{}
	for i := range 8192 / 64 {
		for j := range 64 {
			files[fmt.Sprintf("d%d/d%d/x", i, j)] = ""
		}
	}
	files["a/SKILL.md"] = md("a")
	if l := skills.Load(options(), tree(t, files)); len(outline(l)) != 0 || len(l.Findings()) != 1 || l.Findings()[0].Code != "skill_limit" {
		t.Errorf("over the limit it holds %v and says %v", outline(l), l.Findings())
	}
}

// TestFrontmatterLimit: a folder whose skills have too much frontmatter, which takes longest to read, shows none.
func TestFrontmatterLimit(t *testing.T) {
	const size = 60 << 10 // 34 of them are less than may be read
	for _, tt := range []struct{ count, shown int }{{34, 34}, {36, 0}} {
		files := map[string]string{}
		for i := range tt.count {
			name := fmt.Sprintf("s%d", i)
			files[name+"/SKILL.md"] = md(name, "note: "+strings.Repeat("x", size))
		}
		if l := skills.Load(options(), tree(t, files)); len(outline(l)) != tt.shown {
			t.Errorf("of %d are shown %d: %v", tt.count, len(outline(l)), l.Findings())
		}
	}
}

// quotable is frontmatter of keys whose values are read only in quotes.
func quotable(n int) (lines string) {
	for i := range n {
		lines += fmt.Sprintf("k%d: a: [\n", i)
	}
	return lines
}
