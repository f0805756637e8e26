package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/proxy"
	"capgate/upstream"
	"capgate/wire"
)

// opening reports whether the clock is looked at to see how old is what an agent has come back with.
func opening() bool {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.HasSuffix(frame.Function, "(*sealer).open") {
			return true
		}
	}
	return false
}

// TestAnswerOfBeforeWhileParked: what an agent comes back with to a parked call goes up only if that may by then,
// whether another policy comes right behind the decision or when the call has been found.
func TestAnswerOfBeforeWhileParked(t *testing.T) {
	for name, record := range map[string]string{
		"taken": strings.ReplaceAll(reader, "docs", "notes"),
		"kept":  strings.ReplaceAll(reader, "docs]", "docs, more]"),
	} {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprint(name, found), func(t *testing.T) {
				heard := make(chan string, 1)
				s := &scripted{reply: func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
					got, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
					heard <- string(got)
					return upstream.Answer{Result: []byte(`{"content":[]}`)}, err
				}}
				up := files(t, s)
				up.MayAsk = []string{"elicitation"}
				var w *world
				var armed atomic.Bool
				edit := func() {
					if armed.Swap(false) {
						w.write("scout", record)
						w.adopt()
					}
				}
				w = startWith(t, proxy.Options{Clock: func() time.Time {
					if armed.Load() && opening() {
						edit()
					}
					return time.Now()
				}}, map[string]string{"scout": reader}, up)
				c, able := w.client("scout"), `{"elicitation":{}}`
				args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
				in := inputOf(t, c.modern("tools/call", `{`+args+`}`, able))
				armed.Store(true)
				w.events.before = func(e *guardrail.Event) {
					if e.Decision == "allow" && !found {
						edit()
					}
				}
				c.modern("tools/call", `{`+args+`,"inputResponses":{"ask-1":{"action":"accept","content":{"x":"secret"}}},"requestState":"`+in.RequestState+`"}`, able)
				if got := <-heard; strings.Contains(got, "secret") != (name == "kept") || armed.Load() {
					t.Errorf("the server hears %q", got)
				}
			})
		}
	}
}

// TestAnswerOfBeforeOnItsWay: what an agent answers a server, and what waits for a token then, goes up only if
// what it was asked in may still.
func TestAnswerOfBeforeOnItsWay(t *testing.T) {
	for _, name := range []string{"taken", "kept"} {
		t.Run(name, func(t *testing.T) {
			var w *world
			var armed atomic.Bool
			heard := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				m, err := wire.Parse(body)
				if err != nil { // who wants to listen
					rw.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				method, _ := m.Root().Get("method")
				id, _ := m.Root().Get("id")
				result := `{"tools":[` + tool("read_text_file", "path") + `]}`
				switch {
				case id.Equal("q"):
					heard <- string(body)
					fallthrough
				case id.Kind() == wire.Invalid:
					rw.WriteHeader(http.StatusAccepted)
					return
				case method.Equal("initialize"):
					result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
				case method.Equal("tools/call"):
					rw.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(rw, "data: "+`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}`+"\n\n")
					_ = http.NewResponseController(rw).Flush()
					said := ""
					select {
					case said = <-heard:
					case <-r.Context().Done():
					}
					_, _ = io.WriteString(rw, "data: "+`{"jsonrpc":"2.0","id":`+string(id.Raw())+`,"result":{"content":[],"heard":`+said+`}}`+"\n\n")
					return
				}
				rw.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(rw, `{"jsonrpc":"2.0","id":`+string(id.Raw())+`,"result":`+result+`}`)
			}))
			t.Cleanup(server.Close)
			up := files(t, &scripted{})
			up.Process, up.MayAsk = false, []string{"elicitation"}
			up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				return upstream.Dial(ctx, upstream.Endpoint{
					Name: "files", URL: server.URL, Transport: "http",
					Authorize: func(context.Context, bool) (string, error) {
						if armed.Swap(false) {
							if name == "taken" {
								w.write("scout", strings.ReplaceAll(reader, "docs", "notes"))
							}
							w.adopt()
						}
						return "", nil
					},
				}, upstream.Options{Client: p.Client, Events: p.Events})
			}
			w = start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			c.request("tools/list", "{}")
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
			id := in.question()
			armed.Store(true)
			c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept","content":{"x":"secret"}}}`)
			if a := in.next(); strings.Contains(a, "secret") != (name == "kept") || armed.Load() {
				t.Error(a)
			}
		})
	}
}

// deaf is a program that answers its greeting and says what tools it has. Called, it asks something, and reads no
// more until it is woken. What it reads then lies in got.
const deaf = `
read -r hello; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}'
read -r initialized
read -r list; echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[%s,%s]}}'
read -r call; echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?"}}'
while [ ! -e wake ]; do sleep 0.05; done
while read -r line; do
	printf '%%.300s\n' "$line" >>got
	case $line in *'"id":"q"'*) echo '{"jsonrpc":"2.0","id":3,"result":{"content":[]}}';; *write_file*) echo '{"jsonrpc":"2.0","id":4,"result":{"content":[]}}';; esac
done
`

// TestAnswerOfBeforeUnread: nor does what waits for a program that does not read, which is told that nobody answers.
func TestAnswerOfBeforeUnread(t *testing.T) {
	for _, name := range []string{"taken", "kept"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			up := files(t, &scripted{})
			up.MayAsk = []string{"elicitation"}
			up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				p.Client.Protocol = "2025-11-25"
				script := fmt.Sprintf(deaf, tool("read_text_file", "path"), tool("write_file", "path", "content"))
				return upstream.Start(ctx, upstream.Program{Name: "files", Argv: []string{"/bin/sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}},
					upstream.Options{Client: p.Client, Events: p.Events})
			}
			w := start(t, map[string]string{"scout": readerAndWriter}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			c.request("tools/list", "{}")
			in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
			id, large := in.question(), make(chan said, 1)
			go func() {
				large <- c.request("tools/call", `{"name":"files__write_file","arguments":{"path":"`+w.root+`/docs/a","content":"`+strings.Repeat("x", 200<<10)+`"}}`)
			}()
			until(t, "the large one is up", func() bool { return len(w.events.of("decision")) == 2 })
			time.Sleep(100 * time.Millisecond)
			c.post(`{"jsonrpc":"2.0","id":` + quoted(id) + `,"result":{"action":"accept","content":{"x":"secret"}}}`)
			time.Sleep(100 * time.Millisecond)
			if name == "taken" {
				w.write("scout", strings.ReplaceAll(readerAndWriter, "fs.read: { in: $ROOT, paths: [docs] }", "fs.read: { in: $ROOT, paths: [notes] }"))
			}
			w.adopt()
			must(t, os.WriteFile(filepath.Join(dir, "wake"), nil, 0o600))
			in.next()
			<-large
			got, err := os.ReadFile(filepath.Join(dir, "got"))
			must(t, err)
			if strings.Contains(string(got), "secret") != (name == "kept") || strings.Contains(string(got), `"id":"q","error":`) == (name == "kept") {
				t.Errorf("%s", got)
			}
		})
	}
}

// TestStillOfBefore: who is asked last about an answer goes by the policy of by then, whichever call it was for.
func TestStillOfBefore(t *testing.T) {
	const asked = "elicitation/create"
	for _, modern := range []bool{false, true} {
		for name, record := range map[string]string{
			"taken": strings.ReplaceAll(reader, "docs", "notes"),
			"kept":  strings.ReplaceAll(reader, "docs]", "docs, more]"),
		} {
			t.Run(fmt.Sprint(modern, name), func(t *testing.T) {
				sinks, end := make(chan upstream.Sink), make(chan struct{})
				s := &scripted{reply: func(_ context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
					sinks <- sink
					<-end
					return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
				}}
				up := files(t, s)
				up.MayAsk = []string{"elicitation"}
				w := start(t, map[string]string{"scout": reader}, up)
				c := w.client("scout")
				call, done := `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}`, make(chan said, 1)
				if modern {
					go func() { done <- c.modern("tools/call", call, `{"elicitation":{}}`) }()
				} else {
					c.initialize(`{"elicitation":{}}`)
					go func() { done <- c.request("tools/call", call) }()
				}
				of := map[string]upstream.Sink{"the call": <-sinks, "none": s.newest().Events}
				w.write("scout", record)
				w.adopt()
				for what, sink := range of {
					if err := sink.(upstream.Wary).Still(asked); (err == nil) != (name == "kept") {
						t.Errorf("of %s: %v", what, err)
					}
					if err := sink.(upstream.Wary).Still("roots/list"); err != nil {
						t.Errorf("roots of %s: %v", what, err)
					}
				}
				if name == "taken" {
					until(t, "it is an event", func() bool { return len(w.events.of("refusal")) == 2 })
				}
				close(end)
				<-done
			})
		}
	}
}
