package proxy_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/agents"
	"capgate/proxy"
	"capgate/upstream"
)

// TestRevokedMeanwhileIsSaid: whose token ends while a request is answered is told so as in any denial,
// wherever the request is by then.
func TestRevokedMeanwhileIsSaid(t *testing.T) {
	const call = `{"name":"files__read_text_file","arguments":{"path":"$ROOT/docs/a"}`
	for name, test := range map[string]struct {
		method, params string
		prefix         string // of another server
		lists, answers time.Duration
		done           bool // it may have been
	}{
		"a list":                   {method: "tools/list", params: `{}`, prefix: "other", lists: 5 * time.Second},
		"skills":                   {method: "skills/list", params: `{}`, prefix: "other", lists: 5 * time.Second},
		"a call before its list":   {method: "tools/call", params: call + "}", prefix: "other", lists: 5 * time.Second},
		"a call before any list":   {method: "tools/call", params: call + "}", lists: 5 * time.Second},
		"a prompt before any":      {method: "prompts/get", params: `{"name":"files__p"}`, lists: 5 * time.Second},
		"a call":                   {method: "tools/call", params: call + "}", prefix: "other", answers: time.Hour, done: true},
		"a call that has a stream": {method: "tools/call", params: call + `,"_meta":{"progressToken":1}}`, prefix: "other", answers: time.Hour, done: true},
		"a prompt":                 {method: "prompts/get", params: `{"name":"files__p"}`, prefix: "other", answers: time.Hour, done: true},
	} {
		for _, session := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{slow: test.lists}
				up := files(t, s)
				s.lists["prompts/list"] = `"prompts":[{"name":"p"}]`
				s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
					if r.Token != "" {
						sink.Notify("notifications/progress", []byte(`{"progressToken":"`+r.Token+`","progress":1}`))
					}
					select {
					case <-ctx.Done():
						return upstream.Answer{}, ctx.Err()
					case <-time.After(test.answers):
					}
					return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
				}
				w := start(t, map[string]string{"scout": everything}, up, &proxy.Upstream{Name: "other", Prefix: test.prefix, Open: new(scripted).open})
				if !session && strings.Contains(test.params, "_meta") { // which is another there
					return
				}
				c, answer := w.client("scout"), make(chan said)
				if session {
					c.initialize("{}")
				}
				go func() {
					params := strings.ReplaceAll(test.params, "$ROOT", w.root)
					if session {
						answer <- c.request(test.method, params)
						return
					}
					answer <- c.modern(test.method, params, "{}")
				}()
				time.Sleep(time.Second)
				w.creds = new(agents.Credentials)
				w.adopt()
				a := <-answer
				if session && a.Status == 404 { // the session is over
					return
				}
				if d := denialOf(t, a); d.Code != "unauthenticated" || !strings.Contains(a.Raw, "the token was revoked or has expired. To proceed, ask the operator") || test.done != strings.Contains(a.Raw, "may or may not have been done") {
					t.Errorf("%s, of a session %t: %d %s", name, session, a.Status, a.Raw)
				}
			})
		}
	}
}
