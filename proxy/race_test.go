package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// TestEverythingAtOnce is for the race detector: calls, sessions, listeners and
// policies come and go, servers change their lists, and in the midst of it the
// gateway closes.
func TestEverythingAtOnce(t *testing.T) {
	for i := range 20 {
		t.Run(strconv.Itoa(i), everythingAtOnce)
	}
}

func everythingAtOnce(t *testing.T) {
	s := &scripted{}
	s.reply = func(_ context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		if sink != nil && r.Token != "" {
			sink.Notify("notifications/progress", []byte(`{"progressToken":"`+r.Token+`","progress":1}`))
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	asking, shared := files(t, s), &proxy.Upstream{Name: "shared", Prefix: "shared", Open: s.open, Shared: true}
	asking.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader, "other": everything}, asking, shared)
	one := func(agent, method, body string, header http.Header) *httptest.ResponseRecorder {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := httptest.NewRequestWithContext(ctx, method, "http://localhost/mcp", bytes.NewReader([]byte(body)))
		r.Header = http.Header{"Authorization": {"Bearer " + w.tokens[agent]}, "Content-Type": {"application/json"}}
		for name, values := range header {
			r.Header[name] = values
		}
		answer := httptest.NewRecorder()
		w.server.ServeHTTP(answer, r)
		return answer
	}
	var all sync.WaitGroup
	for worker := range 6 {
		agent := [...]string{"scout", "other"}[worker%2]
		all.Go(func() {
			for i := range 30 {
				session := http.Header{"Mcp-Session-Id": {one(agent, http.MethodPost, hello, nil).Header().Get("Mcp-Session-Id")}}
				one(agent, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, session)
				one(agent, http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"%s/docs/a"},"_meta":{"progressToken":1}}}`, i, w.root), session)
				one(agent, http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"},"_meta":{`+modernMeta+`}}}`,
					http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"files__read_text_file"}})
				one(agent, http.MethodDelete, "", session)
			}
		})
	}
	all.Go(func() {
		for range 20 {
			w.adopt()
			s.mu.Lock()
			peers := s.peers
			s.mu.Unlock()
			for _, p := range peers[max(0, len(peers)-3):] {
				p.Events.Notify("notifications/tools/list_changed", nil)
			}
		}
		if err := w.server.Close(); err != nil {
			t.Error(err)
		}
	})
	all.Wait()
}
