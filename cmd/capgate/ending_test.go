package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestEndIsSaid: whose call goes on for longer than a gateway that ends waits for it is told
// so, on a connection that the door has and on one of net/http, and also where its server
// might have asked something.
func TestEndIsSaid(t *testing.T) {
	const plain = "127.0.0.1:0"
	for name, tt := range map[string]struct{ listen, server string }{
		"plain": {plain, "protocol: 2026-07-28"},
		"TLS":   {"{ address: 127.0.0.1:0, tls: { cert: ./cert.pem, key: ./key.pem } }", "protocol: 2026-07-28"},
		"asks":  {plain, "protocol: 2025-06-18, may_ask: [elicitation]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			trust := p.certificate()
			called := make(chan struct{}, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hang(w, r, called) }))
			defer server.Close()
			p.write(map[string]string{
				"capgate.yml":     "agents: ./agents\nsandbox: ./work\nlisten: " + tt.listen + "\nupstreams:\n  slow: { url: " + server.URL + ", " + tt.server + " }\n",
				"agents/scout.md": "---\nclass: agent\ncapabilities:\n  - tool.invoke: { tools: [slow.wait] }\n---\n",
			})
			token := p.run("agents", "token", "issue", "scout")
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			at, ended := p.serving(ctx)
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}, Timeout: 10 * time.Second}
			defer client.CloseIdleConnections()
			r, err := calling(t.Context(), at, token, "slow__wait")
			p.must(err)
			go func() { <-called; stop() }()
			resp, err := client.Do(r)
			p.must(err)
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			p.must(err)
			if !strings.Contains(string(body), "the gateway ends") {
				t.Errorf("it is answered %s %s", resp.Status, body)
			}
			if code := <-ended; code != exitOK {
				t.Errorf("exit %d", code)
			}
		})
	}
}

// hang is a server whose only tool does not answer.
func hang(w http.ResponseWriter, r *http.Request, called chan<- struct{}) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.NewDecoder(r.Body).Decode(&m) // what is no message has no method
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}`
	case "server/discover":
		result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`
	case "tools/list":
		result = `{"resultType":"complete","tools":[{"name":"wait","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		called <- struct{}{}
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}
