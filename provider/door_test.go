package provider_test

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// TestBackDoors: what refers to the provider's store, names an address or has
// something run there, without looking like it. What opens the same door with
// every right to goes through.
func TestBackDoors(t *testing.T) {
	hub := func(p *provider.Policy) {
		p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
	}
	const read = `{"tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.hub.example/","allowed_tools":["read"],"require_approval":"always"}],"input":[`
	const consent = `{"type":"mcp_approval_response","approval_request_id":"r1","approve":true}`
	request := func(label, tool string) string {
		return `{"type":"mcp_approval_request","id":"r1","server_label":"` + label + `","name":"` + tool + `","arguments":"{}"}`
	}
	inAssistant := func(members, blocks string) string {
		return `{` + members + `"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[` + blocks + `]}]}`
	}
	const ask = `{"type":"server_tool_use","id":"s1","name":"bash_code_execution","input":{}}`
	const code = `"tools":[{"type":"code_execution_20250825","name":"code_execution"}],`
	for name, test := range map[string]struct {
		where, body string
		grants      []string
		change      func(*provider.Policy)
		code        capability.Code // "" passes
		out         string          // "" as it is
	}{
		"an item that is stored, without its type": {where: responses, body: `{"input":[{"id":"msg_1"}]}`, code: capability.Forbidden},
		"the same, of no type":                     {where: responses, body: `{"input":[{"type":null,"id":"msg_1","role":"user","content":"a"}]}`, code: capability.Forbidden},
		"the same, half a message":                 {where: responses, body: `{"input":[{"id":"msg_1","role":"user"}]}`, code: capability.Forbidden},
		"a message with an id":                     {where: responses, body: `{"input":[{"id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"a"}]}]}`},
		"a picture that is stored":                 {where: responses, body: `{"input":[{"type":"image_generation_call","id":"ig_1"}]}`, code: capability.CapabilityAbsent},
		"a picture that is not there":              {where: responses, body: `{"input":[{"type":"image_generation_call","id":"ig_1","result":null}]}`, code: capability.CapabilityAbsent},
		"a picture that comes along":               {where: responses, body: `{"input":[{"type":"image_generation_call","id":"ig_1","result":"aGk=","status":"completed"}]}`},
		"a picture that code drew":                 {where: responses, body: `{"input":[{"type":"code_interpreter_call","id":"ci_1","code":"","container_id":"c","outputs":[{"type":"image","url":"https://evil.example/a"}]}]}`, code: capability.CapabilityAbsent},
		"what code wrote":                          {where: responses, body: `{"input":[{"type":"code_interpreter_call","id":"ci_1","code":"","container_id":"c","outputs":[{"type":"logs","logs":"https://a.example"}]}]}`},
		"a shell in a container of somebody":       {where: responses, body: `{"input":[{"type":"shell_call","call_id":"c","action":{"commands":["id"]},"environment":{"type":"container_reference","container_id":"x"}}]}`, code: capability.CapabilityAbsent},
		"a shell at the agent":                     {where: responses, body: `{"input":[{"type":"shell_call","call_id":"c","action":{"commands":["id"]},"environment":{"type":"local"}}]}`},
		"instructions that are items":              {where: responses, body: `{"instructions":[{"type":"additional_tools","tools":[{"type":"web_search"}]}]}`, code: capability.MalformedRequest},

		"sound from elsewhere":            {where: mistral, body: `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":"https://evil.example/a.mp3"}]}]}`, code: capability.CapabilityAbsent},
		"sound from elsewhere, inside":    {where: chats, body: `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"https://evil.example/a.mp3","format":"mp3"}}]}]}`, code: capability.CapabilityAbsent},
		"a page in a thought":             {where: mistral, body: `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"document_url","document_url":"https://evil.example/a"}]}]}]}`, code: capability.CapabilityAbsent},
		"a picture in a text":             {where: router, body: `{"model":"x/y","messages":[{"role":"assistant","content":[{"type":"text","text":{"type":"image_url","image_url":{"url":"https://evil.example/a"}}}]}]}`, code: capability.CapabilityAbsent},
		"a thought":                       {where: mistral, body: `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"see https://evil.example"},{"type":"reference","reference_ids":[1]},{"type":"tool_reference","tool":"web_search","title":"t","url":"https://evil.example"}],"closed":true}]}]}`},
		"a thought in a word":             {where: mistral, body: `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"https://evil.example"}]}]}`},
		"sound":                           {where: chats, body: `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"wav"}}]}]}`},
		"sound, in short":                 {where: mistral, body: `{"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":"aGk="}]}]}`},
		"an address behind spaces":        {where: router, body: `{"model":"x/y","messages":[{"role":"user","content":[{"type":"file","file":{"filename":"a","file_data":"                    https://evil.example/a"}}]}]}`, code: capability.CapabilityAbsent},
		"an address in a setting":         {where: messages, body: `{"context_management":{"edits":[{"type":"x","from":"                    https://evil.example/a"}]}}`, code: capability.Forbidden},
		"a store by its port":             {where: generate, grants: []string{hosts("*")}, body: `{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com:443/v1beta/files/x"}}]}]}`, code: capability.CapabilityAbsent},
		"a store in capitals":             {where: generate, grants: []string{hosts("*")}, body: `{"contents":[{"parts":[{"fileData":{"fileUri":"HTTPS://GenerativeLanguage.googleapis.com./v1beta/files/x"}}]}]}`, code: capability.CapabilityAbsent},
		"pictures for a picture":          {where: responses, grants: []string{"provider.image_generation"}, body: `{"tools":[{"type":"image_generation","more":[{"image_url":"https://evil.example"}]}]}`, code: capability.CapabilityAbsent},
		"an address by another name":      {where: responses, grants: []string{"provider.image_generation"}, body: `{"tools":[{"type":"image_generation","style":["https://evil.example"]}]}`, code: capability.CapabilityAbsent},
		"what a file search looks for":    {where: responses, grants: []string{"provider.file_search"}, body: `{"tools":[{"type":"file_search","vector_store_ids":["vs"],"filters":{"type":"eq","key":"from","value":"https://a.example"}}]}`},
		"tools of somebody who is called": {where: router, grants: []string{"provider.subagent"}, body: `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:subagent","parameters":{"tools":[{"type":"openrouter:web_search"}]}}]}`, code: capability.Forbidden},
		"a model that searches, called":   {where: router, grants: []string{"provider.subagent"}, body: `{"messages":[],"tools":[{"type":"openrouter:subagent","parameters":{"model":"perplexity/sonar"}}]}`, code: capability.CapabilityAbsent},
		"models that search, called":      {where: router, grants: []string{"provider.subagent"}, body: `{"messages":[],"tools":[{"type":"openrouter:subagent","parameters":{"models":["x/y","x/y:online"]}}]}`, code: capability.CapabilityAbsent},
		"a model that is called":          {where: router, grants: []string{"provider.subagent"}, body: `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:subagent","parameters":{"model":"x/y"}}]}`},
		"a search that can't be off":      {where: sonar, body: `{"model":"sonar-deep-research","disable_search":true,"messages":[]}`, code: capability.CapabilityAbsent},

		"a choice of a server":          {where: responses, body: `{"tools":[],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.evil.example/"}]}}`, code: capability.NotAvailable},
		"a choice of a tool, described": {where: chats, body: `{"messages":[],"tool_choice":{"type":"web_search","filters":{}}}`, code: capability.NotAvailable},
		"a choice and nothing":          {where: chats, body: `{"messages":[],"tool_choice":{"type":"web_search","filters":null}}`, out: `{"messages":[]}`},
		"a choice of two lists":         {where: responses, body: `{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}],"allowed_tools":{"mode":"auto","tools":[{"type":"function","name":"f"}]}}}`, out: `{}`},
		"a choice of the other list":    {where: responses, body: `{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}],"allowed_tools":{"mode":"auto","tools":[{"type":"web_search"}]}}}`, out: `{}`},
		"a choice of what is a list":    {where: chats, body: `{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":[{"type":"web_search"}]}}`, out: `{"messages":[]}`},
		"a choice of a tool":            {where: chats, body: `{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}}`},
		"a choice at Anthropic":         {where: messages, body: `{"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}}`},
		"the old functions":             {where: chats, change: func(p *provider.Policy) { p.Relayed = true }, body: `{"messages":[],"functions":[{"name":"google_search"}]}`, code: capability.Forbidden},
		"the old functions, plainly":    {where: chats, change: func(p *provider.Policy) { p.Relayed = true }, body: `{"messages":[],"functions":[{"name":"f"}]}`},

		"pictures for a style":   {where: router, body: `{"model":"x/y","messages":[],"image_config":{"super_resolution_references":["https://evil.example/a"]}}`, code: capability.CapabilityAbsent},
		"a style":                {where: router, body: `{"model":"x/y","messages":[],"image_config":{"aspect_ratio":"1:1"}}`},
		"a picture beside words": {where: router, body: `{"model":"x/y","messages":[{"role":"assistant","content":"a","annotations":[{"type":"file","file":{"hash":"h","content":[{"type":"image_url","image_url":{"url":"https://evil.example/a"}}]}}]}]}`, code: capability.CapabilityAbsent},
		"a page that is cited":   {where: router, body: `{"model":"x/y","messages":[{"role":"assistant","content":"a","annotations":[{"type":"url_citation","url_citation":{"url":"https://a.example"}},{"type":"file","file":{"hash":"h","content":[{"type":"text","text":"https://a.example"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}}]}]}`},

		"consent to what is granted":     {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + request("a", "read") + "," + consent + `]}`},
		"consent to another tool":        {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + request("a", "write") + "," + consent + `]}`, code: capability.ScopeViolation},
		"consent to another server":      {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + request("b", "read") + "," + consent + `]}`, code: capability.ScopeViolation},
		"consent to what is not shown":   {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + consent + `]}`, code: capability.ScopeViolation},
		"consent without any connection": {where: responses, change: hub, body: `{"input":[` + request("a", "read") + "," + consent + `]}`, code: capability.ScopeViolation},
		"a call that is not over":        {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + `{"type":"mcp_call","id":"m","server_label":"a","name":"write","arguments":"{}"}]}`, code: capability.ScopeViolation},
		"a call that is over":            {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + `{"type":"mcp_call","id":"m","server_label":"a","name":"write","arguments":"{}","output":"done"}]}`},
		"a list of what is granted":      {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + `{"type":"mcp_list_tools","id":"l","server_label":"a","tools":[{"name":"read","input_schema":{}}]}]}`},
		"a list of more":                 {where: responses, change: hub, grants: []string{"tool.invoke{tools=[hub.read]}"}, body: read + `{"type":"mcp_list_tools","id":"l","server_label":"a","tools":[{"name":"read","input_schema":{}},{"name":"write","input_schema":{}}]}]}`, code: capability.ScopeViolation},

		"code that waits to run, offered by nobody": {where: messages, body: inAssistant("", ask), code: capability.ScopeViolation},
		"code that waits, before a search": {
			where: messages, grants: []string{hosts("*")}, code: capability.ScopeViolation,
			body: inAssistant(`"tools":[{"type":"web_search_20250305","name":"web_search"}],`, ask+`,{"type":"server_tool_use","id":"s2","name":"web_search","input":{}}`),
		},
		"code that waits, before a note": {
			where: messages, code: capability.ScopeViolation,
			body: strings.Replace(inAssistant("", ask), "]}]}", `]},{"role":"user","content":[{"type":"text","text":"go on"}]}]}`, 1),
		},
		"code that has run":                         {where: messages, body: inAssistant("", ask+`,{"type":"bash_code_execution_tool_result","tool_use_id":"s1","content":{}}`)},
		"code that waits, and is offered":           {where: messages, grants: []string{"provider.code_execution"}, body: inAssistant(code, ask)},
		"a foreign tool that waits":                 {where: messages, body: inAssistant("", `{"type":"mcp_tool_use","id":"s1","server_name":"a","name":"write","input":{}}`), code: capability.ScopeViolation},
		"a search that waits, for the agent's tool": {where: messages, body: inAssistant(`"tools":[{"name":"web_search","input_schema":{}}],`, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`), code: capability.ScopeViolation},
		"a search that waits, and is offered":       {where: messages, grants: []string{hosts("*")}, body: inAssistant(`"tools":[{"type":"web_search_20250305","name":"web_search"}],`, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`)},
		"what waits has no name":                    {where: messages, body: inAssistant(`"tools":[{"name":"f","input_schema":{}}],`, `{"type":"server_tool_use","id":"s1","input":{}}`), code: capability.ScopeViolation},
		"tools of what was said, in no list":        {where: messages, body: inAssistant("", `{"type":"compaction","content":"a","tool_changes":{"0":{"type":"tool_addition"}}}`), code: capability.MalformedRequest},
		"a choice of more than there can be":        {where: responses, body: `{"tools":[{"type":"x"},{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[` + strings.Repeat(`{"type":"function","name":"f"},`, 1024) + `{"type":"function","name":"f"}]}}`, code: capability.LimitExceeded},

		"a foreign tool that was called": {where: messages, body: inAssistant("", `{"type":"mcp_tool_use","id":"s1","server_name":"a","name":"write","input":{}},{"type":"mcp_tool_result","tool_use_id":"s1","content":"a"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			p := holding(t, test.grants...)
			if test.change != nil {
				test.change(&p)
			}
			out, _, refused := rewrite(t, test.where, test.body, p)
			switch {
			case test.code == "" && (refused != nil || out != cmp.Or(test.out, test.body)):
				t.Errorf("%v; sent %s", refused, out)
			case test.code != "" && (refused == nil || refused.Code != test.code):
				t.Errorf("%v, want %s; sent %s", refused, test.code, out)
			}
		})
	}
}

// TestForeignReference: a tool of a server that stays is added by its name only if it
// is one of those that the agent may invoke.
func TestForeignReference(t *testing.T) {
	p := holding(t, "tool.invoke{tools=[hub.read]}")
	p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
	const body = `{"mcp_servers":[{"type":"url","name":"a","url":"https://mcp.hub.example/","tool_configuration":{"allowed_tools":["read"]}}],` +
		`"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"read":{"enabled":true}},"default_config":{"enabled":false}}],"messages":[{"role":"user","content":"a"}%s]}`
	bare := strings.Replace(fmt.Sprintf(body, `,{"role":"system","content":[{"type":"tool_addition","tool":{"type":"mcp_toolset_reference","server_name":"a"}}]}`), `"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"read":{"enabled":true}},"default_config":{"enabled":false}}],`, "", 1)
	if out, _, refused := rewrite(t, messages, bare, p); refused != nil || strings.Contains(out, "mcp_toolset_reference") {
		t.Errorf("a toolset that nothing limits: %s (%v)", out, refused)
	}
	for tool, stays := range map[string]bool{
		`{"type":"mcp_tool_reference","server_name":"a","name":"read"}`:  true,
		`{"type":"mcp_tool_reference","server_name":"a","name":"write"}`: false,
		`{"type":"mcp_tool_reference","server_name":"a"}`:                false,
		`{"type":"mcp_tool_reference","server_name":"b","name":"read"}`:  false,
		`{"type":"mcp_toolset_reference","server_name":"a"}`:             true,
		`{"type":"mcp_toolset_reference","server_name":"b"}`:             false,
	} {
		asked := fmt.Sprintf(body, `,{"role":"system","content":[{"type":"tool_addition","tool":`+tool+`}]}`)
		want := asked
		if !stays {
			want = fmt.Sprintf(body, "")
		}
		if out, _, refused := rewrite(t, messages, asked, p); out != want {
			t.Errorf("%s: %s (%v)", tool, out, refused)
		}
	}
}

// TestWhereCodeRuns: each tool that runs code says where in one member, and another
// one does not make it look like the agent's.
func TestWhereCodeRuns(t *testing.T) {
	for _, tool := range []string{
		`{"type":"shell","container":{"type":"local"},"environment":{"type":"container_auto"}}`,
		`{"type":"shell","container":{"type":"local"}}`,
		`{"type":"code_interpreter","container":{"type":"local"}}`,
		`{"type":"code_interpreter","environment":{"type":"local"}}`,
		`{"type":"code_interpreter","environment":{"type":"local"},"container":"cntr_1"}`,
	} {
		if out, _, refused := rewrite(t, responses, `{"tools":[`+tool+`]}`, holding(t)); out != `{}` {
			t.Errorf("%s: %s (%v)", tool, out, refused)
		}
	}
	for _, tool := range []string{`{"type":"shell"}`, `{"type":"shell","environment":null}`, `{"type":"code_interpreter"}`} {
		if out, _, refused := rewrite(t, responses, `{"tools":[`+tool+`]}`, holding(t, "provider.code_execution")); out != `{}` {
			t.Errorf("%s, held: %s (%v)", tool, out, refused)
		}
	}
}

// TestRoutedSession: code at OpenRouter does not run in the container of a session, or
// of a call that the input says was made, which all who have the key could name.
func TestRoutedSession(t *testing.T) {
	const model = `{"model":"x/y",`
	const tools = `"tools":[{"type":"openrouter:shell","parameters":{"environment":{"type":"container_auto","network_policy":{"type":"disabled"}}}}]`
	for before, stays := range map[string]bool{
		`"session_id":"main"`:       false,
		`"session_id":["main"]`:     false,
		`"prompt_cache_key":"main"`: false,
		`"session_id":null`:         true,
		`"prompt_cache_key":null`:   true,
		`"user":"main"`:             true,
		`"input":[{"type":"shell_call_output","call_id":"c","output":[],"container_id":"sess_main"}]`: false,
		`"input":[{"type":"shell_call_output","call_id":"c","output":[],"container_id":null}]`:        true,
	} {
		for _, where := range []string{router, "openrouter /v1/responses"} {
			want := model + before + "}"
			if stays {
				want = model + before + "," + tools + "}"
			}
			out, _, refused := rewrite(t, where, model+before+","+tools+"}", holding(t, "provider.code_execution"))
			if where == router && strings.HasPrefix(before, `"input"`) {
				continue // which is no member of a chat
			}
			if refused != nil || out != want {
				t.Errorf("%s %s: %s (%v)", where, before, out, refused)
			}
		}
	}
}

// TestRoutedNetwork: a container of OpenRouter is a new one, and reaches what every net
// verb holds.
func TestRoutedNetwork(t *testing.T) {
	var all []string
	for _, verb := range []string{"get", "post", "put", "delete"} {
		all = append(all, "net."+verb+"{hosts=[a.example.com]}")
	}
	const body, bare = `{"model":"x/y","tools":[{"type":"openrouter:shell"%s}]}`, `{"model":"x/y"}`
	auto := func(more string) string { return `,"parameters":{"environment":{"type":"container_auto"` + more + `}}` }
	const none, one = `,"network_policy":{"type":"disabled"}`, `,"network_policy":{"type":"allowlist","allowed_domains":["a.example.com"]}`
	const every = `,"network_policy":{"type":"allowlist","allowed_domains":["*"]}`
	for asked, want := range map[string][2]string{ // without hosts, and with one
		auto(""):                                {auto(""), auto("")},
		auto(none):                              {auto(none), auto(none)},
		auto(one):                               {auto(none), auto(one)},
		auto(every):                             {auto(none), auto(none)},
		``:                                      {},
		`,"parameters":{"engine":"openrouter"}`: {},
		`,"parameters":{"environment":{"type":"container_reference","container_id":"of-another"}}`: {},
		`,"parameters":{"environment":{"type":"local"}}`:                                           {},
		`,"environment":{"type":"container_auto"}`:                                                 {},
		`,"parameters":{"environment":{"type":"container_auto","file_ids":["or_file_1"]}}`:         {},
		`,"parameters":{"environment":{"type":"container_auto"},"network_policy":{"type":"open"}}`: {},
	} {
		for i, grants := range [][]string{nil, all} {
			sent := bare
			if want[i] != "" {
				sent = fmt.Sprintf(body, want[i])
			}
			for _, where := range []string{router, "openrouter /v1/responses"} {
				out, changes, refused := rewrite(t, where, fmt.Sprintf(body, asked), holding(t, append(grants, "provider.code_execution")...))
				if refused != nil || out != sent {
					t.Errorf("%s %s, %d hosts: %s (%v)", where, asked, i, out, refused)
				}
				wide := slices.ContainsFunc(changes, func(c provider.Change) bool { return c.Did == provider.Wider })
				if wide != strings.Contains(sent, "a.example.com") { // some models run it at OpenAI
					t.Errorf("%s %s, %d hosts: wider is %v", where, asked, i, wide)
				}
			}
		}
		if out, _, refused := rewrite(t, router, fmt.Sprintf(body, asked), holding(t, all...)); refused != nil || out != bare {
			t.Errorf("%s, not held: %s (%v)", asked, out, refused)
		}
	}
}

// TestNetwork: a container's network is written anew unless it is what is held, and
// nothing beside that.
func TestNetwork(t *testing.T) {
	var grants []string
	for _, verb := range []string{"get", "post", "put", "delete"} {
		grants = append(grants, "net."+verb+"{hosts=[*.a.example.com]}")
	}
	const body = `{"tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":%s}}]}`
	const held = `{"type":"allowlist","allowed_domains":["a.example.com"]}`
	for policy, want := range map[string]string{
		held: held,
		`{"type":"allowlist","allowed_domains":["a.example.com"],"domain_secrets":[{"domain":"a.example.com","name":"n","value":"v"}]}`: held,
		`{"type":"open","allowed_domains":["a.example.com"]}`:                                                                           held,
		`{"allowed_domains":["a.example.com"]}`:                                                                                         held,
		`{"type":"disabled"}`:                                                                                                           `{"type":"disabled"}`,
		`{"type":"disabled","allowed_domains":["b.example.com"]}`:                                                                       `{"type":"disabled"}`,
		`{"type":"allowlist","allowed_domains":["b.example.com"],"more":1}`:                                                             `{"type":"disabled"}`,
	} {
		if out, _, refused := rewrite(t, responses, fmt.Sprintf(body, policy), holding(t, append(grants, "provider.code_execution")...)); out != fmt.Sprintf(body, want) {
			t.Errorf("%s: %s (%v)", policy, out, refused)
		}
	}
}

// TestSameNames: a name that is asked for again and again, in whichever spelling,
// costs no more than the list is long.
func TestSameNames(t *testing.T) {
	var held, names []string
	for i := range 50 {
		held = append(held, fmt.Sprintf("*.h%d.example.com", i))
	}
	for i := range 1000 {
		name := []byte("example.com")
		for bit := range 7 {
			if i>>bit&1 == 1 {
				name[bit] -= 'a' - 'A'
			}
		}
		names = append(names, `"`+string(name)+`"`)
	}
	p := holding(t, hosts(held...))
	ask := func(names string) string {
		out, _, refused := rewrite(t, messages, `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":[`+names+`]}]}`, p)
		if refused != nil {
			t.Fatal(refused)
		}
		return out
	}
	once, often := ask(names[0]), ask(strings.Join(names, ","))
	if once != often || strings.Count(once, "example.com") != len(held) {
		t.Errorf("once:  %s\noften: %s", once, often)
	}
}

// TestSameNamesCost: the spellings of one name cost no more memory than as many names do,
// for a search and for the network of a container.
func TestSameNamesCost(t *testing.T) {
	const search = `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":[%s]}]}`
	const box = `{"tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":[%s]}}}]}`
	grants := []string{"provider.code_execution", `net.post{hosts=["*"]}`, `net.put{hosts=["*"]}`, `net.delete{hosts=["*"]}`}
	var held, alike, apart []string
	for i := range 500 {
		held = append(held, fmt.Sprintf("h%d.example.com", i))
		name := []byte("example.com")
		for bit := range 9 {
			if i>>bit&1 == 1 {
				name[bit%7+bit/7*8] -= 'a' - 'A' // none of them is the dot
			}
		}
		alike = append(alike, `"`+string(name)+`"`, fmt.Sprintf(`"x%d.example.com"`, i))
		apart = append(apart, fmt.Sprintf(`"a%d.example.org"`, i), fmt.Sprintf(`"b%d.example.net"`, i))
	}
	for where, test := range map[string]struct{ body, gets string }{
		messages:  {search, hosts(held...)},
		responses: {box, hosts("*")},
	} {
		p := holding(t, append(grants, test.gets)...)
		cost := func(names []string) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			rewrite(t, where, fmt.Sprintf(test.body, strings.Join(names, ",")), p)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if same, other := cost(alike), cost(apart); same > 2*other {
			t.Errorf("%s: %d bytes for one name, %d for as many names", where, same, other)
		}
	}
}

// TestNamelessAdvisor: where openrouter:advisor names no model, the executing model does
// in its call, so that a prompt has any model asked, also one that searches the web.
func TestNamelessAdvisor(t *testing.T) {
	const rest = `"model":"x/y","messages":[]`
	for name, test := range map[string]struct{ parameters, did string }{
		"no settings":         {"", "omitted openrouter:advisor not_available"},
		"settings of nothing": {`,"parameters":{}`, "omitted openrouter:advisor not_available"},
		"no model":            {`,"parameters":{"name":"a"}`, "omitted openrouter:advisor not_available"},
		"an empty model":      {`,"parameters":{"model":" "}`, "omitted openrouter:advisor not_available"},
		"a model":             {`,"parameters":{"model":"x/z"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			body := `{` + rest + `,"tools":[{"type":"openrouter:advisor"` + test.parameters + `}]}`
			want := body
			if test.did != "" {
				want = `{` + rest + `}`
			}
			rewriting{where: router, body: body, grants: []string{"provider.advisor"}, sent: want, did: test.did}.run(t)
		})
	}
}

// TestSuffixesBeneath: a name that public suffixes stand directly beneath is none to
// search, no more than a public suffix itself is.
func TestSuffixesBeneath(t *testing.T) {
	for _, name := range []string{"co.uk", "github.io", "kawasaki.jp", "sch.uk", "compute.amazonaws.com"} {
		for _, held := range []string{name, "*." + name} {
			t.Run(held, func(t *testing.T) {
				rewriting{where: responses, body: `{"model":"m","tools":[{"type":"web_search"}]}`, grants: []string{hosts(held)}, sent: `{"model":"m"}`, did: "omitted web_search scope_violation"}.run(t)
			})
		}
	}
	rewriting{where: responses, body: `{"model":"m","include":["web_search_call.action.sources"],"tools":[{"type":"web_search","filters":{"allowed_domains":["city.kawasaki.jp"]}}]}`, grants: []string{hosts("*.city.kawasaki.jp")}}.run(t)
}

// TestStoreByAddress: a file that Google keeps is one in every form of a request, as
// gateways hand its address on.
func TestStoreByAddress(t *testing.T) {
	const body = `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://generativelanguage.googleapis.com/v1beta/files/abc"}}]}]}`
	for _, where := range []string{"gemini /v1beta/openai/chat/completions", chats} {
		_, _, refused := rewrite(t, where, body, holding(t, hosts("*")))
		if refused == nil || refused.Code != "capability_absent" {
			t.Errorf("%s: %v", where, refused)
		}
		rewriting{where: where, body: body, grants: []string{hosts("*"), "provider.files"}}.run(t)
	}
}

// TestRoutedReplay: a container is named by a replayed call wherever the call has it.
func TestRoutedReplay(t *testing.T) {
	const tools = `"tools":[{"type":"openrouter:shell","parameters":{"environment":{"type":"container_auto","network_policy":{"type":"disabled"}}}}]`
	for name, input := range map[string]string{
		"where it ran":     `[{"type":"shell_call","call_id":"c","action":{"commands":["ls"]},"environment":{"type":"container_reference","container_id":"sess_main"}}]`,
		"what ran there":   `[{"type":"openrouter:shell","status":"completed","arguments":"{}"}]`,
		"what it has left": `[{"type":"shell_call_output","call_id":"c","output":[],"files":[{"type":"container_file_citation","container_id":"sess_main","file_id":"f"}]}]`,
	} {
		t.Run(name, func(t *testing.T) {
			head := `{"model":"x/y","input":` + input
			rewriting{where: "openrouter /v1/responses", body: head + "," + tools + "}", grants: []string{"provider.code_execution"}, sent: head + "}", did: "omitted openrouter:shell scope_violation"}.run(t)
		})
	}
	for details, stays := range map[string]bool{
		`[{"type":"reasoning.text","text":"container_id"},{"type":"reasoning.encrypted","data":"a"},{"type":"reasoning.summary","summary":"s"}]`:                  true,
		`[{"type":"reasoning.text","text":"a"},{"type":"reasoning.server_tool_call","tool_name":"openrouter:shell","result":"{\"container_id\":\"sess_main\"}"}]`: false,
		`{"type":"reasoning.text"}`: false,
	} {
		head := `{"model":"x/y","messages":[{"role":"user","content":"a"},{"role":"assistant","content":null,"reasoning_details":` + details + `}]`
		test := rewriting{where: router, body: head + "," + tools + "}", grants: []string{"provider.code_execution"}}
		if !stays {
			test.sent, test.did = head+"}", "omitted openrouter:shell scope_violation"
		}
		test.run(t)
	}
}

// TestInsideItems: what stands in an item of an input is judged, or does not go up. What
// vendors have in their items does, all of it.
func TestInsideItems(t *testing.T) {
	for name, test := range map[string]struct {
		item string
		code capability.Code
	}{
		"what a subagent did":         {`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","subagent_items":[{"type":"input_file","file_id":"f"}]}`, capability.NotAvailable},
		"nothing that a subagent did": {`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","subagent_id":null,"subagent_items":null}`, ""},
		"a subagent by its id":        {`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","subagent_id":"s"}`, capability.Forbidden},
		"items in what is nothing":    {`{"type":"compaction","encrypted_content":"a","output":[{"type":"additional_tools","tools":[]}]}`, capability.NotAvailable},
		"an object of tomorrow":       {`{"type":"reasoning","summary":[],"place":{"at":"a"}}`, capability.NotAvailable},
		"a word of tomorrow":          {`{"type":"reasoning","summary":[],"signature":"a","format":"b","effort":3}`, ""},
		"an address of tomorrow":      {`{"type":"reasoning","summary":[],"place":"https://evil.example"}`, capability.Forbidden},
		"a container where none is":   {`{"type":"function_call","call_id":"c","name":"f","arguments":"{}","container_id":"c"}`, capability.Forbidden},
		"a picture without its bytes": {`{"type":"image_generation_call","id":"ig","result":""}`, capability.CapabilityAbsent},
		"texts that are addresses":    {`{"type":"image_generation_call","id":"ig","result":"aGk=","revised_prompt":"https://a.example as a picture","error":{"message":"m"},"svg_usage":{}}`, ""},
		"all of a call of a function": {`{"type":"function_call","id":"i","call_id":"c","name":"f","namespace":"n","arguments":"https://a.example","status":"completed","async":true,"caller":{"type":"program","caller_id":"p"},"created_by":"m"}`, ""},
		"all of its answer":           {`{"type":"function_call_output","id":"i","call_id":"c","output":[{"type":"input_text","text":"t"}],"status":"completed","caller":{"type":"direct"}}`, ""},
		"all of a computer's":         {`{"type":"computer_call","id":"i","call_id":"c","actions":[{"type":"wait"}],"pending_safety_checks":[{"id":"p"}],"status":"completed"}`, ""},
		"all of its picture":          {`{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"data:image/png;base64,aGk="},"acknowledged_safety_checks":[{"id":"p"}]}`, ""},
		"all of a search":             {`{"type":"web_search_call","id":"i","status":"completed","action":{"type":"open_page","url":"https://a.example"},"name":"web_search","arguments":"{}","call_id":"c"}`, ""},
		"what a search found":         {`{"type":"web_search_call","id":"i","status":"completed","action":{"type":"search"},"results":[{"type":"image_result","image_url":"https://a.example"}]}`, ""},
		"an item that it found":       {`{"type":"web_search_call","id":"i","status":"completed","action":{"type":"search"},"results":[{"type":"additional_tools"}]}`, capability.NotAvailable},
		"what is no list of findings": {`{"type":"web_search_call","id":"i","status":"completed","action":{"type":"search"},"results":{"tools":[]}}`, capability.NotAvailable},
		"tools that it found":         {`{"type":"web_search_call","id":"i","status":"completed","action":{"type":"search"},"results":[{"type":"text_result","tools":[]}]}`, capability.Forbidden},
		"all that an agent says":      {`{"type":"agent_message","id":"i","author":"/root","recipient":"/root/sub","content":[{"type":"input_text","text":"https://a.example"},{"type":"encrypted_content","encrypted_content":"gAAA"}]}`, ""},
		"a file that an agent names":  {`{"type":"agent_message","author":"/root","recipient":"/root/sub","content":[{"type":"input_file","file_id":"f"}]}`, capability.CapabilityAbsent},
		"all of a search in files":    {`{"type":"file_search_call","id":"i","queries":["q"],"results":[{"file_id":"f","text":"t"}],"status":"completed"}`, ""},
		"all of a shell":              {`{"type":"shell_call","id":"i","call_id":"c","action":{"commands":["ls"]},"environment":{"type":"local"},"arguments":"a","status":"completed"}`, ""},
		"all that it said":            {`{"type":"shell_call_output","call_id":"c","container_id":null,"files":[],"error":"e","max_output_length":1,"output":[{"stdout":"https://a.example"}]}`, ""},
		"all of a patch":              {`{"type":"apply_patch_call","call_id":"c","operation":{"type":"create_file"},"status":"completed"},{"type":"apply_patch_call_output","call_id":"c","output":"https://a.example","status":"completed"}`, ""},
		"all of a search for tools":   {`{"type":"tool_search_call","arguments":{"q":"a"},"execution":"client","call_id":null}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			for _, where := range []string{responses, "openrouter /v1/responses"} {
				body := `{"model":"x/y","input":[` + test.item + `]}`
				out, changes, refused := rewrite(t, where, body, holding(t))
				switch {
				case test.code == "" && (refused != nil || out != body || len(changes) > 0):
					t.Errorf("%s: %s, %v", where, out, refused)
				case test.code != "" && (refused == nil || refused.Code != test.code):
					t.Errorf("%s: %s, %v", where, out, refused)
				}
			}
		})
	}
}

// TestRoutedX: what a search at OpenRouter reads at X needs what a search at X needs.
func TestRoutedX(t *testing.T) {
	const head = `{"model":"x/y","messages":[],`
	for tool, off := range map[string]string{
		`"tools":[{"type":"web_search","engine":"native","x_search":{}}]`:                             `"tools":[{"type":"web_search","engine":"native","x_search":null}]`,
		`"tools":[{"type":"web_search_preview","parameters":{"x_search":{"a":1}}}]`:                   `"tools":[{"type":"web_search_preview","parameters":{"x_search":null}}]`,
		`"tools":[{"type":"openrouter:web_search","parameters":{"engine":"native","x_search":true}}]`: `"tools":[{"type":"openrouter:web_search","parameters":{"engine":"native","x_search":false}}]`,
		`"plugins":[{"id":"web","x_search":{}}]`:                                                      `"plugins":[{"id":"web","x_search":null}]`,
	} {
		rewriting{where: router, body: head + tool + "}", grants: []string{hosts("*"), "provider.x_search"}}.run(t)
		out, changes, refused := rewrite(t, router, head+tool+"}", holding(t, hosts("*")))
		if refused != nil || out != head+off+"}" || !strings.Contains(did(changes), "repaired") {
			t.Errorf("%s: %s, %s, %v", tool, out, did(changes), refused)
		}
	}
}
