package proxy_test

import (
	"bytes"
	"context"
	"encoding/json"
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

// TestIntroduced: what a request of the modern era has to say of itself is looked at in the same way
// over HTTP and over pipes.
func TestIntroduced(t *testing.T) {
	const modern, level = "2026-07-28", `,"io.modelcontextprotocol/logLevel":`
	version := func(v string) string { return `"io.modelcontextprotocol/protocolVersion":"` + v + `"` }
	for _, test := range []struct {
		method, revision, meta string
		code                   int
	}{
		{"server/discover", modern, ``, -32602},
		{"tools/list", modern, version(modern), -32602},
		{"tools/list", modern, version(modern) + `,"io.modelcontextprotocol/clientCapabilities":[]`, -32602},
		{"tools/list", "2027-01-01", version("2027-01-01"), -32022},
		{"tools/list", modern, modernMeta + level + `"loud"`, -32602},
		{"tools/list", modern, modernMeta + level + `1`, -32602},
		{"tools/list", modern, modernMeta + level + `"error"`, 0},
	} {
		w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}))
		ask := `{"jsonrpc":"2.0","id":1,"method":"` + test.method + `","params":{"_meta":{` + test.meta + `}}}`
		var over struct{ http, pipes said }
		over.http = take(t, w.client("scout").post(ask, "MCP-Protocol-Version", test.revision, "Mcp-Method", test.method))
		var out syncBuffer
		must(t, w.server.Stdio(t.Context(), "agents/scout", strings.NewReader(ask+"\n"), &out))
		must(t, json.Unmarshal([]byte(out.String()), &over.pipes))
		for how, a := range map[string]said{"HTTP": over.http, "pipes": over.pipes} {
			if (a.Error == nil) != (test.code == 0) || a.Error != nil && a.Error.Code != test.code {
				t.Errorf("%s of %s over %s: %+v", test.method, test.meta, how, a.Error)
			}
		}
	}
}

// TestUnknownRevision: a header of a revision that there is not is told so, with those that there are,
// also in a session, whose requests say nothing of it in their bodies.
func TestUnknownRevision(t *testing.T) {
	w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}))
	c := w.client("scout")
	c.initialize("{}")
	for _, revision := range []string{"2027-01-01", "2025-11-25,2025-06-18", "x"} {
		resp := c.post(`{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, "MCP-Protocol-Version", revision)
		if a := take(t, resp); resp.StatusCode != 400 || a.Error == nil || a.Error.Code != -32022 {
			t.Errorf("%s: %d %+v", revision, resp.StatusCode, a.Error)
		}
	}
	if a := take(t, c.post(`{"jsonrpc":"2.0","id":8,"method":"tools/list"}`, "MCP-Protocol-Version", "2025-06-18")); a.Error != nil {
		t.Error(a.Error)
	}
}

// TestPanicWithinLists: a request that panics while it makes the lists of its agent ends nothing but
// itself. The next one does not wait for it.
func TestPanicWithinLists(t *testing.T) {
	broken := true
	scrub := func(b []byte) []byte {
		if broken && bytes.Contains(b, []byte("read_text_file")) {
			panic("broken")
		}
		return b
	}
	w := startWith(t, proxy.Options{Scrub: scrub}, map[string]string{"scout": reader}, files(t, &scripted{}))
	for _, want := range []string{"could not be answered", "files__read_text_file"} {
		var out syncBuffer
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{` + modernMeta + `}}}` + "\n")
		must(t, w.server.Stdio(t.Context(), "agents/scout", in, &out))
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q, want %s", out.String(), want)
		}
		broken = false
	}
}
