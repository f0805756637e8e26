package upstream_test

import (
	"strings"
	"testing"

	"capgate/upstream"
)

// longAnswers are lines that are too long, and whether they end the connection.
func longAnswers() []struct {
	line string
	ends bool
} {
	return []struct {
		line string
		ends bool
	}{
		{`{"jsonrpc":"2.0","id":%s,"result":{"text":"LONG"}}`, false},
		{`{"id": %s, "jsonrpc": "2.0", "error": {"code":1,"message":"LONG"}}`, false},
		{`{"result":{"text":"LONG"},"jsonrpc":"2.0","id":%s}`, false},
		{`{"result":{"id":7,"text":"LONG"}, "jsonrpc": "2.0", "id": %s }` + "\r", false},
		{`{"jsonrpc":"2.0","method":"x","params":{"text":"LONG","id":%s}}`, true},
		{`{"jsonrpc":"2.0","id":%s,"method":"x","params":{"text":"LONG"}}`, true},
		{`{"jsonrpc":"2.0","result":{"text":"LONG","id":%s}}`, true},
		{`{"jsonrpc":"2.0","result":{"text":"LONG","id":%s},"id":"a"}`, true},
		{`{"jsonrpc":"2.0","result":{"text":"LONG\",\"id\":%s}"}}`, true},
		{`{"jsonrpc":"2.0","result":"LONG","\"id":%s}`, true},
		{`LONG,"id":%s}`, true},
	}
}

// TestLongAnswer: an answer that is too long fails the call that it is for, and no other.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	for i, raw := range longAnswers() {
		conn := started(t, program(t, "plain"), upstream.Options{Limits: upstream.Limits{Message: 1 << 20}})
		want := "answers with too much; ask it for less"
		if raw.ends {
			want = "was ended: it sent a message that is too long"
		}
		_, err := conn.Call(t.Context(), tool("long", i), nil)
		if f := failureOf(t, err); f.Unsent || !strings.Contains(f.Error(), want) {
			t.Errorf("%s: got %q", raw.line, f)
		}
		if !raw.ends {
			resultOf(t, conn, tool("echo", 0), nil)
		}
	}
}
