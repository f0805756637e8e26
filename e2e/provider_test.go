//go:build unix

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// ownKey is the gateway's key, which only the provider sees.
const ownKey = "key-of-the-gateway-0123456789"

// vendor is a scripted provider of three kinds. It answers as each of them does.
type vendor struct {
	mu  sync.Mutex
	got []asked
}

// asked is one request as it came.
type asked struct {
	path, body string
	header     http.Header
}

func (v *vendor) start(t *testing.T) string {
	t.Helper()
	srv := httptest.NewServer(v)
	t.Cleanup(srv.Close)
	return srv.URL
}

// saw returns the bodies that have come to a path.
func (v *vendor) saw(path string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []string
	for _, one := range v.got {
		if one.path == path {
			list = append(list, one.body)
		}
	}
	return list
}

// ServeHTTP answers with a text of two words, as a whole or as a stream of them.
func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.got = append(v.got, asked{r.URL.Path, string(body), r.Header.Clone()})
	v.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	var b struct {
		Model  string
		Stream bool
	}
	_ = json.Unmarshal(body, &b) // of a GET there is none
	switch path := r.URL.Path; {
	case r.Method == http.MethodGet:
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","type":"model"}],"models":[{"name":"models/m"}]}`)
	case b.Model == "fail" || strings.Contains(path, "/fail:"):
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"type":"error","error":{"type":"rate_limit_error","message":"slow down","code":429,"status":"RESOURCE_EXHAUSTED"}}`)
	case path == "/v1/messages" && b.Stream:
		stream(w, anthropicWords())
	case path == "/v1/messages":
		fmt.Fprint(w, `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"two words"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)
	case path == "/v1/responses" && b.Stream:
		stream(w, []string{`{"type":"response.output_text.delta","delta":"two"}`, `{"type":"response.output_text.delta","delta":" words"}`, `{"type":"response.completed","response":{}}`})
	case path == "/v1/responses":
		fmt.Fprint(w, `{"id":"resp_1","object":"response","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"two words","annotations":[]}]}]}`)
	case path == "/v1/chat/completions" && b.Stream:
		stream(w, []string{`{"choices":[{"index":0,"delta":{"content":"two"}}]}`, `{"choices":[{"index":0,"delta":{"content":" words"}}]}`, `[DONE]`})
	case path == "/v1/chat/completions":
		fmt.Fprint(w, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"two words"},"finish_reason":"stop"}]}`)
	case strings.HasSuffix(path, ":streamGenerateContent"):
		googleWords(w, strings.Contains(path, "/cut:"))
	case strings.HasSuffix(path, ":generateContent"):
		fmt.Fprint(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":"two words"}]}}]}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// googleWords is a stream of two words, or of one and no end.
func googleWords(w http.ResponseWriter, cut bool) {
	words := []string{`{"candidates":[{"content":{"role":"model","parts":[{"text":"two"}]}}]}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":" words"}]}}]}`}
	if cut {
		stream(w, words[:1])
		panic(http.ErrAbortHandler)
	}
	stream(w, words)
}

func anthropicWords() []string {
	return []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"two"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" words"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`,
		`{"type":"message_stop"}`,
	}
}

// stream sends each event off before the next.
func stream(w http.ResponseWriter, events []string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range events {
		var e struct{ Type string }
		_ = json.Unmarshal([]byte(data), &e) // one is no JSON
		if e.Type != "" {
			fmt.Fprintf(w, "event: %s\n", e.Type)
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
		_ = http.NewResponseController(w).Flush()
	}
}

// bureau is a gateway in front of a provider, with an agent that may search
// github.com.
func bureau(t *testing.T, at string) *gateway {
	t.Helper()
	dir := tree(t, map[string]string{
		"capgate.yml": fmt.Sprintf("agents: ./agents\nstate: ./state\nsecrets: { key: { file: ./key } }\nproviders:\n"+
			"  anthropic: { key: \"{{secret:key}}\", url: %q }\n  openai: { key: \"{{secret:key}}\", url: %[1]q }\n  gemini: { key: \"{{secret:key}}\", url: %[1]q }\n", at),
		"key":             ownKey + "\n",
		"agents/scout.md": "---\nid: agents/scout\nclass: agent\ncapabilities:\n  - net.get: { hosts: [\"*.github.com\"] }\n---\nYou search.\n",
	})
	return serve(t, dir, "capgate.yml", "scout")
}

// address is the value of a variable that the gateway has said to set.
func (g *gateway) address(t *testing.T, variable string) string {
	t.Helper()
	return g.said.await(t, variable+`=(\S+),`)
}

// TestSDKs: the vendors' own clients work through the gateway as they do without,
// but for what their agent does not hold.
func TestSDKs(t *testing.T) {
	sdks := filepath.Dir(filepath.Dir(filepath.Dir(installed(t, "sdks/node_modules/openai/package.json"))))
	for _, test := range []struct {
		name, address, key, path string
		tools                    string // of the request that names some, as they go up
		want                     map[string]string
	}{
		{
			"anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "/v1/messages",
			`[{"name":"mine","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search","max_uses":3,"allowed_domains":["github.com"]}]`,
			map[string]string{
				"plain": "two words", "stream": "two| words", "helper": "two words", "runner": "two words", "models": "m",
				"tools":    "narrowed=web_search_20250305; omitted=code_execution_20250825",
				"error":    "429 RateLimitError *slow down*",
				"streamed": "429 RateLimitError *slow down*",
				"batches":  "403 PermissionDeniedError *capgate: forbidden*",
				"stranger": "401 AuthenticationError *capgate: unauthenticated*",
			},
		},
		{
			"openai", "OPENAI_BASE_URL", "OPENAI_API_KEY", "/v1/responses",
			`[{"type":"function","name":"mine","parameters":{},"strict":false},{"type":"web_search","filters":{"allowed_domains":["github.com"]}}]`,
			map[string]string{
				"plain": "two words", "stream": "two| words", "chat": "two words", "chat stream": "two| words", "models": "m",
				"tools":    "narrowed=web_search; omitted=code_interpreter; repaired=include",
				"error":    "429 RateLimitError *slow down*",
				"streamed": "429 RateLimitError *slow down*",
				"stored":   "403 PermissionDeniedError *capgate: *",
				"batches":  "403 PermissionDeniedError *capgate: forbidden*",
				"stranger": "401 AuthenticationError *capgate: unauthenticated*",
			},
		},
		{
			"gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "/v1/models/m:generateContent",
			`[{"functionDeclarations":[{"name":"mine"}]}]`,
			map[string]string{
				"plain": "two words", "stream": "two| words", "models": "models/m",
				"tools":    "omitted=googleSearch,codeExecution,urlContext",
				"error":    "429 ApiError *slow down*",
				"cache":    "403 ApiError *capgate: *",
				"files":    "403 ApiError *capgate: forbidden*",
				"cut":      "502 ApiError *broke off*",
				"stranger": "401 ApiError *capgate: unauthenticated*",
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := &vendor{}
			g := bureau(t, v.start(t))
			script, err := filepath.Abs(filepath.Join("testdata", "sdk", test.name+".mjs"))
			if err != nil {
				t.Fatal(err)
			}
			cmd := command(t, installed(t, node), script)
			cmd.Env = append(cmd.Env, "SDKS="+sdks, test.address+"="+g.address(t, test.address), test.key+"="+g.token)
			o := run(t, cmd)
			got := map[string]string{}
			for line := range strings.Lines(o.out) {
				var said struct{ What, Value string }
				if json.Unmarshal([]byte(line), &said) == nil {
					got[said.What] = said.Value
				}
			}
			for what, want := range test.want {
				if before, after, pattern := strings.Cut(want, "*"); got[what] != want &&
					!(pattern && strings.HasPrefix(got[what], before) && strings.Contains(got[what], strings.TrimSuffix(after, "*"))) {
					t.Errorf("%s: %q, want %q", what, got[what], want)
				}
			}
			if o.code != 0 || t.Failed() {
				t.Errorf("ended with %d: %s%s", o.code, o.out, o.err)
			}
			v.onlyKey(t, g)
			if tools := v.tools(t, test.path); tools != test.tools {
				t.Errorf("the tools that go up are\n%s, want\n%s", tools, test.tools)
			}
		})
	}
}

// onlyKey: every request shows the gateway's key and none of the agent's, and
// nothing that is logged or recorded shows either.
func (v *vendor) onlyKey(t *testing.T, g *gateway) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, one := range v.got {
		if all := fmt.Sprintf("%+v", one); !strings.Contains(all, ownKey) || strings.Contains(all, g.token) || strings.Contains(all, "-mine") {
			t.Errorf("the provider saw %s", all)
		}
	}
	if log := g.said.String(); strings.Contains(log, ownKey) || strings.Contains(log, g.token) {
		t.Errorf("the log shows a key: %s", log)
	}
	files, _ := filepath.Glob(filepath.Join(g.dir, "state", "events", "*"))
	if len(files) == 0 {
		t.Error("nothing was recorded")
	}
	for _, file := range files {
		if data, err := os.ReadFile(file); err != nil || strings.Contains(string(data), ownKey) || strings.Contains(string(data), g.token) {
			t.Errorf("%s shows a key: %v", file, err)
		}
	}
}

// tools are those of the one request to a path that has some.
func (v *vendor) tools(t *testing.T, path string) string {
	t.Helper()
	for _, body := range v.saw(path) {
		var b struct{ Tools json.RawMessage }
		if err := json.Unmarshal([]byte(body), &b); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if b.Tools != nil {
			return string(b.Tools)
		}
	}
	return ""
}
