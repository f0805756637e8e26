//go:build unix

package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDemo runs what the README says first.
func TestDemo(t *testing.T) {
	began := time.Now()
	o := run(t, capgate(t, "demo"))
	if took := time.Since(began); o.code != 0 || took > 10*time.Second {
		t.Errorf("ended with %d after %s: %s", o.code, took, o.err)
	}
	for _, event := range []string{`(?m)^ *[0-9a-f]{16} allow `, `(?m)^ *[0-9a-f]{16} deny `} {
		if n := len(regexp.MustCompile(event).FindAllString(o.out, -1)); n != 1 {
			t.Errorf("%d events like %s, want one, in:\n%s", n, event, o.out)
		}
	}
	if !strings.Contains(o.out, badText) {
		t.Errorf("no denial is shown in:\n%s", o.out)
	}
}

// TestExampleConfig serves the example, as its first lines say, from a copy of it.
func TestExampleConfig(t *testing.T) {
	dir := tree(t, nil)
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS("../examples")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../config.example.yml")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config.example.yml", string(text))
	g := serve(t, dir, "config.example.yml", "scout")

	resp, err := http.Get(strings.TrimSuffix(g.at, "/mcp") + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("/healthz: %s", resp.Status)
	}
	nobody, err := agent{g.at, ""}.post(t, "tools/list", "", "")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Body.Close()
	if nobody.StatusCode != http.StatusUnauthorized || nobody.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %s, WWW-Authenticate %q", nobody.Status, nobody.Header.Get("WWW-Authenticate"))
	}
	scout := agent{g.at, g.token}
	allowed(t, scout.call(t, "files__read", `{"path":"docs/guide.md"}`), "")
	denied(t, scout.call(t, "files__read", `{"path":"/etc/passwd"}`), "scope_violation")
	denied(t, scout.call(t, "web__fetch", `{"url":"http://169.254.169.254/"}`), "scope_violation")
}

// TestRevoked takes the token away while the gateway runs.
func TestRevoked(t *testing.T) {
	dir := tree(t, map[string]string{
		"capgate.yml":     "agents: ./agents\nsandbox: ./work\nstate: ./state\nupstreams:\n  files: { builtin: fs }\n",
		"agents/scout.md": "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\nYou read.\n",
		"work/docs/a.md":  "a",
	})
	g := serve(t, dir, "capgate.yml", "scout")
	scout := agent{g.at, g.token}
	allowed(t, scout.call(t, "files__read", `{"path":"docs/a.md"}`), "a")
	if o := run(t, capgate(t, "-c", filepath.Join(dir, "capgate.yml"), "agents", "token", "revoke", "--agent", "scout")); o.code != 0 {
		t.Fatal(o.err)
	}
	eventually(t, "the token is of no use", func() bool {
		resp, err := scout.post(t, "tools/list", "", "")
		return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusUnauthorized
	})
}
