package upstream_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"capgate/upstream"
	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
)

// fixture is a server made with the library that many are made with.
func fixture() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("fixture", "1", mcpserver.WithToolCapabilities(true), mcpserver.WithElicitation(), mcpserver.WithPaginationLimit(3))
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("noisy"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			if err := mcpserver.ServerFromContext(ctx).SendNotificationToClient(ctx, "notifications/progress", map[string]any{"progressToken": "tok", "progress": i}); err != nil {
				return nil, err
			}
		}
		return mcp.NewToolResultText("done"), nil
	})
	s.AddTool(mcp.NewTool("asks"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var r mcp.ElicitationRequest
		r.Params.Message = "name?"
		r.Params.RequestedSchema = map[string]any{"type": "object"}
		got, err := s.RequestElicitation(ctx, r)
		if err != nil {
			return nil, err
		}
		return mcp.NewToolResultText(fmt.Sprint(got.Action)), nil
	})
	for i := range 5 {
		s.AddTool(mcp.NewTool(fmt.Sprint("more", i)), nil)
	}
	return s
}

func callTool(t *testing.T, c upstream.Conn, name, arguments string, k upstream.Sink) string {
	t.Helper()
	params := fmt.Sprintf(`{"name":%q,"arguments":%s`, name, arguments)
	if c.Info().Modern {
		params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	}
	got, err := c.Call(t.Context(), upstream.Request{Method: "tools/call", Name: name, Params: []byte(params + "}"), Token: "tok"}, k)
	if err != nil {
		t.Error(err)
	}
	return string(got.Result) + string(got.Error)
}

// TestFixture runs against a real server, over each transport and in each era.
func TestFixture(t *testing.T) {
	web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(fixture()))
	defer web.Close()
	sse := httptest.NewServer(mcpserver.NewSSEServer(fixture(), mcpserver.WithUseFullURLForMessageEndpoint(false)))
	defer sse.Close()
	client := func(revision string) upstream.Client {
		return upstream.Client{Protocol: revision, Info: []byte(`{"name":"capgate","version":"1"}`), Capabilities: []byte(`{"elicitation":{}}`)}
	}
	tests := []struct {
		name, url, transport, revision string
		modern, asks                   bool
	}{
		{"found out", web.URL + "/mcp", "", "", true, false},
		{"modern", web.URL + "/mcp", "http", revision, true, false},
		{"legacy", web.URL + "/mcp", "http", "2025-11-25", false, true},
		{"older", web.URL + "/mcp", "http", "2025-03-26", false, true},
		{"sse", sse.URL + "/sse", "sse", "2024-11-05", false, false},
		{"sse found out", sse.URL + "/sse", "auto", "", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			all := newRecorder()
			c := dial(t, upstream.Endpoint{Name: "files", URL: tt.url, Transport: tt.transport},
				upstream.Options{Client: client(tt.revision), Events: all})
			if c.Info().Modern != tt.modern || !strings.Contains(string(c.Info().Server), "fixture") {
				t.Errorf("%+v", c.Info())
			}
			echoAll(t, c)
			k := newRecorder()
			behind := tt.transport == "sse" || tt.transport == "auto" // where progress may come behind the answer
			for tries := 0; tries == 0 || len(k.all()) == 0 && !behind; tries++ {
				if got := callTool(t, c, "noisy", "{}", k); !strings.Contains(got, "done") {
					t.Errorf("%s", got)
				}
				if tries == 20 { // the fixture's server loses some of what comes right before an answer
					t.Fatal("no progress was heard")
				}
			}
			if got := callTool(t, c, "nosuch", "{}", nil); !strings.Contains(got, "-32602") {
				t.Errorf("%s", got)
			}
			if tt.asks {
				k.ask = func(context.Context, string, []byte) ([]byte, error) { return []byte(`{"action":"decline"}`), nil }
				if got := callTool(t, c, "asks", "{}", k); !strings.Contains(got, "decline") {
					t.Errorf("%s", got)
				}
			}
			listAll(t, c)
			manyAtOnce(t, c)
		})
	}
}

func echoAll(t *testing.T, c upstream.Conn) {
	t.Helper()
	for _, size := range []int{0, 100, 5000, 300_000} {
		text := strings.Repeat("é<", size/3)
		if got := callTool(t, c, "echo", fmt.Sprintf(`{"text":%q}`, text), nil); !strings.Contains(got, text[:min(len(text), 10)]) && !strings.Contains(got, `\u003c`) || len(got) < size {
			t.Errorf("%d: %.100s", size, got)
		}
	}
}

func listAll(t *testing.T, c upstream.Conn) {
	t.Helper()
	meta := func(dst []byte) []byte {
		return append(dst, `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`...)
	}
	if !c.Info().Modern {
		meta = nil
	}
	tools, err := upstream.List(t.Context(), c, upstream.Listing{Method: "tools/list", Member: "tools", Meta: meta})
	if err != nil || len(tools) != 8 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

func manyAtOnce(t *testing.T, c upstream.Conn) {
	t.Helper()
	var many sync.WaitGroup
	for i := range 64 {
		many.Go(func() {
			want := fmt.Sprint("number ", i)
			if got := callTool(t, c, "echo", fmt.Sprintf(`{"text":%q}`, want), nil); !strings.Contains(got, `"`+want+`"`) {
				t.Errorf("%s: %s", want, got)
			}
		})
	}
	many.Wait()
}

// TestFixtureEvents: a change of the tools is heard of, in each era.
func TestFixtureEvents(t *testing.T) {
	for _, revision := range []string{revision, "2025-11-25"} {
		s := fixture()
		web := httptest.NewServer(mcpserver.NewStreamableHTTPServer(s))
		all := newRecorder()
		c := dial(t, upstream.Endpoint{Name: "files", URL: web.URL + "/mcp"}, upstream.Options{Client: upstream.Client{Protocol: revision}, Events: all})
		heard := make(chan string)
		go func() { heard <- all.hear(t) }()
		// The stream is opened behind our back: the tools change until it is heard.
		for n, got := 0, ""; got == ""; n++ {
			s.AddTool(mcp.NewTool(fmt.Sprint("new", n%2)), nil)
			select {
			case got = <-heard:
				if !strings.HasPrefix(got, "notifications/tools/list_changed") {
					t.Errorf("%s: heard %s", revision, got)
				}
			default:
				callTool(t, c, "echo", "{}", nil)
			}
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		web.CloseClientConnections()
		web.Close()
	}
}

// TestFixtureHeader: another's reader of headers reads what we write.
func TestFixtureHeader(t *testing.T) {
	for _, text := range []string{"", "a", " a", "é", "a\nb", "\t", "=?base64?x?=", "=?base64?=", "=?base64??=", "?=", "=?base64?"} {
		if got, ok := mcp.DecodeHeaderValue(upstream.EncodeHeader(text)); !ok || got != text {
			t.Errorf("%q is %q to the library, %v", text, got, ok)
		}
	}
}
