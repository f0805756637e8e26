package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// TestBody: tools come in by many doors of a body, and each is watched.
func TestBody(t *testing.T) {
	search := `{"type":"web_search_20250305","name":"web_search"}`
	narrow := `{"type":"web_search_20250305","name":"web_search","allowed_domains":["github.com"]}`
	held := []string{hosts("*.github.com")}
	const narrowed = "narrowed web_search_20250305 [github.com]"
	for name, test := range map[string]rewriting{
		"bytes that nothing is wrong with": {
			where: messages, grants: held,
			body: "{ \"model\" : \"m\",\n \"tools\":[ {\"name\":\"f\",\"input_schema\":{\"type\":\"web_search_20250305\",\"tools\":[]}} ],\"max_tokens\":1e3 ,\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\\u0061\"}]}] }",
		},
		"what the agent runs itself": {
			where: messages, body: `{"tools":[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"},{"type":"memory_20250818","name":"memory"},{"type":"tool_search_tool_bm25_20251119","name":"s"},{"type":"custom","name":"c","input_schema":{}},{"type":null,"name":"n","input_schema":{}}]}`,
		},
		"a type of tomorrow": {
			where: messages, grants: []string{hosts("*")}, body: `{"tools":[{"type":"web_browse_20270101","name":"b"},{"type":"custom","name":"c"}]}`,
			sent: `{"tools":[{"type":"custom","name":"c"}]}`, did: "omitted web_browse_20270101 not_available",
		},
		"a version of tomorrow, without a list": {
			where: messages, grants: []string{hosts("*")}, body: `{"tools":[{"type":"web_search_20270101","name":"web_search"}]}`,
			sent: `{}`, did: "omitted web_search_20270101 not_available",
		},
		"a version of tomorrow, with a list": {
			where: messages, grants: held, body: `{"tools":[{"type":"web_search_20270101","name":"web_search","allowed_domains":["github.com","x.example"]}]}`,
			sent: `{"tools":[{"type":"web_search_20270101","name":"web_search","allowed_domains":["github.com"],"allowed_callers":["direct"]}]}`,
			did:  "narrowed web_search_20270101 [github.com]; repaired web_search_20270101",
		},
		"a member of tomorrow": {
			where: messages, grants: held, body: `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_hosts":["x.example"]}]}`,
			sent: `{}`, did: "omitted web_search_20250305 not_available",
		},
		"two things at once": {
			where: messages, grants: held, body: `{"tools":[{"type":"web_search_20250305","name":"web_search","input_schema":{}}]}`,
			sent: `{}`, did: "omitted web_search_20250305 not_available",
		},
		"a tool that a message adds": {
			where: messages, grants: held,
			body: `{"messages":[{"role":"system","content":[{"type":"text","text":"a"},{"type":"tool_addition","tool":{"type":"tool_definition","definition":` + search + `}}]}]}`,
			sent: `{"messages":[{"role":"system","content":[{"type":"text","text":"a"},{"type":"tool_addition","tool":{"type":"tool_definition","definition":` + narrow + `}}]}]}`,
			did:  narrowed,
		},
		"a message that only adds a tool": {
			where: messages,
			body:  `{"messages":[{"role":"user","content":"a"},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":` + search + `}}]}]}`,
			sent:  `{"messages":[{"role":"user","content":"a"}]}`, did: "omitted web_search_20250305 capability_absent",
		},
		"a tool that a compaction adds": {
			where: messages,
			body:  `{"messages":[{"role":"user","content":[{"type":"compaction","content":"a","tool_changes":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":` + search + `}}]}]}]}`,
			sent:  `{"messages":[{"role":"user","content":[{"type":"compaction","content":"a","tool_changes":[]}]}]}`, did: "omitted web_search_20250305 capability_absent",
		},
		"servers of somebody": {
			where: messages, grants: []string{hosts("*"), "tool.invoke{tools=[**]}"},
			body: `{"mcp_servers":[{"type":"url","url":"https://mcp.example/","name":"a"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"a"}],"messages":[]}`,
			sent: `{"messages":[]}`, did: "omitted mcp_servers a scope_violation; omitted mcp_toolset scope_violation",
		},
		"a container": {
			where: messages, body: `{"container":{"id":"c","skills":[{"skill_id":"x"}]},"messages":[]}`, sent: `{"messages":[]}`, did: "omitted container capability_absent",
		},
		"a container that is held": {where: messages, grants: []string{"provider.code_execution"}, body: `{"container":"c","messages":[]}`},
		"a list that is too long": {
			where: messages, grants: held, body: `{"tools":[{"type":"web_search_20250305","allowed_domains":["github.com"` + strings.Repeat(`,"github.com"`, 1024) + `]}]}`,
			sent: `{}`, did: "omitted web_search_20250305 malformed_arguments",
		},
		"the choice of what is gone": {
			where: messages, body: `{"tools":[` + search + `,{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"web_search"}}`,
			sent: `{"tools":[{"name":"f","input_schema":{}}]}`, did: "omitted web_search_20250305 capability_absent; repaired tool_choice",
		},
		"the choice of what stays": {
			where: messages, body: `{"tools":[` + search + `,{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"f"}}`,
			sent: `{"tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"tool","name":"f"}}`, did: "omitted web_search_20250305 capability_absent",
		},
		"any choice, of nothing": {
			where: messages, body: `{"tool_choice":{"type":"any"},"tools":[` + search + `]}`, sent: `{}`, did: "omitted web_search_20250305 capability_absent; repaired tool_choice",
		},
		"the end of the cached part": {
			where: messages, body: `{"tools":[{"name":"f","input_schema":{}},{"type":"web_search_20250305","name":"web_search","cache_control":{"type":"ephemeral"}}]}`,
			sent: `{"tools":[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral"}}]}`, did: "omitted web_search_20250305 capability_absent; repaired cache_control",
		},
		"a source that is gone": {
			where: messages, grants: held,
			body: `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["x.example"]},{"type":"web_fetch_20260318","name":"web_fetch","allowed_callers":["direct"],"allowed_domains":["github.com"],"url_sources":{"server_tool_results":{"type":"only","tools":[{"type":"tool_reference","name":"web_search"}]},"client_tool_results":{"type":"except","tools":[{"type":"tool_reference","name":"f"},{"type":"tool_reference","name":"web_search"}]}}}]}`,
			sent: `{"tools":[{"type":"web_fetch_20260318","name":"web_fetch","allowed_callers":["direct"],"allowed_domains":["github.com"],"url_sources":{"server_tool_results":{"type":"none"},"client_tool_results":{"type":"except","tools":[{"type":"tool_reference","name":"f"}]}}}]}`,
			did:  "omitted web_search_20250305 scope_violation; repaired url_sources",
		},
		"a function that code would call": {
			where: messages, body: `{"tools":[{"name":"f","input_schema":{},"allowed_callers":["direct","code_execution_20260120"]}]}`,
			sent: `{"tools":[{"name":"f","input_schema":{},"allowed_callers":["direct"]}]}`, did: "repaired f",
		},
		"a picture from a host that is held": {
			where: messages, grants: held, body: `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://docs.github.com/a.png"}},{"type":"document","source":{"type":"base64","data":"aGk="}}]}]}`,
		},
		"tools between the items of an input": {
			where: responses,
			body:  `{"input":[{"role":"user","content":"a"},{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}]},{"type":"tool_search_output","tools":[{"type":"mcp","server_url":"https://x.example"},{"type":"function","name":"f"}]}]}`,
			sent:  `{"input":[{"role":"user","content":"a"},{"type":"tool_search_output","tools":[{"type":"function","name":"f"}]}]}`,
			did:   "omitted web_search capability_absent; omitted mcp scope_violation",
		},
		"what the agent runs, at a router": {
			where: "openrouter /v1/responses", body: `{"model":"x/y","tools":[{"type":"local_shell"},{"type":"apply_patch"},{"type":"namespace","name":"mcp__a","description":"d","tools":[{"type":"function","name":"f","defer_loading":true},{"type":"openrouter:web_fetch"}]},{"type":"shell","environment":{"type":"local"}},{"type":"namespace","name":"o","tools":[{"type":"openrouter:web_search"}]}]}`,
			sent: `{"model":"x/y","tools":[{"type":"local_shell"},{"type":"apply_patch"},{"type":"namespace","name":"mcp__a","description":"d","tools":[{"type":"function","name":"f","defer_loading":true}]}]}`,
			did:  "omitted openrouter:web_fetch capability_absent; omitted shell not_available; omitted openrouter:web_search capability_absent; omitted namespace not_available",
		},
		"the same, where they are not known": {
			where: "openrouter /v1/chat/completions", body: `{"model":"x/y","messages":[],"tools":[{"type":"local_shell"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}`,
			sent: `{"model":"x/y","messages":[]}`,
			did:  "omitted local_shell not_available; omitted namespace not_available",
		},
		"a namespace": {
			where: responses, body: `{"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f"},{"type":"code_interpreter","container":{"type":"auto"}}]},{"type":"namespace","name":"o","description":"d","tools":[{"type":"shell"}]}]}`,
			sent: `{"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"f"}]}]}`,
			did:  "omitted code_interpreter capability_absent; omitted shell capability_absent; omitted namespace not_available",
		},
		"the shell of the agent": {where: responses, body: `{"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"apply_patch"},{"type":"local_shell"}]}`},
		"choices among several": {
			where: responses, body: `{"tools":[{"type":"code_interpreter","container":{"type":"auto"}},{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"code_interpreter"},{"type":"function","name":"f"}]},"parallel_tool_calls":true}`,
			sent: `{"tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]},"parallel_tool_calls":true}`,
			did:  "omitted code_interpreter capability_absent; repaired tool_choice",
		},
		"a tool that is gone, added again": {
			where: messages, body: `{"tools":[{"name":"f"},{"type":"code_execution_20250825","name":"code_execution"}],"messages":[{"role":"system","content":[{"type":"text","text":"t"}` + strings.Repeat(`,{"type":"tool_addition","tool":{"type":"tool_reference","name":"code_execution"}}`, 2) + `]}]}`,
			sent: `{"tools":[{"name":"f"}],"messages":[{"role":"system","content":[{"type":"text","text":"t"}]}]}`, did: "omitted code_execution_20250825 capability_absent; repaired tool_addition",
		},
		"parallel calls of nothing": {
			where: responses, body: `{"parallel_tool_calls":true,"tools":[{"type":"image_generation"}],"tool_choice":"required"}`, sent: `{}`,
			did: "omitted image_generation capability_absent; repaired parallel_tool_calls; repaired tool_choice",
		},
		"a network of its own": {
			where: responses, grants: []string{"provider.code_execution", hosts("*.github.com", "*.example.com"), "net.post{hosts=[*.github.com]}", "net.put{hosts=[*]}", "net.delete{hosts=[*.github.com,*.x.example]}"},
			body: `{"tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":["api.github.com","example.com"],"domain_secrets":[{"domain":"x.example","name":"n","value":"v"}]}}}]}`,
			sent: `{"tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":["api.github.com"]}}}]}`,
			did:  "narrowed container [api.github.com]",
		},
		"no network": {
			where: responses, grants: []string{"provider.code_execution", hosts("a.example"), "net.post{hosts=[a.example]}", "net.put{hosts=[a.example]}", "net.delete{hosts=[a.example]}"},
			body: `{"tools":[{"type":"code_interpreter","container":{"type":"auto"}},{"type":"shell","environment":{"type":"container_auto","network_policy":null}}]}`,
		},
		"a container of somebody": {
			where: responses, grants: []string{"provider.code_execution", hosts("*")}, body: `{"tools":[{"type":"code_interpreter","container":"cntr_1"},{"type":"shell","environment":{"type":"container_reference","container_id":"c"}}]}`,
			sent: `{}`, did: "omitted code_interpreter scope_violation; omitted shell scope_violation",
		},
		"files of somebody": {
			where: responses, grants: []string{"provider.code_execution"}, body: `{"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]}`,
			sent: `{}`, did: "omitted code_interpreter capability_absent",
		},
		"a connection to somebody": {
			where: responses, grants: []string{"tool.invoke{tools=[**]}", hosts("*")}, body: `{"tools":[{"type":"mcp","server_label":"a","connector_id":"connector_gmail"},{"type":"mcp","server_label":"b","server_url":"https://x.example"}]}`,
			sent: `{}`, did: "omitted mcp scope_violation; omitted mcp scope_violation",
		},
		"a search of old": {where: "xai /v1/chat/completions", body: `{"messages":[],"search_parameters":{"mode":"on"}}`, sent: `{"messages":[]}`, did: "omitted search_parameters not_available"},
		"posts of X": {
			where: grok, grants: []string{hosts("*")}, body: `{"tools":[{"type":"x_search"},{"type":"function","name":"f"}]}`,
			sent: `{"tools":[{"type":"function","name":"f"}]}`, did: "omitted x_search capability_absent",
		},
		"Mistral": {
			where: mistral, grants: []string{hosts("*.github.com"), "provider.document_library"}, body: `{"messages":[],"tools":[{"type":"web_search"},{"type":"document_library"},{"type":"connector"}]}`,
			sent: `{"messages":[],"tools":[{"type":"document_library"}]}`, did: "omitted web_search capability_absent; omitted connector not_available",
		},
		"a search that is off": {where: sonar, body: `{"model":"sonar","disable_search":true,"num_search_results":3,"num_images":1,"safe_search":true,"messages":[]}`},
		"counting the same": {
			where: "gemini /v1beta/models/m:countTokens", body: `{"generate_content_request":{"contents":[{"parts":[{"text":"a"}]}],"tools":[{"googleSearch":{}}],"toolConfig":{}}}`,
			sent: `{"generate_content_request":{"contents":[{"parts":[{"text":"a"}]}]}}`, did: "omitted googleSearch capability_absent; repaired tool_choice",
		},
		"plugins": {
			where: router, body: `{"model":"x/y","messages":[],"plugins":[{"id":"web"},{"id":"file-parser"},{"id":"fusion"}]}`, sent: `{"model":"x/y","messages":[],"plugins":[{"id":"file-parser"}]}`,
			did: "omitted plugin web capability_absent; omitted plugin fusion not_available",
		},
	} {
		t.Run(name, test.run)
	}
}

// TestRefused: what cannot be judged, and what no grant opens, does not go up.
func TestRefused(t *testing.T) {
	inMessage := func(block string) string { return `{"messages":[{"role":"user","content":[` + block + `]}]}` }
	inPart := func(part string) string { return `{"input":[{"role":"user","content":[` + part + `]}]}` }
	inChat := func(part string) string {
		return `{"model":"x/y","messages":[{"role":"user","content":[` + part + `]}]}`
	}
	inGemini := func(part string) string { return `{"contents":[{"parts":[` + part + `]}]}` }
	for name, test := range map[string]struct {
		where, body string
		code        capability.Code
	}{
		"no JSON":                       {messages, `{`, capability.MalformedRequest},
		"no object":                     {messages, `[]`, capability.MalformedRequest},
		"a key twice":                   {messages, `{"tools":[],"tools":[{"type":"web_search_20250305"}]}`, capability.MalformedRequest},
		"a key twice, unescaped":        {messages, `{"tools":[],"\u0074ools":[{"type":"web_search_20250305"}]}`, capability.MalformedRequest},
		"a key in two cases":            {messages, `{"tools":[],"Tools":[]}`, capability.MalformedRequest},
		"two documents":                 {messages, `{} {}`, capability.MalformedRequest},
		"not UTF-8":                     {messages, "{\"model\":\"\xff\"}", capability.MalformedRequest},
		"too deep":                      {messages, strings.Repeat("[", 65) + strings.Repeat("]", 65), capability.MalformedRequest},
		"tools that are no list":        {messages, `{"tools":{}}`, capability.MalformedRequest},
		"a tool that is text":           {messages, `{"tools":["web_search"]}`, capability.MalformedRequest},
		"a type that is no text":        {messages, `{"tools":[{"type":["web_search_20250305"]}]}`, capability.MalformedRequest},
		"messages that are no list":     {messages, `{"messages":{}}`, capability.MalformedRequest},
		"a member of tomorrow":          {messages, `{"connectors":[]}`, capability.NotAvailable},
		"a block of tomorrow":           {messages, inMessage(`{"type":"browse"}`), capability.NotAvailable},
		"a block without a type":        {messages, inMessage(`{"text":"a"}`), capability.NotAvailable},
		"a conversation that is kept":   {messages, `{"thread":{"type":"continue","previous_message_id":"m"}}`, capability.Forbidden},
		"other models, with members":    {messages, `{"fallbacks":[{"model":"m","tools":[]}]}`, capability.Forbidden},
		"a picture from elsewhere":      {messages, inMessage(`{"type":"image","source":{"type":"url","url":"https://evil.example/?q=secret"}}`), capability.ScopeViolation},
		"a picture from beneath":        {messages, inMessage(`{"type":"image","source":{"type":"url","url":"https://gist.github.com/"}}`), capability.ScopeViolation},
		"a document within a result":    {messages, inMessage(`{"type":"tool_result","content":[{"type":"document","source":{"type":"url","url":"https://evil.example"}}]}`), capability.ScopeViolation},
		"a document within a fetch":     {messages, inMessage(`{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","content":{"type":"document","source":{"type":"url","url":"https://evil.example"}}}}`), capability.ScopeViolation},
		"a picture within a document":   {messages, inMessage(`{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"https://evil.example"}}]}}`), capability.ScopeViolation},
		"a picture in the system":       {messages, `{"system":[{"type":"image","source":{"type":"url","url":"https://evil.example"}}]}`, capability.ScopeViolation},
		"a stored file":                 {messages, inMessage(`{"type":"document","source":{"type":"file","file_id":"f"}}`), capability.CapabilityAbsent},
		"an upload":                     {messages, inMessage(`{"type":"container_upload","file_id":"f"}`), capability.CapabilityAbsent},
		"a turn that is paused":         {messages, `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["x.example"]}],"messages":[{"role":"assistant","content":[{"type":"server_tool_use","name":"web_search"}]}]}`, capability.ScopeViolation},
		"tools among settings":          {messages, `{"context_management":{"edits":[{"type":"x","tools":[]}]}}`, capability.Forbidden},
		"a stored prompt":               {responses, `{"prompt":{"id":"p"}}`, capability.Forbidden},
		"a stored response":             {responses, `{"previous_response_id":"r"}`, capability.Forbidden},
		"a stored conversation":         {responses, `{"conversation":"c"}`, capability.Forbidden},
		"an item that is stored":        {responses, `{"input":[{"type":"item_reference","id":"i"}]}`, capability.Forbidden},
		"an item that says nothing":     {responses, `{"input":[{"role":"user","content":null,"id":"i"}]}`, capability.Forbidden},
		"an item of nobody":             {responses, `{"input":[{"role":"none","content":"a","id":"i"}]}`, capability.Forbidden},
		"an answer for later":           {responses, `{"background":true}`, capability.Forbidden},
		"several agents":                {responses, `{"multi_agent":{}}`, capability.Forbidden},
		"the consent to a foreign tool": {responses, `{"input":[{"type":"mcp_approval_response","approve":true}]}`, capability.ScopeViolation},
		"a model that searches":         {chats, `{"model":"gpt-4o-search-preview-2025-03-11","messages":[]}`, capability.CapabilityAbsent},
		"a model that researches":       {responses, `{"model":"o3-deep-research"}`, capability.CapabilityAbsent},
		"a suffix that searches":        {router, `{"model":"x/y:online","messages":[]}`, capability.CapabilityAbsent},
		"a second model that searches":  {router, `{"model":"x/y","models":["perplexity/sonar"],"messages":[]}`, capability.CapabilityAbsent},
		"a model that chooses another":  {router, `{"model":"switchpoint/router","messages":[]}`, capability.CapabilityAbsent},
		"one that embeds":               {"openai /v1/embeddings", `{"model":"huggingface/https://evil.example","input":"a"}`, capability.Forbidden},
		"a model that is an address":    {chats, `{"model":"huggingface/https://evil.example","messages":[]}`, capability.Forbidden},
		"a preset":                      {router, `{"model":"@preset/x","messages":[]}`, capability.Forbidden},
		"input from elsewhere":          {responses, inPart(`{"type":"input_image","image_url":"https://evil.example"}`), capability.ScopeViolation},
		"a file from elsewhere":         {responses, inPart(`{"type":"input_file","file_url":"https://evil.example"}`), capability.ScopeViolation},
		"a stored picture":              {responses, inPart(`{"type":"input_image","file_id":"f"}`), capability.CapabilityAbsent},
		"the output of a function":      {responses, `{"input":[{"type":"function_call_output","output":[{"type":"input_image","image_url":"https://evil.example"}]}]}`, capability.ScopeViolation},
		"the mask of a picture":         {responses, `{"tools":[{"type":"image_generation","input_image_mask":{"image_url":"https://evil.example"}}]}`, capability.ScopeViolation},
		"chat from elsewhere":           {chats, inChat(`{"type":"image_url","image_url":{"url":"https://evil.example"}}`), capability.ScopeViolation},
		"chat from elsewhere, in short": {mistral, inChat(`{"type":"image_url","image_url":"https://evil.example"}`), capability.ScopeViolation},
		"a file that is an address":     {router, inChat(`{"type":"file","file":{"filename":"a","file_data":"https://evil.example"}}`), capability.ScopeViolation},
		"no scheme that is known":       {chats, inChat(`{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}`), capability.ScopeViolation},
		"a video from elsewhere":        {generate, inGemini(`{"fileData":{"fileUri":"https://evil.example"}}`), capability.ScopeViolation},
		"the other spelling":            {generate, inGemini(`{"file_data":{"file_uri":"gs://bucket/x"}}`), capability.ScopeViolation},
		"bytes that are an address":     {generate, inGemini(`{"inlineData":{"fileUri":"https://evil.example"}}`), capability.NotAvailable},
		"a file within a function":      {generate, inGemini(`{"functionResponse":{"name":"f","parts":[{"fileData":{"fileUri":"https://evil.example"}}]}}`), capability.ScopeViolation},
		"a place for the answer":        {generate, `{"contents":[],"generationConfig":{"responseFormat":[{"text":{"schema":{"$schema":"https://json-schema.org/"}}},{"video":{"delivery":"URI","gcsUri":"gs://bucket/x"}}]}}`, capability.Forbidden},
		"a place, the other spelling":   {generate, `{"contents":[],"generation_config":{"response_format":[{"video":{"gcs_uri":"github.com"}}]}}`, capability.Forbidden},
		"a place, as a prefix":          {generate, `{"contents":[],"generationConfig":{"outputConfig":{"outputUriPrefix":"bucket/x"}}}`, capability.Forbidden},
		"a model to choose":             {generate, `{"contents":[],"generationConfig":{"routingConfig":{"manualMode":{"modelName":"deep-research-pro"}}}}`, capability.CapabilityAbsent},
		"a name beneath Google's store": {generate, inGemini(`{"fileData":{"fileUri":"https://x.generativelanguage.googleapis.com/v1beta/files/x"}}`), capability.ScopeViolation},
		"a file of Google's store":      {generate, inGemini(`{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}`), capability.CapabilityAbsent},
		"a cache":                       {generate, `{"contents":[],"cachedContent":"cachedContents/x"}`, capability.Forbidden},
		"a cache, the other spelling":   {generate, `{"contents":[],"cached_content":"cachedContents/x"}`, capability.Forbidden},
		"a member of Google's tomorrow": {generate, `{"contents":[],"agentConfig":{}}`, capability.NotAvailable},
		"more within more":              {"gemini /v1beta/models/m:countTokens", `{"generateContentRequest":{"generateContentRequest":{}}}`, capability.NotAvailable},
		"what always searches":          {sonar, `{"model":"sonar","messages":[],"search_domain_filter":["x.example"]}`, capability.ScopeViolation},
		"code behind a search":          {sonar, `{"model":"sonar","messages":[],"web_search_options":{"search_type":"pro"}}`, capability.CapabilityAbsent},
		"instructions that are items":   {responses, `{"instructions":[{"type":"additional_tools","tools":[{"type":"mcp"}]}]}`, capability.MalformedRequest},
		"a message with more in it":     {responses, `{"input":[{"role":"user","content":"a","tools":[{"type":"mcp"}]}]}`, capability.NotAvailable},
		"an address behind spaces":      {router, inChat(`{"type":"file","file":{"file_data":"                         https://evil.example"}}`), capability.ScopeViolation},
		"a model in the body":           {"gemini /v1beta/models/m:countTokens", `{"generateContentRequest":{"model":"models/deep-research-pro"}}`, capability.CapabilityAbsent},
		"too many tools":                {messages, `{"tools":[` + strings.Repeat(`{"name":"f","input_schema":{}},`, 1024) + `{"name":"f","input_schema":{}}]}`, capability.LimitExceeded},
		"too many lists":                {messages, `{"tools":[` + strings.Repeat(`{"type":"web_search_20250305"},`, 32) + `{"type":"web_search_20250305"}]}`, capability.LimitExceeded},
		"texts that are no texts":       {"openai /v1/embeddings", `{"input":[{"type":"image_url","image_url":"https://evil.example"}]}`, capability.Forbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := holding(t, hosts("github.com"))
			if strings.Contains(name, "mask") {
				p = holding(t, hosts("github.com"), "provider.image_generation")
			}
			out, _, refused := rewrite(t, test.where, test.body, p)
			if refused == nil || refused.Code != test.code || out != "" {
				t.Errorf("%v, want %s; sent %s", refused, test.code, out)
			}
			if refused != nil && refused.Status != 400 && refused.Status != 403 {
				t.Errorf("status %d", refused.Status)
			}
		})
	}
}

// TestPass: the operator can vouch for what is not known, and for nothing else.
func TestPass(t *testing.T) {
	p := holding(t)
	p.Pass = []string{"novelty", "thread", "tools"}
	for body, want := range map[string]capability.Code{
		`{"novelty":{"level":1}}`: "",
		`{"messages":[{"role":"user","content":[{"type":"novelty","text":"a"}]}]}`: "",
		`{"novelty":{"tools":[]}}`:                    capability.Forbidden,
		`{"novelty":{"type":"web_search_20250305"}}`:  capability.Forbidden,
		`{"novelty":{"from":"https://evil.example"}}`: capability.Forbidden,
		`{"thread":{"type":"create"}}`:                capability.Forbidden,
		`{"other":1}`:                                 capability.NotAvailable,
	} {
		out, _, refused := rewrite(t, messages, body, p)
		if want == "" && (refused != nil || out != body) || want != "" && (refused == nil || refused.Code != want) {
			t.Errorf("%s: %v, want %q", body, refused, want)
		}
	}
	if out, _, _ := rewrite(t, messages, `{"tools":[{"type":"web_search_20250305"}]}`, p); out != `{}` {
		t.Errorf("a tool passes: %s", out)
	}
}

// TestRelayed: functions that another gateway would make tools of do not reach it.
func TestRelayed(t *testing.T) {
	p := holding(t)
	body := `{"tools":[{"type":"function","function":{"name":"google_search"}},{"type":"function","function":{"name":"f"}}]}`
	if out, _, _ := rewrite(t, chats, body, p); out != body {
		t.Errorf("sent %s", out)
	}
	p.Relayed = true
	if out, _, _ := rewrite(t, chats, body, p); out != `{"tools":[{"type":"function","function":{"name":"f"}}]}` {
		t.Errorf("sent %s", out)
	}
	if _, _, refused := rewrite(t, generate, `{"contents":[],"tools":[{"functionDeclarations":[{"name":"googleSearch"}]}]}`, p); refused == nil {
		t.Error("a function with the name of a tool went up")
	}
}

// TestConnectors: a provider connects to what the operator lists, for the tools
// that the agent may invoke, without the agent's credentials.
func TestConnectors(t *testing.T) {
	listed := func(p *provider.Policy) {
		p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "search", "write"}}}
	}
	grants := []string{"tool.invoke{tools=[hub.read,hub.search,other.write]}"}
	const hub = `{"type":"url","url":"https://mcp.hub.example/","name":"a","tool_configuration":{"allowed_tools":["read","search"]}}`
	const toolset = `{"configs":{"read":{"enabled":true},"search":{"enabled":true}},"default_config":{"enabled":false},"type":"mcp_toolset","mcp_server_name":"a"}`
	for name, test := range map[string]rewriting{
		"Anthropic": {
			where: messages, grants: grants, change: listed,
			body: `{"mcp_servers":[{"type":"url","url":"https://mcp.hub.example/","name":"a","authorization_token":"t"},{"type":"url","url":"https://mcp.hub.example/x","name":"b"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"search":{"enabled":false}}},{"type":"mcp_toolset","mcp_server_name":"b"}]}`,
			sent: `{"mcp_servers":[{"type":"url","url":"https://mcp.hub.example/","name":"a","tool_configuration":{"allowed_tools":["read","search"]}}],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"read":{"enabled":true}},"default_config":{"enabled":false}}]}`,
			did:  "narrowed mcp_servers a [hub.read hub.search]; omitted mcp_servers b scope_violation; narrowed mcp_toolset a [hub.read]; omitted mcp_toolset scope_violation",
		},
		"OpenAI": {
			where: responses, grants: grants, change: listed,
			body: `{"tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.hub.example/","authorization":"t","headers":{"X":"y"},"require_approval":"never"}]}`,
			sent: `{"tools":[{"type":"mcp","server_label":"a","server_url":"https://mcp.hub.example/","require_approval":"always","allowed_tools":["read","search"]}]}`,
			did:  "narrowed mcp hub [hub.read hub.search]",
		},
		"fewer than that": {
			where: responses, grants: grants, change: listed,
			body: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"tool_names":["search","write"]},"require_approval":"always"}]}`,
			sent: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"tool_names":["search"]},"require_approval":"always"}]}`,
			did:  "narrowed mcp hub [hub.search]",
		},
		"those that only read": {
			where: responses, grants: grants, change: listed,
			body: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"read_only":true},"require_approval":"always"}]}`,
			sent: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"read_only":true,"tool_names":["read","search"]},"require_approval":"always"}]}`,
			did:  "narrowed mcp hub [hub.read hub.search]",
		},
		"a filter, where only a list is known": {
			where: grok, grants: grants, change: listed,
			body: `{"input":"x","tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"tool_names":["search"]}}]}`,
			sent: `{"input":"x","tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":["search"]}]}`, did: "narrowed mcp hub [hub.search]",
		},
		"a filter of nothing there": {
			where: grok, grants: grants, change: listed,
			body: `{"input":"x","tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{}}]}`,
			sent: `{"input":"x","tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":["read","search"]}]}`, did: "narrowed mcp hub [hub.read hub.search]",
		},
		"a filter that is relayed": {
			where: responses, grants: grants, change: func(p *provider.Policy) { listed(p); p.Relayed = true },
			body: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"tool_names":["search"]},"require_approval":"always"}]}`,
			sent: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":["search"],"require_approval":"always"}]}`, did: "narrowed mcp hub [hub.search]",
		},
		"those that only read, where nobody says yes": {
			where: grok, grants: grants, change: listed,
			body: `{"input":"x","tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"read_only":true}}]}`, sent: `{"input":"x"}`, did: "omitted mcp not_available",
		},
		"those of tomorrow": {
			where: responses, grants: grants, change: listed,
			body: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/","allowed_tools":{"tags":["a"]}}]}`, sent: `{}`, did: "omitted mcp not_available",
		},
		"tools that were listed again and again": {
			where: messages, change: listed,
			body: `{"messages":[{"role":"assistant","content":[{"type":"text","text":"t"}` + strings.Repeat(`,{"type":"mcp_tool_listing","mcp_server_name":"a","tools":[{"name":"read"}]}`, 200) + `]}]}`,
			sent: `{"messages":[{"role":"assistant","content":[{"type":"text","text":"t"}]}]}`, did: "omitted mcp_tool_listing a scope_violation",
		},
		"none of those that are covered": { // a server without a toolset would have the whole request refused
			where: messages, grants: grants, change: listed,
			body: `{"mcp_servers":[` + hub + `],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"write":{"enabled":true}},"default_config":{"enabled":false}}]}`,
			sent: `{"mcp_servers":[` + hub + `],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{},"default_config":{"enabled":false}}]}`,
			did:  "narrowed mcp_toolset a",
		},
		"tools that are loaded later": {
			where: messages, grants: grants, change: listed,
			body: `{"mcp_servers":[` + hub + `],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"read":{"defer_loading":false}},"default_config":{"defer_loading":true}}]}`,
			sent: `{"mcp_servers":[` + hub + `],"tools":[{"type":"mcp_toolset","mcp_server_name":"a","configs":{"read":{"enabled":true,"defer_loading":false},"search":{"enabled":true}},"default_config":{"enabled":false,"defer_loading":true}}]}`,
			did:  "narrowed mcp_toolset a [hub.read hub.search]",
		},
		"tools that were listed": {
			where: messages, grants: grants, change: listed,
			body: `{"mcp_servers":[` + hub + `],"tools":[` + strings.Replace(toolset, `"a"}`, `"a","tools":[{"name":"read","input_schema":{"a\u0000":1}}]}`, 1) + `],"messages":[{"role":"assistant","content":[{"type":"mcp_tool_listing","mcp_server_name":"a","tools":[{"name":"read","description":"d","input_schema":{}},{"name":"search","input_schema":{}}]},{"type":"text","text":"t"}]}]}`,
		},
		"tools that were listed, and are not offered": {
			where: messages, grants: grants, change: listed,
			body: `{"mcp_servers":[` + hub + `],"tools":[` + strings.Replace(toolset, `"a"}`, `"a","tools":[{"name":"write","input_schema":{}}]}`, 1) + `],"messages":[{"role":"assistant","content":[{"type":"mcp_tool_listing","mcp_server_name":"a","tools":[{"name":"read"},{"name":"write"}]},{"type":"mcp_tool_listing","mcp_server_name":"b","tools":[]},{"type":"text","text":"t"}]}]}`,
			sent: `{"mcp_servers":[` + hub + `],"tools":[` + toolset + `],"messages":[{"role":"assistant","content":[{"type":"text","text":"t"}]}]}`,
			did:  "omitted mcp_toolset a scope_violation; omitted mcp_tool_listing a scope_violation; omitted mcp_tool_listing b scope_violation",
		},
		"nothing is covered": {
			where: responses, change: listed, body: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/"}]}`, sent: `{}`, did: "omitted mcp capability_absent",
		},
		"arguments are limited, and not seen": {
			where: responses, grants: []string{"tool.invoke{tools=[hub.read],args={owner=[acme]}}"}, change: listed,
			body: `{"tools":[{"type":"mcp","server_url":"https://mcp.hub.example/"}]}`, sent: `{}`, did: "omitted mcp scope_violation",
		},
		"Google takes no list of tools": {
			where: generate, grants: grants, change: listed, body: `{"contents":[],"tools":[{"mcpServers":[{"name":"a"}]}]}`, sent: `{"contents":[]}`, did: "omitted mcpServers scope_violation",
		},
	} {
		t.Run(name, test.run)
	}
}

// TestTranslateConnectors: what a connector offers an agent, where a vendor connects to any.
func TestTranslateConnectors(t *testing.T) {
	p := holding(t, "tool.invoke{tools=[hub.read]}")
	p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}, {Name: "other", URL: "https://mcp.other.example/", Tools: []string{"read"}}}
	for name, want := range map[string]string{
		"anthropic": `{"type":"mcp_toolset","mcp_server_name":"hub","configs":{"read":{"enabled":true}},"default_config":{"enabled":false}}`,
		"openai":    `{"type":"mcp","server_label":"hub","server_url":"https://mcp.hub.example/","allowed_tools":["read"],"require_approval":"always"}`,
		"xai":       `{"type":"mcp","server_label":"hub","server_url":"https://mcp.hub.example/","allowed_tools":["read"]}`,
		"gemini":    "",
	} {
		vendor, _ := provider.Lookup(name)
		tools := vendor.Translate(p)
		at := slices.IndexFunc(tools, func(t provider.Tool) bool { return t.Name == "mcp hub" })
		if want == "" {
			if at >= 0 {
				t.Errorf("%s connects to %s", name, tools[at].Entry)
			}
			continue
		}
		if at < 0 || string(tools[at].Entry) != want || len(tools[at].Changes) == 0 || !slices.Contains(tools[at].Changes[0].Tools, "hub.read") {
			t.Errorf("%s: %+v", name, tools)
			continue
		}
		if other := tools[at+1]; other.Name != "mcp other" || other.Entry != nil || len(other.Changes) == 0 || other.Changes[0].Code != "scope_violation" {
			t.Errorf("%s: %+v", name, other)
		}
	}
}

// TestNoAuthority: the zero Policy lets nothing be done.
func TestNoAuthority(t *testing.T) {
	for _, vendor := range provider.Vendors() {
		for _, tool := range vendor.Translate(provider.Policy{}) {
			if tool.Entry != nil {
				t.Errorf("%s: %s is %s", vendor.Name, tool.Name, tool.Entry)
			}
		}
	}
}

// TestTranslate: what an agent holds, in a vendor's words.
func TestTranslate(t *testing.T) {
	p := holding(t, hosts("*.github.com"), "provider.code_execution")
	for name, want := range map[string]string{
		"anthropic":  `web_search_20260318={"type":"web_search_20260318","name":"web_search","allowed_domains":["github.com"]} web_fetch_20260318={"type":"web_fetch_20260318","name":"web_fetch","allowed_domains":["github.com"]} code_execution_20260521={"type":"code_execution_20260521","name":"code_execution"} advisor_20260301=`,
		"gemini":     `googleSearch= urlContext= codeExecution={"codeExecution":{}} googleMaps= fileSearch= computerUse=`,
		"perplexity": `search={"model":"sonar","search_domain_filter":["github.com"]}`,
		"mistral":    `web_search= web_search_premium= code_interpreter={"type":"code_interpreter"} image_generation= document_library=`,
		"xai":        `web_search={"type":"web_search","filters":{"allowed_domains":["github.com"]}} x_search= view_image= view_x_video= code_interpreter={"type":"code_interpreter"} file_search= image_generation=`,
	} {
		vendor, _ := provider.Lookup(name)
		var got []string
		for _, tool := range vendor.Translate(p) {
			got = append(got, fmt.Sprintf("%s=%s", tool.Name, tool.Entry))
			if tool.Entry == nil && (len(tool.Changes) == 0 || tool.Changes[0].Why == "") {
				t.Errorf("%s: %s is left out for no reason", name, tool.Name)
			}
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %s", name, text)
		}
	}
}
