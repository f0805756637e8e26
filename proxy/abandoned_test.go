package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// abandoned is an agent of the modern era at a program, which does not say what its questions
// are about.
type abandoned struct {
	*bubble
	t     *testing.T
	next  int
	ended chan error // what those that had to wait were told in place of an answer
}

func leave(t *testing.T, test func(*abandoned)) {
	t.Helper()
	s := &scripted{}
	var ended chan error // of the bubble
	s.reply = func(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		got, err := s.peers[0].Events.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
		if err != nil {
			ended <- err
			return upstream.Answer{Result: []byte(`{"content":[],"refused":` + quoted(err.Error()) + `}`)}, nil
		}
		return upstream.Answer{Result: []byte(`{"content":[],"heard":` + string(got) + `}`)}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		ended = make(chan error, 8)
		test(&abandoned{bubble: b, t: t, ended: ended})
	})
}

// call reads a file, and brings along what was asked of an earlier call of it.
func (a *abandoned) call(file, state string) string {
	a.t.Helper()
	a.next++
	more := ""
	if state != "" {
		more = `"inputResponses":{"ask-1":{"about":"` + file + `"}},"requestState":"` + state + `",`
	}
	return a.do("scout", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"%s/docs/%s"},%s`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, a.next, a.root, file, more),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "files__read_text_file").Body.String()
}

// state is what an agent is given to come back with.
func (a *abandoned) state(answer string) string {
	a.t.Helper()
	_, text, ok := strings.Cut(answer, `"requestState":"`)
	if !ok {
		a.t.Fatal(answer)
	}
	text, _, _ = strings.Cut(text, `"`)
	return text
}

// TestAbandonedGivesWay: who does not come back to a question is not waited for longer than a
// minute once the server asks about another call. Neither call ever has the answer of the other.
func TestAbandonedGivesWay(t *testing.T) {
	leave(t, func(a *abandoned) {
		first := a.state(a.call("a", ""))
		time.Sleep(50 * time.Second)
		if got := a.call("b", ""); !strings.Contains(got, "ambiguous") || !strings.Contains(got, "another call waits") {
			t.Error(got)
		}
		<-a.ended
		time.Sleep(20 * time.Second)
		if got := a.call("b", ""); !strings.Contains(got, "ambiguous") || !strings.Contains(got, "call again") {
			t.Error(got) // the question may still be one of the first call
		}
		<-a.ended
		select {
		case <-a.ended:
		case <-time.After(time.Second):
			t.Error("the first call goes on")
		}
		synctest.Wait() // until capgate has heard of it
		if got := a.call("b", a.state(a.call("b", ""))); !strings.Contains(got, `"heard":{"about":"b"}`) {
			t.Error(got)
		}
		if got := a.call("a", first); strings.Contains(got, "heard") || strings.Contains(got, "refused") {
			t.Error(got)
		}
	})
}

// TestAwaitedIsNotAbandoned: who answers within a minute, or where nobody else is in the way,
// is waited for.
func TestAwaitedIsNotAbandoned(t *testing.T) {
	leave(t, func(a *abandoned) {
		first := a.state(a.call("a", ""))
		time.Sleep(30 * time.Second)
		a.call("b", "")
		if got := a.call("a", first); !strings.Contains(got, `"heard":{"about":"a"}`) {
			t.Error(got)
		}
		second := a.state(a.call("b", ""))
		time.Sleep(9 * time.Minute)
		if got := a.call("b", second); !strings.Contains(got, `"heard":{"about":"b"}`) {
			t.Error(got)
		}
	})
}

// TestDoneIsNotAbandoned: a call that the server has ended by itself is in nobody's way. Its agent
// still finds what came of it.
func TestDoneIsNotAbandoned(t *testing.T) {
	s := &scripted{}
	s.reply = func(ctx context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		limit, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		got, err := s.peers[0].Events.Ask(limit, "elicitation/create", []byte(`{"message":"?"}`))
		time.Sleep(time.Second)
		return upstream.Answer{Result: fmt.Appendf(nil, `{"content":[],"was":%q}`, fmt.Sprint(string(r.Params), string(got), err))}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	inBubble(t, map[string]string{"scout": reader}, []*proxy.Upstream{up}, func(t *testing.T, b *bubble) {
		a := &abandoned{bubble: b, t: t}
		first := a.state(a.call("a", ""))
		time.Sleep(2 * time.Minute)
		other := &abandoned{bubble: b, t: t, next: 100}
		ended := make(chan string)
		go func() { ended <- other.call("b", "") }()
		if got := a.call("c", "") + <-ended; !strings.Contains(got, "ambiguous") {
			t.Error(got)
		}
		if got := a.call("a", first); !strings.Contains(got, "/docs/a") || !strings.Contains(got, "deadline") {
			t.Error(got)
		}
	})
}

// TestUnsentAfterItsQuestion: a call whose agent has come back with an answer, and that its server does
// not know any more, is decided anew by a policy that came meanwhile. Where it is allowed still, it begins
// anew.
func TestUnsentAfterItsQuestion(t *testing.T) {
	for _, grant := range []string{reader, strings.ReplaceAll(reader, "docs", "notes")} {
		var w *world
		s := &scripted{}
		s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			got, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
			if err != nil {
				return upstream.Answer{}, err
			}
			if len(s.calls()) > 1 {
				return upstream.Answer{Result: []byte(`{"content":[],"heard":` + string(got) + `}`)}, nil
			}
			w.write("scout", grant)
			w.adopt()
			return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "no longer knows the session", Unsent: true, Lost: true}
		}
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w = start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		call := func(state, answer string) said {
			params := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
			if state != "" {
				params += `,"requestState":"` + state + `","inputResponses":{"ask-1":{"content":"` + answer + `"}}`
			}
			return c.modern("tools/call", params+"}", `{"elicitation":{}}`)
		}
		state := func(a said) string {
			var r struct{ RequestState string }
			if err := json.Unmarshal(a.Result, &r); err != nil || r.RequestState == "" {
				t.Fatal(a.Raw)
			}
			return r.RequestState
		}
		a := call(state(call("", "")), "first")
		if grant != reader {
			if d := denialOf(t, a); d.Code != "scope_violation" || len(s.calls()) != 1 {
				t.Errorf("after %d calls: %s", len(s.calls()), a.Raw)
			}
			continue
		}
		if a = call(state(a), "second"); !strings.Contains(a.Raw, `"content":"second"`) || len(s.calls()) != 2 {
			t.Errorf("after %d calls: %s", len(s.calls()), a.Raw)
		}
	}
}

// TestUnsentWhileAsked: a call that its server does not know any more, before its agent has come back, does
// not go up once more when nothing allows it by now, whatever its agent was told in between. It is for the
// race detector.
func TestUnsentWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *world
		s := &scripted{lists: map[string]string{"prompts/list": `"prompts":[{"name":"greet"}]`}}
		s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if len(s.calls()) > 1 {
				return upstream.Answer{Result: []byte(`{"messages":[]}`)}, nil
			}
			w.write("scout", reader)
			w.adopt()
			limit, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			_, err := sink.Ask(limit, "elicitation/create", []byte(`{"message":"?"}`))
			return upstream.Answer{}, &upstream.Failed{Upstream: "up", Text: "no longer knows the session", Unsent: true, Lost: true, Err: err}
		}
		w = start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, MayAsk: []string{"elicitation"}})
		if a := w.client("scout").modern("prompts/get", `{"name":"up__greet"}`, `{"elicitation":{}}`); !strings.Contains(a.Raw, "input_required") {
			t.Error(a.Raw)
		}
		time.Sleep(2 * time.Minute)
		if n := len(s.calls()); n != 1 {
			t.Errorf("it goes up %d times", n)
		}
	})
}
