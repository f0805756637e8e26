package proxy_test

import (
	"context"
	"errors"
	"testing"

	"capgate/upstream"
)

// loosely makes a server that sends what it has to say without saying for which
// call, as servers over stdio do.
func loosely(say func(events upstream.Sink)) *scripted {
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if r.Method == "tools/call" {
			events := s.newest().Events
			say(events)
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	return s
}

// TestLooseLogs: a log that belongs to no call is shown during the only one that is
// up, unless agents share the server: then it may be about another.
func TestLooseLogs(t *testing.T) {
	for _, shared := range []bool{false, true} {
		s := loosely(func(events upstream.Sink) {
			events.Notify("notifications/message", []byte(`{"level":"debug","data":1}`))
			events.Notify("notifications/message", []byte(`{"level":"error","data":2}`))
		})
		up := files(t, s)
		up.Shared = shared
		w := start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		c.initialize("{}")
		c.request("logging/setLevel", `{"level":"warning"}`)
		args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		want := map[bool]int{false: 1}[shared]
		if a := c.request("tools/call", `{`+args+`}`); len(a.Before) != want {
			t.Errorf("shared %v: a session heard %q", shared, a.Before)
		}
		if a := c.modern("tools/call", `{`+args+`}`, `{},"io.modelcontextprotocol/logLevel":"warning"`); len(a.Before) != want {
			t.Errorf("shared %v: a request heard %q", shared, a.Before)
		}
	}
}

// TestLooseQuestion: what a server that agents share asks, without saying for which
// call, is asked of nobody: it may be about a call of another that was given up.
func TestLooseQuestion(t *testing.T) {
	for _, shared := range []bool{false, true} {
		var err error
		s := loosely(func(events upstream.Sink) {
			_, err = events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`))
		})
		up := files(t, s)
		up.Shared, up.MayAsk = shared, []string{"elicitation"}
		w := start(t, map[string]string{"scout": reader}, up)
		a := w.client("scout").answered(t, false, `{"elicitation":{}}`, `"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}`, `{"action":"accept"}`)
		if refused := errors.As(err, new(*upstream.Refusal)); refused != shared {
			t.Errorf("shared %v: %v, %s", shared, err, a.Raw)
		}
	}
}
