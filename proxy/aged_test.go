package proxy_test

import (
	"context"
	"fmt"
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

// asked counts how often something was asked for.
func (s *scripted) asked(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.got {
		if r.Method == method {
			n++
		}
	}
	return n
}

func (s *scripted) relist(method, list string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[method] = list
}

// takes is how long it takes to list something, from now on.
func (s *scripted) takes(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = d
}

// first is what the first connection was opened with.
func (s *scripted) first() proxy.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[0]
}

// newest is what the last one was opened with.
func (s *scripted) newest() proxy.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[len(s.peers)-1]
}

// hangsUp ends the first connection.
func (s *scripted) hangsUp() error {
	s.mu.Lock()
	conn := s.conns[0]
	s.mu.Unlock()
	return conn.Close()
}

// answers is how it answers what is no list, from now on.
func (s *scripted) answers(reply func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reply = reply
}

// TestListsAge: a server that tells of no changes is asked for its lists again after a while,
// so that a definition which has changed is noticed, by calls as well, and sessions are told.
func TestListsAge(t *testing.T) {
	k := new(clock)
	s := &scripted{}
	w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	in := c.open(t.Context(), t, http.MethodGet, "")
	call := func() said {
		return c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
	}
	for minute := 1; minute <= 2; minute++ {
		for range 3 {
			c.request("tools/list", "{}")
			if a := call(); !strings.Contains(a.Raw, "done") {
				t.Fatal(a.Raw)
			}
		}
		if n := s.asked("tools/list"); n != minute {
			t.Fatalf("asked %d times", n)
		}
		k.forward(61 * time.Second)
	}
	s.relist("tools/list", `"tools":[`+strings.Replace(tool("read_text_file", "path"), "A tool.", "Another tool.", 1)+`]`)
	if a := call(); denialOf(t, a).Code != "tool_quarantined" {
		t.Errorf("changed behind our back: %s", a.Raw)
	}
	if got := in.next(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("told %s", got)
	}
}

// TestOldListIsKept: what was known of a server whose lists cannot be had any more, or take
// long, can be called on, and nobody waits long for it.
func TestOldListIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(clock)
		s := &scripted{}
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		for _, broken := range []func(){
			func() { s.relist("tools/list", `"tools":"none"`) },
			func() { s.takes(3 * time.Second) },
		} {
			broken()
			k.forward(2 * time.Minute)
			start := time.Now()
			for range 3 {
				if a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`); !strings.Contains(a.Raw, "done") {
					t.Error(a.Raw)
				}
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("waited %s", took)
			}
		}
	})
}

// TestOldListOfOne: a call waits for the list of its own server, not for those of others.
func TestOldListOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(clock)
		s, other := &scripted{}, &scripted{lists: map[string]string{"tools/list": `"tools":[]`}}
		own := files(t, s)
		own.Prefix = "" // so that any server could have the tool
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, own, &proxy.Upstream{Name: "other", Prefix: "other", Open: other.open})
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		other.takes(4 * time.Second)
		for _, ahead := range []time.Duration{0, 2 * time.Minute} {
			k.forward(ahead)
			start := time.Now()
			a := c.request("tools/call", `{"name":"read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
			if took := time.Since(start); !strings.Contains(a.Raw, "done") || took > agedAtMost/2 {
				t.Errorf("%s later, after %s: %s", ahead, took, a.Raw)
			}
		}
		if n := s.asked("tools/list"); n != 2 {
			t.Errorf("asked for its list %d times", n)
		}
	})
}

// agedAtMost is how long a call waits for a list that is old.
const agedAtMost = time.Second

// TestListsThatFail: however often agents ask, a server whose list cannot be had is asked for
// it about once a second.
func TestListsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, shared := range []bool{false, true} {
			s := &scripted{lists: map[string]string{"tools/list": `"tools":[]`, "prompts/list": `"prompts":"none"`}}
			w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, Shared: shared})
			c := w.client("scout")
			c.initialize("{}")
			made := map[any]bool{}
			for range 100 {
				c.request("tools/list", "{}")
				c.request("resources/read", `{"uri":"notes:///a"}`)
				cat, err := w.server.Known("scout")
				if made[cat] = true; err != nil {
					t.Fatal(err)
				}
			}
			if len(made) > 3 {
				t.Errorf("shared %t: lists were made %d times in a moment", shared, len(made))
			}
			if n := s.asked("prompts/list"); n > 2 {
				t.Errorf("shared %t: asked %d times in a moment", shared, n)
			}
			before := s.asked("prompts/list")
			<-time.After(2500 * time.Millisecond)
			if n := s.asked("prompts/list") - before; n > 4 || n == 0 {
				t.Errorf("shared %t: asked %d times, when nobody asks", shared, n)
			}
			if e := c.open(t.Context(), t, http.MethodDelete, ""); e.resp.StatusCode != http.StatusNoContent {
				t.Fatal(e.resp.StatusCode)
			}
			<-time.After(1500 * time.Millisecond)
			before = s.asked("prompts/list")
			<-time.After(1500 * time.Millisecond)
			if n := s.asked("prompts/list") - before; n > 0 {
				t.Errorf("shared %t: asked %d times, when nobody is there", shared, n)
			}
		}
	})
}

// TestNotGranted: a server that acknowledges a subscription without the resource has refused.
func TestNotGranted(t *testing.T) {
	for _, ack := range []string{`{}`, `{"notifications":{}}`, `{"notifications":{"resourceSubscriptions":["notes:///b"]}}`, `{"notifications":{"resourceSubscriptions":"notes:///a"}}`} {
		s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method == "subscriptions/listen" {
				sink.Notify("notifications/subscriptions/acknowledged", []byte(ack))
				<-ctx.Done()
				return upstream.Answer{}, ctx.Err()
			}
			return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
		}
		w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		c := w.client("scout")
		c.initialize("{}")
		if a := c.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error == nil || !strings.Contains(a.Raw, "refused the subscription") {
			t.Errorf("%s: %s", ack, a.Raw)
		}
	}
}

// TestBurst: what a server says quickly within a call arrives, all of it.
func TestBurst(t *testing.T) {
	const many = 5000
	var told atomic.Int64
	s := &scripted{reply: func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		for i := range many {
			sink.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%q,"progress":%d}`, r.Token, i))
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"},"_meta":{"progressToken":1}}`)
	for _, one := range a.Before {
		if strings.Contains(one, "notifications/progress") {
			told.Add(1)
		}
	}
	if told.Load() != many {
		t.Errorf("%d of %d arrive", told.Load(), many)
	}
}

// TestHeardAgain: who is listened to once more is asked for its lists, for which nobody
// waits long.
func TestHeardAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		before := s.asked("tools/list")
		s.takes(4 * time.Second)
		time.Sleep(time.Millisecond) // it was asked before
		s.newest().Events.Notify(upstream.HeardAgain, nil)
		until(t, "asked", func() bool { return s.asked("tools/list") > before })
		start := time.Now()
		for range 3 {
			if a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`); !strings.Contains(a.Raw, "done") {
				t.Error(a.Raw)
			}
		}
		if took := time.Since(start); took > 2*time.Second || s.asked("tools/list") != before+1 {
			t.Errorf("%s, asked %d times", took, s.asked("tools/list")-before)
		}
	})
}

// TestChangedWhileFetched: a tool that changes while an old list is fetched is not called by
// what was known of it.
func TestChangedWhileFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(clock)
		s := &scripted{}
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		call := func() said {
			return c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
		}
		call()
		k.forward(2 * time.Minute)
		s.relist("tools/list", `"tools":[`+strings.Replace(tool("read_text_file", "path"), "A tool.", "Another tool.", 1)+`]`)
		s.takes(600 * time.Millisecond)
		done := make(chan said)
		go func() { done <- call() }()
		<-time.After(300 * time.Millisecond)
		s.newest().Events.Notify("notifications/tools/list_changed", nil)
		if a := <-done; denialOf(t, a).Code != "tool_quarantined" {
			t.Error(a.Raw)
		}
	})
}

// TestListsThatGrow: what a server listed before is not kept beside what it lists now.
func TestListsThatGrow(t *testing.T) {
	var list []string
	s := &scripted{lists: map[string]string{"resources/list": `"resources":[]`}, quiet: true}
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	c.initialize("{}")
	before := heap()
	for n := range 400 {
		list = append(list, fmt.Sprintf(`{"uri":"note:///%d","name":"note %d","description":"%s"}`, n, n, strings.Repeat("x", 500)))
		s.relist("resources/list", `"resources":[`+strings.Join(list, ",")+`]`)
		s.newest().Events.Notify("notifications/resources/list_changed", nil)
		c.request("resources/list", "{}")
	}
	if now := heap(); now > before+20<<20 {
		t.Errorf("%d MB for a list of 200 KB", (now-before)>>20)
	}
}

// TestRecheckOfNothing: where there is nothing to judge, nothing is made anew each time
// somebody looks for approvals.
func TestRecheckOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":"none"`}}
		w := startWith(t, proxy.Options{Pins: new(drawer)}, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		before := s.asked("tools/list")
		for range 25 {
			w.server.Recheck()
			<-time.After(20 * time.Millisecond)
		}
		if n := s.asked("tools/list") - before; n > 2 {
			t.Errorf("asked %d times in half a second", n)
		}
	})
}

// TestSkillsOfNewerLists: what a server has by now beside its skills is shown as what they are by now,
// and not as what they were when they were asked for, which may be longer ago.
func TestSkillsOfNewerLists(t *testing.T) {
	for _, modern := range []bool{true, false} {
		s := newSkillServer(modern, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method == "prompts/get" {
				return upstream.Answer{Type: "complete", Result: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"` + hiddenText + `"}}]}`)}, nil
			}
			return s.read(ctx, r, sink)
		}
		k := new(clock)
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		listSkills(t, func(method, params string) said { return c.modern(method, params, "{}") })
		for _, name := range []string{"deploy", "wiki"} {
			s.mu.Lock()
			s.files[name+"://"+name+"/SKILL.md"], s.files[name+"://"+name+"/a.md"] = skillText(name, "WebFetch(domain:example.com)", hiddenText), hiddenText
			s.mu.Unlock()
			s.list(s.entries()...)
			s.relist("prompts/list", `"prompts":[{"name":"`+name+`"}]`)
			s.relist("resources/list", `"resources":[{"name":"x","uri":"`+name+`://`+name+`/a.md"}]`)
			k.forward(61 * time.Second)
			for _, route := range []string{`prompts/get {"name":"files__` + name + `"}`, `resources/read {"uri":"` + name + `://` + name + `/a.md"}`, "prompts/list {}", "resources/list {}"} {
				method, params, _ := strings.Cut(route, " ")
				if a := c.modern(method, params, "{}"); strings.Contains(a.Raw, hiddenText) || strings.HasSuffix(method, "/list") && strings.Contains(a.Raw, name) {
					t.Errorf("%s: %s", route, a.Raw)
				}
			}
		}
	}
}

// TestSkillsOfSlowLists: the same where the server takes longer to say which skills it has than
// anybody waits for it. What was there before stays.
func TestSkillsOfSlowLists(t *testing.T) {
	for _, listed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newSkillServer(true, map[string]string{"skill://plain/SKILL.md": skillText("plain", "", "Plain.\n")})
			s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				if r.Method == "prompts/get" {
					return upstream.Answer{Type: "complete", Result: []byte(`{"messages":[{"role":"user","content":{"type":"text","text":"` + hiddenText + `"}}]}`)}, nil
				}
				return s.read(ctx, r, sink)
			}
			const old = `{"name":"old","uri":"notes:///old"}`
			s.relist("resources/list", `"resources":[`+old+`]`)
			s.mu.Lock()
			s.files["notes:///old"] = "An old one.\n"
			s.mu.Unlock()
			w := start(t, map[string]string{"scout": anyReader}, s.up(t))
			c := w.client("scout")
			listSkills(t, func(method, params string) said { return c.modern(method, params, "{}") })
			s.mu.Lock()
			s.files["deploy://deploy/SKILL.md"], s.files["deploy://deploy/a.md"] = skillText("deploy", "WebFetch(domain:example.com)", hiddenText), hiddenText
			s.mu.Unlock()
			s.list(s.entries()...)
			s.relist("prompts/list", `"prompts":[{"name":"deploy"}]`)
			if listed {
				s.relist("resources/list", `"resources":[`+old+`,{"name":"x","uri":"deploy://deploy/a.md"}]`)
			}
			s.takes(4 * time.Second)
			time.Sleep(61 * time.Second)
			other := w.client("scout")
			var guessing sync.WaitGroup
			defer guessing.Wait()
			guessing.Go(func() {
				for range 100 {
					time.Sleep(100 * time.Millisecond)
					if s.asked("skills/list") < 2 {
						continue // nobody can know that there is anything new
					}
					if a := other.modern("resources/read", uriParams("deploy://deploy/a.md"), "{}"); strings.Contains(a.Raw, hiddenText) {
						t.Errorf("guessed: %s", a.Raw)
					}
				}
			})
			for range 50 {
				for _, route := range []string{"resources/list {}", "prompts/list {}", `prompts/get {"name":"files__deploy"}`} {
					method, params, _ := strings.Cut(route, " ")
					a := c.modern(method, params, "{}")
					if strings.Contains(a.Raw, hiddenText) || strings.HasSuffix(method, "/list") && strings.Contains(a.Raw, "deploy") {
						t.Fatalf("%s: %s", route, a.Raw)
					}
					if method == "resources/list" && !strings.Contains(a.Raw, "notes:///old") {
						t.Errorf("what was there before is gone: %s", a.Raw)
					}
				}
				if a := c.modern("resources/read", uriParams("notes:///old"), "{}"); !strings.Contains(a.Raw, "An old one.") {
					t.Error(a.Raw)
				}
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
}

// TestSkillsUnreadForAMoment: a skill that its server could not serve just then is asked for a minute later, as
// whatever else could not be had, and not only when all skills are.
func TestSkillsUnreadForAMoment(t *testing.T) {
	const main = "skill://a/SKILL.md"
	for _, test := range []struct {
		refused string
		code    int
		shown   bool
	}{{"resources/read", -32603, true}, {"resources/read", -32602, false}, {"skills/get", -32000, true}, {"_manifest", -32603, true}} {
		k, out := new(clock), true
		s := newSkillServer(true, map[string]string{main: skillText("a", "", "A.\n"), "skill://a/_manifest": ""})
		s.files["skill://a/_manifest"] = `{"files":[` + strings.NewReplacer(`"uri":"skill://a/`, `"path":"`, "digest", "hash").Replace(manifestEntry(main, s.files[main])) + `]}`
		s.lists["resources/list"] = `"resources":[{"uri":"` + main + `","name":"x"},{"uri":"skill://a/_manifest","name":"x"}]`
		switch test.refused {
		case "skills/get":
			s.list()
		case "_manifest":
			s.info.Capabilities = []byte(serverAbilities)
		}
		entry := manifestEntry(main, s.files[main])
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			switch {
			case out && (r.Method == test.refused || strings.Contains(string(r.Params), test.refused)):
				return upstream.Answer{Error: fmt.Appendf(nil, `{"code":%d,"message":"no"}`, test.code)}, nil
			case r.Method == "skills/get":
				return upstream.Answer{Type: "complete", Result: []byte(`{"skill":{"uri":"` + main + `","frontmatter":{"name":"a"},"resources":[` + entry + `]}}`)}, nil
			}
			return s.read(ctx, r, sink)
		}
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": anyReader}, s.up(t))
		do := func(method, params string) said { return w.client("scout").modern(method, params, "{}") }
		if n := len(listSkills(t, do)); n != 0 {
			t.Errorf("%v: %d skills are read", test, n)
		}
		out = false
		k.forward(61 * time.Second)
		if got := listSkills(t, do); (len(got) == 1) != test.shown {
			t.Errorf("%v: %v", test, got)
		}
	}
}
