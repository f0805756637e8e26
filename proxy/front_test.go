package proxy_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"capgate/door"
)

// front serves as the command does: by way of a door.
func front(t *testing.T, h http.Handler) *httptest.Server {
	s := httptest.NewUnstartedServer(h)
	if isBubble() {
		_ = s.Listener.Close() // nobody has heard of it
		p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), addr: s.Listener.Addr()}
		s.Listener = p
		s.Start()
		s.Client().Transport = &http.Transport{DialContext: p.dial}
		return s
	}
	s.Listener = door.Listen(context.WithoutCancel(t.Context()), s.Listener, door.Options{
		Handler: h, Path: "/mcp", First: time.Minute, Idle: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	s.Start()
	return s
}

// isBubble reports whether this is in a bubble of synctest, whose clock begins with the year
// 2000. Who waits for a network there keeps its time from passing.
func isBubble() bool { return time.Now().Year() < 2001 }

// pipes is a listener that is no network.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	addr   net.Addr
}

func (p *pipes) Addr() net.Addr { return p.addr }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
