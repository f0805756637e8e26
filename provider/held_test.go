package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/provider"
)

// waiting is an authority under which every use of some verbs waits for an approval.
type waiting struct {
	provider.Authority
	verbs []capability.Verb
}

func (w waiting) Waits(v capability.Verb) bool { return slices.Contains(w.verbs, v) }

// Hosts are none where every use waits, as of any authority.
func (w waiting) Hosts(v capability.Verb) []capability.Host {
	if w.Waits(v) {
		return nil
	}
	return w.Authority.Hosts(v)
}

// TestWaits: a tool that somebody has to approve does not go up, also where it rests on
// the hosts that are held and not on the verb that waits.
func TestWaits(t *testing.T) {
	for _, test := range []struct{ verb, where, body, sent, did string }{
		{"provider.web_search", messages, `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, `{}`, "omitted web_search_20250305 requires_approval"},
		{"provider.web_fetch", messages, `{"tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`, `{}`, "omitted web_fetch_20250910 requires_approval"},
		{"provider.web_search", responses, `{"tools":[{"type":"web_search"}]}`, `{}`, "omitted web_search requires_approval"},
		{"provider.web_search", "xai /v1/responses", `{"tools":[{"type":"web_search"}]}`, `{}`, "omitted web_search requires_approval"},
		{"provider.web_search", generate, `{"contents":[],"tools":[{"googleSearch":{}}]}`, `{"contents":[]}`, "omitted googleSearch requires_approval"},
		{"provider.web_fetch", generate, `{"contents":[],"tools":[{"urlContext":{}}]}`, `{"contents":[]}`, "omitted urlContext requires_approval"},
		{"provider.web_search", "openrouter /v1/chat/completions", `{"model":"x/y","tools":[{"type":"openrouter:web_search"}],"plugins":[{"id":"web"}]}`, `{"model":"x/y"}`, "omitted openrouter:web_search requires_approval; omitted plugin web requires_approval"},
		{"provider.web_fetch", "openrouter /v1/chat/completions", `{"model":"x/y","tools":[{"type":"openrouter:web_fetch"}],"plugins":[{"id":"web-fetch"}]}`, `{"model":"x/y"}`, "omitted openrouter:web_fetch requires_approval; omitted plugin web-fetch requires_approval"},
		{"provider.web_search", "perplexity /chat/completions", `{"model":"sonar"}`, "", "requires_approval"},
		{"provider.web_search", "openrouter /v1/chat/completions", `{"model":"x/y:online"}`, "", "requires_approval"},
		{"net.get", messages, `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, `{}`, "omitted web_search_20250305 requires_approval"},
		{"net.get", "perplexity /chat/completions", `{"model":"sonar"}`, "", "requires_approval"},
	} {
		for _, held := range []string{"*", "*.github.com"} {
			p := holding(t, hosts(held))
			p.Authority = waiting{p.Authority, []capability.Verb{capability.Verb(test.verb)}}
			out, changes, refused := rewrite(t, test.where, test.body, p)
			got := did(changes)
			if refused != nil {
				got = string(refused.Code)
			}
			if held != "*" && strings.Contains(test.body, ":online") {
				continue // it takes no list, so that this agent does not hold it at all
			}
			if held == "*" && test.verb == "net.get" {
				continue // the authority says it for any host
			}
			if out != test.sent || got != test.did {
				t.Errorf("%s with %s: sent %q, did %q; want %q, %q", test.body, held, out, got, test.sent, test.did)
			}
		}
	}
}

// TestUses: what a request rests on is told when it goes up, and only what stays in it.
func TestUses(t *testing.T) {
	grants := []string{hosts("*.github.com", "a.example"), "provider.code_execution", "tool.invoke{tools=[hub.read]}"}
	for name, test := range map[string]struct {
		where, body string
		grants      []string
		uses        []string
	}{
		"texts":                   {messages, `{"messages":[{"role":"user","content":"x"}]}`, grants, nil},
		"a list as it is held":    {messages, `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["github.com"]}]}`, grants, []string{"net.get github.com"}},
		"each once":               {messages, `{"tools":[{"type":"web_search_20250305","name":"web_search"},{"type":"web_fetch_20250910","name":"web_fetch"}]}`, grants, []string{"net.get a.example", "net.get github.com"}},
		"every host":              {messages, `{"tools":[{"type":"web_search_20250305","name":"web_search"}]}`, []string{hosts("*")}, []string{"net.get *"}},
		"a tool without a scope":  {messages, `{"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}`, grants, []string{"provider.code_execution "}},
		"code that calls a tool":  {messages, `{"tools":[{"name":"mine","input_schema":{},"allowed_callers":["code_execution_20250825"]}]}`, grants, []string{"provider.code_execution "}},
		"a tool of nobody's code": {messages, `{"tools":[{"name":"mine","input_schema":{},"allowed_callers":["direct"]}]}`, grants, nil},
		"what was left out":       {responses, `{"input":"x","tools":[{"type":"code_interpreter","container":"cntr_1"},{"type":"function","name":"f"}]}`, grants, nil},
		"a page":                  {messages, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://api.github.com/x.png"}}]}]}`, grants, []string{"net.get api.github.com:443"}},
		"a foreign tool":          {responses, `{"input":"x","tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.hub.example/","allowed_tools":["read"],"require_approval":"always"}]}`, grants, []string{"tool.invoke hub.read"}},
		"a foreign server":        {messages, `{"mcp_servers":[{"type":"url","url":"https://mcp.hub.example/","name":"a","tool_configuration":{"allowed_tools":["read"]}}]}`, grants, []string{"tool.invoke hub.read"}},
		"a search of any page":    {generate, `{"contents":[],"tools":[{"googleSearch":{}}]}`, []string{"provider.web_search"}, []string{"provider.web_search "}},
		"a search of a model":     {"perplexity /chat/completions", `{"model":"sonar"}`, grants, []string{"net.get a.example", "net.get github.com"}},
		"a container's network": {
			responses, `{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":["a.example"]}}}]}`,
			append(slices.Clone(grants), "net.post{hosts=[a.example]}", "net.put{hosts=[a.example]}", "net.delete{hosts=[a.example]}"),
			[]string{"provider.code_execution ", "net.get a.example", "net.post a.example", "net.put a.example", "net.delete a.example"},
		},
		"a request that is refused": {messages, `{"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"thread":"t"}`, grants, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := holding(t, test.grants...)
			p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
			var uses []string
			p.Uses = func(v capability.Verb, object string) { uses = append(uses, string(v)+" "+object) }
			rewrite(t, test.where, test.body, p)
			if diff := cmp.Diff(test.uses, uses); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// asking notes which verbs are asked about.
type asking struct{ verbs *[]string }

func (asking) Hosts(capability.Verb) []capability.Host { return nil }
func (asking) Waits(capability.Verb) bool              { return false }

func (a asking) Require(need *capability.Requirement) capability.Decision {
	*a.verbs = append(*a.verbs, string(need.Verb()))
	return capability.Denial(capability.CapabilityAbsent, need)
}

// TestAsked: the verbs of the catalogue are those that are asked about.
func TestAsked(t *testing.T) {
	var asked []string
	p := provider.Policy{Authority: asking{&asked}}
	for _, vendor := range provider.Vendors() {
		vendor.Translate(p)
	}
	for _, one := range []struct{ where, body string }{
		{"openrouter /v1/responses", `{"model":"x/y","input":"x","tools":[{"type":"openrouter:subagent"},{"type":"openrouter:files"},{"type":"openrouter:browser_use"}]}`},
		{"xai /v1/responses", `{"input":"x","tools":[{"type":"view_image"}]}`},
		{messages, `{"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}]}`},
	} {
		rewrite(t, one.where, one.body, p)
	}
	holding := holding(t, "provider.code_execution")
	holding.Authority = union{holding.Authority, p.Authority}
	rewrite(t, messages, `{"container":{"skills":[{"skill_id":"a"}]}}`, holding)
	asked = slices.DeleteFunc(asked, func(v string) bool { return !strings.HasPrefix(v, "provider.") })
	slices.Sort(asked)
	var listed []string
	for _, e := range capability.Catalogue() {
		if e.Verb.Resource() == "provider" {
			listed = append(listed, string(e.Verb))
		}
	}
	if diff := cmp.Diff(listed, slices.Compact(asked)); diff != "" {
		t.Errorf("listed (-) and asked (+):\n%s", diff)
	}
}

// union holds what the first holds, and asks the second about the rest.
type union struct{ first, rest provider.Authority }

func (u union) Hosts(capability.Verb) []capability.Host { return nil }
func (u union) Waits(capability.Verb) bool              { return false }

func (u union) Require(need *capability.Requirement) capability.Decision {
	if d := u.first.Require(need); d.Allowed() {
		return d
	}
	return u.rest.Require(need)
}

// TestEmbeddings: a request for embeddings carries content and nothing that runs.
func TestEmbeddings(t *testing.T) {
	const one, several = "gemini /v1beta/models/gemini-embedding-001:embedContent", "gemini /v1beta/models/gemini-embedding-001:batchEmbedContents"
	content := `{"role":"user","parts":[{"text":"hello"}]}`
	file := `{"parts":[{"fileData":{"fileUri":"https://evil.example/a.pdf"}}]}`
	for name, test := range map[string]struct {
		where, body string
		code        capability.Code
	}{
		"one":                  {one, `{"model":"models/gemini-embedding-001","content":` + content + `,"taskType":"RETRIEVAL_QUERY","title":"t","outputDimensionality":8}`, ""},
		"several":              {several, `{"requests":[{"model":"models/gemini-embedding-001","content":` + content + `,"output_dimensionality":8}]}`, ""},
		"a page":               {one, `{"content":` + file + `}`, capability.ScopeViolation},
		"a page in one of all": {several, `{"requests":[{"content":` + content + `},{"content":` + file + `}]}`, capability.ScopeViolation},
		"tools":                {one, `{"content":` + content + `,"tools":[{"googleSearch":{}}]}`, capability.NotAvailable},
		"requests in requests": {several, `{"requests":[{"requests":[]}]}`, capability.NotAvailable},
		"a cache":              {several, `{"requests":[{"cachedContent":"x"}]}`, capability.NotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			out, changes, refused := rewrite(t, test.where, test.body, holding(t, hosts("github.com")))
			switch {
			case refused != nil && refused.Code != test.code:
				t.Error(refused)
			case refused == nil && (test.code != "" || out != test.body || len(changes) > 0):
				t.Errorf("sent %s, %v", out, changes)
			}
		})
	}
	vendor, _ := provider.Lookup("gemini")
	if _, err := vendor.Endpoint("POST", "/v1beta/models/m:asyncBatchEmbedContent", ""); err == nil {
		t.Error("a batch is open")
	}
}

// refusing denies everything with one code.
type refusing capability.Code

func (refusing) Hosts(capability.Verb) []capability.Host { return nil }
func (refusing) Waits(capability.Verb) bool              { return false }

func (r refusing) Require(need *capability.Requirement) capability.Decision {
	return capability.Denial(capability.Code(r), need)
}

// TestWithheld: what is said of a connector that is left out is why its tools are not
// allowed, and of a server that is none that it is foreign.
func TestWithheld(t *testing.T) {
	for _, test := range []struct {
		code           capability.Code
		url, want, why string
	}{
		{capability.RequiresApproval, "https://mcp.hub.example/", "requires_approval", "nobody can approve a tool of hub"},
		{capability.NotAvailable, "https://mcp.hub.example/", "not_available", "nothing declares what a tool of hub"},
		{capability.CapabilityAbsent, "https://mcp.hub.example/", "capability_absent", "no tool of hub is covered"},
		{capability.RequiresApproval, "https://evil.example/", "scope_violation", "connects to no MCP server"},
	} {
		for where, body := range map[string]string{
			messages:  `{"mcp_servers":[{"type":"url","url":"` + test.url + `","name":"a"}]}`,
			responses: `{"tools":[{"type":"mcp","server_label":"a","server_url":"` + test.url + `"}]}`,
		} {
			p := provider.Policy{Authority: refusing(test.code), Connectors: []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read"}}}}
			_, changes, _ := rewrite(t, where, body, p)
			if len(changes) != 1 || string(changes[0].Code) != test.want || !strings.Contains(changes[0].Why, test.why) {
				t.Errorf("%s: %v", body, changes)
			}
		}
	}
}

// TestLeftOut: what a tool names refuses no request that the tool is left out of.
func TestLeftOut(t *testing.T) {
	for _, tool := range []string{
		`{"type":"openrouter:subagent","parameters":{"model":"x/y:online"}}`,
		`{"type":"openrouter:advisor","parameters":{"model":"x/y:online"}}`,
		`{"type":"openrouter:image_generation","parameters":{"mask":{"image_url":"https://evil.example/a.png"}}}`,
	} {
		body := `{"model":"x/y","messages":[],"tools":[` + tool + `]}`
		out, changes, refused := rewrite(t, router, body, holding(t))
		if out != `{"model":"x/y","messages":[]}` || len(changes) != 1 || refused != nil {
			t.Errorf("%s: sent %q, %v, %v", tool, out, changes, refused)
		}
		all := holding(t, "provider.subagent", "provider.advisor", "provider.image_generation")
		if _, _, refused := rewrite(t, router, body, all); refused == nil {
			t.Errorf("%s goes up for who holds the tool and not what it names", tool)
		}
	}
}

// TestDangling: a conversation that has found a tool, or takes one away, goes on without
// the tools that are left out, as no provider takes a reference to what is not there.
func TestDangling(t *testing.T) {
	const (
		all   = `{"tools":[{"name":"f"},{"type":"code_execution_20250825","name":"code_execution"}],`
		turns = `"messages":[{"role":"assistant","content":[{"type":"tool_search_tool_result","tool_use_id":"a","content":{"type":"tool_search_tool_search_result","tool_references":[%s]}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[%[1]s]},{"type":"tool_result","tool_use_id":"c","content":%s}]},` +
			`{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}%s]}]}`
		mine   = `{"type":"tool_reference","tool_name":"f"}`
		theirs = `{"type":"tool_reference","tool_name":"code_execution"}`
		other  = `,{"type":"tool_reference","tool_name":"g"}` // which no tool was ever called
		away   = `,{"type":"tool_removal","tool":{"type":"tool_reference","name":"code_execution"}}` +
			`,{"type":"tool_removal","tool":{"type":"mcp_tool_reference","server_name":"s","name":"t"}}`
	)
	kept := `{"tools":[{"name":"f"}],` + fmt.Sprintf(turns, mine+other, "[]", "")
	rewriting{where: messages, body: kept}.run(t)
	rewriting{
		where: messages, body: all + fmt.Sprintf(turns, mine+","+theirs+other, "["+theirs+"]", away),
		sent: `{"tools":[{"name":"f"}],` + fmt.Sprintf(turns, mine+other, `[{"type":"text","text":"what stood here is left out"}]`, ""),
		did:  "omitted code_execution_20250825 capability_absent; repaired tool_reference; repaired tool_removal; repaired tool_removal",
	}.run(t)
	held := rewriting{where: messages, grants: []string{"provider.code_execution"}, body: all + fmt.Sprintf(turns, theirs, "["+theirs+"]", "")}
	held.run(t)
	const definition = `"definition":{"type":"code_execution_20250825","name":"code_execution"}}}]}]}`
	for _, block := range []string{
		`tool_removal","tool":{"type":"tool_definition"`, `tool_removal","tool":{"type":"tool_reference","name":"f"`,
		`tool_addition","tool":{"type":"tool_reference","name":"f"`,
	} {
		if out, _, refused := rewrite(t, messages, `{"messages":[{"role":"system","content":[{"type":"`+block+`,`+definition, holding(t)); refused == nil {
			t.Errorf("a tool is defined where one is named: %s", out)
		}
	}
}

// TestMoved: the mark of what is cached goes to the last tool that may carry it, whatever
// else is left out that is called the same.
func TestMoved(t *testing.T) {
	const (
		mark    = `"cache_control":{"type":"ephemeral"}`
		marked  = `{"type":"code_execution_20250825","name":"code_execution",` + mark + `}`
		servers = `"mcp_servers":[{"type":"url","url":"https://mcp.hub.example/","name":"a","tool_configuration":{"allowed_tools":["read"]}}`
		toolset = `{"type":"mcp_toolset","mcp_server_name":"a","configs":{"read":{"enabled":true}},"default_config":{"enabled":false}}`
		other   = `{"type":"mcp_toolset","mcp_server_name":"b"`
		later   = `{"name":"g","defer_loading":true}`
		did     = "omitted code_execution_20250825 capability_absent; repaired cache_control"
	)
	listed := func(p *provider.Policy) {
		p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read"}}}
	}
	end := func(tool string) string { return strings.TrimSuffix(tool, "}") + "," + mark + "}" }
	for name, test := range map[string]rewriting{
		"behind a toolset that is left out": {
			body: `{` + servers + `],"tools":[` + toolset + `,` + other + `},` + marked + `]}`,
			sent: `{` + servers + `],"tools":[` + end(toolset) + `]}`,
			did:  "omitted mcp_toolset scope_violation; " + did,
		},
		"of a toolset that is left out": {
			body: `{` + servers + `],"tools":[` + toolset + `,` + end(other+"}") + `]}`,
			sent: `{` + servers + `],"tools":[` + end(toolset) + `]}`,
			did:  "omitted mcp_toolset scope_violation; repaired cache_control",
		},
		"behind what is loaded later": {
			body: `{"tools":[{"name":"f"},` + later + `,` + marked + `]}`, sent: `{"tools":[{"name":"f",` + mark + `},` + later + `]}`, did: did,
		},
		"before what is loaded later": {
			body: `{"tools":[{"name":"f"},` + marked + `,` + later + `]}`, sent: `{"tools":[{"name":"f",` + mark + `},` + later + `]}`, did: did,
		},
		"behind nothing else": {
			body: `{"tools":[` + later + `,` + marked + `]}`, sent: `{"tools":[` + later + `]}`, did: "omitted code_execution_20250825 capability_absent",
		},
		"behind a toolset that is loaded later": {
			body: `{` + servers + `],"tools":[{"name":"f"},` + strings.Replace(toolset, "false}", `false,"defer_loading":true}`, 1) + `,` + marked + `]}`,
			sent: `{` + servers + `],"tools":[{"name":"f",` + mark + `},` + strings.Replace(toolset, "false}", `false,"defer_loading":true}`, 1) + `]}`, did: did,
		},
	} {
		test.where, test.grants, test.change = messages, []string{"tool.invoke{tools=[hub.read]}"}, listed
		t.Run(name, test.run)
	}
}
