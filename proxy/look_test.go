package proxy_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLookSkills: an operator sees which skills the agent is shown, the gateway's own and
// a server's, and of each of the others why it is not.
func TestLookSkills(t *testing.T) {
	w := start(t, map[string]string{"scout": anyReader}, newSkillServer(true, servedFiles()).up(t))
	w.bundles(ownSkills())
	c := w.client("scout")
	c.initialize("{}")
	want := skillURIs(listSkills(t, c.request))
	all, missing, err := w.server.LookSkills(t.Context(), "agents/scout")
	if err != nil || len(missing) > 0 {
		t.Fatal(missing, err)
	}
	var shown []string
	whose := map[string]string{}
	why := map[string]string{}
	for _, s := range all {
		if whose[s.URI] = s.Upstream; s.Visible {
			shown = append(shown, s.URI+"/SKILL.md")
			continue
		}
		why[s.URI] = s.Why
		for _, m := range s.Lacks.Missing {
			why[s.URI] += m.Need.String()
		}
	}
	slices.Sort(shown)
	slices.Sort(want)
	if diff := cmp.Diff(want, shown); diff != "" || len(want) < 4 {
		t.Errorf("shown to the agent (-) and to its operator (+):\n%s", diff)
	}
	const host = "net.get{hosts=[example.com]}"
	if diff := cmp.Diff(map[string]string{
		"skill://broken":               `the key "name" stands twice in the frontmatter`,
		"skill://secret":               host,
		"skill://outer":                host,
		"skill://outer/inner":          host,
		"skill://files/team/secret":    host,
		"skill://files/outer":          "a skill inside it is hidden",
		"skill://files/outer/in/inner": host,
		"repo://acme/x/skills/hid":     host,
	}, why); diff != "" {
		t.Error(diff)
	}
	if whose["skill://files/greet"] != "files" || whose["skill://notes"] != "" {
		t.Errorf("they belong to %v", whose)
	}
}
