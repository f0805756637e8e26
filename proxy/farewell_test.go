package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/proxy"
	"capgate/upstream"
)

// TestFarewell: whoever asked over a pipe is answered when it ends, however it does. What takes longer than
// it may is said to have been done, perhaps; what comes when it ends, not to have been; and what the
// client has cancelled is not answered.
func TestFarewell(t *testing.T) {
	const perhaps = "the gateway ends; what was asked may or may not have been done"
	for name, tt := range map[string]struct {
		end  func(p process, server, pipe context.CancelFunc)
		want map[string]string // by id
		took time.Duration
	}{
		"input": {
			func(p process, _, _ context.CancelFunc) { p.close() },
			map[string]string{"2": "done", "3": perhaps, "4": perhaps, "5": perhaps, "6": "complete"},
			5 * time.Second,
		},
		"input and server": {
			func(p process, server, _ context.CancelFunc) { p.close(); time.Sleep(time.Second); server() },
			map[string]string{"2": perhaps, "3": perhaps, "4": perhaps, "5": perhaps, "6": "complete"},
			time.Second,
		},
		"server and input": {
			func(p process, server, _ context.CancelFunc) { server(); time.Sleep(time.Second); p.close() },
			map[string]string{"2": perhaps, "3": perhaps, "4": perhaps, "5": perhaps, "6": "complete"},
			time.Second,
		},
		"server": {
			func(p process, server, pipe context.CancelFunc) {
				server()
				synctest.Wait()
				p.tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}`)
				p.tell(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
				p.tell(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
				p.tell(salute)
				time.Sleep(3 * time.Second)
				pipe()
			},
			map[string]string{"1": "what was asked was not done", "2": "done", "3": perhaps, "6": "complete", "7": "what was asked was not done"},
			3 * time.Second,
		},
		"pipe": {
			func(_ process, _, pipe context.CancelFunc) { pipe() },
			map[string]string{"2": perhaps, "3": perhaps, "4": perhaps, "5": perhaps, "6": "complete"},
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{reply: func(ctx context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
					if strings.Contains(string(r.Params), "/soon") {
						select {
						case <-time.After(2 * time.Second):
							return upstream.Answer{Result: []byte(`{"content":[{"type":"text","text":"done"}]}`)}, nil
						case <-ctx.Done():
						}
					}
					<-ctx.Done()
					return upstream.Answer{}, ctx.Err()
				}}
				s.lists = map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}
				w := start(t, map[string]string{"scout": reader}, files(t, s))
				server := w.anew()
				ctx, pipe := context.WithCancel(t.Context())
				p := w.process(ctx, "scout")
				p.say(salute)
				const call = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"%s/docs/%s"}%s}}`
				for id, file := range map[int]string{2: "soon", 3: "a", 4: "b"} {
					p.tell(fmt.Sprintf(call, id, w.root, file, ""))
				}
				p.tell(fmt.Sprintf(call, 5, w.root, "c", `,"_meta":{`+modernMeta+`}`))
				p.say(`{"jsonrpc":"2.0","id":6,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` + modernMeta + `}}}`)
				synctest.Wait()
				begun := time.Now()
				go tt.end(p, server, pipe)
				got := map[string]string{}
				for line := p.hear(); line != ""; line = p.hear() {
					var m struct{ ID json.RawMessage }
					if err := json.Unmarshal([]byte(line), &m); err != nil {
						t.Error(err)
					}
					if got[string(m.ID)] = line; strings.Contains(line, tt.want[string(m.ID)]) {
						got[string(m.ID)] = tt.want[string(m.ID)]
					}
				}
				if err := <-p.ended; err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if took := time.Since(begun); took != tt.took {
					t.Errorf("it took %s", took)
				}
				p.close()
			})
		})
	}
}

// TestFarewellUnheard: nobody who is gone, or reads nothing, keeps a pipe from its end.
func TestFarewellUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{reply: func(ctx context.Context, _ upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
			<-ctx.Done()
			return upstream.Answer{}, ctx.Err()
		}}
		s.lists = map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		for _, gone := range []bool{true, false} {
			ctx, end := context.WithCancel(t.Context())
			p := w.process(ctx, "scout")
			p.say(salute)
			p.tell(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}}`)
			synctest.Wait()
			if gone {
				p.leave()
			}
			begun := time.Now()
			end()
			if err := <-p.ended; err != nil {
				t.Error(err)
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("it took %s", took)
			}
			p.close()
			p.leave()
		}
	})
}

// anew is a gateway as there was, which may be told to end.
func (w *world) anew() context.CancelFunc {
	w.t.Helper()
	must(w.t, w.server.Close())
	ctx, end := context.WithCancel(w.t.Context())
	var err error
	w.server, err = proxy.New(ctx, w.options)
	must(w.t, err)
	w.adopt()
	return end
}
