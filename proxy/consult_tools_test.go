package proxy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/guardrail"
	"capgate/provider"
	"capgate/proxy"
)

const toolsHeader = "X-Capgate-Provider-Tools"

// toolsIn are the tools of a body that has reached the provider, as compact JSON.
func toolsIn(t *testing.T, body string) []string {
	t.Helper()
	var b struct{ Tools []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	var list []string
	for _, one := range b.Tools {
		list = append(list, string(one))
	}
	return list
}

// TestConsultTools: what goes up holds the provider tools that the agent holds, in
// their scope, and each change is an event.
func TestConsultTools(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	const lookup = `{"name":"lookup","description":"mine","input_schema":{"type":"object"}}`
	body := strings.Replace(greeting, "{", `{"tools":[`+lookup+`,{"type":"web_search_20250305","name":"web_search","max_uses":8},{"type":"code_execution_20250825","name":"code_execution"}],`, 1)
	for _, test := range []struct {
		agent  string
		tools  []string
		header string
		events []string
	}{
		{
			"scout",
			[]string{lookup, `{"type":"web_search_20250305","name":"web_search","max_uses":8,"allowed_domains":["github.com"]}`},
			"narrowed=web_search_20250305; omitted=code_execution_20250825",
			[]string{"allow   [{net.get github.com []  }]", "allow web_search_20250305  [{net.get github.com []  }]", "deny code_execution_20250825 capability_absent []"},
		},
		{
			"nobody",
			[]string{lookup},
			"omitted=web_search_20250305,code_execution_20250825",
			[]string{"allow   []", "deny web_search_20250305 capability_absent []", "deny code_execution_20250825 capability_absent []"},
		},
	} {
		t.Run(test.agent, func(t *testing.T) {
			before, events := len(v.saw()), len(v.events.of(guardrail.Decision))
			resp := v.ask("POST", messages, body, "X-Api-Key", "", "X-Api-Key", v.tokens[test.agent])
			if got := text(t, resp); resp.StatusCode != 200 {
				t.Fatalf("%d %s", resp.StatusCode, got)
			}
			if diff := cmp.Diff(test.tools, toolsIn(t, v.saw()[before].body)); diff != "" {
				t.Errorf("the tools differ (-want +got):\n%s", diff)
			}
			if got := resp.Header.Get(toolsHeader); got != test.header {
				t.Errorf("%s: %s, want %s", toolsHeader, got, test.header)
			}
			var got []string
			calls := map[string]bool{}
			for _, e := range v.events.of(guardrail.Decision)[events:] {
				got = append(got, fmt.Sprintf("%s %s %s %v", e.Decision, e.Tool, e.Code, e.Needs))
				calls[e.Call] = true
			}
			if diff := cmp.Diff(test.events, got); diff != "" || len(calls) != 1 {
				t.Errorf("the events of the calls %v differ (-want +got):\n%s", calls, diff)
			}
		})
	}
}

// TestConsultConnectors: the record of what an MCP server offers names its tools, as
// does that of a tool that was used although it is not offered.
func TestConsultConnectors(t *testing.T) {
	v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"content":[{"type":"mcp_tool_use","server_name":"a","name":"read"},{"type":"mcp_tool_use","server_name":"a","name":"write"}]}`)
	})
	for _, p := range v.vendors {
		p.Rules.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
	}
	v.adopt()
	text(t, v.ask("POST", messages, strings.Replace(greeting, "{", `{"mcp_servers":[{"type":"url","url":"https://mcp.hub.example/","name":"a"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"a"}],`, 1)))
	v.http.Close() // the handler has ended, and so has its record
	var got []string
	for _, e := range append(v.events.of(guardrail.Decision), v.events.of(guardrail.Notice)...) {
		got = append(got, fmt.Sprintf("%s %s %s %v", e.Decision, e.Tool, e.Code, e.Needs))
	}
	want := []string{
		"allow   [{tool.invoke hub.read []  }]", "allow mcp_servers_a  [{tool.invoke hub.read []  }]", "allow mcp_toolset_a  [{tool.invoke hub.read []  }]",
		" mcp_tool_use_write scope_violation []",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the events differ (-want +got):\n%s", diff)
	}
}

// TestConsultUnwritable: a body that cannot be rewritten safely reaches nobody.
func TestConsultUnwritable(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	search := `{"type":"web_search_20250305","name":"web_search"}`
	for _, test := range []struct {
		name, path, body string
		status           int
	}{
		{"truncated", messages, greeting[:len(greeting)-1], 400},
		{"nothing", messages, " ", 400},
		{"two documents", messages, greeting + greeting, 400},
		{"two tools", messages, strings.Replace(greeting, "{", `{"tools":[],"tools":[`+search+`],`, 1), 400},
		{"two tools in case", messages, strings.Replace(greeting, "{", `{"tools":[],"Tools":[`+search+`],`, 1), 400},
		{"two tools escaped", messages, strings.Replace(greeting, "{", `{"tools":[],"t\u006fols":[`+search+`],`, 1), 400},
		{"not UTF-8", messages, strings.Replace(greeting, "hello", "\xff", 1), 400},
		{"byte order mark", messages, "\xef\xbb\xbf" + greeting, 400},
		{"deep", messages, strings.Replace(greeting, `"hello"`, strings.Repeat("[", 100)+strings.Repeat("]", 100), 1), 400},
		{"a list", messages, "[" + greeting + "]", 400},
		{"a stored prompt", "/provider/openai/v1/responses", `{"model":"m","prompt":{"id":"pmpt_1"}}`, 403},
		{"a stored conversation", "/provider/openai/v1/responses", `{"model":"m","input":"x","conversation":"conv_1"}`, 403},
		{"a cache", "/provider/gemini/v1beta/models/gemini-x:generateContent", `{"contents":[],"cachedContent":"cachedContents/1"}`, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(v.events.all())
			resp := v.ask("POST", test.path, test.body)
			if got := text(t, resp); resp.StatusCode != test.status || !strings.Contains(got, `"error"`) {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			if n := len(v.events.all()) - before; n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
	if sent := v.saw(); len(sent) != 0 {
		t.Errorf("the provider saw %v", sent)
	}
}

// TestConsultBroken: an agent whose record cannot be loaded, or is gone, may ask nothing.
func TestConsultBroken(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	v.write("scout", "---\nclass: agent\ncapabilities: [net.get{hosts=\n---\n")
	v.adopt()
	resp := v.ask("POST", messages, greeting)
	if got := text(t, resp); resp.StatusCode != 403 || !strings.Contains(got, "invalid_config") || len(v.saw()) != 0 {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	must(t, os.Remove(filepath.Join(v.dir, "scout.md")))
	v.adopt()
	resp = v.ask("POST", messages, greeting)
	if got := text(t, resp); resp.StatusCode != 403 || !strings.Contains(got, "there is no record of the agent any more") || len(v.saw()) != 0 {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

// TestConsultManyTools: no request may fill the log with what it must not have.
func TestConsultManyTools(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	var tools []string
	for i := range 200 {
		tools = append(tools, fmt.Sprintf(`{"type":"code_execution_20250825","name":"code_execution_%d"}`, i))
	}
	resp := v.ask("POST", messages, strings.Replace(greeting, "{", `{"tools":[`+strings.Join(tools, ",")+`],`, 1))
	if got := text(t, resp); resp.StatusCode != 403 || !strings.Contains(got, "limit_exceeded") || len(v.saw()) != 0 || len(v.events.all()) != 1 {
		t.Errorf("%d %s, %d events", resp.StatusCode, got, len(v.events.all()))
	}
}

// TestConsultWritesNoSecret: neither the token that an agent writes into its request, nor the
// provider's key where it is longer than a name may be, comes into the events or the log.
func TestConsultWritesNoSecret(t *testing.T) {
	var token string
	v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		name := strings.Repeat("x", 40) + vendorKey
		page := `{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://` + token + `.evil.example/"}}`
		_, _ = io.WriteString(w, `{"content":[`+page+`,{"type":"mcp_`+name+`"},{"type":"mcp_tool_use","name":"`+name+`"}]}`)
	})
	for _, p := range v.vendors {
		p.Rules.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read"}}}
	}
	v.adopt()
	token = v.tokens["scout"]
	for _, member := range []string{
		`"tools":[{"type":"` + token + `","name":"x"}]`,
		`"tools":[{"type":"web_search_20250305","name":"web_search","` + token + `":1}]`,
		`"messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"` + token + `","input":{}}]}]`,
		`"` + token + `":1`,
		`"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://` + token + `.github.com/a.png"}}]}]`,
		`"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://` + strings.ToUpper(token) + `.github.com/a.png"}}]}]`,
		`"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["` + token + `.github.com","evil.example"]}]`,
	} {
		text(t, v.ask("POST", messages, `{"model":"c","max_tokens":1,`+member+`}`))
	}
	v.http.Close() // the handlers have ended, and so have their records
	written := v.log.String()
	for _, e := range v.events.all() {
		written += fmt.Sprintf("\n%+v", e)
	}
	for _, secret := range []string{token, vendorKey[:10]} {
		if at := strings.Index(strings.ToLower(written), strings.ToLower(secret)); at >= 0 { // as hosts are
			t.Errorf("%.200q", written[max(0, at-100):])
		}
	}
	if !strings.Contains(written, "mcp_tool_use_xxx") {
		t.Error("what an MCP server did is not written down")
	}
}
