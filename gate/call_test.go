package gate_test

import (
	"os"
	"path/filepath"
	"testing"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/wire"
)

const files = `server: files
tools:
  read: { path: fs.read }
  move: { from: [fs.read, fs.delete], to: fs.write }
  note: { text: free }
  post: { token: secret, path: { verb: fs.read, optional: true } }
prompts:
  greet: { token: secret }
`

func tool(t *testing.T, name string, declared ...string) *gate.Tool {
	t.Helper()
	m, _, err := mapping.Parse("files.yml", []byte(files))
	if err != nil {
		t.Fatal(err)
	}
	one := &gate.Tool{Name: "files." + name, Mapping: m.Tool(name), View: capability.View{Cwd: "/w"}}
	if declared != nil {
		var specs []capability.Spec
		for _, text := range declared {
			spec, err := capability.ParseSpec(text)
			if err != nil {
				t.Fatal(err)
			}
			specs = append(specs, spec)
		}
		one.Declared = gate.Declare(specs, capability.Options{})
	}
	return one
}

// within is a tool that declares something of its own, on a server that declares less.
func within(t *testing.T, name, server string, declared ...string) *gate.Tool {
	t.Helper()
	one := tool(t, name, declared...)
	one.Declared = one.Declared.Within(tool(t, name, server).Declared)
	return one
}

func args(t *testing.T, text string) wire.Value {
	t.Helper()
	doc, err := wire.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

// TestCall decides whole calls: what is said of each is the first thing that
// speaks against it.
func TestCall(t *testing.T) {
	g := gateOf(t, map[string]string{
		"reader.md":  "---\nclass: agent\ncapabilities:\n  - fs.read: { in: /w, paths: [docs] }\n---\n",
		"mover.md":   "---\nclass: agent\ncapabilities:\n  - fs.read: { in: /w }\n  - fs.write: { in: /w }\n  - fs.delete: { in: /w }\n---\n",
		"named.md":   "---\nclass: agent\ntoolset: [\"files.read\"]\ncapabilities:\n  - fs.read: { in: /w }\n  - tool.invoke: { tools: [\"**\"] }\n---\n",
		"waiting.md": "---\nclass: agent\napprove: [\"files.read\"]\ncapabilities:\n  - fs.read: { in: /w }\n---\n",
		"ethos.yaml": "toolset: [\"files.*\"]\nfs_reach: { read: [/w/docs] }\n",
		"child.md":   "---\nclass: agent\nparent: ethos\ncapabilities:\n  - fs.read: { in: /w/docs/sub }\n  - tool.invoke: { tools: [\"**\"] }\n---\n",
		"below.md":   "---\nclass: agent\nparent: child\ncapabilities:\n  - tool.invoke: { tools: [\"**\"] }\n---\n",
		"above.yaml": "toolset: [\"files.*\"]\nfs_reach: { read: [/w/docs] }\nparent: reader\n",
	})
	for name, test := range map[string]struct {
		agent string
		tool  *gate.Tool
		args  string
		code  capability.Code
	}{
		"allowed":                             {"reader", tool(t, "read"), `{"path":"docs/a"}`, ""},
		"outside":                             {"reader", tool(t, "read"), `{"path":"other/a"}`, capability.ScopeViolation},
		"no grant, before the arguments":      {"reader", tool(t, "move"), `{"nonsense":1}`, capability.CapabilityAbsent},
		"an argument that nobody knows":       {"reader", tool(t, "read"), `{"path":"docs/a","x":1}`, capability.MalformedArguments},
		"a name that is not held":             {"reader", tool(t, "note"), `{"text":"a"}`, capability.CapabilityAbsent},
		"a ceiling on names, mapped":          {"named", tool(t, "move"), `{}`, capability.ScopeViolation},
		"within the ceiling":                  {"named", tool(t, "read"), `{"path":"a"}`, ""},
		"a tool beyond its server":            {"mover", within(t, "read", "fs.read{in=/w,paths=[docs]}", "fs.read{in=/w}"), `{"path":"other"}`, capability.ScopeViolation},
		"a tool within its server":            {"mover", within(t, "read", "fs.read{in=/w}", "fs.read{in=/w,paths=[docs]}"), `{"path":"docs/a"}`, ""},
		"a tool narrower than its server":     {"mover", within(t, "read", "fs.read{in=/w}", "fs.read{in=/w,paths=[docs]}"), `{"path":"other"}`, capability.ScopeViolation},
		"a declaration narrows":               {"mover", tool(t, "read", "fs.read{in=/w,paths=[docs]}"), `{"path":"other"}`, capability.ScopeViolation},
		"within the declaration":              {"mover", tool(t, "read", "fs.read{in=/w,paths=[docs]}"), `{"path":"docs/a"}`, ""},
		"declared writing is removing":        {"mover", tool(t, "move", "fs.read{in=/w}", "fs.write{in=/w}"), `{"from":"a","to":"b"}`, ""},
		"nothing is declared to be touched":   {"mover", tool(t, "read", "net.get{hosts=[]}"), `{"path":"docs/a"}`, capability.ScopeViolation},
		"a name is no matter of declaration":  {"named", &gate.Tool{Name: "files.read", Declared: gate.Declare(nil, capability.Options{})}, `{}`, ""},
		"approval of a tool":                  {"waiting", tool(t, "read"), `{"path":"a"}`, capability.RequiresApproval},
		"approval only of what is allowed":    {"waiting", tool(t, "read"), `{"path":"/etc/x"}`, capability.ScopeViolation},
		"R-ETH-03 nothing is declared":        {"ethos", tool(t, "read"), `{"path":"/w/docs/a"}`, capability.NotAvailable},
		"R-ETH-04 more is declared than held": {"ethos", tool(t, "read", "fs.read{in=/w}"), `{"path":"/w/docs/a"}`, capability.NotAvailable},
		"what is declared is held":            {"ethos", tool(t, "read", "fs.read{in=/w,paths=[docs]}"), `{"path":"/w/docs/a"}`, ""},
		"below it, nothing is declared":       {"child", &gate.Tool{Name: "files.note"}, `{}`, capability.NotAvailable},
		"below it, unmediated":                {"child", &gate.Tool{Name: "files.note", Unmediated: true}, `{}`, ""},
		"below it, more than it holds":        {"child", tool(t, "read", "fs.read{in=/w}"), `{"path":"/w/docs/sub/a"}`, capability.NotAvailable},
		"below it, more than the child holds": {"child", tool(t, "read", "fs.read{in=/w/docs}"), `{"path":"/w/docs/sub/a"}`, ""},
		"far below it, nothing is declared":   {"below", &gate.Tool{Name: "files.note"}, `{}`, capability.NotAvailable},
		"under one that demands nothing":      {"above", tool(t, "read", "fs.read{in=/w,paths=[docs]}"), `{"path":"/w/docs/a"}`, ""},
		"nobody":                              {"nobody", tool(t, "read"), `{"path":"docs/a"}`, capability.Unauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			v := g.Call("agents/"+test.agent, test.tool, args(t, test.args))
			if v.Decision.Code != test.code || v.Decision.Allowed() != (test.code == "") {
				t.Errorf("%v %q: %v; want %q", v.Decision.Effect, v.Decision.Code, v, test.code)
			}
		})
	}
}

// TestSecretsAreDeclared: a secret is filled in where the operator says that the server
// takes it, and nowhere else (R-SCA-05, R-ETH-08).
func TestSecretsAreDeclared(t *testing.T) {
	g := gateOf(t, map[string]string{
		"holder.md":  "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [files.post] }\n  - prompt.get: { names: [files.greet] }\n  - secret.use: { names: [k, other] }\n---\n",
		"waiting.md": "---\nclass: agent\napprove: [\"*\"]\ncapabilities:\n  - tool.invoke: { tools: [files.post] }\n  - secret.use: { names: [k] }\n---\n",
		"without.md": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [files.post] }\n  - prompt.get: { names: [files.greet] }\n---\n",
	})
	unmediated := tool(t, "post")
	unmediated.Unmediated = true
	for name, test := range map[string]struct {
		agent string
		tool  *gate.Tool
		args  string
		code  capability.Code
	}{
		"declared":                      {"holder", tool(t, "post", "secret.use{names=[k]}"), `{"token":"{{secret:k}}"}`, ""},
		"another is declared":           {"holder", tool(t, "post", "secret.use{names=[k]}"), `{"token":"{{secret:other}}"}`, capability.ScopeViolation},
		"one of two is declared":        {"holder", tool(t, "post", "secret.use{names=[k]}"), `{"token":"{{secret:k}}{{secret:other}}"}`, capability.ScopeViolation},
		"none is declared":              {"holder", tool(t, "post", "secret.use{names=[]}"), `{"token":"{{secret:k}}"}`, capability.ScopeViolation},
		"nothing is declared":           {"holder", tool(t, "post"), `{"token":"{{secret:k}}"}`, capability.ScopeViolation},
		"unmediated is not declared":    {"holder", unmediated, `{"token":"{{secret:k}}"}`, capability.ScopeViolation},
		"declared of the tool alone":    {"holder", within(t, "post", "secret.use{names=[]}", "secret.use{names=[k]}"), `{"token":"{{secret:k}}"}`, capability.ScopeViolation},
		"declared of the server alone":  {"holder", within(t, "post", "secret.use{names=[k]}", "secret.use{names=[other]}"), `{"token":"{{secret:k}}"}`, capability.ScopeViolation},
		"no secret, nothing declared":   {"holder", tool(t, "post"), `{"token":"plain"}`, ""},
		"not held":                      {"without", tool(t, "post", "secret.use{names=[k]}"), `{"token":"{{secret:k}}"}`, capability.CapabilityAbsent},
		"no approval of what is denied": {"waiting", tool(t, "post"), `{"token":"{{secret:k}}"}`, capability.ScopeViolation},
		"approval":                      {"waiting", tool(t, "post", "secret.use{names=[k]}"), `{"token":"{{secret:k}}"}`, capability.RequiresApproval},
	} {
		v := g.Call("agents/"+test.agent, test.tool, args(t, test.args))
		if v.Decision.Code != test.code || v.Decision.Allowed() != (test.code == "") || v.Approve != "" && test.code != capability.RequiresApproval {
			t.Errorf("%s: %v %v", name, v.Decision, v)
		}
		if test.code == capability.ScopeViolation && (v.Argument != "token" || v.Why == "") {
			t.Errorf("%s: it is not said where, or why: %v", name, v)
		}
	}
	m, _, err := mapping.Parse("files.yml", []byte(files))
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range []*gate.Declaration{nil, tool(t, "post", "secret.use{names=[k]}").Declared} {
		greet := &gate.Tool{Name: "files.greet", Mapping: m.Prompt("greet"), Declared: declared}
		if v := g.Prompt("agents/holder", greet, args(t, `{"token":"{{secret:k}}"}`)); v.Decision.Allowed() != (declared != nil) {
			t.Errorf("a prompt, declared %v: %v", declared != nil, v.Decision)
		}
	}
}

// TestToldRoots: a server that is told where the agent works may read a relative path
// from there, so that it has to be allowed there as well (R-SEC-05).
func TestToldRoots(t *testing.T) {
	g := gateOf(t, map[string]string{
		"nested.md": "---\nclass: agent\nsandbox: /w/a\ncapabilities:\n  - fs.read: { paths: [docs, a] }\n---\n",
		"narrow.md": "---\nclass: agent\nsandbox: /w/a\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\n",
		"same.md":   "---\nclass: agent\nsandbox: /w\ncapabilities:\n  - fs.read: { paths: [docs] }\n---\n",
		"none.md":   "---\nclass: agent\ncapabilities:\n  - fs.read: { in: /w/a, paths: [docs] }\n---\n",
	})
	for name, test := range map[string]struct {
		agent, path string
		told, plain bool
	}{
		"in both":                     {"nested", "a/docs/x", true, true},
		"not where it may hang from":  {"narrow", "a/docs/x", false, true},
		"only where it may hang from": {"narrow", "docs/x", false, false},
		"a whole path":                {"narrow", "/w/a/docs/x", true, true},
		"the directory of the server": {"same", "docs/x", true, true},
		"climbing out":                {"nested", "a/../../w/a/docs", false, true},
		"no root to be told":          {"none", "a/docs/x", true, true},
	} {
		one := tool(t, "read")
		for _, one.Roots = range []bool{true, false} {
			want := test.plain
			if one.Roots {
				want = test.told
			}
			if v := g.Call("agents/"+test.agent, one, args(t, `{"path":"`+test.path+`"}`)); v.Decision.Allowed() != want {
				t.Errorf("%s, told %v: %v", name, one.Roots, v.Decision)
			}
		}
	}
}

// TestToldTheConfigurationsRoot: an agent whose record has no root works in that of the
// configuration, from which its grants hang. So a server is told of that one (R-SEC-05).
func TestToldTheConfigurationsRoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain.md"), []byte("---\nclass: agent\ncapabilities:\n  - fs.read: { paths: [app/docs] }\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	roster, err := agents.Load(agents.Options{Config: capability.Root{Dir: "/w", Real: "/w"}, View: capability.View{Cwd: "/w"}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate.Gate{Roster: roster, Fence: capability.NewFence()}
	for _, roots := range []bool{true, false} {
		one := tool(t, "read")
		one.Roots, one.View.Cwd = roots, "/w/app"
		if v := g.Call("agents/plain", one, args(t, `{"path":"docs/x"}`)); v.Decision.Allowed() == roots {
			t.Errorf("told %v: %v", roots, v.Decision)
		}
	}
}

// TestWithin: records that are put in force within an older gate take away, and
// give nothing.
func TestWithin(t *testing.T) {
	record := func(paths, approve string) map[string]string {
		return map[string]string{"reader.md": "---\nclass: agent\n" + approve + "capabilities:\n  - fs.read: { in: /w, paths: [" + paths + "] }\n---\n"}
	}
	before := gateOf(t, record("docs, notes", ""))
	now := gateOf(t, record("docs, secret", ""))
	now.Within = before
	for path, code := range map[string]capability.Code{
		"docs/a":   "",                        // in both
		"notes/a":  capability.ScopeViolation, // taken away
		"secret/a": capability.ScopeViolation, // given, while something is wrong
	} {
		if v := now.Call("agents/reader", tool(t, "read"), args(t, `{"path":"`+path+`"}`)); v.Decision.Code != code {
			t.Errorf("%s: %q, want %q", path, v.Decision.Code, code)
		}
	}
	if now.Within = gateOf(t, record("docs", "approve: [\"fs.read\"]\n")); now.Call("agents/reader", tool(t, "read"), args(t, `{"path":"docs/a"}`)).Approve == "" {
		t.Error("an approval was forgotten")
	}
	now.Within = gateOf(t, map[string]string{"reader.yaml": "toolset: [\"files.*\"]\nfs_reach: { read: [/w/docs] }\n"})
	if v := now.Call("agents/reader", tool(t, "read"), args(t, `{"path":"docs/a"}`)); v.Decision.Code != capability.NotAvailable {
		t.Errorf("a tool that nothing was declared of is called in another dialect: %v", v.Decision)
	}
	now.Within = gateOf(t, map[string]string{})
	if v := now.Call("agents/reader", tool(t, "read"), args(t, `{"path":"docs/a"}`)); v.Decision.Allowed() {
		t.Error("an agent that was not there before may do something")
	}
}

// TestUse: what a server in this process is about to touch is within what is declared of it and of
// its tool, within what the agent holds, and not the gateway's own.
func TestUse(t *testing.T) {
	g := gateOf(t, map[string]string{
		"scout.md": "---\nclass: agent\ncapabilities:\n  - net.get: { hosts: [a.example, b.example] }\n---\n",
	})
	for name, test := range map[string]struct {
		tool    *gate.Tool
		host    string
		allowed bool
	}{
		"nothing is declared":      {tool(t, "read"), "a.example", true},
		"it is not held":           {tool(t, "read"), "c.example", false},
		"it is declared":           {tool(t, "read", "net.get{hosts=[a.example]}"), "a.example", true},
		"another is declared":      {tool(t, "read", "net.get{hosts=[a.example]}"), "b.example", false},
		"of the server, not of it": {within(t, "read", "net.get{hosts=[a.example,b.example]}", "net.get{hosts=[a.example]}"), "b.example", false},
		"of it, not of the server": {within(t, "read", "net.get{hosts=[a.example]}", "net.get{hosts=[a.example,b.example]}"), "b.example", false},
	} {
		need, err := capability.ParseRequirement("net.get{url=https://"+test.host+"/}", capability.View{})
		if err != nil {
			t.Fatal(err)
		}
		if v := g.Use("agents/scout", test.tool, need); v.Decision.Allowed() != test.allowed {
			t.Errorf("%s: %v", name, v.Decision)
		}
		if v := test.tool.Declared; test.host != "c.example" && v.Allows(need) != test.allowed {
			t.Errorf("%s: Allows: %v", name, v.Allows(need))
		}
	}
}
