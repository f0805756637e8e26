package main

import (
	"log/slog"
	"net"
	"sync"
	"time"
)

// mostConnections is how many connections of agents there may be at once. What each of them
// holds, once it was used, is some thirty kilobytes.
const mostConnections = 16 << 10

const crowdedAgain = time.Minute // before it is said again that there is no room

// crowd is a listener that lets in no more connections than there is room for. The others
// wait outside, where they cost nothing here: whoever can connect, and need not show a token
// for it, would else take the files that records, tokens, events and servers need.
type crowd struct {
	net.Listener
	log  *slog.Logger
	said time.Time     // that there is no room
	room chan struct{} // holds one for each connection
	once sync.Once
	shut chan struct{} // closed by Close
}

func newCrowd(l net.Listener, room int, log *slog.Logger) *crowd {
	return &crowd{Listener: l, log: log, room: make(chan struct{}, room), shut: make(chan struct{})}
}

// Accept returns the next connection once there is room for it. One goroutine calls it.
func (c *crowd) Accept() (net.Conn, error) {
	if len(c.room) == cap(c.room) && time.Since(c.said) > crowdedAgain {
		c.said = time.Now()
		c.log.Warn("there is no room for more connections: others wait until one ends", "open", cap(c.room))
	}
	select {
	case c.room <- struct{}{}:
	case <-c.shut:
		return nil, net.ErrClosed
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.room
		return nil, err
	}
	leave := sync.OnceFunc(func() { <-c.room })
	switch own := conn.(type) {
	case *net.TCPConn:
		return &tcpVisitor{own, leave}, nil
	case *net.UnixConn:
		return &unixVisitor{own, leave}, nil
	}
	leave()
	return conn, nil // none that takes a file
}

// Close lets nobody in any more.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.shut) })
	return c.Listener.Close()
}

// tcpVisitor is a connection that makes room when it is closed. It can do whatever the one that it
// is made of can: net writes several pieces at once only to what it knows.
type tcpVisitor struct {
	*net.TCPConn
	leave func()
}

// Close ends the connection.
func (v *tcpVisitor) Close() error {
	defer v.leave()
	return v.TCPConn.Close()
}

// unixVisitor is the same for a socket in a folder.
type unixVisitor struct {
	*net.UnixConn
	leave func()
}

// Close ends the connection.
func (v *unixVisitor) Close() error {
	defer v.leave()
	return v.UnixConn.Close()
}
