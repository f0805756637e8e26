package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

const readerAndWriter = `---
class: agent
capabilities:
  - fs.read: { in: $ROOT, paths: [docs] }
  - fs.write: { in: $ROOT, paths: [docs] }
---
`

// toldOfTools waits until a session is told that its tools have changed.
func toldOfTools(t *testing.T, in <-chan string) {
	t.Helper()
	select {
	case got := <-in:
		if !strings.Contains(got, "tools/list_changed") {
			t.Error(got)
		}
	case <-time.After(5 * time.Second):
		t.Error("nobody is told")
	}
}

// TestBackAgain: who has listed what an edit made is told when the edit is taken back, also
// where nobody was there to be told of the first.
func TestBackAgain(t *testing.T) {
	for _, records := range [][2]string{{reader, readerAndWriter}, {readerAndWriter, reader}} {
		s := &scripted{}
		w := start(t, map[string]string{"scout": records[0]}, files(t, s))
		first := w.client("scout")
		first.initialize("{}")
		before := len(toolNames(t, first.request("tools/list", "{}")))
		until(t, "at rest", func() bool { return !w.server.Looks("scout") })
		first.delete()
		w.write("scout", records[1])
		w.adopt()
		c := w.client("scout")
		c.initialize("{}")
		in := c.listen()
		if n := len(toolNames(t, c.request("tools/list", "{}"))); n == before {
			t.Fatal("the edit changed nothing")
		}
		select {
		case got := <-in:
			t.Errorf("told of what it has listed: %s", got)
		case <-time.After(200 * time.Millisecond):
		}
		w.write("scout", records[0])
		w.adopt()
		toldOfTools(t, in)
	}
}

// TestBackWithinRest: so is who has listed it between two looks.
func TestBackWithinRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, records := range [][2]string{{reader, readerAndWriter}, {readerAndWriter, reader}} {
			s := &scripted{}
			w := start(t, map[string]string{"scout": records[0]}, files(t, s))
			c := w.client("scout")
			c.initialize("{}")
			in := c.listen()
			before := len(toolNames(t, c.request("tools/list", "{}")))
			until(t, "at rest", func() bool { return !w.server.Looks("scout") })
			slow := s.takes
			slow(400 * time.Millisecond)
			s.first().Events.Notify("notifications/tools/list_changed", nil)
			if got := <-in; !strings.Contains(got, "tools/list_changed") {
				t.Fatal(got)
			}
			slow(0)
			w.write("scout", records[1])
			w.adopt()
			if n := len(toolNames(t, c.request("tools/list", "{}"))); n == before {
				t.Fatal("the edit changed nothing")
			}
			w.write("scout", records[0])
			w.adopt()
			toldOfTools(t, in)
			until(t, "at rest", func() bool { return !w.server.Looks("scout") })
			c.request("tools/list", "{}")
			if w.server.Looks("scout") {
				t.Error("what was announced is looked at again")
			}
		}
	})
}

// TestServersDifferAtGateways: gateways that are shown other definitions than each other,
// neither of them the pinned one, leave each other's pins alone.
func TestServersDifferAtGateways(t *testing.T) {
	kept := &drawer{}
	behind := func(definition string) *world {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + strings.Replace(tool("read_text_file", "path"), "A tool.", definition, 1) + `]`}}
		return startWith(t, proxy.Options{Pins: kept}, map[string]string{"scout": reader}, files(t, s))
	}
	var all []*world
	for _, definition := range []string{"First.", "One.", "Two."} {
		w := behind(definition)
		c := w.client("scout")
		c.initialize("{}")
		c.listen()
		c.request("tools/list", "{}")
		all = append(all, w)
	}
	saved := func() int {
		kept.mu.Lock()
		defer kept.mu.Unlock()
		return kept.saves
	}
	for range 5 { // what is new to one may be to another, once
		for _, w := range all {
			w.server.Recheck()
			until(t, "at rest", func() bool { return !w.server.Looks("scout") })
		}
	}
	before := saved()
	for range 5 {
		for _, w := range all {
			w.server.Recheck()
			until(t, "at rest", func() bool { return !w.server.Looks("scout") })
		}
	}
	if n := saved() - before; n > 0 {
		t.Errorf("saved %d times", n)
	}
}

// TestToldBeforeAsked: who looks after a server has said that its list is another is not
// given what was asked for before.
func TestToldBeforeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(clock)
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}}
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		s.takes(500 * time.Millisecond)
		k.forward(61 * time.Second)
		listed := make(chan said, 1)
		go func() { listed <- c.request("tools/list", "{}") }()
		until(t, "asked", func() bool { return s.asked("tools/list") > 1 })
		s.relist("tools/list", `"tools":[`+strings.Replace(tool("read_text_file", "path"), "A tool.", "Another tool.", 1)+`]`)
		s.first().Events.Notify("notifications/tools/list_changed", nil)
		a := c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`)
		if denialOf(t, a).Code != "tool_quarantined" {
			t.Error(a.Raw)
		}
		<-listed
	})
}

// TestSkillToldOf: the same of a skill among the resources of a server.
func TestSkillToldOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := new(clock)
		one, two := skillText("one", "", "One.\n"), skillText("two", "", "Two.\n")
		s := newSkillServer(false, map[string]string{"skill://one/SKILL.md": one, "skill://two/SKILL.md": two})
		s.info.Capabilities = []byte(serverAbilities)
		delete(s.lists, "skills/list")
		entry := func(name string) string { return `{"uri":"skill://` + name + `/SKILL.md","name":"x"}` }
		s.lists["resources/list"] = `"resources":[` + entry("one") + `]`
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		c.initialize("{}")
		listSkills(t, c.request)
		s.takes(1200 * time.Millisecond)
		k.forward(61 * time.Second)
		c.request("resources/list", "{}") // which waits for less
		s.relist("resources/list", `"resources":[`+entry("one")+`,`+entry("two")+`]`)
		s.first().Events.Notify("notifications/resources/list_changed", nil)
		if got := skillURIs(listSkills(t, c.request)); len(got) != 2 {
			t.Error(got)
		}
	})
}

// TestHeardAgainInVain: a server that is listened to once more, and has no list just then, is
// asked once more for those who would be told.
func TestHeardAgainInVain(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": everything}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	in := c.listen()
	c.request("tools/list", "{}")
	until(t, "at rest", func() bool { return !w.server.Looks("scout") })
	n := s.asked("tools/list")
	s.relist("tools/list", `"tools":"none"`)
	s.first().Events.Notify(upstream.HeardAgain, nil)
	until(t, "asked", func() bool { return s.asked("tools/list") > n })
	s.relist("tools/list", `"tools":[`+tool("read_text_file", "path")+`,`+tool("read_media_file", "path")+`]`)
	select {
	case <-in:
	case <-time.After(20 * time.Second):
		t.Error("nobody is told")
	}
}

// TestHungGreeting: a server that hangs keeps who greets the gateway waiting once.
func TestHungGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, bad := &scripted{}, &scripted{}
		bad.unreachable.Store(true)
		w := start(t, map[string]string{"scout": everything}, files(t, s), &proxy.Upstream{Name: "bad", Prefix: "bad", Open: bad.open})
		c := w.client("scout")
		c.initialize("{}")
		c.request("tools/list", "{}")
		for _, greet := range []func(){func() { w.client("scout").initialize("{}") }, func() { c.modern("server/discover", "{}", "{}") }} {
			begun := time.Now()
			greet()
			if took := time.Since(begun); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
		}
	})
}

// TestPinsFit: what is kept of a server that lists as much as it may can be kept.
func TestPinsFit(t *testing.T) {
	const most = 16 << 20 // of the store
	d := &drawer{}
	b := proxy.NewBoard(d, "s")
	for round := range 2 {
		var defs []string
		for i := range proxy.MaxPins {
			name := fmt.Sprintf("%05d%s", i, strings.Repeat("n", proxy.MaxPinName-5))
			defs = append(defs, fmt.Sprintf(`{"name":%q,"description":"%d%s","inputSchema":{"type":"object"}}`, name, round, strings.Repeat(`\"`, 148)))
		}
		if _, err := b.Judge(proxy.Tofu, pinDay, valuesOf(t, defs...)...); err != nil || len(d.data) > most {
			t.Errorf("%d bytes: %v", len(d.data), err)
		}
	}
	odd := `{"name":"` + strings.Repeat(`\"`, proxy.MaxPinName/2+1) + `","inputSchema":{"type":"object"}}`
	if got, err := proxy.NewBoard(&drawer{}, "s").Judge(proxy.Tofu, pinDay, valuesOf(t, odd)...); err != nil || got[0] == "" {
		t.Errorf("a name that takes more than its bytes is %q, %v", got, err)
	}
}
