package upstream_test

import (
	"bytes"
	"testing"

	"capgate/upstream"
)

// FuzzAnswers lets a server say anything: nothing panics, and a call that is
// answered is answered with what the server wrote to it.
func FuzzAnswers(f *testing.F) {
	for _, raw := range rawAnswers() {
		f.Add([]byte(raw.line))
	}
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":"s","method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":"s","method":"roots/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","method":"x","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`,
		"\r\n\n{}\n[]\nnull\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		answer, err := upstream.Hear(t.Context(), bytes.NewReader(said), &sink{})
		if err == nil && !bytes.Contains(said, answer.Result) && !bytes.Contains(said, answer.Error) {
			t.Errorf("answered with %s %s", answer.Result, answer.Error)
		}
		if err == nil && (answer.Result == nil) == (answer.Error == nil) {
			t.Errorf("answered with %q and %q", answer.Result, answer.Error)
		}
	})
}
