package proxy_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/proxy"
)

// scarab is a request domain.action:scope, made as an agent can make it: a call of the
// tool that it names, or of one whose mapping says that it needs it.
func (s *site) scarab(a *attack, modern bool) string {
	var args struct{ Request string }
	must(s.t, json.Unmarshal(a.Args, &args))
	verb, scope, _ := strings.Cut(args.Request, ":")
	called, sent := verb, `{"what":`+quoted(scope)+`}`
	var m *mapping.Mapping
	switch {
	case a.Hint.InArgument: // of a tool that the agent may call
		called, sent = "http", `{"what":`+quoted(args.Request)+`}`
		m = parsed(s.t, `{server: s, tools: {http: {what: secret}}}`)
	case verb == "tool.invoke":
		called, sent = scope, "{}"
	default:
		m = parsed(s.t, quoted(map[string]any{"server": "s", "tools": map[string]any{verb: map[string]any{"what": verb}}}))
	}
	server := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool(called, "what") + `]`}}
	up := &proxy.Upstream{Name: "s", Mapping: m, View: s.view("/"), Open: server.open}
	all, err := capability.ParseSpec("secret.use{names=[**]}")
	must(s.t, err)
	if a.Hint.InArgument {
		up.Declared = gate.Declare([]capability.Spec{all}, capability.Options{})
	}
	w := s.serve(a, proxy.Options{}, up)
	if a.Hint.Dialect == "scarab" {
		s.manifest(w, a, called)
	}
	exposed := strings.ReplaceAll(called, ".", "_")
	got := s.outcome(s.ask(w, modern, "tools/call", exposed, `"name":`+quoted(exposed)+`,"arguments":`+sent), server)
	if got != "allow" {
		return got
	}
	return s.sameArguments(server, []byte(sent))
}

// manifest puts a Scarab manifest in the place of the record: its tokens, and the one
// that lets the tool through the ceiling that a manifest sets.
func (s *site) manifest(w *world, a *attack, called string) {
	s.t.Helper()
	var tokens []string
	must(s.t, json.Unmarshal(a.Grant, &tokens))
	text := "metadata: { name: scout }\nspec:\n  capabilities: " + quoted(append(tokens, "tool.invoke:"+called)) + "\n"
	must(s.t, os.Remove(filepath.Join(w.dir, "scout.md")))
	must(s.t, os.WriteFile(filepath.Join(w.dir, "scout.yaml"), []byte(text), 0o600))
	w.adopt()
}

// TestScarabManifest: what a manifest grants is all that its agent can call, and
// neither half of what a tool needs is enough (R-SCA-03, R-SCA-12).
func TestScarabManifest(t *testing.T) {
	for name, test := range map[string]struct{ tokens, want string }{
		"both":              {`["tool.invoke:fs.read","fs.read:/srv/**"]`, "allow"},
		"only the path":     {`["fs.read:/srv/**"]`, "scope_violation"},
		"only the tool":     {`["tool.invoke:fs.read"]`, "capability_absent"},
		"another tool":      {`["tool.invoke:fs.write","fs.read:/srv/**"]`, "scope_violation"},
		"a whole namespace": {`["tool.invoke:fs.*","fs.read:/srv/**"]`, "allow"},
		"another path":      {`["tool.invoke:fs.read","fs.read:/var/**"]`, "scope_violation"},
		"nothing":           {`[]`, "scope_violation"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("fs.read", "what") + `]`}}
			up := &proxy.Upstream{Name: "s", Mapping: parsed(t, `{server: s, tools: {fs.read: {what: fs.read}}}`), Open: server.open}
			w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities: []\n---\n"}, up)
			must(t, os.Remove(filepath.Join(w.dir, "scout.md")))
			must(t, os.WriteFile(filepath.Join(w.dir, "scout.yaml"), []byte("metadata: { name: scout }\nspec: { capabilities: "+test.tokens+" }\n"), 0o600))
			w.adopt()
			s := &site{t: t}
			for _, modern := range []bool{false, true} {
				server.mu.Lock()
				server.got = nil
				server.mu.Unlock()
				if got := s.outcome(s.ask(w, modern, "tools/call", "fs_read", `"name":"fs_read","arguments":{"what":"/srv/a"}`), server); got != test.want {
					t.Errorf("%s", got)
				}
				if shown := len(toolNames(t, s.ask(w, modern, "tools/list", "", ""))) == 1; shown != (test.want == "allow" || name == "another path") {
					t.Errorf("the tool is shown: %v", shown)
				}
			}
		})
	}
}
