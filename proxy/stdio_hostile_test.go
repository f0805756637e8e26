package proxy_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// P: a stdio agent that reads nothing stops the goroutine that reads a server.
func TestHostileDeafStdioAgent(t *testing.T) {
	told := make(chan struct{})
	s := &scripted{}
	s.lists = map[string]string{"tools/list": `"tools":[` + tool("read_text_file", "path") + `]`}
	s.reply = func(ctx context.Context, r upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		for range 10 {
			sink.Notify("notifications/message", []byte(`{"level":"error","data":"x"}`))
		}
		close(told)
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	in, feed := io.Pipe()
	out, sink := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Stdio(ctx, "agents/scout", in, sink) }()
	go func() {
		_, _ = io.WriteString(feed, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n")
		_, _ = io.WriteString(feed, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`+"\n")
	}()
	buf := make([]byte, 4096)
	if _, err := out.Read(buf); err != nil { // the answer to initialize
		t.Fatal(err)
	}
	select {
	case <-told:
	case <-time.After(2 * time.Second):
		t.Error("the goroutine that reads the server waits for the agent")
	}
	cancel()
	_ = feed.Close()
	select {
	case <-ended:
	case <-time.After(7 * time.Second):
		t.Error("the front does not end although its context has")
		_ = out.Close()
	}
	_ = strings.ToLower
	_ = proxy.Off
}
