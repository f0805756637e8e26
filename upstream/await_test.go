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
	const slow = 100 * time.Millisecond
	for name, c := range map[string]struct {
		caps   string
		mute   bool // says nothing of the stream
		awaits bool
	}{
		"who may ask":         {`{"elicitation":{}}`, false, true},
		"who may not":         {`{}`, false, false},
		"who says so later":   {`{"elicitation":{}}`, true, false},
		"who may not, nor so": {`{}`, true, false},
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
		began := time.Now()
		s.dial(upstream.Options{Events: k, Client: upstream.Client{Capabilities: []byte(c.caps)}})
		if took := time.Since(began); heard.Load() != c.awaits || took > patience {
			t.Errorf("%s: is listened to: %v, after %v", name, heard.Load(), took)
		}
	}
}
