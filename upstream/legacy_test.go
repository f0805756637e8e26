package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"capgate/upstream"
	"github.com/google/go-cmp/cmp"
)

// feeder is a server of the HTTP+SSE transport.
type feeder struct {
	*httptest.Server
	endpoint string
	send     func(format string, args ...any) // to the stream of the last client
	call     func(f *feeder, w http.ResponseWriter, m msg)
	got      chan msg
	end      chan struct{} // ends the streams

	mu sync.Mutex
}

func feed(t *testing.T, change func(*feeder)) *feeder {
	t.Helper()
	f := &feeder{endpoint: "/messages?session=1", got: make(chan msg, 1000), end: make(chan struct{})}
	if change != nil {
		change(f)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", func(w http.ResponseWriter, r *http.Request) {
		send, over := events(w), false
		f.mu.Lock()
		send("event: endpoint\ndata: %s", strings.ReplaceAll(f.endpoint, "SELF", f.URL))
		f.send = func(format string, args ...any) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if !over {
				send(format, args...)
			}
		}
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			over = true // the writer is not ours any more
		}()
		select {
		case <-r.Context().Done():
		case <-f.end:
		}
	})
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m := msg{Verb: r.Method, Header: r.Header}
		if err := json.Unmarshal(body, &m); err != nil {
			t.Errorf("the server got %q: %v", body, err)
		}
		f.got <- m
		switch {
		case m.Method == "initialize":
			f.mu.Lock()
			say := f.send
			f.mu.Unlock()
			say(`data: {"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2024-11-05","capabilities":{}}}`, m.ID)
		case m.ID != nil && m.Method != "":
			f.call(f, w, m)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

func (f *feeder) dial(t *testing.T, o upstream.Options) upstream.Conn {
	t.Helper()
	return dial(t, upstream.Endpoint{Name: "files", URL: f.URL + "/sse", Header: []upstream.Field{{"X-Key", "k"}}}, o)
}

func (f *feeder) await(t *testing.T, method string) msg {
	t.Helper()
	for {
		if m := <-f.got; m.Method == method {
			return m
		}
	}
}

func fed(format string) func(*feeder, http.ResponseWriter, msg) {
	return func(f *feeder, w http.ResponseWriter, m msg) {
		w.WriteHeader(http.StatusAccepted)
		f.send(format, m.ID)
	}
}

func TestFeed(t *testing.T) {
	for _, endpoint := range []string{"/messages?session=1", "messages", "SELF/messages?x=1#y"} {
		f := feed(t, func(f *feeder) {
			f.endpoint = endpoint
			f.call = fed(`data: {"jsonrpc":"2.0","id":%s,"result":{ "a":1.0}}`)
		})
		c := f.dial(t, upstream.Options{})
		if c.Info().Modern || c.Info().Version != "2024-11-05" {
			t.Errorf("%+v", c.Info())
		}
		got, err := call(t.Context(), c, nil)
		if err != nil || string(got.Result) != `{ "a":1.0}` {
			t.Errorf("%s, %v", got.Result, err)
		}
		m := f.await(t, "tools/call")
		if m.Header.Get("X-Key") != "k" || m.Header.Get("Content-Type") != "application/json" {
			t.Errorf("POST with %v", m.Header)
		}
	}
}

// TestFeedEndpoint: messages, and the credentials with them, go to the server that
// was named and to no other.
func TestFeedEndpoint(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server was asked") }))
	defer other.Close()
	for _, endpoint := range []string{
		other.URL + "/messages", "//" + other.Listener.Addr().String() + "/messages", "https://127.0.0.1/messages",
		"http://u:p@127.0.0.1/messages", "file:///messages", "http://[::1/", "SELF@evil/messages", strings.Repeat("a", 5000),
	} {
		f := feed(t, func(f *feeder) { f.endpoint = endpoint })
		_, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: f.URL + "/sse", Transport: "sse"}, upstream.Options{})
		failed(t, err, "does not say where its messages go")
		if n := len(f.got); n != 0 {
			t.Errorf("%s: %d messages came", endpoint, n)
		}
	}
}

func TestFeedDial(t *testing.T) {
	tests := []struct {
		name      string
		serve     http.HandlerFunc
		transport string
		text      string
	}{
		{"no stream", http.NotFound, "sse", "there is no stream of events: status 404"},
		{"neither", http.NotFound, "auto", "refuses the request (404 Not Found): status 404"},
		{"json", func(w http.ResponseWriter, _ *http.Request) { status(w, 200, "application/json", "{}") }, "sse", "there is no stream of events"},
		{"another event first", func(w http.ResponseWriter, _ *http.Request) {
			events(w)(`data: {"jsonrpc":"2.0","method":"x"}`)
		}, "sse", "its first event is not an endpoint"},
		{"nothing", func(w http.ResponseWriter, _ *http.Request) { events(w) }, "sse", "does not say where its messages go: EOF"},
		{"401 is not tried otherwise", func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				t.Error("it was tried otherwise")
			}
			w.WriteHeader(http.StatusUnauthorized)
		}, "auto", "(401)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			_, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: s.URL, Transport: tt.transport}, upstream.Options{})
			failed(t, err, tt.text)
		})
	}
}

func TestFeedDialContext(t *testing.T) {
	asked := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		events(w)
		close(asked)
		<-r.Context().Done()
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := upstream.Dial(ctx, upstream.Endpoint{Name: "files", URL: s.URL, Transport: "sse"}, upstream.Options{})
	failed(t, err, "was not waited for")
}

// TestFeedSinks: progress goes to its call, the rest to the events, and answers to
// nobody twice.
func TestFeedSinks(t *testing.T) {
	f := feed(t, func(f *feeder) {
		f.call = func(f *feeder, w http.ResponseWriter, m msg) {
			w.WriteHeader(http.StatusAccepted)
			f.send(`data: {"jsonrpc":"2.0","id":999,"result":{}}`)
			f.send(`data: {"jsonrpc":"2.0","id":"%s","result":{}}`, m.ID)
			f.send(`data: {"jsonrpc":"2.0","id":%s,"method":"ping"}`, m.ID)
			f.send(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"mine","n":1}}`)
			f.send(`data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"other"}}`)
			f.send(`data: {"jsonrpc":"2.0","method":"notifications/message"}`)
			f.send("event: ping\ndata: x")
			f.send(`data: {"jsonrpc":"2.0","id":%s,"result":{"ok":1}}`, m.ID)
			f.send(`data: {"jsonrpc":"2.0","id":%s,"result":{"ok":2}}`, m.ID)
			f.send(`data: {"jsonrpc":"2.0","method":"notifications/end"}`)
		}
	})
	all, mine := newRecorder(), newRecorder()
	c := f.dial(t, upstream.Options{Events: all})
	got, err := c.Call(t.Context(), upstream.Request{Method: "x", Token: "mine"}, mine)
	if err != nil || string(got.Result) != `{"ok":1}` {
		t.Fatalf("%s, %v", got.Result, err)
	}
	if diff := cmp.Diff([]string{`notifications/progress{"progressToken":"mine","n":1}`}, mine.all()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, want := range []string{`notifications/progress{"progressToken":"other"}`, "notifications/message", "notifications/end"} {
		if got := all.hear(t); got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	for m := range f.got {
		if m.Method == "" {
			if string(m.Result) != "{}" {
				t.Errorf("the ping was answered with %s", m.Result)
			}
			break
		}
	}
}

// TestFeedAskShared: where several parties use the connection, the one call in
// flight need not be the one that a request of the server belongs to.
func TestFeedAskShared(t *testing.T) {
	f := feed(t, func(f *feeder) {
		f.call = func(f *feeder, w http.ResponseWriter, m msg) {
			w.WriteHeader(http.StatusAccepted)
			f.send(`data: {"jsonrpc":"2.0","id":"q","method":"roots/list"}`)
			go func() {
				for r := range f.got {
					if r.Method == "" {
						f.send(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, r.Result)
						return
					}
				}
			}()
		}
	})
	says := func(text string) *recorder {
		k := newRecorder()
		k.ask = func(context.Context, string, []byte) ([]byte, error) { return []byte(text), nil }
		return k
	}
	c := f.dial(t, upstream.Options{Events: says(`{"by":"events"}`), Shared: true})
	a, err := call(t.Context(), c, says(`{"by":"call"}`))
	if err != nil || string(a.Result) != `{"by":"events"}` {
		t.Errorf("answered with %s, %v", a.Result, err)
	}
}

// TestFeedAsk: a request of the server is the one call's, or the events', and with
// several calls the events' too. An id like a call's is no answer to it.
func TestFeedAsk(t *testing.T) {
	answers := make(chan string, 10)
	release := make(chan struct{})
	f := feed(t, func(f *feeder) {
		f.call = func(f *feeder, w http.ResponseWriter, m msg) {
			w.WriteHeader(http.StatusAccepted)
			if m.Method == "wait" {
				go func() {
					<-release
					f.send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
				}()
				return
			}
			f.send(`data: {"jsonrpc":"2.0","id":%s,"method":"roots/list"}`, m.ID)
			go func() {
				for r := range f.got {
					if r.Method == "" {
						answers <- string(r.Result) + string(r.Error)
						break
					}
				}
				f.send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
			}()
		}
	})
	says := func(text string) *recorder {
		k := newRecorder()
		k.ask = func(context.Context, string, []byte) ([]byte, error) { return []byte(text), nil }
		return k
	}
	c := f.dial(t, upstream.Options{Events: says(`{"by":"events"}`)})
	if _, err := call(t.Context(), c, says(`{"by":"call"}`)); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; got != `{"by":"call"}` {
		t.Errorf("answered with %s", got)
	}
	f.send(`data: {"jsonrpc":"2.0","id":"idle","method":"roots/list"}`)
	for m := range f.got {
		if m.Method == "" {
			if string(m.Result) != `{"by":"events"}` {
				t.Errorf("answered with %s", m.Result)
			}
			break
		}
	}
	waited := make(chan error)
	go func() {
		_, err := c.Call(t.Context(), upstream.Request{Method: "wait"}, says(`{"by":"the wrong one"}`))
		waited <- err
	}()
	f.await(t, "wait")
	if _, err := call(t.Context(), c, says(`{"by":"call"}`)); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; got != `{"by":"events"}` {
		t.Errorf("answered with %s", got)
	}
	close(release)
	if err := <-waited; err != nil {
		t.Error(err)
	}
}

// TestFeedAsksTooMuch: what is asked beyond what may wait is refused, as is what has the id of another that does. The
// connection goes on.
func TestFeedAsksTooMuch(t *testing.T) {
	const most = 16
	f := feed(t, func(f *feeder) {
		f.call = func(f *feeder, w http.ResponseWriter, m msg) {
			w.WriteHeader(http.StatusAccepted)
			f.send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
		}
	})
	k := newRecorder()
	k.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	c := f.dial(t, upstream.Options{Events: k})
	for i := range most {
		f.send(`data: {"jsonrpc":"2.0","id":"q%d","method":"roots/list"}`, i)
	}
	f.send(`data: {"jsonrpc":"2.0","id":"q0","method":"roots/list"}`)
	for _, tt := range []struct{ ask, told string }{
		{`{"jsonrpc":"2.0","id":"more","method":"roots/list"}`, "too many"},
		{`{"jsonrpc":"2.0","id":"q0","method":"sampling/createMessage"}`, "same id"},
	} {
		f.send(`data: %s`, tt.ask)
		if got := f.await(t, ""); !strings.Contains(string(got.Error), tt.told) {
			t.Errorf("%s is told %s", tt.ask, got.Error)
		}
	}
	if _, err := call(t.Context(), c, nil); err != nil {
		t.Error(err)
	}
}

// TestFeedEnds: when the stream is over, so is every call.
func TestFeedEnds(t *testing.T) {
	tests := []struct {
		name   string
		call   func(f *feeder, w http.ResponseWriter, m msg)
		text   string
		unsent bool
		lost   bool
		over   bool
	}{
		{"the end", func(f *feeder, w http.ResponseWriter, _ msg) { w.WriteHeader(http.StatusAccepted); close(f.end) }, "the stream of events ended: EOF", false, false, true},
		{"garbage", fed("data: {%s"), "the stream of events ended", false, false, true},
		{"404", func(_ *feeder, w http.ResponseWriter, _ msg) { status(w, 404, "text/plain", "not found") }, `no longer knows the session: status 404 Not Found, "not found"`, true, true, true},
		{"404 for nobody", func(_ *feeder, w http.ResponseWriter, _ msg) {
			status(w, 404, "application/json", `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		}, "no longer knows the session", true, true, true},
		{"404 of ours", func(_ *feeder, w http.ResponseWriter, m msg) {
			status(w, 404, "text/plain", `{"jsonrpc":"2.0","error":{"code":1,"message":"customer not found"},"id":`+string(m.ID)+`}`)
		}, "status 404 Not Found", false, false, false},
		{"404 cut short", func(_ *feeder, w http.ResponseWriter, _ msg) {
			w.Header().Set("Content-Length", "1000")
			status(w, 404, "text/plain", "Session not found")
		}, "status 404 Not Found", false, false, false},
		{"404 that is long", func(_ *feeder, w http.ResponseWriter, m msg) {
			status(w, 404, "text/plain", strings.Repeat("x", 70<<10)+`"id":`+string(m.ID))
		}, "status 404 Not Found", false, false, false},
		{"400 of a session", func(_ *feeder, w http.ResponseWriter, _ msg) {
			status(w, 400, "text/plain", "No transport found for sessionId")
		}, "no longer knows the session", true, true, true},
		{"401", func(_ *feeder, w http.ResponseWriter, _ msg) { status(w, 401, "text/plain", "who?") }, `wants to know who asks (401): status 401 Unauthorized, "who?"`, false, false, false},
		{"500", func(_ *feeder, w http.ResponseWriter, _ msg) { status(w, 500, "text/plain", "oops") }, `status 500 Internal Server Error, "oops"`, false, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := feed(t, func(f *feeder) { f.call = tt.call })
			c := f.dial(t, upstream.Options{})
			_, err := call(t.Context(), c, nil)
			if g := failed(t, err, tt.text); g.Unsent != tt.unsent || g.Lost != tt.lost || g.Undone != (tt.name == "401") {
				t.Errorf("unsent %v, lost %v", g.Unsent, g.Lost)
			}
			if !tt.over {
				return
			}
			<-c.Done()
			_, err = call(t.Context(), c, nil)
			if g := failed(t, err, ""); !g.Unsent {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestFeedCancel(t *testing.T) {
	f := feed(t, func(f *feeder) {
		f.call = func(_ *feeder, w http.ResponseWriter, _ msg) { w.WriteHeader(http.StatusAccepted) }
	})
	c := f.dial(t, upstream.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	id := make(chan string, 1)
	go func() {
		id <- string(f.await(t, "tools/call").ID)
		cancel()
	}()
	_, err := call(ctx, c, nil)
	if failed(t, err, "was not waited for"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got, want := string(f.await(t, "notifications/cancelled").Params), `{"requestId":`+<-id+`}`; got != want {
		t.Errorf("the server was told of %s, want %s", got, want)
	}
	_, err = call(ctx, c, nil) // who has left before
	if f := failed(t, err, "was not asked"); !f.Unsent || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFeedManyAtOnce(t *testing.T) {
	f := feed(t, func(f *feeder) {
		f.got = make(chan msg, 10_000)
		f.call = func(f *feeder, w http.ResponseWriter, m msg) {
			w.WriteHeader(http.StatusAccepted)
			go f.send(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, m.Params)
		}
	})
	c := f.dial(t, upstream.Options{})
	var all sync.WaitGroup
	for worker := range 64 {
		all.Go(func() {
			for i := range 10 {
				want := fmt.Sprintf(`{"w":%d,"i":%d}`, worker, i)
				got, err := c.Call(t.Context(), upstream.Request{Method: "x", Params: []byte(want)}, nil)
				if err != nil || string(got.Result) != want {
					t.Errorf("%s: %s, %v", want, got.Result, err)
				}
			}
		})
	}
	all.Wait()
}

func TestFeedNothingIsLeft(t *testing.T) {
	f := feed(t, func(f *feeder) {
		f.got = make(chan msg, 10_000)
		f.call = func(_ *feeder, w http.ResponseWriter, _ msg) { w.WriteHeader(http.StatusAccepted) }
	})
	before := runtime.NumGoroutine()
	for range 200 {
		c, err := upstream.Dial(t.Context(), upstream.Endpoint{Name: "files", URL: f.URL + "/sse", Transport: "sse"}, upstream.Options{})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { _, err := call(t.Context(), c, nil); done <- err }()
		f.await(t, "tools/call")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		failed(t, <-done, "is closed")
	}
	f.CloseClientConnections()
	settle(t, before)
}
