package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// tool is a call of one of the fake server's tools.
func tool(name string, n int) upstream.Request {
	return upstream.Request{
		Method: "tools/call",
		Params: fmt.Appendf(nil, `{"name":%q,"arguments":{"n":%d}}`, name, n),
	}
}

// sink keeps what a server sends besides answers.
type sink struct {
	answer func(ctx context.Context, method string, params []byte) ([]byte, error)

	mu    sync.Mutex
	notes []string
	heard chan struct{} // one for each note, if there is room
}

func (s *sink) Notify(method string, params []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, method+" "+string(params))
	select {
	case s.heard <- struct{}{}:
	default:
	}
}

func (s *sink) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	if s.answer == nil {
		return nil, &upstream.Refusal{Code: -1, Message: "not now"}
	}
	return s.answer(ctx, method, params)
}

func (s *sink) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.notes)
}

// started is a running fake server, which ends with the test.
func started(t testing.TB, p upstream.Program, o upstream.Options) upstream.Conn {
	t.Helper()
	conn, err := upstream.Start(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// result is the result of a call that has to have one.
func resultOf(t testing.TB, conn upstream.Conn, r upstream.Request, s upstream.Sink) string {
	t.Helper()
	answer, err := conn.Call(t.Context(), r, s)
	if err != nil {
		t.Fatalf("%s: %v", r.Params, err)
	}
	if answer.Error != nil {
		t.Fatalf("%s: %s", r.Params, answer.Error)
	}
	return string(answer.Result)
}

// failure is the error of a call that has to fail.
func failureOf(t testing.TB, err error) *upstream.Failed {
	t.Helper()
	var f *upstream.Failed
	if !errors.As(err, &f) {
		t.Fatalf("the error is %v, not one of Failed", err)
	}
	return f
}

func TestGreeting(t *testing.T) {
	for _, tt := range []struct {
		mode, protocol string
		want           upstream.Info
		wantErr        string
	}{
		{mode: "plain", want: upstream.Info{Version: "2025-11-25"}},
		{mode: "plain", protocol: "2025-11-25", want: upstream.Info{Version: "2025-11-25"}},
		{mode: "plain", protocol: "2025-06-18", wantErr: `wants a protocol revision that is not spoken here: "2025-11-25"`},
		{mode: "plain", protocol: "2026-07-28", wantErr: "does not speak protocol revision 2026-07-28"},
		{mode: "plain", protocol: "2023-01-01", wantErr: "is not known"},
		{mode: "modern", want: upstream.Info{Modern: true, Version: "2026-07-28"}},
		{mode: "modern", protocol: "2025-11-25", wantErr: `refuses the handshake: error -32601: "2026-07-28 only"`},
		{mode: "touchy", want: upstream.Info{Version: "2025-11-25"}},
		{mode: "version:2024-11-05", want: upstream.Info{Version: "2024-11-05"}},
		{mode: "version:2025-03-26", want: upstream.Info{Version: "2025-03-26"}},
		{mode: "version:2025-06-18", want: upstream.Info{Version: "2025-06-18"}},
		{mode: "version:2026-07-28", wantErr: `wants a protocol revision that is not spoken here: "2026-07-28"`},
		{mode: "version:", wantErr: "wants a protocol revision"},
		{mode: "crash", wantErr: `exit status 7, and last said: no such\u001b[31m database`},
	} {
		t.Run(tt.mode+"/"+tt.protocol, func(t *testing.T) {
			conn, err := upstream.Start(t.Context(), program(t, tt.mode),
				upstream.Options{Client: upstream.Client{Protocol: tt.protocol}})
			if tt.wantErr != "" {
				f := failureOf(t, err)
				if !strings.Contains(f.Error(), tt.wantErr) {
					t.Fatalf("the error is %q, want %q in it", f, tt.wantErr)
				}
				if strings.ContainsAny(f.Text, `":`) {
					t.Errorf("agents are told what the server said: %s", f.Text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			got := conn.Info()
			if !strings.HasPrefix(string(got.Capabilities), `{"tools":{`) || !strings.HasPrefix(string(got.Server), `{"name":"fake"`) {
				t.Errorf("capabilities %s, server %s", got.Capabilities, got.Server)
			}
			got.Capabilities, got.Server = nil, nil
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCall(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})

	// Params go up as they are, but for line breaks between tokens.
	got := resultOf(t, conn, upstream.Request{
		Method: "tools/call", Params: []byte("{\"name\":\"echo\",\n\r \"n\": 1.0 , \"é\":\"\\u00e9<\"}"),
	}, nil)
	if want := "{\"content\":[],\"params\":{\"name\":\"echo\",   \"n\": 1.0 , \"é\":\"\\u00e9<\"}}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	// An error of the server is an answer, as the server wrote it.
	answer, err := conn.Call(t.Context(), tool("refuse", 0), nil)
	if want := `{"code":-32602,"message":"Unknown tool","data":{"kept":1.0}}`; err != nil || string(answer.Error) != want {
		t.Errorf("got %s, %v, want %s", answer.Error, err, want)
	}

	// What a server sends twice, or to nobody, is not taken for an answer.
	if got := resultOf(t, conn, tool("twice", 0), nil); got != `{"n":1}` {
		t.Errorf("twice: %s", got)
	}
	if got := resultOf(t, conn, tool("foreign", 0), nil); got != `{"n":5}` {
		t.Errorf("foreign: %s", got)
	}
	if got := resultOf(t, conn, tool("size", 3<<20), nil); len(got) != 3<<20+11 {
		t.Errorf("a result of 3 MB has %d bytes", len(got))
	}
	if got := resultOf(t, conn, tool("ping", 0), nil); got != `{"id":"p1","answer":{}}` {
		t.Errorf("ping: %s", got)
	}
	if got := resultOf(t, conn, tool("complain", 5000), nil); got != `{}` {
		t.Errorf("complain: %s", got)
	}
}

// rawAnswers are lines that answer a call wrongly.
func rawAnswers() []struct{ line, want string } {
	return []struct{ line, want string }{
		{`{"jsonrpc":"2.0","id":%s,"result":{"a":1,"a":2}}`, `duplicate key "a"`},
		{`{"jsonrpc":"2.0","id":%s,"result":{"a":1,"A":2}}`, `key`},
		{"{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"a\":\"\xff\"}}", `invalid UTF-8`},
		{`{"jsonrpc":"2.0","id":%s,"result":{"a":"\ud800"}}`, `surrogate`},
		{`{"jsonrpc":"2.0","id":%s,"result":{"a":"\u0000"}}`, `NUL`},
		{`{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"x"}}`, `both a result and an error`},
		{`{"jsonrpc":"2.0","id":%s}`, `not JSON-RPC`},
		{`{"jsonrpc":"1.0","id":%s,"result":{}}`, `not JSON-RPC`},
		{`{"jsonrpc":"2.0","id":%s,"result":[]}`, `not JSON-RPC`},
		{`{"jsonrpc":"2.0","id":%s,"error":"no"}`, `not JSON-RPC`},
		{`{"jsonrpc":"2.0","id":%s,"result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, `deep`},
	}
}

// TestUnreadable: an answer that cannot be read fails the call it is meant for,
// at once, and no other.
func TestUnreadable(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})
	for i, raw := range rawAnswers() {
		_, err := conn.Call(t.Context(), tool("raw", i), nil)
		f := failureOf(t, err)
		if f.Unsent || f.Lost || !strings.Contains(f.Error(), raw.want) {
			t.Errorf("%s: got %q, want %q in it", raw.line, f, raw.want)
		}
	}
	resultOf(t, conn, tool("echo", 0), nil)
}

func TestDeath(t *testing.T) {
	t.Run("mid call", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		_, err := conn.Call(t.Context(), tool("die", 0), nil)
		f := failureOf(t, err)
		if want := `upstream "files" ended: exit status 3, and last said: out of memory`; f.Error() != want || f.Unsent || f.Lost {
			t.Errorf("got %q, unsent %t, want %q", f, f.Unsent, want)
		}
		<-conn.Done()
		_, err = conn.Call(t.Context(), tool("echo", 0), nil)
		if f := failureOf(t, err); !f.Unsent {
			t.Errorf("after the death a call is %q, unsent %t", f, f.Unsent)
		}
		if err := conn.Notify(t.Context(), "notifications/x", nil); !failureOf(t, err).Unsent {
			t.Errorf("after the death a notification is %q", err)
		}
	})
	t.Run("between calls", func(t *testing.T) {
		var log safeBuffer
		conn := started(t, program(t, "plain"), upstream.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		resultOf(t, conn, tool("die after", 0), nil)
		<-conn.Done()
		if text := log.String(); strings.Count(text, `level=WARN msg="an upstream has ended" upstream=files error="upstream \"files\" ended: exit status 0`) != 1 {
			t.Errorf("the log says %q", text)
		}
		_, err := conn.Call(t.Context(), tool("echo", 0), nil)
		if f := failureOf(t, err); !f.Unsent {
			t.Errorf("got %q, unsent %t", f, f.Unsent)
		}
	})
	t.Run("stdout closed", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		_, err := conn.Call(t.Context(), tool("close stdout", 0), nil)
		if f := failureOf(t, err); !strings.Contains(f.Error(), "closed its output") {
			t.Errorf("got %q", f)
		}
		<-conn.Done()
	})
	t.Run("closed here", func(t *testing.T) {
		var log safeBuffer
		conn := started(t, program(t, "plain"), upstream.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		failed := make(chan error)
		go func() {
			_, err := conn.Call(t.Context(), tool("silence", 0), nil)
			failed <- err
		}()
		resultOf(t, conn, tool("echo", 0), nil)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		failureOf(t, <-failed)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if text := log.String(); text != "" {
			t.Errorf("the log says %q", text)
		}
	})
}

func TestLimits(t *testing.T) {
	t.Run("line", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{Limits: upstream.Limits{Message: 1 << 20}})
		if got := resultOf(t, conn, tool("size", 1<<20-100), nil); len(got) < 1<<20-100 {
			t.Errorf("%d bytes", len(got))
		}
		_, err := conn.Call(t.Context(), tool("endless", 100), nil)
		if f := failureOf(t, err); f.Unsent || !strings.Contains(f.Error(), "a message is too long") {
			t.Errorf("got %q", f)
		}
	})
	t.Run("noise", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		for range 3 { // a message in between forgives it
			resultOf(t, conn, tool("noise", 1000), nil)
		}
		_, err := conn.Call(t.Context(), tool("noise", 1001), nil)
		if f := failureOf(t, err); f.Unsent || !strings.Contains(f.Error(), "no messages") {
			t.Errorf("got %q", f)
		}
	})
	t.Run("log", func(t *testing.T) {
		var log safeBuffer
		conn := started(t, program(t, "plain"), upstream.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		resultOf(t, conn, tool("complain", 5000), nil)
		resultOf(t, conn, tool("noise", 500), nil)
		text := log.String()
		if n := strings.Count(text, "\n"); n == 0 || n > 200 {
			t.Errorf("%d lines were logged", n)
		}
		if strings.Contains(text, "\x00") || strings.Contains(text, "\xff") || strings.Contains(text, strings.Repeat("e", 1025)) {
			t.Error("the log holds what it must not")
		}
	})
}

func TestSinks(t *testing.T) {
	events := &sink{}
	conn := started(t, program(t, "plain"), upstream.Options{Events: events})
	mine := &sink{}
	r := upstream.Request{Method: "tools/call", Token: "t1", Params: []byte(
		`{"name":"progress","arguments":{"n":2},"_meta":{"progressToken":"t1"}}`)}
	resultOf(t, conn, r, mine)
	want := []string{
		`notifications/progress {"progressToken":"t1","progress":0}`,
		`notifications/progress {"progressToken":"t1","progress":1}`,
	}
	if diff := cmp.Diff(want, mine.all()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`notifications/tools/list_changed {}`}, events.all()); diff != "" {
		t.Error(diff)
	}
}

func TestSubscription(t *testing.T) {
	conn := started(t, program(t, "modern"), upstream.Options{})
	mine := &sink{}
	_, err := conn.Call(t.Context(), upstream.Request{Method: "subscriptions/listen", Params: []byte(`{"notifications":{}}`)}, mine)
	if f := failureOf(t, err); !strings.Contains(f.Error(), "ended the subscription") {
		t.Errorf("got %q", f)
	}
	if got := mine.all(); len(got) != 1 || !strings.HasPrefix(got[0], "notifications/subscriptions/acknowledged") {
		t.Errorf("got %q", got)
	}
}

// TestListensAgain: a modern server that ends the stream of changes is asked for another, and
// what changed meanwhile is to be looked for.
func TestListensAgain(t *testing.T) {
	events := newRecorder()
	started(t, program(t, "modern"), upstream.Options{Events: events})
	for range 2 {
		if got := events.hear(t); got != upstream.HeardAgain {
			t.Errorf("heard %s", got)
		}
	}
}

func TestAsk(t *testing.T) {
	t.Run("of a call", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{Events: &sink{}})
		got := resultOf(t, conn, tool("ask", 0), &sink{answer: func(_ context.Context, method string, params []byte) ([]byte, error) {
			return fmt.Appendf(nil, "{\"method\":%q,\n\"params\":%s}", method, params), nil
		}})
		if want := `{"said":{"method":"sampling/createMessage", "params":{"maxTokens":1}}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("of nobody knows whom", func(t *testing.T) {
		events := &sink{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`"events"`), nil }}
		conn := started(t, program(t, "plain"), upstream.Options{Events: events, Shared: true})
		got := resultOf(t, conn, tool("ask", 0), &sink{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`"call"`), nil }})
		if want := `{"said":"events"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("params are kept", func(t *testing.T) {
		events := &sink{heard: make(chan struct{}, 300)}
		conn := started(t, program(t, "plain"), upstream.Options{Events: events})
		got := resultOf(t, conn, tool("ask", 300), &sink{answer: func(_ context.Context, _ string, params []byte) ([]byte, error) {
			for range 300 { // by now what was read first has been written over
				<-events.heard
			}
			return params, nil
		}})
		if want := `{"said":{"maxTokens":1}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("refused", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		if got, want := resultOf(t, conn, tool("ask", 0), &sink{}), `{"said":{"code":-1,"message":"not now"}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("error", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		got := resultOf(t, conn, tool("ask", 0), &sink{answer: func(context.Context, string, []byte) ([]byte, error) {
			return nil, errors.New("a secret")
		}})
		if want := `{"said":{"code":-32603,"message":"the request could not be answered"}}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	t.Run("ambiguous", func(t *testing.T) {
		events := &sink{answer: func(context.Context, string, []byte) ([]byte, error) { return []byte(`"events"`), nil }}
		conn := started(t, program(t, "plain"), upstream.Options{Events: events})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = conn.Call(ctx, tool("silence", 0), &sink{}) }()
		for !strings.Contains(resultOf(t, conn, tool("ask", 0), &sink{}), "events") {
			runtime.Gosched() // until the other call is in flight
		}
		cancel()
	})
	t.Run("given up by the server", func(t *testing.T) {
		conn := started(t, program(t, "plain"), upstream.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		_, err := conn.Call(ctx, tool("ask and cancel", 0), &sink{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			close(ended)
			cancel()
			return nil, ctx.Err()
		}})
		failureOf(t, err)
		<-ended
	})
}

func TestCancel(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := make(chan struct{})
	cause := errors.New("the agent is gone")
	go func() {
		<-asked
		cancel(cause)
	}()
	_, err := conn.Call(ctx, tool("ask", 0), &sink{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		close(asked)
		<-ctx.Done() // the end of the call ends this
		return nil, ctx.Err()
	}})
	if f := failureOf(t, err); f.Unsent || !errors.Is(err, cause) {
		t.Errorf("got %q, unsent %t", f, f.Unsent)
	}
	var told struct{ Cancelled []string }
	if err := json.Unmarshal([]byte(resultOf(t, conn, tool("cancelled", 0), nil)), &told); err != nil {
		t.Fatal(err)
	}
	// The first is the probe's if that was slow; the call was not the first request.
	if len(told.Cancelled) != 1 || told.Cancelled[0] == `{"requestId":1}` {
		t.Errorf("the server was told %q", told.Cancelled)
	}

	cancel(nil)
	_, err = conn.Call(ctx, tool("echo", 0), nil)
	if f := failureOf(t, err); !f.Unsent {
		t.Errorf("with a context that has ended: %q, unsent %t", f, f.Unsent)
	}
}

// TestSinkIsFree: when a call has returned, its sink is not used any more.
func TestSinkIsFree(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	returned := make(chan struct{})
	_, err := conn.Call(ctx, upstream.Request{Method: "tools/call", Token: "t1", Params: []byte(
		`{"name":"progress","arguments":{"n":1},"_meta":{"progressToken":"t1"}}`)},
		sinkFunc(func() {
			cancel()
			select {
			case <-returned:
				t.Error("the call returned while its sink was used")
			case <-time.After(50 * time.Millisecond):
			}
		}))
	close(returned)
	failureOf(t, err)
	resultOf(t, conn, tool("echo", 0), nil)
}

// sinkFunc is called for each notification.
type sinkFunc func()

func (f sinkFunc) Notify(string, []byte) { f() }

func (f sinkFunc) Ask(context.Context, string, []byte) ([]byte, error) { return nil, nil }

type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
