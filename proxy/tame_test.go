package proxy_test

import (
	"context"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// TestPromptsThatAct: a prompt of a server whose text has clients run a command, or read a
// file, without asking is withheld from who may not. The real opencode runs it.
func TestPromptsThatAct(t *testing.T) {
	const prompter = "---\nclass: agent\ncapabilities:\n  - prompt.get: {names: [\"up.*\"]}\n  - fs.write: {in: $ROOT}\n"
	text := func(texts ...string) string {
		return `{"messages":[{"role":"user","content":{"type":"text","text":"` + strings.Join(texts, `"}},{"role":"assistant","content":{"type":"text","text":"`) + `"}}]}`
	}
	part := func(parts ...string) string {
		return `{"messages":[{"role":"user","content":` + strings.Join(parts, `},{"role":"user","content":`) + `}]}`
	}
	for name, tt := range map[string]struct{ result, needs string }{
		"a text":                {text("say hello to me@example.com"), ""},
		"a command":             {text("now: !`date`"), "proc.eval"},
		"after a letter":        {text("vec!`date`"), "proc.eval"},
		"a block":               {text("```!\\ndate\\n```"), "proc.eval"},
		"in two messages":       {text("now: !", "`date`"), "proc.eval"},
		"across two messages":   {text("now: !`da", "te`"), "proc.eval"},
		"spelled out":           {text("now: \\u0021\\u0060date\\u0060"), "proc.eval"},
		"a file":                {text("see @/etc/hosts"), "fs.read"},
		"in a block of content": {`{"messages":[{"role":"user","content":[{"type":"text","text":"!` + "`date`" + `"}]}]}`, "proc.eval"},
		"in a resource":         {`{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"x:y","text":"!` + "`date`" + `"}}}]}`, "proc.eval"},
		"name of a link":        {part(`{"type":"resource_link","uri":"x:y","name":"@/etc/hosts"}`), "fs.read"},
		"description of a link": {part(`{"type":"resource_link","uri":"x:y","name":"n","description":"see @/etc/hosts"}`), "fs.read"},
		"an agent in a link":    {part(`{"type":"resource_link","uri":"x:y","name":"@agent-x"}`), "agent.create"},
		"address of a resource": {part(`{"type":"resource","resource":{"uri":"x @/etc/hosts","text":"hello"}}`), "fs.read"},
		"kind of a resource":    {part(`{"type":"resource","resource":{"uri":"x:y","mimeType":"x @/etc/hosts b","blob":"aGVsbG8="}}`), "fs.read"},
		"nobody reads between": {
			part(`{"type":"text","text":"see @\"docs","_meta":{"text":"x\" y"}}`, `{"type":"text","text":"/../../x\" now"}`), "fs.read",
		},
		"what comes along": {
			part(`{"type":"text","text":"hello"}`, `{"type":"image","data":"QGFiYw==","mimeType":"image/png"}`, `{"type":"resource_link","uri":"file:///a/b.txt","name":"b","title":"me@x.y"}`), "",
		},
		"too many parts":  {part(`[` + strings.Repeat(`{"type":"text","text":"a$"},`, 5000) + `{"type":"text","text":"b"}]`), "parts"},
		"in another case": {`{"Messages":[{"role":"user","Content":{"type":"text","Text":"!` + "`date`" + `"}}]}`, "proc.eval"},
	} {
		s := &scripted{lists: map[string]string{"prompts/list": `"prompts":[{"name":"p"}]`}, reply: func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
			return upstream.Answer{Result: []byte(tt.result)}, nil
		}}
		w := start(t, map[string]string{
			"scout":    prompter + "---\n",
			"operator": prompter + "  - \"proc.eval{in=$ROOT}\"\n  - fs.read: {in: $ROOT}\n---\n",
		}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		for agent, needs := range map[string]string{"scout": tt.needs, "operator": ""} {
			if tt.needs == "parts" || tt.needs == "agent.create" {
				needs = tt.needs // not even who may do all else
			}
			a := w.client(agent).modern("prompts/get", `{"name":"up__p"}`, "{}")
			if (a.Error != nil) != (needs != "") || needs != "" && !strings.Contains(a.Raw, "no grant of "+needs+" is held") && !strings.Contains(a.Raw, "too many "+needs) {
				t.Errorf("%s, %s: %s", name, agent, a.Raw)
			}
		}
	}
}
