package main

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestCrowd: no more connections are there at once than there is room for; who comes then
// waits until one leaves, and whoever runs the gateway is told, once.
func TestCrowd(t *testing.T) {
	p := place{t: t}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	p.must(err)
	var said bytes.Buffer // by who accepts, who has ended when it is read
	l := newCrowd(inner, 2, slog.New(slog.NewTextHandler(&said, nil)))
	came := make(chan net.Conn, 3)
	refused := make(chan error, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				refused <- err
				return
			}
			came <- conn
		}
	}()
	for range 4 {
		c, err := net.Dial("tcp", inner.Addr().String())
		p.must(err)
		defer c.Close()
	}
	next := func() net.Conn {
		t.Helper()
		select {
		case c := <-came:
			return c
		case <-time.After(10 * time.Second):
			t.Fatal("nobody comes in")
			return nil
		}
	}
	full := func() {
		t.Helper()
		select {
		case <-came:
			t.Fatal("one more comes in than there is room for")
		case <-time.After(50 * time.Millisecond):
		}
	}
	first, second := next(), next()
	full()
	p.must(first.Close())
	_ = first.Close() // who leaves twice makes room once
	third := next()
	full()
	if _, ok := third.(syscall.Conn); !ok {
		t.Error("a connection cannot be looked at")
	}
	if half, ok := third.(interface{ CloseWrite() error }); !ok || half.CloseWrite() != nil {
		t.Error("half of a connection cannot be ended")
	}
	p.must(l.Close()) // also while somebody waits
	select {
	case <-refused:
	case <-time.After(10 * time.Second):
		t.Error("the listener waits for room after its end")
	}
	for _, c := range []net.Conn{second, third} {
		p.must(c.Close())
	}
	if n := strings.Count(said.String(), "no room for more connections"); n != 1 {
		t.Errorf("that others wait is said %d times: %s", n, said.String())
	}
}
