package proxy_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/capability/hostfs"
	"capgate/guardrail"
	"capgate/upstream"
)

// TestEventsAreWhole: who reads what happened to a call finds all that was decided on, by which
// policy, and what came of it.
func TestEventsAreWhole(t *testing.T) {
	s := &scripted{}
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		time.Sleep(2 * time.Millisecond)
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	s.lists = map[string]string{"tools/list": `"tools":[` + tool("read", "path") + `,` + tool("run", "command") + `]`}
	up := files(t, s)
	up.Mapping = parsed(t, "server: s\ntools:\n  read: {path: fs.read}\n  run: {command: proc.exec}\n")
	w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - fs.read: { in: $ROOT, paths: [docs] }\n  - proc.exec: { in: $ROOT, cmds: [jq] }\n---\n"}, up)
	up.View = capability.View{Cwd: w.root, Home: "/home/nobody", FS: hostfs.FS{}}
	w.adopt()
	must(t, os.MkdirAll(filepath.Join(w.root, "docs"), 0o755))
	must(t, os.WriteFile(filepath.Join(w.root, "docs", "a.txt"), nil, 0o600))
	must(t, os.Symlink("a.txt", filepath.Join(w.root, "docs", "link")))
	c := w.client("scout")
	c.initialize("{}")
	c.request("tools/call", `{"name":"files__read","arguments":{"path":"docs/link"}}`)
	c.request("tools/call", `{"name":"files__read","arguments":{"path":"/etc/passwd"}}`)
	c.request("tools/call", `{"name":"files__run","arguments":{"command":["rm","x"]}}`)
	begun := w.events.of("notice")[0]
	common := guardrail.Event{
		Agent: "agents/scout", Session: begun.Session, Upstream: "files", Tool: "files.read", Method: "tools/call", Policy: "test",
	}
	allow, done, deny := common, common, common
	allow.Kind, allow.Decision, allow.Grant, allow.Names = guardrail.Decision, "allow", "fs.read{in="+w.root+",paths=[docs]}", []string{"path"}
	allow.Needs = []guardrail.Need{{Verb: "fs.read", Object: w.root + "/docs/link", Also: []string{w.root + "/docs/a.txt"}, Argument: "path"}}
	done.Kind, done.Bytes = guardrail.Outcome, len(`{"content":[]}`)
	deny.Kind, deny.Decision, deny.Code, deny.Argument, deny.Names = guardrail.Decision, "deny", "scope_violation", "path", []string{"path"}
	deny.Needs = []guardrail.Need{{Verb: "fs.read", Object: "/etc/passwd", Argument: "path"}}
	run := deny
	run.Tool, run.Argument, run.Names = "files.run", "command", []string{"command"}
	run.Needs = []guardrail.Need{{Verb: "proc.exec", Object: "rm x", In: w.root, Argument: "command"}}
	s.mu.Lock()
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		return upstream.Answer{Error: []byte(`{"code":-32603,"message":"no"}`)}, nil
	}
	s.mu.Unlock()
	c.request("tools/call", `{"name":"files__read","arguments":{"path":"docs/a.txt"}}`)
	if all := w.events.of(guardrail.Outcome); len(all) != 2 || all[1].Error != "the server answered with an error" {
		t.Errorf("%+v", all)
	}
	got := append(w.events.of(guardrail.Decision)[:3], w.events.of(guardrail.Outcome)[0])
	if len(got) != 4 || begun.Session == "" || got[0].Call == "" || got[0].Call != got[3].Call || got[1].Call == got[0].Call || got[3].Latency < time.Millisecond || got[1].Text == "" {
		t.Fatalf("%+v", got)
	}
	for i := range got {
		got[i].Call, got[i].Latency, got[i].Link, got[i].Text = "", 0, "", ""
	}
	if diff := cmp.Diff([]guardrail.Event{allow, deny, run, done}, got); diff != "" {
		t.Error(diff)
	}
}
