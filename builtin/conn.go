package builtin

import (
	"context"
	"errors"
	"sync"
	"time"

	"capgate/capability"
	"capgate/upstream"
	"capgate/wire"
)

// The codes of JSON-RPC that a server of ours answers with.
const (
	unknownMethod = `{"code":-32601,"message":"the server has no such method"}`
	wrongParams   = `{"code":-32602,"message":"the params cannot be read"}`
	unknownTool   = `{"code":-32602,"message":"the server has no such tool"}`
)

// conn is a server of ours as a connection.
type conn struct {
	name   string
	server []byte // its name and version
	tools  []tool
	list   []byte // the result of tools/list
	most   int    // bytes of the result of a call
	time   time.Duration

	once  sync.Once
	done  chan struct{}
	close func() error
}

// Info says what a handshake would have brought.
func (c *conn) Info() upstream.Info {
	return upstream.Info{Version: "2025-11-25", Capabilities: []byte(`{"tools":{}}`), Server: c.server}
}

// Call answers a request. A denial is a [*capability.Denied].
func (c *conn) Call(ctx context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
	select {
	case <-c.done:
		return upstream.Answer{}, &upstream.Failed{Upstream: c.name, Text: "is closed", Unsent: true}
	default:
	}
	var doc wire.Doc
	if r.Params != nil {
		if err := doc.Parse(r.Params, wire.Limits{}); err != nil || doc.Root().Kind() != wire.Object {
			return refuse(wrongParams)
		}
	}
	switch r.Method {
	case "ping":
		return upstream.Answer{Result: []byte("{}")}, nil
	case "tools/list":
		if cursor, ok := doc.Root().Get("cursor"); ok && cursor.Kind() != wire.Null {
			return refuse(wrongParams) // there is one page, so that no cursor is ours
		}
		return upstream.Answer{Result: c.list}, nil
	case "tools/call":
		return c.counted(ctx, r, &doc)
	}
	return refuse(unknownMethod)
}

func refuse(failure string) (upstream.Answer, error) {
	return upstream.Answer{Error: []byte(failure)}, nil
}

// counted calls a tool, and answers with no more than there is room for.
func (c *conn) counted(ctx context.Context, r upstream.Request, doc *wire.Doc) (upstream.Answer, error) {
	var answer upstream.Answer
	m := &memory{room: r.Room}
	err := m.take(doc.Memory() + 2*len(r.Params)) // what is made of the arguments
	if err == nil {
		answer, err = c.call(ctx, doc.Root(), m)
	}
	switch {
	case m.full:
		answer, err = upstream.Answer{}, upstream.NoRoom(c.name)
	case len(answer.Result) > c.most:
		answer, err = upstream.Answer{}, &upstream.Failed{Upstream: c.name, Text: "answers with too much; ask it for less"}
	}
	m.settle(cap(answer.Result))
	return answer, err
}

// call runs a tool.
func (c *conn) call(ctx context.Context, params wire.Value, m *memory) (upstream.Answer, error) {
	var name string
	var args wire.Value
	for key, value := range params.Members() {
		switch k, _ := key.Str(); k {
		case "name":
			name, _ = value.Str()
		case "arguments":
			args = value
		case "_meta":
		default:
			return refuse(wrongParams)
		}
	}
	for i := range c.tools {
		if c.tools[i].name == name {
			return c.run(ctx, &c.tools[i], args, m)
		}
	}
	return refuse(unknownTool)
}

// run runs a tool within its time. What the agent can do something about is a
// result; a denial, and a call that was given up, are errors.
func (c *conn) run(ctx context.Context, t *tool, args wire.Value, m *memory) (upstream.Answer, error) {
	values, err := t.read(args)
	if err != nil {
		return failed(err)
	}
	limited, cancel := context.WithTimeout(ctx, c.time)
	defer cancel()
	go func() {
		select {
		case <-c.done:
			cancel()
		case <-limited.Done():
		}
	}()
	out, err := t.run(limited, values, m)
	denied, told := (*capability.Denied)(nil), problem("")
	switch {
	case err == nil:
		return upstream.Answer{Result: out.encode(false)}, nil
	case errors.As(err, &denied):
		return upstream.Answer{}, denied
	case ctx.Err() != nil:
		return upstream.Answer{}, &upstream.Failed{Upstream: c.name, Text: "was told to stop", Err: context.Cause(ctx)}
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return failed(problemf("the call took longer than %v", c.time))
	case limited.Err() != nil:
		return upstream.Answer{}, &upstream.Failed{Upstream: c.name, Text: "was closed during the call"}
	case errors.As(err, &told):
		return failed(told)
	}
	return upstream.Answer{}, &upstream.Failed{Upstream: c.name, Text: "could not finish the call", Err: err}
}

// failed is the result of a call that came to nothing.
func failed(err error) (upstream.Answer, error) {
	var r result
	r.text(err.Error())
	return upstream.Answer{Result: r.encode(true), Failed: true}, nil
}

// Notify takes a notification. None means anything to a server of ours: a call
// is cancelled with its context.
func (c *conn) Notify(context.Context, string, []byte) error { return nil }

// Done is closed by Close.
func (c *conn) Done() <-chan struct{} { return c.done }

// Close ends the calls in flight.
func (c *conn) Close() error {
	var err error
	c.once.Do(func() {
		close(c.done)
		err = c.close()
	})
	return err
}
