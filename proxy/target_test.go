package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/guardrail"
	"capgate/proxy"
	"capgate/upstream"

	"github.com/google/go-cmp/cmp"
)

// TestRecordedTargets: an event holds what was decided on, and not how the agent has
// written it; the agent is told what it has written, and nothing of where that leads.
func TestRecordedTargets(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read", "path") + `,` + tool("tree", "path") + `,` + tool("get", "url") + `,` + tool("run", "command") + `]`}}
	m := parsed(t, "server: s\ntools:\n  read: {path: fs.read}\n  tree: {path: {verb: fs.read, tree: true}}\n  get: {url: net.get}\n  run: {command: proc.exec}\n")
	up := &proxy.Upstream{Name: "up", Prefix: "up", Mapping: m, Open: s.open}
	w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - fs.read: { in: $ROOT, paths: [docs] }\n  - net.get: { hosts: [example.com] }\n  - proc.exec: { in: $ROOT, cmds: [git] }\n---\n"}, up)
	up.View = capability.View{Cwd: w.root, Home: "/home/nobody", FS: hostfs.FS{}}
	for _, dir := range []string{"docs", "secret"} {
		if err := os.Mkdir(filepath.Join(w.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../secret", filepath.Join(w.root, "docs", "link")); err != nil {
		t.Fatal(err)
	}
	c := w.client("scout")
	c.initialize("{}")
	for _, test := range []struct {
		tool, args string
		want       guardrail.Need
	}{
		{"read", `{"path":"./docs//x/../a"}`, guardrail.Need{Verb: "fs.read", Object: "$ROOT/docs/a", Also: []string{"$ROOT/docs/x"}, Argument: "path"}},
		{"read", `{"path":"docs/link/a"}`, guardrail.Need{Verb: "fs.read", Object: "$ROOT/docs/link/a", Also: []string{"$ROOT/secret/a"}, Argument: "path"}},
		{"read", `{"path":"docs/%61"}`, guardrail.Need{Verb: "fs.read", Object: "$ROOT/docs/%61", Also: []string{"$ROOT/docs/a"}, Argument: "path"}},
		{"read", `{"path":"docs/"}`, guardrail.Need{Verb: "fs.read", Object: "$ROOT/docs", Argument: "path"}},
		{"tree", `{"path":"docs/x"}`, guardrail.Need{Verb: "fs.read", Object: "$ROOT/docs/x{,/**}", Argument: "path"}},
		{"get", `{"url":"HTTPS://Example.COM:443/x?key=sesame"}`, guardrail.Need{Verb: "net.get", Object: "example.com:443", Argument: "url"}},
		{"run", `{"command":["git","status"]}`, guardrail.Need{Verb: "proc.exec", Object: "git status", In: "$ROOT", Argument: "command"}},
		{"run", `{"command":["git","log","--format=a b"]}`, guardrail.Need{Verb: "proc.exec", Object: `git log "--format=a b"`, In: "$ROOT", Argument: "command"}},
	} {
		answer := c.request("tools/call", `{"name":"up__`+test.tool+`","arguments":`+test.args+`}`)
		if strings.Contains(answer.Raw, w.root+"/secret") {
			t.Errorf("%s: the agent is told where a link leads: %s", test.args, answer.Raw)
		}
		all := w.events.of("decision")
		got := all[len(all)-1].Needs
		for i := range got {
			got[i].Object = strings.ReplaceAll(got[i].Object, w.root, "$ROOT")
			got[i].In = strings.ReplaceAll(got[i].In, w.root, "$ROOT")
			for k := range got[i].Also {
				got[i].Also[k] = strings.ReplaceAll(got[i].Also[k], w.root, "$ROOT")
			}
		}
		if diff := cmp.Diff([]guardrail.Need{test.want}, got); diff != "" {
			t.Errorf("%s %s: %s", test.tool, test.args, diff)
		}
	}
}

// TestToldWord: an agent is told which word of a call can be read as a path outside, in the
// result and in the event, however many grants it holds. Of a word that a secret stands in
// no part is told, of which nobody could tell that it is one (R-EGG-33).
func TestToldWord(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("run", "command") + `]`}}
	up := &proxy.Upstream{Name: "up", Prefix: "up", Mapping: parsed(t, "server: s\ntools:\n  run: {command: proc.exec}\n"), Open: s.open}
	scrub := func(b []byte) []byte {
		if secret := []byte("sesame=/opens"); bytes.Contains(b, secret) {
			return bytes.ReplaceAll(b, secret, []byte("[secret]"))
		}
		return b
	}
	grants := "  - proc.exec: { in: $ROOT, cmds: [rg] }\n"
	for i := range 9 {
		grants += fmt.Sprintf("  - proc.exec: { in: $ROOT, cmds: [prog-%c] }\n", 'a'+i)
	}
	w := startWith(t, proxy.Options{Scrub: scrub}, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n" + grants + "---\n"}, up)
	up.View = capability.View{Cwd: w.root}
	c := w.client("scout")
	c.initialize("{}")
	for word, want := range map[string]string{
		"@/components":         "held: the word @/components can be read as the path /components, which is outside " + w.root + " (held for",
		"--token=sesame=/open": "can be read as the path /open, which",
		"--key=sesame=/opens":  "which is outside what is held (held for",
	} {
		answer := c.request("tools/call", fmt.Sprintf(`{"name":"up__run","arguments":{"command":["rg",%q]}}`, word))
		all := w.events.of("decision")
		for _, text := range []string{answer.Raw, all[len(all)-1].Text} {
			if !strings.Contains(text, want) || !strings.Contains(text, "and 2 more)") {
				t.Errorf("%s: %s", word, text)
			}
			if clean := string(scrub([]byte(text))); strings.Contains(clean, "/opens") {
				t.Errorf("%s: a part of the secret is told: %s", word, clean)
			}
		}
	}
}

// TestAddressBehindName: where a name that is held leads to an address that is not, nobody is
// told to grant the name. The operator learns why, and the agent not where it leads.
func TestAddressBehindName(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("get", "url") + `]`}}
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		name, err := capability.ParseTarget("db.example.com:80")
		must(t, err)
		return upstream.Answer{}, s.newest().Decide(capability.Net("net.get", name.Resolved(netip.MustParseAddr("10.0.0.1"))))
	}
	up := &proxy.Upstream{Name: "up", Prefix: "up", Mapping: parsed(t, "server: s\ntools:\n  get: {url: net.get}\n"), Open: s.open}
	w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - net.get: { hosts: [db.example.com] }\n---\n"}, up)
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"up__get","arguments":{"url":"http://db.example.com/"}}`)
	if d := denialOf(t, a); d.Code != "scope_violation" || strings.Contains(a.Raw, "agents grant") || strings.Contains(a.Raw, "10.0.0.1") {
		t.Errorf("answered with %s", a.Raw)
	}
	all := w.events.of("decision")
	if link := all[len(all)-1].Link; !strings.Contains(link, "leads to an address") {
		t.Errorf("recorded is %q", link)
	}
}
