package main

import (
	"net"
	"sync"
	"syscall"
)

// mostConnections is how many connections of agents there may be at once. What each of them
// holds, once it was used, is some thirty kilobytes.
const mostConnections = 16 << 10

// crowd is a listener that lets in no more connections than there is room for. The others
// wait outside, where they cost nothing here: whoever can connect, and need not show a token
// for it, would else take the files that records, tokens, events and servers need.
type crowd struct {
	net.Listener
	room chan struct{} // holds one for each connection
	once sync.Once
	shut chan struct{} // closed by Close
}

func newCrowd(l net.Listener, room int) *crowd {
	return &crowd{Listener: l, room: make(chan struct{}, room), shut: make(chan struct{})}
}

// Accept returns the next connection once there is room for it.
func (c *crowd) Accept() (net.Conn, error) {
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
	both, ok := conn.(halves)
	if !ok {
		<-c.room
		return conn, nil // none that takes a file
	}
	return &visitor{halves: both, leave: sync.OnceFunc(func() { <-c.room })}, nil
}

// Close lets nobody in any more.
func (c *crowd) Close() error {
	c.once.Do(func() { close(c.shut) })
	return c.Listener.Close()
}

// halves is a connection as the system has it.
type halves interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

// visitor is a connection that makes room when it is closed.
type visitor struct {
	halves
	leave func()
}

// Close ends the connection.
func (v *visitor) Close() error {
	defer v.leave()
	return v.halves.Close()
}
