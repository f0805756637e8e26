package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"capgate/brief"
	"capgate/leash"
)

const (
	laneBuffer = 8 << 10 // bytes that a lane reads at once
	maxFreight = 4 << 20 // bytes of a request; what is larger goes the usual way
	maxInterim = 4       // responses that only say that another one follows
)

// lanes carry requests over HTTP without TLS, each on a connection that it
// has to itself, and in the goroutine that waits for the answer: net/http has two
// more for each connection, and handing over to them and back costs more than all
// that the gateway decides. What is very long, or no POST, goes the usual way.
type lanes struct {
	dial    DialFunc
	address string
	usual   http.RoundTripper

	mu     sync.Mutex
	idle   []*lane     // the one that was used last at the end
	sweep  *time.Timer // nil while nothing is idle
	closed bool
}

// lane is one connection.
type lane struct {
	conn  net.Conn
	line  *brief.Socket // the same connection
	in    inflow
	r     *bufio.Reader
	head  []byte    // of the request, and memory for the next
	since time.Time // nobody uses it
}

// inflow reads from a connection, as much as it may.
type inflow struct {
	line *brief.Socket
	left int64
}

var errHeaders = errors.New("the headers of the answer are too long")

// Read reads what there is.
func (i *inflow) Read(p []byte) (int, error) {
	if i.left <= 0 {
		return 0, errHeaders
	}
	n, err := i.line.Read(p[:min(int64(len(p)), i.left)])
	i.left -= int64(n)
	return n, err
}

// newLanes returns what carries requests to a URL, or the usual way where lanes
// are of no use.
func newLanes(u *url.URL, dial DialFunc, usual http.RoundTripper) http.RoundTripper {
	if u.Scheme != "http" || !brief.CanPeek || !isPlainHeader(u.Host) || strings.Contains(u.Host, "%") {
		return usual
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return &lanes{dial: dial, address: net.JoinHostPort(u.Hostname(), port), usual: usual}
}

// RoundTrip sends a request and reads the head of its answer.
func (p *lanes) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || req.ContentLength < 0 || req.ContentLength > maxFreight {
		return p.usual.RoundTrip(req)
	}
	ctx := req.Context()
	l, isNew, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	if isNew && req.Body != nil { // which took its time: whether it may still go is asked again
		_ = req.Body.Close()
		if req.Body, err = req.GetBody(); err != nil {
			p.put(l)
			return nil, err
		}
	}
	body := &freight{lanes: p, lane: l}
	body.hook.Hang(ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) }) // whoever waits is woken
	resp, err := l.exchange(req)
	if err != nil {
		body.hook.Off()
		_ = l.conn.Close()
		return nil, err
	}
	body.ReadCloser, body.keep = resp.Body, !resp.Close
	if resp.Body == http.NoBody {
		body.end(true)
		return resp, nil
	}
	resp.Body = body
	return resp, nil
}

// exchange writes a request and reads the head of the answer.
func (l *lane) exchange(req *http.Request) (*http.Response, error) {
	var op *net.OpError
	broken := l.send(req)
	if broken != nil && !errors.As(broken, &op) {
		return nil, broken
	}
	resp, err := l.receive(req)
	if err == nil && broken != nil { // it answered before it had read everything
		resp.Close = true
	}
	if err != nil && broken != nil {
		err = broken
	}
	return resp, err
}

// receive reads the head of the answer.
func (l *lane) receive(req *http.Request) (*http.Response, error) {
	l.in.left = maxHeaders
	for range maxInterim {
		resp, err := http.ReadResponse(l.r, req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode == http.StatusSwitchingProtocols {
			return nil, errors.New("the server wants to speak another protocol")
		}
		if resp.StatusCode >= http.StatusOK {
			l.in.left = math.MaxInt64
			return resp, nil
		}
	}
	return nil, errors.New("the server announces an answer again and again")
}

// send writes a request. net/http would look at the headers for what this gateway
// never sends.
func (l *lane) send(req *http.Request) error {
	head := append(l.head[:0], "POST "...)
	head = append(head, req.URL.RequestURI()...)
	head = append(head, " HTTP/1.1\r\nHost: "...)
	head = append(head, req.Host...)
	for name, values := range req.Header {
		for _, value := range values {
			if !isToken(name) || strings.ContainsFunc(value, isControl) {
				return fmt.Errorf("the header %q cannot be sent", name)
			}
			head = append(append(append(append(head, "\r\n"...), name...), ": "...), value...)
		}
	}
	head = append(head, "\r\nContent-Length: "...)
	l.head = append(strconv.AppendInt(head, req.ContentLength, 10), "\r\n\r\n"...)
	if req.ContentLength == 0 {
		_, err := l.line.Write(l.head)
		return err
	}
	defer func() { _ = req.Body.Close() }()
	n, err := io.Copy(headed{l}, req.Body)
	if err == nil && n != req.ContentLength {
		err = fmt.Errorf("%d of %d bytes were sent", n, req.ContentLength)
	}
	return err
}

// headed writes a body behind its head, in one piece if it comes in one.
type headed struct{ *lane }

// Write writes a piece of the body.
func (h headed) Write(body []byte) (int, error) {
	head := len(h.head)
	var n int64
	var err error
	if len(body) < laneBuffer {
		h.head = append(h.head, body...)
		whole, failed := h.line.Write(h.head)
		n, err = int64(whole), failed
	} else {
		n, err = (&net.Buffers{h.head, body}).WriteTo(h.conn)
	}
	h.head = h.head[:0] // a body that comes in more pieces has one head
	return max(0, int(n)-head), err
}

// take returns a connection: one that is idle and that the server has not closed,
// or a new one.
func (p *lanes) take(ctx context.Context) (l *lane, isNew bool, err error) {
	for {
		p.mu.Lock()
		last := len(p.idle) - 1
		if last < 0 {
			p.mu.Unlock()
			l, err = p.open(ctx)
			return l, true, err
		}
		l = p.idle[last]
		p.idle[last], p.idle = nil, p.idle[:last]
		p.mu.Unlock()
		if l.line.Quiet() {
			return l, false, nil
		}
		_ = l.conn.Close()
	}
}

func (p *lanes) open(ctx context.Context) (*lane, error) {
	conn, err := p.dial(ctx, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	line := brief.NewSocket(conn)
	l := &lane{conn: conn, line: line, in: inflow{line: line}}
	l.r = bufio.NewReaderSize(&l.in, laneBuffer)
	return l, nil
}

// put keeps a connection for the next request.
func (p *lanes) put(l *lane) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !l.line.CanPeek() || len(p.idle) >= idlePerHost {
		_ = l.conn.Close()
		return
	}
	l.since = time.Now()
	p.idle = append(p.idle, l)
	if p.sweep == nil {
		p.sweep = time.AfterFunc(idleTime, p.tidy)
	}
}

// tidy closes what was not used for long, and comes back while there is more.
func (p *lanes) tidy() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for len(p.idle) > 0 && now.Sub(p.idle[0].since) >= idleTime {
		_ = p.idle[0].conn.Close()
		p.idle[0], p.idle = nil, p.idle[1:]
	}
	p.sweep = nil
	if len(p.idle) > 0 {
		p.sweep = time.AfterFunc(idleTime-now.Sub(p.idle[0].since), p.tidy)
	}
}

// close ends the connections that nobody uses, and lets none be kept.
func (p *lanes) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	for _, l := range p.idle {
		_ = l.conn.Close()
	}
	p.idle = nil
}

// freight is the body of an answer. Read to its end it gives the lane back; closed
// before, it ends it.
type freight struct {
	io.ReadCloser // of net/http, which may not be closed: it would read on

	lanes *lanes
	lane  *lane
	hook  leash.Hook // on the request's context
	keep  bool       // the server lets the connection be used again
	once  sync.Once
}

// Read reads what has come.
func (f *freight) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if err != nil {
		f.end(err == io.EOF)
	}
	return n, err
}

// Close ends the use of the body.
func (f *freight) Close() error {
	f.end(false)
	return nil
}

func (f *freight) end(whole bool) {
	f.once.Do(func() {
		if f.hook.Off() && whole && f.keep && f.lane.r.Buffered() == 0 {
			f.lanes.put(f.lane)
			return
		}
		_ = f.lane.conn.Close()
	})
}
