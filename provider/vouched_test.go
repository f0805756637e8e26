package provider_test

import (
	"strings"
	"testing"

	"capgate/capability"
	"capgate/provider"
)

// TestVouchedItem: what stands in an item that the operator vouches for is looked through, as
// in all that nobody knows.
func TestVouchedItem(t *testing.T) {
	p := holding(t)
	p.Pass = []string{"future_call"}
	for item, code := range map[string]capability.Code{
		`{"type":"future_call","id":"i","results":[{"text":"t"}]}`: "",
		`{"type":"future_call","id":"i","results":[{"tools":[]}]}`: capability.Forbidden,
		`{"type":"reasoning","summary":[],"results":[]}`:           capability.NotAvailable,
	} {
		out, _, refused := rewrite(t, responses, `{"input":[`+item+`]}`, p)
		if code == "" && refused != nil || code != "" && (refused == nil || refused.Code != code) {
			t.Errorf("%s: %s, %v", item, out, refused)
		}
	}
}

// TestSearchForPictures: a search may find pictures where it may read everything. Beside a
// list of domains it finds text, as nobody says where pictures are from.
func TestSearchForPictures(t *testing.T) {
	const body = `{"tools":[{"type":"web_search","external_web_access":true,"search_content_types":["text","image"],"image_settings":{"max_results":3}}],"input":"x"}`
	for grant, want := range map[string]string{
		hosts("*"):         "",
		hosts("a.example"): `"search_content_types":["text"]`,
	} {
		out, changes, refused := rewrite(t, responses, body, holding(t, grant))
		if refused != nil || !strings.Contains(out, `"type":"web_search"`) || !strings.Contains(out, want) || want == "" && !strings.Contains(out, `["text","image"]`) {
			t.Errorf("%s: %s, %v, %s", grant, out, refused, did(changes))
		}
	}
	text := strings.Replace(body, `,"image"]`, "]", 1)
	if _, changes, _ := rewrite(t, responses, text, holding(t, hosts("a.example"))); strings.Contains(did(changes), provider.Repaired+" web_search") {
		t.Error(did(changes))
	}
}

// TestVouchedMember: a member of a tool that searches may be vouched for, as others may.
func TestVouchedMember(t *testing.T) {
	const body = `{"tools":[{"type":"web_search","mood":"good"}],"input":"x"}`
	p := holding(t, hosts("a.example"))
	if out, changes, _ := rewrite(t, responses, body, p); strings.Contains(out, "web_search\"") {
		t.Errorf("%s: %s", out, did(changes))
	}
	p.Pass = []string{"mood"}
	for where, body := range map[string]string{
		responses: body,
		grok:      `{"tools":[{"type":"web_search","filters":{"mood":"good"}}],"input":"x"}`,
		router:    `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"mood":"good"}}]}`,
	} {
		if out, changes, _ := rewrite(t, where, body, p); !strings.Contains(out, `"mood":"good"`) || !strings.Contains(out, `"allowed_domains":["a.example"]`) {
			t.Errorf("%s: %s", out, did(changes))
		}
	}
}

// TestTurnedOff: what reaches past a list of domains is turned off, however it is written.
func TestTurnedOff(t *testing.T) {
	for _, value := range []string{"true", `["text"]`, `["image"]`, "{}", `{"a":1}`, "1", `"text"`, "[]"} {
		for _, tt := range []struct{ where, head, name, tail string }{
			{"openrouter /v1/chat/completions", `{"model":"x/y","messages":[],"tools":[{"type":"openrouter:web_search","parameters":{"engine":"exa",`, "x_search", `}}]}`},
			{"xai /v1/responses", `{"model":"x","input":"x","tools":[{"type":"web_search",`, "enable_image_search", `}]}`},
		} {
			out, changes, refused := rewrite(t, tt.where, tt.head+`"`+tt.name+`":`+value+tt.tail, holding(t, hosts("*.github.com")))
			off := strings.Contains(out, `"`+tt.name+`":null`) || strings.Contains(out, `"`+tt.name+`":false`) || !strings.Contains(out, tt.name)
			if refused != nil || !off || !strings.Contains(did(changes), provider.Repaired) {
				t.Errorf("%s %s: %s, %s, %v", tt.name, value, out, did(changes), refused)
			}
		}
	}
}

// TestVouchedMemberIsLookedAt: who vouches for a name vouches for no tool that stands there.
func TestVouchedMemberIsLookedAt(t *testing.T) {
	p := holding(t, hosts("a.example"))
	p.Pass = []string{"mood"}
	const body = `{"tools":[{"type":"web_search","mood":{"type":"mcp","server_url":"https://evil.example"}}],"input":"x"}`
	if out, _, refused := rewrite(t, responses, body, p); refused == nil || refused.Code != capability.Forbidden {
		t.Errorf("%s, %v", out, refused)
	}
}
