// Package upstream holds the connections to MCP servers: it starts them, speaks
// either era of the protocol to them, and brings back what dies.
//
// A [Conn] carries requests and their answers as bytes. It adds what belongs to
// the transport, the id of a request and the headers, and changes nothing else:
// the params that go in are the params that go up, and a result comes back as
// the server wrote it.
//
//	answer, err := conn.Call(ctx, upstream.Request{Method: "tools/call", Params: params}, sink)
//
// # Limitations
//
// Over stdio, and over HTTP+SSE, nothing says which call a server's request belongs
// to. It is given to the call that is in flight when there is one, and to who takes
// events when there are several. A call that has been sent is not sent again when the
// connection breaks; a server that nobody calls is not restarted.
//
// A process that leaves its group outlives its server unless a sandbox holds it.
// When the gateway is killed, only its direct children die with it, and only on
// Linux. Servers cannot be started on Windows. A program without a slash in its
// name is looked up in the gateway's PATH.
//
// A token is had by the authorization code flow alone: no client credentials, and
// no step-up when a server wants more scopes. Machines that share a store must agree
// on the time.
//
// A RoundTripper that is given must not change requests: their headers are shared.
package upstream
