package leash

import (
	"context"
	"sync"
	"time"
)

// Leash is a context that somebody holds the other end of.
type Leash struct {
	parent context.Context //nolint:containedctx // it is a context itself
	values context.Context //nolint:containedctx // as above; nil for those of the parent alone
	tie    Hook            // on the parent
	until  time.Time       // the limit, if there is one

	mu    sync.Mutex
	timer *time.Timer // nil without a limit
	err   error       // why it ended
	done  chan struct{}
	hooks *Hook // the last first
}

// New returns a context that ends with its parent, if it is not cut before.
func New(parent context.Context) *Leash {
	l := &Leash{parent: parent}
	if above, ok := parent.(*Leash); ok { // without a function for it
		l.tie.child = l
		l.tie.hang(above)
	} else {
		l.tie.Hang(parent, l.follow)
	}
	return l
}

// Within has the leash end after a while, with [context.DeadlineExceeded]. It is said
// once, before anybody else has the leash.
func (l *Leash) Within(limit time.Duration) *Leash {
	l.until = time.Now().Add(limit)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.timer = time.AfterFunc(limit, func() { l.Cut(context.DeadlineExceeded) })
	}
	return l
}

// Lend gives the leash the values of another context, beside those of its parent. It is
// said before anybody else has the leash.
func (l *Leash) Lend(values context.Context) *Leash {
	l.values = values
	return l
}

// Cut ends the leash, for a reason; nil is [context.Canceled]. Only the first one counts.
func (l *Leash) Cut(why error) {
	if why == nil {
		why = context.Canceled
	}
	if l.end(why) {
		l.tie.Off()
	}
}

// follow ends the leash after its parent.
func (l *Leash) follow() { l.end(context.Cause(l.parent)) }

// end reports whether the leash had not ended before.
func (l *Leash) end(why error) bool {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return false
	}
	l.err = why
	first := l.hooks
	for h := first; h != nil; h = h.next {
		h.hangs = false
	}
	l.hooks = nil
	if l.done != nil {
		close(l.done)
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Unlock()
	for h := first; h != nil; h = h.next {
		h.ended()
	}
	return true
}

// AfterFunc has f run in a goroutine of its own when the leash ends. It is what package
// context asks of a context that is not its own, and it holds then what f waits for.
func (l *Leash) AfterFunc(f func()) (stop func() bool) {
	h := new(Hook)
	h.Hang(l, func() { go f() })
	return h.Off
}

// Done is closed when the leash has ended.
func (l *Leash) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil { // most are never waited for
		l.done = make(chan struct{})
		if l.err != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err says why the leash has ended, and is nil while it has not.
func (l *Leash) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Deadline is when the leash or its parent ends, whichever is first.
func (l *Leash) Deadline() (time.Time, bool) {
	at, ok := l.parent.Deadline()
	if !l.until.IsZero() && (!ok || l.until.Before(at)) {
		return l.until, true
	}
	return at, ok
}

// Value is that of the parent, or what was lent.
func (l *Leash) Value(key any) any {
	if v := l.parent.Value(key); v != nil || l.values == nil {
		return v
	}
	return l.values.Value(key)
}
