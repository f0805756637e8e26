package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capgate/agents"
	"capgate/proxy"
	"capgate/upstream"
)

// slowTaker takes nothing of what it is sent behind the first message until it is woken.
type slowTaker struct {
	taker
	holds, wake chan struct{}
	once        sync.Once
}

func (w *slowTaker) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "data:") {
		w.once.Do(func() { close(w.holds); <-w.wake })
	}
	return w.taker.Write(p)
}

// TestRevokedWhileNotTaken: an agent that does not take what it is sent is sent no more of it once its token is
// revoked, neither on the stream of a request nor on that of a session.
func TestRevokedWhileNotTaken(t *testing.T) {
	for _, name := range []string{"call", "session", "kept"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{}
				s.reply = func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
					for i := range 3 {
						sink.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%q,"progress":%d}`, r.Token, i))
					}
					return upstream.Answer{Result: []byte(`{"content":[{"type":"text","text":"the answer"}]}`)}, nil
				}
				up := files(t, s)
				up.MayAsk = []string{"elicitation"}
				w := start(t, map[string]string{"scout": reader}, up)
				c := w.client("scout")
				c.initialize(`{"elicitation":{}}`)
				c.request("tools/list", "{}")
				out := &slowTaker{taker: taker{header: http.Header{}}, holds: make(chan struct{}), wake: make(chan struct{})}
				body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"},"_meta":{"progressToken":1}}}`
				method := http.MethodPost
				if name == "session" {
					method, body = http.MethodGet, ""
					for range 3 {
						go func() { _, _ = s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"?"}`)) }()
					}
					synctest.Wait()
				}
				r, err := http.NewRequestWithContext(t.Context(), method, "http://localhost/mcp", strings.NewReader(body))
				must(t, err)
				r.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Mcp-Session-Id": {c.session}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
				ended := make(chan struct{})
				go func() { w.server.ServeHTTP(out, r); close(ended) }()
				<-out.holds
				synctest.Wait()
				if name != "kept" {
					w.creds = new(agents.Credentials)
				}
				w.adopt()
				synctest.Wait()
				close(out.wake)
				<-ended
				got := out.text()
				want := map[string]int{"call": 2, "session": 1, "kept": 4}[name] // the second says that the token is revoked
				if n := strings.Count(got, "data:"); n != want || strings.Contains(got, "the answer") != (name == "kept") {
					t.Errorf("%d messages are sent: %s", n, got)
				}
			})
		})
	}
}

// TestQuestionOfBefore: a question that waits for its agent to listen is not put once its server is gone.
func TestQuestionOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w := start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		c.request("tools/list", "{}")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.newest().Events.Ask(ctx, "elicitation/create", []byte(`{"message":"which one?"}`)) }()
		s.newest().Events.Notify("notifications/message", []byte(`{"level":"info","data":"a log"}`))
		synctest.Wait()
		w.ups = nil
		w.adopt()
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		in := c.listen()
		var got string
		for one := soon(in); one != ""; one = soon(in) {
			got += one
		}
		if strings.Contains(got, "which one?") || strings.Contains(got, "a log") {
			t.Error(got)
		}
	})
}

// TestUpdateOfBefore: nor is an agent told of a resource that it may not read any more.
func TestUpdateOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"a"}]`}}
		up := files(t, s)
		w := start(t, map[string]string{"scout": fmt.Sprintf(notesReader, "*")}, up)
		c := w.client("scout")
		c.initialize(`{}`)
		c.request("resources/list", "{}")
		c.request("resources/subscribe", uriParams("notes:///a"))
		s.newest().Events.Notify("notifications/resources/updated", []byte(uriParams("notes:///a")))
		time.Sleep(time.Second)
		w.write("scout", fmt.Sprintf(notesReader, "b"))
		w.adopt()
		time.Sleep(time.Second)
		in := c.listen()
		var got string
		for one := soon(in); one != ""; one = soon(in) {
			got += one
		}
		if strings.Contains(got, "notes:///a") {
			t.Error(got)
		}
	})
}

// TestGoneAgentOfProcess: what runs for the agent of a process ends when its record is deleted, also at servers that
// agents share.
func TestGoneAgentOfProcess(t *testing.T) {
	for _, shared := range []bool{false, true} {
		for _, modern := range []bool{false, true} {
			t.Run(fmt.Sprint(shared, modern), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					_, up := endless(t)
					up.Shared = shared
					w := start(t, map[string]string{"scout": reader, "boss": reader}, up)
					in, feed := io.Pipe()
					out, sink := io.Pipe()
					ended, answer := make(chan error, 1), make(chan string, 1)
					go func() { ended <- w.server.Stdio(t.Context(), "agents/scout", in, sink); _ = sink.Close() }()
					go func() {
						for lines := bufio.NewScanner(out); lines.Scan(); {
							if strings.Contains(lines.Text(), `"id":2`) {
								answer <- lines.Text()
							}
						}
					}()
					meta := `,"_meta":{` + modernMeta + `}`
					if !modern {
						meta = ""
						fmt.Fprintln(feed, salute)
					}
					time.AfterFunc(time.Minute, func() {
						must(t, os.Remove(filepath.Join(w.dir, "scout.md")))
						w.adopt()
					})
					begun := time.Now()
					fmt.Fprintln(feed, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}`+meta+`}}`)
					got := <-answer
					if took := time.Since(begun); took > 2*time.Minute {
						t.Errorf("it goes on for %v: %s", took, got)
					}
					_ = feed.Close()
					must(t, <-ended)
				})
			})
		}
	}
}

// TestSkillReadMeanwhile: what a server serves of a skill is shown to who may see it when it comes, whether or not it is
// made up then.
func TestSkillReadMeanwhile(t *testing.T) {
	for _, madeUp := range []bool{false, true} {
		t.Run(fmt.Sprint(madeUp), func(t *testing.T) {
			const uri = "skill://files/daily/SKILL.md"
			s := newSkillServer(true, map[string]string{"skill://daily/SKILL.md": skillText("daily", "WebFetch(domain:example.com)", hiddenText)})
			if madeUp {
				s.list(`{"uri":"skill://daily/SKILL.md","frontmatter":{"name":"daily","description":"About daily."},"resources":"dynamic"}`)
			}
			granted := strings.Replace(anyReader, "capabilities:\n", "capabilities:\n  - net.get: { hosts: [example.com] }\n", 1)
			w := start(t, map[string]string{"scout": granted}, s.up(t))
			c := w.client("scout")
			until(t, "served", func() bool { return c.modern("resources/read", uriParams(uri), "{}").Error == nil })
			var once sync.Once
			s.answers(func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				once.Do(func() {
					w.write("scout", anyReader)
					w.adopt()
				})
				return s.read(ctx, r, sink)
			})
			if a := c.modern("resources/read", uriParams(uri), "{}"); a.Error == nil || strings.Contains(a.Raw, hiddenText) {
				t.Error(a.Raw)
			}
		})
	}
}

// TestAnswerOfBefore: what an agent answers a server goes up only if the call that it was asked in still may.
func TestAnswerOfBefore(t *testing.T) {
	for name, record := range map[string]string{
		"taken": strings.ReplaceAll(reader, "docs", "notes"),
		"kept":  strings.ReplaceAll(reader, "docs]", "docs, more]"),
	} {
		t.Run(name, func(t *testing.T) {
			s := questioner(false, "elicitation/create", `{"message":"?"}`)
			up := files(t, s)
			up.MayAsk = []string{"elicitation"}
			w := start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
			id := in.question()
			w.write("scout", record)
			w.adopt()
			if resp := c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept","content":{"x":"secret"}}}`); resp.StatusCode != http.StatusAccepted {
				t.Fatal(resp.StatusCode)
			}
			if a := in.next(); strings.Contains(a, "secret") != (name == "kept") {
				t.Error(a)
			}
		})
	}
}

// TestAnswerOfNoDecision: nor does the answer of a client go up for what a new policy has not decided on.
func TestAnswerOfNoDecision(t *testing.T) {
	for name, changes := range map[string]bool{"changed": true, "same": false} {
		t.Run(name, func(t *testing.T) {
			s := questioner(false, "elicitation/create", `{"message":"?"}`)
			s.lists = map[string]string{"prompts/list": `"prompts":[{"name":"p"}]`}
			asks := s.reply
			s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
				a, err := asks(ctx, r, sink)
				a.Result = bytes.Replace(a.Result, []byte("{"), []byte(`{"completion":{"values":[]},`), 1)
				return a, err
			}
			w := start(t, map[string]string{"scout": everything}, &proxy.Upstream{Name: "up", Prefix: "up", MayAsk: []string{"elicitation"}, Open: s.open})
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"up__p"},"argument":{"name":"a","value":"b"}}}`)
			id := in.question()
			if changes {
				w.adopt()
			}
			c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept","content":{"x":"secret"}}}`)
			if a := in.next(); strings.Contains(a, "secret") == changes {
				t.Error(a)
			}
		})
	}
}

// TestPanicOfProcess: a request of a process that panics ends neither the gateway nor what comes after it.
func TestPanicOfProcess(t *testing.T) {
	var once sync.Once
	s := &scripted{reply: func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		once.Do(func() { panic("of a test") })
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	p := w.process(t.Context(), "scout")
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"},"_meta":{` + modernMeta + `}}}`
	if got := p.say(call); !strings.Contains(got, `"code":-32603`) {
		t.Error(got)
	}
	if got := p.say(call); !strings.Contains(got, `"content":[]`) {
		t.Error(got)
	}
	p.close()
	must(t, <-p.ended)
}

// TestGoneAgentsAreForgotten: nothing is held of an agent whose record is gone, once it has no session any more.
func TestGoneAgentsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, map[string]string{"scout": reader, "boss": reader}, files(t, &scripted{}))
		for _, agent := range []string{"scout", "boss"} {
			c := w.client(agent)
			c.initialize("{}")
			c.request("tools/list", "{}")
		}
		must(t, os.Remove(filepath.Join(w.dir, "scout.md")))
		w.adopt()
		time.Sleep(10 * time.Minute)
		if !w.server.Holds("scout") {
			t.Error("its session has ended")
		}
		time.Sleep(time.Hour)
		if w.server.Holds("scout") || !w.server.Holds("boss") {
			t.Errorf("held are %t and %t", w.server.Holds("scout"), w.server.Holds("boss"))
		}
		w.write("scout", reader)
		w.adopt()
		if n := len(toolNames(t, w.client("scout").modern("tools/list", "{}", "{}"))); n != 1 {
			t.Errorf("%d tools", n)
		}
	})
}

// TestPanicOfStream: nothing is written for a request any more once it has ended by a panic.
func TestPanicOfStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{reply: func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			sink.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%q,"progress":1}`, r.Token))
			panic("of a test")
		}}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"},"_meta":{"progressToken":1}}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
		must(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Mcp-Session-Id": {c.session}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
		out := &taker{header: http.Header{}}
		func() {
			defer func() { _ = recover() }()
			w.server.ServeHTTP(out, r)
		}()
		ended := out.text()
		time.Sleep(5 * time.Minute)
		if got := out.text(); got != ended {
			t.Errorf("written after its end is %q", strings.TrimPrefix(got, ended))
		}
	})
}
