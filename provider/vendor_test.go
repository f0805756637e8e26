package provider_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/provider"
)

// TestEndpoints: an endpoint is open by its exact path, and every other is not.
func TestEndpoints(t *testing.T) {
	open := map[string]bool{
		"anthropic POST /v1/messages":                                           true,
		"anthropic POST /v1/messages?beta=true":                                 true,
		"anthropic POST /v1/messages/count_tokens?beta=true":                    true,
		"anthropic GET /v1/models?limit=1000":                                   true,
		"anthropic HEAD /v1/models":                                             true,
		"anthropic HEAD /api/hello":                                             true,
		"anthropic GET /v1/models/claude-opus-4-8":                              true,
		"openai POST /v1/responses":                                             true,
		"openai POST /v1/chat/completions":                                      true,
		"openai POST /v1/embeddings":                                            true,
		"openai POST /v1/responses/input_tokens":                                true,
		"openai GET /v1/models/ft:gpt-4o-mini:org::abc":                         true,
		"openai GET /v1/models/ft:::":                                           false,
		"openai GET /v1/models/ft:m:../../files":                                false,
		"gemini POST /v1beta/models/ft:m:streamGenerateContent:generateContent": false,
		"gemini POST /v1beta/models/gemini-3-pro:generateContent":               true,
		"gemini POST /v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse": true,
		"gemini POST /v1beta/models/gemini-3-pro:countTokens":                   true,
		"openrouter POST /v1/chat/completions":                                  true,
		"perplexity POST /chat/completions":                                     true,
		"mistral POST /v1/chat/completions":                                     true,
		"xai POST /v1/responses":                                                true,

		"anthropic GET /v1/messages":                                   false,
		"anthropic POST /v1/messages/":                                 false,
		"anthropic POST //v1/messages":                                 false,
		"anthropic POST /v1/../v1/messages":                            false,
		"anthropic POST /v1%2fmessages":                                false,
		"anthropic POST /V1/messages":                                  false,
		"anthropic POST /v1/messages/batches":                          false,
		"anthropic POST /v1/messages?beta=true&beta=true":              false,
		"anthropic POST /v1/messages?tools=x":                          false,
		"anthropic POST /v1/messages?beta=a;b":                         false,
		"anthropic POST /v1/messages?b%65ta=true":                      false,
		"anthropic OPTIONS /v1/messages":                               false,
		"anthropic POST /v1/agents":                                    false,
		"anthropic POST /v1/sessions":                                  false,
		"anthropic POST /v1/files":                                     false,
		"anthropic POST /v1/skills":                                    false,
		"anthropic GET /v1/organizations/me":                           false,
		"anthropic GET /v1/models/../messages":                         false,
		"anthropic GET /v1/models/a/b":                                 false,
		"anthropic GET /v1/models/%2e%2e":                              false,
		"openai GET /v1/responses":                                     false,
		"openai GET /v1/responses/resp_1":                              false,
		"openai POST /v1/responses/compact":                            false,
		"openai GET /v1/realtime":                                      false,
		"openai POST /v1/batches":                                      false,
		"openai POST /v1/files":                                        false,
		"openai POST /v1/conversations":                                false,
		"openai POST /v1/containers":                                   false,
		"openai POST /v1/assistants":                                   false,
		"openai POST /responses":                                       false,
		"gemini POST /v1/models/m:streamGenerateContent?alt=sse":       true,
		"gemini POST /v1/models/m:batchGenerateContent":                false,
		"gemini POST /v1beta/models/m:batchGenerateContent":            false,
		"gemini POST /v1beta/models/m:generateContent?key=abc":         false,
		"gemini POST /v1beta/models/m:streamGenerateContent?alt=json":  true,
		"gemini POST /v1beta/models/m:streamGenerateContent?alt=proto": false,
		"gemini POST /v1beta/models/m:streamGenerateContent?alt=":      false,
		"gemini POST /v1beta/models/m:generateContent?&fields=x":       false,
		"gemini POST /v1beta/models/m:generateContent?=&fields=x":      false,
		"gemini POST /v1beta/models/m:generateContent?&":               false,
		"gemini POST /v1beta/models/a/b:generateContent":               false,
		"gemini POST /v1beta/models/:generateContent":                  false,
		"gemini GET /v1beta/openai/models/gemini-3-pro":                true,
		"gemini GET /v1beta/openai/models/../files":                    false,
		"gemini POST /v1beta/cachedContents":                           false,
		"gemini POST /v1beta/interactions":                             false,
		"gemini POST /v1beta/tunedModels/m:generateContent":            false,
		"mistral POST /v1/agents/completions":                          false,
		"mistral POST /v1/conversations":                               false,
		"perplexity POST /v1/responses":                                false,
	}
	for text, want := range open {
		words := strings.Fields(text)
		vendor, ok := provider.Lookup(words[0])
		if !ok || len(words) != 3 {
			t.Fatalf("%q is no case", text)
		}
		path, query, _ := strings.Cut(words[2], "?")
		place, err := vendor.Endpoint(words[1], path, query)
		if got := err == nil; got != want {
			t.Errorf("%s: open is %v (%v)", text, got, err)
		}
		if err == nil && (place.Path != path || place.Query != query) {
			t.Errorf("%s: goes up as %s?%s", text, place.Path, place.Query)
		}
	}
}

// TestEndpointWithoutVersion: who leaves the version out of the address is told of it,
// and nobody else.
func TestEndpointWithoutVersion(t *testing.T) {
	for text, want := range map[string]bool{
		"openai POST /responses":               true,
		"openai POST /chat/completions":        true,
		"openai GET /models/gpt-5":             true,
		"openrouter POST /chat/completions":    true,
		"anthropic POST /messages":             true,
		"openai GET /responses":                false,
		"openai POST /files":                   false,
		"openai POST /v1/responses/compact":    false,
		"openai POST /v1/v1/responses":         false,
		"openai POST responses":                false,
		"gemini POST /chat/completions":        false,
		"perplexity POST /v1/chat/completions": false,
	} {
		words := strings.Fields(text)
		vendor, _ := provider.Lookup(words[0])
		_, err := vendor.Endpoint(words[1], words[2], "")
		refused, ok := errors.AsType[*provider.Refused](err)
		why := "this endpoint of " + words[0] + " is not open to agents"
		if want {
			why += ": the address that the client is given must end in /v1"
		}
		if !ok || refused.Status != 403 || refused.Why != why {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestRefusal: an error has the form that the vendor's clients read, and its code
// is in what they show.
func TestRefusal(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic": `{"type":"error","error":{"type":"permission_error","message":"capgate: scope_violation: \"x\" is outside"}}`,
		"openai":    `{"error":{"message":"capgate: scope_violation: \"x\" is outside","type":"permission_error","param":null,"code":"scope_violation"}}`,
		"gemini":    `{"error":{"code":403,"message":"capgate: scope_violation: \"x\" is outside","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"SCOPE_VIOLATION","domain":"capgate"}]}}`,
	} {
		vendor, _ := provider.Lookup(name)
		got := string(vendor.Refusal(provider.Refused{Status: 403, Code: "scope_violation", Why: `"x" is outside`}))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		for status := 400; status < 600; status++ {
			if text := vendor.Refusal(provider.Refused{Status: status, Code: "forbidden", Why: "no\n\x00"}); !json.Valid(text) {
				t.Errorf("%s: %d: %s", name, status, text)
			}
		}
	}
}

// TestRefusalDetail: a client that goes by a word of its vendor finds it.
func TestRefusalDetail(t *testing.T) {
	vendor, _ := provider.Lookup("anthropic")
	place, err := vendor.Endpoint("POST", "/v1/messages", "")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = vendor.Rewrite(place, []byte(`{"thread":{"type":"create"},"messages":[]}`), provider.Policy{})
	refused, ok := errors.AsType[*provider.Refused](err)
	if !ok {
		t.Fatalf("%v", err)
	}
	const want = `{"type":"error","error":{"type":"invalid_request_error","message":"capgate: forbidden: a conversation that the provider keeps cannot be judged: send the messages","details":{"error_code":"thread_unsupported_request"}}}`
	if got := string(vendor.Refusal(*refused)); refused.Status != 400 || got != want {
		t.Errorf("%d %s", refused.Status, got)
	}
}

// TestFailure: an error within a stream is an event that the vendor's clients read.
func TestFailure(t *testing.T) {
	for name, want := range map[string]string{
		"anthropic": "event: error\ndata: {\"type\":\"error\",",
		"openai":    "event: error\ndata: {\"error\":",
		"gemini":    "data: {\"error\":",
	} {
		vendor, _ := provider.Lookup(name)
		got := string(vendor.Failure(provider.Refused{Status: 502, Code: "upstream_failed", Why: "gone\n"}))
		if !strings.HasPrefix(got, want) || strings.Index(got, "\n\n") != len(got)-2 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestVendors: every vendor can be found, says where it is and where its key goes.
func TestVendors(t *testing.T) {
	for _, name := range provider.Names() {
		vendor, ok := provider.Lookup(name)
		header, value := vendor.Credential("sk-1")
		if !ok || !strings.HasPrefix(vendor.Base, "https://") || header == "" || !strings.HasSuffix(value, "sk-1") {
			t.Errorf("%s: %v %q %q %q", name, ok, vendor.Base, header, value)
		}
	}
	if _, ok := provider.Lookup("nobody"); ok {
		t.Error("there is a vendor that nobody knows")
	}
	if _, err := (provider.Vendor{}).Endpoint("POST", "/v1/messages", ""); err == nil {
		t.Error("the zero Vendor has an endpoint")
	}
	anthropic, _ := provider.Lookup("anthropic")
	if _, _, err := anthropic.Rewrite(provider.Endpoint{Body: true}, []byte("{}"), provider.Policy{}); err == nil {
		t.Error("the zero Endpoint takes a body")
	}
}

// TestWidens: a vendor widens hosts when one of its tools does.
func TestWidens(t *testing.T) {
	p := holding(t, hosts("go.dev"))
	for _, vendor := range provider.Vendors() {
		wider := false
		for _, tool := range vendor.Translate(p) {
			wider = wider || slices.ContainsFunc(tool.Changes, func(c provider.Change) bool { return c.Did == provider.Wider })
		}
		if vendor.Widens() != wider {
			t.Errorf("%s: %v, and its tools say %v", vendor.Name, vendor.Widens(), wider)
		}
	}
}

// TestContainerWider: of what a container reaches, only that is wider which some verb holds without
// what is beneath it.
func TestContainerWider(t *testing.T) {
	var grants []string
	for _, verb := range []string{"net.get", "net.post", "net.put", "net.delete"} {
		grants = append(grants, verb+"{hosts=[*.whole.example,alone.example]}")
	}
	openai, _ := provider.Lookup("openai")
	var wider []string
	for _, tool := range openai.Translate(holding(t, append(grants, "net.put{hosts=[*.alone.example]}", "provider.code_execution")...)) {
		for _, c := range tool.Changes {
			if c.Tool == "container" && c.Did == provider.Wider {
				wider = append(wider, c.Hosts...)
			}
		}
	}
	if diff := cmp.Diff([]string{"alone.example", "alone.example"}, wider); diff != "" { // of code and of a shell
		t.Error(diff)
	}
}

// TestVendorRelayed: what is beneath the vendor's own name is the vendor.
func TestVendorRelayed(t *testing.T) {
	vendor, _ := provider.Lookup("openai")
	for address, want := range map[string]bool{
		"":                              false,
		"https://api.openai.com":        false,
		"https://eu.API.openai.com/x":   false,
		"https://api.openai.com.evil.x": true,
		"https://myapi.openai.com":      true,
		"http://127.0.0.1:4000":         true,
		"https://evil.x/api.openai.com": true,
	} {
		if vendor.Relayed(address) != want {
			t.Errorf("%q: %t", address, !want)
		}
	}
}
