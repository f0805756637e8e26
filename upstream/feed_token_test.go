package upstream_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"capgate/upstream"
)

// lacks fails where a message has come that should not.
func (f *feeder) lacks(t *testing.T, method string) {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
	for {
		select {
		case m := <-f.got:
			if m.Method == method {
				t.Error("it is sent")
			}
		default:
			return
		}
	}
}

// TestFeedCancelWhileAuthorized: what waits for a token is not sent once its caller has left.
func TestFeedCancelWhileAuthorized(t *testing.T) {
	f := feed(t, func(f *feeder) { f.call = fed(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`) })
	var armed atomic.Bool
	waits, goOn := make(chan struct{}), make(chan struct{})
	conn := dial(t, upstream.Endpoint{Name: "files", URL: f.URL + "/sse", Transport: "sse", Authorize: func(context.Context, bool) (string, error) {
		if armed.Swap(false) {
			close(waits)
			<-goOn
		}
		return "", nil
	}}, upstream.Options{})
	f.await(t, "notifications/initialized")
	ctx, cancel := context.WithCancel(t.Context())
	armed.Store(true)
	done := make(chan error)
	go func() {
		_, err := conn.Call(ctx, upstream.Request{Method: "tools/call"}, nil)
		done <- err
	}()
	<-waits
	cancel()
	if err := <-done; err == nil {
		t.Error("it is answered")
	}
	close(goOn)
	if _, err := conn.Call(t.Context(), upstream.Request{Method: "ping"}, nil); err != nil {
		t.Error(err)
	}
	f.lacks(t, "tools/call")
}

// TestFeedMayWhileAuthorized: nor is what may not go any more once there is a token.
func TestFeedMayWhileAuthorized(t *testing.T) {
	f := feed(t, func(f *feeder) { f.call = fed(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`) })
	var armed, taken atomic.Bool
	conn := dial(t, upstream.Endpoint{Name: "files", URL: f.URL + "/sse", Transport: "sse", Authorize: func(context.Context, bool) (string, error) {
		taken.Store(armed.Load())
		return "", nil
	}}, upstream.Options{})
	f.await(t, "notifications/initialized")
	gone := errors.New("the grant was taken")
	may := func() error {
		if taken.Load() {
			return gone
		}
		return nil
	}
	if _, err := conn.Call(t.Context(), upstream.Request{Method: "tools/list", May: may}, nil); err != nil {
		t.Error(err)
	}
	f.await(t, "tools/list")
	armed.Store(true)
	if _, err := conn.Call(t.Context(), upstream.Request{Method: "tools/call", May: may}, nil); !errors.Is(err, gone) {
		t.Error(err)
	}
	if _, err := conn.Call(t.Context(), upstream.Request{Method: "ping"}, nil); err != nil {
		t.Error(err)
	}
	f.lacks(t, "tools/call")
}
