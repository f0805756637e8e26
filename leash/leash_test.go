package leash_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"capgate/leash"
)

var errOver = errors.New("it is over")

// TestEnds ends a leash in every way that there is, and looks at it and at what is
// made of it.
func TestEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(root context.Context) *leash.Leash // returns one that has ended
		want error
	}{
		"cut": {func(root context.Context) *leash.Leash {
			l := leash.New(root)
			l.Cut(nil)
			return l
		}, context.Canceled},
		"cut for a reason": {func(root context.Context) *leash.Leash {
			l := leash.New(root)
			l.Cut(errOver)
			return l
		}, errOver},
		"cut twice": {func(root context.Context) *leash.Leash {
			l := leash.New(root).Within(time.Hour)
			l.Cut(errOver)
			l.Cut(nil)
			return l
		}, errOver},
		"its time is over": {func(root context.Context) *leash.Leash {
			l := leash.New(root).Within(time.Minute)
			time.Sleep(time.Minute)
			return l
		}, context.DeadlineExceeded},
		"that of a parent is": {func(root context.Context) *leash.Leash {
			parent := leash.New(root).Within(time.Minute)
			l := leash.New(parent).Within(time.Hour)
			time.Sleep(time.Minute)
			return l
		}, context.DeadlineExceeded},
		"the parent is cut": {func(root context.Context) *leash.Leash {
			parent := leash.New(root)
			l := leash.New(leash.New(parent))
			parent.Cut(errOver)
			return l
		}, errOver},
		"the parent was cut before": {func(root context.Context) *leash.Leash {
			parent := leash.New(root)
			parent.Cut(errOver)
			return leash.New(parent).Within(time.Hour)
		}, errOver},
		"the parent is a context": {func(root context.Context) *leash.Leash {
			parent, cancel := context.WithCancelCause(root)
			l := leash.New(parent).Within(time.Hour)
			cancel(errOver)
			return l
		}, errOver},
		"the parent was a context": {func(root context.Context) *leash.Leash {
			parent, cancel := context.WithCancelCause(root)
			cancel(errOver)
			return leash.New(parent)
		}, errOver},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := test.end(t.Context())
				synctest.Wait()
				below, cancel := context.WithTimeout(l, time.Hour)
				defer cancel()
				hooked := make(chan struct{})
				if stop := hang(l, func() { close(hooked) }); stop() {
					t.Error("what is to run when it has ended has not run")
				}
				<-hooked
				for what, ctx := range map[string]context.Context{"the leash": l, "a context of it": below} {
					select {
					case <-ctx.Done():
					default:
						t.Errorf("%s is not done", what)
					}
					if ctx.Err() == nil || !errors.Is(context.Cause(ctx), test.want) {
						t.Errorf("%s: %v because of %v, want %v", what, ctx.Err(), context.Cause(ctx), test.want)
					}
				}
			})
		})
	}
}

// hang hangs a hook, and returns what takes it off.
func hang(on context.Context, f func()) (off func() bool) {
	h := new(leash.Hook)
	h.Hang(on, f)
	return h.Off
}

// TestValues: those of the parent are at hand, and then those that were lent.
func TestValues(t *testing.T) {
	type key string
	lent := context.WithValue(context.WithValue(t.Context(), key("a"), "lent"), key("b"), "lent")
	l := leash.New(context.WithValue(t.Context(), key("a"), "kept"))
	defer l.Cut(nil)
	if l.Value(key("a")) != "kept" || l.Value(key("b")) != nil {
		t.Errorf("of the parent: %v, %v", l.Value(key("a")), l.Value(key("b")))
	}
	l.Lend(lent)
	if l.Value(key("a")) != "kept" || l.Value(key("b")) != "lent" || l.Value(key("c")) != nil {
		t.Errorf("lent: %v, %v, %v", l.Value(key("a")), l.Value(key("b")), l.Value(key("c")))
	}
}

// TestDeadline: the deadline is the first of all.
func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		if at, ok := leash.New(t.Context()).Deadline(); ok {
			t.Errorf("one without a limit ends at %v", at)
		}
		minute := leash.New(t.Context()).Within(time.Minute)
		for _, l := range []*leash.Leash{minute, leash.New(minute), leash.New(minute).Within(time.Hour), leash.New(leash.New(t.Context()).Within(time.Hour)).Within(time.Minute)} {
			if at, ok := l.Deadline(); !ok || at.Sub(now) != time.Minute {
				t.Errorf("it ends at %v, after %v", at, at.Sub(now))
			}
			l.Cut(nil)
		}
	})
}

// TestBelow: a context of package context that was made of a leash ends with it, and can
// end before.
func TestBelow(t *testing.T) {
	l := leash.New(t.Context())
	early, cancel := context.WithCancel(l)
	cancel()
	late, cancel := context.WithTimeout(context.WithValue(l, t, t), time.Hour)
	defer cancel()
	woken := make(chan struct{})
	defer context.AfterFunc(l, func() { close(woken) })()
	if l.Err() != nil || late.Err() != nil || early.Err() == nil {
		t.Errorf("before: %v, %v, %v", l.Err(), late.Err(), early.Err())
	}
	l.Cut(errOver)
	<-woken
	<-late.Done()
	if !errors.Is(context.Cause(late), errOver) || !errors.Is(context.Cause(early), context.Canceled) {
		t.Errorf("after: %v, %v", context.Cause(late), context.Cause(early))
	}
}

// TestOwnGoroutine: what package context has run may wait for what its caller holds, also
// where the leash has ended just before.
func TestOwnGoroutine(t *testing.T) {
	for name, before := range map[string]bool{"ended before": true, "ends after": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := leash.New(t.Context())
				if before {
					l.Cut(nil)
				}
				given, ran := make(chan struct{}), make(chan struct{})
				stop := l.AfterFunc(func() {
					<-given // for ever, where that is what waits
					close(ran)
				})
				l.Cut(nil)
				close(given)
				<-ran
				if stop() {
					t.Error("what has run can be had not to")
				}
			})
		})
	}
}

// TestWaits: who waits is woken, whether asked for before or after the end.
func TestWaits(t *testing.T) {
	l := leash.New(t.Context())
	select {
	case <-l.Done():
		t.Fatal("it is done already")
	default:
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	var waiting sync.WaitGroup
	for range 4 {
		waiting.Go(func() { <-l.Done() })
	}
	l.Cut(nil)
	waiting.Wait()
	<-l.Done()
}

// TestAfter has some of several things not run: each is told whether it was in time,
// whatever stands before and behind it.
func TestAfter(t *testing.T) {
	for _, off := range [][]int{nil, {0}, {1}, {2}, {0, 1}, {2, 1}, {1, 0, 2}, {0, 0}} {
		l := leash.New(t.Context())
		var ran []int
		var stops []func() bool
		for i := range 3 {
			stops = append(stops, hang(l, func() { ran = append(ran, i) }))
		}
		var want []int
		for i := range 3 {
			if !slices.Contains(off, i) {
				want = append(want, i)
			}
		}
		for n, i := range off {
			if first := !slices.Contains(off[:n], i); stops[i]() != first {
				t.Errorf("%v: %d: the first time %v", off, n, !first)
			}
		}
		l.Cut(nil)
		l.Cut(nil)
		slices.Sort(ran)
		if !slices.Equal(ran, want) {
			t.Errorf("without %v: %v ran", off, ran)
		}
		for i, stop := range stops {
			if stop() {
				t.Errorf("%d can be had not to run when it has", i)
			}
		}
	}
}

// TestKeepsNothing: a parent that lives on holds nothing of what has ended.
func TestKeepsNothing(t *testing.T) {
	above, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, parent := range map[string]context.Context{"a leash": leash.New(t.Context()), "a context": above} {
		var gone []weak.Pointer[leash.Leash]
		for range 8 {
			l := leash.New(parent).Within(time.Hour)
			gone = append(gone, weak.Make(l))
			l.Cut(nil)
		}
		runtime.GC()
		runtime.GC()
		for _, p := range gone {
			if p.Value() != nil {
				t.Fatalf("%s holds what has ended", name)
			}
		}
		runtime.KeepAlive(parent)
	}
}

// TestTogether has leashes end from all sides at once: each hook runs once or was
// taken out, and never both.
func TestTogether(t *testing.T) {
	for range 200 {
		parent := leash.New(t.Context())
		var ran, out atomic.Int64
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				l := leash.New(parent).Within(time.Duration(i) * time.Microsecond)
				defer l.Cut(nil)
				stop := hang(l, func() { ran.Add(1) })
				if i%2 == 0 {
					runtime.Gosched()
				}
				if stop() {
					out.Add(1)
				}
			})
		}
		all.Go(func() { parent.Cut(errOver) })
		all.Wait()
		for end := time.Now().Add(10 * time.Second); ran.Load()+out.Load() < 8 && time.Now().Before(end); {
			runtime.Gosched() // one whose time is over runs in the goroutine of its timer
		}
		if ran.Load()+out.Load() != 8 {
			t.Fatalf("%d ran and %d did not, of 8", ran.Load(), out.Load())
		}
	}
}

// BenchmarkCall makes and ends what one call needs, in the two ways.
func BenchmarkCall(b *testing.B) {
	nothing := func() {}
	b.Run("leash", func(b *testing.B) {
		b.ReportAllocs()
		life := leash.New(b.Context())
		request := leash.New(b.Context())
		for b.Loop() {
			var caller, wake leash.Hook
			call := leash.New(request).Within(time.Minute)
			up := leash.New(life)
			caller.Hang(call, func() { up.Cut(nil) })
			wake.Hang(up, nothing)
			wake.Off()
			caller.Off()
			up.Cut(nil)
			call.Cut(nil)
		}
	})
	b.Run("context", func(b *testing.B) {
		b.ReportAllocs()
		life, end := context.WithCancel(b.Context())
		defer end()
		request, done := context.WithCancel(b.Context())
		defer done()
		for b.Loop() {
			call, cancel := context.WithTimeout(request, time.Minute)
			up, cut := context.WithCancel(life)
			stop := context.AfterFunc(call, cut)
			wake := context.AfterFunc(up, nothing)
			wake()
			stop()
			cut()
			cancel()
		}
	})
}
