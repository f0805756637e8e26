package mapping_test

import (
	"testing"

	"capgate/capability"
	"capgate/mapping"
)

// TestPossible: what a list shows, by the call that shows it; "hidden" is none, "?"
// one of which nothing more is known.
func TestPossible(t *testing.T) {
	for _, tt := range []struct {
		name, tool string
		grants     []string
		want       string
	}{
		{"one role", `{path: fs.read}`, []string{"fs.read{in=/w,paths=[a]}"}, `{"path":"/w/a"}`},
		{"no grant", `{path: fs.read}`, []string{"fs.write{in=/w}"}, "hidden"},
		{"two roles on one argument", `{path: [fs.read, fs.delete]}`, []string{"fs.read{in=/w,paths=[\"a*\"]}", "fs.delete{in=/w,paths=[\"*b\"]}"}, `{"path":"/w/ab"}`},
		{"two roles apart", `{path: [fs.read, fs.delete]}`, []string{"fs.read{in=/w,paths=[a]}", "fs.delete{in=/w,paths=[b]}"}, "hidden"},
		{"tree", `{path: {verb: fs.read, tree: true}}`, []string{"fs.read{in=/w,paths=[\"*.go\"]}"}, "hidden"},
		{"nested array", `{"edits[*].file.path": fs.write}`, []string{"fs.write{in=/w,paths=[a]}"}, `{"edits":[{"file":{"path":"/w/a"}}]}`},
		{"default that is denied, and another value", `{path: {verb: fs.read, default: b}}`, []string{"fs.read{in=/w,paths=[a]}"}, `{"path":"/w/a"}`},
		{"optional", `{path: {verb: fs.read, optional: true}, url: net.get}`, []string{"net.get{hosts=[a.com]}"}, `{"url":"https://a.com/"}`},
		{"nothing but optional", `{path: {verb: fs.read, optional: true}}`, []string{"fs.read{in=/w,paths=[a]}"}, `{"path":"/w/a"}`},
		{"nothing but optional, by name", `{path: {verb: fs.read, optional: true}}`, []string{"tool.invoke{tools=[s.t]}"}, `{}`},
		{"method", `{url: {verb: net, method: m}}`, []string{"net.put{hosts=[a.com]}"}, `{"url":"https://a.com/","m":"PUT"}`},
		{"method that is a key", `{url: {verb: net, method: m}, m: memory.read}`, []string{"net.put{hosts=[a.com]}", "memory.read{keys=[PUT]}"}, `{"url":"https://a.com/","m":"PUT"}`},
		{"method that is another key", `{url: {verb: net, method: m}, m: memory.read}`, []string{"net.put{hosts=[a.com]}", "memory.read{keys=[GET]}"}, "hidden"},
		{"fixed", `{requires: [{net.get: a.com}], q: free}`, []string{"net.get{hosts=[\"*.com\"]}"}, `{}`},
		{"fixed elsewhere", `{requires: [{net.get: a.com}], q: free}`, []string{"net.get{hosts=[b.com]}"}, "hidden"},
		{"class and path together", `{class: {verb: records.update, dim: class, optional: true}, path: {verb: records.update, dim: path}}`, []string{"records.update{classes=[note],paths=[\"a/*\"]}"}, `{"class":"note","path":"a/x"}`},
		{"program in one place", `{command: proc.exec, cwd: {in: proc.exec}}`, []string{"proc.exec{in=/x,cmds=[ls]}"}, `{"command":["ls","x"],"cwd":"/x"}`},
		{"program in parts", `{bin: {argv0: proc.exec}, args: {argv: proc.exec}}`, []string{"proc.exec{in=/w,patterns=[git status]}"}, `{"bin":"git","args":["status"]}`},
		{"program that is elsewhere", `{command: proc.exec}`, []string{"proc.exec{in=/x,cmds=[ls]}"}, "hidden"},
		{"shell line", `{line: proc.eval}`, []string{"proc.eval{in=/w}"}, `{"line":"x"}`},
		{"by name", `{q: free}`, []string{"tool.invoke{tools=[\"s.*\"],args={q=[k]}}"}, `{"q":"k"}`},
		{"by name inside what is free", `{q: free}`, []string{"tool.invoke{tools=[\"s.*\"],args={q.r=[k],q=[j]}}"}, "?"},
		{"by name further inside what is free", `{q: free}`, []string{"tool.invoke{tools=[\"s.*\"],args={q.r.s=[k],q.t=[true]}}"}, `{"q":{"t":true,"r":{"s":"k"}}}`},
		{"by name, with a dot", `{"a\\.b": free}`, []string{`tool.invoke{tools=["s.*"],args={a\.b=[k]}}`}, `{"a.b":"k"}`},
		{"by name, with an argument it lacks", `{q: free}`, []string{"tool.invoke{tools=[\"s.*\"],args={r=[k]}}"}, "hidden"},
		{"by name, with any argument", `{additional: free, q: free}`, []string{"tool.invoke{tools=[\"s.*\"],args={r=[k]}}"}, `{"r":"k"}`},
		{"by name, with a header", `{h: {headers: [Accept]}}`, []string{"tool.invoke{tools=[\"s.*\"],args={h.Accept=[k]}}"}, `{"h":{"Accept":"k"}}`},
		{"by name, with an element", `{p: {verb: memory.write, optional: true}, "p[*]": secret}`, []string{"tool.invoke{tools=[\"s.*\"],args={p=[k]}}"}, `{"p":["k"]}`},
		{"resource", `{u: resource.read}`, []string{"resource.read{uris=[\"db://k*\"]}"}, `{"u":"db://kx/x"}`},
		{"resource that is a file", `{u: {verb: resource.read, optional: true}}`, []string{"tool.invoke{tools=[s.t],args={p=[k]}}", "fs.read{in=/w,paths=[a]}"}, `{"u":"file:///w/a"}`},
		{"resource of the web", `{u: {verb: resource.read, optional: true}}`, []string{"tool.invoke{tools=[s.t],args={p=[k]}}", "net.get{hosts=[a.com]}"}, `{"u":"https://a.com/"}`},
		{"resource and key", `{u: [resource.read, memory.read]}`, []string{"resource.read{uris=[db://x]}", "memory.read{keys=[\"file:*\"]}", "fs.read{in=/w}"}, "?"},
		{"resource without its verb", `{u: resource.read}`, []string{"fs.read{in=/w,paths=[a]}"}, "hidden"},
		{"environment", `{command: proc.exec, env: {env: proc.exec}}`, []string{"proc.exec{in=/w,cmds=[ls]}"}, `{"command":["ls","x"]}`},
		{"path and key", `{p: [fs.read, memory.read]}`, []string{"fs.read{in=/w,paths=[\"a*\"]}", "memory.read{keys=[\"b*\"]}"}, "?"},
		{"path that is a URL", `{p: [fs.read, net.get]}`, []string{"fs.read{in=/w}", "net.get{hosts=[a.com]}"}, "hidden"},
		{"text that is a list", `{p: [fs.read, {argv: proc.exec}], q: proc.exec}`, []string{"fs.read{in=/w}", "proc.exec{in=/w}"}, "hidden"},
	} {
		chain := capability.Chain{{Set: lawSet(t, tt.grants)}}
		got, ok := parseTool(t, tt.tool).Possible(callOf(t, ""), chain, nil)
		switch {
		case !ok:
			got = "hidden"
		case got == "":
			got = "?"
		}
		if got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// TestPossibleUnmapped: a tool without a mapping is called by name, within every
// ceiling.
func TestPossibleUnmapped(t *testing.T) {
	var none *mapping.Tool
	held := capability.Chain{{Set: lawSet(t, []string{"tool.invoke{tools=[\"s.*\"],args={repo.owner=[acme]}}"})}}
	within := capability.Chain{{Set: lawSet(t, []string{"tool.invoke{tools=[s.t]}"})}}
	beyond := capability.Chain{{Set: lawSet(t, []string{"tool.invoke{tools=[s.u]}"})}}
	if args, ok := none.Possible(callOf(t, ""), held, within); !ok || args != `{"repo":{"owner":"acme"}}` {
		t.Errorf("%q, %t", args, ok)
	}
	for name, ceilings := range map[string]capability.Chain{"beyond a ceiling": beyond, "an empty ceiling": {{}}} {
		if _, ok := none.Possible(callOf(t, ""), held, ceilings); ok {
			t.Errorf("%s: shown", name)
		}
	}
	// A mapped tool has a name as well.
	if _, ok := parseTool(t, "{path: fs.read}").Possible(callOf(t, ""), capability.Chain{{Set: lawSet(t, []string{"fs.read{in=/w}"})}}, beyond); ok {
		t.Error("a mapped tool beyond a ceiling is shown")
	}
	if _, ok := none.Possible(mapping.Call{}, held, nil); ok {
		t.Error("a tool without a name is shown")
	}
}
