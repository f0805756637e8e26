package proxy_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// asks is a legacy server that asks one thing during each call, and says in its
// result what it heard.
func asks(method, params string) *scripted {
	s := &scripted{}
	s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		var raw []byte
		if params != "" {
			raw = []byte(params)
		}
		got, err := sink.Ask(ctx, method, raw)
		if err != nil {
			text, _ := json.Marshal(err.Error())
			return upstream.Answer{Result: []byte(`{"content":[],"refused":` + string(text) + `}`)}, nil
		}
		return upstream.Answer{Result: []byte(`{"content":[],"heard":` + string(got) + `}`)}, nil
	}
	return s
}

// finding 18: a client is asked only in a way that it said it knows, and in no way
// that is not known here.
func TestAskedOnlyWhatTheClientCan(t *testing.T) {
	for _, test := range []struct{ name, able, method, params string }{
		{"form where only pages are opened", `{"elicitation":{"url":{}}}`, "elicitation/create", `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`},
		{"page where only forms are filled in", `{"elicitation":{"form":{}}}`, "elicitation/create", `{"mode":"url","url":"https://example.com/","message":"?"}`},
		{"unknown mode", `{"elicitation":{"form":{},"url":{}}}`, "elicitation/create", `{"mode":"URL","url":"http://evil.example/","message":"?"}`},
		{"sampling with tools", `{"sampling":{}}`, "sampling/createMessage", `{"messages":[],"maxTokens":1,"tools":[]}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := asks(test.method, test.params)
			up := files(t, s)
			up.MayAsk = []string{"elicitation", "sampling"}
			w := start(t, map[string]string{"scout": reader}, up)
			a := w.client("scout").modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, test.able)
			if strings.Contains(a.Raw, "inputRequests") {
				t.Errorf("asked: %s", a.Raw)
			}
		})
	}
}

// finding 19: a server that agents share is not told the root of the one whose call
// happens to be up: it would take it for everybody's.
func TestSharedServerHearsNoRoots(t *testing.T) {
	s := asks("roots/list", "")
	up := files(t, s)
	up.Shared, up.MayAsk = true, []string{"roots", "elicitation"}
	w := start(t, map[string]string{"scout": "---\nclass: agent\nsandbox: $ROOT\n---\n"}, up)
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
	if strings.Contains(string(a.Result), w.root) {
		t.Errorf("%s", a.Raw)
	}
	a = w.client("scout").modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"roots":{},"elicitation":{}}`)
	if strings.Contains(string(a.Result), w.root) {
		t.Errorf("while it is waited for: %s", a.Raw)
	}
}

// finding 20: while a server without a prefix does not answer, another must not get
// its names.
func TestNamesOfASilentServerStayFree(t *testing.T) {
	silent := &scripted{reply: nil}
	evil := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("send_email", "text") + `]`}}
	w := start(t, map[string]string{"scout": everything},
		&proxy.Upstream{Name: "trusted", Open: func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
			_, _ = silent.open(ctx, p)
			return nil, &upstream.Failed{Upstream: "trusted", Text: "cannot be started"}
		}},
		&proxy.Upstream{Name: "evil", Open: evil.open})
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"send_email","arguments":{"text":"x"}}`)
	if n := len(evil.calls()); n != 0 {
		t.Errorf("the call went to the server that was up: %s", a.Raw)
	}
}

// finding 21: input may be asked for by three methods, and by no other.
func TestOnlySomeMethodsAskForInput(t *testing.T) {
	s := asker(`{"k1":{"method":"elicitation/create","params":{"message":"?"}}}`)
	s.lists["prompts/list"] = `"prompts":[{"name":"p"}]`
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, MayAsk: []string{"elicitation"}})
	a := w.client("scout").modern("completion/complete", `{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"a","value":"b"}}`, `{"elicitation":{}}`)
	if strings.Contains(a.Raw, "input_required") {
		t.Errorf("%s", a.Raw)
	}
}

// TestOnlySomeMethodsAreAskedDuring: nor may a server of the other era have the agent asked in between, whose client
// would take the question for what completes its prompt.
func TestOnlySomeMethodsAreAskedDuring(t *testing.T) {
	s := &scripted{lists: map[string]string{"prompts/list": `"prompts":[{"name":"p"}]`}}
	s.reply = func(ctx context.Context, _ upstream.Request, k upstream.Sink) (upstream.Answer, error) {
		if _, err := k.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`)); err == nil {
			t.Error("the question is answered")
		}
		return upstream.Answer{Result: []byte(`{"completion":{"values":["x"]}}`)}, nil
	}
	w := start(t, map[string]string{"scout": "---\nclass: agent\ncapabilities:\n  - prompt.get: { names: [\"up.*\"] }\n---\n"},
		&proxy.Upstream{Name: "up", Prefix: "up", MayAsk: []string{"elicitation"}, Open: s.open})
	a := w.client("scout").modern("completion/complete", `{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"a","value":"b"}}`, `{"elicitation":{}}`)
	if !strings.Contains(a.Raw, `"values":["x"]`) || strings.Contains(a.Raw, "input_required") {
		t.Errorf("answered %s", a.Raw)
	}
}

// finding 22: a session that has connections of its own is told once that a
// resource has changed.
func TestUpdatedOnce(t *testing.T) {
	s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"n"}]`}}
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, MayAsk: []string{"elicitation"}})
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	if a := c.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error != nil {
		t.Fatal(a.Raw)
	}
	sink := s.first().Events
	sink.Notify("notifications/resources/updated", []byte(`{"uri":"notes:///a"}`))
	sink.Notify("notifications/message", []byte(`{"level":"info","data":"end"}`))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := c.open(ctx, t, http.MethodGet, "")
	updates := 0
	for data := in.next(); data != "" && !strings.Contains(data, `"end"`); data = in.next() {
		if strings.Contains(data, "resources/updated") {
			updates++
		}
	}
	if updates != 1 {
		t.Errorf("told %d times", updates)
	}
}

// finding 23: what an agent is denied counts against its limit too, and so do
// subscriptions: both cost a line of the event log or a request to a server.
func TestDenialsAndSubscriptionsAreLimited(t *testing.T) {
	s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"n"}]`}}
	now := time.Now()
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Calls: 5}, Clock: func() time.Time { return now }}, map[string]string{"scout": everything, "prober": everything},
		&proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	c.initialize("{}")
	for range 20 {
		c.request("resources/subscribe", `{"uri":"notes:///a"}`)
	}
	if n := len(s.calls()); n > 5 {
		t.Errorf("%d subscriptions went up, of 5 calls a minute", n)
	}
	c = w.client("prober")
	c.initialize("{}")
	var last said
	for range 20 {
		last = c.request("tools/call", `{"name":"up__none","arguments":{}}`)
	}
	if d := denialOf(t, last); d.Code != "limit_exceeded" || !strings.Contains(last.Raw, "too many calls in a minute") {
		t.Errorf("the twentieth denial in a moment is %+v", d)
	}
}

// finding 24: a session that is refused for want of room is an event, like every
// other refusal; and so is a call that asks for a task.
func TestRefusalsAreEvents(t *testing.T) {
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Sessions: 1}}, map[string]string{"scout": reader}, files(t, &scripted{}))
	c := w.client("scout")
	c.initialize("{}")
	before := len(w.events.of("refusal")) + len(w.events.of("decision"))
	other := w.client("scout")
	resp := other.post(hello)
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.Header.Get("Mcp-Session-Id") != "" || !strings.Contains(string(text), "error") {
		t.Fatalf("a second session: %s", text)
	}
	if n := len(w.events.of("refusal")) + len(w.events.of("decision")); n != before+1 {
		t.Errorf("a session too many left %d events", n-before)
	}
	before = len(w.events.of("refusal")) + len(w.events.of("decision"))
	a := c.request("tools/call", `{"name":"files__read_text_file","task":{"ttl":1},"arguments":{"path":"`+w.root+`/docs/a"}}`)
	if a.Error == nil {
		t.Fatal(a.Raw)
	}
	if n := len(w.events.of("refusal")) + len(w.events.of("decision")); n != before+1 {
		t.Errorf("a task left %d events", n-before)
	}
}

// finding 25: that a server does not answer is said as what it is.
func TestSilentServerIsNamed(t *testing.T) {
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: func(context.Context, proxy.Peer) (upstream.Conn, error) {
		return nil, &upstream.Failed{Upstream: "up", Text: "cannot be started"}
	}})
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"up__x","arguments":{}}`)
	if d := denialOf(t, a); d.Code != "upstream_failed" || strings.Contains(a.Raw, "this is not allowed") {
		t.Errorf("%s", a.Raw)
	}
}

// TestLoginIsNamed: an agent is not told to try again where only a person helps.
func TestLoginIsNamed(t *testing.T) {
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: func(context.Context, proxy.Peer) (upstream.Conn, error) {
		return nil, &upstream.Failed{Upstream: "up", Text: "was not asked", Unsent: true, Err: &upstream.NeedsLogin{Why: "it wants a token", Do: "run: capgate upstreams login up"}}
	}})
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"up__x","arguments":{}}`)
	d := denialOf(t, a)
	if d.Code != "upstream_failed" || !strings.Contains(a.Raw, "a person has to run: capgate upstreams login up. To proceed, ask the operator. [event") || d.Hint != "ask the operator" {
		t.Errorf("%s", a.Raw)
	}
}

// TestOperatorIsNamed: the same where a server that says nothing of itself says who helps.
func TestOperatorIsNamed(t *testing.T) {
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: func(context.Context, proxy.Peer) (upstream.Conn, error) {
		return nil, &upstream.Failed{Upstream: "up", Text: "does not let its token do that (403); ask the operator", Undone: true}
	}})
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"up__x","arguments":{}}`)
	if d := denialOf(t, a); d.Code != "upstream_failed" || d.Hint != "ask the operator" || strings.Contains(a.Raw, "try again") {
		t.Errorf("%s", a.Raw)
	}
}

// TestLoginIsNamedInACall: the same where the token has gone since the server said what it has.
func TestLoginIsNamedInACall(t *testing.T) {
	s := &scripted{reply: func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if r.Method == "tools/call" {
			return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "was not asked", Unsent: true, Err: &upstream.NeedsLogin{Why: "its token has expired", Do: "run: capgate upstreams login files"}}
		}
		return upstream.Answer{Result: []byte("{}")}, nil
	}}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
	const text = `upstream \"files\": its token has expired; a person has to run: capgate upstreams login files. To proceed, ask the operator; it was not done. [event`
	if !strings.Contains(a.Raw, text) {
		t.Errorf("%s", a.Raw)
	}
}

// TestWhetherItWasDone: of a call that cannot have reached its server an agent is
// told so, and of any other it is not.
func TestWhetherItWasDone(t *testing.T) {
	for _, failed := range []upstream.Failed{{Unsent: true}, {Undone: true}, {}} {
		undone := failed.Unsent || failed.Undone
		s := &scripted{reply: func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
			if r.Method == "tools/call" {
				return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "ended", Unsent: failed.Unsent, Undone: failed.Undone}
			}
			return upstream.Answer{Result: []byte("{}")}, nil
		}}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
		if strings.Contains(a.Raw, "; it was not done") != undone || strings.Contains(a.Raw, "may or may not") == undone {
			t.Errorf("%+v: %s", failed, a.Raw)
		}
	}
}

// TestWhetherItWasDoneBeforeItsQuestion: a call whose server has asked something about it may have been done, also
// where the server cannot be reached when the agent comes back with the answer.
func TestWhetherItWasDoneBeforeItsQuestion(t *testing.T) {
	for _, modern := range []bool{false, true} {
		s := &scripted{info: upstream.Info{Modern: modern}}
		down := false
		s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if modern {
				return upstream.Answer{Type: "input_required", Result: []byte(`{"inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"s"}`)}, nil
			}
			_, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
			return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "ended", Err: err}
		}
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
			if down {
				return nil, &upstream.Failed{Upstream: "files", Text: "does not start", Unsent: true}
			}
			return s.open(ctx, p)
		}
		w := start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		call := func(more string) said {
			return c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}`+more+`}`, `{"elicitation":{}}`)
		}
		state := inputOf(t, call("")).RequestState
		down = true
		must(t, s.conns[0].Close())
		a := call(`,"requestState":"` + state + `","inputResponses":{}`)
		if strings.Contains(a.Raw, "; it was not done") || !strings.Contains(a.Raw, "may or may not") {
			t.Errorf("modern %v: %s", modern, a.Raw)
		}
		if a := call(""); !strings.Contains(a.Raw, "; it was not done") {
			t.Errorf("modern %v: %s", modern, a.Raw)
		}
	}
}

// TestAdviceOfAFailure: what an agent can do about an answer that is too long is what it is told
// to do, and not to try again. Of a list it can do nothing.
func TestAdviceOfAFailure(t *testing.T) {
	const long = "answers with too much; ask it for less"
	s := &scripted{reply: func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if r.Method == "tools/call" {
			return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: long}
		}
		return upstream.Answer{Result: []byte("{}")}, nil
	}}
	w := start(t, map[string]string{"scout": everything}, files(t, s), &proxy.Upstream{Name: "up", Prefix: "up", Open: func(context.Context, proxy.Peer) (upstream.Conn, error) {
		return nil, &upstream.Failed{Upstream: "up", Text: long}
	}})
	c := w.client("scout")
	c.initialize("{}")
	for call, want := range map[string]string{
		`{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/a"}}`: `answers with too much. To proceed, ask it for less; it may or may not have been done. [event`,
		`{"name":"up__x","arguments":{}}`:                                          `answers with too much, so that it is not known what it has. To proceed, try again later. [event`,
	} {
		if a := c.request("tools/call", call); !strings.Contains(a.Raw, want) {
			t.Errorf("want %q: %s", want, a.Raw)
		}
	}
}

// TestRecordGone: an agent whose record is deleted is told so, whatever it asks for.
func TestRecordGone(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader, "other": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	must(t, os.Remove(filepath.Join(w.dir, "scout.md")))
	w.adopt()
	for method, params := range map[string]string{
		"tools/call":     `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`,
		"resources/read": `{"uri":"file://` + w.root + `/docs/a"}`,
	} {
		a := c.request(method, params)
		if d := denialOf(t, a); d.Code != "unauthenticated" || !strings.Contains(a.Raw, "(unauthenticated): there is no record of the agent any more. ") {
			t.Errorf("%s: %s", method, a.Raw)
		}
	}
}

// TestUnableIsSaid: a call that ends because the client cannot be asked says so.
func TestUnableIsSaid(t *testing.T) {
	s := asker(`{"k1":{"method":"elicitation/create","params":{"message":"?"}}}`)
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, MayAsk: []string{"elicitation"}})
	a := w.client("scout").modern("tools/call", `{"name":"up__read_text_file","arguments":{"path":"x"}}`, "{}")
	if !strings.Contains(a.Raw, "(capability_absent): the client cannot answer requests for elicitation. To proceed, do without it.") {
		t.Errorf("%s", a.Raw)
	}
}

// finding 26: what waits for a session that has no stream is bounded in bytes, not
// only in messages.
func TestQueueIsBoundedInBytes(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	sink := s.first().Events
	large := []byte(`{"level":"info","data":"` + strings.Repeat("x", 1<<20) + `"}`)
	for range 64 {
		sink.Notify("notifications/message", large)
	}
	sink.Notify("notifications/tools/list_changed", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := c.open(ctx, t, http.MethodGet, "")
	kept := 0
	for data := in.next(); strings.Contains(data, "notifications/message"); data = in.next() {
		if kept += len(data); kept >= 64<<20 {
			break
		}
	}
	if kept > 16<<20 {
		t.Errorf("%d MiB waited for one session", kept>>20)
	}
}

// TestRootOfServer moves the directory of an agent: a server that was told the old
// one is started anew, so that it does not hang paths from there that are decided
// from the new one. An edit of anything else leaves it as it is.
func TestRootOfServer(t *testing.T) {
	const record = "---\nclass: agent\nsandbox: $ROOT/DIR\ncapabilities:\n  - fs.read: { paths: [PATHS] }\n---\n"
	s := &scripted{}
	w := start(t, map[string]string{"scout": "---\nclass: agent\nsandbox: $ROOT\n---\n"}, files(t, s))
	if err := os.MkdirAll(filepath.Join(w.root, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	c := w.client("scout")
	c.initialize("{}")
	for _, test := range []struct {
		dir, paths string
		opened     int64
	}{{".", "docs", 1}, {".", "docs, other", 1}, {"docs", ".", 2}} {
		w.write("scout", strings.NewReplacer("DIR", test.dir, "PATHS", test.paths).Replace(record))
		w.adopt()
		if a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`); strings.Contains(a.Raw, "isError") {
			t.Fatal(a.Raw)
		}
		if n := s.opened.Load(); n != test.opened {
			t.Errorf("beneath %s, with %s: the server was started %d times, want %d", test.dir, test.paths, n, test.opened)
		}
	}
}

// TestLongMethodOfAServer: what a server writes at length for a method fills neither the events
// nor the log.
func TestLongMethodOfAServer(t *testing.T) {
	s := asks(strings.Repeat("x", 1<<20), "")
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
	for _, e := range w.events.of("refusal") {
		if n := len(e.Method) + len(e.Text); n > 1024 {
			t.Errorf("%d bytes of a refusal", n)
		}
	}
	if len(w.events.of("refusal")) == 0 {
		t.Error("nothing is recorded")
	}
}
