package door

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"capgate/brief"
	"capgate/leash"
)

// Options say what is answered.
type Options struct {
	Handler http.Handler
	Path    string        // of the requests that are answered here
	First   time.Duration // at least, for the first request to come; half as much more at most
	Idle    time.Duration // for the next one, likewise
	Log     *slog.Logger  // for handlers that panic
}

// Door is a listener. What it returns from [Door.Accept] is for net/http.
type Door struct {
	net.Listener
	Options

	life    *leash.Leash
	through chan arrival
	open    sync.Once
	shut    chan struct{} // closed by Close
	sweep   sweep
	date    atomic.Pointer[date]
	rooms   rooms

	mu     sync.Mutex
	guests map[*guest]struct{}
	closed bool
	empty  chan struct{} // closed when it is closed and nobody is there
}

// arrival is what net/http is to have.
type arrival struct {
	conn net.Conn
	err  error
}

// Listen returns a door for what comes to a listener. The context is that of all requests.
func Listen(ctx context.Context, l net.Listener, o Options) *Door {
	d := &Door{
		Listener: l, Options: o, life: leash.New(ctx), through: make(chan arrival), shut: make(chan struct{}),
		guests: map[*guest]struct{}{}, empty: make(chan struct{}),
	}
	d.sweep.wake = make(chan struct{}, 1)
	return d
}

// Accept returns the next connection on which something else than a plain request has come.
func (d *Door) Accept() (net.Conn, error) {
	d.open.Do(func() {
		go d.accept()
		go d.sweep.run(d)
	})
	select {
	case a := <-d.through:
		return a.conn, a.err
	case <-d.shut:
		return nil, net.ErrClosed
	}
}

// accept takes connections. An error is net/http's, which waits before it asks again; so
// does this.
func (d *Door) accept() {
	for {
		conn, err := d.Listener.Accept()
		line := brief.NewSocket(conn)
		switch {
		case err != nil || !line.CanPeek():
			if !d.pass(arrival{conn, err}) {
				return
			}
		case !d.admit(&guest{door: d, conn: conn, line: line}):
			_ = conn.Close()
			return
		}
	}
}

// pass gives net/http a connection, or closes it with the door.
func (d *Door) pass(a arrival) bool {
	select {
	case d.through <- a:
		return true
	case <-d.shut:
		if a.conn != nil {
			_ = a.conn.Close()
		}
		return false
	}
}

func (d *Door) admit(g *guest) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.guests[g] = struct{}{}
	go g.stay()
	return true
}

func (d *Door) leave(g *guest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.guests, g)
	if d.closed && len(d.guests) == 0 {
		close(d.empty)
	}
}

// all returns who is there.
func (d *Door) all(into []*guest) []*guest {
	d.mu.Lock()
	defer d.mu.Unlock()
	for g := range d.guests {
		into = append(into, g)
	}
	return into
}

// Close takes no more connections and no more requests. Those that are being answered
// go on; see [Door.Wait].
func (d *Door) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	close(d.shut)
	if len(d.guests) == 0 {
		close(d.empty)
	}
	d.mu.Unlock()
	err := d.Listener.Close()
	for _, g := range d.all(nil) {
		g.dismiss()
	}
	return err
}

func (d *Door) isShut() bool {
	select {
	case <-d.shut:
		return true
	default:
		return false
	}
}

// Wait returns when the last request is answered after [Door.Close], or ends what is left
// when the context does.
func (d *Door) Wait(ctx context.Context) error {
	select {
	case <-d.empty:
		return nil
	case <-ctx.Done():
	}
	d.life.Cut(nil)
	for _, g := range d.all(nil) {
		_ = g.conn.Close()
	}
	return errors.New("requests were cut off")
}

// rooms are where what comes is read to. Guests are lent one while it is in use.
type rooms struct{ pool sync.Pool }

// Lend returns one.
func (r *rooms) Lend() []byte {
	if p, ok := r.pool.Get().(*[maxHead]byte); ok {
		return p[:]
	}
	return make([]byte, maxHead)
}

// Return takes one back, of which nothing is used any more.
func (r *rooms) Return(p []byte) { r.pool.Put((*[maxHead]byte)(p[:maxHead])) }

// date is that of a second, as it is written in answers.
type date struct {
	second int64
	text   string
}

func (d *Door) today() string {
	now := time.Now()
	if p := d.date.Load(); p != nil && p.second == now.Unix() {
		return p.text
	}
	p := &date{now.Unix(), now.UTC().Format(http.TimeFormat)}
	d.date.Store(p)
	return p.text
}
