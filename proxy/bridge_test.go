package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"capgate/capability"
	"capgate/proxy"
	"capgate/upstream"
)

// questioner is a server of either era that asks one thing before it answers a
// call, and says in its result what it heard.
func questioner(modern bool, method, params string) *scripted {
	if !modern {
		return asks(method, params)
	}
	s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		var p struct {
			InputResponses map[string]json.RawMessage
			RequestState   string
		}
		if err := json.Unmarshal(r.Params, &p); err != nil {
			return upstream.Answer{}, err
		}
		if got, ok := p.InputResponses["k"]; ok && p.RequestState == "mine" {
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete","content":[],"heard":` + string(got) + `}`)}, nil
		}
		return upstream.Answer{Type: "input_required", Result: []byte(`{"resultType":"input_required","inputRequests":{"k":{"method":"` + method + `","params":` + params + `}},"requestState":"mine"}`)}, nil
	}
	return s
}

// TestQuestionCutOff: a call that ends while the client is asked what a modern server wants to know ends for the
// client's reason, or the gateway's, and not for the server's.
func TestQuestionCutOff(t *testing.T) {
	for name, tt := range map[string]struct {
		does func(w *world, c *client)
		want string
	}{
		"cancelled": {func(_ *world, c *client) {
			c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}`)
		}, "the request was cancelled"},
		"revoked": {func(w *world, _ *client) {
			for one := range w.creds.Of("agents/scout") {
				w.creds, _ = w.creds.Revoke(one.ID)
			}
			w.adopt()
		}, "the token was revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			up := files(t, questioner(true, "elicitation/create", `{"message":"?","requestedSchema":{"type":"object"}}`))
			up.MayAsk = []string{"elicitation"}
			w := start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
			in.question()
			tt.does(w, c)
			got := in.next()
			if strings.Contains(got, "notifications/cancelled") { // of the question
				got = in.next()
			}
			if !strings.Contains(got, tt.want) || strings.Contains(got, "upstream_failed") {
				t.Error(got)
			}
		})
	}
}

// input is what an answer asks for.
type input struct {
	InputRequests map[string]struct {
		Method string
		Params json.RawMessage
	}
	RequestState string
}

func inputOf(t *testing.T, a said) input {
	t.Helper()
	var in input
	if err := json.Unmarshal(a.Result, &in); err != nil || in.RequestState == "" {
		t.Fatalf("not input_required: %s", a.Raw)
	}
	return in
}

// answered makes a call and answers what is asked in between with one result.
func (c *client) answered(t *testing.T, modern bool, able, args, answer string) said {
	t.Helper()
	if modern {
		a := c.modern("tools/call", `{`+args+`}`, able)
		if !strings.Contains(string(a.Result), "input_required") {
			return a
		}
		in := inputOf(t, a)
		<-time.After(c.thinks)
		responses := map[string]json.RawMessage{}
		for key := range in.InputRequests {
			responses[key] = json.RawMessage(answer)
		}
		return c.modern("tools/call", `{`+args+`,"inputResponses":`+quoted(responses)+`,"requestState":"`+in.RequestState+`"}`, able)
	}
	c.initialize(able)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := c.open(ctx, t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{`+args+`}}`)
	if strings.HasPrefix(in.resp.Header.Get("Content-Type"), "application/json") {
		return take(t, in.resp)
	}
	for {
		var m struct {
			said
			ID     any `json:"id"`
			Method string
		}
		data := in.next()
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if m.Method == "" {
			m.said.Raw = data
			return m.said
		}
		<-time.After(c.thinks)
		if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(m.ID) + `,"result":` + answer + `}`); resp.StatusCode != 202 {
			t.Fatal(resp.StatusCode)
		}
	}
}

// TestAsk: what a server may ask reaches the client and comes back, in every
// combination of eras; what it may not ask is refused, and an event.
func TestAsk(t *testing.T) {
	const form, heard = `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`, `{"action":"accept","content":{"x":1}}`
	for _, test := range []struct {
		name, able, method, params string
		may                        []string
		refused                    bool
	}{
		{"form", `{"elicitation":{"form":{}}}`, "elicitation/create", form, []string{"elicitation"}, false},
		{"page", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"mode":"url","url":"https://example.org/","message":"?"}`, []string{"elicitation"}, false},
		{"sampling", `{"sampling":{}}`, "sampling/createMessage", `{"messages":[],"maxTokens":1}`, []string{"sampling"}, false},
		{"page over http", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"mode":"url","url":"http://example.org/","message":"?"}`, []string{"elicitation"}, true},
		{"page of javascript", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"mode":"url","url":"javascript:alert(1)","message":"?"}`, []string{"elicitation"}, true},
		{"page with a user", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"mode":"url","url":"https://a@example.org/","message":"?"}`, []string{"elicitation"}, true},
		{"page without url", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"mode":"url","message":"?"}`, []string{"elicitation"}, true},
		{"no may_ask", `{"elicitation":{}}`, "elicitation/create", form, nil, true},
		{"another may_ask", `{"elicitation":{},"sampling":{}}`, "elicitation/create", form, []string{"sampling"}, true},
		{"client cannot", `{}`, "elicitation/create", form, []string{"elicitation"}, true},
		{"unknown", `{"elicitation":{}}`, "tools/call", form, []string{"elicitation"}, true},
	} {
		for _, agent := range []bool{false, true} {
			for _, server := range []bool{false, true} {
				t.Run(test.name+map[bool]string{false: " legacy", true: " modern"}[agent]+map[bool]string{false: " to legacy", true: " to modern"}[server], func(t *testing.T) {
					s := questioner(server, test.method, test.params)
					up := files(t, s)
					up.MayAsk = test.may
					w := start(t, map[string]string{"scout": reader}, up)
					a := w.client("scout").answered(t, agent, test.able, `"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}`, heard)
					if got := strings.Contains(a.Raw, `"heard":`+heard); got == test.refused {
						t.Errorf("%s", a.Raw)
					}
					events := w.events.of("refusal")
					if test.refused != (len(events) > 0 && events[0].Code == "capability_absent") {
						t.Errorf("events: %+v", events)
					}
				})
			}
		}
	}
}

// TestRootsAreTheAgents: a server hears the agent's root and nothing of what its
// client says, which would else choose what a relative path means after it was
// decided.
func TestRootsAreTheAgents(t *testing.T) {
	const record = "---\nclass: agent\nsandbox: $ROOT\n---\n"
	for _, agent := range []bool{false, true} {
		for _, server := range []bool{false, true} {
			s := questioner(server, "roots/list", "{}")
			up := files(t, s)
			up.MayAsk = []string{"roots", "elicitation"}
			w := start(t, map[string]string{"scout": record}, up)
			args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
			a := w.client("scout").answered(t, agent, `{}`, args, `{}`)
			if !strings.Contains(a.Raw, `"heard":{"roots":[{"uri":"file://`+w.root+`"`) {
				t.Errorf("agent modern %v, server modern %v, without roots: %s", agent, server, a.Raw)
			}
			said := `{"roots":[{"uri":"file:///"},{"uri":"file://` + w.root + `/sub"},{"uri":"file://` + w.root + `/../x"},{"uri":"file://evil` + w.root + `"},{"uri":"https://evil.example/"},{"uri":"file://` + w.root + `-evil"},{"uri":1},1]}`
			a = w.client("scout").answered(t, agent, `{"roots":{}}`, args, said)
			heard := a.Raw[strings.Index(a.Raw, `"heard"`):]
			if !strings.HasPrefix(heard, `"heard":{"roots":[{"uri":"file://`+w.root+`","name":`) || strings.Count(heard, "file:") > 1 {
				t.Errorf("agent modern %v, server modern %v: %s", agent, server, a.Raw)
			}
		}
	}
}

// TestRootsOfTheConfiguration: an agent whose record has no root works in that of the
// configuration, and a server hears that one.
func TestRootsOfTheConfiguration(t *testing.T) {
	for _, server := range []bool{false, true} {
		up := files(t, questioner(server, "roots/list", "{}"))
		up.MayAsk = []string{"roots"}
		w := start(t, map[string]string{"scout": reader}, up)
		args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		if a := w.client("scout").answered(t, false, `{}`, args, `{}`); !strings.Contains(a.Raw, `"heard":{"roots":[]}`) {
			t.Errorf("server modern %v, no root: %s", server, a.Raw)
		}
		w.shared = capability.Root{Dir: w.root, Real: w.root}
		w.adopt()
		if a := w.client("scout").answered(t, false, `{}`, args, `{}`); !strings.Contains(a.Raw, `"heard":{"roots":[{"uri":"file://`+w.root+`"`) {
			t.Errorf("server modern %v: %s", server, a.Raw)
		}
	}
}

// TestStateIsBound: a state is good for the agent, the tool and the arguments that
// it was given for, and not for ever.
func TestStateIsBound(t *testing.T) {
	for _, server := range []bool{false, true} {
		s := questioner(server, "elicitation/create", `{"message":"?"}`)
		s.lists = map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `,` + tool("get_file_info", "path") + `]`}
		now := time.Now()
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w := startWith(t, proxy.Options{Clock: func() time.Time { return now }}, map[string]string{"scout": reader, "spy": reader}, up)
		const able = `{"elicitation":{}}`
		args := func(name, path string) string {
			return `"name":"files__` + name + `","arguments":{"path":"` + w.root + `/docs/` + path + `"}`
		}
		c := w.client("scout")
		retry := func(who *client, args, state string) said {
			key := "k"
			if !server {
				key = "ask-1"
			}
			return who.modern("tools/call", `{`+args+`,"inputResponses":{"`+key+`":{"action":"accept"}},"requestState":"`+state+`"}`, able)
		}
		mine := args("read_text_file", "a")
		state := inputOf(t, c.modern("tools/call", `{`+mine+`}`, able)).RequestState
		bad := map[string]said{
			"of another agent": retry(w.client("spy"), mine, state),
			"other arguments":  retry(c, args("read_text_file", "b"), state),
			"another tool":     retry(c, args("get_file_info", "a"), state),
			"tampered":         retry(c, mine, state[:len(state)-2]+"AA"),
			"the server's own": retry(c, mine, "mine"),
			"nothing":          retry(c, mine, ""),
			"spaced arguments": retry(c, strings.Replace(mine, `":{"path`, `":{ "path`, 1), state),
			"another encoding": retry(c, mine, state+"=="),
		}
		for name, a := range bad {
			if d := denialOf(t, a); a.Error == nil || a.Error.Code != -32602 || d.Code != "malformed_request" {
				t.Errorf("server modern %v, a state %s: %s", server, name, a.Raw)
			}
		}
		if a := retry(c, mine, state); !strings.Contains(a.Raw, `"heard":{"action":"accept"}`) {
			t.Errorf("server modern %v, the right state: %s", server, a.Raw)
		}
		if a := retry(c, mine, state); !server && a.Error == nil {
			t.Errorf("a ticket is good twice: %s", a.Raw)
		}
		state = inputOf(t, c.modern("tools/call", `{`+mine+`}`, able)).RequestState
		now = now.Add(20 * time.Minute)
		if a := retry(c, mine, state); a.Error == nil {
			t.Errorf("server modern %v, an old state: %s", server, a.Raw)
		}
	}
}

// TestParkedPartly: a call that asks two things waits until both are answered.
func TestParkedPartly(t *testing.T) {
	s := &scripted{}
	s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		var heard []string
		for _, q := range []string{"first", "second"} {
			got, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"`+q+`"}`))
			if err != nil {
				return upstream.Answer{}, err
			}
			heard = append(heard, string(got))
		}
		return upstream.Answer{Result: []byte(`{"content":[],"heard":[` + strings.Join(heard, ",") + `]}`)}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c := w.client("scout")
	args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	a := c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`)
	for _, answers := range []string{`{}`, `{"other":{}}`, `{"ask-1":1}`, `{"ask-1":{"action":"accept","n":1}}`, `{"ask-2":{"action":"accept","n":2}}`} {
		in := inputOf(t, a)
		if len(in.InputRequests) != 1 {
			t.Fatalf("%s", a.Raw)
		}
		a = c.modern("tools/call", `{`+args+`,"inputResponses":`+answers+`,"requestState":"`+in.RequestState+`"}`, `{"elicitation":{}}`)
	}
	if !strings.Contains(a.Raw, `"heard":[{"action":"accept","n":1},{"action":"accept","n":2}]`) {
		t.Errorf("%s", a.Raw)
	}
	if n := len(s.calls()); n != 1 {
		t.Errorf("the server got %d calls", n)
	}
}

// TestParkedAgain: a parked call that goes up once more says what it said, whatever
// became of the memory that it stood in the first time.
func TestParkedAgain(t *testing.T) {
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if len(s.calls()) > 1 {
			return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
		}
		if r.Sent != nil {
			r.Sent()
			copy(r.Around, bytes.Repeat([]byte("#"), len(r.Around))) // it is another agent's now
		}
		return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "no longer knows the session", Unsent: true, Lost: true}
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": strings.ReplaceAll(reader, "fs.read", "fs.write")}, up)
	long := `{"name":"files__write_file","arguments":{"path":"` + w.root + `/docs/a","content":"` + strings.Repeat("a", 40<<10) + `"}}`
	a := w.client("scout").modern("tools/call", long, `{"elicitation":{}}`)
	calls := s.calls()
	if len(calls) != 2 || a.Error != nil {
		t.Fatalf("%d calls: %.200s", len(calls), a.Raw)
	}
	if !bytes.Equal(calls[0].Params, calls[1].Params) {
		t.Errorf("what goes up again is %.80q", calls[1].Params)
	}
}

// TestProgress: the server has a token of ours, the agent its own back, and what
// has another token is nobody's.
func TestProgress(t *testing.T) {
	var tokens []string
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		tokens = append(tokens, r.Token)
		for _, token := range []string{`"` + r.Token + `"`, `"7"`, "7", `"other"`} {
			sink.Notify("notifications/progress", []byte(`{"progress":1,"progressToken":`+token+`,"message":"m"}`))
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	for _, token := range []string{`7`, `"7"`, `"a\nb"`} {
		a := c.request("tools/call", `{`+args+`,"_meta":{"progressToken":`+token+`}}`)
		if len(a.Before) != 1 || !strings.Contains(a.Before[0], `"progressToken":`+token+`,"message":"m"`) {
			t.Errorf("%s: %q", token, a.Before)
		}
	}
	if a := c.request("tools/call", `{`+args+`}`); len(a.Before) != 0 {
		t.Errorf("unasked: %q", a.Before)
	}
	if tokens[0] == tokens[1] || tokens[0] == "" || tokens[3] != "" {
		t.Errorf("tokens of the server: %q", tokens)
	}
}

// TestLogs: an agent sees the logs that it asked for, of its own calls.
func TestLogs(t *testing.T) {
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		if r.Method != "tools/call" {
			return upstream.Answer{Result: []byte("{}")}, nil
		}
		for _, level := range []string{"debug", "warning", "error", "loud"} {
			sink.Notify("notifications/message", []byte(`{"level":"`+level+`","data":1}`))
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	if a := c.request("logging/setLevel", `{"level":"warning"}`); string(a.Result) != "{}" {
		t.Error(a.Raw)
	}
	if a := c.request("logging/setLevel", `{"level":"loud"}`); a.Error == nil {
		t.Error(a.Raw)
	}
	if a := c.request("tools/call", `{`+args+`}`); len(a.Before) != 2 {
		t.Errorf("from warning: %q", a.Before)
	}
	if a := c.modern("tools/call", `{`+args+`}`, "{}"); len(a.Before) != 0 {
		t.Errorf("nothing was asked for: %q", a.Before)
	}
}

// TestCancel: a call that the agent gives up is given up at the server.
func TestCancel(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	s := &scripted{}
	s.reply = func(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		over <- struct{}{}
		return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "gave no answer", Err: ctx.Err()}
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	answer := make(chan said, 1)
	go func() {
		answer <- take(t, c.post(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`))
	}()
	<-begun
	if resp := c.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`); resp.StatusCode != 202 {
		t.Error(resp.StatusCode)
	}
	<-over
	if a := <-answer; a.Error == nil {
		t.Error(a.Raw)
	}
}

// TestClientHearsOfRoots has a client of the modern era be asked for the directories
// that it works in, as its server meant it. What it answers does not go up.
func TestClientHearsOfRoots(t *testing.T) {
	up := files(t, questioner(true, "roots/list", `{}`))
	up.MayAsk = []string{"roots"}
	w := start(t, map[string]string{"scout": "---\nclass: agent\nsandbox: $ROOT\n---\n"}, up)
	c := w.client("scout")
	params := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	asked := inputOf(t, c.modern("tools/call", params+`}`, `{"roots":{}}`))
	if len(asked.InputRequests) != 1 || asked.InputRequests["k"].Method != "roots/list" {
		t.Fatalf("the client is asked %v", asked.InputRequests)
	}
	a := c.modern("tools/call", params+`,"requestState":"`+asked.RequestState+`","inputResponses":{"k":{"roots":[{"uri":"file:///etc"}]}}}`, `{"roots":{}}`)
	if !strings.Contains(a.Raw, `"heard":{"roots":[{"uri":"file://`+w.root+`"`) || strings.Contains(a.Raw, "/etc") {
		t.Errorf("the server heard otherwise: %s", a.Raw)
	}
}

// TestStateAlone: a server that asks for nothing but to be asked again gets its state, and no
// answers to questions that there are not.
func TestStateAlone(t *testing.T) {
	s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if strings.Contains(string(r.Params), `"requestState":"later"`) {
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete","content":[]}`)}, nil
		}
		return upstream.Answer{Type: "input_required", Result: []byte(`{"resultType":"input_required","requestState":"later"}`)}, nil
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	a := w.client("scout").modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{}`)
	if calls := s.calls(); a.Error != nil || len(calls) != 2 || strings.Contains(string(calls[1].Params), "inputResponses") {
		t.Errorf("%s: %+v", a.Raw, calls)
	}
}
