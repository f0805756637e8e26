package proxy_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/agents"
	"capgate/guardrail"
	"capgate/proxy"
	"capgate/upstream"
)

// endless is a server whose calls take as long as they may.
func endless(t *testing.T) (*scripted, *proxy.Upstream) {
	s := &scripted{reply: func(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		<-ctx.Done()
		return upstream.Answer{}, ctx.Err()
	}}
	up := files(t, s)
	up.Timeout = 24 * time.Hour
	return s, up
}

// lasts is how long a call takes, of a session or of none.
func (c *client) lasts(session bool) (time.Duration, said) {
	params := `{"name":"files__read_text_file","arguments":{"path":"` + c.w.root + `/docs/a"}}`
	if session {
		c.initialize("{}")
	}
	start := time.Now()
	if session {
		a := c.request("tools/call", params)
		return time.Since(start), a
	}
	a := c.modern("tools/call", params, "{}")
	return time.Since(start), a
}

// TestExpiredCallsEnd: what is up for a token ends when the time of the token is over, as it does when it
// is revoked, and so do its sessions, with the servers that are theirs. Other tokens lose nothing.
func TestExpiredCallsEnd(t *testing.T) {
	const soon = time.Hour + 30*time.Second // between two looks at all sessions, which come each minute
	for name, session := range map[string]bool{"session": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, up := endless(t)
				if session {
					up.MayAsk = []string{"elicitation"}
				}
				w := start(t, map[string]string{"scout": reader, "boss": reader}, up)
				for _, life := range []time.Duration{2 * time.Hour, soon} {
					w.token(t, "scout", life)
					w.adopt()
				}
				other := make(chan time.Duration, 1)
				go func() { lasted, _ := w.client("boss").lasts(session); other <- lasted }()
				if lasted, a := w.client("scout").lasts(session); lasted > soon || lasted < soon-time.Minute {
					t.Errorf("it ends after %v: %s", lasted, a.Raw)
				}
				synctest.Wait()
				if got := s.closed.Load(); session && got != 1 {
					t.Errorf("%d servers have ended", got)
				}
				w.token(t, "scout", 20*time.Second) // and the next one ends too, before the next look
				w.adopt()
				if lasted, a := w.client("scout").lasts(session); lasted > 20*time.Second {
					t.Errorf("it ends after %v: %s", lasted, a.Raw)
				}
				select {
				case lasted := <-other:
					t.Errorf("that of another token ends after %v", lasted)
				default:
					w.creds = new(agents.Credentials)
					w.adopt()
					<-other
				}
			})
		})
	}
}

// token gives an agent another token, which is good for so long.
func (w *world) token(t *testing.T, agent string, life time.Duration) {
	token, next, err := w.creds.Issue("agents/"+agent, "", life, time.Now(), rand.Reader)
	must(t, err)
	w.tokens[agent], w.creds = token, next
}

// TestGoneAgentsEnd: what runs for an agent whose record is deleted ends: its calls and its servers. None is
// started for it from then on, whatever it asks for.
func TestGoneAgentsEnd(t *testing.T) {
	for _, test := range []struct {
		name            string
		shared, session bool
	}{{"own", false, false}, {"of a session", false, true}, {"shared", true, false}, {"shared by a session", true, true}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, up := endless(t)
				up.Shared = test.shared
				w := start(t, map[string]string{"scout": reader, "boss": reader}, up)
				ended := make(chan time.Duration)
				c := w.client("scout")
				go func() {
					lasted, a := c.lasts(test.session)
					if !strings.Contains(a.Raw, "there is no record of the agent any more") {
						t.Errorf("it is told %s", a.Raw)
					}
					ended <- lasted
				}()
				time.Sleep(time.Minute)
				synctest.Wait()
				must(t, os.Remove(filepath.Join(w.dir, "scout.md")))
				w.adopt()
				if lasted := <-ended; lasted > time.Minute {
					t.Errorf("its call goes on for %v", lasted)
				}
				c.session = ""
				for _, method := range []string{"tools/list", "server/discover"} {
					if a := c.modern(method, "{}", "{}"); strings.Contains(a.Raw, "read_text_file") {
						t.Error(a.Raw)
					}
				}
				synctest.Wait()
				if open := s.opened.Load() - s.closed.Load(); !test.shared && open != 0 {
					t.Errorf("%d servers run for nobody", open)
				}
			})
		})
	}
}

// TestEndsOfSessionsAreEvents: where it is the gateway that ends a session, the log says so, and why.
func TestEndsOfSessionsAreEvents(t *testing.T) {
	for why, ends := range map[string]func(*world){
		"nobody has used it for long": func(*world) { time.Sleep(time.Hour) },
		"another one takes its place": func(w *world) {
			time.Sleep(2 * time.Minute)
			w.client("scout").initialize("{}")
		},
		"its token was revoked or has expired": func(w *world) { w.creds = new(agents.Credentials); w.adopt() },
	} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := startWith(t, proxy.Options{Limits: proxy.Limits{Sessions: 1}}, map[string]string{"scout": reader}, files(t, &scripted{}))
				w.client("scout").initialize("{}")
				begun := w.events.of(guardrail.Notice)[0].Session
				ends(w)
				synctest.Wait()
				found := 0
				for _, e := range w.events.of(guardrail.Notice) {
					if e.Session == begun && strings.HasPrefix(e.Text, "a session ends: "+why) && e.Agent == "agents/scout" && e.Policy == "test" {
						found++
					}
				}
				if found != 1 {
					t.Errorf("%d events: %+v", found, w.events.of(guardrail.Notice))
				}
			})
		})
	}
}

// TestSessionEndsBeforeItsRequest: a request whose session ends at that moment is answered as one of a
// session that is over, by which its client knows to begin another.
func TestSessionEndsBeforeItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Int64
		var c *client
		now := func() time.Time {
			if armed.Load() > 0 && armed.Add(-1) == 0 {
				c.delete()
			}
			return time.Now()
		}
		w := startWith(t, proxy.Options{Clock: now}, map[string]string{"scout": reader}, files(t, &scripted{}))
		c = w.client("scout")
		c.initialize("{}")
		synctest.Wait() // so that nobody else looks at the clock
		armed.Store(2)  // the first is when its token is looked at
		if a := c.request("tools/list", "{}"); a.Status != http.StatusNotFound {
			t.Errorf("%d: %s", a.Status, a.Raw)
		}
	})
}

// TestTakenWhileListed: what an agent may not see any more is not listed for it, also where that was taken
// away while the list was made, and nothing is listed for a token that was revoked.
func TestTakenWhileListed(t *testing.T) {
	for _, revoked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &scripted{slow: 2 * time.Second}
			w := start(t, map[string]string{"scout": reader}, files(t, s))
			answer := make(chan said)
			go func() { answer <- w.client("scout").modern("tools/list", "{}", "{}") }()
			time.Sleep(time.Second)
			if revoked {
				w.creds = new(agents.Credentials)
			} else {
				w.write("scout", "---\nclass: agent\n---\n")
			}
			w.adopt()
			if a := <-answer; strings.Contains(a.Raw, "read_text_file") || revoked != (a.Error != nil) {
				t.Error(a.Raw)
			}
		})
	}
}

// TestNoSessionOfRevoked: no session begins for a token that was revoked at that moment.
func TestNoSessionOfRevoked(t *testing.T) {
	var w *world
	var armed atomic.Bool
	random := func(p []byte) (int, error) {
		if armed.Swap(false) {
			w.creds = new(agents.Credentials)
			w.adopt()
		}
		return rand.Read(p)
	}
	s := &scripted{}
	w = startWith(t, proxy.Options{Random: reading(random)}, map[string]string{"scout": reader}, files(t, s))
	armed.Store(true)
	resp := w.client("scout").post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if a := take(t, resp); a.Error == nil || resp.Header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%s", a.Raw)
	}
}

type reading func([]byte) (int, error)

func (r reading) Read(p []byte) (int, error) { return r(p) }

// TestExpiredMeanwhile: a request that waits for a server as its token expires is answered as one that comes
// with it then. Nothing is called for it, and it is shown no list.
func TestExpiredMeanwhile(t *testing.T) {
	for _, test := range []struct {
		method, params string
		again          bool // what the server has is known, and it is to be reached anew
	}{
		{"tools/list", "{}", false},
		{"tools/call", `{"name":"files__read_text_file","arguments":{"path":"$ROOT/docs/a"}}`, false},
		{"tools/call", `{"name":"files__read_text_file","arguments":{"path":"$ROOT/docs/a"}}`, true},
		{"resources/read", `{"uri":"file://$ROOT/docs/a"}`, false},
		{"skills/get", uriParams("skill://notes/SKILL.md"), false},
		{"resources/directory/read", uriParams("skill://notes"), false},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"skill://notes/{+file}"},"argument":{"name":"file","value":""}}`, false},
	} {
		for _, mayAsk := range [][]string{nil, {"elicitation"}} {
			t.Run(fmt.Sprint(test.method, test.again, mayAsk), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &scripted{}
					up := files(t, s)
					up.MayAsk = mayAsk
					w := start(t, map[string]string{"scout": reader}, up)
					w.token(t, "scout", time.Minute)
					w.bundles(ownSkills())
					if test.again {
						w.client("scout").modern("tools/list", "{}", "{}")
					} else {
						s.slow = 2 * time.Second
					}
					time.Sleep(time.Minute - time.Second)
					if test.again {
						must(t, s.conns[0].Close())
						s.unreachable.Store(true)
						time.AfterFunc(2*time.Second, func() { s.unreachable.Store(false) })
					}
					a := w.client("scout").modern(test.method, strings.ReplaceAll(test.params, "$ROOT", w.root), "{}")
					if calls := s.calls(); len(calls) > 0 || a.Error == nil && denialOf(t, a).Code == "" {
						t.Errorf("%d calls go up: %s", len(calls), a.Raw)
					}
				})
			})
		}
	}
}

// TestExpiredWhileAsleep: no timer runs while a machine sleeps, and the time of a token does.
func TestExpiredWhileAsleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(clock)
		_, up := endless(t)
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, up)
		w.token(t, "scout", 3*time.Hour)
		w.adopt()
		time.AfterFunc(time.Minute, func() { k.forward(4 * time.Hour) })
		if lasted, a := w.client("scout").lasts(true); lasted > 5*time.Minute {
			t.Errorf("it ends after %v: %s", lasted, a.Raw)
		}
	})
}

// TestSweptBeforeAPolicy: a gateway that has no policy yet lives.
func TestSweptBeforeAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := proxy.New(t.Context(), proxy.Options{Events: &recorder{}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
