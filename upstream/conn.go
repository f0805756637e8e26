package upstream

import (
	"context"
	"fmt"
)

// Conn is a connection to one MCP server, after its handshake. It is safe for
// use by several goroutines.
type Conn interface {
	// Info is what the handshake brought.
	Info() Info

	// Call sends a request and waits for its answer. An answer that is an error
	// of the server is an Answer; the error of Call is a [*Failed]. When the
	// context ends the server is told that the call is cancelled. A nil sink means
	// that of the connection's Options.
	Call(ctx context.Context, r Request, s Sink) (Answer, error)

	// Notify sends a notification. The params are a JSON object, or nil.
	Notify(ctx context.Context, method string, params []byte) error

	// Done is closed when the connection is of no more use.
	Done() <-chan struct{}

	// Close ends the connection, and the process behind it. Calls in flight fail.
	Close() error
}

// Info is what a server said in the handshake.
type Info struct {
	Modern       bool   // it speaks the stateless protocol, without sessions
	Version      string // the protocol revision in use
	Capabilities []byte // its capabilities, a JSON object
	Server       []byte // its name and version, a JSON object; nil if it did not say
}

// Request is one request to a server.
type Request struct {
	Method string
	Params []byte  // a JSON object, which is sent as it is; nil for none
	Name   string  // the tool, prompt or resource that the Mcp-Name header names; "" for none
	Header []Field // the Mcp-Param headers that the tool's schema asks for
	Token  string  // the progress token within the params, "" for none

	// Around is the memory that Params stand in, HeadRoom bytes behind its
	// beginning. The connection may write the rest of the message around them, and
	// needs no copy then. Nil is for it to make one.
	Around []byte

	// Sent, if there is one, is called when nothing reads Params and Around any
	// more, which may be after Call has returned. It may never be called.
	Sent func()

	// May, if there is one, is asked last whenever the request is about to be written, which may
	// be long after Call was made: it waits for a token or a connection, or for a process that
	// does not read, and goes once more with another token. It is asked in the goroutine of
	// Call, or while that waits, and must wait for nothing itself. With its error the request
	// does not go, and that is the error of Call.
	May func() error

	// Into is memory that the answer may be read into, and is grown as needed. Nil
	// is for the answer to have memory of its own.
	Into *[]byte

	// Room, if there is one, is asked for what an answer takes beyond FreeRoom bytes, in
	// the goroutine of Call.
	Room Room
}

// Room bounds the memory of several answers together.
type Room interface {
	// Take takes so many bytes more, or says that there are no more. What an answer
	// takes nobody gives back: who made the request knows for how long it needs it.
	Take(bytes int) bool

	// Give gives back so many bytes of those that were taken and are in no answer.
	Give(bytes int)
}

// Field is one header of a request.
type Field struct{ Name, Value string }

// Answer is what a server answered: one of the two, as the server wrote it.
type Answer struct {
	Result []byte // the value of "result", an object
	Error  []byte // the value of "error": an object with a code and a message
	Type   string // the result's resultType, "" when it does not say
	Failed bool   // the result is that of a tool, and says that it failed
}

// Sink takes what a server sends besides the answer. Its methods are called
// from one goroutine at a time, except for Ask, which may take its time.
// What is passed is only good until the method returns. None of them runs after the
// Call that it was given to has returned, so that Ask must end with its context.
// Notify may run in the goroutine that reads the connection: it only queues.
type Sink interface {
	// Notify takes a notification. The params are a JSON object, or nil.
	Notify(method string, params []byte)

	// Ask answers a request of the server with a result, or with an error that
	// is sent to it: a [*Refusal].
	Ask(ctx context.Context, method string, params []byte) (result []byte, err error)
}

// Refusal is an error in the words of the protocol.
type Refusal struct {
	Code    int
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Failed says why there is no answer.
type Failed struct {
	Upstream string
	Text     string // finishes the sentence "the server files …"

	// Unsent is set when the server cannot have begun to execute the request,
	// so that it may be sent again.
	Unsent bool

	// Undone is set when the server has not executed the request, and would not if it
	// came again: nobody was let in with it, or it was not asked at all.
	Undone bool

	// Lost is set when the server no longer knows the session.
	Lost bool

	Err error // what caused it, nil if nothing else did
}

// Error returns the sentence.
func (f *Failed) Error() string {
	if f.Err != nil {
		return fmt.Sprintf("upstream %q %s: %v", f.Upstream, f.Text, f.Err)
	}
	return fmt.Sprintf("upstream %q %s", f.Upstream, f.Text)
}

// Unwrap returns the cause.
func (f *Failed) Unwrap() error { return f.Err }

// Client is what the gateway says of itself in a handshake.
type Client struct {
	Info         []byte // name and version, a JSON object
	Capabilities []byte // what may be asked of it, a JSON object
	Protocol     string // the only revision to speak, "" to find out
	Session      bool   // where that is to be found out, it is one that begins with initialize
}

// Limits bounds what a server may cost. A zero is the default, which stands
// beside the reader that it limits.
type Limits struct {
	Message int // bytes of one message
}
