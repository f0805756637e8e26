package upstream

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// Greeter is a server that the handshake is tried on.
type Greeter struct {
	Answer  func(context.Context, Request) (Answer, error)
	mu      sync.Mutex
	Spoken  []string // what was said, in order
	adopted Info
}

func (g *Greeter) speak(text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Spoken = append(g.Spoken, text)
}

// ErrForeign is what an HTTP server's answer to the wrong era is.
var ErrForeign = errForeign

// ProbeTime is how long a server may be silent about its era.
const ProbeTime = probeTime

// Greet performs a handshake.
func Greet(ctx context.Context, g *Greeter, c Client) (Info, error) {
	info, err := greet(ctx, g, Options{Client: c}, "files")
	if err == nil && (info.Version != g.adopted.Version || info.Modern != g.adopted.Modern) {
		panic("the connection was not told what it speaks")
	}
	return info, err
}

// Call answers a request.
func (g *Greeter) Call(ctx context.Context, r Request, _ Sink) (Answer, error) {
	g.speak(r.Method + " " + string(r.Params))
	return g.Answer(ctx, r)
}

// Notify takes a notification.
func (g *Greeter) Notify(_ context.Context, method string, _ []byte) error {
	g.speak(method)
	return nil
}

func (g *Greeter) adopt(info Info) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.adopted = info
}

// Hear makes one call, with a token t, of a server that says something whatever
// it is asked, and then ends.
func Hear(ctx context.Context, said io.Reader, s Sink) (Answer, error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return Answer{}, err
	}
	defer null.Close()
	out, err := newOutbox(null, func(error) {})
	if err != nil {
		return Answer{}, err
	}
	ctx, end := context.WithCancel(ctx)
	p := newPipe("files", Options{Limits: Limits{Message: 1 << 20}, Log: slog.New(slog.DiscardHandler), Events: s}, end)
	p.out = out
	c, err := p.register(Request{Method: "tools/call", Token: "t"}, s)
	if err != nil {
		return Answer{}, err
	}
	_ = p.listen(ctx, said)
	p.fail(&Failed{Upstream: "files", Text: "ended"})
	p.tasks.Wait()
	got := <-c.reply
	c.busy.Wait()
	if got.failed != nil {
		return Answer{}, got.failed
	}
	return got.answer, nil
}

// Lines reads all lines, and the end of those that are longer than limit.
func Lines(src io.Reader, limit int) (all []string, err error) {
	in := lines{src: src, limit: limit}
	for {
		line, err := in.next()
		if errors.Is(err, errLong) {
			line, err = in.skip()
		}
		if err != nil {
			return all, err
		}
		all = append(all, string(line))
	}
}

// ErrLong is what a line over the limit is.
var ErrLong = errLong

// Unread sends lines to somebody who reads nothing, and returns of which some was
// written, and the error that comes of it.
func Unread(patience time.Duration, text ...string) (sent []bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	defer w.Close()
	broken := make(chan error, 1)
	out, err := newOutbox(w, func(err error) { broken <- err })
	if err != nil {
		return nil, err
	}
	out.patience = patience
	out.busy = true // so that all of it is there when the writing begins
	all := make([]line, len(text))
	for i := range text {
		all[i].data = []byte(text[i])
		if err := out.push(&all[i]); err != nil {
			return nil, err
		}
	}
	out.write()
	err = <-broken
	for i := range all {
		sent = append(sent, out.leave(&all[i]) != queued)
	}
	return sent, err
}

// ErrUnread is what comes of a server that reads nothing.
var ErrUnread = errUnread

// Patient sets how long a server may say nothing while calls wait for it in vain, and how
// long it has for a sign of life after that.
func Patient(c Conn, hung, wake, vain time.Duration) {
	if p, ok := c.(*pipe); ok {
		p.hung, p.wake, p.vain = hung, wake, vain
	}
}
