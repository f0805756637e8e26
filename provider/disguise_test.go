package provider_test

import (
	"cmp"
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// TestDisguises: what looks like something harmless to one reader and like a tool, a
// container or somebody else's answer to another one. What is harmless to all of them
// goes through.
func TestDisguises(t *testing.T) {
	const (
		search = `{"type":"server_tool_use","id":"s1","name":"web_fetch","input":{"url":"https://evil.example"}}`
		found  = `{"type":"web_fetch_tool_result","tool_use_id":"s1","content":{}}`
		ran    = `{"type":"code_interpreter_call","id":"ci_1","code":"1","container_id":"cntr_other","outputs":[],"status":"completed"}`
		auto   = `{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"disabled"}}}`
	)
	turns := func(each ...string) string {
		for i, blocks := range each {
			each[i] = `{"role":"assistant","content":[` + blocks + `]}`
		}
		return `{"messages":[{"role":"user","content":"a"},` + strings.Join(each, ",") + `]}`
	}
	const (
		asks = `{"toolCall":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["a"]}}}`
		told = `{"toolResponse":{"id":"1","toolType":"GOOGLE_SEARCH_WEB","response":{}}}`
	)
	predicted := func(parts ...string) string {
		return `{"contents":[{"role":"model","parts":[` + strings.Join(parts, ",") + `]}]}`
	}
	file := func(uri string) string { return `{"contents":[{"parts":[{"fileData":{"fileUri":"` + uri + `"}}]}]}` }
	relayed := func(p *provider.Policy) { p.Relayed = true }
	vouched := func(p *provider.Policy) { p.Pass = []string{"priority"} }
	for name, test := range map[string]struct {
		where, body string
		grants      []string
		change      func(*provider.Policy)
		code        capability.Code // "" passes
		out         string          // "" as it is
	}{
		"a tool by its member":                   {where: router, body: `{"model":"x/y","messages":[],"tools":[{"googleSearch":{}}]}`, code: capability.NotAvailable},
		"the same at Google":                     {where: "gemini /v1beta/openai/chat/completions", body: `{"messages":[],"tools":[{"google_search":{}}]}`, code: capability.NotAvailable},
		"the same, beside a function":            {where: chats, change: relayed, body: `{"messages":[],"tools":[{"type":"function","function":{"name":"f"},"url_context":{}}]}`, code: capability.NotAvailable},
		"a shell of the agent's with a place":    {where: "openrouter /v1/responses", body: `{"model":"x/y","tools":[{"type":"local_shell","environment":{"type":"container_auto"}}]}`, code: capability.NotAvailable},
		"the same, in a group":                   {where: responses, body: `{"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}],"googleSearch":{}}]}`, code: capability.NotAvailable},
		"the same, as a function of old":         {where: chats, change: relayed, body: `{"messages":[],"functions":[{"googleSearch":{}}]}`, code: capability.NotAvailable},
		"the same, beside one of old":            {where: chats, change: relayed, body: `{"messages":[],"functions":[{"name":"f","url_context":{}}]}`, code: capability.NotAvailable},
		"the same, as a function at Google":      {where: generate, change: relayed, body: `{"contents":[],"tools":[{"functionDeclarations":[{"googleSearch":{}}]}]}`, code: capability.NotAvailable},
		"functions that are none":                {where: chats, body: `{"messages":[],"functions":"f"}`, code: capability.MalformedRequest},
		"one function at Google":                 {where: generate, body: `{"contents":[],"tools":[{"functionDeclarations":{"name":"f","codeExecution":{}}}]}`, code: capability.NotAvailable},
		"all that a function of old may have":    {where: chats, body: `{"messages":[],"functions":[{"name":"f","description":"d","parameters":{"googleSearch":{}}}]}`},
		"all that a function at Google may have": {where: generate, body: `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","description":"d","parameters":{},"response":{},"behavior":"NON_BLOCKING"},{"name":"g","parametersJsonSchema":{},"response_json_schema":{}}]}]}`},
		"a type that only some readers see":      {where: messages, body: `{"tools":[{"Type":"web_search_20250305","name":"web_search","input_schema":{}}]}`, code: capability.NotAvailable},
		"where the agent's own tool would run":   {where: messages, body: `{"tools":[{"type":"bash_20250124","name":"bash","container":"c"}]}`, code: capability.NotAvailable},
		"a member that the operator vouches for": {where: chats, change: vouched, body: `{"messages":[],"tools":[{"type":"function","function":{"name":"f"},"priority":1}]}`},
		"all that a function may have":           {where: responses, body: `{"tools":[{"type":"function","name":"f","description":"d","parameters":{"googleSearch":{}},"strict":true,"async":true,"output_schema":{}},{"type":"computer_use_preview","display_height":1,"display_width":1,"environment":"linux"}]}`},
		"all that a tool of the agent may have":  {where: messages, body: `{"tools":[{"name":"f","description":"d","input_schema":{},"eager_input_streaming":true,"input_examples":[{}],"strict":true,"cache_control":null},{"type":"computer_20251124","name":"computer","display_height_px":1,"display_width_px":1,"display_number":1,"enable_zoom":true},{"type":"browser_toolset_20260801","configs":{}}]}`},

		"content to who ignores case":              {where: messages, body: `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","Content":[{"type":"image","source":{"type":"url","url":"https://evil.example"}}]}]}]}`, code: capability.NotAvailable},
		"an output to who ignores case":            {where: responses, body: `{"input":[{"type":"function_call_output","call_id":"c","Output":[{"type":"input_image","image_url":"https://evil.example"}]}]}`, code: capability.NotAvailable},
		"what was fetched, to who ignores case":    {where: messages, body: `{"messages":[{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"a","content":{"type":"web_fetch_result","Content":{"type":"document","source":{"type":"url","url":"https://evil.example"}}}}]}]}`, code: capability.NotAvailable},
		"what was fetched, in a list":              {where: messages, body: `{"messages":[{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"a","content":[{"type":"document","source":{"type":"url","url":"https://evil.example"}}]}]}]}`, code: capability.MalformedRequest},
		"what was fetched, which is a tool":        {where: messages, body: `{"messages":[{"role":"assistant","content":[{"type":"web_fetch_tool_result","tool_use_id":"a","content":{"type":"web_fetch_result","content":{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"code_execution_20250825","name":"code_execution"}}}}}]}]}`, code: capability.MalformedRequest},
		"what was said, to who ignores case":       {where: chats, body: `{"messages":[{"role":"assistant","audio":{"ID":"audio_1"}}]}`, code: capability.NotAvailable},
		"a network where none is known":            {where: grok, grants: []string{"provider.code_execution"}, body: `{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","network_policy":{"type":"allowlist","allowed_domains":["evil.example"]}}}]}`, code: capability.Forbidden},
		"a voice that is stored":                   {where: chats, body: `{"messages":[],"audio":{"format":"wav","voice":{"id":"voice_1"}}}`, code: capability.CapabilityAbsent},
		"a voice in a list":                        {where: chats, body: `{"messages":[],"audio":[{"voice":{"id":"voice_1"}}]}`, code: capability.CapabilityAbsent},
		"what was said, as a text":                 {where: chats, body: `{"messages":[{"role":"assistant","audio":"audio_1"}]}`, code: capability.CapabilityAbsent},
		"what was said, in a list":                 {where: chats, body: `{"messages":[{"role":"assistant","audio":[{"id":"audio_1"}]}]}`, code: capability.CapabilityAbsent},
		"a voice that Google stores":               {where: generate, body: `{"contents":[],"generationConfig":{"speechConfig":{"voiceConfig":{"voice":"voice_abc"}}}}`, code: capability.CapabilityAbsent},
		"the same, of several speakers":            {where: generate, body: `{"contents":[],"generation_config":{"speech_config":{"multi_speaker_voice_config":{"speaker_voice_configs":[{"voice_config":{"voice":"voices/voice_abc"}}]}}}}`, code: capability.CapabilityAbsent},
		"the same, as a text":                      {where: generate, body: `{"contents":[],"generationConfig":{"speechConfig":"voice_abc"}}`, code: capability.CapabilityAbsent},
		"the same, where everybody's are":          {where: generate, body: `{"contents":[],"generationConfig":{"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"voice_abc"}}}}}`, code: capability.CapabilityAbsent},
		"voices that are not stored":               {where: generate, body: `{"contents":[],"generationConfig":{"speechConfig":{"languageCode":"en-US","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"},"voice":"voicekey_a"}}}}`},
		"a file at Google, over something else":    {where: generate, grants: []string{"provider.files"}, body: file("gopher://generativelanguage.googleapis.com/v1beta/files/a"), code: capability.CapabilityAbsent},
		"a file at Google, as somebody":            {where: generate, grants: []string{"provider.files"}, body: file("https://evil.example%2f@generativelanguage.googleapis.com/v1beta/files/a"), code: capability.CapabilityAbsent},
		"what was said, by its id":                 {where: chats, body: `{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}`, code: capability.CapabilityAbsent},
		"a model that searches and runs code":      {where: chats, change: relayed, body: `{"model":"groq/compound-mini","messages":[]}`, code: capability.CapabilityAbsent},
		"the same, with half of what it does":      {where: chats, change: relayed, grants: []string{"provider.code_execution"}, body: `{"model":"compound-beta","messages":[]}`, code: capability.CapabilityAbsent},
		"the same, with all that it does":          {where: chats, change: relayed, grants: []string{"provider.code_execution", "provider.web_search"}, body: `{"model":"compound-beta","messages":[]}`},
		"the model of the account":                 {where: router, body: `{"messages":[]}`, code: capability.CapabilityAbsent},
		"the model of the account, by no name":     {where: router, body: `{"model":"","messages":[]}`, code: capability.CapabilityAbsent},
		"the model of the account, by a blank":     {where: router, body: `{"model":" \n","messages":[]}`, code: capability.CapabilityAbsent},
		"the model of the account, by no list":     {where: router, body: `{"models":[],"messages":[]}`, code: capability.CapabilityAbsent},
		"the model of the account, in a list":      {where: router, body: `{"models":["x/y",""],"messages":[]}`, code: capability.CapabilityAbsent},
		"the model of the account, in responses":   {where: "openrouter /v1/responses", body: `{"models":null,"input":"x"}`, code: capability.CapabilityAbsent},
		"the model of the account, who may search": {where: router, grants: []string{"provider.web_search"}, body: `{"messages":[]}`},
		"models in a list":                         {where: router, body: `{"models":["x/y"],"messages":[]}`},
		"a model that chooses another, elsewhere":  {where: router, body: `{"model":"~openrouter/auto","messages":[]}`, code: capability.CapabilityAbsent},
		"an agent that the provider keeps":         {where: "mistral /v1/chat/completions", body: `{"model":"ag:1:20250101:a:1","messages":[]}`, code: capability.Forbidden},
		"such an agent by an id of today":          {where: "mistral /v1/chat/completions", body: `{"model":"ag_068a1b2c","messages":[]}`, code: capability.Forbidden},
		"a search in the settings of a provider":   {where: router, body: `{"model":"x/y","messages":[],"provider":{"options":{"xai":{"search_parameters":{"mode":"on"}}}}}`, code: capability.Forbidden},
		"an address by itself":                     {where: router, change: vouched, body: `{"model":"x/y","messages":[],"priority":"https://a.example/"}`, code: capability.Forbidden},
		"an address in a list":                     {where: router, change: vouched, body: `{"model":"x/y","messages":[],"priority":["https://a.example/"]}`, code: capability.Forbidden},
		"an address in a list of settings":         {where: responses, body: `{"input":"a","image":["https://a.example/"]}`, code: capability.Forbidden},
		"an address that is embedded":              {where: "openai /v1/embeddings", body: `{"input":["https://a.example/"]}`},
		"a picture that is embedded":               {where: "openai /v1/embeddings", body: `{"input":[{"image":"https://a.example/"}]}`, code: capability.Forbidden},
		"many pictures that are embedded":          {where: "openai /v1/embeddings", body: `{"input":[["https://a.example/"]]}`, code: capability.Forbidden},

		"another agent's answer, compared":  {where: responses, body: `{"prompt_cache_options":{"comparison_response_id":"resp_1"},"input":"a"}`, code: capability.Forbidden},
		"another agent's message, compared": {where: messages, body: `{"diagnostics":{"previous_message_id":"msg_1"},"messages":[]}`, out: `{"messages":[]}`},
		"the first message, compared":       {where: messages, body: `{"diagnostics":{"previous_message_id":null},"messages":[]}`},
		"how long a prompt is kept":         {where: responses, body: `{"prompt_cache_options":{"mode":"explicit","ttl":"30m"},"input":"a"}`},

		"a file at who sounds like Google":        {where: generate, grants: []string{"provider.files"}, body: file("https://generativelanguage.evil.example/?what=is+known"), code: capability.CapabilityAbsent},
		"a path that sounds like Google":          {where: generate, grants: []string{"provider.files"}, body: file("https:files/x"), code: capability.CapabilityAbsent},
		"a file at Google":                        {where: generate, grants: []string{"provider.files"}, body: file("https://generativelanguage.googleapis.com/v1beta/files/x")},
		"a file at Google, by its name":           {where: generate, grants: []string{"provider.files"}, body: file("files/x")},
		"a file at who sounds like it, all of it": {where: generate, grants: []string{"provider.files", hosts("*.evil.example.com")}, body: file("https://generativelanguage.evil.example.com/x")},

		"an address where the id of a file stands": {where: chats, change: relayed, grants: []string{"provider.files"}, body: `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"https://evil.example/?what=is+known"}}]}]}`, code: capability.CapabilityAbsent},
		"a file by its id":                         {where: chats, grants: []string{"provider.files"}, body: `{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`},

		"what waits, before another turn of the same": {where: messages, body: turns(search, ""), code: capability.ScopeViolation},
		"what waits, before words":                    {where: messages, body: turns(search, `{"type":"text","text":"a"}`), code: capability.ScopeViolation},
		"what waits, before words that sound like it": {where: messages, body: turns(search, `{"type":"text","text":"a","tool_use_id":"s1"}`), code: capability.ScopeViolation},
		"what waits again":                            {where: messages, body: turns(search+","+found, search), code: capability.ScopeViolation},
		"what was answered before it was asked":       {where: messages, body: turns(found, search), code: capability.ScopeViolation},
		"what waits, before a turn that is left out": {
			where: messages, code: capability.ScopeViolation,
			body: strings.Replace(turns(search, `{"type":"text","text":"a"}`), `]},{"role":"assistant","content":[{"type":"text"`, `]},{"role":"user","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_fetch_20250910","name":"web_fetch"}}}]},{"role":"assistant","content":[{"type":"text"`, 1),
		},
		"what was found in the turn behind": {where: messages, body: turns(search, found)},
		"what was found long ago":           {where: messages, body: turns(search+","+found, `{"type":"text","text":"a"}`)},

		"what waits twice, answered once":             {where: messages, body: turns(search+","+search, found), code: capability.MalformedRequest},
		"what waits at Google behind what is offered": {where: generate, grants: []string{"provider.google_maps"}, body: strings.Replace(predicted(asks, strings.Replace(asks, "GOOGLE_SEARCH_WEB", "GOOGLE_MAPS", 1)), "{", `{"tools":[{"googleMaps":{}}],`, 1), code: capability.ScopeViolation},

		"what waits under the id of what was found": {where: messages, grants: []string{hosts("*.github.com")}, body: `{"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["github.com"]}],` + turns(search + `,{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`)[1:], code: capability.ScopeViolation},
		"what was found twice under one id":         {where: messages, body: turns(search + "," + found + "," + search + "," + found)},
		"what waits, answered by another tool":      {where: messages, body: turns(search + `,{"type":"mcp_tool_result","tool_use_id":"s1","content":"a"}`), code: capability.ScopeViolation},
		"what waits, in a turn of nobody":           {where: messages, body: strings.Replace(turns(search), "assistant", "Assistant", 1), code: capability.NotAvailable},
		"what waits, in a turn of many":             {where: messages, body: strings.Replace(turns(search), `"assistant"`, `["assistant"]`, 1), code: capability.MalformedRequest},
		"tools that were looked for":                {where: messages, body: turns(`{"type":"server_tool_use","id":"s1","name":"tool_search_tool_regex","input":{}},{"type":"tool_search_tool_result","tool_use_id":"s1","content":{}}`)},
		"advice that was given":                     {where: messages, body: turns(`{"type":"server_tool_use","id":"s1","name":"advisor","input":{}},{"type":"advisor_tool_result","tool_use_id":"s1","content":{}}`)},

		"an address for a picture that was drawn": {where: responses, body: `{"input":[{"type":"image_generation_call","id":"i","status":"completed","result":"https://evil.example/a"}]}`, code: capability.CapabilityAbsent},
		"a picture that was drawn":                {where: responses, body: `{"input":[{"type":"image_generation_call","id":"i","status":"completed","result":"aGk="}]}`},
		"an address for the bytes of a picture":   {where: messages, body: `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"https://evil.example/a"}}]}]}`, code: capability.CapabilityAbsent},
		"a file for code, in no list":             {where: responses, grants: []string{"provider.code_execution"}, body: `{"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":"file-1","network_policy":{"type":"disabled"}}}]}`, out: `{}`},
		"a skill for code, in no list":            {where: messages, grants: []string{"provider.code_execution"}, body: `{"container":{"skills":"s"},"messages":[]}`, out: `{"messages":[]}`},
		"a network for a shell of the agent's":    {where: responses, body: `{"tools":[{"type":"shell","environment":{"type":"local","network_policy":{"type":"allowlist","allowed_domains":["evil.example"]}}}]}`, out: `{}`},
		"a shell of the agent's":                  {where: responses, body: `{"tools":[{"type":"shell","environment":{"type":"local","skills":[]}}]}`},
		"an address in a tool of Google's":        {where: generate, grants: []string{"provider.google_maps"}, body: `{"contents":[],"tools":[{"googleMaps":{"icon":"https://evil.example/a"}}]}`, code: capability.CapabilityAbsent},
		"tools in a tool of Google's":             {where: generate, grants: []string{"provider.web_search"}, body: `{"contents":[],"tools":[{"googleSearch":{"mcpServers":[]}}]}`, code: capability.Forbidden},
		"a search that is off, and may be chosen": {where: sonar, body: `{"model":"sonar","disable_search":true,"enable_search_classifier":true,"return_images":true,"messages":[]}`, out: `{"model":"sonar","disable_search":true,"enable_search_classifier":false,"return_images":false,"messages":[]}`},

		"a search at Google that waits":                {where: generate, body: predicted(asks), code: capability.ScopeViolation},
		"one that was answered before it was asked":    {where: generate, body: predicted(told, asks), code: capability.ScopeViolation},
		"one whose tool is another":                    {where: generate, grants: []string{"provider.google_maps"}, body: strings.Replace(predicted(asks), "{", `{"tools":[{"googleMaps":{}}],`, 1), code: capability.ScopeViolation},
		"one in snake case, to be counted":             {where: "gemini /v1beta/models/m:countTokens", body: `{"generate_content_request":{"contents":[{"parts":[{"tool_call":{"id":"1","tool_type":"URL_CONTEXT"}}]}]}}`, code: capability.ScopeViolation},
		"one that was answered":                        {where: generate, body: predicted(asks, told)},
		"one that was asked twice, answered once":      {where: generate, body: predicted(asks, asks, told), code: capability.MalformedRequest},
		"one that another answered":                    {where: generate, body: predicted(asks, strings.Replace(told, "GOOGLE_SEARCH_WEB", "URL_CONTEXT", 1)), code: capability.ScopeViolation},
		"one of two types":                             {where: generate, grants: []string{"provider.google_maps"}, body: strings.Replace(predicted(strings.Replace(asks, "GOOGLE_SEARCH_WEB", `GOOGLE_MAPS","tool_type":"GOOGLE_SEARCH_WEB`, 1)), "{", `{"tools":[{"googleMaps":{}}],`, 1), code: capability.MalformedRequest},
		"one that was answered beside the contents":    {where: generate, body: strings.TrimSuffix(predicted(asks), "}") + `,"systemInstruction":{"parts":[` + told + `]}}`, code: capability.ScopeViolation},
		"one that was answered beside them, in snakes": {where: generate, body: strings.TrimSuffix(predicted(asks), "}") + `,"system_instruction":{"parts":[` + told + `]}}`, code: capability.ScopeViolation},
		"one that is offered":                          {where: generate, grants: []string{"provider.web_search"}, body: strings.Replace(predicted(asks), "{", `{"tools":[{"googleSearch":{}}],`, 1)},
		"code that has run, and none to come":          {where: responses, body: `{"input":[` + ran + `]}`},
		"code to come":                                 {where: responses, grants: []string{"provider.code_execution"}, body: `{"tools":[` + auto + `],"input":[]}`},
		"code to come, and a call without a container": {where: responses, grants: []string{"provider.code_execution"}, body: `{"tools":[` + auto + `],"input":[{"type":"code_interpreter_call","id":"ci_1","code":"1","container_id":null,"outputs":[]}]}`},

		"more servers than there can be": {where: messages, body: `{"mcp_servers":[` + strings.Repeat(`{"url":"https://mcp.hub.example/"},`, 64) + `{}],"messages":[]}`, code: capability.LimitExceeded},
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

	// Code would go on in a container that the input names: whose it is, and what it
	// may reach, is not known.
	for _, where := range []string{`{"tools":[` + auto + `],"input":[%]}`, `{"input":[{"type":"additional_tools","role":"developer","tools":[` + auto + `]},%]}`} {
		asked := strings.Replace(where, "%", ran, 1)
		out, changes, refused := rewrite(t, responses, asked, holding(t, "provider.code_execution"))
		if refused != nil || strings.Contains(out, `"auto"`) || len(changes) != 1 || changes[0].Code != capability.ScopeViolation {
			t.Errorf("%s: %v %v", out, refused, changes)
		}
	}
}

// TestNamesOfFunctions: a function has as many names as there are members for one, and
// another gateway may read any of them.
func TestNamesOfFunctions(t *testing.T) {
	p := holding(t)
	p.Relayed = true
	for _, tool := range []string{
		`{"type":"function","name":"google_search","function":{"name":"f"}}`,
		`{"type":"function","function":{"name":"google_search"},"custom":{"name":"f"}}`,
		`{"type":"custom","custom":{"name":"url_context"}}`,
		`{"type":"function","function":{"name":"litellm_web_search","parameters":{}}}`,
		`{"type":"function","function":{"name":"web_search"}}`,
		`{"type":"custom","name":"web_search","input_schema":{}}`,
		`{"type":"function","function":{"Name":"web_search"}}`, // to who reads members whatever their case is
		`{"type":"custom","custom":{"NAME":"google_search"}}`,
	} {
		if out, _, refused := rewrite(t, chats, `{"messages":[],"tools":[`+tool+`]}`, p); refused != nil || out != `{"messages":[]}` {
			t.Errorf("%s: %s (%v)", tool, out, refused)
		}
	}
	p = holding(t, hosts("*.a.example"), "provider.code_execution") // LiteLLM goes by the name, whatever the type is
	p.Relayed = true
	for _, kind := range []string{"bash_20250124", "tool_search_tool_regex", "memory_20250818", "code_execution_20250825", "web_fetch_20250910"} {
		for _, name := range []string{"web_search", "litellm_web_search", "WebSearch"} {
			body := `{"messages":[],"tools":[{"type":"` + kind + `","name":"` + name + `"}]}`
			if out, _, refused := rewrite(t, messages, body, p); refused != nil || out != `{"messages":[]}` {
				t.Errorf("%s: %s (%v)", body, out, refused)
			}
		}
	}
	p = holding(t, hosts("*"), "provider.image_generation") // and another makes what is called so a tool of Gemini's
	p.Relayed = true
	for _, tool := range []struct{ where, tool string }{
		{messages, `{"type":"web_search_20250305","name":"codeExecution"}`},
		{chats, `{"type":"image_generation","function":{"name":"codeExecution"}}`},
		{chats, `{"type":"image_generation","Function":{"Name":"codeExecution"}}`},
		{chats, `{"type":"image_generation","codeExecution":{}}`}, // LiteLLM passes over the type
		{chats, `{"type":"image_generation","code_execution":{}}`},
		{chats, `{"type":"image_generation","vector_store_ids":["a"]}`}, // here as well
		{responses, `{"type":"web_search_preview","name":"computer_use"}`},
	} {
		if out, _, refused := rewrite(t, tool.where, `{"tools":[`+tool.tool+`]}`, p); refused != nil || out != `{}` {
			t.Errorf("%s: %s (%v)", tool.tool, out, refused)
		}
	}
	p = holding(t, hosts("*.a.example"), "provider.code_execution")
	p.Relayed = true
	const named = `{"messages":[],"tools":[{"type":"bash_20250124","name":"bash"},{"type":"code_execution_20250825","name":"code_execution"},{"type":"computer_20251124","name":"computer"},` +
		`{"type":"web_search_20250305","name":"web_search","allowed_domains":["a.example"]}]}`
	if out, _, refused := rewrite(t, messages, named, p); out != named {
		t.Errorf("%s (%v)", out, refused)
	}
}

// TestSearchByName: whoever may search may have a function that is named for it.
func TestSearchByName(t *testing.T) {
	p := holding(t, "provider.web_search")
	p.Relayed = true
	body := `{"messages":[],"tools":[{"name":"WebSearch","input_schema":{}}]}`
	if out, _, refused := rewrite(t, messages, body, p); refused != nil || out != body {
		t.Errorf("%s (%v)", out, refused)
	}
	p.Authority = holding(t).Authority
	if out, _, refused := rewrite(t, messages, body, p); refused != nil || out != `{"messages":[]}` {
		t.Errorf("%s (%v)", out, refused)
	}
}

// TestWhereRelaysTell: another gateway may be told in a request where to send what it logs of
// it, or what to run, which the vendor itself takes for words.
func TestWhereRelaysTell(t *testing.T) {
	for where, body := range map[string]string{
		chats:                   `{"messages":[],"metadata":{"user":"a","langfuse_host":"https://evil.example"}}`,
		messages:                `{"messages":[],"metadata":{"user_id":"a","slack_webhook_url":"https://evil.example"}}`,
		mistral:                 `{"messages":[],"metadata":{"_litellm_code_execution_enabled":true,"_skill_files":{"a":{"a.py":"b"}}}}`,
		router:                  `{"model":"m","messages":[],"metadata":{"_skill_files":{}}}`,
		responses:               `{"input":"a","client_metadata":{"Langsmith_API_Key":"k"}}`,
		grok:                    `{"input":"a","metadata":{"posthog_host":"evil.example"}}`,
		"openai /v1/embeddings": `{"input":"a","metadata":{"arize_space_id":"a"}}`,
	} {
		p := holding(t, hosts("*"))
		if out, _, refused := rewrite(t, where, body, p); refused != nil || out != body {
			t.Errorf("%s (%v)", out, refused)
		}
		p.Relayed = true
		if out, _, refused := rewrite(t, where, body, p); refused == nil || refused.Code != capability.Forbidden {
			t.Errorf("%s (%v)", out, refused)
		}
	}
	p := holding(t)
	p.Relayed = true
	for _, body := range []string{
		`{"messages":[],"metadata":{"session_id":"https://a.example","tags":["langfuse_host"],"langfuse_prompt_version":1,"langfuse_host":null}}`,
		`{"messages":[],"metadata":null}`,
	} {
		if out, _, refused := rewrite(t, chats, body, p); refused != nil || out != body {
			t.Errorf("%s (%v)", out, refused)
		}
	}
}

// TestUnofferedChoice: a tool of the provider that a request chooses and does not offer
// is not named to the provider either.
func TestUnofferedChoice(t *testing.T) {
	for _, test := range []struct{ where, before, after string }{
		{router, `{"model":"x/y","messages":[],"tool_choice":{"type":"openrouter:web_search"}}`, `{"model":"x/y","messages":[]}`},
		{router, `{"model":"x/y","messages":[],"tool_choice":{"type":"openrouter:new"}}`, `{"model":"x/y","messages":[]}`},
		{chats, `{"messages":[],"tool_choice":{"type":"web_search_preview"}}`, `{"messages":[]}`},
		{responses, `{"input":"a","tool_choice":{"type":"code_interpreter"}}`, `{"input":"a"}`},
		{
			responses,
			`{"input":"a","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"image_generation"},{"type":"function","name":"f"}]}}`,
			`{"input":"a","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}}`,
		},
	} {
		out, changes, refused := rewrite(t, test.where, test.before, holding(t))
		if refused != nil || out != test.after || len(changes) != 1 {
			t.Errorf("%s (%v, %v), want %s", out, refused, changes, test.after)
		}
	}
	for _, body := range []string{
		`{"input":"a","tool_choice":{"type":"apply_patch"}}`,
		`{"input":"a","tools":[{"type":"image_generation"}],"tool_choice":{"type":"image_generation"}}`,
	} {
		if out, _, refused := rewrite(t, responses, body, holding(t, "provider.image_generation")); refused != nil || out != body {
			t.Errorf("%s (%v)", out, refused)
		}
	}
}

// TestNamesOfModels: at another gateway a name may say that the model searches, or how.
func TestNamesOfModels(t *testing.T) {
	for name, searching := range map[string]bool{
		"llama-3.3-70b:enable_web_search=on":    true,
		"default:enable_web_scraping=true":      true,
		"gemini-2.5-pro-search":                 true,
		"gpt-4o-Online":                         true,
		"my-research-model":                     false,
		"qwen3-4b:strip_thinking_response=true": false,
		"claude-sonnet-4-5":                     false,
		"openai/gpt-5.2":                        false,
	} {
		p := holding(t, hosts("*.a.example"))
		body := `{"model":"` + name + `","messages":[]}`
		if _, _, refused := rewrite(t, chats, body, p); refused != nil {
			t.Errorf("%s at the vendor: %v", name, refused)
		}
		p.Relayed = true
		if _, _, refused := rewrite(t, chats, body, p); (refused != nil) != searching {
			t.Errorf("%s: %v", name, refused)
		}
		p.Authority = holding(t, "provider.web_search").Authority
		if _, _, refused := rewrite(t, chats, body, p); refused != nil {
			t.Errorf("%s for who may search: %v", name, refused)
		}
	}
}
