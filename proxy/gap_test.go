package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// soon is what a client is told within a while, "" for nothing.
func soon(in <-chan string) string {
	select {
	case got := <-in:
		return got
	case <-time.After(5 * time.Second):
		return ""
	}
}

// TestEditDuringLook: an edit that comes after the last client has gone, while lists are made
// for it, is missed like any other.
func TestEditDuringLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `,` + tool("write_file", "path", "content") + `]`}}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		first := w.client("scout")
		first.initialize("{}")
		first.request("tools/list", "{}")
		rest := func() { until(t, "at rest", func() bool { return !w.server.Looks("scout") }) }
		rest()
		slow := s.takes
		slow(500 * time.Millisecond)
		n := s.asked("tools/list")
		s.first().Events.Notify("notifications/tools/list_changed", nil)
		until(t, "asked", func() bool { return s.asked("tools/list") > n })
		first.delete()
		w.write("scout", readerAndWriter)
		w.adopt()
		rest()
		slow(0)
		c := w.client("scout")
		c.initialize("{}")
		in := c.listen()
		if n := len(toolNames(t, c.request("tools/list", "{}"))); n != 2 {
			t.Fatal(n)
		}
		w.write("scout", reader)
		w.adopt()
		if soon(in) == "" {
			t.Error("nobody is told")
		}
	})
}

// TestUnkept: a tool whose pin could not be kept is there once it can, whatever else of the
// server is judged meanwhile.
func TestUnkept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, kept := new(clock), &drawer{}
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`, "prompts/list": `"prompts":[{"name":"p","description":"hidden \u200b\u202e text"}]`}}
		w := startWith(t, proxy.Options{Pins: kept, Clock: k.now}, map[string]string{"scout": everything}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		c.listen()
		c.request("tools/list", "{}")
		rest := func() { until(t, "at rest", func() bool { return !w.server.Looks("scout") }) }
		rest()
		broken := func(err error) {
			kept.mu.Lock()
			kept.write = err
			kept.mu.Unlock()
		}
		broken(errors.New("no room"))
		n := s.asked("tools/list")
		s.relist("tools/list", `"tools":[`+tool("read_text_file", "path")+`,`+tool("read_media_file", "path")+`]`)
		s.first().Events.Notify("notifications/tools/list_changed", nil)
		until(t, "asked", func() bool { return s.asked("tools/list") > n })
		rest()
		broken(nil)
		k.forward(40 * time.Second)
		w.server.Recheck()
		rest()
		if n := len(toolNames(t, c.request("tools/list", "{}"))); n != 2 {
			t.Error(n)
		}
	})
}

// TestDoubtWhileAged: a server that is listened to once more, while a list that it had told of
// before is fetched, is asked for it after that.
func TestDoubtWhileAged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}}
		k := new(clock)
		w := startWith(t, proxy.Options{Clock: k.now}, map[string]string{"scout": everything}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		in := c.listen()
		c.request("tools/list", "{}")
		until(t, "at rest", func() bool { return !w.server.Looks("scout") })
		s.takes(1200 * time.Millisecond)
		k.forward(61 * time.Second)
		n := s.asked("tools/list")
		listed := make(chan said, 1)
		go func() { listed <- c.request("tools/list", "{}") }()
		until(t, "asked", func() bool { return s.asked("tools/list") > n })
		k.forward(time.Millisecond)
		s.relist("tools/list", `"tools":[`+tool("read_text_file", "path")+`,`+tool("read_media_file", "path")+`]`)
		s.first().Events.Notify(upstream.HeardAgain, nil)
		<-listed
		if soon(in) == "" {
			t.Error("nobody is told")
		}
	})
}

// TestWatchedInAGap: who watches something of a server is told to look again once the server
// is heard again.
func TestWatchedInAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"note:///a","name":"a"}]`}}
		w := start(t, map[string]string{"scout": everything}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		in := c.listen()
		c.request("resources/list", "{}")
		if a := c.request("resources/subscribe", `{"uri":"note:///a"}`); a.Error != nil {
			t.Fatal(a.Raw)
		}
		s.first().Events.Notify(upstream.HeardAgain, nil)
		if got := soon(in); !strings.Contains(got, "note:///a") {
			t.Errorf("told %q", got)
		}
	})
}

// TestSkillInAGap: a file of a skill that changes while its server tells of nothing is told of
// once the server does.
func TestSkillInAGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const uri = "skill://one/more/a.txt"
		s := newSkillServer(true, map[string]string{"skill://one/SKILL.md": skillText("one", "", "One.\n"), uri: "a"})
		end, asked := make(chan struct{}), new(atomic.Int64)
		s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			if r.Method != "subscriptions/listen" {
				return s.read(ctx, r, sink)
			}
			asked.Add(1)
			sink.Notify("notifications/subscriptions/acknowledged", agreed(r))
			select {
			case <-end:
				return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
			case <-ctx.Done():
				return upstream.Answer{}, ctx.Err()
			}
		}
		w := start(t, map[string]string{"scout": anyReader}, s.up(t))
		c := w.client("scout")
		c.initialize("{}")
		in := c.listen()
		listSkills(t, c.request)
		const shown = "skill://files/one/more/a.txt"
		if a := c.request("resources/subscribe", uriParams(shown)); a.Error != nil {
			t.Fatal(a.Raw)
		}
		reaches(t, asked, 1, "asked at first")
		s.mu.Lock()
		s.files[uri] = "another"
		s.mu.Unlock()
		s.list(s.entries()...)
		end <- struct{}{}
		for got := soon(in); !strings.Contains(got, shown); got = soon(in) {
			if got == "" {
				t.Fatal("nobody is told")
			}
		}
	})
}

// tellsFirst is a server that tells of what it is asked for before it answers. One it refuses.
func tellsFirst(modern bool, tell func(uri string)) func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
	return func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		text := string(r.Params)
		if r.Method != "resources/subscribe" && r.Method != "subscriptions/listen" {
			return upstream.Answer{Result: []byte(`{"resultType":"complete"}`)}, nil
		}
		for _, uri := range []string{"note:///a", "note:///no"} {
			if strings.Contains(text, uri) || strings.Contains(text, "note:///b") {
				tell(uri + "/1")
			}
		}
		switch {
		case strings.Contains(text, "note:///no"):
			return upstream.Answer{Error: []byte(`{"code":-32602,"message":"gone"}`)}, nil
		case !modern:
			return upstream.Answer{Result: []byte(`{}`)}, nil
		}
		sink.Notify("notifications/subscriptions/acknowledged", agreed(r))
		<-ctx.Done()
		return upstream.Answer{}, ctx.Err()
	}
}

// TestToldWhileSubscribing: what changes before the server has answered is told, in either era and
// on either side. What is refused then is watched no more, and leaves what there was.
func TestToldWhileSubscribing(t *testing.T) {
	for _, modern := range []bool{false, true} {
		s := &scripted{lists: map[string]string{"resources/list": `"resources":[]`, "tools/list": `"tools":[]`}}
		if modern {
			s.info = upstream.Info{Modern: true, Version: "2026-07-28"}
		}
		tell := func(uri string) {
			sink := s.first().Events
			sink.Notify("notifications/resources/updated", []byte(uriParams(uri)))
		}
		s.reply = tellsFirst(modern, tell)
		w := start(t, map[string]string{"scout": everything2}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		session := c.open(t.Context(), t, http.MethodGet, "")
		c.request("resources/list", "{}") // so that its skills are known
		if a := c.request("resources/subscribe", uriParams("note:///a")); a.Error != nil {
			t.Fatal(a.Raw)
		}
		session.updated(t, "note:///a/1")
		if a := c.request("resources/subscribe", uriParams("note:///no")); a.Error == nil {
			t.Fatal(a.Raw)
		}
		session.updated(t, "note:///no/1")
		listener := w.client("scout").open(
			t.Context(), t, http.MethodPost,
			`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["note:///a","note:///no","note:///b"]},"_meta":{`+modernMeta+`}}}`,
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		if ack := listener.next(); !strings.Contains(ack, `["note:///a","note:///b"]`) {
			t.Errorf("agreed is %s", ack)
		}
		tell("note:///no/2")
		tell("note:///a/2")
		for _, in := range []*events{session, listener} {
			for seen := ""; !strings.Contains(seen, "note:///a/2"); {
				got := in.next()
				if seen += got; got == "" || strings.Contains(got, "note:///no/2") {
					t.Fatalf("told is %q", seen)
				}
			}
		}
	}
}

// TestManyChanges: whoever watches many resources is told of each, however many change at
// once, and of one that changes often once.
func TestManyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 900
		var list []string
		for i := range many {
			list = append(list, fmt.Sprintf(`{"uri":"note:///r%d","name":"r%d"}`, i, i))
		}
		s := &scripted{lists: map[string]string{"resources/list": `"resources":[` + strings.Join(list, ",") + `]`, "tools/list": `"tools":[]`}}
		w := startWith(t, proxy.Options{Limits: proxy.Limits{Calls: 100000}}, map[string]string{"scout": everything}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		for i := range many {
			if a := c.request("resources/subscribe", fmt.Sprintf(`{"uri":"note:///r%d"}`, i)); a.Error != nil {
				t.Fatal(a.Raw)
			}
		}
		for range 2 { // nobody takes it yet
			for i := range many {
				s.first().Events.Notify("notifications/resources/updated", fmt.Appendf(nil, `{"uri":"note:///r%d"}`, i))
			}
		}
		in, told := c.listen(), 0
		for deadline := time.After(10 * time.Second); told < many; {
			select {
			case got := <-in:
				if strings.Contains(got, "updated") {
					told++
				}
			case <-deadline:
				t.Fatalf("told of %d", told)
			}
		}
		select {
		case got := <-in:
			t.Errorf("told twice: %s", got)
		case <-time.After(200 * time.Millisecond):
		}
	})
}

// process is an agent at the other end of pipes.
type process struct {
	say   func(line string) string // and its answer
	tell  func(line string)        // without waiting for one
	hear  func() string            // the next line, "" when there is none any more
	close func()
	leave func() // reads nothing more
	ended chan error
}

func (w *world) process(ctx context.Context, agent string) process {
	in, feed := io.Pipe()
	out, sink := io.Pipe()
	p := process{ended: make(chan error, 1), close: func() { _ = feed.Close() }, leave: func() { _ = out.Close() }}
	go func() {
		err := w.server.Stdio(ctx, "agents/"+agent, in, sink)
		_ = sink.Close()
		p.ended <- err
	}()
	lines := bufio.NewScanner(out)
	p.hear = func() string {
		if !lines.Scan() {
			return ""
		}
		return lines.Text()
	}
	p.tell = func(line string) { fmt.Fprintln(feed, line) }
	p.say = func(line string) string {
		p.tell(line)
		if !strings.Contains(line, `"id"`) {
			return ""
		}
		return p.hear()
	}
	return p
}

const salute = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// TestSessionOfBefore: what is being answered when the client begins anew over stdio is answered all the same.
func TestSessionOfBefore(t *testing.T) {
	begun, ends := make(chan struct{}), make(chan struct{})
	s := &scripted{reply: func(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		begun <- struct{}{}
		<-ctx.Done()
		<-ends
		return upstream.Answer{}, ctx.Err()
	}}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	p := w.process(t.Context(), "scout")
	p.say(salute)
	for id := 2; id <= 4; id++ {
		p.tell(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"%s/docs/a"}}}`, id, w.root))
		<-begun
	}
	p.tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`) // for which nobody waits
	p.tell(strings.Replace(salute, `"id":1`, `"id":3`, 1))                                  // as one of before
	if first := p.hear(); !strings.Contains(first, `"id":2,"error":{"code":-32603,"message":"the session has begun anew; `) {
		t.Fatal(first)
	}
	close(ends)
	if then := p.hear(); !strings.Contains(then, `"id":3,"result"`) {
		t.Error(then)
	}
	if again := p.say(`{"jsonrpc":"2.0","id":2,"method":"ping"}`); !strings.Contains(again, `"id":2,"result":{}`) {
		t.Error(again)
	}
	p.close()
	must(t, <-p.ended)
}

// TestQuietProcess: a client over stdio may say nothing for as long as it likes.
func TestQuietProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := startWith(t, proxy.Options{Limits: proxy.Limits{Idle: 100 * time.Millisecond}}, map[string]string{"scout": reader}, files(t, &scripted{}))
		p := w.process(t.Context(), "scout")
		p.say(salute)
		<-time.After(time.Second)
		for id := 2; id < 5; id++ {
			if got := p.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id)); !strings.Contains(got, `"result":{}`) {
				t.Error(got)
			}
		}
		p.close()
		<-p.ended
	})
}

// TestListenThatEnds: a process ends at once when its client does, also one that listens, which is
// told that nothing more comes.
func TestListenThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}))
		p := w.process(t.Context(), "scout")
		got := p.say(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`)
		if !strings.Contains(got, "acknowledged") {
			t.Error(got)
		}
		begun := time.Now()
		p.close()
		if got := p.hear(); !strings.Contains(got, `"resultType":"complete"`) {
			t.Errorf("at last it is told %q", got)
		}
		<-p.ended
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("took %s", took)
		}
	})
}
