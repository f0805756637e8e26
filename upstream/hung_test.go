package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"capgate/upstream"
)

const (
	hung, wake = time.Second, 100 * time.Millisecond
	vain       = 500 * time.Millisecond
	enough     = wake + 3*time.Second // to end what is to be ended
)

func begin(t *testing.T, o upstream.Options) upstream.Conn {
	t.Helper()
	conn := started(t, program(t, "plain"), o)
	upstream.Patient(conn, hung, wake, vain)
	return conn
}

// inVain makes a call that runs out of time.
func inVain(t *testing.T, conn upstream.Conn, name string, n ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err := conn.Call(ctx, tool(name, append(n, 0)[0]), nil)
	failureOf(t, err)
}

func ended(conn upstream.Conn, within time.Duration) bool {
	select {
	case <-conn.Done():
		return true
	case <-time.After(within):
		return false
	}
}

// TestHung: a program that says nothing while call after call runs out of time, and that
// gives no sign of life either, is ended, so that the next call has it started anew. One that
// says anything is not, nor one whose callers have given up at once.
func TestHung(t *testing.T) {
	t.Parallel()
	t.Run("hangs", func(t *testing.T) {
		t.Parallel()
		conn := begin(t, upstream.Options{})
		resultOf(t, conn, tool("stop reading", 0), nil)
		inVain(t, conn, "echo")
		waiting := make(chan error, 1)
		go func() {
			_, err := conn.Call(t.Context(), tool("echo", 0), nil)
			waiting <- err
		}()
		<-time.After(2 * wake) // by then it was asked for a first sign of life
		if inVain(t, conn, "echo"); ended(conn, enough) {
			t.Fatal("what was not answered within a moment has ended it")
		}
		inVain(t, conn, "echo")
		if !ended(conn, 20*time.Second) {
			t.Fatal("it goes on")
		}
		if f := failureOf(t, <-waiting); f.Unsent || !strings.Contains(f.Error(), "was given up: it says nothing") {
			t.Errorf("a call that was up failed with %v", f)
		}
	})
	t.Run("lives", func(t *testing.T) {
		t.Parallel()
		conn := begin(t, upstream.Options{})
		for range 3 {
			inVain(t, conn, "silence") // it has read of each, and works on it for all that is known
			<-time.After(2 * hung)
		}
		if ended(conn, enough) {
			t.Error("it answers a ping, and was ended")
		}
	})
	t.Run("speaks", func(t *testing.T) {
		t.Parallel()
		conn := begin(t, upstream.Options{})
		inVain(t, conn, "silence")
		<-time.After(2 * hung)
		resultOf(t, conn, tool("stop reading", 0), nil)
		inVain(t, conn, "echo")
		if ended(conn, enough) {
			t.Error("it has answered since, and was ended")
		}
	})
	for name, after := range map[string]time.Duration{"given up": 10 * time.Millisecond, "given up late": vain + 100*time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := begin(t, upstream.Options{})
			resultOf(t, conn, tool("stop reading", 0), nil)
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(after, cancel)
				_, err := conn.Call(ctx, tool("echo", 0), nil)
				failureOf(t, err)
				<-time.After(2 * hung)
			}
			if ended(conn, enough) != (after > vain) {
				t.Errorf("given up after %v", after)
			}
		})
	}
}

// TestHungAtWork: a program that may be at work for who has more time is not ended, nor one that
// waits for an answer itself, nor one that was at work long ago and has had nothing to say since.
func TestHungAtWork(t *testing.T) {
	t.Parallel()
	t.Run("worked", func(t *testing.T) {
		t.Parallel()
		conn := begin(t, upstream.Options{})
		for range 2 {
			inVain(t, conn, "work", 400) // of which it says nothing
			<-time.After(3 * hung)       // it is free by then
		}
		if ended(conn, enough) {
			t.Fatal("it was free in between, and was ended")
		}
		var got struct{ Cancelled []string }
		err := json.Unmarshal([]byte(resultOf(t, conn, tool("cancelled", 0), nil)), &got)
		if n := len(got.Cancelled); n != 2 || err != nil { // else some servers would not answer the pings, of whom they are to hear late
			t.Errorf("it was told of %d requests that nobody waits for", n)
		}
	})
	t.Run("works", func(t *testing.T) {
		t.Parallel()
		conn := begin(t, upstream.Options{})
		resultOf(t, conn, tool("stop reading", 0), nil)
		inVain(t, conn, "echo")
		long := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 2*enough+3*hung)
			defer cancel()
			_, err := conn.Call(ctx, tool("echo", 0), newRecorder())
			long <- err
		}()
		<-time.After(2 * hung)
		inVain(t, conn, "echo")
		if ended(conn, enough) {
			t.Error("an older call had time left, and it was ended")
		}
		if err := <-long; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the older call failed with %v", err)
		}
		if !ended(conn, 20*time.Second) {
			t.Error("it goes on when that has run out of time")
		}
	})
	t.Run("works for a newer call", func(t *testing.T) {
		t.Parallel()
		conn := begin(t, upstream.Options{})
		call := func(within time.Duration, name string, n int) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				_, _ = conn.Call(ctx, tool(name, n), newRecorder())
			}()
			<-time.After(wake) // it is up
		}
		call(hung, "silence", 0) // both wait for something else
		call(3*hung, "silence", 0)
		call(time.Minute, "work", int(8*hung/time.Millisecond))
		<-time.After(3 * hung)
		if ended(conn, enough) {
			t.Error("the call that it was at work for had time left, and it was ended")
		}
	})
	t.Run("asks", func(t *testing.T) { // somebody who takes his time
		t.Parallel()
		k := newRecorder()
		k.ask = func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		conn := begin(t, upstream.Options{Events: k})
		resultOf(t, conn, tool("ask and stop reading", 0), nil)
		inVain(t, conn, "echo")
		<-time.After(2 * hung)
		inVain(t, conn, "echo")
		if ended(conn, enough) {
			t.Error("it waits for an answer, and was ended")
		}
	})
}

// TestDeathIsLoggedOnce: who writes to a program notices its end as well, and who reads.
func TestDeathIsLoggedOnce(t *testing.T) {
	for range 20 {
		var log safeBuffer
		conn := started(t, program(t, "plain"), upstream.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		resultOf(t, conn, tool("die after", 0), nil)
		for conn.Notify(t.Context(), "notifications/x", nil) == nil {
		}
		<-conn.Done()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		if text := log.String(); strings.Count(text, "an upstream has ended") != 1 {
			t.Fatalf("the log says %q", text)
		}
	}
}

// TestClosedWhileItAsks: nothing is odd about a server that is closed before it has its answer.
func TestClosedWhileItAsks(t *testing.T) {
	var log safeBuffer
	conn := started(t, program(t, "plain"), upstream.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	asked, failed := make(chan struct{}), make(chan error)
	go func() {
		_, err := conn.Call(t.Context(), tool("ask", 0), &sink{answer: func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
			close(asked)
			<-ctx.Done()
			return []byte("{}"), nil
		}})
		failed <- err
	}()
	<-asked
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	failureOf(t, <-failed)
	if text := log.String(); text != "" {
		t.Errorf("the log says %q", text)
	}
}
