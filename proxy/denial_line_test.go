package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/proxy"
	"github.com/google/go-cmp/cmp"
)

// logged is one line of the log.
type logged struct{ Level, Msg, Event, Agent, Upstream, Method, Tool, Code, Why string }

// lines reads what was logged.
func logLines(t *testing.T, log string) []logged {
	t.Helper()
	var all []logged
	for text := range strings.Lines(log) {
		var one logged
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		all = append(all, one)
	}
	return all
}

// talk sends messages over a pipe, and returns the answers by id.
func (w *world) talk(messages ...string) map[string]said {
	w.t.Helper()
	in := strings.NewReader(strings.Join(messages, "\n") + "\n")
	var out bytes.Buffer
	must(w.t, w.server.Stdio(w.t.Context(), "agents/scout", in, &out))
	answers := map[string]said{}
	for line := range strings.Lines(out.String()) {
		var a said
		must(w.t, json.Unmarshal([]byte(line), &a))
		a.Raw = line
		answers[string(a.ID)] = a
	}
	return answers
}

const greetings = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// TestDenialIsResultEventAndLine is R-EGG-28: what the agent is told, what is recorded
// and what is logged are one denial, under one id, over either transport.
func TestDenialIsResultEventAndLine(t *testing.T) {
	const (
		deny    = `{"name":"files__read_text_file","arguments":{"path":"/etc/passwd"}}`
		noTasks = `{"name":"files__read_text_file","arguments":{"path":"$ROOT/docs/a"},"task":{}}`
	)
	for _, transport := range []string{"http", "stdio"} {
		t.Run(transport, func(t *testing.T) {
			s := &scripted{}
			var log syncBuffer
			w := startWith(t, proxy.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))}, map[string]string{"scout": reader}, files(t, s))
			task := strings.ReplaceAll(noTasks, "$ROOT", w.root)
			var denied, refused said
			if transport == "http" {
				c := w.client("scout")
				c.initialize("{}")
				denied, refused = c.request("tools/call", deny), c.request("tools/call", task)
				c.request("no/such", "{}")
			} else {
				call := func(id int, method, params string) string {
					return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
				}
				got := w.talk(greetings, call(1, "tools/call", deny), call(2, "tools/call", task), call(3, "no/such", "{}"))
				denied, refused = got["1"], got["2"]
			}
			if text := string(denied.Result); !strings.Contains(text, "[event "+denialOf(t, denied).Event+"]") {
				t.Errorf("the text of the result names another event: %s", text)
			}
			w.oneOf(t, log.String(), denialOf(t, denied), logged{Msg: "denied", Method: "tools/call", Tool: "files.read_text_file", Code: "scope_violation"})
			w.oneOf(t, log.String(), denialOf(t, refused), logged{Msg: "refused", Upstream: "files", Method: "tools/call", Tool: "files.read_text_file", Code: "malformed_request", Why: "this gateway does not carry tasks"})
			if n := strings.Count(log.String(), `"msg":"refused"`); n != 2 || !strings.Contains(log.String(), `"method":"no/such"`) {
				t.Errorf("%d refusals:\n%s", n, log.String())
			}
		})
	}
}

// oneOf looks for the event and for the only line of the log that a denial names.
func (w *world) oneOf(t *testing.T, log string, d denied, want logged) {
	t.Helper()
	want.Level, want.Event, want.Agent = "INFO", d.Event, "agents/scout"
	var found []logged
	for _, line := range logLines(t, log) {
		if line.Event == d.Event {
			found = append(found, line)
		}
	}
	if diff := cmp.Diff([]logged{want}, found); diff != "" {
		t.Errorf("the lines of %s (-want +got):\n%s", d.Event, diff)
	}
	for i, e := range w.events.all() {
		if fmt.Sprintf("ev-%d", i+1) == d.Event {
			if e.Code != d.Code || e.Code != want.Code || e.Kind != guardrail.Refusal && e.Decision != "deny" {
				t.Errorf("the event is %+v", e)
			}
			return
		}
	}
	t.Errorf("there is no event %s", d.Event)
}

// TestRefusalsOfProvidersAreLogged: a closed endpoint is a line of the log as well.
func TestRefusalsOfProvidersAreLogged(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	v.ask("POST", "/provider/anthropic/v1/files", greeting)
	if log := v.log.String(); strings.Count(log, "msg=refused") != 1 || !strings.Contains(log, "upstream=provider/anthropic") || !strings.Contains(log, "code=forbidden") {
		t.Error(log)
	}
}

// TestStrangersAreLoggedOnce: who is nobody is one line of the log, which says from where.
func TestStrangersAreLoggedOnce(t *testing.T) {
	var log syncBuffer
	w := startWith(t, proxy.Options{Log: slog.New(slog.NewJSONHandler(&log, nil))}, map[string]string{"scout": reader}, files(t, &scripted{}))
	c := &client{w: w, token: "no token"}
	a := take(t, c.post(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if text := log.String(); a.Status != 401 || strings.Count(text, `"event":"`+denialOf(t, a).Event+`"`) != 1 || !strings.Contains(text, `"from":"127.0.0.1:`) {
		t.Errorf("%d %s", a.Status, text)
	}
}

// TestLogIsBounded: what anybody can cause at will fills the log no more than it does
// the events.
func TestLogIsBounded(t *testing.T) {
	var log syncBuffer
	now := time.Now()
	w := startWith(t, proxy.Options{
		Log: slog.New(slog.NewJSONHandler(&log, nil)), Clock: func() time.Time { return now }, Limits: proxy.Limits{Calls: 1},
	}, map[string]string{"scout": reader}, files(t, &scripted{}))
	messages := []string{greetings}
	for i := range 700 {
		messages = append(messages,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"m%d","method":"no/such"}`, i),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"c%d","method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"/etc/passwd"}}}`, i))
	}
	if got := w.talk(messages...); len(got) != 1401 {
		t.Fatalf("%d answers", len(got))
	}
	lines, events := 0, 0
	for _, one := range logLines(t, log.String()) {
		if one.Msg == "refused" || one.Msg == "denied" {
			lines++
		}
	}
	for _, e := range w.events.all() {
		if e.Kind == guardrail.Refusal || e.Decision == "deny" {
			events++
		}
	}
	if lines != events || lines < 500 || lines > 700 {
		t.Errorf("%d lines for %d events", lines, events)
	}
}

// TestLinkQuotesNothing: a link stands in clear where targets are hashed. What the agent has
// written, and what its call would touch, are for the text, which is left out there.
func TestLinkQuotesNothing(t *testing.T) {
	s := &scripted{lists: map[string]string{
		"tools/list":               `"tools":[` + tool("post", "token") + `,` + tool("get", "url", "method") + `]`,
		"resources/templates/list": `"resourceTemplates":[{"uriTemplate":"mark://{x}","name":"n"}]`,
	}}
	w := startWeb(t, s, func(u *proxy.Upstream) {
		u.Mapping = parsed(t, "server: web\ntools:\n  post: { token: secret }\n  get: { url: { verb: net, method: method } }\n")
	})
	w.write("scout", poster[:len(poster)-len("---\n")]+"  - net.get: { hosts: [\"*\"] }\n  - resource.read: { uris: [\"mark://a\"] }\n---\n")
	w.adopt()
	call := func(tool, arguments string) [2]string {
		return [2]string{"tools/call", `{"name":"web__` + tool + `","arguments":` + arguments + `}`}
	}
	for quoted, ask := range map[string][2]string{
		"PATCHED":    call("get", `{"url":"https://a.example/","method":"PATCHED"}`),
		"gone":       call("post", `{"token":"{{secret:gone}}"}`),
		"mark://{x}": {"completion/complete", `{"ref":{"type":"ref/resource","uri":"mark://{x}"},"argument":{"name":"x","value":"a"}}`},
	} {
		a := w.client("scout").modern(ask[0], ask[1], "{}")
		all := w.events.of("decision")
		e := all[len(all)-1]
		if e.Decision != "deny" || strings.Contains(e.Link, strings.TrimSuffix(quoted, "{x}")) || !strings.Contains(e.Text, quoted) {
			t.Errorf("%s: the event is %+v, the answer %s", quoted, e, a.Raw)
		}
	}
}
