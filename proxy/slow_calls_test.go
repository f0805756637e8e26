package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capgate/upstream"
)

// unwilling takes the beginning of a stream and nothing of what is sent on it until it is woken. It counts that.
type unwilling struct {
	taker
	wake chan struct{}
	sent int

	answered bool
}

func (w *unwilling) Write(p []byte) (int, error) {
	if strings.Contains(string(p[:min(len(p), 32)]), "data:") {
		<-w.wake
		w.sent++
	}
	w.answered = w.answered || strings.Contains(string(p[max(0, len(p)-64):]), `"content":[]`)
	return len(p), nil
}

// TestUntakenOfCallsIsBounded: what waits for an agent that does not take it, on the streams of its calls, is bounded
// for all of them together. What is taken leaves room for more.
func TestUntakenOfCallsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := strings.Repeat("x", 1<<19)
		s := &scripted{reply: func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
			for i := range 12 {
				sink.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%q,"progress":%d,"message":%q}`, r.Token, i, text))
			}
			return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
		}}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.modern("tools/list", "{}", "{}")
		body := `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"},"_meta":{"progressToken":1,` + modernMeta + `}}}`
		var calls sync.WaitGroup
		call := func(out http.ResponseWriter) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
			must(t, err)
			r.Header = http.Header{
				"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
				"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"files__read_text_file"},
			}
			calls.Go(func() { w.server.ServeHTTP(out, r) })
		}
		before, wake, outs := heap(), make(chan struct{}), make([]*unwilling, 24)
		for i := range outs {
			outs[i] = &unwilling{taker: taker{header: http.Header{}}, wake: wake}
			call(outs[i])
		}
		time.Sleep(time.Second)
		if kept := int64(heap()) - int64(before); kept > 80<<20 {
			t.Errorf("%d calls of one agent, which takes nothing, keep %d MiB", len(outs), kept>>20)
		}
		close(wake)
		calls.Wait()
		for _, out := range outs {
			if !out.answered {
				t.Error("an answer is lost")
			}
		}
		last := &unwilling{taker: taker{header: http.Header{}}, wake: wake}
		call(last)
		calls.Wait()
		if last.sent != 13 {
			t.Errorf("%d messages come once the others are taken", last.sent)
		}
	})
}
