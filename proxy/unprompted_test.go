package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capgate/upstream"
)

// TestDenialsAskNobody: a client that could ask its user something is asked nothing: what
// is denied, or waits for approval, is answered (R-EGG-03, R-RYE-07).
func TestDenialsAskNobody(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": strings.Replace(reader, "class: agent", "class: agent\napprove: [fs.read]", 1)}, files(t, s))
	const able = `{"elicitation":{},"sampling":{},"roots":{}}`
	c := w.client("scout")
	c.initialize(able)
	for params, code := range map[string]string{
		`{"name":"files__read_text_file","arguments":{"path":"$ROOT/docs/a"}}`:   "requires_approval",
		`{"name":"files__read_text_file","arguments":{"path":"/etc/passwd"}}`:    "scope_violation",
		`{"name":"files__write_file","arguments":{"path":"$ROOT/docs/a"}}`:       "capability_absent",
		`{"name":"files__write_file","arguments":{"path":"$ROOT/docs/a","x":1}}`: "capability_absent",
	} {
		params = strings.ReplaceAll(params, "$ROOT", w.root)
		for era, a := range map[string]said{"legacy": c.request("tools/call", params), "modern": w.client("scout").modern("tools/call", params, able)} {
			if denialOf(t, a).Code != code || len(a.Before) > 0 || strings.Contains(a.Raw, "inputRequests") {
				t.Errorf("%s %s: %s", era, params, a.Raw)
			}
		}
	}
	if n := len(s.calls()); n > 0 {
		t.Errorf("%d calls reached the server", n)
	}
}

// waiting is a server whose calls are up until they are released.
func waiting() (s *scripted, up, release chan struct{}) {
	up, release = make(chan struct{}, 2), make(chan struct{})
	return &scripted{reply: func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		up <- struct{}{}
		<-release
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}}, up, release
}

// TestAmbiguousIsAnEvent: what a program asks while several calls of clients without sessions
// are up is nobody's, and is recorded.
func TestAmbiguousIsAnEvent(t *testing.T) {
	s, up, release := waiting()
	c, args := asking(t, s)
	answers := make(chan said, 2)
	for range 2 {
		go func() { answers <- c.w.client("scout").modern("tools/call", `{`+args+`}`, `{"elicitation":{}}`) }()
		<-up
	}
	_, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`))
	if err == nil || !strings.Contains(err.Error(), "ambiguous") {
		t.Error(err)
	}
	if e := c.w.events.of("refusal"); len(e) != 1 || !strings.Contains(e[0].Text, "ambiguous") {
		t.Errorf("%+v", e)
	}
	close(release)
	for range 2 {
		if a := <-answers; strings.Contains(a.Raw, "inputRequests") {
			t.Error(a.Raw)
		}
	}
}

// TestAskedElsewhere: a client whose only call takes no event stream is asked over the stream
// that it listens to.
func TestAskedElsewhere(t *testing.T) {
	s, up, release := waiting()
	c, args := asking(t, s)
	c.initialize(`{"elicitation":{}}`)
	in := c.open(t.Context(), t, http.MethodGet, "")
	call := make(chan int, 1)
	go func() {
		call <- c.post(`{"jsonrpc":"2.0","id":10,"method":"tools/call","params":{`+args+`}}`, "Accept", "application/json").StatusCode
	}()
	<-up
	done := make(chan error, 1)
	go func() {
		_, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`))
		done <- err
	}()
	var m struct {
		ID     any
		Method string
	}
	for m.Method != "elicitation/create" {
		line := in.next()
		if line == "" || json.Unmarshal([]byte(line), &m) != nil {
			t.Fatalf("nobody is asked: %s", line)
		}
	}
	c.post(`{"jsonrpc":"2.0","id":` + quoted(m.ID) + `,"result":{"action":"accept"}}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	close(release)
	if status := <-call; status != http.StatusOK {
		t.Error(status)
	}
}

// TestAskedOverACall: a client that listens to no stream of its own is asked over that of one
// of its calls, whichever the question belongs to, and of one where it takes event streams.
func TestAskedOverACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, up, release := waiting()
		c, args := asking(t, s)
		c.initialize(`{"elicitation":{}}`)
		asked := make(chan any)
		var calls sync.WaitGroup
		for id, accept := range []string{"text/event-stream, application/json", "application/json", "application/json", "application/json", "application/json"} {
			calls.Go(func() {
				in := c.open(t.Context(), t, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s}}`, 10+id, args), "Accept", accept)
				for line := in.next(); line != ""; line = in.next() {
					if strings.Contains(line, "elicitation/create") {
						var m struct{ ID any }
						_ = json.Unmarshal([]byte(line), &m) // nil then, which nobody answers to
						asked <- m.ID
					}
				}
			})
			<-up
		}
		done := make(chan error)
		go func() {
			_, err := s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`))
			done <- err
		}()
		select {
		case id := <-asked:
			if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept"}}`); resp.StatusCode != http.StatusAccepted {
				t.Error(resp.StatusCode)
			}
		case <-time.After(5 * time.Second):
			t.Fatal("nobody is asked")
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(release)
		calls.Wait()
	})
}
