package proxy_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// TestGrantTakenWhileAsked: what a server asked something about goes up with the
// answer only if the policy that is in force by then allows it.
func TestGrantTakenWhileAsked(t *testing.T) {
	for name, record := range map[string]string{
		"taken": strings.ReplaceAll(reader, "docs", "notes"),
		"kept":  strings.ReplaceAll(reader, "docs]", "docs, more]"),
	} {
		t.Run(name, func(t *testing.T) {
			s := questioner(true, "elicitation/create", `{"message":"?"}`)
			up := files(t, s)
			up.MayAsk = []string{"elicitation"}
			w := start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
			id := in.question()
			w.write("scout", record)
			w.adopt()
			if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept"}}`); resp.StatusCode != http.StatusAccepted {
				t.Fatal(resp.StatusCode)
			}
			var a said
			if a.Raw = in.next(); json.Unmarshal([]byte(a.Raw), &a) != nil {
				t.Fatal(a.Raw)
			}
			calls, decisions := s.calls(), w.events.of("decision")
			if name == "kept" {
				if !strings.Contains(a.Raw, `"heard":{"action":"accept"}`) || len(calls) != 2 || len(decisions) != 2 {
					t.Errorf("%d calls, decided %d times: %s", len(calls), len(decisions), a.Raw)
				}
				return
			}
			if d := denialOf(t, a); d.Code != "scope_violation" || len(calls) != 1 {
				t.Errorf("%d calls: %s", len(calls), a.Raw)
			}
		})
	}
}

// TestStateIsOfOneServer: what one server gave an agent to bring back does not go to
// another that has taken over its name.
func TestStateIsOfOneServer(t *testing.T) {
	for _, modern := range []bool{false, true} {
		old, other := questioner(modern, "elicitation/create", `{"message":"?"}`), questioner(modern, "elicitation/create", `{"message":"?"}`)
		of := func(name string, s *scripted) *proxy.Upstream {
			up := files(t, s)
			up.Name, up.Prefix, up.MayAsk = name, "", []string{"elicitation"}
			return up
		}
		w := start(t, map[string]string{"scout": reader}, of("old", old))
		args := `"name":"read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		c := w.client("scout")
		in := inputOf(t, c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`))
		w.ups = []*proxy.Upstream{of("other", other)}
		w.adopt()
		a := c.modern("tools/call", `{`+args+`,"inputResponses":{"k":{"action":"accept"},"ask-1":{"action":"accept"}},"requestState":"`+in.RequestState+`"}`, `{"elicitation":{}}`)
		if n := len(other.calls()); n != 0 || a.Error == nil || strings.Contains(a.Raw, "heard") {
			t.Errorf("server modern %v: %d calls of the other: %s", modern, n, a.Raw)
		}
	}
}

// TestStateIsOfTheServerAsItWas: nor does it go to what is written in that server's place
// under the same name, at another address or with less that it may ask.
func TestStateIsOfTheServerAsItWas(t *testing.T) {
	for _, now := range []struct {
		identity string
		mayAsk   []string
	}{
		{"as it was", []string{"elicitation"}},
		{"another address", []string{"elicitation"}},
		{"may not ask", nil},
	} {
		s := questioner(true, "elicitation/create", `{"message":"?"}`)
		up, next := files(t, s), files(t, s)
		up.Identity, up.MayAsk = "as it was", []string{"elicitation"}
		next.Identity, next.MayAsk = now.identity, now.mayAsk
		w := start(t, map[string]string{"scout": reader}, up)
		args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		c := w.client("scout")
		in := inputOf(t, c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`))
		w.ups = []*proxy.Upstream{next}
		w.adopt()
		a := c.modern("tools/call", `{`+args+`,"inputResponses":{"k":{"action":"accept"}},"requestState":"`+in.RequestState+`"}`, `{"elicitation":{}}`)
		if same := now.identity == up.Identity; strings.Contains(a.Raw, "heard") != same || (len(s.calls()) == 2) != same {
			t.Errorf("%s: %d calls: %s", now.identity, len(s.calls()), a.Raw)
		}
	}
}

// question is the id of the request that comes next.
func (e *events) question() any {
	e.t.Helper()
	var asked struct{ ID any }
	if err := json.Unmarshal([]byte(e.next()), &asked); err != nil || asked.ID == nil {
		e.t.Fatal(asked, err)
	}
	return asked.ID
}

// askLimit is how long a call may take where the time of questions is looked at.
const askLimit = 500 * time.Millisecond

// asking is a client of a gateway in front of a server that may ask, and what to call.
func asking(t *testing.T, s *scripted) (c *client, args string) {
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Call: askLimit}}, map[string]string{"scout": reader}, up)
	return w.client("scout"), `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
}

func hang(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
	<-ctx.Done()
	return upstream.Answer{}, ctx.Err()
}

// TestTimeWhileAsked: the time of a call stands still while the server's question is
// open, and only then. A server that may ask is waited for no longer than any other.
func TestTimeWhileAsked(t *testing.T) {
	const able, answer = `{"elicitation":{}}`, `{"action":"accept"}`
	eras := map[bool]string{false: "legacy", true: "modern"}
	for _, pair := range [][2]bool{{false, false}, {false, true}, {true, false}, {true, true}} {
		t.Run(eras[pair[0]]+" to "+eras[pair[1]], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := questioner(pair[1], "elicitation/create", `{"message":"?"}`)
				c, args := asking(t, s)
				c.thinks = 2 * askLimit
				call := func() (said, time.Duration) {
					start := time.Now()
					return c.answered(t, pair[0], able, args, answer), time.Since(start)
				}
				if a, _ := call(); !strings.Contains(a.Raw, `"heard"`) {
					t.Errorf("a slow person: %s", a.Raw)
				}
				asks := s.reply
				s.answers(func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
					if a, err := asks(ctx, r, sink); err != nil || a.Type == "input_required" {
						return a, err
					}
					return hang(ctx, r, sink)
				})
				if a, took := call(); denialOf(t, a).Code != "upstream_failed" || !strings.Contains(a.Raw, "in time") || took < 3*askLimit || took > 6*askLimit {
					t.Errorf("after the answer: %s: %s", took, a.Raw)
				}
				s.answers(hang)
				if a, took := call(); denialOf(t, a).Code != "upstream_failed" || took < askLimit || took > 4*askLimit {
					t.Errorf("nothing was asked: %s: %s", took, a.Raw)
				}
			})
		})
	}
}

// TestTimeOfAllWhileAsked: a program does not say for which call it asks, and may look at no
// other until it has its answer. So the time of all of them stands still.
func TestTimeOfAllWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, heard := make(chan struct{}, 3), make(chan struct{})
		s := &scripted{reply: func(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
			up <- struct{}{}
			select {
			case <-heard:
				return upstream.Answer{Result: []byte(`{"content":[],"heard":true}`)}, nil
			case <-ctx.Done():
				return upstream.Answer{}, ctx.Err()
			}
		}}
		c, args := asking(t, s)
		c.initialize(`{"elicitation":{}}`)
		in := c.open(t.Context(), t, http.MethodGet, "")
		answers := make(chan said, 3)
		call := func(id int) {
			one := *c
			one.next = id
			go func() { answers <- one.request("tools/call", `{`+args+`}`) }()
			<-up
		}
		call(10)
		call(20)
		go func() {
			if _, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`)); err != nil {
				t.Error(err)
			}
			close(heard)
		}()
		id := in.question()
		call(30)
		<-time.After(2 * askLimit)
		if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept"}}`); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode)
		}
		for range 3 {
			if a := <-answers; !strings.Contains(a.Raw, `"heard":true`) {
				t.Error(a.Raw)
			}
		}
	})
}

// TestTimeOfParkedWhileAsked: nor does that of the calls of a client without sessions, where
// a question waits for it to come back.
func TestTimeOfParkedWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const able = `{"elicitation":{}}`
		var calls atomic.Int32
		var questions sync.WaitGroup
		questions.Add(2)
		s := &scripted{reply: func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if calls.Add(1) <= 2 {
				if _, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`)); err != nil {
					return upstream.Answer{}, err
				}
				sink.Notify("notifications/progress", []byte(`{"progressToken":"`+r.Token+`","progress":1}`))
				questions.Done()
			}
			heard := make(chan struct{})
			go func() { questions.Wait(); close(heard) }()
			select {
			case <-heard:
				return upstream.Answer{Result: []byte(`{"content":[],"heard":true}`)}, nil
			case <-ctx.Done():
				return upstream.Answer{}, ctx.Err()
			}
		}}
		c, args := asking(t, s)
		one := inputOf(t, c.modern("tools/call", `{`+args+`}`, able+`,"progressToken":"first"`))
		two := inputOf(t, c.modern("tools/call", `{`+args+`}`, able+`,"progressToken":"first"`))
		answers := make(chan said, 3)
		call := func(id int, more string) {
			own := *c
			own.next = id
			go func() { answers <- own.modern("tools/call", `{`+args+more+`}`, able+`,"progressToken":"second"`) }()
		}
		back := func(in input) string {
			return `,"inputResponses":{"ask-1":{"action":"accept"}},"requestState":"` + in.RequestState + `"`
		}
		call(10, "")
		call(20, back(one))
		<-time.After(2 * askLimit)
		call(30, back(two))
		progress := 0
		for range 3 {
			a := <-answers
			if !strings.Contains(a.Raw, `"heard":true`) {
				t.Error(a.Raw)
			}
			progress += len(a.Before)
			if len(a.Before) > 0 && !strings.Contains(a.Before[0], `"progressToken":"second"`) {
				t.Error(a.Before)
			}
		}
		if progress != 2 {
			t.Errorf("progress was told of %d times", progress)
		}
	})
}

// TestTimeOfOthersWhileAsked: of a server that agents share the time of the one call that is
// asked about stands still.
func TestTimeOfOthersWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := questioner(false, "elicitation/create", `{"message":"?"}`)
		asks := s.reply
		up := files(t, s)
		up.MayAsk, up.Shared = []string{"elicitation"}, true
		w := startWith(t, proxy.Options{Limits: proxy.Limits{Call: askLimit}}, map[string]string{"scout": reader, "boss": reader}, up)
		const able = `{"elicitation":{}}`
		args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		c := w.client("scout")
		c.initialize(able)
		in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{`+args+`}}`)
		id := in.question()
		s.answers(hang)
		start := time.Now()
		if a, took := w.client("boss").answered(t, false, able, args, ""), time.Since(start); denialOf(t, a).Code != "upstream_failed" || took > 4*askLimit {
			t.Errorf("another agent's call: %s: %s", took, a.Raw)
		}
		s.answers(asks)
		if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept"}}`); resp.StatusCode != http.StatusAccepted {
			t.Fatal(resp.StatusCode)
		}
		if got := in.next(); !strings.Contains(got, `"heard"`) {
			t.Error(got)
		}
	})
}

// TestReachedWithinTheLimit: to reach a server that may ask takes no longer than a call of it.
func TestReachedWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		c, args := asking(t, s)
		if a := c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`); !strings.Contains(a.Raw, "done") {
			t.Fatal(a.Raw)
		}
		s.unreachable.Store(true)
		s.mu.Lock()
		conns := s.conns
		s.mu.Unlock()
		for _, conn := range conns {
			if err := conn.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 { // one that ended soon is not tried again at once
			start := time.Now()
			a := c.modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`)
			took := time.Since(start)
			if denialOf(t, a).Code != "upstream_failed" || took > 4*askLimit {
				t.Fatalf("%s: %s", took, a.Raw)
			}
			if took >= askLimit {
				return
			}
			<-time.After(askLimit / 10)
		}
		t.Error("it was not tried again")
	})
}

// TestAskedOfSessionsFromBefore: sessions that began before the server might ask share its
// connection, so that it does not say which of them it asks.
func TestAskedOfSessionsFromBefore(t *testing.T) {
	s := questioner(false, "elicitation/create", `{"message":"?"}`)
	up, next := files(t, s), files(t, s)
	next.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	old := w.client("scout")
	old.initialize(`{"elicitation":{}}`)
	w.ups = []*proxy.Upstream{next}
	w.adopt()
	in := old.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{`+args+`}}`)
	if first, err := bufio.NewReader(in.resp.Body).ReadString('}'); err != nil || !strings.Contains(first, "began before") || len(w.events.of("refusal")) != 1 {
		t.Errorf("%s, %v", first, err)
	}
	if a := w.client("scout").answered(t, false, `{"elicitation":{}}`, args, `{"action":"accept"}`); !strings.Contains(a.Raw, `"heard":{"action":"accept"}`) {
		t.Errorf("a new session: %s", a.Raw)
	}
}

// TestParkedEndsWithItsGrant: a call that waits for an agent ends when the agent comes back
// and may not make it any more.
func TestParkedEndsWithItsGrant(t *testing.T) {
	for code, record := range map[string]string{
		"scope_violation": strings.ReplaceAll(reader, "docs", "notes"), "requires_approval": strings.Replace(reader, "class: agent", "class: agent\napprove: [fs.read]", 1),
	} {
		t.Run(code, func(t *testing.T) { parkedEnds(t, code, record) })
	}
}

func parkedEnds(t *testing.T, code, record string) {
	t.Helper()
	ended := make(chan error, 1)
	s := &scripted{reply: func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		_, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
		ended <- err
		return upstream.Answer{}, err
	}}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c, able := w.client("scout"), `{"elicitation":{}}`
	args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	in := inputOf(t, c.modern("tools/call", `{`+args+`}`, able))
	w.write("scout", record)
	w.adopt()
	a := c.modern("tools/call", `{`+args+`,"inputResponses":{"ask-1":{"action":"accept"}},"requestState":"`+in.RequestState+`"}`, able)
	if d := denialOf(t, a); d.Code != code {
		t.Error(a.Raw)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the server got the answer")
		}
	case <-time.After(10 * time.Second):
		t.Error("the call goes on")
	}
}

// TestOnlyAsked: a server that may ask is started for each session, and for nobody else,
// also where an edit has everybody look again.
func TestOnlyAsked(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	in := c.listen()
	c.request("tools/list", "{}")
	w.write("scout", readerAndWriter)
	w.adopt()
	if got := <-in; !strings.Contains(got, "tools/list_changed") {
		t.Error(got)
	}
	until(t, "at rest", func() bool { return !w.server.Looks("scout") })
	if n := s.opened.Load(); n != 1 {
		t.Errorf("it was started %d times", n)
	}
}
