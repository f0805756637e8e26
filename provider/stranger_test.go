package provider_test

import (
	"strings"
	"testing"

	"capgate/capability"
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

// TestPlainMembers: what a vendor's endpoints take goes up as it is.
func TestPlainMembers(t *testing.T) {
	const count = "openai /v1/responses/input_tokens"
	for _, tt := range []struct{ where, body string }{
		{count, `{"model":"m","input":"x","personality":"friendly","tools":[{"type":"web_search","filters":{"allowed_domains":["a.example"]}}]}`},
		{grok, `{"model":"m","input":"x","logprobs":true,"top_logprobs":2,"tools":[{"type":"image_generation","action":"auto"}]}`},
		{router, `{"model":"x/y","messages":[],"plugins":[{"id":"web","engine":"exa","mode":"fast","include_domains":["a.example"]}]}`},
		{"openrouter /v1/responses", `{"model":"x/y","input":"x","frequency_penalty":0.1,"presence_penalty":0.1,"modalities":["text"]}`},
	} {
		if out, changes, refused := rewrite(t, tt.where, tt.body, holding(t, hosts("*.a.example"), "provider.image_generation")); out != tt.body || refused != nil || len(changes) > 0 {
			t.Errorf("%s goes up as %s: %s, %v", tt.body, out, did(changes), refused)
		}
	}
	if out, _, refused := rewrite(t, count, `{"input":"x","previous_response_id":"r"}`, holding(t)); refused == nil || refused.Code != capability.Forbidden {
		t.Errorf("%s, %v", out, refused)
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
		{messages, `{"mcp_servers":[{"type":"url","name":"a","url":"https://mcp.hub.example/"}],"messages":[{"role":"assistant","content":[{"type":"mcp_tool_listing","mcp_server_name":"a","tools":[{"name":"read"}]}]}]}`},
		{responses, `{"input":"x","tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.hub.example/","allowed_tools":{"tool_names":["read"]}}]}`},
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

// TestSettings: what single vendors document goes up where it runs nothing, and what it names
// is judged.
func TestSettings(t *testing.T) {
	const search = `{"model":"sonar-pro","messages":[],"search_domain_filter":["a.example"],`
	raw := func(file string) string {
		return `{"model":"sonar","search_domain_filter":["a.example"],"messages":[{"role":"user","content":[{"type":"file_url","file_url":{"url":"` + file + `"},"file_name":"a.pdf"}]}]}`
	}
	const gemini = "gemini /v1beta/openai/chat/completions"
	answered := func(members string) string {
		return `{"messages":[{"role":"assistant",` + members + `},{"role":"user","content":"b"}]}`
	}
	const noted = `"internal_chat_message_metadata_passthrough":{"turn_id":"t","create_time":1.5,"content_item_kinds":["user.text"],"content_item_metadata":[{"provenance":{"type":"mcp","namespace":"a"}}]}`
	thinks := func(members string) string { return `{"messages":[],"extra_body":{"google":{` + members + `}}}` }
	for name, test := range map[string]struct {
		where, body string
		grants      []string
		code        capability.Code
	}{
		"what a summary is to say":           {messages, `{"messages":[],"context_management":{"edits":[{"type":"compact_20260112","instructions":"https://a.example is the\u0000 site","trigger":{"type":"input_tokens","value":1}}]}}`, nil, ""},
		"the same, of all":                   {messages, `{"messages":[],"compaction":{"type":"summarize","instructions":"https://a.example is the site"}}`, nil, ""},
		"a summary of tools":                 {messages, `{"messages":[],"context_management":{"edits":[{"type":"compact_20260112","instructions":[{"type":"web_search_20250305"}]}]}}`, nil, capability.Forbidden},
		"an edit with tools":                 {messages, `{"messages":[],"context_management":{"edits":[{"type":"compact_20260112","tools":[]}]}}`, nil, capability.Forbidden},
		"an edit that is one":                {messages, `{"messages":[],"context_management":{"edits":[{"type":"web_search_20250305"}]}}`, nil, capability.Forbidden},
		"an edit of an address":              {messages, `{"messages":[],"context_management":{"edits":["https://evil.example/a"]}}`, nil, capability.Forbidden},
		"turns at xAI":                       {grok, `{"model":"grok-4","input":"x","max_turns":3}`, nil, ""},
		"turns elsewhere":                    {responses, `{"input":"x","max_turns":3}`, nil, capability.NotAvailable},
		"a country at Perplexity":            {sonar, search + `"country":"DE"}`, []string{hosts("*.a.example")}, ""},
		"a fast search":                      {sonar, search + `"web_search_options":{"search_type":"fast"}}`, []string{hosts("*.a.example")}, ""},
		"a search that runs code":            {sonar, search + `"web_search_options":{"search_type":"pro"}}`, []string{hosts("*.a.example"), "provider.web_fetch"}, capability.CapabilityAbsent},
		"a search that fetches":              {sonar, search + `"web_search_options":{"search_type":"pro"}}`, []string{hosts("*.a.example"), "provider.code_execution"}, capability.CapabilityAbsent},
		"a search that may do so":            {sonar, search + `"web_search_options":{"search_type":"auto"}}`, []string{hosts("*.a.example")}, capability.CapabilityAbsent},
		"a search by who may do so":          {sonar, search + `"web_search_options":{"search_type":"pro"}}`, []string{hosts("*.a.example"), "provider.web_fetch", "provider.code_execution"}, ""},
		"guardrails at Mistral":              {mistral, `{"model":"m","messages":[],"guardrails":[{"block_on_error":true,"moderation_llm_v2":{"model_name":"mistral-moderation-2603"}}]}`, nil, ""},
		"guardrails that are somebody's":     {mistral, `{"model":"m","messages":[],"guardrails":[{"moderation_llm_v2":{"model_name":"ag:1:2:x:3"}}]}`, nil, capability.Forbidden},
		"a picture that a model has drawn":   {router, `{"model":"a/b","messages":[{"role":"assistant","content":"x","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}`, nil, ""},
		"one that is fetched":                {router, `{"model":"a/b","messages":[{"role":"assistant","content":"x","images":[{"type":"image_url","image_url":{"url":"https://evil.example/a"}}]}]}`, nil, capability.CapabilityAbsent},
		"one of a vendor that has none":      {chats, `{"messages":[{"role":"assistant","content":"x","images":[]}]}`, nil, capability.NotAvailable},
		"how an engine searches":             {router, `{"model":"a/b","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"allowed_domains":["a.example"],"engine":"exa","mode":"fast"}}]}`, []string{hosts("*.a.example")}, ""},
		"a file at Perplexity":               {sonar, raw("JVBERi0xLjQKJeLjz9MK"), []string{hosts("*.a.example")}, ""},
		"one of two bytes":                   {sonar, raw("aGk="), []string{hosts("*.a.example")}, ""},
		"one that is cut":                    {sonar, raw("aGk"), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"one that is fetched there":          {sonar, raw("https://evil.example/a.pdf"), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"one that is held":                   {sonar, raw("https://a.example/a.pdf"), []string{hosts("*.a.example")}, ""},
		"an address of no scheme":            {sonar, raw("evil.example/a.pdf"), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"an address of the same scheme":      {sonar, raw("//16843009/a"), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"padding alone":                      {sonar, raw("===="), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"one with an id beside it":           {sonar, strings.Replace(raw("aGk="), `"aGk="`, `"aGk=","file_id":"f"`, 1), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"nothing at all":                     {sonar, raw(""), []string{hosts("*.a.example")}, capability.MalformedRequest},
		"a picture in that form":             {sonar, strings.ReplaceAll(raw("aGk="), "file_url", "image_url"), []string{hosts("*.a.example")}, capability.ScopeViolation},
		"the file elsewhere":                 {router, strings.ReplaceAll(raw("aGk="), `"sonar","search_domain_filter":["a.example"]`, `"x/y"`), nil, capability.CapabilityAbsent},
		"an answer as the SDK has read it":   {chats, answered(`"content":"{\"a\":\"b\"}","parsed":{"a":"https://a.example","Tools":[],"tool":[]}`), nil, ""},
		"a call as the SDK has read it":      {chats, answered(`"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","parsed_arguments":{"tools":[]}}}]`), nil, ""},
		"what somebody else has read":        {chats, strings.Replace(answered(`"content":"a","parsed":{"a":"b"}`), "assistant", "user", 1), nil, capability.NotAvailable},
		"the same, with a role behind it":    {chats, `{"messages":[{"parsed":{"a":"b"},"content":"a","role":"tool"}]}`, nil, capability.NotAvailable},
		"what is read in an item":            {responses, `{"input":[{"role":"assistant","content":"a","parsed":{"a":"b"}}]}`, nil, capability.NotAvailable},
		"a thought of Gemini's":              {gemini, answered(`"content":"a","extra_content":{"google":{"thought":true}}`), nil, ""},
		"what goes with it":                  {gemini, answered(`"content":"a","extra_content":{"google":{"thought_signature":"c2ln"}}`), nil, ""},
		"the same of a user":                 {gemini, strings.Replace(answered(`"content":"a","extra_content":{"google":{"thought_signature":"c2ln"}}`), "assistant", "user", 1), nil, capability.NotAvailable},
		"the same elsewhere":                 {chats, answered(`"content":"a","extra_content":{"google":{"thought_signature":"c2ln"}}`), nil, capability.NotAvailable},
		"content of somebody else":           {gemini, answered(`"content":"a","extra_content":{"vertex":{"thought":true}}`), nil, capability.NotAvailable},
		"content beside a thought":           {gemini, answered(`"content":"a","extra_content":{"google":{"thought":true,"file_data":{}}}`), nil, capability.NotAvailable},
		"content in a thought":               {gemini, answered(`"content":"a","extra_content":{"google":{"thought":{"cached_content":"c"}}}`), nil, capability.MalformedRequest},
		"content in a signature":             {gemini, answered(`"content":"a","extra_content":{"google":{"thought_signature":["c"]}}`), nil, capability.MalformedRequest},
		"content that is text":               {gemini, answered(`"content":"a","extra_content":"google"`), nil, capability.MalformedRequest},
		"how Gemini thinks":                  {gemini, thinks(`"thinking_config":{"include_thoughts":true,"thinking_budget":8,"thinking_level":"low"}`), nil, ""},
		"what else is in it":                 {gemini, thinks(`"thinking_config":{"include_thoughts":true,"tools":[]}`), nil, capability.NotAvailable},
		"a cache beside it":                  {gemini, thinks(`"thinking_config":{},"cached_content":"cachedContents/c"`), nil, capability.Forbidden},
		"a tool beside it":                   {gemini, thinks(`"tools":[{"google_search":{}}]`), nil, capability.NotAvailable},
		"a body that is no thought's":        {gemini, `{"messages":[],"extra_body":{"tools":[{"google_search":{}}]}}`, nil, capability.NotAvailable},
		"how nobody else thinks":             {chats, thinks(`"thinking_config":{}`), nil, capability.NotAvailable},
		"an effort in the midst":             {responses, `{"input":[{"type":"configuration_update","reasoning":{"effort":"high"},"text":{"verbosity":"low"}}]}`, nil, ""},
		"an effort that is a tool":           {responses, `{"input":[{"type":"configuration_update","reasoning":{"tools":[]}}]}`, nil, capability.Forbidden},
		"a model in the midst":               {responses, `{"input":[{"type":"configuration_update","model":"m"}]}`, nil, capability.NotAvailable},
		"a tool in the midst":                {responses, `{"input":[{"type":"configuration_update","tools":[{"type":"web_search"}]}]}`, nil, capability.NotAvailable},
		"an effort elsewhere":                {grok, `{"input":[{"type":"configuration_update","reasoning":{"effort":"high"}}]}`, nil, capability.NotAvailable},
		"no search of old":                   {"xai /v1/chat/completions", `{"messages":[],"search_parameters":null}`, nil, ""},
		"a conversation that was compacted":  {responses, `{"input":[{"type":"context_compaction","encrypted_content":"x"}]}`, nil, ""},
		"what Codex notes of an item":        {responses, `{"input":[{"type":"message","role":"user","content":[],` + noted + `},{"type":"reasoning","summary":[],` + noted + `},{"type":"function_call_output","call_id":"c","output":"a",` + noted + `}]}`, nil, ""},
		"what it notes that has run":         {responses, `{"input":[{"type":"custom_tool_call_output","call_id":"c","output":"a","internal_chat_message_metadata_passthrough":{"cell_id":"1","tool_calls_complete":true,"executed_tool_calls":[{"name":"a\u0000","arguments":{"url":"https://a.example"}}]}}]}`, nil, ""},
		"what it may come to note":           {responses, `{"input":[{"type":"reasoning","summary":[],"internal_chat_message_metadata_passthrough":{"mood":["good"]}}]}`, nil, ""},
		"what it does not note":              {responses, `{"input":[{"type":"message","role":"user","content":[],"internal_chat_message_metadata_passthrough":{"more":{"tools":[]}}}]}`, nil, capability.Forbidden},
		"an address that it does not note":   {responses, `{"input":[{"type":"reasoning","summary":[],"internal_chat_message_metadata_passthrough":{"turn_id":"https://a.example/"}}]}`, nil, capability.Forbidden},
		"a note that is a tool":              {responses, `{"input":[{"type":"reasoning","summary":[],"internal_chat_message_metadata_passthrough":[{"type":"web_search"}]}]}`, nil, capability.MalformedRequest},
		"arguments that nobody can read":     {responses, `{"input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","encrypted_function_args":["a"]}]}`, nil, ""},
		"what has none":                      {responses, `{"input":[{"type":"reasoning","summary":[],"encrypted_function_args":["a"]}]}`, nil, capability.NotAvailable},
		"sound by its address":               {responses, `{"input":[{"role":"user","content":[{"type":"input_audio","audio_url":"https://a.example/a"}]}]}`, nil, capability.CapabilityAbsent},
		"sound in an address":                {responses, `{"input":[{"role":"user","content":[{"type":"input_audio","audio_url":"data:audio/wav;base64,aGk="}]}]}`, nil, ""},
		"a video at OpenRouter":              {"openrouter /v1/responses", `{"model":"a/b","input":[{"role":"user","content":[{"type":"input_video","video_url":"https://b.example/v","processing":"auto"}]}]}`, []string{hosts("b.example")}, ""},
		"one that is not held":               {router, `{"model":"a/b","messages":[{"role":"user","content":[{"type":"input_video","video_url":{"url":"https://c.example/v"}}]}]}`, []string{hosts("b.example")}, capability.ScopeViolation},
		"what sets chance at xAI":            {grok, `{"input":"x","seed":1,"top_k":40,"min_p":0.1}`, nil, ""},
		"the same elsewhere in responses":    {responses, `{"input":"x","seed":1}`, nil, capability.NotAvailable},
		"what else there may be in its item": {responses, `{"input":[{"type":"context_compaction","encrypted_content":"x","content":[{"type":"input_file","file_id":"f"}]}]}`, nil, capability.NotAvailable},
	} {
		t.Run(name, func(t *testing.T) {
			out, changes, refused := rewrite(t, test.where, test.body, holding(t, test.grants...))
			switch {
			case refused != nil && refused.Code != test.code, refused == nil && test.code != "":
				t.Errorf("sent %s, %v", out, refused)
			case refused == nil && (out != test.body || len(changes) > 0):
				t.Errorf("sent %s, %s", out, did(changes))
			}
		})
	}
}

// TestCivicAnswers: what nobody says of how Google finds an answer is taken for a search.
func TestCivicAnswers(t *testing.T) {
	body := func(settings string) string {
		return `{"contents":[],"generationConfig":{"temperature":1` + settings + `}}`
	}
	for _, test := range []struct {
		settings string
		grants   []string
		sent     string
		did      string
	}{
		{`,"enableEnhancedCivicAnswers":true`, nil, "", "omitted enableEnhancedCivicAnswers capability_absent"},
		{`,"enable_enhanced_civic_answers":1`, []string{hosts("github.com")}, "", "omitted enableEnhancedCivicAnswers capability_absent"},
		{`,"enableEnhancedCivicAnswers":true`, []string{"provider.web_search"}, `,"enableEnhancedCivicAnswers":true`, ""},
		{`,"enableEnhancedCivicAnswers":false`, nil, `,"enableEnhancedCivicAnswers":false`, ""},
		{`,"enableEnhancedCivicAnswers":null`, nil, `,"enableEnhancedCivicAnswers":null`, ""},
	} {
		out, changes, refused := rewrite(t, generate, body(test.settings), holding(t, test.grants...))
		if refused != nil || out != body(test.sent) || did(changes) != test.did {
			t.Errorf("%s: sent %s, %s, %v", test.settings, out, did(changes), refused)
		}
	}
}
