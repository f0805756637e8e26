package proxy_test

import (
	"strings"
	"testing"
)

// TestStatusIsSaid: a server that answers with the status of an error has answered. The agent is told the
// status and nothing else that the server says; the event has that too.
func TestStatusIsSaid(t *testing.T) {
	for ill, want := range map[string]string{
		"limited": "refuses the request (429 Too Many Requests)", "broken": "fails (500 Internal Server Error)", "gateway": "fails (502 Bad Gateway)", "busy": "fails (503 Service Unavailable)",
	} {
		for _, method := range []string{"tools/call", "tools/list"} {
			t.Run(ill+" "+method, func(t *testing.T) {
				h := newHost(t, script{Modern: true, Tools: [][]byte{plain("echo")}})
				w := start(t, map[string]string{"scout": caller}, h.upstream("bad"))
				h.suffer(ill + " " + method)
				a := w.client("scout").tool("bad")
				if fails(t, a, "bad"); !strings.Contains(a.Raw, `upstream \"bad\" `+want) {
					t.Errorf("want %q: %s", want, a.Raw)
				}
				for _, body := range []string{"slow down", "panic", "Bad gateway", "does not answer"} {
					if strings.Contains(a.Raw, body) {
						t.Errorf("%q is passed on: %s", body, a.Raw)
					}
				}
				if events := w.events.of("refusal"); method == "tools/call" && (len(events) != 1 || !strings.Contains(events[0].Error, want+": status ")) {
					t.Errorf("the event is %+v", events)
				}
			})
		}
	}
}
