package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/upstream"
)

// TestOpenQuestionsAreBounded: what servers ask while their calls wait for an agent to come back takes no more memory
// than what waits for sessions, and leaves room once it is answered or nobody asks it any more.
func TestOpenQuestionsAreBounded(t *testing.T) {
	const size, fit = 4 << 20, 15 // with what is written around them
	question := []byte(`{"message":"` + strings.Repeat("x", size) + `"}`)
	refused := make(chan struct{}, 64)
	withdraws := false
	s := &scripted{reply: func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		if withdraws {
			var withdraw context.CancelFunc
			ctx, withdraw = context.WithCancel(ctx)
			withdraw()
		}
		if _, err := sink.Ask(ctx, "elicitation/create", question); err != nil {
			refused <- struct{}{}
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c, args := w.client("scout"), ""
	args = `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	call := func(more string) said { return c.modern("tools/call", `{`+args+more+`}`, `{"elicitation":{}}`) }
	var states []string
	for range fit {
		states = append(states, inputOf(t, call("")).RequestState)
	}
	if call(""); len(refused) != 1 {
		t.Fatalf("%d questions are refused", len(refused))
	}
	<-refused
	for _, state := range states {
		call(`,"inputResponses":{"ask-1":{"action":"accept"}},"requestState":"` + state + `"`)
	}
	withdraws = true
	for range fit + 1 {
		call("")
		<-refused
	}
	withdraws = false
	inputOf(t, call(""))
}

// TestOpenQuestionIsTakenBack: an agent that comes back is not asked what its server no longer wants to know.
func TestOpenQuestionIsTakenBack(t *testing.T) {
	s := &scripted{reply: func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		now, withdraw := context.WithCancel(ctx)
		withdraw()
		_, _ = sink.Ask(now, "elicitation/create", []byte(`{"message":"no more?"}`))
		for { // nobody can be asked while the agent has not come back
			if _, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"still?"}`)); err == nil || ctx.Err() != nil {
				return upstream.Answer{}, err
			}
			time.Sleep(time.Millisecond)
		}
	}}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c, more := w.client("scout"), ""
	for range 100 { // it may be asked the first while that is wanted
		a := c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}`+more+`}`, `{"elicitation":{}}`)
		more = `,"inputResponses":{},"requestState":"` + inputOf(t, a).RequestState + `"`
		if strings.Contains(a.Raw, "still?") {
			if strings.Contains(a.Raw, "no more?") {
				t.Error(a.Raw)
			}
			return
		}
	}
	t.Error("it is not asked what is still wanted")
}

// asksBesides is a server that asks something on a stream that belongs to no call while it is called, and answers the
// call when that is to be over.
func asksBesides(t *testing.T, over <-chan struct{}, ended chan<- error) *scripted {
	s := &scripted{}
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		go func() {
			_, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`))
			ended <- err
		}()
		<-over
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	return s
}

// TestOpenQuestionOfCallThatIsOver: what a server asks on a stream that belongs to no call is of the only one that is up,
// and is asked no longer than that is, however long the stream lasts.
func TestOpenQuestionOfCallThatIsOver(t *testing.T) {
	over, ended := make(chan struct{}), make(chan error, 1)
	s := asksBesides(t, over, ended)
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	inputOf(t, w.client("scout").modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"elicitation":{}}`))
	close(over) // and the agent never comes back
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the server has an answer that nobody gave")
		}
	case <-time.After(5 * time.Second):
		t.Error("the question is open for good")
	}
}

// TestOpenQuestionOfSessionsCallThatIsOver: where the agent is asked in a session, what is asked so is the session's when the
// call is over. The answer goes up if the agent is shown something of the server by then.
func TestOpenQuestionOfSessionsCallThatIsOver(t *testing.T) {
	for _, grant := range []string{reader, "---\nclass: agent\ncapabilities: []\n---\n"} {
		over, ended := make(chan struct{}), make(chan error, 1)
		s := asksBesides(t, over, ended)
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w := start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
		if asked := in.next(); !strings.Contains(asked, "elicitation/create") {
			t.Fatal(asked)
		}
		close(over)
		if answer := in.next(); !strings.Contains(answer, `"content":[]`) || in.next() != "" {
			t.Fatal(answer)
		}
		w.write("scout", grant)
		w.adopt()
		c.request("tools/list", "{}") // by which it is known what is shown
		take(t, c.post(`{"jsonrpc":"2.0","id":"capgate-1","result":{"action":"accept"}}`))
		if err := <-ended; (err == nil) != (grant == reader) {
			t.Errorf("with %s the server is told: %v", grant, err)
		}
	}
}

// TestOpenQuestionAsItsCallEnds: whether an answer may go is not read off a call that ends just then, in either era. It is
// for the race detector.
func TestOpenQuestionAsItsCallEnds(t *testing.T) {
	const able = `{"elicitation":{}}`
	for _, modern := range []bool{false, true} {
		over, ended := make(chan struct{}), make(chan error)
		s := asksBesides(t, over, ended)
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w := start(t, map[string]string{"scout": reader}, up)
		c, args := w.client("scout"), `"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}`
		if !modern {
			c.initialize(able)
		}
		var armed atomic.Bool
		w.events.before = func(e *guardrail.Event) {
			if e.Decision == "allow" && armed.Swap(false) {
				w.adopt()
			}
		}
		for i := range 100 {
			if modern {
				state := inputOf(t, c.modern("tools/call", `{`+args+`}`, able)).RequestState
				armed.Store(true)
				go func() { over <- struct{}{} }()
				c.modern("tools/call", `{`+args+`,"inputResponses":{"ask-1":{"action":"accept"}},"requestState":"`+state+`"}`, able)
			} else {
				in := c.open(t.Context(), t, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":"n%d","method":"tools/call","params":{%s}}`, i, args))
				in.next()
				w.adopt()
				go func() { over <- struct{}{} }()
				take(t, c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":"capgate-%d","result":{"action":"accept"}}`, i+1)))
				in.next()
				_ = in.resp.Body.Close()
			}
			<-ended
		}
	}
}

// TestParkedRunsOutOfTime: a call that might be asked something, and whose time is over, ends at its server as any
// other whose time is: by that a program that hangs is known.
func TestParkedRunsOutOfTime(t *testing.T) {
	why := make(chan error, 1)
	s := &scripted{reply: func(ctx context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		if r.Method != "tools/call" {
			return upstream.Answer{Result: []byte("{}")}, nil
		}
		<-ctx.Done()
		why <- context.Cause(ctx)
		return upstream.Answer{}, context.Cause(ctx)
	}}
	up := files(t, s)
	up.MayAsk, up.Timeout = []string{"elicitation"}, 50*time.Millisecond
	w := start(t, map[string]string{"scout": reader}, up)
	a := w.client("scout").modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"elicitation":{}}`)
	if got := <-why; !errors.Is(got, context.DeadlineExceeded) || !strings.Contains(a.Raw, "did not answer in time") {
		t.Errorf("it ended with %v: %s", got, a.Raw)
	}
}
