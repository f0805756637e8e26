package proxy_test

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

const (
	prompt   = time.Second              // what a call to a server that is well may take, on a busy machine
	patience = 3*time.Second + prompt   // what a list may take while a server does not answer
	recovery = 2*time.Second + prompt/2 // how long after a server is well its calls work again
)

// eventually tries until it works, and says if that took longer than it may.
func eventually(t testing.TB, limit time.Duration, what string, try func() bool) {
	t.Helper()
	begun := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !try() {
		if time.Since(begun) > limit {
			t.Errorf("%s: not within %v", what, limit)
			return
		}
		<-tick.C
	}
}

// calls a tool of a server in the era of the client.
func (c *client) tool(server string) said {
	return c.raw(c.session == "", "1", "tools/call", `"name":"`+server+`__echo","arguments":{}`, "")
}

// works reports whether calls of a server are answered.
func (c *client) works(server string) bool {
	return strings.Contains(c.tool(server).Raw, `"got":`)
}

// fails checks that a call fails because of a server, and names it.
func fails(t *testing.T, a said, server string) {
	t.Helper()
	if d := denialOf(t, a); d.Code != "upstream_failed" || !strings.Contains(a.Raw, `upstream \"`+server+`\"`) {
		t.Errorf("a call of %s is answered with %.300s", server, a.Raw)
	}
}

// quick checks that calls of a server that is well take no time.
func quick(t *testing.T, c *client, server string) {
	t.Helper()
	for range 5 {
		begun := time.Now()
		if !c.works(server) {
			t.Errorf("a call of %s does not work", server)
		}
		if took := time.Since(begun); took > prompt {
			t.Errorf("a call of %s took %v", server, took)
		}
	}
}

// ward is a gateway before a server that falls ill, and one that does not.
func ward(t *testing.T, ill *proxy.Upstream) (a, b *client) {
	t.Helper()
	well := &script{Tools: [][]byte{plain("echo")}}
	w := start(t, map[string]string{"scout": caller}, ill, well.over(t, "well", "json"))
	a, b = w.client("scout"), w.client("scout")
	return a, b
}

// TestRecoveryCall: a call that a server fails says so, is never repeated, and
// holds nobody else up.
func TestRecoveryCall(t *testing.T) {
	for ill := range illnesses() {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", ill, modern), func(t *testing.T) {
				t.Parallel()
				h := newHost(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
				a, b := ward(t, h.upstream("bad"))
				if !modern {
					a.initialize("{}")
				}
				if !a.works("bad") || !b.works("bad") || !b.works("well") {
					t.Fatal("it did not work from the start")
				}
				before := h.asked.Load()
				h.suffer(ill + " tools/call")
				answer := make(chan said)
				go func() { answer <- a.tool("bad") }()
				quick(t, b, "well")
				if got := <-answer; ill == "refuse" && got.Error == nil || ill != "refuse" && got.Error != nil {
					t.Errorf("%.300s", got.Raw)
				} else if ill != "refuse" {
					fails(t, got, "bad")
				}
				if n := h.asked.Load() - before; n != 1 {
					t.Errorf("one call was sent %d times", n)
				}
				h.suffer("")
				eventually(t, recovery, "recovery", func() bool { return a.works("bad") })
			})
		}
	}
}

// TestRecoveryRestart: a server that comes back, or forgets its sessions, is
// spoken to again; a call that it cannot have begun is made once it is.
func TestRecoveryRestart(t *testing.T) {
	for _, modern := range []bool{false, true} {
		for name, befall := range map[string]func(h *host){
			"restarted": func(h *host) { h.stop(); h.forget(); h.start() },
			"forgets":   func(h *host) { h.forget() },
		} {
			t.Run(fmt.Sprintf("%s/%v", name, modern), func(t *testing.T) {
				t.Parallel()
				h := newHost(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
				a, b := ward(t, h.upstream("bad"))
				a.initialize("{}")
				for range 5 {
					eventually(t, recovery, "it works", func() bool { return a.works("bad") })
					before := h.deeds.Load()
					befall(h)
					eventually(t, recovery, "it works again", func() bool { return a.works("bad") })
					if n := h.deeds.Load() - before; n != 1 {
						t.Errorf("%d calls were executed of the one that worked", n)
					}
					quick(t, b, "well")
				}
			})
		}
	}
}

// TestRecoveryDown: a server that is not there, or is not who it should be, is
// named; it is used when it is there.
func TestRecoveryDown(t *testing.T) {
	h := newHost(t, script{Tools: [][]byte{plain("echo")}})
	h.stop()
	a, b := ward(t, h.upstream("bad"))
	a.initialize("{}")
	b.initialize("{}")
	fails(t, a.tool("bad"), "bad")
	quick(t, b, "well")
	h.start()
	eventually(t, recovery, "recovery", func() bool { return a.works("bad") })

	secure := httptest.NewUnstartedServer(h)
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // it is to fail
	secure.StartTLS()
	t.Cleanup(secure.Close)
	a, b = ward(t, &proxy.Upstream{Name: "bad", Prefix: "bad", Open: dialling("bad", secure.URL)})
	a.initialize("{}")
	before := h.deeds.Load()
	eventually(t, recovery, "said why", func() bool {
		said := a.tool("bad")
		fails(t, said, "bad")
		return strings.Contains(said.Raw, "shows no certificate that can be trusted")
	})
	quick(t, b, "well")
	if h.deeds.Load() != before {
		t.Error("a server that cannot be trusted was called")
	}
}

// cold are the ways in which a server may keep everyone waiting from the start.
func cold(t *testing.T) map[string]func(modern bool) (ill *proxy.Upstream, heal func()) {
	web := func(ill string) func(bool) (*proxy.Upstream, func()) {
		return func(modern bool) (*proxy.Upstream, func()) {
			h := newHost(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
			h.suffer(ill)
			return h.upstream("bad"), func() { h.suffer("") }
		}
	}
	return map[string]func(bool) (*proxy.Upstream, func()){
		"connect": func(modern bool) (*proxy.Upstream, func()) {
			h := newHost(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
			well := make(chan struct{})
			u := h.upstream("bad")
			u.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				dial := func(ctx context.Context, network, address string) (net.Conn, error) {
					select {
					case <-well:
						return new(net.Dialer).DialContext(ctx, network, address)
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}
				return upstream.Dial(ctx, upstream.Endpoint{Name: "bad", URL: "http://" + h.addr, Dial: dial}, upstream.Options{Client: p.Client, Events: p.Events})
			}
			return u, func() { close(well) }
		},
		"down": func(modern bool) (*proxy.Upstream, func()) {
			h := newHost(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
			h.stop()
			return h.upstream("bad"), h.start
		},
		"everything": web("hang"),
		"discover":   web("hang server/discover"),
		"initialize": web("hang initialize"),
		"list":       web("hang tools/list"),
		"broken":     web("broken"),
		"crash": func(modern bool) (*proxy.Upstream, func()) {
			c := newChild(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
			c.suffer("crash")
			return c.upstream(), func() { c.suffer("") }
		},
		"flap": func(modern bool) (*proxy.Upstream, func()) {
			c := newChild(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
			c.suffer("die tools/list")
			return c.upstream(), func() { c.suffer("") }
		},
	}
}

// TestRecoveryCold: a server that hangs or is down from the start takes nobody
// else's time, and its tools appear once it is well, without being asked for.
func TestRecoveryCold(t *testing.T) {
	for name, prepare := range cold(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ill, heal := prepare(name == "discover" || name == "down" || name == "flap")
			a, b := ward(t, ill)
			begun := time.Now()
			quickOnce := a.works("well")
			if took := time.Since(begun); !quickOnce || took > prompt {
				t.Errorf("the first call of the server that is well took %v, works: %v", took, quickOnce)
			}
			begun = time.Now()
			b.initialize("{}")
			if took := time.Since(begun); took > patience {
				t.Errorf("initialize took %v", took)
			}
			begun = time.Now()
			if names := toolNames(t, b.request("tools/list", "{}")); !slices.Equal(names, []string{"well__echo"}) {
				t.Errorf("shown are %v", names)
			}
			if took := time.Since(begun); took > patience {
				t.Errorf("the list took %v", took)
			}
			quick(t, b, "well")
			fails(t, a.tool("bad"), "bad")
			events := b.listen()
			heal()
			select {
			case event := <-events:
				if !strings.Contains(event, "notifications/tools/list_changed") {
					t.Errorf("heard %s", event)
				}
			case <-time.After(recovery + patience):
				t.Error("nobody says that the tools have changed")
			}
			eventually(t, recovery, "recovery", func() bool { return a.works("bad") })
			if names := toolNames(t, b.request("tools/list", "{}")); !slices.Equal(names, []string{"bad__echo", "well__echo"}) {
				t.Errorf("shown are %v in the end", names)
			}
		})
	}
}

// listen opens the stream of a session, and hands on what comes on it.
func (c *client) listen() <-chan string {
	c.w.t.Helper()
	r, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodGet, c.w.http.URL+"/mcp", nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Mcp-Session-Id", c.session)
	resp, err := c.w.http.Client().Do(r)
	if err != nil {
		c.w.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		c.w.t.Fatal(resp.Status)
	}
	events := make(chan string, 100)
	go func() {
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				events <- data
			}
		}
	}()
	return events
}

// TestRecoveryProcess: the same as of servers over HTTP, with a process.
func TestRecoveryProcess(t *testing.T) {
	for _, ill := range []string{"die", "mute", "garbage", "huge", "killed"} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", ill, modern), func(t *testing.T) {
				t.Parallel()
				p := newChild(t, script{Modern: modern, Tools: [][]byte{plain("echo")}})
				a, b := ward(t, p.upstream())
				if !modern {
					a.initialize("{}")
				}
				if !a.works("bad") || !b.works("bad") || !b.works("well") {
					t.Fatal("it did not work from the start")
				}
				before := p.executed()
				if p.suffer(ill + " tools/call"); ill == "killed" {
					p.suffer("mute tools/call")
				}
				answer := make(chan said)
				go func() { answer <- a.tool("bad") }()
				if ill == "killed" { // with the call in its hands
					eventually(t, prompt, "the call", func() bool { return p.executed() > before })
					p.kill()
				}
				quick(t, b, "well")
				fails(t, <-answer, "bad")
				if n := p.executed() - before; n != 1 {
					t.Errorf("one call was executed %d times", n)
				}
				p.suffer("")
				eventually(t, recovery, "recovery", func() bool { return a.works("bad") })
				p.kill() // between calls
				before = p.executed()
				eventually(t, recovery, "recovery from a kill", func() bool { return a.works("bad") })
				if n := p.executed() - before; n != 1 {
					t.Errorf("one call that worked was executed %d times", n)
				}
			})
		}
	}
}

// TestRecoveryFlapping: a process that ends again and again is not started again
// and again for whoever asks.
func TestRecoveryFlapping(t *testing.T) {
	p := newChild(t, script{Tools: [][]byte{plain("echo")}})
	a, b := ward(t, p.upstream())
	a.initialize("{}")
	if !a.works("bad") || !b.works("well") {
		t.Fatal("it did not work from the start")
	}
	p.suffer("die tools/call")
	calls, begun := 0, time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for ; time.Since(begun) < 4*time.Second; calls++ {
		fails(t, a.tool("bad"), "bad")
		quick(t, b, "well")
		<-tick.C
	}
	const most = 12 // with waits that double up to a second and a half
	if n := len(p.pids()); n > most {
		t.Errorf("%d calls started %d processes", calls, n)
	}
	if n := p.executed(); n > calls+1 {
		t.Errorf("%d calls were executed %d times", calls, n)
	}
	p.suffer("")
	eventually(t, recovery, "recovery", func() bool { return a.works("bad") })
}
