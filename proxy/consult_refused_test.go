package proxy_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/guardrail"
	"capgate/proxy"
)

// TestConsultRefused: what is refused says so in the words of the vendor, is an
// event, and reaches nobody.
func TestConsultRefused(t *testing.T) {
	v := consulting(t, proxy.Options{Limits: proxy.Limits{Body: 64 << 10}}, nil)
	many := []string{}
	for i := range 120 {
		many = append(many, fmt.Sprintf("X-Many-%d", i), "1")
	}
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		code                     string
		headers                  []string
	}{
		{"unknown provider", "POST", "/provider/nowhere/v1/messages", greeting, 404, "not_available", nil},
		{"no provider", "POST", "/provider/", greeting, 404, "not_available", nil},
		{"batches", "POST", messages + "/batches", greeting, 403, "forbidden", nil},
		{"files", "POST", "/provider/anthropic/v1/files", greeting, 403, "forbidden", nil},
		{"realtime", "GET", "/provider/openai/v1/realtime", "", 403, "forbidden", nil},
		{"stored prompts", "POST", "/provider/openai/v1/assistants", greeting, 403, "forbidden", nil},
		{"cached contents", "POST", "/provider/gemini/v1beta/cachedContents", greeting, 403, "forbidden", nil},
		{"method", "DELETE", messages, greeting, 403, "forbidden", nil},
		{"get", "GET", messages, "", 403, "forbidden", nil},
		{"two slashes", "POST", "/provider/anthropic//v1/messages", greeting, 403, "forbidden", nil},
		{"two slashes within", "POST", "/provider/anthropic/v1//messages", greeting, 403, "forbidden", nil},
		{"slash behind", "POST", messages + "/", greeting, 403, "forbidden", nil},
		{"encoded slash", "POST", "/provider/anthropic/v1%2fmessages", greeting, 403, "forbidden", nil},
		{"encoded letter", "POST", "/provider/anthropic/v1/m%65ssages", greeting, 403, "forbidden", nil},
		{"dots", "POST", "/provider/anthropic/v1/files/../messages", greeting, 403, "forbidden", nil},
		{"encoded dots", "POST", "/provider/anthropic/v1/files/%2e%2e/messages", greeting, 403, "forbidden", nil},
		{"backslash", "POST", "/provider/anthropic/v1%5cmessages", greeting, 403, "forbidden", nil},
		{"case", "POST", "/provider/anthropic/v1/Messages", greeting, 403, "forbidden", nil},
		{"unknown query", "POST", messages + "?tools=x", greeting, 403, "forbidden", nil},
		{"websocket", "GET", "/provider/openai/v1/models", "", 426, "malformed_request", []string{"Connection", "Upgrade", "Upgrade", "WebSocket"}},
		{"websocket among others", "POST", messages, greeting, 426, "malformed_request", []string{"Connection", "Upgrade", "Upgrade", "h2c", "Upgrade", "x, websocket"}},
		{"method override", "POST", messages, greeting, 400, "malformed_request", []string{"X-HTTP-Method-Override", "DELETE"}},
		{"other override", "POST", messages, greeting, 400, "malformed_request", []string{"X-Method-Override", "PUT"}},
		{"other path", "POST", messages, greeting, 400, "malformed_request", []string{"X-Original-URL", "/v1/files"}},
		{"gzip", "POST", messages, greeting, 415, "malformed_request", []string{"Content-Encoding", "gzip"}},
		{"two encodings", "POST", messages, greeting, 415, "malformed_request", []string{"Content-Encoding", "identity", "Content-Encoding", "br"}},
		{"no type", "POST", messages, greeting, 415, "malformed_request", []string{"Content-Type", ""}},
		{"form", "POST", messages, greeting, 415, "malformed_request", []string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded"}},
		{"charset", "POST", messages, greeting, 415, "malformed_request", []string{"Content-Type", "", "Content-Type", "application/json; charset=utf-16"}},
		{"two types", "POST", messages, greeting, 400, "malformed_request", []string{"Content-Type", "text/plain"}},
		{"headers", "POST", messages, greeting, 431, "malformed_request", many},
		{"long header", "POST", messages, greeting, 400, "malformed_request", []string{"Anthropic-Beta", strings.Repeat("a", 9<<10)}},
		{"odd header", "POST", messages, greeting, 400, "malformed_request", []string{"Anthropic-Beta", "caf\u00e9"}},
		{"body of a get", "GET", "/provider/anthropic/v1/models", greeting, 400, "malformed_request", nil},
		{"too long", "POST", messages, strings.Replace(greeting, "hello", strings.Repeat("x", 64<<10), 1), 413, "limit_exceeded", nil},
		{"other host", "POST", messages, greeting, 403, "forbidden", []string{"Host", "evil.example"}},
		{"other origin", "POST", messages, greeting, 403, "forbidden", []string{"Origin", "https://evil.example"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(v.events.of(guardrail.Refusal))
			resp := v.ask(test.method, test.path, test.body, test.headers...)
			got := text(t, resp)
			if resp.StatusCode != test.status || !strings.Contains(got, test.code) || !strings.Contains(got, `"error"`) {
				t.Errorf("%d %s, want %d %s", resp.StatusCode, got, test.status, test.code)
			}
			if n := len(v.events.of(guardrail.Refusal)) - before; n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
	if sent := v.saw(); len(sent) != 0 {
		t.Errorf("the provider saw %v", sent)
	}
}

// TestConsultDenied: what is refused for want of a grant, or since somebody would have to
// approve it, is a denial in the events and says why in the log.
func TestConsultDenied(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	const picture = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://%s/a.png"}}]}]}`
	for _, test := range []struct{ approve, host, code string }{
		{"", "evil.example", "scope_violation"},
		{"approve: [net.get]\n", "github.com", "requires_approval"},
	} {
		v.write("scout", strings.Replace(searcher, "class: agent\n", "class: agent\n"+test.approve, 1))
		v.adopt()
		got := text(t, v.ask("POST", messages, fmt.Sprintf(picture, test.host)))
		all := v.events.of(guardrail.Decision)
		if e := all[len(all)-1]; e.Decision != "deny" || e.Code != test.code || !strings.Contains(got, e.Text) {
			t.Errorf("%s: %+v", got, e)
		} else if !strings.Contains(v.log.String(), "code="+test.code+" why=\""+e.Text) {
			t.Error(v.log.String())
		}
	}
	if sent := v.saw(); len(sent) != 0 {
		t.Errorf("the provider saw %v", sent)
	}
}
