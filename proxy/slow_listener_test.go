package proxy_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestUpdateOfBeforeForListener: an agent that takes slowly what it listens to is not told of a resource that it may
// not read any more by the time that it does.
func TestUpdateOfBeforeForListener(t *testing.T) {
	for name, uri := range map[string]string{"taken": "b", "kept": "[a-c]"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{lists: map[string]string{"resources/list": `"resources":[{"uri":"notes:///a","name":"a"}]`}}
				w := start(t, map[string]string{"scout": fmt.Sprintf(notesReader, "*")}, files(t, s))
				c := w.client("scout")
				c.modern("resources/list", "{}", "{}")
				out := &slowTaker{taker: taker{header: http.Header{}}, holds: make(chan struct{}), wake: make(chan struct{})}
				body := `{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["notes:///a"]},"_meta":{` + modernMeta + `}}}`
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
				must(t, err)
				r.Header = http.Header{
					"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
					"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"},
				}
				go w.server.ServeHTTP(out, r)
				<-out.holds
				s.newest().Events.Notify("notifications/resources/updated", []byte(uriParams("notes:///a")))
				time.Sleep(time.Second)
				w.write("scout", fmt.Sprintf(notesReader, uri))
				w.adopt()
				time.Sleep(time.Second)
				close(out.wake)
				time.Sleep(time.Second)
				if got := out.text(); !strings.Contains(got, "acknowledged") || strings.Contains(got, "resources/updated") != (name == "kept") {
					t.Error(got)
				}
			})
		})
	}
}
