package proxy_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// TestSlowFailure: a server that takes long to say that it has no list keeps nobody waiting
// who wants something of another.
func TestSlowFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 600 * time.Millisecond
		bad := &scripted{lists: map[string]string{"prompts/list": `"prompts":"none"`, "tools/list": `"tools":[]`}}
		good := &scripted{lists: map[string]string{
			"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`, "resources/list": `"resources":[{"uri":"note:///a","name":"a"}]`, "prompts/list": `"prompts":[{"name":"p"}]`,
		}}
		w := start(t, map[string]string{"scout": everything}, files(t, good), &proxy.Upstream{Name: "bad", Prefix: "bad", Open: bad.open})
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		bad.takes(slow)
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
			for method, params := range map[string]string{
				"resources/read": `{"uri":"note:///a"}`, "prompts/get": `{"name":"files__p"}`, "tools/list": "{}", "tools/call": `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`,
			} {
				begun := time.Now()
				a := c.request(method, params)
				if took := time.Since(begun); took > slow*3/4 || a.Error != nil || strings.Contains(a.Raw, "isError") {
					t.Errorf("%s took %s: %s", method, took, a.Raw)
				}
			}
		}
		if n := bad.asked("prompts/list"); n < 2 || n > 5 {
			t.Errorf("asked %d times", n)
		}
	})
}

// TestFailingUnwanted: a list that cannot be had is asked for less and less often, as a program
// that does not start is started each time, and who listens is told all the same when it is there.
func TestFailingUnwanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":"none"`}}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		in := c.listen()
		c.request("tools/list", "{}")
		<-time.After(10 * time.Second)
		if n := s.asked("tools/list"); n < 9 {
			t.Errorf("asked %d times in ten seconds", n)
		}
		before := s.asked("tools/list")
		<-time.After(10 * time.Minute)
		if n := s.asked("tools/list") - before; n < 30 || n > 70 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		s.relist("tools/list", `"tools":[`+tool("read_text_file", "path")+`]`)
		select {
		case got := <-in:
			if !strings.Contains(got, "tools/list_changed") {
				t.Error(got)
			}
		case <-time.After(40 * time.Second):
			t.Error("nobody is told")
		}
		if n := len(toolNames(t, c.request("tools/list", "{}"))); n != 1 {
			t.Errorf("%d tools are shown", n)
		}
		s.relist("tools/list", `"tools":"none"`)
		s.first().Events.Notify("notifications/tools/list_changed", nil)
		before = s.asked("tools/list")
		<-time.After(10 * time.Second)
		if n := s.asked("tools/list") - before; n < 9 {
			t.Errorf("asked %d times in ten seconds after it was there", n)
		}
	})
}

// TestListThatIsNone: a server without the method of a list has none of it, and all else.
func TestListThatIsNone(t *testing.T) {
	s := &scripted{lists: map[string]string{
		"prompts/list": noSuchMethod, "resources/list": noSuchMethod, "resources/templates/list": `"resourceTemplates":[{"uriTemplate":"note:///{id}","name":"n"}]`,
	}}
	other := &scripted{}
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open}, &proxy.Upstream{Name: "other", Prefix: "other", Open: other.open})
	c := w.client("scout")
	c.initialize("{}")
	for range 20 {
		if a := c.request("resources/templates/list", "{}"); !strings.Contains(a.Raw, "note:///{id}") {
			t.Fatal(a.Raw)
		}
		if a := c.request("resources/read", `{"uri":"note:///1"}`); a.Error != nil {
			t.Fatal(a.Raw)
		}
	}
	if n := s.asked("resources/list"); n > 2 {
		t.Errorf("asked %d times for what it has not", n)
	}
}

// TestListThatIsGone: a server that says so of a list that it had has failed, and what was
// known stays.
func TestListThatIsGone(t *testing.T) {
	k, s := new(clock), &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`, "prompts/list": `"prompts":[{"name":"p"}]`}}
	w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": everything}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	for range 2 {
		if a, b := c.request("tools/list", "{}"), c.request("prompts/list", "{}"); len(toolNames(t, a)) != 1 || !strings.Contains(b.Raw, "files__p") {
			t.Errorf("%s, %s", a.Raw, b.Raw)
		}
		s.mu.Lock()
		s.lists = map[string]string{"tools/list": noSuchMethod, "prompts/list": noSuchMethod}
		s.mu.Unlock()
		k.forward(2 * time.Minute)
	}
}

// TestFailedLongAgo: a server is given the time of any other once it is long ago that a list
// of its could not be had.
func TestFailedLongAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"resources/list": `"resources":"none"`}}
		w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		c := w.client("scout")
		for _, want := range []bool{false, true} {
			if a := c.modern("resources/list", "{}", "{}"); strings.Contains(a.Raw, "note:///a") != want {
				t.Errorf("want it %t: %s", want, a.Raw)
			}
			s.relist("resources/list", `"resources":[{"uri":"note:///a","name":"a"}]`)
			s.takes(600 * time.Millisecond)
			if err := w.server.FailedLongAgo("scout"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestWithdrawnMeanwhile: a list that has changed while it was fetched, in vain, is not what
// a call goes by.
func TestWithdrawnMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, s := new(clock), &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}}
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		s.takes(500 * time.Millisecond)
		s.relist("tools/list", `"tools":"none"`)
		k.forward(2 * time.Minute)
		called := make(chan said, 1)
		go func() {
			called <- c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
		}()
		until(t, "asked", func() bool { return s.asked("tools/list") > 1 })
		s.relist("tools/list", `"tools":[`+tool("read_media_file", "path")+`]`)
		s.first().Events.Notify("notifications/tools/list_changed", nil)
		if a := <-called; denialOf(t, a).Code != "unknown_tool" {
			t.Error(a.Raw)
		}
	})
}

// TestApprovedUnderAnother: what was approved is shown to everybody and can be called, also
// where the pins are read for another agent before the gateway looks at them.
func TestApprovedUnderAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, first := range []bool{false, true} {
			kept := &drawer{}
			up := files(t, &scripted{})
			up.Pins = proxy.Require
			w := startWith(t, proxy.Options{Pins: kept}, map[string]string{"scout": reader, "quiet": reader, "hasty": reader, "other": reader}, up)
			call := func(agent string) string { // which has asked for no list
				return w.client(agent).modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, "{}").Raw
			}
			shown := func(agent string) int {
				c := w.client(agent)
				c.initialize("{}")
				return len(toolNames(t, c.request("tools/list", "{}")))
			}
			c := w.client("scout")
			c.initialize("{}")
			in := c.listen()
			if shown("scout")+shown("quiet") > 0 || !strings.Contains(call("hasty"), "tool_quarantined") {
				t.Fatal("shown before it was approved")
			}
			approveNamed(t, kept, "read_text_file")
			if first {
				if n := shown("other"); n != 1 {
					t.Fatalf("what was approved is not shown: %d", n)
				}
				for _, agent := range []string{"quiet", "hasty"} {
					if got := call(agent); strings.Contains(got, "isError") {
						t.Errorf("%s: %s", agent, got)
					}
				}
			}
			w.server.Recheck()
			select {
			case got := <-in:
				if !strings.Contains(got, "tools/list_changed") {
					t.Error(got)
				}
			case <-time.After(10 * time.Second):
				t.Error("nobody is told")
			}
			if n := shown("scout") + shown("quiet") + shown("hasty"); n != 3 {
				t.Errorf("what was approved is shown %d times", n)
			}
		}
	})
}

// TestToldMeanwhile: what changes while lists are made for somebody, who waits for a slow
// server, is told when they are made.
func TestToldMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, approved := range []bool{false, true} {
			k, kept := new(clock), &drawer{}
			s, slow := &scripted{}, &scripted{lists: map[string]string{"tools/list": `"tools":[]`}}
			up := files(t, s)
			if approved {
				up.Pins = proxy.Require
			}
			w := startWith(t, proxy.Options{Clock: k.now, Pins: kept}, map[string]string{"scout": everything}, up, &proxy.Upstream{Name: "slow", Prefix: "slow", Open: slow.open})
			c := w.client("scout")
			c.initialize("{}")
			in := c.listen()
			c.request("tools/list", "{}")
			until(t, "at rest", func() bool { return !w.server.Looks("scout") })
			slow.takes(4 * time.Second)
			k.forward(61 * time.Second)
			listed := make(chan said, 1)
			go func() { listed <- c.request("tools/list", "{}") }()
			until(t, "asked", func() bool { return slow.asked("tools/list") > 1 })
			k.forward(time.Second)
			if approved {
				approveNamed(t, kept, "read_text_file")
				w.server.Recheck()
			} else {
				s.relist("tools/list", `"tools":[`+tool("read_text_file", "path")+`,`+tool("read_media_file", "path")+`]`)
				s.first().Events.Notify(upstream.HeardAgain, nil)
			}
			select {
			case got := <-in:
				if !strings.Contains(got, "tools/list_changed") {
					t.Error(got)
				}
			case <-time.After(3 * time.Second):
				t.Errorf("approved %t: nobody is told", approved)
			}
			<-listed
		}
	})
}
