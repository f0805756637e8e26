package provider_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/capability"
	"capgate/provider"
	"capgate/wire"
)

// said are requests with one of everything that people, programs and schemas say in
// them, and the places in which they may say what only some readers take alike.
func said() []struct{ where, body, places string } {
	return []struct{ where, body, places string }{
		{messages, `{"model":"m","metadata":{"user_id":"u"},"output_config":{"format":{"schema":{"x":"y"}}},"system":"s","stop_sequences":["z"],
			"tools":[{"name":"f","description":"d","input_schema":{"properties":{"id":"i"}},"input_examples":[{"e":"e"}]},{"type":"custom","name":"g","input_schema":{}}],
			"tool_choice":{"type":"tool","name":"f"},
			"messages":[{"role":"user","content":"t"},
			{"role":"assistant","content":[{"type":"text","text":"t","citations":[{"cited_text":"c"}]},{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"t","name":"f","input":{"a":{"b":"c"}}},
				{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","title":"t","url":"u"}]},
				{"type":"bash_code_execution_tool_result","tool_use_id":"s","content":{"stdout":"o"}},
				{"type":"web_fetch_tool_result","tool_use_id":"s","content":{"type":"web_fetch_result","url":"u","content":{"type":"document","title":"t","source":{"type":"text","media_type":"text/plain","data":"d"}}}},
				{"type":"compaction","content":"c"}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"r"},{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"},{"type":"image","source":{"type":"base64","media_type":"m","data":"aGk="}}]},
				{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"t"}]}]}]}`, `
			messages.0.content messages.1.content.0.citations.0 messages.1.content.0.text messages.1.content.1.thinking messages.1.content.2.input messages.1.content.3.input
			messages.1.content.4.content.0 messages.1.content.5.content messages.1.content.6.content.content.source.data messages.1.content.6.content.content.title messages.1.content.7.content
			messages.2.content.0.content messages.2.content.1.content.0.text messages.2.content.2.content.0.text messages.2.content.2.source messages.2.content.2.title
			metadata output_config system tools.0.description tools.0.input_examples.0 tools.0.input_schema tools.1.input_schema`},
		{responses, `{"model":"m","instructions":"i","metadata":{"k":"v"},"text":{"format":{"schema":{"a":"b"}}},"user":"u",
			"tools":[{"type":"function","name":"f","description":"d","parameters":{"properties":{"id":"i"}},"output_schema":{"a":"b"}},{"type":"custom","name":"c","format":{"definition":"d"}},{"type":"namespace","name":"n","description":"d","tools":[{"type":"function","name":"g","parameters":{"a":"b"}}]}],
			"input":[{"role":"user","content":"t"},{"type":"message","role":"user","content":[{"type":"input_text","text":"t"}]},{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"t","annotations":[{"title":"t"}]},{"type":"refusal","refusal":"r"}]},
			{"type":"function_call","call_id":"c","name":"f","arguments":"a"},{"type":"function_call_output","call_id":"c","output":"o"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"t"}]},
			{"type":"custom_tool_call","call_id":"c","name":"c","input":"i"},{"type":"reasoning","id":"r","summary":[{"text":"t"}],"encrypted_content":"e"},
			{"type":"local_shell_call","call_id":"c","action":{"command":["c"]}},{"type":"local_shell_call_output","id":"c","output":"o"},{"type":"shell_call_output","call_id":"c","output":[{"stdout":"o"}]},
			{"type":"apply_patch_call","call_id":"c","operation":{"diff":"d"}},{"type":"web_search_call","id":"w","action":{"type":"search","query":"q"}},{"type":"file_search_call","id":"f","queries":["q"],"results":null},
			{"type":"code_interpreter_call","id":"c","container_id":"c","code":"c","outputs":[{"type":"logs","logs":"l"}]},{"type":"tool_search_call","arguments":{"q":"q"}},{"type":"computer_call","id":"c","action":{"type":"type","text":"t"}}]}`, `
			input.0.content input.1.content.0.text input.10.output.0 input.11.operation input.12.action input.13.queries.0 input.14.code input.14.outputs.0.logs input.15.arguments input.16.action
			input.2.content.0.annotations.0 input.2.content.0.text input.2.content.1.refusal input.3.arguments input.4.output input.5.output.0.text input.6.input input.7.summary.0 input.8.action input.9.output
			instructions metadata text tools.0.description tools.0.output_schema tools.0.parameters tools.1.format tools.2.description tools.2.tools.0.parameters`},
		{chats, `{"model":"m","metadata":{"k":"v"},"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"id":"i"}}},"prediction":{"type":"content","content":"c"},"stop":"s",
			"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"properties":{"id":"i"}}}}],"functions":[{"name":"f","parameters":{"a":"b"}}],
			"messages":[{"role":"system","content":"s"},{"role":"user","name":"n","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"a"}}],"reasoning_content":"r","parsed":{"a":{"b":"c"}}},{"role":"tool","tool_call_id":"c","content":"o"}]}`, `
			functions.0.parameters messages.0.content messages.1.content.0.text messages.2.parsed messages.2.reasoning_content messages.2.tool_calls.0 messages.3.content
			metadata prediction response_format tools.0.function.description tools.0.function.parameters`},
		{generate, `{"systemInstruction":{"parts":[{"text":"t"}]},"generationConfig":{"responseSchema":{"id":"i"},"_responseJsonSchema":{"id":"i"},"responseMimeType":"m","stopSequences":["s"],"speechConfig":{"languageCode":"l"}},
			"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"id":"i"}}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
			"contents":[{"role":"user","parts":[{"text":"t"},{"inlineData":{"mimeType":"m","data":"aGk="}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":"b"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"o":"o"}}}]}]}`, `
			contents.0.parts.0.text contents.1.parts.0.functionCall contents.2.parts.0.functionResponse.response generationConfig._responseJsonSchema generationConfig.responseSchema
			systemInstruction.parts.0.text tools.0.functionDeclarations.0.description tools.0.functionDeclarations.0.parametersJsonSchema`},
		{"openai /v1/embeddings", `{"model":"m","input":["a","b"],"user":"u"}`, `input.0 input.1`},
		{"openai /v1/embeddings", `{"model":"m","input":"a"}`, `input`},
	}
}

// place is one value of a body, and where it stands.
type place struct {
	path  string
	value wire.Value
}

func placesIn(v wire.Value, path string, all *[]place) {
	*all = append(*all, place{path, v})
	for key, member := range v.Members() {
		name, _ := key.Str()
		placesIn(member, strings.TrimPrefix(path+"."+name, "."), all)
	}
	i := 0
	for element := range v.Elems() {
		placesIn(element, fmt.Sprint(path, ".", i), all)
		i++
	}
}

// TestOpaque: text with a NUL, and an object with names that differ only in case, pass
// where nothing is decided by them, as they came, and nowhere else. In no place do two
// names that are the same.
func TestOpaque(t *testing.T) {
	for _, test := range said() {
		doc, err := wire.Parse([]byte(test.body))
		if err != nil {
			t.Fatal(err)
		}
		if out, _, refused := rewrite(t, test.where, test.body, holding(t)); refused != nil || out != test.body {
			t.Fatalf("%s, as it is: %v\n%s", test.where, refused, out)
		}
		var all []place
		placesIn(doc.Root(), "", &all)
		passed := []string{}
		for _, at := range all {
			doubtful, same := doubts(test.body, at.value)
			if _, _, refused := rewrite(t, test.where, same, holding(t)); same != "" && refused == nil {
				t.Errorf("%s: the same name twice passes at %s", test.where, at.path)
			}
			through := 0
			for _, body := range doubtful {
				through += passes(t, test.where, body)
			}
			if through > 0 {
				passed = append(passed, at.path)
			}
			if through > 0 && through < len(doubtful) {
				t.Errorf("%s: %d of %d pass at %s", test.where, through, len(doubtful), at.path)
			}
		}
		if diff := cmp.Diff(strings.Fields(test.places), outermost(passed)); diff != "" {
			t.Errorf("%s: places that pass (-want +got):\n%s", test.where, diff)
		}
	}
}

// doubts writes into a value of a body what only some readers take alike, and what
// none do.
func doubts(body string, v wire.Value) (doubtful []string, same string) {
	start, end := v.Span()
	behind := func(text string) string { return body[:end-1] + text + body[end-1:] }
	switch comma := ","; v.Kind() {
	case wire.String:
		doubtful = []string{behind(`\u0000`), behind(`\ud800`)}
	case wire.Object:
		if end-start == len("{}") {
			comma = ""
		}
		doubtful = []string{behind(comma + `"zz":1,"ZZ":2`), behind(comma + `"z\u0000":1`), behind(comma + `"zz":"\u0000"`)}
		same = behind(comma + `"zz":1,"ZZ":2,"zz":3`)
	}
	return doubtful, same
}

// passes counts a body that goes up as it is. Any other is refused for how it is
// written.
func passes(t *testing.T, where, body string) int {
	t.Helper()
	out, _, refused := rewrite(t, where, body, holding(t))
	switch {
	case refused != nil && refused.Code != capability.MalformedRequest:
		t.Errorf("%s: refused as %v: %s", where, refused, body)
	case refused == nil && out != body:
		t.Errorf("%s: changed: %s", where, out)
	case refused == nil:
		return 1
	}
	return 0
}

// outermost leaves out places within others.
func outermost(paths []string) (all []string) {
	slices.Sort(paths)
	for _, path := range paths {
		if !slices.ContainsFunc(all, func(one string) bool { return strings.HasPrefix(path, one+".") }) {
			all = append(all, path)
		}
	}
	return all
}

// TestOpaqueStays: what is rewritten keeps them as they are, and what is left out
// brings nothing along.
func TestOpaqueStays(t *testing.T) {
	const asked = `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"\u0000"}]}],"tools":[%s{"name":"f","input_schema":{"id":1,"ID":2}}]}`
	out, _, refused := rewrite(t, messages, fmt.Sprintf(asked, `{"type":"web_search_20250305","name":"web_search"},`), holding(t))
	if want := fmt.Sprintf(asked, ""); refused != nil || out != want {
		t.Errorf("%v: %s", refused, out)
	}
	for name, body := range map[string]string{
		"a name that only some readers see":   `{"messages":[],"tools":[{"name":"f","input_schema":{},"Input_Schema":{}}]}`,
		"a type behind text":                  `{"messages":[{"role":"user","content":[{"type":"text","text":"a","Type":"image","source":{"type":"url","url":"https://evil.example"}}]}]}`,
		"tools twice":                         `{"messages":[],"tools":[],"Tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
		"a NUL in a type":                     `{"messages":[],"tools":[{"type":"web_search_20250305\u0000","name":"web_search"}]}`,
		"a NUL in a name":                     `{"messages":[],"tools":[{"name":"f\u0000","input_schema":{}}]}`,
		"half a pair in a name":               `{"messages":[],"tools":[{"name":"f\ud800","input_schema":{}}]}`,
		"a NUL in an address":                 `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a.example/\u0000"}}]}]}`,
		"a NUL in a domain":                   `{"messages":[],"tools":[{"type":"web_search_20250305","name":"web_search","allowed_domains":["github.com\u0000.evil.example"]}]}`,
		"a NUL in what is vouched for":        `{"messages":[],"tomorrow":"\u0000"}`,
		"a NUL in a member behind a text":     `{"messages":[{"role":"user","content":"a\u0000"}],"model":"m\u0000"}`,
		"a NUL in a member before a text":     `{"model":"m\u0000","messages":[{"role":"user","content":"a\u0000"}]}`,
		"a name in the place of a text":       `{"messages":[{"role":"user","content":[{"type":"text","text":"a","\u0000":1}]}]}`,
		"case between a result and its block": `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"a","Content":[]}]}]}`,
	} {
		p := holding(t, hosts("*.github.com"))
		p.Pass = []string{"tomorrow"}
		if out, _, refused := rewrite(t, messages, body, p); refused == nil || refused.Code != capability.MalformedRequest {
			t.Errorf("%s: %v: %s", name, refused, out)
		}
	}
}

// TestWatchOpaque: what a page says of itself does not hide that it was read.
func TestWatchOpaque(t *testing.T) {
	vendor, _ := provider.Lookup("anthropic")
	for _, title := range []string{`"\u0000"`, `{"id":1,"ID":2}`} {
		w := vendor.Watch(holding(t, hosts("*.github.com")))
		_, _ = w.Write([]byte("data: " + `{"type":"content_block_start","content_block":{"type":"web_fetch_tool_result","content":{"type":"web_fetch_result","url":"https://evil.example/","title":` + title + "}}}\n\n"))
		if seen := w.Close(); len(seen) != 1 || !strings.HasPrefix(seen[0].Host, "evil.example") || w.Unread() != 0 {
			t.Errorf("%s: %+v, %d unread", title, seen, w.Unread())
		}
	}
}
