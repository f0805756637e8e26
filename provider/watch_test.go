package provider_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/provider"
)

// echoes is what an answer says again of its request.
const echoes = `"text":{"format":{"schema":{"examples":[{"type":"web_search_call","url":"https://evil.example"}]}}},"metadata":{"type":"mcp_call"},` +
	`"reasoning":{"type":"code_interpreter_call"},"instructions":[{"type":"program"}],"prompt":{"type":"x_search_call"},"tool_choice":{"type":"file_search_call"},"response_format":{"citations":["https://evil.example"]}`

// TestWatch: what a response shows of the provider's tools is held against what the
// agent holds.
func TestWatch(t *testing.T) {
	event := func(data string) string { return "event: x\ndata: " + data + "\n\n" }
	found := func(url string) string {
		return event(`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"a","content":[{"type":"web_search_result","url":"` + url + `","title":"t"}]}}`)
	}
	for name, test := range map[string]struct {
		vendor string
		grants []string
		body   string
		seen   []string
	}{
		"within what is held":               {"anthropic", []string{hosts("*.github.com")}, found("https://docs.github.com/a"), nil},
		"a page outside":                    {"anthropic", []string{hosts("github.com")}, found("https://gist.github.com/a"), []string{"web_search gist.github.com:443 scope_violation"}},
		"a page in another script":          {"openai", []string{hosts("xn--e1afmkfd.xn--p1ai", "b.example")}, `{"output":[{"type":"web_search_call","action":{"type":"open_page","url":"https://пример.рф./ a"}}]}`, nil},
		"a page behind a blank":             {"anthropic", []string{hosts("b.example")}, found(`\nhttps://evil.exa\nmple/\u0085`), []string{"web_search evil.example:443 scope_violation"}},
		"a page and all that is said to it": {"anthropic", []string{hosts("b.example")}, found("https://evil.example/%zz?d=" + strings.Repeat("a", 9000)), []string{"web_search evil.example:443 scope_violation"}},
		"a page that nobody can read":       {"anthropic", []string{hosts("b.example")}, found("https://" + strings.Repeat("a", 9000) + "/"), []string{"web_search  scope_violation"}},
		"a function of the agent's":         {"gemini", nil, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"executableCode":"x","type":"code_execution"}}}]}}]}`, nil},
		"another in that script":            {"openai", []string{hosts("b.example")}, `{"output":[{"type":"web_search_call","action":{"type":"open_page","url":"https://пример.рф/"}}]}`, []string{"web_search xn--e1afmkfd.xn--p1ai:443 scope_violation"}},
		"citations of nothing":              {"anthropic", nil, `{"data":[{"id":"m","capabilities":{"citations":{"supported":true}}}],"content":[{"type":"text","text":"t","citations":null}]}`, nil},
		"citations of a document":           {"anthropic", nil, event(`{"type":"content_block_start","content_block":{"type":"text","text":"","citations":[{"type":"page_location","cited_text":"t"}]}}`), nil},
		"no citations":                      {"xai", nil, `{"choices":[],"citations":[]}`, nil},
		"citations":                         {"xai", nil, `{"choices":[],"citations":["https://a.example/"]}`, []string{"web_search  capability_absent", "web_search a.example:443 capability_absent"}},
		"results":                           {"perplexity", nil, `{"choices":[],"search_results":[{"title":"t","url":"https://a.example/"}]}`, []string{"web_search  capability_absent", "web_search a.example:443 capability_absent"}},
		"a schema that is echoed":           {"openai", nil, `{"tools":[{"type":"function","name":"f","parameters":{"properties":{"citations":{"type":"array"},"search_results":{}}}}]}`, nil},
		"what was asked for": {
			"openai", nil, `{"object":"response",` + echoes + `,"output":[{"type":"tool_search_call","arguments":{"a":{"type":"web_search_call"}}}]}`, nil,
		},
		"what was asked for, and what ran": {
			"xai", nil, event(`{"type":"response.created","response":{`+echoes+`,"output":[]}}`) + event(`{"item":{"type":"code_interpreter_call"}}`),
			[]string{"code_interpreter_call  capability_absent"},
		},
		"names of what was asked for, elsewhere": {
			"openai", nil, event(`{"response":{"output":[{"type":"message","text":{"type":"web_search_call"},"metadata":{"type":"code_interpreter_call"}}]},"reasoning":{"type":"file_search_call"}}`),
			[]string{"web_search  capability_absent", "code_interpreter_call  capability_absent", "file_search_call  capability_absent"},
		},
		"pictures that a search has found": {
			"openai",
			[]string{hosts("a.example")},
			`{"output":[{"type":"web_search_call","results":[{"type":"image_result","image_url":"https://b.example/1.png","source_website_url":"https://c.example/"}]}]}`,
			[]string{"web_search b.example:443 scope_violation", "web_search c.example:443 scope_violation"},
		},
		"pictures beside an answer": {
			"perplexity",
			[]string{hosts("a.example")},
			`{"choices":[],"images":[{"image_url":"https://b.example/1.png","origin_url":"https://a.example/"}]}`,
			[]string{"web_search b.example:443 scope_violation"},
		},
		"pictures that were drawn": {
			"openrouter", nil, `{"choices":[{"message":{"images":[{"type":"image_url","image_url":{"url":"https://b.example/1.png"}}]}}]}`, nil,
		},
		"a call that waits for a yes": {
			"openai", nil, event(`{"item":{"type":"mcp_approval_request","name":"drop"}}`), []string{"mcp_approval_request  scope_violation"},
		},
		"a search that nobody holds": {
			"anthropic", nil, event(`{"type":"content_block_start","content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`),
			[]string{"web_search  capability_absent"},
		},
		"code that nobody holds": {
			"anthropic",
			[]string{hosts("*")},
			event(`{"type":"content_block_start","content_block":{"type":"server_tool_use","id":"s","name":"bash_code_execution","input":{}}}`),
			[]string{"bash_code_execution  capability_absent"},
		},
		"the agent's own tools": {
			"anthropic", nil, event(`{"type":"content_block_start","content_block":{"type":"tool_use","name":"web_search","input":{"url":"https://evil.example"}}}`), nil,
		},
		"text is no tool": {
			"anthropic", nil, event(`{"type":"content_block_delta","delta":{"type":"text_delta","text":"web_search https://evil.example tool"}}`), nil,
		},
		"a page that OpenAI opened": {
			"openai",
			[]string{hosts("*.github.com")},
			event(`{"type":"response.output_item.done","item":{"type":"web_search_call","action":{"type":"open_page","url":"https://evil.example/x"}}}`),
			[]string{"web_search evil.example:443 scope_violation"},
		},
		"a query is no page": {
			"openai",
			[]string{hosts("*.github.com")},
			event(`{"type":"response.output_item.done","item":{"type":"web_search_call","action":{"type":"search","queries":["kubernetes"],"sources":[{"type":"url","url":"https://api.github.com/"}]}}}`), nil,
		},
		"a foreign server": {
			"openai",
			[]string{hosts("*")},
			event(`{"type":"response.output_item.done","item":{"type":"mcp_call","name":"x"}}`),
			[]string{"mcp_call  scope_violation"},
		},
		"one document": {
			"openai",
			[]string{hosts("*.github.com")},
			`{"output":[{"type":"message","content":[{"type":"output_text","text":"x","annotations":[{"type":"url_citation","url":"https://evil.example"}]}]},{"type":"code_interpreter_call"}]}`,
			[]string{"url_citation evil.example:443 scope_violation", "code_interpreter_call  capability_absent"},
		},
		"Gemini": {
			"gemini",
			[]string{hosts("*.github.com")},
			`[{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}}]},"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://vertexaisearch.cloud.google.com/x","domain":"evil.example"}}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://github.com/"}]}}]}]`,
			[]string{"code_execution  capability_absent", "web_fetch  capability_absent", "url_citation evil.example scope_violation"},
		},
		"Perplexity": {
			"perplexity",
			[]string{hosts("*.github.com")},
			event(`{"choices":[],"citations":["https://github.com/a","https://evil.example/b"]}`) + event("[DONE]"),
			[]string{"web_search evil.example:443 scope_violation"},
		},
		"a page in words that are escaped": {
			"anthropic",
			[]string{hosts("a.example")},
			event(`{"type":"content_block_start","content_block":{"type":"web_f\u0065tch_t\u006fol_result","content":{"type":"web_f\u0065tch_result","\u0075rl":"https://evil.example/x"}}}`),
			[]string{"web_fetch evil.example:443 scope_violation"},
		},
		"a page in JSON text": {
			"openrouter",
			[]string{hosts("a.example")},
			`{"choices":[{"message":{"reasoning_details":[{"type":"reasoning.server_tool_call","tool_name":"openrouter:web_fetch","arguments":"{\"url\":\"https://evil.example/x\"}","result":" [{\"url\":\"https://other.example/x\",\"content\":\"{\\\"url\\\":\\\"https://third.example\\\"}\"}]"}]}}]}`,
			[]string{"web_fetch evil.example:443 scope_violation", "web_fetch other.example:443 scope_violation"},
		},
		"a page in the input of a part": {
			"xai",
			[]string{hosts("a.example")},
			`{"output":[{"type":"custom_tool_call","name":"browse_page","input":"{\"url\":\"https://evil.example/x\"}"},{"type":"web_search_call","arguments":"{\"url\":\"https://other.example/x\"}"}]}`,
			[]string{"web_search evil.example:443 scope_violation", "web_search other.example:443 scope_violation"},
		},
		"a page in what a tool is told to do": {
			"mistral",
			[]string{hosts("*")},
			event(`{"type":"tool.execution.started","name":"web_search","arguments":"{\"url\": \"http"}`) + event(`{"type":"tool.execution.done","name":"web_search","arguments":"{\"url\":\"http://10.0.0.1/\"}"}`),
			[]string{"web_search 10.0.0.1:80 scope_violation"},
		},
		"a page in what the agent's own is told":  {"openrouter", []string{hosts("a.example")}, `{"output":[{"type":"function_call","name":"web_fetch","arguments":"{\"url\":\"https://evil.example/x\"}"},{"type":"custom_tool_call","name":"browse_page","input":"{\"url\":\"https://evil.example/x\"}"}]}`, nil},
		"who may search at all may read anything": {"openai", []string{"provider.web_search"}, event(`{"type":"url_citation","url":"https://evil.example"}`), nil},
		"who may fetch at all may read anything":  {"gemini", []string{"provider.web_fetch"}, `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://evil.example/"}}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://evil.example/"}]}}]}`, nil},
		"who may search may not fetch":            {"anthropic", []string{"provider.web_search", hosts("a.example")}, event(`{"type":"content_block_start","content_block":{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://evil.example/"}}}`), []string{"web_fetch evil.example:443 scope_violation"}},
		"who may fetch may not search":            {"gemini", []string{"provider.web_fetch"}, `{"candidates":[{"groundingMetadata":{"webSearchQueries":["q"]}}]}`, []string{"web_search  capability_absent"}},
		"an address in pieces": {
			"anthropic",
			[]string{hosts("a.example")},
			event(`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_fetch","input":{}}}`) +
				event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"u"}}`) +
				event(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`) +
				event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"rl\": \"https://evil.ex"}}`) +
				event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"ample/\"}"}}`) +
				event(`{"type":"content_block_stop","index":1}`) + event(`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"https://other.example/\""}}`),
			[]string{"web_fetch evil.example:443 scope_violation"},
		},
		"one that breaks off":              {"anthropic", []string{hosts("a.example")}, event(`{"type":"content_block_start","index":1,"content_block":{"type":"server_tool_use","id":"s","name":"web_fetch"}}`) + event(`{"type":"content_block_delta","index":1,"delta":{"partial_json":"{\"url\":\"https://evil.example/\"}"}}`), []string{"web_fetch evil.example:443 scope_violation"}},
		"a call of the agent's in pieces":  {"anthropic", []string{hosts("a.example")}, event(`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"s","name":"web_fetch","input":{}}}`) + event(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"url\":\"https://evil.example/\"}"}}`) + event(`{"type":"content_block_stop","index":1}`), nil},
		"a search is one":                  {"anthropic", nil, event(`{"type":"content_block_start","content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`) + found("https://b.example/1"), []string{"web_search  capability_absent", "web_search b.example:443 capability_absent"}},
		"steps of Perplexity":              {"perplexity", nil, `{"choices":[{"message":{"reasoning_steps":[{"type":"fetch_url_content","fetch_url_content":{"contents":[{"url":"https://b.example/"}]}},{"type":"execute_python","execute_python":{"code":"1"}}]}}]}`, []string{"web_fetch  capability_absent", "web_fetch b.example:443 capability_absent", "code_execution  capability_absent"}},
		"what xAI counts":                  {"xai", nil, `{"output":[{"type":"collections_search_call"}],"usage":{"server_side_tool_usage_details":{"web_search_calls":1,"x_search_calls":2,"code_interpreter_calls":0,"document_search_calls":1}}}`, []string{"file_search_call  capability_absent", "web_search  capability_absent", "x_search_call  capability_absent"}},
		"a tool that is echoed":            {"openai", nil, `{"tools":[{"type":"function","name":"f","parameters":{"properties":{"a":{"default":{"type":"web_search","url":"https://evil.example"}}}}}],"output":[]}`, nil},
		"every host, and not this machine": {"anthropic", []string{hosts("*")}, found("http://169.254.169.254/"), []string{"web_search 169.254.169.254:80 scope_violation"}},
		"seen once":                        {"anthropic", []string{hosts("*.a.example")}, found("https://b.example/1") + found("https://b.example/2"), []string{"web_search b.example:443 scope_violation"}},
		"other ends of lines":              {"anthropic", []string{hosts("*.a.example")}, strings.ReplaceAll(found("https://b.example"), "\n", "\r\n"), []string{"web_search b.example:443 scope_violation"}},
		"an event in several lines": {
			"anthropic",
			[]string{hosts("*.a.example")},
			"data: {\"type\":\"web_search_result\",\r\ndata: \"url\":\"https://b.example\"}\r\n\r\n",
			[]string{"web_search b.example:443 scope_violation"},
		},
		"an end without a line": {"anthropic", []string{hosts("*.a.example")}, strings.TrimSpace(found("https://b.example")), []string{"web_search b.example:443 scope_violation"}},
	} {
		t.Run(name, func(t *testing.T) {
			vendor, _ := provider.Lookup(test.vendor)
			for _, size := range []int{1, 7, len(test.body)} {
				w := vendor.Watch(holding(t, test.grants...))
				for rest := test.body; rest != ""; {
					n := min(size, len(rest))
					if took, err := w.Write([]byte(rest[:n])); took != n || err != nil {
						t.Fatalf("took %d of %d: %v", took, n, err)
					}
					rest = rest[n:]
				}
				var seen []string
				for _, o := range w.Close() {
					seen = append(seen, fmt.Sprintf("%s %s %s", o.Tool, o.Host, o.Code))
				}
				if diff := cmp.Diff(test.seen, seen); diff != "" {
					t.Errorf("in pieces of %d:\n%s", size, diff)
				}
				if w.Unread() > 0 {
					t.Errorf("%d events are unread", w.Unread())
				}
			}
		})
	}
}

// TestLongCall: what a tool is told in more pieces than are kept is counted, and so is what
// cannot be read.
func TestLongCall(t *testing.T) {
	for piece, times := range map[string]int{strings.Repeat("x", 60<<10): 2, "{": 1} {
		vendor, _ := provider.Lookup("anthropic")
		w := vendor.Watch(holding(t, hosts("a.example")))
		_, _ = w.Write([]byte("data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"server_tool_use\",\"name\":\"web_fetch\"}}\n\n"))
		for range times {
			_, _ = w.Write([]byte("data: {\"index\":0,\"delta\":{\"partial_json\":\"" + piece + "\"}}\n\n"))
		}
		if seen := w.Close(); len(seen) != 0 || w.Unread() != 1 {
			t.Errorf("seen %v, %d unread", seen, w.Unread())
		}
	}
}

// TestLongText: JSON text that is longer than is looked at is counted, and text that is no
// JSON is none.
func TestLongText(t *testing.T) {
	vendor, _ := provider.Lookup("openrouter")
	for text, unread := range map[string]int{`{\"a\":\"` + strings.Repeat("x", 70<<10) + `\"}`: 1, strings.Repeat("x", 70<<10): 0, "[a link](https://b.example)": 0, "{": 0, "": 0} {
		w := vendor.Watch(holding(t, hosts("a.example")))
		_, _ = w.Write([]byte(`{"output":[{"type":"openrouter:web_fetch","result":"` + text + `"}]}`))
		if seen := w.Close(); len(seen) != 0 || w.Unread() != unread {
			t.Errorf("%.40s: seen %v, %d unread", text, seen, w.Unread())
		}
	}
}

// TestLongHost: the name of a host that no host has is not worked on.
func TestLongHost(t *testing.T) {
	var name strings.Builder
	for r := rune(0x4e00); r < 0x9e00; r++ {
		name.WriteRune(r)
	}
	vendor, _ := provider.Lookup("gemini")
	w := vendor.Watch(holding(t, hosts("*")))
	begun := time.Now()
	_, _ = w.Write([]byte(`{"candidates":[{"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://` + name.String() + `/"}]}}]}`))
	if seen := w.Close(); len(seen) != 1 || seen[0].Code != "scope_violation" || time.Since(begun) > time.Second {
		t.Errorf("%v after %v", seen, time.Since(begun))
	}
}

// TestWatchLimits: what is too long or cannot be read is counted, and what follows
// is read.
func TestWatchLimits(t *testing.T) {
	vendor, _ := provider.Lookup("anthropic")
	w := vendor.Watch(holding(t))
	long := strings.Repeat("x", 5<<20)
	_, _ = w.Write([]byte("data: {\"tool\":\"" + long))
	_, _ = w.Write([]byte(long + "\"}\n\ndata: {\"tool\":1,\"tool\":2}\n\ndata: {\"type\":\"mcp_call\"}\n\n"))
	if seen := w.Close(); len(seen) != 1 || w.Unread() != 2 {
		t.Errorf("seen %v, %d unread", seen, w.Unread())
	}
	w = vendor.Watch(holding(t))
	_, _ = w.Write([]byte("\x0a\x12data: {}\n\n"))
	_, _ = w.Write([]byte("data: {\"type\":\"mcp_call\"}\n\n"))
	if seen := w.Close(); len(seen) != 0 || w.Unread() != 1 {
		t.Errorf("seen %v, %d unread", seen, w.Unread())
	}
	w = vendor.Watch(holding(t))
	for i := range 200 {
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"web_search_result\",\"url\":\"https://h%d.example\"}\n\n", i)
	}
	_, _ = fmt.Fprint(w, "data: {\"type\":\"mcp_call\"}\n\ndata: {\"type\":\"code_interpreter_call\"}\n\n")
	seen := w.Close()
	if len(seen) != 1+64+2 || w.Unread() != 200-64 || seen[66].Tool != "code_interpreter_call" {
		t.Errorf("%d were seen, at last %v, and %d left out", len(seen), seen[len(seen)-1], w.Unread())
	}
	w = vendor.Watch(holding(t))
	_, _ = w.Write([]byte(`{"type":"mcp_call","a":"`))
	for range 20 {
		_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
	}
	if seen := w.Close(); len(seen) != 0 || w.Unread() != 1 {
		t.Errorf("seen %v, %d unread", seen, w.Unread())
	}
}

// TestWatchSees: what ran at a provider is seen in each of the forms that show it.
func TestWatchSees(t *testing.T) {
	for _, test := range []struct{ vendor, answer, seen string }{
		{"openai", `{"output":[{"type":"program","code":"1"}]}`, "program"},
		{"openai", "data: {\"item\":{\"type\":\"program\",\"id\":\"p\"}}\n\n", "program"},
		{"openai", `{"output":[{"type":"shell_call","environment":{"type":"container_reference","container_id":"c"}}]}`, "code_execution"},
		{"openai", `{"output":[{"type":"shell_call","environment":{"type":"local"}}]}`, ""},
		{"openrouter", `{"output":[{"type":"openrouter:web_search"}]}`, "web_search"},
		{"openrouter", `{"output":[{"type":"openrouter:code_interpreter","stdout":"x"}]}`, "code_execution"},
		{"openrouter", "data: {\"item\":{\"type\":\"openrouter:shell\",\"action\":{\"commands\":[\"ls\"]}}}\n\n", "code_execution"},
		{"openrouter", `{"output":[{"type":"openrouter:bash","command":"ls"}]}`, "code_execution"},
		{"openrouter", `{"output":[{"type":"openrouter:browser_use"}]}`, "browser_use_call"},
		{"openrouter", `{"output":[{"type":"openrouter:file_search"},{"type":"openrouter:image_generation"}]}`, "file_search_callimage_generation_call"},
		{"openrouter", `{"output":[{"type":"openrouter:files"},{"type":"openrouter:subagent"},{"type":"openrouter:advisor"}]}`, "files_callsubagent_calladvisor"},
		{"openrouter", `{"output":[{"type":"openrouter:mcp","server_label":"a"}]}`, "mcp_call"},
		{"openrouter", `{"output":[{"type":"openrouter:fusion","sources":[{"url":"https://a.example"}]}]}`, "web_searchweb_search"},
		{"openrouter", `{"choices":[{"message":{"reasoning_details":[{"type":"reasoning.server_tool_call","tool_name":"openrouter:subagent","result":"x"}]}}]}`, "subagent_call"},
		{"openrouter", `{"output":[{"type":"openrouter:datetime"},{"type":"openrouter:apply_patch"}]}`, ""},
		{"anthropic", `{"content":[{"type":"server_tool_use","name":"openrouter:shell","input":{}}]}`, "code_execution"},
		{"xai", `{"output":[{"type":"view_image_call"},{"type":"view_x_video_call"}]}`, "view_image_callview_x_video_call"},
		{"xai", `{"output":[{"type":"custom_tool_call","name":"x_keyword_search"},{"type":"custom_tool_call","name":"browse_page"}]}`, "x_search_callweb_search"},
		{"xai", `{"output":[{"type":"custom_tool_call","name":"code_execution"},{"type":"custom_tool_call","name":"view_image"},{"type":"custom_tool_call","name":"view_x_video"},{"type":"custom_tool_call","name":"open_page"}]}`, "code_interpreter_callview_image_callview_x_video_callweb_search"},
		{"xai", `{"output":[{"type":"custom_tool_call","name":"mine"}]}`, ""},
		{"openai", `{"output":[{"type":"custom_tool_call","name":"browse_page"}]}`, ""},
		{"openrouter", `{"choices":[],"usage":{"server_tool_use":{"web_search_requests":2}}}`, "web_search"},
		{"anthropic", `{"content":[],"usage":{"server_tool_use":{"web_fetch_requests":1}}}`, "web_fetch"},
		{"anthropic", `{"content":[{"type":"tool_reference","tool_name":"web_search"}]}`, ""},
		{"mistral", "data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"tool_reference\",\"tool\":\"web_search\",\"url\":\"https://a.example\"}]}}]}\n\n", "web_searchweb_search"},
		{"mistral", `{"choices":[{"message":{"content":[{"type":"tool_file","tool":"code_interpreter","file_id":"f"}]}}]}`, "code_execution"},
		{"mistral", `{"choices":[{"message":{"content":[{"type":"tool_reference","tool":"document_library"}]}}]}`, "document_library_call"},
		{"mistral", "data: {\"type\":\"tool.execution.started\",\"name\":\"web_search_premium\",\"arguments\":\"\"}\n\n", "web_search"},
		{"mistral", `{"outputs":[{"type":"tool.execution","name":"code_interpreter"},{"type":"tool.execution","name":"image_generation"},{"type":"tool.execution","name":"mine"}]}`, "code_executionimage_generation_call"},
		{"gemini", `{"candidates":[{"content":{"parts":[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","id":"1"}}]}}]}`, "web_search"},
		{"gemini", `{"candidates":[{"content":{"parts":[{"toolResponse":{"toolType":"URL_CONTEXT","response":{"url":"https://a.example"}}}]}}]}`, "web_fetchweb_fetch"},
		{"gemini", `{"candidates":[{"content":{"parts":[{"tool_call":{"tool_type":"FILE_SEARCH"}}]}}]}`, "file_search_call"},
		{"gemini", `{"candidates":[{"groundingMetadata":{}}]}`, ""},
		{"gemini", `{"candidates":[{"groundingMetadata":{"webSearchQueries":["x"]}}]}`, "web_search"},
		{"gemini", `{"candidates":[{"groundingMetadata":{"searchEntryPoint":{"renderedContent":"x"}}}]}`, "web_search"},
		{"gemini", `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"maps":{"uri":"https://maps.google.com/?cid=1"}}]}}]}`, "google_maps_call"},
		{"gemini", `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"retrievedContext":{"title":"x","uri":"https://a.example"}}]}}]}`, "file_search_call"},
		{"anthropic", `{"content":[],"usage":{"server_tool_use":{"web_search_requests":0,"web_fetch_requests":0}}}`, ""},
	} {
		vendor, _ := provider.Lookup(test.vendor)
		w := vendor.Watch(holding(t))
		_, _ = w.Write([]byte(test.answer))
		seen := ""
		for _, o := range w.Close() {
			seen += o.Tool
		}
		if seen != test.seen {
			t.Errorf("%s: saw %q, want %q", test.answer, seen, test.seen)
		}
	}

	// A tool of an MCP server is looked for among those that are granted.
	p := holding(t, "tool.invoke{tools=[hub.read,hub.drop]}")
	p.Connectors = []provider.Connector{{Name: "hub", URL: "https://mcp.hub.example/", Tools: []string{"read", "write"}}}
	for answer, want := range map[string]string{
		`{"output":[{"type":"mcp_list_tools","tools":[]},{"type":"mcp_call","server_label":"a","name":"read"},{"type":"mcp_approval_request","name":"write"}]}`: "",
		`{"output":[{"type":"mcp_call","server_label":"a","name":"write"}]}`:                                                                                    "mcp_call write",
		`{"output":[{"type":"mcp_call","server_label":"a","name":"drop"}]}`:                                                                                     "mcp_call drop",
		"data: {\"content_block\":{\"type\":\"mcp_tool_use\",\"server_name\":\"a\",\"name\":\"write\"}}\n\n":                                                    "mcp_tool_use write",
		`{"content":[{"type":"mcp_tool_use","name":"read"},{"type":"mcp_tool_result","content":[]}]}`:                                                           "",
	} {
		vendor, _ := provider.Lookup("openai")
		w := vendor.Watch(p)
		_, _ = w.Write([]byte(answer))
		var seen []string
		for _, o := range w.Close() {
			seen = append(seen, o.Tool)
		}
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("%s: saw %q, want %q", answer, got, want)
		}
	}

	// A page is not behind a redirect because its name begins like one.
	vendor, _ := provider.Lookup("gemini")
	w := vendor.Watch(holding(t, hosts("good.example")))
	_, _ = w.Write([]byte(`{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://vertexaisearch.cloud.google.com/a"}},{"web":{"uri":"https://vertexaisearch.cloud.google.com.evil.example/a"}}]}}]}`))
	if seen := w.Close(); len(seen) != 2 || seen[1].Host != "vertexaisearch.cloud.google.com.evil.example:443" {
		t.Errorf("saw %v", seen)
	}
}

// TestWatchHeld: a tool that reads the web is told of by whoever could not have asked for it,
// whatever hosts are held: a provider takes no address and no port, and some take no list at all.
func TestWatchHeld(t *testing.T) {
	const (
		grounded = `{"candidates":[{"groundingMetadata":{"webSearchQueries":["plans"],"searchEntryPoint":{},"groundingChunks":[{"web":{"uri":"https://vertexaisearch.cloud.google.com/a","title":"evil.example"}}]}}]}`
		cited    = `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://vertexaisearch.cloud.google.com/a","title":"evil.example"}}]}}]}`
		read     = `{"candidates":[{"urlContextMetadata":{"urlMetadata":[]}}]}`
		called   = `{"candidates":[{"content":{"parts":[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB"}}]}}]}`
		executed = `{"outputs":[{"type":"tool.execution","name":"web_search"}]}`
		searched = `{"output":[{"type":"web_search_call","action":{"type":"search","query":"plans"}}]}`
		fetched  = `{"content":[{"type":"server_tool_use","name":"web_fetch","input":{}}]}`

		// What other tools show as searches are shown.
		places  = `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"maps":{"uri":"https://maps.google.com/?cid=1","title":"I"}}],"webSearchQueries":["near me"],"googleMapsWidgetContextToken":"w"}}]}`
		both    = `{"candidates":[{"groundingMetadata":{"groundingChunks":[{"maps":{"uri":"https://maps.google.com/?cid=1"}}],"webSearchQueries":["near me"],"searchEntryPoint":{}}}]}`
		posts   = `{"citations":["https://x.com/i/status/1"],"output":[{"type":"x_search_call"},{"type":"message","content":[{"type":"output_text","annotations":[{"type":"url_citation","url":"https://x.com/i/status/1"}]}]}]}`
		mixed   = `{"citations":["https://x.com/i/status/1","https://x.com.evil.example/"]}`
		files   = `{"citations":["collections://c/files/f"],"output":[{"type":"file_search_call"}]}`
		several = `{"citations":["collections://c/files/f","https://x.com/i/status/1"]}`
		chat    = `{"choices":[{"message":{"annotations":[{"type":"url_citation","url_citation":{"url":"https://x.com/a/status/1"}}]}}]}`
	)
	for _, test := range []struct {
		vendor, answer string
		grants, waits  []string
		seen           string
	}{
		{"gemini", grounded, []string{hosts("github.com")}, nil, "web_search capability_absent"},
		{"gemini", "data: " + cited + "\n\ndata: " + called + "\n\ndata: " + cited + "\n\ndata: " + read + "\n\n", nil, nil, "web_search capability_absent; web_fetch capability_absent"},
		{"gemini", cited, nil, nil, "url_citation capability_absent"},
		{"gemini", called, []string{hosts("github.com")}, nil, "web_search capability_absent"},
		{"gemini", grounded, []string{hosts("*")}, nil, ""},
		{"gemini", grounded, []string{hosts("github.com"), "provider.web_search"}, nil, ""},
		{"gemini", grounded, []string{hosts("*")}, []string{"provider.web_search"}, "web_search requires_approval"},
		{"gemini", cited, nil, []string{"provider.web_search"}, "url_citation capability_absent"},
		{"gemini", grounded, nil, []string{"provider.web_search"}, "web_search requires_approval"},
		{"gemini", places, []string{"provider.google_maps"}, nil, ""},
		{"gemini", places, nil, nil, "google_maps_call capability_absent"},
		{"gemini", both, []string{"provider.google_maps"}, nil, "web_search capability_absent"},
		{"xai", posts, []string{"provider.x_search"}, nil, ""},
		{"xai", posts, []string{"provider.x_search", hosts("github.com")}, nil, ""},
		{"xai", mixed, []string{"provider.x_search", hosts("github.com")}, nil, "web_search scope_violation"},
		{"xai", files, []string{"provider.file_search"}, nil, ""},
		{"xai", files, nil, nil, "file_search_call capability_absent"},
		{"xai", several, []string{"provider.x_search"}, nil, "file_search_call capability_absent"},
		{"openrouter", chat, []string{"provider.x_search", hosts("github.com")}, nil, ""},
		{"openrouter", chat, []string{hosts("github.com")}, nil, "url_citation scope_violation"},
		{"openai", chat, []string{"provider.x_search", hosts("github.com")}, nil, "url_citation scope_violation"},
		{"mistral", executed, []string{hosts("github.com")}, nil, "web_search capability_absent"},
		{"mistral", executed, []string{hosts("*")}, nil, ""},
		{"openai", searched, []string{hosts("github.com")}, nil, ""},
		{"openai", searched, []string{hosts("github.com")}, []string{"provider.web_search"}, "web_search requires_approval"},
		{"openai", searched, []string{hosts("10.0.0.1")}, nil, "web_search capability_absent"},
		{"xai", searched, []string{hosts("github.com:8443")}, nil, "web_search capability_absent"},
		{"xai", searched, []string{hosts("github.io")}, nil, "web_search capability_absent"},
		{"anthropic", fetched, []string{hosts("github.com")}, []string{"provider.web_search"}, ""},
		{"anthropic", fetched, []string{hosts("github.com")}, []string{"provider.web_fetch"}, "web_fetch requires_approval"},
	} {
		vendor, _ := provider.Lookup(test.vendor)
		p := holding(t, test.grants...)
		var verbs []capability.Verb
		for _, verb := range test.waits {
			verbs = append(verbs, capability.Verb(verb))
		}
		p.Authority = waiting{p.Authority, verbs}
		w := vendor.Watch(p)
		_, _ = w.Write([]byte(test.answer))
		var seen []string
		for _, o := range w.Close() {
			seen = append(seen, o.Tool+" "+string(o.Code))
		}
		if got := strings.Join(seen, "; "); got != test.seen {
			t.Errorf("%s with %v, %v waiting: saw %q, want %q", test.answer, test.grants, test.waits, got, test.seen)
		}
	}
	vendor, _ := provider.Lookup("xai")
	p := holding(t, hosts("github.com"))
	p.Strict = true
	w := vendor.Watch(p)
	_, _ = w.Write([]byte(searched))
	if seen := w.Close(); len(seen) != 1 {
		t.Errorf("strictly, it saw %v", seen)
	}
}

// TestWatchRoom: what a long answer takes is asked for, and one that there is no room
// for is counted. What follows in a stream is read.
func TestWatchRoom(t *testing.T) {
	vendor, _ := provider.Lookup("anthropic")
	call := `{"type":"mcp_call","a":"` + strings.Repeat("x", 3<<20) + `"}`
	for _, test := range []struct {
		body               string
		room, seen, unread int
	}{
		{call, 8 << 20, 1, 0},
		{call, 2 << 20, 0, 1},
		{"data: " + call + "\n\n", 16 << 20, 1, 0},
		{"data: " + call + "\n\ndata: {\"type\":\"mcp_call\"}\n\n", 2 << 20, 1, 1},
		{`{"type":"mcp_call"}`, 0, 1, 0},
	} {
		w, taken := vendor.Watch(holding(t)), 0
		w.Room = func(bytes int) bool {
			if taken+bytes > test.room {
				return false
			}
			taken += bytes
			return true
		}
		for rest := test.body; rest != ""; {
			n := min(len(rest), 32<<10)
			_, _ = w.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if seen := w.Close(); len(seen) != test.seen || w.Unread() != test.unread {
			t.Errorf("%.30q with %d: seen %v, %d unread", test.body, test.room, seen, w.Unread())
		}
		if kept := len(call) * test.seen * (1 - test.unread); len(test.body) > 1<<20 && taken < kept {
			t.Errorf("%.30q: room for %d bytes was asked for, %d were kept", test.body, taken, kept)
		}
	}
}
