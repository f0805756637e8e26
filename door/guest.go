package door

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"capgate/brief"
	"capgate/leash"
)

// guest is a connection that plain requests come on.
type guest struct {
	door *Door
	conn net.Conn
	line *brief.Socket // the same connection
	from string

	room    []byte // what was lent for the piece that came last
	buf     []byte // what of that is not taken yet
	answer  answer
	idle    time.Duration // for the next piece to come
	patient time.Time     // the deadline that is set for it; zero where it is unknown

	mu      sync.Mutex
	going   bool          // no request is answered any more
	request *leash.Leash  // nil between requests
	whole   bool          // its body is here
	looks   int           // of the sweep at it
	watch   chan struct{} // closed when nobody waits for the end of the connection; nil before
}

// stay answers what comes, until it is not plain.
func (g *guest) stay() {
	defer g.door.leave(g)
	if !g.attend() {
		_ = g.conn.Close()
		return
	}
	_ = g.conn.SetDeadline(time.Time{}) // net/http has its own
	before := bytes.Clone(g.buf)
	g.leave()
	g.door.pass(arrival{conn: &passed{Conn: g.conn, before: before}})
}

// attend answers plain requests, and reports whether one has come that is not. A handler
// that panics has answered nothing, and ends its connection.
func (g *guest) attend() (other bool) {
	defer func() {
		if e := recover(); e != nil {
			if err, is := e.(error); !is || !errors.Is(err, http.ErrAbortHandler) {
				g.door.Log.Error("a request could not be answered", slog.Any("why", e), slog.String("stack", string(debug.Stack())))
			}
		}
	}()
	g.from = g.conn.RemoteAddr().String()
	g.answer, g.idle = answer{guest: g, header: http.Header{}}, g.door.First
	for len(g.buf) > 0 || g.fill() {
		r := g.next()
		if r == nil {
			return true
		}
		if !g.serve(r) {
			return false
		}
		g.idle = g.door.Idle
	}
	return false
}

// fill waits for the next piece. A deadline that is far enough is not set again.
func (g *guest) fill() bool {
	now := time.Now()
	if left := g.patient.Sub(now); left < g.idle || left > 2*g.idle {
		g.patient = now.Add(g.idle * 3 / 2)
		_ = g.conn.SetReadDeadline(g.patient) // a connection that has none is not read from
	}
	g.leave()
	var err error
	g.room, err = g.line.Receive(&g.door.rooms)
	g.buf = g.room
	return len(g.buf) > 0 && err == nil
}

// leave returns what was lent. All of it is taken.
func (g *guest) leave() {
	if g.room != nil {
		g.door.rooms.Return(g.room)
		g.room, g.buf = nil, nil
	}
}

// next takes the head of a request, if it is plain; it is left where it is if not.
func (g *guest) next() *http.Request {
	head, _, ok := bytes.Cut(g.buf, []byte("\r\n\r\n"))
	if !ok {
		return nil
	}
	r := plain(string(head), g.door.Path)
	if r == nil {
		return nil
	}
	g.buf = g.buf[len(head)+4:]
	r.RemoteAddr = g.from
	return r
}

// serve answers a request, and reports whether another one may come.
func (g *guest) serve(r *http.Request) bool {
	ctx := leash.New(g.door.life)
	defer ctx.Cut(nil)
	b := &body{guest: g, left: r.ContentLength}
	r.Body = b
	g.answer.begin(b)
	if !g.begin(ctx) {
		return false
	}
	g.door.Handler.ServeHTTP(&g.answer, r.WithContext(ctx))
	ok := g.answer.finish()
	ctx.Cut(nil) // before the watch ends: nobody is gone who was answered
	if !g.end() || !ok {
		return false
	}
	if b.left > 0 {
		g.linger() // what would be the next request is the rest of this one
		return false
	}
	return true
}

// begin reports whether a request may still be answered.
func (g *guest) begin(ctx *leash.Leash) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.going {
		return false
	}
	g.request, g.whole, g.looks, g.watch = ctx, false, 0, nil
	g.door.sweep.stir()
	return true
}

// taken says that the whole request has been read: what comes now is the next one, or
// the end.
func (g *guest) taken() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.whole = true
}

// end reports whether another request may come.
func (g *guest) end() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.request = nil
	if g.watch != nil {
		_ = g.conn.SetReadDeadline(time.Unix(1, 0)) // who waits is woken
		<-g.watch
		_ = g.conn.SetReadDeadline(time.Time{}) // of the rest of one that came meanwhile
		g.patient = time.Time{}
	}
	return !g.going
}

// look has somebody wait for the end of the connection where a request takes long, and
// reports whether it must look again.
func (g *guest) look() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.request == nil {
		return false
	}
	g.looks++
	if g.looks > 1 && g.whole && g.watch == nil {
		g.watch = make(chan struct{})
		_ = g.conn.SetReadDeadline(time.Time{}) // that of a rest, which is over
		go g.wait(g.request, g.watch)
	}
	return g.watch == nil
}

// wait ends a request when its connection does. One on which something comes is alive.
func (g *guest) wait(request *leash.Leash, over chan<- struct{}) {
	defer close(over)
	if g.line.Gone() {
		request.Cut(nil)
	}
}

// dismiss ends the connection, now or when its request is answered.
func (g *guest) dismiss() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.going = true
	if g.request == nil {
		_ = g.conn.Close()
	}
}

const (
	lingerTime = 500 * time.Millisecond
	lingerSize = 256 << 10
)

// linger lets a client that is still sending see the answer: it would not, were the
// connection closed at once.
func (g *guest) linger() {
	if c, ok := g.conn.(interface{ CloseWrite() error }); !ok || c.CloseWrite() != nil {
		return
	}
	if g.conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	rest := make([]byte, maxHead)
	for left := lingerSize; left > 0; {
		n, err := g.conn.Read(rest)
		if err != nil {
			return
		}
		left -= n
	}
}

// passed is a connection of which something has been read.
type passed struct {
	net.Conn
	before []byte
}

// Read returns that first.
func (p *passed) Read(b []byte) (int, error) {
	if len(p.before) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.before)
	if p.before = p.before[n:]; len(p.before) == 0 {
		p.before = nil // it is part of more
	}
	return n, nil
}

// CloseWrite ends one half, as net/http does before it closes both.
func (p *passed) CloseWrite() error {
	if c, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}
