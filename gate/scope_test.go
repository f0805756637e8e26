package gate_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
)

// text writes a scope as the tests compare it.
func text(s gate.Scope) string {
	var text string
	for _, g := range s.Whole {
		text += " " + g.String()
	}
	for _, g := range s.Part {
		text += " part of " + g.String()
	}
	if s.Nothing() {
		text += " no " + string(s.Verb)
	}
	return text
}

func said(scopes []gate.Scope) string {
	var parts []string
	for _, s := range scopes {
		parts = append(parts, strings.Join(s.Arguments, "+")+":"+s.Text)
	}
	return strings.Join(parts, "; ")
}

// TestScopes: of each argument it is said what the agent may name in it, at most; of
// those above it, no more than that they leave a part.
func TestScopes(t *testing.T) {
	g := gateOf(t, map[string]string{
		"lead.md":   record("fs.read: { in: /w/docs }", "fs.write: { in: / }", "net.get: { hosts: [a.com] }", `tool.invoke: { tools: ["*"] }`),
		"scout.md":  under("lead", "fs.read: { in: /w }", "fs.read: { in: /v }", "fs.write: { in: /w, paths: [out] }", "net.get: { hosts: [b.com] }", "net.post: { hosts: [a.com] }"),
		"free.md":   record("fs.read: { in: / }", "fs.delete: { in: /w }", "fs.write: { in: /w }"),
		"narrow.md": record("fs.read: { in: /w, paths: [docs] }"),
		"caller.md": record("tool.invoke: { tools: [files.note], args: { text: [a], to: [b] } }", "tool.invoke: { tools: [files.note], args: { text: [c] } }", "tool.invoke: { tools: [other.*] }"),
		"bare.md":   record("tool.invoke: { tools: [files.note], args: { text: [a] } }", `tool.invoke: { tools: ["files.*"] }`),
		"rye.md":    record("rye.execute.tool.files.*", "tool.invoke: { tools: [files.note], args: { text: [a] } }"),
		"keeper.md": record("tool.invoke: { tools: [files.send] }", "secret.use: { names: [a] }"),
		"broken.md": "---\nclass: agent\ncapabilites: []\n---\n",
	})
	m, _, err := mapping.Parse("files.yml", []byte(`server: files
tools:
  read: { path: fs.read }
  move: { from: [fs.read, fs.delete], to: fs.write }
  note: { text: free }
  fetch: { url: { verb: net, method: verb } }
  copy: { path: fs.read, backup: { verb: fs.write, optional: true } }
  send: { text: secret }
  ask: { requires: [ { net.get: a.com } ], q: free }
  run: { command: proc.exec, env: { env: proc.exec } }
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ agent, tool, declared, want string }{
		{"narrow", "read", "", "path: fs.read{in=/w,paths=[docs]}"},
		{"narrow", "read", "fs.read{in=/w}", "path: fs.read{in=/w,paths=[docs]}"},
		{"narrow", "read", "fs.read{in=/w/docs/a}", "path: part of fs.read{in=/w,paths=[docs]}"},
		{"narrow", "read", "fs.read{in=/v}", "path: no fs.read"},
		{"narrow", "copy", "", "path: fs.read{in=/w,paths=[docs]}; backup: no fs.write"},
		{"free", "read", "", ""},
		{"free", "move", "", "from: fs.delete{in=/w}; to: fs.write{in=/w}"},
		{"free", "read", "fs.read{in=/w}", "path: part of fs.read{in=/}"},
		{"free", "ask", "", ""},
		{"free", "send", "", ""},
		{"keeper", "send", "", ""},
		{"keeper", "send", "secret.use{names=[a]}", "text: secret.use{names=[a]}"},
		{"keeper", "send", "secret.use{names=[b]}", ""},
		{"scout", "read", "", "path: part of fs.read{in=/w}"},
		{"scout", "copy", "", "path: part of fs.read{in=/w}; backup: fs.write{in=/w,paths=[out]}"},
		{"scout", "fetch", "", "url: no net.get"},
		{"caller", "note", "", "text+to: tool.invoke{tools=[files.note],args={text=[a],to=[b]}} tool.invoke{tools=[files.note],args={text=[c]}}"},
		{"caller", "unmapped", "", ""},
		{"bare", "note", "", ""},
		{"rye", "note", "", ""},
		{"broken", "read", "", ""},
		{"nobody", "read", "", ""},
	} {
		one := &gate.Tool{Name: "files." + c.tool, Mapping: m.Tool(c.tool), View: capability.View{Cwd: "/w"}}
		if c.declared != "" {
			one.Declared = tool(t, "read", c.declared).Declared
		}
		s := g.Survey("agents/"+c.agent, text)
		for _, again := range []bool{false, true} {
			if got := said(s.Scopes(one)); got != c.want {
				t.Errorf("%s %s %s, again %v: got %s, want %s", c.agent, c.tool, c.declared, again, got, c.want)
			}
		}
	}
}

func record(grants ...string) string {
	return "---\nclass: agent\ncapabilities:\n  - " + strings.Join(grants, "\n  - ") + "\n---\n"
}

func under(parent string, grants ...string) string {
	return strings.Replace(record(grants...), "class: agent\n", "class: agent\nparent: "+parent+"\n", 1)
}

// TestScopesPromise: whatever is allowed is within what is said, and what is said to be
// whole is allowed, under random records, parents and declarations.
func TestScopesPromise(t *testing.T) {
	grants := map[capability.Verb][]string{
		"fs.read": {"fs.read{in=/w}", "fs.read{in=/w,paths=[a]}", "fs.read{in=/w,paths=[*.go]}", "fs.read{in=/w/a}", "fs.read{in=/w/a,paths=[**/b]}", "fs.read{in=/v}", "fs.read{in=/}"},
		"net.get": {"net.get{hosts=[*]}", "net.get{hosts=[*.a.com]}", "net.get{hosts=[x.a.com]}", "net.get{hosts=[b.com:443]}", "net.get{hosts=[10.0.0.0/8]}"},
	}
	values := map[capability.Verb][]string{
		"fs.read": {"/w", "/w/a", "/w/a/b", "/w/x.go", "/w/a/x.go", "/v", "/v/b", "/etc"},
		"net.get": {"https://a.com/", "https://x.a.com/", "https://y.a.com:444/", "https://b.com/", "http://b.com/", "https://10.1.1.1/"},
	}
	m, _, err := mapping.Parse("t.yml", []byte("server: t\ntools:\n  fs.read: { x: fs.read }\n  net.get: { x: net.get }\n"))
	if err != nil {
		t.Fatal(err)
	}
	some := func(r *rand.Rand, from []string) []string {
		var all []string
		for range 1 + r.IntN(3) {
			all = append(all, from[r.IntN(len(from))])
		}
		return all
	}
	allowed, promised := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		for verb, from := range grants {
			quoted := func(all []string) string { return record(`"` + strings.Join(all, "\"\n  - \"") + `"`) }
			lead, own := quoted(some(r, from)), quoted(some(r, from))
			g := gateOf(t, map[string]string{"lead.md": lead, "scout.md": strings.Replace(own, "class: agent\n", "class: agent\nparent: lead\n", 1)})
			one := &gate.Tool{Name: "t.x", Mapping: m.Tool(string(verb)), View: capability.View{Cwd: "/w"}}
			if r.IntN(2) == 0 {
				one.Declared = tool(t, "read", some(r, from)...).Declared
			}
			scopes := g.Survey("agents/scout", text).Scopes(one)
			for _, value := range values[verb] {
				v := g.Call("agents/scout", one, args(t, fmt.Sprintf(`{"x":%q}`, value)))
				may := v.Decision.Allowed()
				if len(scopes) == 0 {
					continue // nothing is said
				}
				whole := holds(t, scopes[0].Whole, v)
				switch {
				case may:
					allowed++
					if !whole && !holds(t, scopes[0].Part, v) {
						t.Errorf("seed %d: %s is allowed, and not within %s", seed, value, said(scopes))
					}
				case whole:
					t.Errorf("seed %d: %s is denied, and within the whole of %s", seed, value, said(scopes))
				}
				if whole {
					promised++
				}
			}
		}
	}
	if allowed < 50 || promised < 50 {
		t.Errorf("%d values were allowed, %d promised: the test says too little", allowed, promised)
	}
}

// holds reports whether one of some grants covers what a call needs.
func holds(t *testing.T, grants []*capability.Grant, v gate.Verdict) bool {
	t.Helper()
	for _, g := range grants {
		set, _ := capability.Compile([]capability.Spec{g.Spec()}, capability.Options{})
		if len(v.Needs) == 1 && set.Decide(v.Needs[0].Requirement).Allowed() {
			return true
		}
	}
	return false
}
