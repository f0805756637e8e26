package provider_test

import (
	"strings"
	"testing"

	"capgate/provider"
)

// TestApart: a tool that searches and takes no list goes up without what is about other tools,
// a choice in a word names none of the provider's, a container is of its tool's kind.
func TestApart(t *testing.T) {
	p := holding(t, "provider.web_search", "provider.code_execution")
	for _, tt := range []struct{ where, body string }{
		{responses, `{"input":"x","tools":[{"type":"web_search_preview","connector_id":"evil"}]}`},
		{responses, `{"input":"x","tools":[{"type":"web_search_preview","tools":[{"type":"mcp","server_label":"evil"}]}]}`},
		{mistral, `{"messages":[],"tools":[{"type":"web_search","authorization":{"type":"evil"}}]}`},
		{router, `{"model":"x/y","messages":[],"tools":[{"type":"web_search","parameters":{"tools":[{"type":"evil"}]}}]}`},
		{router, `{"model":"x/y","messages":[],"tools":[{"type":"web_search","":"evil"}]}`},
		{responses, `{"input":"x","tool_choice":"evil_search"}`},
		{router, `{"model":"x/y","messages":[],"tool_choice":"openrouter:evil"}`},
		{responses, `{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"container_auto","memory_limit":"evil"}}]}`},
		{responses, `{"input":"x","tools":[{"type":"shell","environment":{"type":"auto","memory_limit":"evil"}}]}`},
	} {
		if out, changes, refused := rewrite(t, tt.where, tt.body, p); strings.Contains(out, "evil") || refused == nil && len(changes) == 0 {
			t.Errorf("%s goes up as %s", tt.body, out)
		}
	}
	for where, body := range map[string]string{
		responses: `{"input":"x","tool_choice":"required","tools":[{"type":"web_search_preview","search_context_size":"low","user_location":{"type":"approximate"}}]}`,
		router:    `{"model":"x/y","messages":[],"tool_choice":"auto","tools":[{"type":"web_search","parameters":{"allowed_domains":["a.example"]}}]}`,
		mistral:   `{"messages":[],"tool_choice":"any","tools":[{"type":"web_search"}]}`,
	} {
		if out, changes, refused := rewrite(t, where, body, p); out != body {
			t.Errorf("%s goes up as %s: %s, %v", body, out, did(changes), refused)
		}
	}
	if _, _, refused := rewrite(t, generate, `{"contents":[{"role":"model","parts":[{"toolCall":{"toolType":5}},{"toolResponse":{}}]}]}`, p); refused == nil {
		t.Error("the type of a call is a number")
	}
	p = holding(t, "tool.invoke{tools=[hub.read]}")
	p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read"}}}
	const off = `{"messages":[],"mcp_servers":[{"type":"url","name":"a","url":"https://mcp.hub.example/","tool_configuration":{"enabled":false`
	if out, _, _ := rewrite(t, messages, off+`}}]}`, p); out != off+`,"allowed_tools":["read"]}}]}` {
		t.Errorf("what is turned off goes up as %s", out)
	}
}

// TestStrangers: whatever a member is called that no rule knows, and whichever object of a
// tool, a connector or a container it stands in, it does not go up.
func TestStrangers(t *testing.T) {
	p := holding(t, hosts("*.a.example"), "tool.invoke{tools=[hub.read]}", "provider.code_execution")
	p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
	for _, tt := range []struct{ where, body string }{
		{grok, `{"input":"x","tools":[{"type":"web_search","filters":{"allowed_domains":["a.example"]}}]}`},
		{router, `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"engine":"exa"}}]}`},
		{router, `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:shell","parameters":{"environment":{"type":"container_auto"}}}]}`},
		{router, `{"model":"x/y","messages":[],"plugins":[{"id":"web","engine":"exa"}]}`},
		{responses, `{"input":"x","tools":[{"type":"web_search","filters":{"allowed_domains":["a.example"]}}]}`},
		{responses, `{"input":"x","tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.hub.example/"}]}`},
		{responses, `{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"disabled"}}}]}`},
		{responses, `{"input":"x","tools":[{"type":"shell","environment":{"type":"container_auto","network_policy":{"type":"allowlist","allowed_domains":["a.example"]}}}]}`},
		{responses, `{"input":"x","tools":[{"type":"shell","environment":{"type":"local"}}]}`},
		{messages, `{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["a.example"]}]}`},
		{messages, `{"messages":[],"mcp_servers":[{"type":"url","name":"a","url":"https://mcp.hub.example/","tool_configuration":{"allowed_tools":["read"]}}],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","default_config":{"enabled":true}}]}`},
		{messages, `{"messages":[],"container":{"id":null}}`},
	} {
		if out, changes, refused := rewrite(t, tt.where, tt.body, p); refused != nil || strings.Contains(did(changes), provider.Omitted) {
			t.Fatalf("%s: %s, %s, %v", tt.body, out, did(changes), refused)
		}
		for at, c := range tt.body {
			if c != '{' {
				continue
			}
			for _, name := range []string{"", " ", "zz", "allowed_Domains"} {
				member := `"` + name + `":0`
				body := tt.body[:at+1] + member + strings.Replace(","+tt.body[at+1:], ",}", "}", 1)
				if out, _, _ := rewrite(t, tt.where, body, p); strings.Contains(out, member) {
					t.Errorf("%s goes up as %s", body, out)
				}
			}
		}
	}
}
