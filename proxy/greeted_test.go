package proxy_test

import (
	"context"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// TestNothingBeforeTheGreeting: over pipes the first thing that a client hears is the answer to its
// initialize, whatever a server says while it is started: several clients end at anything else.
func TestNothingBeforeTheGreeting(t *testing.T) {
	for range 1000 {
		s := &scripted{}
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		open := up.Open
		up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
			p.Events.Notify("notifications/message", []byte(`{"level":"info","data":"it has started"}`))
			return open(ctx, p)
		}
		w := start(t, map[string]string{"scout": reader}, up)
		in := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}` + "\n")
		var out syncBuffer // what is said last may be written a moment later
		must(t, w.server.Stdio(t.Context(), "agents/scout", in, &out))
		if first, _, _ := strings.Cut(out.String(), "\n"); !strings.Contains(first, `"protocolVersion"`) {
			t.Fatal(out.String())
		}
	}
}
