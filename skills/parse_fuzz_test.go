package skills_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"capgate/skills"
)

// readers are the ways in which clients find the frontmatter.
func readers() map[string]func(text string) (string, bool) {
	gemini := regexp.MustCompile(`^---\r?\n([\s\S]*?)\r?\n---`)
	return map[string]func(text string) (string, bool){
		"splits at the first marks": func(text string) (string, bool) {
			parts := strings.SplitN(text, "---", 3)
			return parts[min(1, len(parts)-1)], len(parts) == 3 && parts[0] == ""
		},
		"trims lines": func(text string) (string, bool) {
			lines := strings.Split(text, "\n")
			for i, line := range lines {
				if strings.TrimSpace(line) == "---" && i > 0 {
					return strings.Join(lines[1:i], "\n"), strings.TrimSpace(lines[0]) == "---"
				}
			}
			return "", false
		},
		"looks for line starts": func(text string) (string, bool) {
			found := gemini.FindStringSubmatch(text)
			if found == nil {
				return "", false
			}
			return found[1], true
		},
	}
}

// FuzzParse: a skill that could be satisfied declares the same tools to every client
// that can read it, and nothing that it declares is left out.
func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"---\nname: one\ndescription: d\nallowed-tools: Bash\n---\nx\n", "\ufeff---\nname: one\ndescription: d\n---\n",
		"---\nname: one\ndescription: a: b\nallowed-tools: Read\n---\n", "---\nname: one\ndescription: |\n  ---\n  x\nallowed-tools: Read\n---\n",
		"---\r\nname: one\r\ndescription: d ---\r\nallowed-tools: [Read]\r\n---\r\n", "---\nname: one\ndescription: d\nhooks: x\n---x\n---\n!`a`",
		"---\r\r\r\r\n111111name: name: oncription: H ---\r\naowed-llowed-tools: [Read]\r\n---",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			return
		}
		s := skills.Parse("one", []byte(text), skills.Options{})
		specs, ok := s.Requires()
		switch {
		case !ok && s.Broken == "" && len(s.Needs) == 0:
			t.Fatal("hidden without a reason")
		case !ok:
			return
		case s.Name != "one" || strings.TrimSpace(s.Description) == "" || len(specs) != len(s.Needs):
			t.Fatalf("shown, and yet %+v", s)
		}
		compare(t, text, s.Frontmatter)
		if diff := cmp.Diff(s.Needs, skills.Parse("one", []byte(text), skills.Options{}).Needs); diff != "" {
			t.Fatalf("two readings differ: %s", diff)
		}
	})
}

// compare reports what other readers see otherwise.
func compare(t *testing.T, text string, frontmatter []byte) {
	t.Helper()
	var ours map[string]any
	if err := json.Unmarshal(frontmatter, &ours); err != nil {
		t.Fatalf("%s: %v", frontmatter, err)
	}
	for name, read := range readers() {
		raw, ok := read(text)
		var theirs map[string]any
		if !ok || yaml.Unmarshal([]byte(raw), &theirs) != nil || theirs == nil {
			continue
		}
		if a, b := fmt.Sprint(ours["allowed-tools"]), fmt.Sprint(theirs["allowed-tools"]); a != b {
			t.Errorf("who %s sees the tools %s, where we see %s, in %q", name, b, a, text)
		}
		if (ours["hooks"] == nil) != (theirs["hooks"] == nil) {
			t.Errorf("who %s sees other hooks, in %q", name, text)
		}
	}
}
