package gate_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/gate"
)

// TestCompletionWalks: a server that joins what is given to a folder, on its own, finds nothing that the agent
// may not read. What stands beside it in the template is no part of the path then.
func TestCompletionWalks(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://team/*"] }`, `fs.read: { in: /w, paths: [docs] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for _, tt := range []struct {
		template, name, value string
		others                map[string]string
	}{
		{"docs://team/{path}", "path", "x", map[string]string{"path": "../priv/"}},
		{"file:///w/docs/{path}", "path", "x", map[string]string{"path": "/etc/"}},
		{"file:///w/docs/{path}.md", "path", "..", nil},
		{"file:///w/docs/{path}.md", "path", "a/../..", nil},
		{"file:///w/docs/x-{path}", "path", "..", nil},
		{"file:///w/docs/x-{path}", "path", "../secret/", nil},
		{"file:///w/docs/x-{path}", "path", "%2e%2e/secret/", nil},
		{"file:///w/docs/{a}-{b}", "b", "../secret/", nil},
		{"file:///w/docs/{a}-{b}", "b", "", map[string]string{"a": ".."}},
		{"file:///w/docs/{a,b}", "b", "../secret/", nil},
		{"file:///w/docs/{a,b}", "b", "", map[string]string{"a": ".."}},
		{"file:///w/docs/{a}/{b}", "a", "..", map[string]string{"b": "docs/x"}},
		{"file:///w/docs/{a}/{b}", "b", "../", map[string]string{"a": "x"}},
		{"file:///w/docs/{path}", "path", "%2f", nil},
		{"file:///w/docs/{path}", "path", "%2fetc/", nil},
		{"file:///w/docs/{path}", "path", "%7eroot/", nil},
		{"file:///w/docs/{path}", "path", "a%", nil},
		{"file:///w/docs/{path:2}", "path", "..x", nil},
		{"file:///w/docs/{path}", "path", "..;/secret/", nil},
		{"file:///w/docs/{path}", "path", "a;../secret/", nil},
		{"file:///w/docs/{path}", "path", ";/etc/", nil},
		{"file:///w/docs/{path}", "path", "'../secret/'", nil},
		{"file:///w/docs/{path}", "path", "\"/etc/", nil},
		{"file:///w/docs/{path}", "path", " ~root/", nil},
		{"file:///w/docs/{path}", "path", " a", nil},
		{"file:///w/docs/{path}", "path", "a ", nil},
		{"file:///w/docs/{path}", "path", "\u00a0a", nil},
		{"file:///w/docs/{path}", "path", "a\u2024\u2024/b", nil},
		{"file:///w/docs/{path}", "path", "\uff0e\uff0e\uff0fsecret/", nil},
		{"file:///w/docs/{path}", "path", "a\u200b", nil},
		{"file:///w/docs/{path}", "path", "+/etc/", nil},
		{"file:///w/docs/{path}", "path", "$HOME/", nil},
		{"file:///w/docs/{path}", "path", "l*k/", nil},
		{"file:///w/docs/{path}", "path", "[l]ink/", nil},
		{"file:///w/docs/{path}", "path", "{a,b}/", nil},
		{"file:///w/docs/{path}", "path", "a//b", nil},
		{"file:///w/docs/{path}", "path", "x ../secret/", nil},
		{"file:///w/docs/{path}", "path", ".-./secret/", nil},
		{"file:///w/docs/{path}", "path", "..()/secret/", nil},
		{"file:///w/docs/{path}", "path", "..\u0436/secret/", nil},
		{"file:///w/docs/{path}", "path", "..\ufe0f/secret/", nil},
		{"file:///w/docs/{path}", "path", "lin\u212a/", nil},
		{"file:///w/docs/{path}", "path", "/a", nil},
		{"file:///w/docs/{&path}", "path", "/etc/", nil},
		{"FILE:///w/docs/{path}", "path", "../secret/", nil},
		{"file://localhost/w/docs/{path}", "path", "../secret/", nil},
	} {
		v := g.Completion("agents/some", r, gate.Completing{Template: tt.template, Name: tt.name, Value: tt.value, Others: tt.others})
		if v.Decision.Allowed() {
			t.Errorf("%s of %s is completed with %q beside %q", tt.name, tt.template, tt.value, tt.others)
		}
	}
}

// TestCompletionOfLinks: a link leads where it leads, also where its name stands beside something else.
func TestCompletionOfLinks(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"docs/pub", "secret"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"docs/link": "../secret", "docs/up": "..", "secret/into": "../docs/pub", "docs/self": "."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	g := gateOf(t, map[string]string{"some.md": record(`fs.read: { in: ` + dir + `, paths: [docs] }`)})
	r := served(t, "", capability.View{Cwd: dir, FS: hostfs.FS{}})
	for _, template := range []string{
		"{p}", "{+p}", "{p*}", "{*p}", "{p}.md", "x-{p}", "{q}/{p}", "{p}/{q}", "{p,q}", "{q}-{p}", "pub{/p}", "pub{/p}.md", "pub{/q,p}", "{p:4}", "{?p}", "{&p}", "{;p}", "{#p}", "{.p}", "{p", "{{p}}", "{p}{p}",
	} {
		isFolder := slices.Contains([]string{"{p}", "{+p}", "{p*}", "{*p}"}, template)
		for value, want := range map[string]bool{"": true, "pub": true, "pub/": true, "li": true, "link": false, "link/": false, "link/x": false, "linkx": true, "up/docs/": false, "up/docs/pub": false, "link/into/": false, "self/pub/": true} {
			for _, others := range []map[string]string{nil, {"q": ""}, {"q": "pub"}, {"p": value}} {
				c := gate.Completing{Template: "file://" + dir + "/docs/" + template, Name: "p", Value: value, Others: others}
				if v := g.Completion("agents/some", r, c); v.Decision.Allowed() != (want && isFolder && others == nil) {
					t.Errorf("p of %s is completed with %q beside %v: %v", template, value, others, v.Decision)
				}
				c = gate.Completing{Template: "file://" + dir + "/docs/" + template, Name: "q", Others: map[string]string{"p": value}}
				if v := g.Completion("agents/some", r, c); v.Decision.Allowed() {
					t.Errorf("q of %s is completed beside %q", template, value)
				}
			}
		}
	}
}

// TestCompletionOfFilesBySchemeOfTheirOwn: what a mapping says to be a file is one.
func TestCompletionOfFilesBySchemeOfTheirOwn(t *testing.T) {
	g := gateOf(t, map[string]string{"all.md": record(`fs.read: { in: /, paths: [.] }`, `resource.read: { uris: ["*"] }`, `memory.read: { keys: ["*"] }`)})
	for _, note := range []string{"fs.read", "[fs.read, memory.read]", "[memory.read, fs.read]", "[fs.read, resource.read]", "[resource.read, fs.read]"} {
		r := served(t, "resources: { note: "+note+", \"some:///files/*\": fs.read }\n", capability.View{Cwd: "/w"})
		for template, want := range map[string]bool{"note:///w/docs/{p}": true, "note:///w/docs/{p}.md": false, "note:///w/docs/x-{p}": false, "other:///w/docs/{p}.md": true, "some:///{p}.md": false, "some:///x/{p}.md": true} {
			v := g.Completion("agents/all", r, gate.Completing{Template: template, Name: "p", Value: "a"})
			if v.Decision.Allowed() != want {
				t.Errorf("%s, which is %s, is completed: %v", template, note, v.Decision)
			}
		}
	}
}
