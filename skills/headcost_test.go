package skills_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/skills"
)

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
