//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const hiddenWords = "WORDS-THAT-SCOUT-DOES-NOT-SEE"

// library is a folder with a configuration that serves skills: two that the scout
// satisfies, and one that it does not.
func library(t *testing.T) string {
	t.Helper()
	return tree(t, map[string]string{
		"capgate.yml":     "agents: ./agents\nsandbox: ./work\nstate: ./state\nskills: [./skills]\nupstreams:\n  files: { builtin: fs }\n",
		"agents/scout.md": "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\nYou read.\n",
		"agents/boss.md":  "---\nid: agents/boss\nclass: agent\ncapabilities:\n  - fs.read: { paths: [docs] }\n  - net.get: { hosts: [example.com] }\n---\nYou read.\n",
		"work/docs/a.md":  "a",
		"skills/notes/SKILL.md": "---\nname: notes\ndescription: \"Takes notes: short ones.\"\nlicense: MIT\nmetadata:\n  version: \"1.0\"\n---\n" +
			"# Notes\r\n<b>&\u2028 \"quoted\"\n",
		"skills/notes/references/guide.md": "the guide",
		"skills/notes/assets/dot.png":      "\x89PNG\x00\xff",
		"skills/team/review/SKILL.md":      "---\nname: review\ndescription: Reviews.\nallowed-tools: Read Grep\n---\nReview.\n",
		"skills/secret/SKILL.md":           "---\nname: secret\ndescription: Hidden.\nallowed-tools: WebFetch(domain:example.com)\n---\n" + hiddenWords + "\n",
	})
}

// verified is what the inspector says of one skill.
type verified struct {
	Name, Outcome string
	Files         []struct{ URI, Status string }
}

// inspectSkills has the inspector read every file of every skill that is listed, and
// compare it with what the list says.
func inspectSkills(t *testing.T, at, era string, header ...string) ([]verified, outcome) {
	t.Helper()
	args := []string{installed(t, inspector), "--cli", at, "--transport", "http", "--protocol-era", era, "--method", "skills/list", "--verify"}
	for _, h := range header {
		args = append(args, "--header", h)
	}
	o := run(t, command(t, args...))
	// Now and then it drops the list that it was answered for one that it fetches as it connects,
	// and says that there are none.
	for tries := 1; tries < 4 && strings.Contains(o.err, "Verified 0 skills"); tries++ {
		o = run(t, command(t, args...))
	}
	var all []verified
	for line := range strings.Lines(o.out) {
		var v verified
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatalf("the inspector said %s%s: %v", o.out, o.err, err)
		}
		all = append(all, v)
	}
	return all, o
}

// TestInspectSkills verifies the skills with the inspector, in each era it speaks.
func TestInspectSkills(t *testing.T) {
	installed(t, inspector)
	g := serve(t, library(t), "capgate.yml", "scout")
	for _, era := range []string{"legacy", "auto", "modern"} {
		t.Run(era, func(t *testing.T) {
			all, o := inspectSkills(t, g.at, era, "Authorization: Bearer "+g.token)
			if o.code != 0 {
				t.Errorf("ended with %d: %s", o.code, o.err)
			}
			files := map[string]int{}
			for _, v := range all {
				files[v.Name] = len(v.Files)
				if v.Outcome != "verified" {
					t.Errorf("%s is %s: %s", v.Name, v.Outcome, o.out)
				}
			}
			if len(files) != 2 || files["notes"] != 3 || files["review"] != 1 {
				t.Errorf("verified are %v", files)
			}
			if strings.Contains(o.out, "secret") {
				t.Errorf("what is hidden is listed: %s", o.out)
			}
		})
	}
}

// TestInspectServedSkills puts one gateway in front of another, which serves skills to
// an agent that satisfies all of them.
func TestInspectServedSkills(t *testing.T) {
	installed(t, inspector)
	dir := library(t)
	server := []string{"--", os.Getenv("CAPGATE_BIN"), "stdio", "--agent", "boss", "-c", filepath.Join(dir, "capgate.yml")}
	grants := []string{"--sandbox", filepath.Join(dir, "work"), "--grant", "fs.read{paths=[docs]}", "--grant", "resource.read{uris=[**]}"}
	for _, who := range []struct {
		name   string
		grants []string
		skills int
	}{
		{"some", grants, 2},
		{"all", append(slices.Clone(grants), "--grant", "net.get{hosts=[example.com]}"), 3},
	} {
		t.Run(who.name, func(t *testing.T) {
			g := wrap(t, append(who.grants, server...)...)
			for _, era := range []string{"legacy", "modern"} {
				all, o := inspectSkills(t, g.at, era, "Authorization: Bearer "+g.token)
				if o.code != 0 || len(all) != who.skills || strings.Contains(o.out, "secret") != (who.skills == 3) {
					t.Errorf("%s: ended with %d: %s%s", era, o.code, o.out, o.err)
				}
			}
			if a := (agent{g.at, g.token}).ask(t, "resources/read", "skill://secret/SKILL.md", `{"uri":"skill://secret/SKILL.md"}`); a.ok() != (who.skills == 3) {
				t.Errorf("read is %s%s", a.Result, a.text())
			}
		})
	}
}

// spoiled is a gateway whose answers somebody on the way changes.
func (g *gateway) spoiled(t *testing.T, old, changed string) string {
	t.Helper()
	to, err := url.Parse(g.at)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = to, r.In.Host
			r.Out.Header.Set("Authorization", "Bearer "+g.token)
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(resp *http.Response) error {
			if !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
				return nil // a stream, which has no end to wait for
			}
			data, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			data = bytes.ReplaceAll(data, []byte(old), []byte(changed))
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
			resp.Header.Set("Content-Length", strconv.Itoa(len(data)))
			return nil
		},
	})
	t.Cleanup(srv.Close)
	return local(srv.Listener.Addr())
}

// TestInspectorCanFail: the inspector notices one word in one file.
func TestInspectorCanFail(t *testing.T) {
	installed(t, inspector)
	g := serve(t, library(t), "capgate.yml", "scout")
	all, o := inspectSkills(t, g.spoiled(t, "the guide", "the guIde"), "modern")
	if o.code == 0 || !slices.ContainsFunc(all, func(v verified) bool { return v.Name == "notes" && v.Outcome == "failed" }) {
		t.Errorf("ended with %d: %s%s", o.code, o.out, o.err)
	}
}

// scenario runs one scenario of the suite against a server.
func scenario(t *testing.T, at, name string) map[check]finding {
	t.Helper()
	dir := t.TempDir()
	o := run(t, command(t, installed(t, conformance), "server", "--url", at, "--scenario", name, "-o", dir))
	found := findings(t, dir)
	if len(found) == 0 {
		t.Fatalf("%s checked nothing: %s%s", name, o.out, o.err)
	}
	return found
}

// TestSkillConformance passes the suite's scenarios for skills: every check, as one
// that is skipped says nothing.
func TestSkillConformance(t *testing.T) {
	installed(t, conformance)
	g := serve(t, library(t), "capgate.yml", "scout")
	at := g.open(t)
	for _, name := range []string{"sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"} {
		t.Run(name, func(t *testing.T) {
			for c, f := range scenario(t, at, name) {
				if f.severity > fine {
					t.Errorf("%s: %s", c, f.text)
				}
			}
		})
	}
}

// TestSkillConformanceCanFail: a gateway that breaks a rule of the extension fails
// the check for it.
func TestSkillConformanceCanFail(t *testing.T) {
	installed(t, conformance)
	g := serve(t, library(t), "capgate.yml", "scout")
	for _, broken := range []struct{ scenario, check, old, new string }{
		{"sep-2640-skills-enumeration", "sep-2640-resources-digest-format", "sha256:", "sha256-"},
		{"sep-2640-skills-enumeration", "sep-2640-skills-get-unknown-uri-invalid-params", `"code":-32602`, `"code":-32601`},
		{"sep-2640-skills-manifest", "sep-2640-skillmd-mimetype", "text/markdown", "text/plain"},
		{"sep-2640-skills-directory", "sep-2640-directory-read-subdir-mimetype", "inode/directory", "text/plain"},
	} {
		found := scenario(t, g.spoiled(t, broken.old, broken.new), broken.scenario)
		if !slices.ContainsFunc(slices.Collect(maps.Keys(found)), func(c check) bool { return c.id == broken.check && found[c].severity > skipped }) {
			t.Errorf("%s says nothing of %s in place of %s: %v", broken.check, broken.new, broken.old, found)
		}
	}
}

// TestSkillsOverStdio reads skills over a pipe, and what is hidden is not there.
func TestSkillsOverStdio(t *testing.T) {
	c := launch(t, `{}`, nil, "stdio", "--agent", "scout", "-c", filepath.Join(library(t), "capgate.yml"))
	if a := c.ask(t, "skills/list", `{}`); !strings.Contains(string(a.Result), "skill://notes/SKILL.md") || strings.Contains(string(a.Result), "secret") {
		t.Errorf("listed are %s%s", a.Result, a.text())
	}
	if a := c.ask(t, "resources/read", `{"uri":"skill://notes/references/guide.md"}`); !strings.Contains(string(a.Result), `"text":"the guide"`) {
		t.Errorf("read is %s%s", a.Result, a.text())
	}
	if a := c.ask(t, "resources/read", `{"uri":"skill://secret/SKILL.md"}`); a.ok() || strings.Contains(a.text(), hiddenWords) {
		t.Errorf("what is hidden is %s%s", a.Result, a.text())
	}
}
