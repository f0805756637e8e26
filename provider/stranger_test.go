package provider_test

import (
	"strings"
	"testing"

	"capgate/provider"
)

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
