package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/proxy"
)

// TestSessionsDoNotFillTheLog: an agent can begin and end sessions without end, so that
// only so many of them are events. How many were not is said by the next one.
func TestSessionsDoNotFillTheLog(t *testing.T) {
	now := time.Now()
	w := startWith(t, proxy.Options{Clock: func() time.Time { return now }}, map[string]string{"scout": "---\nclass: agent\n---\n"})
	c := w.client("scout")
	begin := func() (all []guardrail.Event) {
		c.initialize("{}")
		if status := c.delete(); status != http.StatusNoContent {
			t.Fatalf("DELETE is answered with %d", status)
		}
		for _, e := range w.events.of(guardrail.Notice) {
			if strings.HasPrefix(e.Text, "a session begins") {
				all = append(all, e)
			}
		}
		return all
	}
	const most = 600 // of an agent in a minute
	for range most + 1 {
		if all := begin(); len(all) > most {
			t.Fatal("each session is an event")
		}
	}
	now = now.Add(time.Minute)
	all := begin()
	if len(all) != most+1 || !strings.Contains(all[most].Text, "1 before it were not recorded") {
		t.Errorf("%d events, the last of which says %q", len(all), all[len(all)-1].Text)
	}
}

// TestSubscriptionsOfAnAgentAreBounded: a server is asked to tell one agent of so many resources,
// however many sessions it has, and over however many connections. What two sessions watch over
// one is one; what ends leaves room, and others have theirs.
func TestSubscriptionsOfAnAgentAreBounded(t *testing.T) {
	const most, each = 1024, 400
	for name, up := range map[string]*proxy.Upstream{"shared": {Shared: true}, "of each session": {MayAsk: []string{"elicitation"}}, "of the agent": {}} {
		s := &scripted{quiet: true}
		up.Name, up.Prefix, up.Open = "up", "up", s.open
		w := startWith(t, proxy.Options{Limits: proxy.Limits{Calls: 1 << 20}}, map[string]string{"greedy": everything2, "scout": everything2}, up)
		var all []*client
		subscribed := 0
		for k := range 4 {
			c := w.client("greedy")
			c.initialize(`{"elicitation":{}}`)
			all = append(all, c)
			for i := range each {
				if a := c.request("resources/subscribe", fmt.Sprintf(`{"uri":"notes:///%d-%d"}`, k, i)); a.Error == nil {
					subscribed++
				} else if !strings.Contains(a.Raw, "too many") {
					t.Fatal(a.Raw)
				}
			}
		}
		if subscribed != most {
			t.Errorf("%s: %d subscriptions", name, subscribed)
		}
		again := all[1].request("resources/subscribe", `{"uri":"notes:///0-0"}`)
		if one := !up.Shared && len(up.MayAsk) > 0; (again.Error == nil) == one {
			t.Errorf("%s: what is watched already is answered with %s", name, again.Raw)
		}
		other := w.client("scout")
		other.initialize(`{"elicitation":{}}`)
		if a := other.request("resources/subscribe", `{"uri":"notes:///mine"}`); a.Error != nil {
			t.Errorf("%s: another agent is told %s", name, a.Raw)
		}
		all[0].delete()
		until(t, "there is room", func() bool { return all[3].request("resources/subscribe", `{"uri":"notes:///more"}`).Error == nil })
	}
}

// TestQueuesOfAnAgentAreBounded: what waits for sessions that nobody listens to is bounded
// for all of them together. Logs go first; a change of a list is told, and so are logs to
// who listens, or once the others have gone.
func TestQueuesOfAnAgentAreBounded(t *testing.T) {
	s := &scripted{}
	u := files(t, s)
	u.MayAsk = []string{"elicitation"} // so that each session has a connection of its own
	w := start(t, map[string]string{"scout": reader}, u)
	var all []*client
	for range 24 {
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		c.request("tools/list", "{}")
		all = append(all, c)
	}
	s.mu.Lock()
	peers := s.peers
	s.mu.Unlock()
	log := []byte(`{"level":"error","data":"` + strings.Repeat("x", 1<<19) + `"}`)
	before := heap()
	for _, p := range peers {
		for range 40 {
			p.Events.Notify("notifications/message", log)
		}
	}
	if kept := int64(heap()) - int64(before); kept > 48<<20 {
		t.Errorf("%d sessions of one agent, which nobody listens to, keep %d MiB", len(all), kept>>20)
	}
	hear := func(in <-chan string, all ...string) {
		t.Helper()
		for limit := time.After(20 * time.Second); len(all) > 0; {
			select {
			case got := <-in:
				all = slices.DeleteFunc(all, func(what string) bool { return strings.Contains(got, what) })
			case <-limit:
				t.Fatalf("not told: %s", all)
			}
		}
	}
	last, listening := len(all)-1, len(all)-2
	for _, p := range peers {
		p.Events.Notify("notifications/tools/list_changed", nil)
	}
	in := all[listening].listen()
	hear(in, "tools/list_changed")
	peers[listening].Events.Notify("notifications/message", []byte(`{"level":"error","data":"heard"}`))
	hear(in, `"heard"`)
	for _, c := range all[:listening] {
		c.delete()
	}
	peers[last].Events.Notify("notifications/message", []byte(`{"level":"error","data":"kept"}`))
	hear(all[last].listen(), "tools/list_changed", `"kept"`) // in any order: its list may have been looked at since
}

// heap is how much memory is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestUnknownSkillsDoNotFillTheLog: asking for skills costs as much of what an agent may
// call as calls do, since each denial is an event, and a server may be asked.
func TestUnknownSkillsDoNotFillTheLog(t *testing.T) {
	const most = 10
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Calls: most}}, map[string]string{"scout": "---\nclass: agent\n---\n"})
	c := w.client("scout")
	c.initialize("{}")
	for range 2 * most {
		c.request("skills/get", `{"uri":"skill://none/SKILL.md"}`)
		c.request("resources/directory/read", `{"uri":"skill://none"}`)
	}
	denied := 0
	for _, e := range w.events.of(guardrail.Decision) {
		if e.Code != "limit_exceeded" {
			denied++
		}
	}
	if denied == 0 || denied > most+1 {
		t.Errorf("%d denials are events", denied)
	}
}

// TestDeniedSubscriptionIsAnEvent: what an agent asks to be told of and may not read is
// left out of its stream, and recorded as any other denial.
func TestDeniedSubscriptionIsAnEvent(t *testing.T) {
	s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"file:///etc/secret","name":"x"}]`}}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if ack := listenOnce(ctx, t, w.client("scout"), `{"resourceSubscriptions":["file:///etc/secret"]}`); strings.Contains(ack, "secret") {
		t.Errorf("it is granted: %s", ack)
	}
	got := w.events.of(guardrail.Decision)
	if len(got) != 1 || got[0].Decision != "deny" || len(got[0].Needs) != 1 || got[0].Needs[0].Object != "/etc/secret" {
		t.Errorf("the events are %+v", got)
	}
}
