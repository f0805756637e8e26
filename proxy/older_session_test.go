package proxy_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// older is a program that begins sessions of one revision, and notes that it was started. What is no initialize it
// does not know.
const older = `
echo started >>starts
while read -r line; do
	id=${line#*'"id":'}; id=${id%%%%,*}
	case $line in
	*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}';;
	*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[%s]}}';;
	*'"id":'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"Method not found"}}';;
	esac
done
`

// TestSessionOfOlderServer: a server that may ask is started once for a session, whichever revision it begins it in.
func TestSessionOfOlderServer(t *testing.T) {
	for _, revision := range []string{"2024-11-05", "2025-06-18", "2025-11-25"} {
		t.Run(revision, func(t *testing.T) {
			dir := t.TempDir()
			up := files(t, &scripted{})
			up.MayAsk = []string{"elicitation"}
			up.Open = func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
				script := fmt.Sprintf(older, revision, tool("read_text_file", "path"))
				return upstream.Start(ctx, upstream.Program{Name: "files", Argv: []string{"/bin/sh", "-c", script}, Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}},
					upstream.Options{Client: p.Client, Events: p.Events})
			}
			w := start(t, map[string]string{"scout": reader}, up)
			c := w.client("scout")
			c.initialize(`{"elicitation":{}}`)
			if names := toolNames(t, c.request("tools/list", "{}")); len(names) != 1 {
				t.Error(names)
			}
			starts, err := os.ReadFile(filepath.Join(dir, "starts"))
			must(t, err)
			if n := strings.Count(string(starts), "started"); n != 1 {
				t.Errorf("it was started %d times", n)
			}
		})
	}
}
