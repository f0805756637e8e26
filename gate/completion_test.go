package gate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/gate"
	"capgate/mapping"
)

// served is what a server has whose mapping says that of resources.
func served(t *testing.T, resources string, view capability.View) *gate.Resources {
	t.Helper()
	m, findings, err := mapping.Parse("m.yml", []byte("server: s\ntools: {}\n"+resources))
	if err != nil || len(findings) > 0 {
		t.Fatal(err, findings)
	}
	return &gate.Resources{Name: "s", Item: "s", Mapping: m, View: view}
}

// TestCompletion: a server is asked how a variable goes on only where what is given so far is some of what
// the agent may read.
func TestCompletion(t *testing.T) {
	g := gateOf(t, map[string]string{
		"some.md": record(`resource.read: { uris: ["docs://team/*"] }`, `fs.read: { in: /w, paths: [docs] }`),
		"all.md":  record(`resource.read: { uris: ["docs://*", "repo://*"] }`, `fs.read: { in: /, paths: [.] }`),
	})
	r := served(t, "", capability.View{Cwd: "/w"})
	for _, tt := range []struct {
		template, name, value string
		others                map[string]string
		some, all             bool
	}{
		{"docs://team/{path}", "path", "", nil, true, true},
		{"docs://team/{path}", "path", "pay", nil, true, true},
		{"docs://team/{path}", "path", "pay.", nil, true, true},
		{"docs://team/{path}", "path", "a/b", nil, true, true},
		{"docs://team/{path}", "path", "a/", nil, true, true},
		{"docs://team/{+path}", "path", "a/b/", nil, true, true},
		{"docs://team/{path*}", "path", "a", nil, true, true},
		{"docs://team/{*path}", "path", "a", nil, true, true},
		{"docs://team/{path:10}", "path", "a", nil, true, true},
		{"docs://team{/path}", "path", "a", nil, true, true},
		{"docs://team/{a}-{b}", "b", "x", map[string]string{"a": "y"}, true, true},
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": ""}, true, true},
		{"docs://team/{a,b}", "b", "x", map[string]string{"a": "y"}, true, true},
		{"docs://team/x{?q}", "q", "/a", nil, true, true},
		{"docs://team/x?q={q}", "q", "C:/a", nil, true, true},
		{"docs://{box}/{path}", "box", "te", nil, false, true},
		{"docs://{box}/{path}", "path", "a", map[string]string{"box": "team"}, false, true},
		{"docs://team/{a}/x", "a", "y", nil, true, true},
		{"docs://team/{a}/x", "a", "y/", nil, false, false},
		{"docs://team/{a}.md", "a", "y/z", nil, false, false},
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": "y/z"}, false, false},
		{"docs://team/{a*}/x", "a", "y/", nil, true, true},
		{"docs://team/x?q={a}&z={b}", "a", "y/z", nil, true, true},

		// It leads further up.
		{"docs://team/{path}", "path", "../priv/", nil, false, false},
		{"docs://team/{path}", "path", "../priv/x", nil, false, false},
		{"docs://team/{path}", "path", "..", nil, false, false},
		{"docs://team/{path}", "path", ".", nil, false, false},
		{"docs://team/{path}", "path", "a/..", nil, false, false},
		{"docs://team/{path}", "path", "a/../..", nil, false, false},
		{"docs://team/{path}", "path", "a/.../b", nil, false, false},
		{"docs://team/{path}", "path", "%2e%2e/priv", nil, false, false},
		{"docs://team/{path}", "path", "%2e%2e%2fpriv", nil, false, false},
		{"docs://team/{path}", "path", "..;/priv", nil, false, false},
		{"docs://team/{path}", "path", `..\priv`, nil, false, false},
		{"docs://team/{path}", "path", "..\x00/priv", nil, false, false},
		{"docs://team/{path}", "path", "..\n/priv", nil, false, false},
		{"docs://team/{+path}", "path", "../priv/", nil, false, false},
		{"docs://team/{path*}", "path", "../priv/", nil, false, false},
		{"docs://team{/path}", "path", "../priv/", nil, false, false},
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": "../priv"}, false, false},
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": ".."}, false, false},
		{"docs://team/{a}/{b}", "a", "x", map[string]string{"b": "../../priv"}, false, false},
		{"docs://team/{a,b}", "b", "x", map[string]string{"a": "../priv"}, false, false},

		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": "u:1"}, false, true},

		// It begins anew.
		{"docs://team/{path}", "path", "/", nil, false, false},
		{"docs://team/{path}", "path", "/root/.", nil, false, false},
		{"docs://team/{path}", "path", "//host/share", nil, false, false},
		{"docs://team/{path}", "path", "~root/", nil, false, false},
		{"docs://team/{path}", "path", "%7eroot/", nil, false, false},
		{"docs://team/{path}", "path", "%2fetc/", nil, false, false},
		{"docs://team/{path}", "path", "C:a", nil, false, true},
		{"docs://team/{path}", "path", "C:/a", nil, false, false},
		{"docs://team/{path}", "path", "file:///etc/", nil, false, false},
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": "/etc"}, false, false},

		// It is a variable that the template has not.
		{"docs://team/{path}", "root", "x", nil, false, false},
		{"docs://team/{path}", "", "x", nil, false, false},
		{"docs://team/{path}", "path", "x", map[string]string{"root": "/etc"}, false, false},
		{"docs://team/{}", "", "x", nil, false, false},
		{"docs://team/all", "path", "x", nil, false, false},

		// It has what is escaped in a URI, or is taken for something else at first sight.
		{"docs://team/{path}", "path", "My note", nil, true, true},
		{"file:///w/docs/{path}", "path", "my fi", nil, false, false},
		{"file:///w/docs/{path}", "path", "My-notes.1/a_b-c.md", nil, true, true},
		{"file:///w/docs/{path}", "path", "übersicht/日本語", nil, false, false},
		{"file:///w/docs/{path}", "path", ".env", nil, true, true},
		{"file:///w/docs/{path}", "path", "é", nil, false, false},
		{"repo://keys/{key}", "key", "u:1", nil, false, true},

		// It is given twice.
		{"docs://team/{path}", "path", "x", map[string]string{"path": "y"}, false, false},
		{"docs://team/{path}", "path", "x", map[string]string{"path": "x"}, false, false},
		{"docs://team/{path}", "path", "x", map[string]string{"root": ""}, false, false},

		// A file is read by its path, wherever that leads.
		{"file:///w/docs/{path}", "path", "a/", nil, true, true},
		{"file:///w/docs/{path}", "path", "../secret/", nil, false, false},
		{"file:///w/docs/{path}", "path", "..", nil, false, false},
		{"file:///w/docs/{path}", "path", "../docs/a", nil, false, false},
		{"file:///w/docs/{path}", "path", "/etc/pass", nil, false, false},
		{"file:///{+path}", "path", "etc/pass", nil, false, true},
		{"file:///{+path}", "path", "w/docs/", nil, false, true},
		{"file:///{+path}", "path", "/etc/pass", nil, false, false},
	} {
		for agent, want := range map[string]bool{"agents/some": tt.some, "agents/all": tt.all} {
			v := g.Completion(agent, r, gate.Completing{Template: tt.template, Name: tt.name, Value: tt.value, Others: tt.others})
			if v.Decision.Allowed() != want {
				t.Errorf("%s completes %s of %s with %q beside %q: %v %s", agent, tt.name, tt.template, tt.value, tt.others, v.Decision, v.Why)
			}
		}
	}
}

// TestCompletionOfTooMuch: what would take long to look at is not looked at.
func TestCompletionOfTooMuch(t *testing.T) {
	g := gateOf(t, map[string]string{"all.md": record(`resource.read: { uris: ["*"] }`, `fs.read: { in: /, paths: [.] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for value, why := range map[string]string{
		strings.Repeat("a/", 64):     "",
		strings.Repeat("a/", 65):     "64 folders",
		strings.Repeat("a", 250):     "",
		strings.Repeat("a", 9000):    "longer than",
		strings.Repeat("a/", 4<<20):  "longer than",
		strings.Repeat(" %", 16<<20): "longer than",
	} {
		for _, others := range []map[string]string{nil, {"q": strings.Repeat("a", 9000)}} {
			for _, template := range []string{"docs://team/{p}", "file:///w/{p}"} {
				v := g.Completion("agents/all", r, gate.Completing{Template: template, Name: "p", Value: value, Others: others})
				if others != nil {
					why = "longer than"
				}
				if v.Decision.Allowed() != (why == "") || !strings.Contains(v.Why, why) {
					t.Errorf("%d bytes of %s beside %d: %v %s", len(value), template, len(others), v.Decision.Allowed(), v.Why)
				}
			}
		}
	}
}

// TestCompletionOfOneLevel: what is in a folder is told to nobody who may read the folder's files only.
func TestCompletionOfOneLevel(t *testing.T) {
	g := gateOf(t, map[string]string{"flat.md": record(`fs.read: { in: /srv, paths: ["*", "sub/x*", "in/*"] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for value, want := range map[string]bool{
		"": true, "s": false, "s/": false, "s/x": false, "..": false, "sub/": false, "sub/x": false, "in/": true, "in/x": false,
	} {
		v := g.Completion("agents/flat", r, gate.Completing{Template: "file:///srv/{name}", Name: "name", Value: value})
		if v.Decision.Allowed() != want {
			t.Errorf("it completes %q: %v", value, v.Decision)
		}
	}
}

// TestCompletionOfNothing: what is not given is nothing to some servers, and some name to others.
func TestCompletionOfNothing(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://team/*/pub/*", "docs://box/*/*", "docs:///*/*"] }`), "all.md": record(`resource.read: { uris: ["docs://*"] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for _, c := range []gate.Completing{
		{Template: "docs://team/{a}/pub/{b}", Name: "b", Value: "x"},
		{Template: "docs://team/{a}/pub/{b}", Name: "b", Value: "x", Others: map[string]string{"a": ""}},
		{Template: "docs://team/{a}/pub/{b}", Name: "b", Others: map[string]string{"a": ""}},
		{Template: "docs://team/{a}/pub/{b}", Name: "a", Value: "x"},
		{Template: "docs://box/{a}/{b}", Name: "b", Value: "x"},
		{Template: "docs://box/{a}/{b}", Name: "a", Value: "x"},
		{Template: "docs:///{a}/{b}", Name: "b", Value: "x"},
	} {
		if v := g.Completion("agents/some", r, c); v.Decision.Allowed() {
			t.Errorf("%+v is completed", c)
		}
		if v := g.Completion("agents/all", r, c); !v.Decision.Allowed() {
			t.Errorf("%+v is not completed: %v", c, v.Decision)
		}
		if c.Name == "b" {
			c.Others = map[string]string{"a": "y"}
			if v := g.Completion("agents/some", r, c); !v.Decision.Allowed() {
				t.Errorf("%+v is not completed: %v", c, v.Decision)
			}
		}
	}
}

// TestCompletionIsAbout: whoever looks at the event reads what was asked for.
func TestCompletionIsAbout(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://team/*"] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for value, want := range map[string]string{
		"pay":  "docs://team/pay",
		"":     "docs://team/",
		"a/":   "docs://team/a/",
		"/etc": "docs://team//etc",
	} {
		v := g.Completion("agents/some", r, gate.Completing{Template: "docs://team/{path}", Name: "path", Value: value})
		if need := v.Decision.Need(); need == nil || need.Object() != want || !v.Decision.Allowed() && v.Argument != "path" {
			t.Errorf("of %q it is about %v, and the argument %q", value, need, v.Argument)
		}
	}
	v := g.Completion("agents/some", r, gate.Completing{Template: "docs://team/{a}/{b}", Name: "b", Value: "x", Others: map[string]string{"a": "y"}})
	if got := v.Decision.Need().Object(); got != "docs://team/y/x" {
		t.Errorf("beside another one it is about %s", got)
	}
}

// TestCompletionBesideTheFence: what lies behind the fence is not told, and all else in the folder is.
func TestCompletionBesideTheFence(t *testing.T) {
	g := gateOf(t, map[string]string{"all.md": record(`fs.read: { in: /w, paths: [.] }`)})
	g.Fence = capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"})
	r := served(t, "", capability.View{Cwd: "/w"})
	for value, want := range map[string]bool{"": true, "src": true, "src/": true, "ag": true, "agents": false, "agents/": false, "agents/x": false} {
		for _, template := range []string{"file:///w/{p}", "file:///w/{+p}"} {
			c := gate.Completing{Template: template, Name: "p", Value: value}
			if v := g.Completion("agents/all", r, c); v.Decision.Allowed() != want {
				t.Errorf("%s with %q: %v", template, value, v.Decision)
			}
		}
	}
	g.Fence = capability.NewFence(capability.Root{Dir: "/w/agents", Real: "/w/agents"}, capability.Root{Dir: "/w/cfg/pins", Real: "/w/cfg/pins"})
	for _, tt := range []struct {
		value        string
		told, untold []string
	}{
		{"", []string{"src", "src/x"}, []string{"agents/scout.md", "agents"}},
		{"cfg", []string{"cfg", "cfg/x", "x"}, []string{"pins", "cfg/pins"}}, // as of a server that lists a folder that is named
		{"cfg/", []string{"x", "cfg/x"}, []string{"pins", "cfg/pins"}},
		{"cfg/pi/", []string{"x", "cfg/pi/x", "pia"}, []string{"pins", "cfg/pins", "cfg/pi/pins"}}, // and of one to which it is cfg/pi
	} {
		may := g.Completes("agents/all", r, gate.Completing{Template: "file:///w/{+p}", Name: "p", Value: tt.value})
		tellings(t, may, "file:///w/{+p} with "+tt.value, tt.told, tt.untold)
	}
}

// TestCompletionBesideTheFolder: a server that leaves the last slash out of account, as most that join paths, tells what
// stands beside the folder that it should look in. Who may not read that hears nothing of it.
func TestCompletionBesideTheFolder(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(`fs.read: { in: /w/docs, paths: [.] }`), "all.md": record(`fs.read: { in: /w, paths: [.] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for _, template := range []string{"file:///w/docs/{p}", "file:///w/docs/{+p}"} {
		c := gate.Completing{Template: template, Name: "p"}
		for text, want := range map[string]bool{"docs-private": false, "docs": true, "Docs2": false, "doc": true, "x-docs": true} {
			if g.Completes("agents/some", r, c)(text) != want || !g.Completes("agents/all", r, c)(text) {
				t.Errorf("of %s %s is told: %v, and to who may read all", template, text, !want)
			}
		}
	}
}

// TestCompletesBesideFolders: however the folder is written that a server looks beside, and wherever links lead.
func TestCompletesBesideFolders(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"docs", "docs/sub", "real", "real-private"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"docs/rl": "../real", "link": "real"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	g := gateOf(t, map[string]string{"some.md": record(
		`resource.read: { uris: ["docs://team/*", "docs://team?path=docs/*", "docs://all?path=/*", "docs:team/*", "docs://Übung/*", "docs://%C3%A9b/*"] }`, `fs.read: { in: `+dir+`, paths: [docs, real, link, Übung] }`,
	)})
	r := served(t, "", capability.View{Cwd: dir, FS: hostfs.FS{}})
	for _, tt := range []struct {
		template, name, value string
		others                map[string]string
		told, untold          []string
	}{
		{"docs://Übung/{a}", "a", "", nil, []string{"x"}, []string{"Übung-privat", "übung-privat"}},
		{"docs://%C3%A9b/{a}", "a", "", nil, []string{"x"}, []string{"éb-x", "ÉB-x"}},
		{"docs://team/{a}/{b}", "b", "", nil, []string{"x"}, []string{"team-private"}},
		{"docs://team/{a}/{b}", "b", "", map[string]string{"a": ""}, []string{"x"}, []string{"team-private"}},
		{"docs://team/{a}/{b}", "b", "", map[string]string{"a": "y"}, []string{"x", "team-private", "yz"}, nil},
		{"docs://team{/a}{/b}", "b", "", nil, []string{"x"}, []string{"team-private"}},
		{"docs:team/{a}", "a", "", nil, []string{"x"}, []string{"team-private"}},
		{"docs://team/{.a}", "a", "", nil, []string{"x"}, []string{"team-private"}},
		{"docs://team/{?a}", "a", "", nil, []string{"x", "team-private"}, nil},
		{"docs://team?path=docs/{a}", "a", "", nil, []string{"x"}, []string{"docs-old"}},
		{"docs://all?path=/{a}", "a", "", nil, []string{"x"}, nil},
		{"docs://team/{a}", "a", "?", nil, nil, []string{"team-private"}},
		{"docs://team/{a}", "a", "()", nil, nil, []string{"team-private"}},
		{"docs://team/{a}", "a", "t", nil, []string{"team-private"}, nil},
		{"file://" + dir + "/docs//{p}", "p", "", nil, []string{"x"}, []string{"docs-private"}},
		{"file://" + dir + "/docs/./{p}", "p", "", nil, []string{"x"}, []string{"docs-private"}},
		{"file://" + dir + "/Übung/{p}", "p", "", nil, []string{"x"}, []string{"Übung-privat"}},
		{"file://" + dir + "/docs/{p}", "p", "rl", nil, []string{"rl", "x"}, []string{"real-private"}},
		{"file://" + dir + "/docs/{p}", "p", "rl/", nil, []string{"rl/x", "x"}, []string{"real-private", "rl/real-private"}},
		{"file://" + dir + "/link/{p}", "p", "", nil, []string{"x"}, []string{"real-private"}},
		{"file://" + dir + "/docs/{p}", "p", "sub", nil, []string{"sub", "real-private"}, nil},
	} {
		may := g.Completes("agents/some", r, gate.Completing{Template: tt.template, Name: tt.name, Value: tt.value, Others: tt.others})
		tellings(t, may, tt.template+" with "+tt.value, tt.told, tt.untold)
	}
}

// TestCompletionBeforeAnExtension: a name that ends in a dot, as nothing is given for what comes behind it, is that name.
func TestCompletionBeforeAnExtension(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://team/*"] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for template, want := range map[string]bool{
		"docs://team/{p}.{ext}": true, "docs://team/{p}{.ext}": true, "docs://team/{p}..{q}": true, "docs://team/{p}.{ext}/raw": true, "docs://team/{p}{?q}": true,
		"docs://{ext}.team/{p}": false, "docs://team{/ext}_{+p}": false,
	} {
		if v := g.Completion("agents/some", r, gate.Completing{Template: template, Name: "p", Value: "x"}); v.Decision.Allowed() != want {
			t.Errorf("%s is completed: %v", template, v.Decision)
		}
	}
}

// TestCompletionNames: a denial names the variable that it is about, and what is recorded the verb that reads.
func TestCompletionNames(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(`resource.read: { uris: ["docs://*"] }`, `fs.read: { in: /w, paths: [docs] }`, `fs.read: { in: /srv, paths: ["*"] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	for _, tt := range []struct {
		template, name, value string
		others                map[string]string
		argument              string
		verb                  capability.Verb
	}{
		{"docs://team/{a}/{b}", "b", "x", map[string]string{"a": "/etc"}, "a", "resource.read"},
		{"docs://team/{a}", "a", "../x", nil, "a", "resource.read"},
		{"file:///w/docs/{a}", "a", "../x", nil, "a", "fs.read"},
		{"file:///srv/{a}", "a", "x/", nil, "a", "fs.read"},
		{"file:///srv/{a}", "a", "", nil, "", "fs.read"},
		{"docs://team/{a}", "a", "c:x", nil, "", "resource.read"},
		{"file:///w/docs/{a}", "a", "FILE:/etc", nil, "a", "fs.read"},
		{"file:///w/docs/{a}", "a", "c:x", nil, "a", "fs.read"},
		{"file:///w/docs/{a}", "a", "C:x", nil, "a", "fs.read"},
		{"docs://{+a}", "a", "/x", nil, "", "resource.read"},
	} {
		v := g.Completion("agents/some", r, gate.Completing{Template: tt.template, Name: tt.name, Value: tt.value, Others: tt.others})
		need := v.Decision.Need()
		if v.Decision.Allowed() != (tt.argument == "") || v.Argument != tt.argument || need == nil || need.Verb() != tt.verb {
			t.Errorf("%s of %s with %q: it is about %v and %q, %v", tt.name, tt.template, tt.value, need, v.Argument, v.Decision)
		}
	}
}

// tellings looks at what a variable may be told to go on to be, and what not.
func tellings(t *testing.T, may func(text string) bool, of string, told, untold []string) {
	t.Helper()
	for _, text := range told {
		if !may(text) {
			t.Errorf("of %s it is not told that it may be %q", of, text)
		}
	}
	for _, text := range untold {
		if may(text) {
			t.Errorf("of %s it is told that it may be %q", of, text)
		}
	}
}

// TestCompletes: a variable goes on to be what may be read, however a server says it.
func TestCompletes(t *testing.T) {
	g := gateOf(t, map[string]string{"some.md": record(
		`resource.read: { uris: ["docs://team/[A-Za-z0-9_]*", "docs://box/*/*", "docs:///*/*", "user://*"] }`,
		`fs.read: { in: /w, paths: ["[a-z]*", "[a-z]*/[a-x]*", "sub/**"] }`, `memory.read: { keys: ["team/[a-z]*"] }`,
	)})
	r := served(t, "resources: { memo: memory.read }\n", capability.View{Cwd: "/w"})
	for _, tt := range []struct {
		template, value string
		others          map[string]string
		told, untold    []string
	}{
		{"docs://team/{a}", "", nil, []string{"x", "x y", "0", "x/.y"}, []string{".env", "é", "日", "", "-", "../priv/x", "x/../../priv", "/x", "a:b"}},
		{"docs://team/{a}", "ab", nil, []string{"abc", "cd"}, []string{".abc"}},
		{"docs://team/{a}", "ab/", nil, []string{"ab/c", "c"}, []string{".c", ".c/d/../../../x"}},
		{"docs://team/{a}", ".x/", nil, nil, []string{".x/a", "a"}},
		{"docs://box/{a}/{b}", "", nil, nil, []string{"x"}},
		{"docs://box/{a}/{b}", "", map[string]string{"a": "y"}, []string{"x"}, []string{"../../box"}},
		{"docs:///{a}/{b}", "", map[string]string{"a": ""}, nil, []string{"x"}},
		{"docs:///{a}/{b}", "", map[string]string{"a": "y"}, []string{"x"}, nil},
		{"file:///w/{+a}", "", nil, []string{"x", "x/b", "sub/z/y"}, []string{".x", "x/z", "../x", "/etc/x", "X"}},
		{"file:///w/{+a}", "x/", nil, []string{"x/b", "b"}, []string{"x/z", "z"}},
		{"memo://team/{a}", "", nil, []string{"x"}, []string{".x", "X"}},
		{"user://{a}/profile", "", nil, []string{"17"}, []string{"17/secrets", `17\secrets`, "17%2fsecrets"}},
		{"user://{+a}/profile", "", nil, []string{"17/b"}, nil},
		{"docs://team/{a}", "", nil, []string{"tea", "x-team"}, []string{"team", "team-private", "TEAM2"}},
		{"docs://team/{a}", "ab/", nil, []string{"ab/abc", "abc"}, nil},
		{"docs://team/{a}", "Ab/", nil, []string{"c"}, nil},
		{"docs://team{/a}", "", nil, []string{"x"}, []string{"team-private"}},
		{"docs://box/{a}/{b}", "", map[string]string{"a": "y"}, []string{"zy"}, []string{"yz"}},
		{"docs:///{a}/{b}", "", map[string]string{"a": "y"}, []string{"zy"}, []string{"y"}},
		{"docs://team/{a}", "", nil, []string{"c"}, []string{"c#", "c?x", "c%"}},
		{"user://x-{a}.md", "", nil, []string{"17"}, []string{"17/secrets"}},
		{"user://x-{a}{?q}", "", nil, []string{"17", "17/b"}, nil},
		{"user://{a}{/b}/profile", "", nil, []string{"17"}, []string{"17/secrets"}},
		{"user://{a}{.e}", "", nil, []string{"17"}, []string{"17/secrets"}},
	} {
		name := "a"
		if strings.HasSuffix(tt.template, "/{b}") {
			name = "b"
		}
		may := g.Completes("agents/some", r, gate.Completing{Template: tt.template, Name: name, Value: tt.value, Others: tt.others})
		tellings(t, may, tt.template+" with "+tt.value, tt.told, tt.untold)
	}
}

// TestCompletionOfManyVariables: a template that has many, or is written so that it seems to, is not looked at for long.
func TestCompletionOfManyVariables(t *testing.T) {
	g := gateOf(t, map[string]string{"all.md": record(`resource.read: { uris: ["*"] }`)})
	r := served(t, "", capability.View{Cwd: "/w"})
	var names []string
	others := map[string]string{}
	for i := range 32 {
		names = append(names, fmt.Sprintf("v%d", i))
		others[names[i]] = "x"
	}
	for template, want := range map[string]bool{
		"docs://team/" + strings.Repeat("{,", 1200) + "}{p," + strings.Join(names, ",") + "}": false,
		"docs://team/{p," + strings.Join(names, ",") + "}":                                    true,
		"docs://team/{{p}}/{" + strings.Join(names, ",") + "}":                                false,
		"docs://team/{" + strings.Join(names, ",") + "}/{p":                                   false,
	} {
		begun := time.Now()
		v := g.Completion("agents/all", r, gate.Completing{Template: template, Name: "p", Value: "x", Others: others})
		if v.Decision.Allowed() != want || time.Since(begun) > time.Second {
			t.Errorf("%.60s: %v after %v", template, v.Decision, time.Since(begun))
		}
	}
	others["one"] = "x"
	long := strings.Repeat(":{a}", 200_000)
	begun := time.Now()
	if v := g.Completion("agents/all", r, gate.Completing{Template: "docs://team" + long, Name: "a", Value: "x"}); v.Decision.Allowed() || !strings.Contains(v.Why, "the template is longer") || g.Template("agents/all", r, "docs://team"+long) || time.Since(begun) > time.Second {
		t.Errorf("of a long one: %v %s after %v", v.Decision, v.Why, time.Since(begun))
	}
	if v := g.Completion("agents/all", r, gate.Completing{Template: "docs://team/{p,one," + strings.Join(names, ",") + "}", Name: "p", Value: "x", Others: others}); v.Decision.Allowed() || !strings.Contains(v.Why, "32 variables") {
		t.Errorf("beside 33 others: %v %s", v.Decision, v.Why)
	}
}
