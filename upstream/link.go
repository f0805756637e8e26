package upstream

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// The waits between attempts to reach a server, where LinkOptions say nothing.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 1500 * time.Millisecond // a server that is well again is back within two seconds

	// dialTime is how long one attempt may take: two handshakes, for a server that
	// is started twice.
	dialTime = 2*greetTime + 10*time.Second

	// settledTime is how long a connection must have lasted for its end to be a
	// new failure, and not that of a server which cannot stay up.
	settledTime = 1500 * time.Millisecond
)

// LinkOptions say how a link behaves. The zero value is good.
type LinkOptions struct {
	FirstWait, LongestWait time.Duration // between attempts; they double in between

	// OnUp is told of each new connection before anyone else gets it, so that it
	// can bring up to date what is known of the server. It uses the connection,
	// not the link. With its error the attempt has failed.
	OnUp func(context.Context, Conn) error
}

// Link is a server that is brought back when it dies. It is reached when it is
// needed: a server that nobody calls is not restarted.
type Link struct {
	name string
	dial func(context.Context) (Conn, error)
	o    LinkOptions
	left sync.WaitGroup // attempts, and connections that are to end

	mu       sync.Mutex
	up       *held
	dialing  *attempt
	failures int // in a row
	why      error
	until    time.Time // no attempt is made before
	closed   bool
}

// held is a connection and who uses it.
type held struct {
	conn    Conn
	since   time.Time
	users   int
	dropped bool
}

// attempt is one dial that several may wait for.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when one of the two is there
	up     *held
	err    error
}

// NewLink makes a link to the server called name, which dial reaches.
func NewLink(name string, dial func(context.Context) (Conn, error), o LinkOptions) *Link {
	if o.FirstWait <= 0 {
		o.FirstWait = firstWait
	}
	if o.LongestWait <= 0 {
		o.LongestWait = longestWait
	}
	o.FirstWait = min(o.FirstWait, o.LongestWait)
	return &Link{name: name, dial: dial, o: o}
}

// Conn returns the connection, made anew if need be. Between attempts that fail
// it returns at once why the last one did. The error is a [*Failed].
func (l *Link) Conn(ctx context.Context) (Conn, error) {
	h, err := l.acquire(ctx)
	if err != nil {
		return nil, err
	}
	l.release(h)
	return h.conn, nil
}

// IsUp reports whether there is a connection that works.
func (l *Link) IsUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up == nil {
		return false
	}
	select {
	case <-l.up.conn.Done():
		return false
	default:
		return true
	}
}

// Do calls the server. When the request did not reach it, or its session is
// gone, fn is called once more with a new connection; nothing else is repeated.
func (l *Link) Do(ctx context.Context, fn func(Conn) (Answer, error)) (Answer, error) {
	answer, again, err := l.try(ctx, fn)
	if again {
		answer, _, err = l.try(ctx, fn)
	}
	return answer, err
}

// try calls the server once. It reports whether it may be called again.
func (l *Link) try(ctx context.Context, fn func(Conn) (Answer, error)) (answer Answer, again bool, err error) {
	h, err := l.acquire(ctx)
	if err != nil {
		return Answer{}, false, err
	}
	defer l.release(h)
	answer, err = fn(h.conn)
	if f, ok := errors.AsType[*Failed](err); ok && f.Unsent && ctx.Err() == nil {
		l.drop(h)
		return answer, true, err
	}
	return answer, false, err
}

// Close ends the connection, calls in flight included, and lets no other be made.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	if l.dialing != nil {
		l.dialing.cancel()
	}
	h := l.up
	l.up = nil
	l.mu.Unlock()
	var err error
	if h != nil {
		err = h.conn.Close()
	}
	l.left.Wait()
	return err
}

// acquire returns the connection for use, until release.
func (l *Link) acquire(ctx context.Context) (*held, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil, l.failed(errClosed)
	}
	if h := l.live(); h != nil {
		h.users++
		l.mu.Unlock()
		return h, nil
	}
	if l.dialing == nil && time.Now().Before(l.until) {
		err := l.why
		l.mu.Unlock()
		return nil, l.failed(err)
	}
	if l.dialing == nil {
		l.begin(ctx)
	}
	a := l.dialing
	l.mu.Unlock()
	return l.join(ctx, a)
}

var errClosed = errors.New("the link was closed")

func (l *Link) join(ctx context.Context, a *attempt) (*held, error) {
	select {
	case <-a.done:
	case <-ctx.Done():
		return nil, l.failed(context.Cause(ctx))
	}
	if a.err != nil {
		return nil, l.failed(a.err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.up.dropped {
		return nil, l.failed(errEnded)
	}
	a.up.users++
	return a.up, nil
}

// live returns the connection, if there is one that still works. The link is
// locked.
func (l *Link) live() *held {
	if l.up == nil {
		return nil
	}
	select {
	case <-l.up.conn.Done():
	default:
		return l.up
	}
	if since := l.up.since; time.Since(since) < settledTime {
		l.failures++
		l.why = errors.New("it ended soon after it was started")
		l.until = since.Add(l.wait())
	}
	l.discard()
	return nil
}

// begin starts an attempt, which does not end with the context of who needed it.
// The link is locked.
func (l *Link) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	l.dialing = a
	l.left.Go(func() {
		defer cancel()
		h, err := l.reach(ctx)
		l.end(a, h, err)
	})
}

// reach makes a connection and tells OnUp of it.
func (l *Link) reach(ctx context.Context) (*held, error) {
	conn, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	h := &held{conn: conn, since: time.Now()}
	if l.o.OnUp == nil {
		return h, nil
	}
	if err := l.o.OnUp(ctx, conn); err != nil {
		_ = conn.Close() // why it is of no use is said already
		return nil, err
	}
	return h, nil
}

// end notes how an attempt went.
func (l *Link) end(a *attempt, h *held, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer close(a.done)
	l.dialing = nil
	if err != nil {
		l.failures++
		l.why, a.err = err, err
		l.until = time.Now().Add(l.wait())
		return
	}
	a.up, l.up = h, h
	if l.closed {
		l.discard()
	}
}

// wait is how long not to try again, after some failures: twice as long each
// time, and up to a quarter less so that not all links try at once.
func (l *Link) wait() time.Duration {
	wait := l.o.LongestWait
	if doublings := l.failures - 1; doublings < 16 {
		wait = min(wait, l.o.FirstWait<<max(doublings, 0))
	}
	return wait - time.Duration(rand.Int64N(int64(wait)/4+1))
}

// release ends a use. A connection that was dropped ends with its last use, so
// that what else is in flight on it is not cut off.
func (l *Link) release(h *held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h.users--
	if h.dropped && h.users == 0 {
		l.shut(h)
	}
}

// drop lets nobody else use a connection.
func (l *Link) drop(h *held) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up == h {
		l.discard()
	}
}

// discard is drop of the connection in use, with the link locked.
func (l *Link) discard() {
	h := l.up
	l.up = nil
	if time.Since(h.since) >= settledTime {
		l.failures = 0
	}
	l.left.Add(1)
	h.dropped = true
	if h.users == 0 {
		l.shut(h)
	}
}

// shut closes a connection that was dropped and that nobody uses.
func (l *Link) shut(h *held) {
	go func() {
		defer l.left.Done()
		_ = h.conn.Close() // nothing depends any more on how it ends
	}()
}

func (l *Link) failed(err error) *Failed {
	if f, ok := err.(*Failed); ok && f.Upstream == l.name { //nolint:errorlint // what wraps one says more
		return &Failed{Upstream: l.name, Text: f.Text, Unsent: true, Err: f.Err} // the name is said once
	}
	return &Failed{Upstream: l.name, Text: "cannot be reached", Unsent: true, Err: err}
}
