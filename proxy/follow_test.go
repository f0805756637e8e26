package proxy_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// finding 27: a subscription that has ended leaves room, and one agent's do not
// take the room of another's where they share a server.
func TestSubscriptionsLeaveRoom(t *testing.T) {
	for _, test := range []struct {
		name   string
		shared bool
		then   string
	}{{"of the same agent", false, "greedy"}, {"of another agent", true, "scout"}} {
		t.Run(test.name, func(t *testing.T) {
			s := &scripted{}
			w := start(t, map[string]string{"greedy": everything, "scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, Shared: test.shared})
			c := w.client("greedy")
			c.initialize("{}")
			for i := range 1030 {
				uri := fmt.Sprintf(`{"uri":"notes:///%d"}`, i)
				c.request("resources/subscribe", uri)
				c.request("resources/unsubscribe", uri)
			}
			c = w.client(test.then)
			c.initialize("{}")
			if a := c.request("resources/subscribe", `{"uri":"notes:///mine"}`); string(a.Result) != "{}" {
				t.Errorf("%s", a.Raw)
			}
		})
	}
}

// finding 28: however often the same resource is subscribed to, one stream of a
// modern server tells of it, and none when nobody listens any more.
func TestOneStreamForOneResource(t *testing.T) {
	var streams atomic.Int64
	s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
	s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		if r.Method != "subscriptions/listen" {
			return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
		}
		streams.Add(1)
		defer streams.Add(-1)
		sink.Notify("notifications/subscriptions/acknowledged", []byte(`{"notifications":{"resourceSubscriptions":["notes:///a"]}}`))
		<-ctx.Done()
		return upstream.Answer{}, ctx.Err()
	}
	w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	c.initialize("{}")
	before := streams.Load()
	for range 50 {
		if a := c.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error != nil {
			t.Fatal(a.Raw)
		}
	}
	if n := streams.Load() - before; n > 1 {
		t.Errorf("%d streams tell of one resource", n)
	}
}
