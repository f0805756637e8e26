package proxy_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/guardrail"
	"capgate/proxy"
)

// TestConsult: what needs no change goes up byte for byte with the gateway's key,
// and what comes down is what the provider wrote.
func TestConsult(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	body := "{ \"model\":\"claude-x\",\n \"max_tokens\" : 1.50e1, \"messages\":[{\"role\":\"user\",\"content\":\"h\\u00e9llo\"}]}"
	resp := v.ask("POST", messages+"?beta=true", body,
		"Anthropic-Version", "2023-06-01", "Anthropic-Beta", "a-1", "Anthropic-Beta", "b-2", "X-Stainless-Lang", "js", "User-Agent", "sdk/1",
		"Openai-Organization", "org-1", "Openai-Project", "p", "Cookie", "a=b", "X-Forwarded-For", "10.0.0.1", "Forwarded", "for=a", "Via", "1.1 x",
		"Anthropic-Workspace-Id", "w", "Idempotency-Key", "k", "X-Goog-User-Project", "g", "Accept-Encoding", "gzip", "Connection", "X-Named", "X-Named", "1",
		"Upgrade", "h2c", "Http2-Settings", "AAMAAABkAAQAAP__") // as Java asks for HTTP/2, which is not to be had
	if got := text(t, resp); resp.StatusCode != 200 || got != `{"id":"msg_1","type":"message","content":[]}` {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	want := []vendorSaw{{"POST", "/base/v1/messages?beta=true", http.Header{
		"Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"a-1", "b-2"}, "X-Stainless-Lang": {"js"}, "User-Agent": {"sdk/1"},
		"X-Api-Key": {vendorKey}, "Content-Type": {"application/json"}, "Content-Length": {fmt.Sprint(len(body))}, "Accept-Encoding": {"identity"},
	}, body}}
	if diff := cmp.Diff(want, v.saw(), cmp.AllowUnexported(vendorSaw{})); diff != "" {
		t.Errorf("the request differs (-want +got):\n%s", diff)
	}
	var kinds []string
	for _, e := range v.events.all() {
		kinds = append(kinds, e.Kind+" "+e.Decision+e.Error)
		if e.Agent != "agents/scout" || e.Upstream != "provider/anthropic" || e.Method != "POST /v1/messages" || e.Call == "" || e.Policy != "test" {
			t.Errorf("the event is %+v", e)
		}
	}
	if want := []string{"decision allow", "outcome "}; !slices.Equal(kinds, want) {
		t.Errorf("the events are %q, want %q", kinds, want)
	}
}

// TestConsultToken: the token counts wherever the client of a vendor puts its key,
// and goes up from nowhere.
func TestConsultToken(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	token, other := v.tokens["scout"], v.tokens["nobody"]
	expired, creds, err := v.creds.Issue("scout", "", time.Minute, time.Now().Add(-time.Hour), zeros{})
	if err != nil {
		t.Fatal(err)
	}
	v.creds = creds
	v.adopt()
	for _, test := range []struct {
		name, query string
		status      int
		headers     []string
	}{
		{"x-api-key", "", 200, []string{"X-Api-Key", token}},
		{"bearer", "", 200, []string{"Authorization", "Bearer " + token}},
		{"small bearer", "", 200, []string{"Authorization", "bearer " + token}},
		{"google", "", 200, []string{"X-Goog-Api-Key", token}},
		{"query", "?key=" + token, 200, nil},
		{"query among others", "?beta=true&key=" + token, 200, nil},
		{"escaped name", "?k%65y=" + token, 200, nil},
		{"everywhere", "?key=" + token, 200, []string{"X-Api-Key", token, "Authorization", "Bearer " + token, "X-Goog-Api-Key", token}},
		{"none", "", 401, nil},
		{"expired", "", 401, []string{"X-Api-Key", expired}},
		{"unknown", "", 401, []string{"X-Api-Key", token[:len(token)-1] + "_"}},
		{"empty", "?key=", 401, nil},
		{"bare", "", 401, []string{"Authorization", token}},
		{"basic", "", 401, []string{"Authorization", "Basic " + token}},
		{"the provider's own key", "", 401, []string{"X-Api-Key", "sk-ant-api03-abc"}},
		{"a key beside it", "", 401, []string{"X-Api-Key", "sk-ant-api03-abc", "Authorization", "Bearer " + token}},
		{"two agents", "", 401, []string{"X-Api-Key", token, "Authorization", "Bearer " + other}},
		{"two agents in one header", "", 401, []string{"X-Api-Key", token, "X-Api-Key", other}},
		{"two agents in the query", "?key=" + token + "&key=" + other, 401, nil},
		{"cookie", "", 401, []string{"Cookie", "key=" + token}},
		{"a query that is none", "?key=" + token + ";beta=true", 401, nil},
		{"half an escape", "?key=" + token + "&a=%f", 401, nil},
		{"in the path", "%3Fkey=" + token, 403, []string{"X-Api-Key", token}},
		{"in a name", "?key%3D" + token, 403, []string{"X-Api-Key", token}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(v.saw())
			resp := v.ask("POST", messages+test.query, greeting, append([]string{"X-Api-Key", ""}, test.headers...)...)
			got := text(t, resp)
			if resp.StatusCode != test.status || strings.Contains(got, " expired at ") != (test.name == "expired") || strings.Contains(got, " not good here") != (test.name == "unknown") {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			sent := v.saw()[before:]
			if len(sent) != map[bool]int{true: 1}[test.status == 200] {
				t.Fatalf("the provider saw %v", sent)
			}
			for _, one := range sent {
				if strings.Contains(fmt.Sprintf("%+v", one), token) {
					t.Errorf("the token goes up: %+v", one)
				}
			}
		})
	}
	resp := v.ask("POST", "/provider/"+token, greeting)
	if _ = text(t, resp); resp.StatusCode != 404 {
		t.Errorf("a provider of that name answers %d", resp.StatusCode)
	}
	const public = len("cg_0123456789abcdef_")
	if said := v.log.String() + fmt.Sprintf("%+v", v.events.all()); strings.Contains(said, token[public:public+20]) || !strings.Contains(said, token[:public]) {
		t.Error("the token stands in the log, or in an event")
	}
}

// TestConsultAgents: a provider that is for some agents is for nobody else, also when
// it becomes so while a request is on its way in.
func TestConsultAgents(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	for name, agents := range map[string][]string{"all": nil, "some": {"agents/nobody"}, "none": {}} {
		for _, p := range v.vendors {
			p.Agents = agents
		}
		v.adopt()
		for agent, want := range map[string]bool{"scout": name == "all", "nobody": name != "none"} {
			before := len(v.saw())
			resp := v.ask("POST", messages, greeting, "X-Api-Key", "", "X-Api-Key", v.tokens[agent])
			body, went := text(t, resp), len(v.saw()) > before
			if went != want || (resp.StatusCode == 200) != want || !want && (resp.StatusCode != 403 || !strings.Contains(body, "is not for this agent")) {
				t.Errorf("%s, %s: %d %s", name, agent, resp.StatusCode, body)
			}
		}
	}
}

// TestConsultModels: what has no body goes up without one.
func TestConsultModels(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	for _, path := range []string{"/provider/anthropic/v1/models?limit=1000", "/provider/openai/v1/models", "/provider/gemini/v1beta/models?key=" + v.tokens["scout"]} {
		if resp := v.ask("GET", path, ""); resp.StatusCode != 200 || text(t, resp) == "" {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	var got []string
	for _, one := range v.saw() {
		got = append(got, one.method+" "+one.uri+" "+one.body+one.header.Get("Content-Type")+one.header.Get("X-Api-Key")+one.header.Get("Authorization")+one.header.Get("X-Goog-Api-Key"))
	}
	want := []string{
		"GET /base/v1/models?limit=1000 " + vendorKey, "GET /base/v1/models Bearer " + vendorKey, "GET /base/v1beta/models " + vendorKey,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the requests differ (-want +got):\n%s", diff)
	}
	for _, path := range []string{"/provider/anthropic", "/provider/anthropic/"} {
		if resp := v.ask("HEAD", path, "", "X-Api-Key", ""); resp.StatusCode != 200 {
			t.Errorf("HEAD %s: %d", path, resp.StatusCode)
		}
	}
	if n := len(v.saw()); n != len(want) {
		t.Errorf("a look whether anybody is there went up")
	}
}

// TestConsultErrors: what the provider says is wrong is passed on as it says it.
func TestConsultErrors(t *testing.T) {
	const body = "{\"type\":\"error\", \"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow \\u0064own\"}}\n"
	v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Retry-After", "7")
		h.Set("Anthropic-Ratelimit-Requests-Remaining", "0")
		h.Set("Request-Id", "req_1")
		h.Set("Set-Cookie", "a=b")
		h.Set("Anthropic-Organization-Id", "org")
		h.Set("Location", "https://evil.example")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, body)
	})
	resp := v.ask("POST", messages, greeting)
	if got := text(t, resp); resp.StatusCode != 429 || got != body {
		t.Errorf("%d %q", resp.StatusCode, got)
	}
	for name, want := range map[string]string{
		"Retry-After": "7", "Anthropic-Ratelimit-Requests-Remaining": "0", "Request-Id": "req_1", "Content-Type": "application/json",
		"Set-Cookie": "", "Anthropic-Organization-Id": "", "Location": "",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if out := v.events.of(guardrail.Outcome); len(out) != 1 || out[0].Error != "the provider answered 429" || out[0].Bytes != len(body) {
		t.Errorf("the outcome is %+v", out)
	}
}

// TestConsultHeaderNames: a header whose name the key stands in is not passed on, in
// whatever case it comes.
func TestConsultHeaderNames(t *testing.T) {
	v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("X-Ratelimit-Limit-Requests", "5")
		for _, name := range []string{"X-Ratelimit-" + vendorKey, "X-Ratelimit-" + strings.ToUpper(vendorKey), "Anthropic-Ratelimit-Of-" + vendorKey + "-Limit"} {
			h[name] = []string{"5"} // as it is written
		}
	})
	resp := v.ask("POST", messages, greeting)
	text(t, resp)
	if resp.Header.Get("X-Ratelimit-Limit-Requests") != "5" {
		t.Errorf("the headers are %v", resp.Header)
	}
	if all := strings.ToLower(fmt.Sprint(resp.Header)); strings.Contains(all, strings.ToLower(vendorKey)) {
		t.Errorf("the agent sees the key: %s", all)
	}
}

// TestConsultTooOften: whoever has made its calls of a minute is told when it may make the
// next one, and may then.
func TestConsultTooOften(t *testing.T) {
	const most = 7
	now := time.Now()
	v := consulting(t, proxy.Options{Limits: proxy.Limits{Calls: most}, Clock: func() time.Time { return now }}, nil)
	for i := range most + 2 {
		resp := v.ask("POST", messages, greeting)
		text(t, resp)
		want, after := 200, ""
		if i >= most {
			want, after = 429, "9" // seconds: a minute for seven
		}
		if got := resp.Header.Get("Retry-After"); resp.StatusCode != want || got != after {
			t.Errorf("request %d: %d, again after %q", i, resp.StatusCode, got)
		}
	}
	for _, at := range []struct{ seconds, want int }{{8, 429}, {1, 200}, {0, 429}} {
		now = now.Add(time.Duration(at.seconds) * time.Second)
		resp := v.ask("POST", messages, greeting)
		if text(t, resp); resp.StatusCode != at.want {
			t.Errorf("%d seconds later: %d, again after %q", at.seconds, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
}

// TestConsultAnswers: an answer that leads elsewhere, or that nobody here can read,
// is not passed on.
func TestConsultAnswers(t *testing.T) {
	for name, script := range map[string]func(w http.ResponseWriter, r *http.Request){
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		},
		"moved": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://evil.example", http.StatusMovedPermanently)
		},
		"not changed": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(304) },
		"gzip": func(w http.ResponseWriter, _ *http.Request) {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			_, _ = z.Write([]byte("{}"))
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(b.Bytes())
		},
		"gzip, in another line": inBytes("HTTP/1.1 200 OK\r\nContent-Encoding: \r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"),
		"nothing":               func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"no status there is":    inBytes("HTTP/1.1 042 Odd\r\nContent-Length: 2\r\n\r\n{}"),
		"another protocol":      inBytes("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nabc"),
	} {
		t.Run(name, func(t *testing.T) {
			v := consulting(t, proxy.Options{}, script)
			resp := v.ask("POST", messages, greeting)
			got := text(t, resp)
			if resp.StatusCode != 502 || !strings.Contains(got, "upstream_failed") || !strings.Contains(got, `"type":"api_error"`) || resp.Header.Get("Location") != "" {
				t.Errorf("%d %v %s", resp.StatusCode, resp.Header, got)
			}
			if n := len(v.saw()); n != 1 {
				t.Errorf("%d requests", n)
			}
			if out := v.events.of(guardrail.Outcome); len(out) != 1 || out[0].Error == "" {
				t.Errorf("the outcome is %+v", out)
			}
		})
	}
}

// TestConsultUnfit: an answer that will be the same again says what is wrong with it, and is
// not to be asked for again.
func TestConsultUnfit(t *testing.T) {
	for answer, why := range map[string]string{
		"200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":         "it answers in a transfer encoding that nobody asked for",
		"200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}":     "it compresses its answer without being asked to",
		"307 Temporary Redirect\r\nLocation: /a\r\nContent-Length: 0\r\n\r\n": "it sends the request elsewhere (307)",
	} {
		v := consulting(t, proxy.Options{}, inBytes("HTTP/1.1 "+answer))
		resp := v.ask("POST", messages, greeting)
		got := text(t, resp)
		if resp.StatusCode != 502 || !strings.Contains(got, why+". "+v.noted(why)) || strings.Contains(got, "again") || resp.Header.Get("X-Should-Retry") != "false" {
			t.Errorf("%d %v %s", resp.StatusCode, resp.Header, got)
		}
	}
}

// inBytes answers with bytes that no server would write.
func inBytes(answer string) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, answer)
		_ = conn.Close()
	}
}

// TestConsultAccept: an answer in a form that could not be watched is not asked for.
func TestConsultAccept(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	for accept, up := range map[string]bool{
		"application/json": true, "text/event-stream": true, "application/json, text/event-stream;q=0.9": true, "*/*": true,
		"application/x-protobuf": false, "application/json, application/x-protobuf": false, "": false, "application/json;charset=utf-8,": false,
	} {
		before := len(v.saw())
		_ = text(t, v.ask("POST", "/provider/gemini/v1beta/models/g:generateContent", `{"contents":[]}`, "Accept", accept))
		sent := v.saw()[before:]
		if len(sent) != 1 || up != (len(sent[0].header["Accept"]) == 1) {
			t.Errorf("%q: %+v", accept, sent)
		}
	}
}

// TestConsultEndsUnanswered: when the gateway ends before the answer begins, it is not the
// provider that cannot be reached.
func TestConsultEndsUnanswered(t *testing.T) {
	here := make(chan struct{})
	v := consulting(t, proxy.Options{}, func(_ http.ResponseWriter, r *http.Request) { close(here); <-r.Context().Done() })
	go func() { <-here; _ = v.server.Close() }()
	resp := v.ask("POST", messages, greeting)
	if got := text(t, resp); resp.StatusCode != http.StatusBadGateway || !strings.Contains(got, "the gateway ends") {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}
