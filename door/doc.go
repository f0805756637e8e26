// Package door is the listener that agents come in by: it answers the plain requests
// on a connection itself, and hands a connection on which another one comes to
// net/http.
//
//	d := door.Listen(ctx, listener, door.Options{
//		Handler: front, Path: "/mcp", First: time.Minute, Idle: time.Minute, Log: log,
//	})
//	err := server.Serve(d) // an http.Server with the same handler
//
// net/http has a goroutine wait for the end of the connection while a request is
// answered, and starting, waking and ending it costs a sixth of all that a call does.
// Here nobody waits until a request has taken longer than most do.
//
// What is plain is a small part of what net/http takes: a POST to one path with a body
// whose length is announced, a head that comes in one piece, and no header that says how
// a message is to be read. Such a request is read as net/http would read it; a fuzz target
// says so. Of all others not one byte is taken here.
//
// # Limitations
//
// Connections with TLS, and all on systems where a socket cannot be looked at without
// reading from it, are net/http's. A client that ends only its own half of a connection
// is gone, as it is for net/http.
package door
