package proxy_test

import (
	"context"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// TestDenialWhole is a denial as it goes to the agent, every byte of it, over HTTP, where it is written
// into memory that is used again, and over a pipe.
func TestDenialWhole(t *testing.T) {
	const (
		record = "---\nclass: agent\ncapabilities:\n  - net.get: { hosts: [a.example.com] }\n  - net.get: { hosts: [\"*.b.example.com\"] }\n---\n"
		call   = `{"name":"up__get","arguments":{"url":"http://c.example.com/x"}}`
		why    = `this needs net.get c.example.com:80, which is outside what is held (held for net.get: net.get{hosts=[a.example.com]}, net.get{hosts=[*.b.example.com]})`
		hint   = `stay within what is held, or ask the operator for: capgate agents grant scout 'net.get{hosts=[c.example.com]}'`
		want   = `"result":{"content":[{"type":"text","text":"Denied by capgate (scope_violation): ` + why + `. Argument: url. To proceed, ` + hint + `. [event EVENT]"}],"isError":true,` +
			`"_meta":{"capgate/denial":{"code":"scope_violation","need":"net.get c.example.com:80","tool":"up__get","argument":"url",` +
			`"held":["net.get{hosts=[a.example.com]}","net.get{hosts=[*.b.example.com]}"],"hint":"` + hint + `","event":"EVENT"}}}}`
	)
	up := func() *proxy.Upstream {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("get", "url") + `]`}}
		return &proxy.Upstream{Name: "up", Prefix: "up", Mapping: parsed(t, "server: s\ntools:\n  get: {url: net.get}\n"), Open: s.open}
	}
	w := start(t, map[string]string{"scout": record}, up())
	c := w.client("scout")
	c.initialize("{}")
	for _, a := range []said{
		c.request("tools/call", call), c.request("tools/call", call),
		start(t, map[string]string{"scout": record}, up()).talk(greetings, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+call+`}`)["7"],
	} {
		got := strings.TrimSpace(a.Raw)
		if event := denialOf(t, a).Event; event == "" || !strings.HasSuffix(got, strings.ReplaceAll(want, "EVENT", event)) {
			t.Errorf("got\n%s\nand not\n%s", got, want)
		}
	}
}

// TestLongNameRepeated: a denial does not send back all of a name or a URI, however long it is.
func TestLongNameRepeated(t *testing.T) {
	c := start(t, map[string]string{"scout": reader}, files(t, &scripted{})).client("scout")
	c.initialize("{}")
	long := strings.Repeat("a", 1023) + strings.Repeat("ä", 8<<10)
	for method, params := range map[string]string{
		"resources/read": `{"uri":"` + long + `"}`, "prompts/get": `{"name":"` + long + `"}`, "tools/call": `{"name":"` + long + `"}`,
	} {
		if a := c.request(method, params); denialOf(t, a).Tool != long[:1023]+"…" {
			t.Errorf("%s: %d bytes: %.3000s", method, len(a.Raw), a.Raw)
		}
	}
	short := strings.Repeat("a", 1024)
	if a := c.request("tools/call", `{"name":"`+short+`"}`); denialOf(t, a).Tool != short {
		t.Errorf("%.3000s", a.Raw)
	}
}

// TestEventsOfWhatDoesNotStart: what is called of a server that does not say what it has is found in the
// events as its tools are.
func TestEventsOfWhatDoesNotStart(t *testing.T) {
	up := &proxy.Upstream{Name: "odd", Prefix: "zed", Open: func(context.Context, proxy.Peer) (upstream.Conn, error) {
		return nil, &upstream.Failed{Upstream: "odd", Text: "does not start", Unsent: true}
	}}
	w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}), up)
	c := w.client("scout")
	c.initialize("{}")
	c.request("tools/call", `{"name":"zed__say"}`)
	c.request("tools/call", `{"name":"files__say"}`)
	var got []string
	for _, e := range w.events.of("decision") {
		got = append(got, e.Upstream+" "+e.Tool+" "+e.Code)
	}
	if want := "odd zed.say upstream_failed,  files__say unknown_tool"; strings.Join(got, ", ") != want {
		t.Errorf("the events are %q, want %q", got, want)
	}
}
