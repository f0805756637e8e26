package upstream_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"capgate/upstream"
)

// TestHTTPAwaitsStream: a server that may ask is listened to before it is called, as what it asks
// nobody hears else. It need not answer the listener before it has something to say.
func TestHTTPAwaitsStream(t *testing.T) {
	const slow = 30 * time.Millisecond
	for name, c := range map[string]struct {
		caps   string
		mute   bool // says nothing of the stream
		awaits bool
		most   time.Duration
	}{
		"who may ask":        {`{"elicitation":{}}`, false, true, patience},
		"who may not":        {`{}`, true, false, 200 * time.Millisecond},
		"who says so later":  {`{"elicitation":{}}`, true, false, patience},
		"who asks for roots": {`{"roots":{"listChanged":true}}`, false, true, patience},
	} {
		var heard atomic.Bool
		s := serve(t, func(s *server) {
			s.session, s.caps = "s-1", `{}`
			s.listen = func(w http.ResponseWriter, r *http.Request) {
				if c.mute {
					<-r.Context().Done()
					return
				}
				time.Sleep(slow)
				heard.Store(true)
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(200)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		})
		k := newRecorder()
		k.ask = func(context.Context, string, []byte) ([]byte, error) { return []byte(`{}`), nil }
		ok := false
		for range 3 { // a machine that is busy may take longer than it is waited for
			heard.Store(false)
			began := time.Now()
			s.dial(upstream.Options{Events: k, Client: upstream.Client{Capabilities: []byte(c.caps)}})
			ok = ok || heard.Load() == c.awaits && time.Since(began) < c.most
		}
		if !ok {
			t.Errorf("%s: is not listened to as it should be", name)
		}
	}
}
