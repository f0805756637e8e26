package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// notesReader is an agent that may read the notes of one name.
const notesReader = "---\nclass: agent\ncapabilities:\n  - resource.read: { uris: [\"notes:///%s\"] }\n---\n"

// TestGrantTakenWhileSubscribing: a subscription that waits for that of another agent, or for a token, does not go
// up when the grant was taken meanwhile.
func TestGrantTakenWhileSubscribing(t *testing.T) {
	for _, modern := range []bool{false, true} {
		for _, of := range []string{"another", "a token"} {
			t.Run(fmt.Sprint(of, modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var w *world
					var asked atomic.Int64
					take := func() {
						w.write("scout", fmt.Sprintf(notesReader, "b"))
						w.adopt()
					}
					s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"a"}]`}}
					if modern {
						s.info = upstream.Info{Modern: true, Version: "2026-07-28"}
					}
					s.reply = func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
						if of == "a token" {
							take()
							if r.May != nil && r.May() != nil {
								return upstream.Answer{}, r.May()
							}
						}
						if asked.Add(1) == 1 && of == "another" {
							time.Sleep(2 * time.Second)
						}
						return upstream.Answer{Error: []byte(`{"code":-32603,"message":"busy"}`)}, nil
					}
					w = start(t, map[string]string{"scout": fmt.Sprintf(notesReader, "*"), "boss": fmt.Sprintf(notesReader, "*")},
						&proxy.Upstream{Name: "notes", Prefix: "notes", Open: s.open, Shared: true})
					first, c := w.client("boss"), w.client("scout")
					first.initialize("{}")
					c.initialize("{}")
					first.request("resources/list", "{}")
					c.request("resources/list", "{}")
					if of == "another" {
						done := make(chan said, 1)
						go func() { done <- first.request("resources/subscribe", uriParams("notes:///a")) }()
						defer func() { <-done }()
						time.Sleep(time.Second)
						time.AfterFunc(500*time.Millisecond, take)
					}
					a := c.request("resources/subscribe", uriParams("notes:///a"))
					if n := asked.Load(); n != map[string]int64{"another": 1}[of] || denialOf(t, a).Code == "" {
						t.Errorf("it is asked %d times, and %s", n, a.Raw)
					}
				})
			})
		}
	}
}

// TestGrantTakenWhileSubscribed: a server that is started anew is not asked to tell of what nobody may read any more,
// and is asked once somebody may again.
func TestGrantTakenWhileSubscribed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"a"},{"uri":"notes:///b","name":"b"}]`}}
		w := start(t, map[string]string{"scout": fmt.Sprintf(notesReader, "*")}, &proxy.Upstream{Name: "notes", Prefix: "notes", Open: s.open})
		c := w.client("scout")
		c.initialize("{}")
		c.request("resources/list", "{}")
		for _, uri := range []string{"notes:///a", "notes:///b"} {
			if a := c.request("resources/subscribe", uriParams(uri)); a.Error != nil {
				t.Fatal(a.Raw)
			}
		}
		w.write("scout", fmt.Sprintf(notesReader, "b"))
		w.adopt()
		time.Sleep(5 * time.Second)
		must(t, s.conns[0].Close())
		time.Sleep(5 * time.Minute)
		count := func() (a, b int) {
			for _, r := range s.calls() {
				if strings.Contains(string(r.Params), "notes:///a") {
					a++
				} else {
					b++
				}
			}
			return a, b
		}
		if a, b := count(); a != 1 || b != 2 {
			t.Errorf("it is asked %d and %d times", a, b)
		}
		w.write("scout", fmt.Sprintf(notesReader, "*"))
		w.adopt()
		time.Sleep(time.Minute)
		if a, b := count(); a != 2 || b != 2 {
			t.Errorf("then it is asked %d and %d times", a, b)
		}
	})
}

// TestGrantTakenBeforeToldOfLogs: a server that takes its time to come up is not told which logs are wanted by
// somebody who may not call it any more.
func TestGrantTakenBeforeToldOfLogs(t *testing.T) {
	for name, mayAsk := range map[string][]string{"": nil, "parked": {"elicitation"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				up := files(t, s)
				up.MayAsk = mayAsk
				w := start(t, map[string]string{"scout": reader}, up)
				c := w.client("scout")
				c.modern("tools/list", "{}", "{}")
				time.Sleep(5 * time.Second)
				must(t, s.conns[0].Close())
				s.unreachable.Store(true)
				time.AfterFunc(time.Second, func() {
					w.write("scout", strings.ReplaceAll(reader, "docs", "notes"))
					w.adopt()
					s.unreachable.Store(false)
				})
				a := c.modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, `{"elicitation":{}},"io.modelcontextprotocol/logLevel":"debug"`)
				if n := s.asked("logging/setLevel"); n > 0 || len(s.calls()) > 0 || denialOf(t, a).Code != "scope_violation" {
					t.Errorf("it is told %d times, and %s", n, a.Raw)
				}
			})
		})
	}
}
