package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"capgate/upstream"
)

// fakeConn is a connection that answers as it is told.
type fakeConn struct {
	n    int // which one of the link it is
	call func() (upstream.Answer, error)
	done chan struct{}
	once sync.Once
}

func (c *fakeConn) Info() upstream.Info { return upstream.Info{} }

func (c *fakeConn) Call(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
	return c.call()
}

func (c *fakeConn) Notify(context.Context, string, []byte) error { return nil }

func (c *fakeConn) Done() <-chan struct{} { return c.done }

func (c *fakeConn) Close() error {
	c.once.Do(func() { close(c.done) })
	return nil
}

// fakeDialer makes connections, or fails.
type fakeDialer struct {
	mu    sync.Mutex
	dials int
	takes time.Duration
	err   error
	conns []*fakeConn
	call  func(n int) (upstream.Answer, error)
}

func (d *fakeDialer) dial(ctx context.Context) (upstream.Conn, error) {
	d.mu.Lock()
	d.dials++
	takes := d.takes
	d.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return nil, d.err
	}
	n := len(d.conns) + 1
	c := &fakeConn{n: n, done: make(chan struct{}), call: func() (upstream.Answer, error) {
		if d.call == nil {
			return upstream.Answer{Result: fmt.Append(nil, n)}, nil
		}
		return d.call(n)
	}}
	d.conns = append(d.conns, c)
	return c, nil
}

func (d *fakeDialer) set(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *fakeDialer) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dials
}

func do(t *testing.T, l *upstream.Link) (string, error) {
	t.Helper()
	answer, err := l.Do(t.Context(), func(c upstream.Conn) (upstream.Answer, error) {
		return c.Call(t.Context(), upstream.Request{}, nil)
	})
	return string(answer.Result), err
}

func TestLinkShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialer{takes: time.Second}
		ups := 0
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{
			OnUp: func(context.Context, upstream.Conn) error { ups++; return nil },
		})
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.Conn(short); !failureOf(t, err).Unsent {
			t.Errorf("who does not wait gets %v", err)
		}
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if got, err := do(t, l); got != "1" || err != nil {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		group.Wait()
		if d.count() != 1 || ups != 1 {
			t.Errorf("%d dials, told of %d connections", d.count(), ups)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := do(t, l); !failureOf(t, err).Unsent {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestLinkRepeats(t *testing.T) {
	lost := &upstream.Failed{Upstream: "files", Text: "forgot the session", Lost: true}
	gone := &upstream.Failed{Upstream: "files", Text: "forgot the session", Lost: true, Unsent: true}
	unsent := &upstream.Failed{Upstream: "files", Text: "is away", Unsent: true}
	other := &upstream.Failed{Upstream: "files", Text: "gave no answer"}
	for _, tt := range []struct {
		name  string
		fails []error // what the calls bring, one after another; nil is an answer
		calls int
		want  error
	}{
		{"answers", nil, 1, nil},
		{"lost and unsent", []error{gone}, 2, nil},
		{"lost, perhaps done", []error{lost}, 1, lost},
		{"unsent", []error{unsent}, 2, nil},
		{"unsent twice", []error{unsent, unsent}, 2, unsent},
		{"lost, then no answer", []error{gone, other}, 2, other},
		{"no answer", []error{other}, 1, other},
		{"another error", []error{context.Canceled}, 1, context.Canceled},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := 0
				d := &fakeDialer{call: func(int) (upstream.Answer, error) {
					calls++
					if calls <= len(tt.fails) {
						return upstream.Answer{}, tt.fails[calls-1]
					}
					return upstream.Answer{}, nil
				}}
				l := upstream.NewLink("files", d.dial, upstream.LinkOptions{})
				_, err := do(t, l)
				if !errors.Is(err, tt.want) || calls != tt.calls {
					t.Errorf("%d calls, %v; want %d, %v", calls, err, tt.calls, tt.want)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				for _, c := range d.conns {
					select {
					case <-c.Done():
					default:
						t.Errorf("connection %d was left open", c.n)
					}
				}
			})
		})
	}
}

// TestLinkSpares: a connection that is dropped is not closed under the calls that
// are still in flight on it.
func TestLinkSpares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialer{}
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{})
		release := make(chan struct{})
		slow := make(chan error)
		go func() {
			_, err := l.Do(t.Context(), func(c upstream.Conn) (upstream.Answer, error) {
				<-release
				select {
				case <-c.Done():
					return upstream.Answer{}, errors.New("it was closed")
				default:
					return upstream.Answer{}, nil
				}
			})
			slow <- err
		}()
		synctest.Wait()
		tries := 0
		_, err := l.Do(t.Context(), func(upstream.Conn) (upstream.Answer, error) {
			if tries++; tries == 1 {
				return upstream.Answer{}, &upstream.Failed{Unsent: true}
			}
			return upstream.Answer{}, nil
		})
		if err != nil || d.count() != 2 {
			t.Errorf("%v after %d dials", err, d.count())
		}
		close(release)
		if err := <-slow; err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		<-d.conns[0].Done()
	})
}

func TestLinkWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		d := &fakeDialer{err: down}
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{})
		begin := time.Now()
		for time.Since(begin) < 30*time.Second {
			_, err := do(t, l)
			if f := failureOf(t, err); !f.Unsent || !errors.Is(err, down) {
				t.Fatalf("got %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		// 0.1, 0.2, 0.4, 0.8, then every 1.5 seconds, each up to a quarter less.
		if n := d.count(); n < 20 || n > 33 {
			t.Errorf("%d dials in 30 seconds", n)
		}
		d.set(nil)
		back := time.Now()
		for {
			if _, err := do(t, l); err == nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(back); took > 2*time.Second {
			t.Errorf("it took %v to come back", took)
		}
		l.Close()
	})
}

// TestLinkUnsteady: a server that starts and dies is not started again and again
// without a pause, and one that has run for a while is started at once.
func TestLinkUnsteady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialer{}
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{})
		for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(time.Millisecond) {
			if c, err := l.Conn(t.Context()); err == nil {
				c.Close()
			}
		}
		if n := d.count(); n < 20 || n > 33 {
			t.Errorf("%d starts in 30 seconds", n)
		}
		time.Sleep(time.Minute)
		for range 10 {
			c, err := l.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			c.Close()
		}
		l.Close()
	})
}

// TestLinkSettles: a connection has lasted since it was made, however long its lists took: its end is no failure to start.
func TestLinkSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialer{}
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{
			OnUp: func(context.Context, upstream.Conn) error { time.Sleep(2 * time.Second); return nil },
		})
		for _, want := range []string{"1", "2", "3"} {
			if got, err := do(t, l); got != want || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
			_ = d.conns[len(d.conns)-1].Close()
		}
		l.Close()
	})
}

func TestLinkOnUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialer{}
		bad := errors.New("it lists no tools")
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{
			OnUp: func(_ context.Context, c upstream.Conn) error {
				if c.(*fakeConn).n == 1 {
					return bad
				}
				return nil
			},
		})
		if _, err := do(t, l); !errors.Is(err, bad) {
			t.Errorf("got %v", err)
		}
		<-d.conns[0].Done()
		time.Sleep(time.Second)
		if got, err := do(t, l); got != "2" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		l.Close()
	})
}

func TestLinkCloseWhileDialing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialer{takes: time.Hour}
		l := upstream.NewLink("files", d.dial, upstream.LinkOptions{})
		failed := make(chan error)
		go func() {
			_, err := do(t, l)
			failed <- err
		}()
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		failureOf(t, <-failed)
	})
}

// TestLinkRevives kills a real server between calls, again and again: nobody
// notices.
func TestLinkRevives(t *testing.T) {
	l := upstream.NewLink("files", func(ctx context.Context) (upstream.Conn, error) {
		return upstream.Start(ctx, program(t, "plain"), upstream.Options{})
	}, upstream.LinkOptions{FirstWait: time.Nanosecond, LongestWait: time.Nanosecond})
	var told struct{ Pid int }
	seen := map[int]bool{}
	for range 20 {
		answer, err := l.Do(t.Context(), func(c upstream.Conn) (upstream.Answer, error) {
			return c.Call(t.Context(), tool("pid", 0), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(answer.Result, &told); err != nil {
			t.Fatal(err)
		}
		seen[told.Pid] = true
		conn, err := l.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(told.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-conn.Done() // the time in between is that of calls which may get lost
	}
	if len(seen) != 20 {
		t.Errorf("%d servers ran", len(seen))
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
