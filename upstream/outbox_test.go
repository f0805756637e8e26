package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"capgate/upstream"
)

// TestNotReading: a server that does not read holds up nobody for longer than
// they want to wait.
func TestNotReading(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})
	resultOf(t, conn, tool("stop reading", 0), nil)
	big := upstream.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 1<<20))}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := conn.Call(ctx, big, nil)
	if f := failureOf(t, err); f.Unsent {
		t.Errorf("a request that is half written is %q, unsent %t", f, f.Unsent)
	}
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := conn.Call(ctx, tool("echo", 0), nil)
		if f := failureOf(t, err); !f.Unsent {
			t.Errorf("a request behind it is %q, unsent %t", f, f.Unsent)
		}
		cancel()
	}
	// The queue has an end, and what does not fit is not for another attempt.
	for i := 0; ; i++ {
		err := conn.Notify(t.Context(), "notifications/x", nil)
		if err != nil {
			if f := failureOf(t, err); f.Unsent || i < 100 {
				t.Errorf("after %d notifications: %q, unsent %t", i, f, f.Unsent)
			}
			break
		}
	}
}

// TestLongLinesLeaveRoom: long requests that wait for a server to read take no room of short ones, which somebody else
// may make.
func TestLongLinesLeaveRoom(t *testing.T) {
	conn := started(t, program(t, "plain"), upstream.Options{})
	resultOf(t, conn, tool("stop reading", 0), nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	full := make(chan error, 5)
	for range cap(full) {
		big := upstream.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", 16<<20-1000))}
		go func() {
			_, err := conn.Call(ctx, big, nil)
			full <- err
		}()
	}
	if f := failureOf(t, <-full); !strings.Contains(f.Error(), "too much waits") {
		t.Fatal(f)
	}
	for _, size := range []int{1, 32 << 10} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := conn.Call(ctx, upstream.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"x":%q}`, strings.Repeat("x", size))}, nil)
		if f := failureOf(t, err); !f.Unsent || ctx.Err() == nil {
			t.Errorf("a short request does not wait: %q", f)
		}
		cancel()
	}
}

// TestUnread: a server that reads nothing is given up in the end, and what it was
// not sent is known.
func TestUnread(t *testing.T) {
	sent, err := upstream.Unread(10*time.Millisecond, "short\n", strings.Repeat("x", 70<<10)+"\n", "behind it\n", "and so on\n")
	if diff := cmp.Diff([]bool{true, true, false, false}, sent); diff != "" || !errors.Is(err, upstream.ErrUnread) {
		t.Error(diff, err)
	}
}

// TestOneWrite: a request that waits for nothing goes out in one piece, and those
// that wait go out together.
func TestOneWrite(t *testing.T) {
	events := &sink{heard: make(chan struct{}, 8)}
	conn := started(t, program(t, "plain"), upstream.Options{Events: events})
	p := tool("reads", 1)
	resultOf(t, conn, p, nil)
	if err := conn.Notify(t.Context(), "notifications/x", []byte(`{"text":"`+strings.Repeat("x", 30<<10)+`"}`)); err != nil {
		t.Fatal(err)
	}
	<-events.heard
	if got := events.all(); len(got) != 1 || !strings.Contains(got[0], `"sizes":[307`) {
		t.Errorf("got %q", got)
	}
}
