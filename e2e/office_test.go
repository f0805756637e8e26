//go:build unix

package e2e_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"testing"
)

// What the scout of the office is shown, of all that there is: what the builtin
// has for reading, and two tools of the fixture.
func officeTools() []string {
	return []string{
		"capgate__explain", "capgate__whoami",
		"files__info", "files__list", "files__read", "files__search",
		"fixture__test_error_handling", "fixture__test_simple_text",
	}
}

// office is a folder with a configuration as people have one: a builtin, a server
// by command, and an agent with narrow grants.
func office(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"capgate.yml": fmt.Sprintf("agents: ./agents\nsandbox: ./work\nstate: ./state\nupstreams:\n"+
			"  files: { builtin: fs }\n  fixture: { command: [%q] }\n", installed(t, everythingServer)),
		"agents/scout.md": "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n" +
			"  - tool.invoke: { tools: [fixture.test_simple_text, fixture.test_error_handling] }\n---\nYou read.\n",
		"work/docs/guide.md":   "the guide says hello",
		"work/notes/plans.md":  "nobody gave this to scout",
		"work/docs/sub/sub.md": "below",
	})
}

// The calls that each client makes: one that is allowed, one outside what is
// granted, and one of a tool that is not shown.
const (
	goodCall, goodText = "files__read", "the guide says hello"
	goodArgs, badArgs  = `{"path":"docs/guide.md"}`, `{"path":"notes/plans.md"}`
	badText            = "Denied by capgate (scope_violation)"
	hiddenCall         = "fixture__test_image_content"
)

// sameTools fails unless a list is what the scout is shown.
func sameTools(t *testing.T, got []string) {
	t.Helper()
	got = slices.Sorted(slices.Values(got))
	if want := officeTools(); !slices.Equal(got, want) {
		t.Errorf("shown are\n%q, want\n%q", got, want)
	}
}

// TestOffice makes the calls without anybody's client, so that what fails below
// and not here is between a client and the gateway.
func TestOffice(t *testing.T) {
	g := serve(t, office(t), "capgate.yml", "scout")
	scout := agent{g.at, g.token}
	sameTools(t, scout.tools(t))
	allowed(t, scout.call(t, goodCall, goodArgs), goodText)
	denied(t, scout.call(t, goodCall, badArgs), "scope_violation")
	if a := scout.call(t, hiddenCall, `{}`); a.ok() {
		t.Errorf("a tool that is not shown answered %q", a.text())
	}
	for _, token := range []string{"", "cg_0000000000000000_" + g.token[20:], "x"} {
		resp, err := agent{g.at, token}.post(t, "tools/list", "", "")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("with the token %q: %s, want 401", token, resp.Status)
		}
	}
}

// stdioArgs are what a client is told to start for the scout of an office.
func stdioArgs(dir string) []string {
	return []string{"stdio", "--agent", "scout", "-c", filepath.Join(dir, "capgate.yml")}
}
