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

// wary is a sink that says last whether what it answered may go.
type wary struct {
	*recorder
	still func(method string) error
}

func (w wary) Still(method string) error { return w.still(method) }

// TestFeedAnswerWhileAuthorized: what a server was to hear and waits for a token goes only if it may then. Else it
// hears why, and of a call that is over nothing of it.
func TestFeedAnswerWhileAuthorized(t *testing.T) {
	for name, want := range map[string]string{"kept": `{"a":1} `, "taken": ` {"code":-1,"message":"not any more"}`, "over": ` {"code":-32603,"message":"the request could not be answered"}`} {
		t.Run(name, func(t *testing.T) {
			f := feed(t, func(f *feeder) {
				f.call = fed(`data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"of":%s}}`)
			})
			var armed, taken atomic.Bool
			waits, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			conn := dial(t, upstream.Endpoint{Name: "files", URL: f.URL + "/sse", Transport: "sse", Authorize: func(context.Context, bool) (string, error) {
				if armed.Swap(false) {
					taken.Store(name == "taken")
					close(waits)
					<-goOn
				}
				return "", nil
			}}, upstream.Options{})
			sink := wary{newRecorder(), func(string) error {
				if taken.Load() {
					return &upstream.Refusal{Code: -1, Message: "not any more"}
				}
				return nil
			}}
			sink.ask = func(context.Context, string, []byte) ([]byte, error) {
				armed.Store(true)
				return []byte(`{"a":1}`), nil
			}
			go func() {
				_, err := conn.Call(t.Context(), upstream.Request{Method: "tools/call"}, sink)
				done <- err
			}()
			id := f.await(t, "tools/call").ID
			<-waits
			end := func() {
				f.send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, id)
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
			if name == "over" {
				end()
			}
			close(goOn)
			if m := f.await(t, ""); string(m.ID) != `"q"` || string(m.Result)+" "+string(m.Error) != want {
				t.Errorf("it hears %s, %s", m.Result, m.Error)
			}
			if name != "over" {
				end()
			}
		})
	}
}
