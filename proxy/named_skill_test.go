package proxy_test

import (
	"strings"
	"testing"
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
