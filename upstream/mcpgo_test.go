package upstream_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"capgate/upstream"
)

// serveMCPGo is a real server, of another author.
func serveMCPGo() {
	s := mcpserver.NewMCPServer("real", "1", mcpserver.WithToolCapabilities(true))
	s.AddTool(mcp.NewTool("greet", mcp.WithString("name", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("hello " + r.GetString("name", "nobody")), nil
		})
	if err := mcpserver.ServeStdio(s); err != nil {
		os.Exit(1)
	}
}

// TestRealServer speaks both eras with a server that knows both.
func TestRealServer(t *testing.T) {
	for _, version := range []string{"", "2026-07-28", "2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			conn := started(t, program(t, "mcp-go"), upstream.Options{Client: upstream.Client{Protocol: version}})
			info := conn.Info()
			if version != "" && info.Version != version {
				t.Errorf("it speaks %s", info.Version)
			}
			params := `{"name":"greet","arguments":{"name":"capgate"}`
			if info.Modern {
				params += `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
			}
			got := resultOf(t, conn, upstream.Request{Method: "tools/call", Params: []byte(params + "}")}, nil)
			if !strings.Contains(got, `hello capgate`) {
				t.Errorf("got %s", got)
			}
		})
	}
}
