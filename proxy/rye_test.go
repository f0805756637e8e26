package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"capgate/proxy"

	"github.com/google/go-cmp/cmp"
)

// directive is the record of an agent in Rye's words.
func directive(permissions string) string {
	return "---\ndialect: rye\n---\n```xml\n<permissions>" + permissions + "</permissions>\n```\n"
}

// shelves are two servers that hold tools, prompts and resources of the same names.
func shelves() (map[string]*scripted, []*proxy.Upstream) {
	of := map[string]*scripted{}
	var ups []*proxy.Upstream
	for _, name := range []string{"kb", "wiki"} {
		s := &scripted{lists: map[string]string{
			"tools/list":               `"tools":[` + tool("find") + `,` + tool("drop") + `]`,
			"prompts/list":             `"prompts":[{"name":"brief"},{"name":"plan"}]`,
			"resources/list":           `"resources":[{"uri":"` + name + `://guide/intro.md","name":"i"},{"uri":"` + name + `://guide","name":"g"},{"uri":"` + name + `:odd?x","name":"o"},{"uri":"file:///etc/` + name + `","name":"f"}]`,
			"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"` + name + `://guide/{page}","name":"t"}]`,
		}}
		of[name] = s
		ups = append(ups, &proxy.Upstream{Name: name, Prefix: name, Open: s.open, Pins: proxy.Off})
	}
	return of, ups
}

// listedNames are the names or URIs in the four lists of a gateway.
func listedNames(t *testing.T, c *client) []string {
	t.Helper()
	var all []string
	for _, list := range []struct{ method, member string }{
		{"tools/list", "name"}, {"prompts/list", "name"}, {"resources/list", "uri"}, {"resources/templates/list", "uriTemplate"},
	} {
		a := c.request(list.method, "{}")
		var members map[string]json.RawMessage
		if err := json.Unmarshal(a.Result, &members); err != nil {
			t.Fatalf("%s: %s", list.method, a.Raw)
		}
		for _, raw := range members {
			var entries []map[string]any
			if json.Unmarshal(raw, &entries) != nil {
				continue
			}
			for _, e := range entries {
				all = append(all, e[list.member].(string))
			}
		}
	}
	return all
}

// TestRyeLists: what a directive's permissions show in each list. To be allowed to use
// something is to see it, and to search for what one may not use shows nothing
// (R-RYE-08, R-RYE-10).
func TestRyeLists(t *testing.T) {
	for _, tt := range []struct {
		permissions string
		want        []string
	}{
		{`<execute><tool>kb.*</tool></execute>`, []string{"kb__drop", "kb__find"}},
		{`<execute><tool>kb.find</tool><directive>wiki.brief</directive></execute>`, []string{"kb__find", "wiki__brief"}},
		{`<load><directive>kb.*</directive></load>`, []string{"kb__brief", "kb__plan"}},
		{`<load><knowledge>kb.*</knowledge></load>`, []string{"kb://guide", "kb://guide/intro.md", "kb:odd?x", "kb://guide/{page}"}},
		{`<load><knowledge>kb.kb.guide</knowledge></load>`, []string{"kb://guide", "kb://guide/{page}"}},
		{`<load><knowledge>kb.kb.guide.*</knowledge></load>`, []string{"kb://guide/intro.md", "kb://guide/{page}"}},
		{`<load><knowledge>kb.wiki.*</knowledge></load>`, nil},
		{`<load><knowledge>kb.guide</knowledge></load>`, nil},
		{`<load><knowledge>*</knowledge></load>`, []string{
			"kb://guide", "kb://guide/intro.md", "kb:odd?x", "wiki://guide", "wiki://guide/intro.md", "wiki:odd?x", "kb://guide/{page}", "wiki://guide/{page}",
		}},
		{`<search>*</search>`, nil},
		{`<search><tool>kb.*</tool><knowledge>kb.*</knowledge></search><execute><tool>wiki.find</tool></execute>`, []string{"wiki__find"}},
		{`<sign>*</sign><load><tool>*</tool></load><execute><knowledge>*</knowledge></execute>`, nil},
	} {
		_, ups := shelves()
		w := start(t, map[string]string{"scout": directive(tt.permissions)}, ups...)
		c := w.client("scout")
		c.initialize("{}")
		if d := cmp.Diff(tt.want, listedNames(t, c)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.permissions, d)
		}
	}
}

// TestRyeRequests: each message is one action by an exact table, decided before it goes
// up; what is denied is an answer, after which the conversation goes on (R-RYE-07,
// R-RYE-10).
func TestRyeRequests(t *testing.T) {
	of, ups := shelves()
	w := start(t, map[string]string{"scout": directive(
		`<execute><tool>kb.find</tool><directive>kb.brief</directive></execute><load><knowledge>kb.kb.guide.*</knowledge><tool>kb.drop</tool></load><search>*</search>`,
	)}, ups...)
	c := w.client("scout")
	c.initialize("{}")
	for _, tt := range []struct{ method, params, want string }{
		{"tools/call", `{"name":"kb__find","arguments":{}}`, ""},
		{"tools/call", `{"name":"kb__drop","arguments":{}}`, "scope_violation tool.invoke kb.drop"},
		{"tools/call", `{"name":"kb__rye_find","arguments":{}}`, "unknown_tool "},
		{"tools/call", `{"name":"find","arguments":{}}`, "unknown_tool "},
		{"tools/call", `{"name":"wiki__find","arguments":{}}`, "scope_violation tool.invoke wiki.find"},
		{"prompts/get", `{"name":"kb__brief"}`, ""},
		{"prompts/get", `{"name":"kb__plan"}`, "scope_violation prompt.get kb.plan"},
		{"prompts/get", `{"name":"wiki__brief"}`, "scope_violation prompt.get wiki.brief"},
		{"resources/read", `{"uri":"kb://guide/intro.md"}`, ""},
		{"resources/read", `{"uri":"kb://guide/other"}`, ""},
		{"resources/subscribe", `{"uri":"kb://guide/intro.md"}`, ""},
		{"resources/read", `{"uri":"kb://guide"}`, "scope_violation resource.read kb://guide"},
		{"resources/read", `{"uri":"kb:odd?x"}`, "scope_violation resource.read kb:odd?x"},
		{"resources/read", `{"uri":"kb://guide/../x"}`, "scope_violation resource.read"},
		{"resources/subscribe", `{"uri":"kb://guide"}`, "scope_violation resource.read kb://guide"},
		{"resources/read", `{"uri":"wiki://guide/intro.md"}`, "scope_violation resource.read wiki://guide/intro.md"},
		{"resources/read", `{"uri":"file:///etc/kb"}`, "capability_absent fs.read /etc/kb"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"kb://guide/{page}"},"argument":{"name":"page","value":""}}`, "scope_violation resource.read"},
	} {
		before := len(of["kb"].calls()) + len(of["wiki"].calls())
		a := c.request(tt.method, tt.params)
		d := denialOf(t, a)
		if got := d.Code + " " + d.Need; !strings.HasPrefix(got, tt.want) || (d.Code == "") != (tt.want == "") {
			t.Errorf("%s %s: got %s, want %s\n%s", tt.method, tt.params, got, tt.want, a.Raw)
		}
		if sent := len(of["kb"].calls()) + len(of["wiki"].calls()) - before; (sent > 0) != (tt.want == "") {
			t.Errorf("%s %s: %d requests went up", tt.method, tt.params, sent)
		}
	}
	if a := c.request("tools/call", `{"name":"kb__find","arguments":{}}`); denialOf(t, a).Code != "" {
		t.Errorf("after its denials the agent is denied what it may: %s", a.Raw)
	}
}

// TestRyeUnderAnother: what an agent in Rye's words may read, one above it must allow
// in its own words.
func TestRyeUnderAnother(t *testing.T) {
	of, ups := shelves()
	w := start(t, map[string]string{
		"lead":  "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"kb://guide/*\"] }\n---\n",
		"scout": strings.Replace(directive(`<load><knowledge>kb.*</knowledge></load>`), "dialect: rye\n", "dialect: rye\nparent: lead\n", 1),
	}, ups...)
	c := w.client("scout")
	c.initialize("{}")
	if d := cmp.Diff([]string{"kb://guide/intro.md", "kb://guide/{page}"}, listedNames(t, c)); d != "" {
		t.Error(d)
	}
	if a := c.request("resources/read", `{"uri":"kb://guide"}`); denialOf(t, a).Code != "scope_violation" || len(of["kb"].calls()) > 0 {
		t.Error(a.Raw)
	}
	if a := c.request("resources/read", `{"uri":"kb://guide/intro.md"}`); a.Error != nil {
		t.Error(a.Raw)
	}
}

// TestRyeApproval: who writes that a verb of Rye's waits for somebody means what the
// gateway asks for in its place.
func TestRyeApproval(t *testing.T) {
	for _, approve := range []string{"rye.load.knowledge", "rye.load.*", "rye.*", "resource.read"} {
		of, ups := shelves()
		record := strings.Replace(directive(`<load>*</load><execute>*</execute>`), "dialect: rye\n", "dialect: rye\napprove: [\""+approve+"\"]\n", 1)
		w := start(t, map[string]string{"scout": record}, ups...)
		c := w.client("scout")
		c.initialize("{}")
		if a := c.request("resources/read", `{"uri":"kb://guide"}`); denialOf(t, a).Code != "requires_approval" || len(of["kb"].calls()) > 0 {
			t.Errorf("%s: %s", approve, a.Raw)
		}
		a := c.request("tools/call", `{"name":"kb__find","arguments":{}}`)
		if code, all := denialOf(t, a).Code, approve == "rye.*"; all != (code == "requires_approval") || !all && code != "" {
			t.Errorf("%s: %s", approve, a.Raw)
		}
	}
}
