package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"capgate/agents"
	"capgate/proxy"
)

// clock is one that a test sets forward.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) forward(d time.Duration) { c.ahead.Add(int64(d)) }

// traces is what sessions may leave behind in the process.
type traces struct{ goroutines, files int }

func tracesNow(t *testing.T) traces {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		if os.Getenv("CAPGATE_REQUIRE") == "all" {
			t.Fatalf("no /proc: %v", err)
		}
		t.Skipf("no /proc: %v", err)
	}
	return traces{runtime.NumGoroutine(), len(entries)}
}

// leaving is a way in which sessions end.
type leaving struct {
	name    string
	streams bool // some have their streams open until then
	end     func(w *world, k *clock, open []*client)
}

const idle = time.Minute

func leavings() []leaving {
	return []leaving{
		{"deleted", true, func(w *world, _ *clock, open []*client) {
			for _, c := range open {
				if status := c.delete(); status != http.StatusNoContent {
					w.t.Errorf("DELETE is answered with %d", status)
				}
			}
		}},
		{"idle", false, func(w *world, k *clock, open []*client) {
			k.forward(idle + time.Second)
			c := w.client("scout")
			c.initialize("{}")
			c.delete()
			if len(open) == 0 {
				return
			}
			if a := open[0].request("tools/list", "{}"); a.Status != http.StatusNotFound {
				w.t.Errorf("a session that was idle answers: %s", a.Raw)
			}
		}},
		{"vanished", true, func(w *world, k *clock, _ []*client) {
			w.http.CloseClientConnections()
			w.http.Client().CloseIdleConnections()
			k.forward(idle + time.Second)
			c := w.client("scout")
			c.initialize("{}")
			c.delete()
		}},
	}
}

// delete ends the session.
func (c *client) delete() int {
	c.w.t.Helper()
	r, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodDelete, c.w.http.URL+"/mcp", nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Mcp-Session-Id", c.session)
	resp, err := c.w.http.Client().Do(r)
	if err != nil {
		c.w.t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// crew is sessions that are opened and end, some at a time.
type crew struct {
	total, batch int
	ups          []*proxy.Upstream
	gone         func() bool // nothing is left at the servers
}

// session opens one, and uses it.
func (w *world) session(stream bool) *client {
	w.t.Helper()
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	if !c.works("up") {
		w.t.Fatal("a call does not work")
	}
	if stream {
		c.listen()
	}
	return c
}

// leaves checks that what sessions needed goes when they go.
func (k crew) leaves(t *testing.T, how leaving) {
	t.Helper()
	now := new(clock)
	w := startWith(t, proxy.Options{Clock: now.now, Limits: proxy.Limits{Idle: idle, Calls: 1 << 30}}, map[string]string{"scout": caller}, k.ups...)
	how.end(w, now, []*client{w.session(how.streams)}) // the first time, some things come to stay
	settled := func() traces {
		if !k.gone() {
			how.end(w, now, nil) // again, for a stream that broke without notice before
		}
		w.http.Client().CloseIdleConnections()
		return tracesNow(t)
	}
	var before traces
	eventually(t, 30*time.Second, "rest", func() bool {
		last := before
		before = settled()
		return before == last && k.gone()
	})
	for done := 0; done < k.total; done += k.batch {
		var open []*client
		for i := range k.batch {
			const streams = 20 // one of so many has its stream open
			open = append(open, w.session(how.streams && i%streams == 0))
		}
		how.end(w, now, open)
	}
	const slack = 8 // idle connections, and goroutines that are about to end
	var after traces
	eventually(t, 30*time.Second, "an end", func() bool {
		after = settled()
		return after.goroutines <= before.goroutines+slack && after.files <= before.files+slack && k.gone()
	})
	t.Logf("%d sessions: %+v before, %+v after", k.total, before, after)
}

// TestLeak: sessions leave nothing behind, however they end.
func TestLeak(t *testing.T) {
	many, some := 2000, 200
	if testing.Short() {
		many, some = 200, 20
	}
	for _, how := range leavings() {
		t.Run("shared/"+how.name, func(t *testing.T) {
			s := &script{Tools: [][]byte{plain("echo")}}
			crew{many, min(many, 500), []*proxy.Upstream{s.over(t, "up", "json")}, func() bool { return true }}.leaves(t, how)
		})
		t.Run("own/"+how.name, func(t *testing.T) {
			h := newHost(t, script{Tools: [][]byte{plain("echo")}})
			u := h.upstream("up")
			u.MayAsk = []string{"elicitation"}
			crew{many, 200, []*proxy.Upstream{u}, func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return h.opened > 0 && h.opened == h.closed
			}}.leaves(t, how)
			if h.opened < many {
				t.Errorf("the server had %d sessions, want %d", h.opened, many)
			}
		})
		t.Run("process/"+how.name, func(t *testing.T) {
			p := newChild(t, script{Tools: [][]byte{plain("echo")}})
			u := p.upstream()
			u.Name, u.Prefix, u.MayAsk = "up", "up", []string{"elicitation"}
			crew{some, 20, []*proxy.Upstream{u}, func() bool { return p.alive() == 0 }}.leaves(t, how)
			if n := len(p.pids()); n < some {
				t.Errorf("there were %d processes, want %d", n, some)
			}
		})
	}
}

// alive is how many of the processes there still are.
func (c *child) alive() (n int) {
	c.t.Helper()
	for _, pid := range c.pids() {
		if !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			n++
		}
	}
	return n
}

// TestLeakUnnoticed: a session ends when it is idle, also if its agent never
// comes back and nobody else comes either.
func TestLeakUnnoticed(t *testing.T) {
	p := newChild(t, script{Tools: [][]byte{plain("echo")}})
	u := p.upstream()
	u.Name, u.Prefix, u.MayAsk = "up", "up", []string{"elicitation"}
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Idle: time.Second}}, map[string]string{"scout": caller}, u)
	for range 5 {
		w.session(false)
	}
	eventually(t, 20*time.Second, "the servers of sessions that nobody uses end", func() bool { return p.alive() == 0 })
}

// TestLeakClose: a gateway that closes leaves nothing, also of servers that hang.
func TestLeakClose(t *testing.T) {
	before := tracesNow(t)
	p := newChild(t, script{Tools: [][]byte{plain("echo")}})
	u := p.upstream()
	p.suffer("mute tools/call")
	h := newHost(t, script{Tools: [][]byte{plain("echo")}})
	h.suffer("hang")
	server, err := proxy.New(context.WithoutCancel(t.Context()), proxy.Options{Events: new(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), root: realDir(t), ups: []*proxy.Upstream{u, h.upstream("web")}, tokens: map[string]string{}, events: new(recorder), creds: new(agents.Credentials), server: server}
	w.write("scout", caller)
	w.adopt()
	w.http = front(t, server)
	c := w.client("scout")
	c.initialize("{}")
	c.listen()
	done := make(chan said)
	go func() { done <- c.tool("bad") }()
	eventually(t, patience, "the call", func() bool { return p.executed() > 0 })
	begun := time.Now()
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > 6*time.Second {
		t.Errorf("to close took %v", took)
	}
	if a := <-done; a.Error == nil { // it may also have been cancelled with its session
		fails(t, a, "bad")
	}
	w.http.Close()
	w.http.Client().CloseIdleConnections()
	h.suffer("")
	h.stop()
	var after traces
	eventually(t, 5*time.Second, "an end", func() bool {
		after = tracesNow(t)
		return after.goroutines <= before.goroutines && after.files <= before.files && p.alive() == 0
	})
	if t.Failed() {
		t.Logf("%+v before, %+v after", before, after)
	}
	h.start() // for what ends the test
}

// TestAbilitiesKept: of what a client says that it can do no more is kept than it can be
// asked for.
func TestAbilitiesKept(t *testing.T) {
	w := start(t, map[string]string{"scout": reader})
	used := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	const sessions, most = 200, 64 << 10
	others := `{"experimental":{"x":[1` + strings.Repeat(",1", 30<<10) + `]}}`
	w.client("scout").initialize(others)
	before := used()
	for range sessions {
		w.client("scout").initialize(others)
	}
	if each := (int64(used()) - int64(before)) / sessions; each > most {
		t.Errorf("a session takes %d bytes", each)
	}
	resp := w.client("scout").post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"a","version":"1"},` +
		`"capabilities":{"sampling":{"x":"` + strings.Repeat("x", 8<<10) + `"}}}}`)
	if a := take(t, resp); a.Error == nil {
		t.Errorf("kept: %s", a.Raw)
	}
}
