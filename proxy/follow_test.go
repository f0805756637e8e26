package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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

// teller is a server that tells of resources as its era has it. It refuses to while it is busy.
func teller(modern bool) (s *scripted, asked, busy *atomic.Int64, end chan struct{}) {
	asked, busy, end = new(atomic.Int64), new(atomic.Int64), make(chan struct{})
	s = &scripted{}
	if modern {
		s.info = upstream.Info{Modern: true, Version: "2026-07-28"}
	}
	s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		if r.Method != "resources/subscribe" && r.Method != "subscriptions/listen" {
			return upstream.Answer{Result: []byte(`{}`)}, nil
		}
		asked.Add(1)
		if busy.Load() > 0 {
			<-time.After(100 * time.Millisecond)
			return upstream.Answer{Error: []byte(`{"code":-32603,"message":"busy"}`)}, nil
		}
		if !modern {
			return upstream.Answer{Result: []byte(`{}`)}, nil
		}
		sink.Notify("notifications/subscriptions/acknowledged", []byte(`{"notifications":{"resourceSubscriptions":["notes:///a"]}}`))
		select {
		case <-end:
			return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
		case <-ctx.Done():
			return upstream.Answer{}, ctx.Err()
		}
	}
	return s, asked, busy, end
}

// agreed is the acknowledgement of a server that tells of all that it is asked for.
func agreed(r upstream.Request) []byte {
	var asked struct{ Notifications json.RawMessage }
	_ = json.Unmarshal(r.Params, &asked) // what cannot be read is not agreed to
	return []byte(`{"notifications":` + string(asked.Notifications) + `}`)
}

// tells has the server, as it is reached now, tell of the resource, and waits until the
// agent hears of it.
func (s *scripted) tells(t *testing.T, in *events) {
	t.Helper()
	s.newest().Events.Notify("notifications/resources/updated", []byte(`{"uri":"notes:///a"}`))
	in.updated(t, "notes:///a")
}

// updated waits until the client is told that a resource has changed.
func (in *events) updated(t *testing.T, uri string) {
	t.Helper()
	for got := in.next(); !strings.Contains(got, `resources/updated","params":{"uri":"`+uri+`"`); got = in.next() {
		if got == "" {
			t.Fatal("nobody is told")
		}
	}
}

// reaches waits until a count is that of something.
func reaches(t *testing.T, count *atomic.Int64, want int64, what string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); count.Load() < want; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: %d, not %d", what, count.Load(), want)
		}
	}
}

// TestSubscriptionComesBack: a server that has stopped telling is asked again, whether or not
// anybody calls it, and until it tells.
func TestSubscriptionComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, modern := range []bool{false, true} {
			s, asked, busy, end := teller(modern)
			w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
			c := w.client("scout")
			c.initialize("{}")
			in := c.open(t.Context(), t, http.MethodGet, "")
			if a := c.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error != nil {
				t.Fatal(a.Raw)
			}
			reaches(t, asked, 1, "asked at first")
			busy.Store(1)
			if modern {
				end <- struct{}{}
			} else if err := s.hangsUp(); err != nil {
				t.Fatal(err)
			}
			reaches(t, asked, 2, "asked again")
			busy.Store(0)
			before := asked.Load()
			reaches(t, asked, before+1, "asked until it tells")
			in.updated(t, "notes:///a") // as it may have, unheard
			s.tells(t, in)
			if a := c.request("resources/unsubscribe", `{"uri":"notes:///a"}`); a.Error != nil {
				t.Error(a.Raw)
			}
		}
	})
}

// TestSubscriptionRefusedToTwo: who subscribes while another one is refused is not told that
// the server tells.
func TestSubscriptionRefusedToTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, asked, busy, _ := teller(false)
		w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		one, two := w.client("scout"), w.client("scout")
		one.initialize("{}")
		two.initialize("{}")
		busy.Store(1)
		first := make(chan said, 1)
		go func() { first <- one.request("resources/subscribe", `{"uri":"notes:///a"}`) }()
		reaches(t, asked, 1, "asked by one")
		if a, b := two.request("resources/subscribe", `{"uri":"notes:///a"}`), <-first; denialOf(t, a).Code != "upstream_failed" || denialOf(t, b).Code != "upstream_failed" {
			t.Errorf("%s, %s", a.Raw, b.Raw)
		}
		busy.Store(0)
		if a := two.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error != nil || asked.Load() != 3 {
			t.Errorf("asked %d times: %s", asked.Load(), a.Raw)
		}
	})
}

// moving is a watcher of a resource, and what the policy says of its server: as the second
// identity it is reached in another way.
func moving(t *testing.T, s *scripted) (w *world, c *client, in *events) {
	w = start(t, map[string]string{"scout": everything}, reachedAs(s, "1"))
	c = w.client("scout")
	c.initialize("{}")
	in = c.open(t.Context(), t, http.MethodGet, "")
	c.request("resources/subscribe", `{"uri":"notes:///a"}`)
	w.ups = []*proxy.Upstream{reachedAs(s, "2")}
	return w, c, in
}

func reachedAs(s *scripted, identity string) *proxy.Upstream {
	return &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open, Identity: identity}
}

// TestSubscriptionMoves: after an edit by which a server is reached in another way, it is
// that one which tells.
func TestSubscriptionMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, asked, _, _ := teller(false)
		w, c, in := moving(t, s)
		s.unreachable.Store(true) // as while it starts anew
		w.adopt()
		<-time.After(100 * time.Millisecond)
		s.unreachable.Store(false)
		reaches(t, asked, 2, "asked anew")
		if a := c.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error != nil {
			t.Error(a.Raw)
		}
		s.tells(t, in)
	})
}

// TestSubscriptionMovesSlowly: what the server tells before anybody knows its skills, as its
// lists take a while, is told once they are known, unless it may not be read by then.
func TestSubscriptionMovesSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, revoked := range []bool{false, true} {
			s, asked, _, _ := teller(false)
			s.takes(300 * time.Millisecond)
			s.lists = map[string]string{"tools/list": `"tools":[]`, "resources/list": `"resources":[{"uri":"notes:///a","name":"a"},{"uri":"notes:///b","name":"b"}]`}
			w, c, in := moving(t, s)
			w.adopt()
			reaches(t, asked, 2, "asked anew")
			if !revoked {
				s.tells(t, in)
				continue
			}
			<-time.After(50 * time.Millisecond) // so that it is watched
			s.newest().Events.Notify("notifications/resources/updated", []byte(`{"uri":"notes:///a"}`))
			w.write("scout", strings.Replace(everything, `uris: ["**"]`, `uris: ["notes:///b"]`, 1))
			w.adopt()
			if a := c.request("resources/subscribe", `{"uri":"notes:///b"}`); a.Error != nil { // the lists are known by then
				t.Fatal(a.Raw)
			}
			s.newest().Events.Notify("notifications/resources/updated", []byte(`{"uri":"notes:///b"}`))
			for got := ""; !strings.Contains(got, "notes:///b"); {
				if got = in.next(); got == "" || strings.Contains(got, "notes:///a") {
					t.Fatalf("told is %q", got)
				}
			}
		}
	})
}

// TestSubscriptionsEndAlone: a stream that ends because nobody listened any more has nothing
// asked again for those who listen by then.
func TestSubscriptionsEndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, asked, _, _ := teller(true)
		slow := s.reply
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			a, err := slow(ctx, r, sink)
			<-time.After(100 * time.Millisecond) // to end
			return a, err
		}
		w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		c := w.client("scout")
		c.initialize("{}")
		in := c.open(t.Context(), t, http.MethodGet, "")
		const rounds = 3
		for range rounds {
			c.request("resources/subscribe", `{"uri":"notes:///a"}`)
			c.request("resources/unsubscribe", `{"uri":"notes:///a"}`)
		}
		c.request("resources/subscribe", `{"uri":"notes:///a"}`)
		<-time.After(2500 * time.Millisecond)
		if n := asked.Load(); n > rounds+1 { // one that nobody listens to any more may not get as far as to be asked
			t.Errorf("asked %d times", n)
		}
		s.tells(t, in)
	})
}

// TestSubscriptionsComeBackEach: one that is refused from then on keeps no other from being
// asked for again.
func TestSubscriptionsComeBackEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		ends := make(chan struct{})
		s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method != "subscriptions/listen" {
				return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
			}
			select {
			case <-ends:
				if strings.Contains(string(r.Params), "notes:///a") {
					return upstream.Answer{Error: []byte(`{"code":-32602,"message":"gone"}`)}, nil
				}
				asked.Add(1)
			default:
			}
			sink.Notify("notifications/subscriptions/acknowledged", agreed(r))
			select {
			case <-ends:
				return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
			case <-ctx.Done():
				return upstream.Answer{}, ctx.Err()
			}
		}
		w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		c := w.client("scout")
		c.initialize("{}")
		for _, uri := range []string{"a", "b", "c", "d"} {
			if a := c.request("resources/subscribe", `{"uri":"notes:///`+uri+`"}`); a.Error != nil {
				t.Fatal(a.Raw)
			}
		}
		close(ends)
		reaches(t, &asked, 3, "asked again")
	})
}

// TestListenedTooMuch: what is left out of a stream, since there is too much of it, is a denial
// like any other.
func TestListenedTooMuch(t *testing.T) {
	s, _, _, _ := teller(false)
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Calls: 2}}, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	in := w.client("scout").open(t.Context(), t, http.MethodPost,
		`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["notes:///a","notes:///b","notes:///c","notes:///d"]},"_meta":{`+modernMeta+`}}}`,
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	in.next()
	denied := 0
	for _, e := range w.events.of("decision") {
		if e.Code == "limit_exceeded" {
			denied++
		}
	}
	if n := len(w.events.of("outcome")); denied != 2 || n != 2 {
		t.Errorf("%d denials, %d outcomes", denied, n)
	}
}

// TestListenedAcrossPolicies: a policy that comes while a stream is being made decides on what
// is left of it, and takes away no more than it says.
func TestListenedAcrossPolicies(t *testing.T) {
	for record, want := range map[string]int{everything: 2, reader: 1} {
		var w *world
		var once sync.Once
		s := &scripted{reply: func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
			once.Do(func() {
				w.write("scout", record)
				w.adopt()
			})
			return upstream.Answer{Result: []byte(`{}`)}, nil
		}}
		w = start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		in := w.client("scout").open(t.Context(), t, http.MethodPost,
			`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["notes:///a","notes:///b"]},"_meta":{`+modernMeta+`}}}`,
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		ack := in.next()
		denied := 0
		for _, e := range w.events.of("decision") {
			if e.Decision == "deny" {
				denied++
			}
		}
		if n := strings.Count(ack, "notes:///"); n != want || denied != 2-want || len(s.calls()) != want {
			t.Errorf("%d resources, %d denials, %d calls: %s", n, denied, len(s.calls()), ack)
		}
	}
}

// TestSubscriptionsLeftMeanwhile: what nobody wants to hear of any more, once it is asked for
// again, is not told of for ever.
func TestSubscriptionsLeftMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 8
		for _, modern := range []bool{false, true} {
			var told sync.Map // by the uri, as long as the server tells
			var asked atomic.Int64
			restart := make(chan struct{})
			s := &scripted{}
			if modern {
				s.info = upstream.Info{Modern: true, Version: "2026-07-28"}
			}
			s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				uri := string(notes.Find(r.Params))
				switch r.Method {
				case "resources/unsubscribe":
					told.Delete(uri)
				case "resources/subscribe", "subscriptions/listen":
					if asked.Add(1) > many {
						<-time.After(50 * time.Millisecond)
					}
					told.Store(uri, true)
				}
				if r.Method != "subscriptions/listen" {
					return upstream.Answer{Result: []byte(`{}`)}, nil
				}
				sink.Notify("notifications/subscriptions/acknowledged", agreed(r))
				select {
				case <-restart:
				case <-ctx.Done():
				}
				told.Delete(uri)
				return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
			}
			w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
			c := w.client("scout")
			c.initialize("{}")
			for i := range many {
				c.request("resources/subscribe", fmt.Sprintf(`{"uri":"notes:///%d"}`, i))
			}
			told.Clear() // with what has told it
			if modern {
				for range many {
					restart <- struct{}{}
				}
			} else if err := s.hangsUp(); err != nil {
				t.Fatal(err)
			}
			reaches(t, &asked, many+1, "asked again")
			for i := range many {
				c.request("resources/unsubscribe", fmt.Sprintf(`{"uri":"notes:///%d"}`, i))
			}
			time.Sleep(time.Minute)
			told.Range(func(uri, _ any) bool {
				t.Errorf("modern %t: the server tells of %s for ever", modern, uri)
				return true
			})
		}
	})
}

var notes = regexp.MustCompile(`notes:///\d`)

// TestSubscribedAnewAtOnce: who leaves and comes back at once is told, however long the
// server takes to hear that he left.
func TestSubscribedAnewAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Bool
		s := &scripted{reply: func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
			switch r.Method {
			case "resources/unsubscribe":
				<-time.After(50 * time.Millisecond)
				told.Store(false)
			case "resources/subscribe":
				told.Store(true)
			}
			return upstream.Answer{Result: []byte(`{}`)}, nil
		}}
		w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
		c := w.client("scout")
		c.initialize("{}")
		for range 3 {
			c.request("resources/subscribe", `{"uri":"notes:///a"}`)
			c.request("resources/unsubscribe", `{"uri":"notes:///a"}`)
			if a := c.request("resources/subscribe", `{"uri":"notes:///a"}`); a.Error != nil {
				t.Error(a.Raw)
			}
		}
		<-time.After(200 * time.Millisecond)
		if !told.Load() {
			t.Error("nobody is told")
		}
		c.request("resources/unsubscribe", `{"uri":"notes:///a"}`)
		until(t, "the server is told to be silent", func() bool { return !told.Load() })
	})
}

// TestUpdatedBelow: who watches a folder is told of what is in it, as far as it may be read.
func TestUpdatedBelow(t *testing.T) {
	s, _, _, _ := teller(false)
	record := strings.Replace(everything, `uris: ["**"]`, `uris: ["notes:///a", "notes:///ab", "notes:///a/b/*"]`, 1)
	w := start(t, map[string]string{"scout": record}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	for _, folder := range []string{"notes:///a", "notes:///a/b/"} {
		c := w.client("scout")
		c.initialize("{}")
		in := c.open(t.Context(), t, http.MethodGet, "")
		if a := c.request("resources/subscribe", quoted(map[string]string{"uri": folder})); a.Error != nil {
			t.Fatal(a.Raw)
		}
		sink := s.newest().Events
		for _, uri := range []string{"notes:///ab", "notes:///a/secret/c", "notes:///", strings.Repeat("/", 1<<16), "notes:///a/b/1"} {
			sink.Notify("notifications/resources/updated", []byte(quoted(map[string]string{"uri": uri})))
		}
		if got := in.next(); !strings.Contains(got, `"notes:///a/b/1"`) {
			t.Errorf("%s: %s", folder, got)
		}
	}
}
