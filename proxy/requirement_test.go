package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// TestRequirements keeps what the gateway must, one promise at a time; the rest of
// the tests look at the ways around each.
func TestRequirements(t *testing.T) {
	t.Run("R-SEC-12 a denial contacts no server", denialContactsNobody)
	t.Run("R-SEC-13 two that claim a name have none", claimedTwice)
	t.Run("R-SEC-16 a list is for one agent", listForOne)
	t.Run("R-SEC-17 state is good for what it was given for", stateForOne)
	t.Run("R-SEC-18 a server asks what it may", asksWhatItMay)
}

func denialContactsNobody(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	for method, params := range map[string]string{
		"tools/call":          `{"name":"files__read_text_file","arguments":{"path":"/etc/passwd"}}`,
		"resources/read":      `{"uri":"file:///etc/passwd"}`,
		"prompts/get":         `{"name":"files__any"}`,
		"completion/complete": `{"ref":{"type":"ref/prompt","name":"files__any"},"argument":{"name":"a","value":"b"}}`,
	} {
		if a := c.modern(method, params, "{}"); denialOf(t, a).Code == "" {
			t.Errorf("%s: %s", method, a.Raw)
		}
	}
	if got := s.calls(); len(got) != 0 {
		t.Errorf("%d requests reached the server: %v", len(got), got)
	}
}

func claimedTwice(t *testing.T) {
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("Read_File") + `,` + tool("read_file") + `,` + tool("read file") + `,` + tool("other") + `,` +
		tool("dot.ted") + `,` + tool("") + `,` + tool(strings.Repeat("x", 107)) + `,` + tool(strings.Repeat("y", 108)) + `]`}}
	up := files(t, s)
	up.Mapping = nil
	w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [\"**\"] }\n---\n"}, up)
	c := w.client("scout")
	if got := toolNames(t, c.modern("tools/list", "{}", "{}")); fmt.Sprint(got) != "[files__dot_ted files__other files__"+strings.Repeat("x", 107)+"]" {
		t.Errorf("%v", got)
	}
	w.adopt() // what is hidden still is no news
	c.modern("tools/list", "{}", "{}")
	var hidden []string
	for _, e := range w.events.of("notice") {
		hidden = append(hidden, fmt.Sprint(e.Upstream, " ", e.Tool, " ", e.Code, " ", e.Policy, " ", e.Text))
	}
	want := []string{
		"files files. tool_quarantined test the tool is hidden: the tool has no name, by which its pin would be kept",
		"files files.Read_File name_collision test the tool is hidden: several tools claim the name files__read_file",
		"files files.read file tool_rejected test the tool is hidden: the name holds characters that clients do not take",
		"files files.read_file name_collision test the tool is hidden: several tools claim the name files__read_file",
		"files files." + strings.Repeat("y", 108) + " tool_rejected test the tool is hidden: the name is empty, or too long for clients to take",
	}
	if diff := cmp.Diff(want, hidden); diff != "" {
		t.Error(diff)
	}
	if a := c.modern("tools/call", `{"name":"files__read_file"}`, "{}"); denialOf(t, a).Code != "name_collision" {
		t.Errorf("%s", a.Raw)
	}
}

func listForOne(t *testing.T) {
	w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}))
	var r struct {
		CacheScope string
		TTL        *int `json:"ttlMs"`
	}
	a := w.client("scout").modern("tools/list", "{}", "{}")
	if err := json.Unmarshal(a.Result, &r); err != nil || r.CacheScope != "private" || r.TTL == nil || *r.TTL > 60000 {
		t.Errorf("%s", a.Raw)
	}
	if a := w.client("scout").modern("tools/list", `{"cursor":"AAAA"}`, "{}"); a.Error == nil || a.Error.Code != -32602 {
		t.Errorf("a cursor that nobody was given: %s", a.Raw)
	}
}

func stateForOne(t *testing.T) {
	s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if strings.Contains(string(r.Params), `"requestState":"inner"`) {
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete","content":[]}`)}, nil
		}
		return upstream.Answer{Type: "input_required", Result: []byte(`{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"inner"}`)}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader, "other": reader}, up)
	ask := func(agent, path, more string) said {
		return w.client(agent).modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/`+path+`"}`+more+`}`, `{"elicitation":{"form":{}}}`)
	}
	var r struct{ RequestState string }
	if a := ask("scout", "a", ""); json.Unmarshal(a.Result, &r) != nil || r.RequestState == "" || strings.Contains(a.Raw, "inner") {
		t.Fatalf("%s", a.Raw)
	}
	answer := `,"inputResponses":{"k":{"action":"accept"}},"requestState":"` + r.RequestState + `"`
	for who, path := range map[string]string{"scout": "b", "other": "a"} {
		if a := ask(who, path, answer); a.Error == nil {
			t.Errorf("%s with %s: %s", who, path, a.Raw)
		}
	}
	if a := ask("scout", "a", answer); a.Error != nil {
		t.Errorf("%s", a.Raw)
	}
}

func asksWhatItMay(t *testing.T) {
	s := &scripted{}
	s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		_, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"your password?"}`))
		return upstream.Answer{Result: fmt.Appendf(nil, `{"content":[{"type":"text","text":%q}]}`, fmt.Sprint(err))}, nil
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
	if !strings.Contains(a.Raw, "may_ask does not let it") || len(a.Before) != 0 || len(w.events.of("refusal")) != 1 {
		t.Errorf("%v %s", a.Before, a.Raw)
	}
}
