package proxy_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
)

// TestSubscriptionRefusedIsNotRoused: what was refused while its server was gone is not watched once that is back.
func TestSubscriptionRefusedIsNotRoused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, asked, busy, _ := teller(false)
		w := start(t, map[string]string{"scout": everything}, reachedAs(s, "1"))
		c := w.client("scout")
		c.initialize("{}")
		busy.Store(1)
		refused := make(chan said, 1)
		go func() { refused <- c.request("resources/subscribe", `{"uri":"notes:///a"}`) }()
		reaches(t, asked, 1, "asked")
		w.ups = nil
		w.adopt()
		if a := <-refused; a.Error == nil {
			t.Fatal(a.Raw)
		}
		busy.Store(0)
		w.ups = []*proxy.Upstream{reachedAs(s, "2")}
		w.adopt()
		<-time.After(time.Second)
		if n := asked.Load(); n != 1 {
			t.Errorf("the server was asked %d times", n)
		}
	})
}

// TestSubscriptionSleeps: after an edit by which a server is gone, or not for the agent, and another by which it is back,
// it tells as before, and of what it may have told meanwhile. Who has unsubscribed, or may read no more, is told nothing.
func TestSubscriptionSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, tt := range map[string]struct {
			meanwhile, then string
			leaves, want    bool
		}{
			"the upstream":               {everything, everything, false, true},
			"the upstream and its right": {strings.Replace(everything, `uris: ["**"]`, `uris: ["notes:///b"]`, 1), everything, false, true},
			"its right for good":         {everything, strings.Replace(everything, `uris: ["**"]`, `uris: ["notes:///b"]`, 1), false, false},
			"the upstream, unsubscribed": {everything, everything, true, false},
		} {
			s, asked, _, _ := teller(false)
			w, c, in := moving(t, s)
			w.ups = nil
			w.write("scout", tt.meanwhile)
			w.adopt()
			w.adopt() // and something else is edited
			if tt.leaves {
				c.request("resources/unsubscribe", `{"uri":"notes:///a"}`)
			}
			<-time.After(time.Second)
			w.ups = []*proxy.Upstream{reachedAs(s, "2")}
			w.write("scout", tt.then)
			w.adopt()
			<-time.After(time.Second)
			if before := asked.Load(); (before == 2) != tt.want {
				t.Errorf("without %s the server was asked %d times", name, before)
			}
			if tt.want {
				in.updated(t, "notes:///a")
				s.tells(t, in)
			}
		}
	})
}
