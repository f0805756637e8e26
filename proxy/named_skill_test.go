package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestServedNames: names of files that servers write into URIs as URLs are written are no flaw, and
// what escapes to a blank, or to one that moves, leads to nothing else.
func TestServedNames(t *testing.T) {
	const root = "skill://pages"
	for name, shown := range map[string]bool{
		"app/[slug]/page.tsx": true, "my%20guide%20(v2).md": true, "na%C3%AFve.md": true, "a@b,c.md": true, "app/%5Bid%5D.tsx": true,
		"%20../x.md": false, "..%20/x.md": false, "a/%20/x.md": false, "SKILL.md%20": false, "in/%20SKILL.md": false, "a%0Ab.md": false, "a%09b.md": false, "a|b.md": false, "a b.md": false,
	} {
		uri := root + "/" + name
		s := newSkillServer(true, map[string]string{root + "/SKILL.md": skillText("pages", "", "Write.\n"), uri: "some text"})
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		inEras(t, w, "scout", func(t *testing.T, do ask) {
			if got := len(skillURIs(listSkills(t, do))); got != map[bool]int{true: 1}[shown] {
				t.Errorf("with %s %d are listed", name, got)
			}
			if a := do("resources/read", uriParams("skill://files/pages/"+name)); strings.Contains(a.Raw, "some text") != shown {
				t.Errorf("%s is read as %s", name, a.Raw)
			}
		})
	}
}

// TestIrregularSkills: a skill that clients refuse by the letter of the format, and all others that
// are listed beside it, is shown in every other way.
func TestIrregularSkills(t *testing.T) {
	entry := func(name string) string {
		text := skillText(name, "", "Do "+name+".\n")
		return fmt.Sprintf(`{"uri":"skill://%s/SKILL.md","frontmatter":{"name":"%s","description":"About %s."},"resources":[%s]}`, name, name, name, manifestEntry("skill://"+name+"/SKILL.md", text))
	}
	s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Do plain.\n"), "skill://Of_Old/SKILL.md": skillText("Of_Old", "", "Do Of_Old.\n")})
	s.list(entry("plain"), entry("Of_Old"))
	w := start(t, map[string]string{"scout": anyReader}, s.up(t))
	w.bundles(map[string]string{"own/SKILL.md": skillText("own", "", "Do own.\n"), "odd/SKILL.md": strings.Replace(skillText("odd", "", "Do odd.\n"), "---\nDo", "metadata: { version: 1.0 }\n---\nDo", 1)})
	inEras(t, w, "scout", func(t *testing.T, do ask) {
		if diff := cmp.Diff([]string{"skill://files/plain/SKILL.md", "skill://own/SKILL.md"}, skillURIs(listSkills(t, do))); diff != "" {
			t.Error(diff)
		}
		for _, at := range []string{"skill://files/Of_Old/SKILL.md", "skill://odd/SKILL.md"} {
			if a := do("resources/list", "{}"); !strings.Contains(a.Raw, at) {
				t.Errorf("%s is no resource: %s", at, a.Raw)
			}
			for _, method := range []string{"resources/read", "skills/get"} {
				if a := do(method, uriParams(at)); a.Error != nil {
					t.Errorf("%s of %s: %s", method, at, a.Raw)
				}
			}
		}
		for _, name := range []string{"files__Of_Old", "odd"} {
			if a := do("prompts/get", `{"name":"`+name+`"}`); a.Error != nil {
				t.Errorf("the prompt %s: %s", name, a.Raw)
			}
		}
	})
}
