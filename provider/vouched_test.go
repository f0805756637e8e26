package provider_test

import (
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// TestVouchedItem: what stands in an item that the operator vouches for is looked through, as
// in all that nobody knows.
func TestVouchedItem(t *testing.T) {
	p := holding(t)
	p.Pass = []string{"future_call", "x_search_call"}
	for item, code := range map[string]capability.Code{
		`{"type":"future_call","id":"i","results":[{"text":"t"}]}`: "",
		`{"type":"future_call","id":"i","results":[{"tools":[]}]}`: capability.Forbidden,
		`{"type":"reasoning","summary":[],"results":[]}`:           capability.NotAvailable,
		`{"type":"x_search_call","id":"i","action":{}}`:            "",
		`{"type":"x_search_call","action":{"type":"x_search"}}`:    capability.Forbidden,
	} {
		out, _, refused := rewrite(t, responses, `{"input":[`+item+`]}`, p)
		if code == "" && refused != nil || code != "" && (refused == nil || refused.Code != code) {
			t.Errorf("%s: %s, %v", item, out, refused)
		}
	}
}

// TestOwnItems: what a vendor's own tools have answered goes back to it with the next turn.
func TestOwnItems(t *testing.T) {
	const routed = "openrouter /v1/responses"
	for _, tt := range []struct {
		where, item, grant string
		code               capability.Code
	}{
		{where: routed, item: `{"type":"openrouter:web_search","id":"i","status":"completed","action":{"type":"search","query":"q","sources":[{"type":"url","url":"https://b.example/"}]}}`},
		{where: routed, item: `{"type":"openrouter:web_fetch","id":"i","status":"completed","url":"https://b.example/","httpStatus":200,"title":"a\u0000","content":"c"}`},
		{where: routed, item: `{"type":"openrouter:datetime","id":"i","status":"completed","datetime":"2026-11-23T00:00:00Z","timezone":"UTC"}`},
		{where: routed, item: `{"type":"openrouter:file_search","id":"i","status":"completed","queries":["q"]}`},
		{where: routed, item: `{"type":"openrouter:subagent","id":"i","status":"completed","model":"a/b","task_name":"t","outcome":"o"}`},
		{where: routed, item: `{"type":"openrouter:advisor","id":"i","status":"completed","model":"a/b","prompt":"p","advice":"a"}`},
		{where: routed, item: `{"type":"openrouter:apply_patch","call_id":"c","status":"completed","operation":{"type":"create_file","path":"a"}}`},
		{where: routed, item: `{"type":"openrouter:browser_use","status":"completed","action":"click","screenshotB64":"aa"}`},
		{where: routed, item: `{"type":"openrouter:browser_use","status":"completed","action":"click","screenshotB64":"https://b.example/"}`, grant: hosts("a.example"), code: capability.ScopeViolation},
		{where: routed, item: `{"type":"openrouter:browser_use","status":"completed","action":"click","screenshotB64":"https://a.example/"}`, grant: hosts("a.example")},
		{where: routed, item: `{"type":"openrouter:bash","status":"completed","command":"ls","stdout":"a","exitCode":0}`, grant: "provider.code_execution"},
		{where: routed, item: `{"type":"openrouter:bash","status":"completed","command":"ls","stdout":"a","exitCode":0}`, code: capability.CapabilityAbsent},
		{where: routed, item: `{"type":"openrouter:image_generation","status":"completed","imageUrl":"https://a.example/","prompt":"p"}`, grant: hosts("a.example")},
		{where: routed, item: `{"type":"openrouter:image_generation","status":"completed","imageUrl":"https://b.example/","prompt":"p"}`, grant: hosts("a.example"), code: capability.ScopeViolation},
		{where: routed, item: `{"type":"openrouter:image_generation","status":"completed","result":"https://b.example/"}`, grant: hosts("a.example"), code: capability.ScopeViolation},
		{where: routed, item: `{"type":"openrouter:image_generation","status":"completed","result":"aGk="}`},
		{where: routed, item: `{"type":"openrouter:files","status":"completed","operation":"read","file_id":"f"}`, code: capability.CapabilityAbsent},
		{where: routed, item: `{"type":"openrouter:files","status":"completed","operation":"read","file_id":"f"}`, grant: "provider.files"},
		{where: routed, item: `{"type":"openrouter:datetime","tools":[]}`, code: capability.NotAvailable},
		{where: routed, item: `{"type":"openrouter:unheard_of"}`, code: capability.NotAvailable},
		{where: grok, item: `{"type":"x_search_call","id":"i","call_id":"c","status":"completed","name":"x_keyword_search","arguments":"{}","action":{"type":"search"}}`},
		{where: grok, item: `{"type":"view_image_call","id":"i","status":"completed"}`},
		{where: grok, item: `{"type":"code_execution_call","id":"i","status":"completed","input":"1"}`, code: capability.CapabilityAbsent},
		{where: grok, item: `{"type":"code_execution_call","id":"i","status":"completed","input":"1"}`, grant: "provider.code_execution"},
		{where: responses, item: `{"type":"x_search_call","id":"i"}`, code: capability.NotAvailable},
		{where: responses, item: `{"type":"openrouter:datetime"}`, code: capability.NotAvailable},
	} {
		body := `{"model":"x/y","input":[{"role":"user","content":"a"},` + tt.item + `]}`
		out, _, refused := rewrite(t, tt.where, body, holding(t, strings.Fields(tt.grant)...))
		if tt.code == "" && (refused != nil || out != body) || tt.code != "" && (refused == nil || refused.Code != tt.code) {
			t.Errorf("%s %s: %v", tt.item, tt.grant, refused)
		}
	}
}

// TestSearchForPictures: a search may find pictures where it may read everything. Beside a
// list of domains it finds text, as nobody says where pictures are from.
func TestSearchForPictures(t *testing.T) {
	const body = `{"tools":[{"type":"web_search","external_web_access":true,"search_content_types":["text","image"],"image_settings":{"max_results":3}}],"input":"x"}`
	for grant, want := range map[string]string{
		hosts("*"):         "",
		hosts("a.example"): `"search_content_types":["text"]`,
	} {
		out, changes, refused := rewrite(t, responses, body, holding(t, grant))
		if refused != nil || !strings.Contains(out, `"type":"web_search"`) || !strings.Contains(out, want) || want == "" && !strings.Contains(out, `["text","image"]`) {
			t.Errorf("%s: %s, %v, %s", grant, out, refused, did(changes))
		}
	}
	text := strings.Replace(body, `,"image"]`, "]", 1)
	if _, changes, _ := rewrite(t, responses, text, holding(t, hosts("a.example"))); strings.Contains(did(changes), provider.Repaired+" web_search") {
		t.Error(did(changes))
	}
}

// TestVouchedMember: a member of a tool that searches may be vouched for, as others may.
func TestVouchedMember(t *testing.T) {
	const body = `{"tools":[{"type":"web_search","mood":"good"}],"input":"x"}`
	p := holding(t, hosts("a.example"))
	if out, changes, _ := rewrite(t, responses, body, p); strings.Contains(out, "web_search\"") {
		t.Errorf("%s: %s", out, did(changes))
	}
	p.Pass = []string{"mood"}
	for where, body := range map[string]string{
		responses: body,
		grok:      `{"tools":[{"type":"web_search","filters":{"mood":"good"}}],"input":"x"}`,
		router:    `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"mood":"good"}}]}`,
	} {
		if out, changes, _ := rewrite(t, where, body, p); !strings.Contains(out, `"mood":"good"`) || !strings.Contains(out, `"allowed_domains":["a.example"]`) {
			t.Errorf("%s: %s", out, did(changes))
		}
	}
}

// TestTurnedOff: what reaches past a list of domains is turned off, however it is written.
func TestTurnedOff(t *testing.T) {
	for _, value := range []string{"true", `["text"]`, `["image"]`, "{}", `{"a":1}`, "1", `"text"`, "[]"} {
		for _, tt := range []struct{ where, head, name, tail string }{
			{"openrouter /v1/chat/completions", `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"engine":"exa",`, "x_search", `}}]}`},
			{"xai /v1/responses", `{"model":"x","input":"x","tools":[{"type":"web_search",`, "enable_image_search", `}]}`},
		} {
			out, changes, refused := rewrite(t, tt.where, tt.head+`"`+tt.name+`":`+value+tt.tail, holding(t, hosts("*.github.com")))
			off := strings.Contains(out, `"`+tt.name+`":null`) || strings.Contains(out, `"`+tt.name+`":false`) || !strings.Contains(out, tt.name)
			if refused != nil || !off || !strings.Contains(did(changes), provider.Repaired) {
				t.Errorf("%s %s: %s, %s, %v", tt.name, value, out, did(changes), refused)
			}
		}
	}
}

// TestVouchedMemberIsLookedAt: who vouches for a name vouches for no tool that stands there.
func TestVouchedMemberIsLookedAt(t *testing.T) {
	p := holding(t, hosts("a.example"))
	p.Pass = []string{"mood"}
	const body = `{"tools":[{"type":"web_search","mood":{"type":"mcp","server_url":"https://evil.example"}}],"input":"x"}`
	if out, _, refused := rewrite(t, responses, body, p); refused == nil || refused.Code != capability.Forbidden {
		t.Errorf("%s, %v", out, refused)
	}
}

// TestVouchedToolset: a server whose toolset says what nobody knows does not go up alone, as its
// provider wants one with each. Who vouches for the member has both.
func TestVouchedToolset(t *testing.T) {
	const body = `{"mcp_servers":[{"type":"url","name":"a","url":"https://mcp.hub.example/","tool_configuration":{"allowed_tools":["read"]}}],` +
		`"tools":[{"type":"mcp_toolset","mcp_server_name":"a","mood":"good","configs":{"read":{"enabled":true}},"default_config":{"enabled":false}}],"messages":[]}`
	p := holding(t, "tool.invoke{tools=[hub.read]}")
	p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
	if out, changes, refused := rewrite(t, messages, body, p); refused == nil || refused.Code != capability.NotAvailable || !strings.Contains(refused.Why, "mood") {
		t.Errorf("%s: %s, %v", out, did(changes), refused)
	}
	p.Pass = []string{"mood"}
	if out, changes, refused := rewrite(t, messages, body, p); out != body {
		t.Errorf("%s: %s, %v", out, did(changes), refused)
	}
}
