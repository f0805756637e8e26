package proxy_test

import (
	"context"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// TestScrubbedByServer: what is learnt of one server is taken out of all that this one says, and of nothing
// that another does: a server that chooses what is learnt would choose what others may not say.
func TestScrubbedByServer(t *testing.T) {
	const word = "hunter2"
	talks := func(name string) *proxy.Upstream {
		s := &scripted{lists: map[string]string{
			"tools/list":               `"tools":[` + tool("plain") + `,{"name":"told","description":"hunter2","inputSchema":{"type":"object"}}]`,
			"prompts/list":             `"prompts":[{"name":"plain"},{"name":"told","description":"hunter2"}]`,
			"resources/list":           `"resources":[{"uri":"` + name + `://plain","name":"r"},{"uri":"` + name + `://hunter2","name":"r"}]`,
			"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"` + name + `://plain/{t}","name":"t"},{"uriTemplate":"` + name + `://hunter2/{t}","name":"t"}]`,
		}}
		s.reply = func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			switch r.Method {
			case "tools/call":
				sink.Notify("notifications/progress", []byte(`{"progressToken":"`+r.Token+`","progress":1,"message":"hunter2"}`))
				return upstream.Answer{Result: []byte(`{"content":[{"type":"text","text":"hunter2"}]}`)}, nil
			case "prompts/get":
				return upstream.Answer{Result: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"hunter2"}}]}`)}, nil
			case "resources/read":
				return upstream.Answer{Result: []byte(`{"contents":[{"uri":"` + name + `://plain","text":"hunter2"}]}`)}, nil
			}
			return upstream.Answer{Error: []byte(`{"code":-32000,"message":"hunter2"}`)}, nil
		}
		return &proxy.Upstream{Name: name, Prefix: name, Open: s.open}
	}
	one, two := talks("one"), talks("two")
	one.Scrub = hush
	w := startWith(t, proxy.Options{}, map[string]string{"scout": everything2}, one, two)
	c := w.client("scout")
	c.initialize("{}")
	for method, params := range map[string]string{
		"tools/call": `{"name":"NAME__plain","arguments":{},"_meta":{"progressToken":1}}`, "prompts/get": `{"name":"NAME__plain"}`,
		"resources/read": `{"uri":"NAME://plain"}`, "completion/complete": `{"ref":{"type":"ref/prompt","name":"NAME__plain"},"argument":{"name":"a","value":""}}`,
	} {
		for name, shown := range map[string]bool{"one": false, "two": true} {
			a := c.request(method, strings.ReplaceAll(params, "NAME", name))
			if got := strings.Contains(a.Raw, word); got != shown || !shown && !strings.Contains(a.Raw, "[secret]") {
				t.Errorf("%s of %s: %s", method, name, a.Raw)
			}
			for _, before := range a.Before {
				if got := strings.Contains(before, word); got != shown {
					t.Errorf("before the answer to %s of %s: %s", method, name, before)
				}
			}
		}
	}
	for method, item := range map[string][2]string{
		"tools/list": {"one__told", "two__told"}, "prompts/list": {"one__told", "two__told"},
		"resources/list": {"one://hunter2", "two://hunter2"}, "resources/templates/list": {"one://hunter2/{t}", "two://hunter2/{t}"},
	} {
		a := c.request(method, "{}")
		if strings.Contains(a.Raw, item[0]) || !strings.Contains(a.Raw, item[1]) {
			t.Errorf("%s: %s", method, a.Raw)
		}
	}
}
