package gate_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// What completes a template tells of all that it may become, so that it needs what any of that does.
func TestTemplateVerdict(t *testing.T) {
	m, findings, err := mapping.Parse("m.yml", []byte(`server: s
tools: {}
resources:
  docs://internal/*: memory.read
  docs://all: { requires: [memory.read] }
  notes: memory.read
`))
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	g := gateOf(t, map[string]string{
		"reader.md": record("resource.read: { uris: [\"*\"] }"),
		"some.md":   record(`resource.read: { uris: ["docs://public/*-*", "docs://public/[a-z]*"] }`),
		"keeper.md": record("resource.read: { uris: [\"*\"] }", "memory.read: { keys: [\"*\"] }"),
		"ports.md":  record("resource.read: { uris: [\"pg://h:*\"] }"),
		"deep.md":   record("fs.read: { in: /srv, paths: [\"*/**\"] }"),
	})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for template, want := range map[string]bool{"pg://h:{port}": true, "pg://h:{port}/{x}": true, "pg://{h}:80": false} {
		if v := g.TemplateVerdict("agents/ports", r, template); v.Decision.Allowed() != want {
			t.Errorf("who may read of all ports completes %s: %v", template, v)
		}
	}
	if g.TemplateVerdict("agents/deep", r, "file:///srv/{+name}").Decision.Allowed() {
		t.Error("who may read what lies deeper completes all")
	}
	for template, reader := range map[string]bool{
		"docs://{box}/{id}":      false,
		"docs://{+rest}":         false,
		"docs:{+rest}":           false,
		"docs://in{box}/a":       false,
		"DOCS://IN{box}/a":       false,
		"docs://internal/{id}":   false,
		"docs://al{x}":           false,
		"{scheme}://a":           false,
		"docs://all/{x}":         true,
		"docs://public/{id}":     true,
		"docs://internals/{id}":  true,
		"docs://p{box}/{id}":     true,
		"docs://int?x={y}":       true,
		"pg://{host}:{port}/{x}": true,
		"pg://u@h:{port}":        true,
		"other://{id}":           true,
		"notes://{id}":           false,
	} {
		if got := g.TemplateVerdict("agents/reader", r, template).Decision.Allowed(); got != reader {
			t.Errorf("a reader may complete %s: %v", template, got)
		}
		if v := g.TemplateVerdict("agents/reader", r, template); !reader && v.Decision.Need().Verb() == "resource.read" && !strings.EqualFold(v.Decision.Need().Object(), template) {
			t.Errorf("the denial of %s is about %s", template, v.Decision.Need())
		}
		if v := g.TemplateVerdict("agents/some", r, template); v.Decision.Allowed() {
			t.Errorf("who may read some of what %s may become may complete it", template)
		}
		if v := g.TemplateVerdict("agents/keeper", r, template); v.Decision.Allowed() == strings.HasPrefix(template, "{") {
			t.Errorf("a keeper may not complete %s: %v", template, v)
		}
	}
}

// TestTemplateVerdictIsExact: no names stand for all of them where grants tell names apart.
func TestTemplateVerdictIsExact(t *testing.T) {
	r := served(t, "resources: { memo: memory.read }\n", capability.View{Cwd: "/w"})
	for names, want := range map[string]bool{
		"*": true, "**": true, "{*,x}": true, "[A-Za-z0-9_]*": false, "[A-Za-z]*": false, "{[A-Z],[a-z]}*": false, "[a-zA-Z][a-z+]*": false, "[A-Za-z]?*": false, "??*": false, "???*": false, "*[!-~]": false, "whatever*": false,
	} {
		g := gateOf(t, map[string]string{"some.md": record(
			fmt.Sprintf(`resource.read: { uris: ["docs://team/%s"] }`, names), fmt.Sprintf(`memory.read: { keys: ["team/%s"] }`, names), fmt.Sprintf(`fs.read: { in: /srv, paths: [%q, "%s/**"] }`, names, names),
		)})
		for _, template := range []string{"docs://team/{a}", "docs://team/{+a}", "docs://team/{a}/{b}", "memo://team/{a}", "file:///srv/{a}", "file:///srv/{+a}", "file:///srv/{a*}"} {
			if v := g.TemplateVerdict("agents/some", r, template); v.Decision.Allowed() != want {
				t.Errorf("%s is all of %s: %v", names, template, v.Decision)
			}
		}
	}
}

// TestTemplatesOfOtherVerbs: what a template may become is read as a page or a file, and the denial is
// about that, with what is held for it.
func TestTemplatesOfOtherVerbs(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["*"] }`, `net.get: { hosts: [a.com] }`, `fs.read: { paths: [docs] }`)})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for template, verb := range map[string]capability.Verb{
		"https://api.example.com/items{?page}": "net.get",
		"file:///logs/x{?lines}":               "fs.read",
		"{scheme}://x{?q,r}#@":                 "",
	} {
		v := g.TemplateVerdict("agents/some", r, template)
		if got := v.Decision.Need().Verb(); v.Decision.Allowed() || verb != "" && got != verb || strings.Contains(v.Decision.String(), "held for resource.read: net.get") {
			t.Errorf("%s: %s", template, v.Decision)
		}
	}
}

// What a star stands for is no query and no fragment, which many servers do not look at.
func TestResourceQuery(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\nresources:\n  notes: memory.read\n"))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{
		"some.md":  record(`resource.read: { uris: ["docs://*/public", "docs://*.md", "db://t\\?*", "db://u?x=1", "docs://in/*", "docs://team-*", "pg://u@h:1/*", "docs://*/q\\?v=*", "docs://on*?.md", "sftp://h/*.md", "names://*", "q1://s?of=me&*"] }`, `memory.read: { keys: ["*-public"] }`, `net.get: { hosts: ["a.com"] }`),
		"child.md": under("some", `resource.read: { uris: ["docs://secret?.md", "docs://secret#/public"] }`),
		"heir.md":  under("all", `resource.read: { uris: ["docs://secret?.md"] }`),
		"all.md":   record(`resource.read: { uris: ["*"] }`, `memory.read: { keys: ["*"] }`),
		"none.md":  record(`resource.read: { uris: ["docs://*.md"] }`, `resource.read: { uris: ["docs://secret?.md"], odd: [x] }`),
	})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	for uri, want := range map[string]bool{
		"docs://a/public":        true,
		"docs://a/public?x=1":    false,
		"docs://a.md#part":       false,
		"docs://secret#/public":  false,
		"docs://secret?/public":  false,
		"docs://secret?.md":      false,
		"docs://secret?x#.md":    false,
		"docs://one?.md":         false,
		"docs://team-a":          true,
		"docs://team-a/b@c":      false,
		"docs://team-a@secret":   false,
		"docs://team-@secret/x":  false,
		"pg://u@h:1/t/schema":    true,
		"docs://one?.md&a":       false,
		"docs://in/a/b?x#y":      true,
		"docs://a/q?v=1":         true,
		"docs://a/q#v=1":         false,
		"docs://a.md#b.md":       false,
		"docs://a/public?b.md":   false,
		"db://t?x=1":             true,
		"db://u?x=1":             true,
		"db://u?x=2":             false,
		"notes://a-public":       true,
		"notes://secret?-public": false,
		"https://a.com/x?y#z":    true,
		"docs://secret:.md":      false,
		"sftp://h/secret;.md":    false,
		"sftp://h/a;b/c.md":      false,
		"docs://secret:80.md":    false,
		"docs://[secret].md":     false,
		"docs://u@[secret]:.md":  false,
		"notes://secret:-public": false,
		"docs://team-a:80/x":     true,
		"docs://[::1]:80/a.md":   false,
		"docs://a/b:c.md":        false,
		"docs://secret://.md":    false,
		"docs://a/b://c/public":  false,
		"docs://in/a/b:c?x#y":    false,
		"docs://in/http://a/b":   false,
		"docs://in/../a":         false,
		"docs://in/x?/../../a":   false,
		"docs://in/x#/../a":      false,
		"docs://in/x?y=../a":     true,
		"names://Bob:Smith":      true,
		"names://h1:1,h2:2/a":    true,
		"docs://in//secret":      false,
		"docs://in/..docs:///s":  false,
		"docs://in/docs://in../": false,
		"docs://in?x=a%2fb":      false,
		"docs://in/a?x=a%2fb":    true,
		"docs://in/a%2fb":        true,
		"docs://in/%2fb":         false,
		"docs://in/a-%2fb":       false,
		"names://a//b":           true,
		"q1://s?of=me&x=y":       true,
		"q1://s?of=me&x=y&of=s":  false,
		"q1://s?of=me&x=y&%6ff":  false,
		"names://s?of=a&of=b":    true,
	} {
		if v := g.Resource("agents/some", r, uri); v.Decision.Allowed() != want {
			t.Errorf("some may read %s: %v, %s", uri, !want, v.Why)
		}
		if v := g.Resource("agents/child", r, uri); v.Decision.Allowed() {
			t.Errorf("a child may read %s", uri)
		}
		if v := g.Resource("agents/heir", r, uri); v.Decision.Allowed() != (uri == "docs://secret?.md") {
			t.Errorf("an heir may read %s: %v", uri, v.Decision.Allowed())
		}
		if v := g.Resource("agents/all", r, uri); !v.Decision.Allowed() && uri[:5] != "https" && v.Decision.Need().Opaque() == "" {
			t.Errorf("who may read all may not read %s: %v", uri, v)
		}
	}
	if v := g.Resource("agents/none", r, "docs://secret?.md"); v.Decision.Allowed() {
		t.Error("what is inert spells a resource out")
	}
}

// What an argument of a tool names is the same resource, and needs the same.
func TestResourceArgument(t *testing.T) {
	m, _, err := mapping.Parse("m.yml", []byte(`server: s
tools:
  open: { uri: resource.read }
  name: { name: resource.read }
  all: { uri: { verb: resource.read, default: "docs://all" } }
prompts:
  about: { uri: resource.read }
resources:
  docs://internal/*: memory.read
  docs://all: { requires: [memory.read] }
`))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOf(t, map[string]string{
		"some.md":   record(`resource.read: { uris: ["*://*/public", "db://u?x=1", "guide", "guide/*"] }`, "prompt.get: { names: [\"*\"] }"),
		"all.md":    record(`resource.read: { uris: ["*"] }`, "prompt.get: { names: [\"*\"] }"),
		"others.md": record(`resource.read: { uris: ["*"] }`, "prompt.get: { names: [\"*\"] }", "fs.read: { in: /w, paths: [a] }", "net.get: { hosts: [a.com] }", `memory.read: { keys: ["*"] }`),
	})
	r := &gate.Resources{Name: "s", Item: "s", Mapping: m, View: capability.View{Cwd: "/w"}}
	open := &gate.Tool{Name: "s.open", Mapping: m.Tool("open"), View: r.View}
	about := &gate.Tool{Name: "s.about", Mapping: m.Prompt("about"), View: r.View}
	for _, agent := range []string{"some", "all", "others"} {
		for uri, allowed := range map[string]string{
			"docs://a/public":           "some all others",
			"DOCS://a/public":           "some all others",
			"docs://secret?/public":     "others",
			"docs://secret#/public":     "all others",
			"db://u?x=1":                "some all others",
			"db://u?x=2&y=/public":      "all others",
			"docs://a/../public":        "",
			"docs://%7Bid}":             "",
			"docs://all":                "others",
			"docs://internal/public":    "others",
			"docs://internal/a/public":  "others",
			"file:///w/a":               "others",
			"FILE:///w/a":               "others",
			"file:///etc/passwd":        "",
			"file:etc/passwd":           "",
			" file:///etc/passwd":       "",
			"https://a.com/x":           "others",
			"https://b.com/x":           "",
			"http://169.254.169.254/":   "",
			"view-source:file:///etc/x": "",
			"view-source:notes":         "all others",
		} {
			want := strings.Contains(allowed, agent)
			if v := g.Resource("agents/"+agent, r, uri); v.Decision.Allowed() != want {
				t.Errorf("%s reads %s: %v", agent, uri, v)
			}
			given := args(t, `{"uri":"`+uri+`"}`)
			if v := g.Call("agents/"+agent, open, given); v.Decision.Allowed() != want {
				t.Errorf("a tool reads %s for %s: %v", uri, agent, v)
			}
			if v := g.Prompt("agents/"+agent, about, given); v.Decision.Allowed() != want {
				t.Errorf("a prompt reads %s for %s: %v", uri, agent, v)
			}
		}
	}
	whole := &gate.Tool{Name: "s.all", Mapping: m.Tool("all"), View: r.View}
	for agent, want := range map[string]bool{"all": false, "others": true} {
		if v := g.Call("agents/"+agent, whole, args(t, "{}")); v.Decision.Allowed() != want {
			t.Errorf("%s reads what a tool reads by itself: %v", agent, v)
		}
	}
	name := &gate.Tool{Name: "s.name", Mapping: m.Tool("name"), View: r.View}
	for text, want := range map[string]bool{"guide": true, "other": false, "guide/a": true, "guide/../a": false, "guide/%2e%2e/a": false, "guide/x?/../../a": false, "guide/x;y": false, "guide//a": false, "guide///a": false, "guide//a//b//c//d//e": false} {
		if v := g.Call("agents/some", name, args(t, `{"name":"`+text+`"}`)); v.Decision.Allowed() != want {
			t.Errorf("some reads what is called %s: %v", text, v)
		}
	}
}
