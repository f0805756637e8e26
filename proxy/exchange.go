package proxy

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"capgate/capability"
)

// exchange is the answer to one request, as it is written: one JSON document, or
// an event stream as soon as something goes before the answer. Who sends does not
// wait for the agent to take it: a server's connection may be read by the same
// goroutine.
type exchange struct {
	*visit
	events bool // the client takes event streams

	mu      sync.Mutex
	queue   []queued
	waiting int           // bytes in it
	taker   chan struct{} // closed when the goroutine that writes has ended; nil before the first message
	wake    chan struct{} // holds a token when there is something to write
	over    bool
	failed  error
}

// perMessage is what keeping a message costs, beside its bytes.
const perMessage = 64

var (
	errNoStream = errors.New("the client does not take event streams")
	errDone     = errors.New("the request has been answered")
	errSlow     = errors.New("the client does not take what it is sent")
)

// send queues one message that goes before the answer.
func (x *exchange) send(message queued) error {
	size := len(message.text) + perMessage
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.over:
		return errDone
	case !x.events:
		return errNoStream
	case x.failed != nil:
		return x.failed
	case x.waiting+size > maxQueued, !x.tenant.keep(size, maxUntaken):
		return errSlow
	case x.taker == nil:
		x.taker, x.wake = make(chan struct{}), make(chan struct{}, 1)
		go x.deliver()
	}
	message.text = slices.Clone(message.text)
	x.queue, x.waiting = append(x.queue, message), x.waiting+size
	select {
	case x.wake <- struct{}{}:
	default: // it is awake
	}
	return nil
}

// deliver writes what is queued, until the answer is there, and a sign of life when there
// was nothing for a while.
func (x *exchange) deliver() {
	defer close(x.taker)
	beginStream(x.w)
	sign := time.NewTicker(heartbeat)
	defer sign.Stop()
	for {
		select {
		case <-x.wake:
			sign.Reset(heartbeat)
		case <-sign.C:
			x.fail(writeSign(x.w))
		}
		message, over, ok := x.next()
		for ; ok; message, over, ok = x.next() {
			if x.holds() && message.goes() { // the one before may have been taken slowly
				x.fail(writeEvent(x.w, message.text))
			}
			x.tenant.keep(-len(message.text)-perMessage, 0)
		}
		if over {
			return
		}
	}
}

// next returns what has been queued for longest, if there is anything, and whether nothing more
// comes. Who does not take one message is sent no other.
func (x *exchange) next() (message queued, over, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed != nil {
		x.tenant.keep(-x.waiting, 0)
		x.queue, x.waiting = nil, 0
	}
	if over = x.over || x.failed != nil; len(x.queue) == 0 {
		return message, over, false
	}
	message, x.queue[0] = x.queue[0], queued{}
	x.queue, x.waiting = x.queue[1:], x.waiting-len(message.text)-perMessage
	return message, over, true
}

func (x *exchange) fail(err error) {
	x.mu.Lock()
	x.failed = cmp.Or(x.failed, err)
	x.mu.Unlock()
}

// answer has a call answered, and ends the stream also where that panics.
func (x *exchange) answer(c *call) {
	r := reply{done: true}
	defer func() { x.finish(c.id, r) }()
	r = c.answer()
}

// finish writes the answer, behind everything that was sent before it.
func (x *exchange) finish(id []byte, r reply) {
	x.mu.Lock()
	x.over = true
	taker := x.taker
	x.mu.Unlock()
	if taker == nil {
		if !r.done {
			x.write(id, r)
		}
		return
	}
	select {
	case x.wake <- struct{}{}:
	default: // it is awake, and looks again
	}
	<-taker
	if !r.done && !r.empty && !r.ours && !x.holds() {
		d := denial{code: capability.Unauthenticated, why: errRevoked.Error(), hint: operatorHint}
		r = reply{failure: x.server.word(d).failure()}
	}
	if x.failed == nil && !r.done {
		_ = writeEvent(x.w, r.append(make([]byte, 0, r.size()), id)) // an agent that is gone will not miss it
	}
}

// beginStream turns an answer into an event stream.
func beginStream(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// writeEvent writes one message as an event, on one line, and sends it off.
func writeEvent(w http.ResponseWriter, message []byte) error {
	rc := http.NewResponseController(w)
	if err := rc.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	event := make([]byte, 0, len(message)+32)
	event = appendLine(append(event, "event: message\ndata: "...), message)
	if _, err := w.Write(append(event, "\n\n"...)); err != nil {
		return err
	}
	return rc.Flush()
}

// appendLine appends a message without its line breaks, which in JSON are blanks.
func appendLine(dst, message []byte) []byte {
	line := append(dst, message...)
	for i := len(dst); i < len(line); i++ {
		if line[i] == '\n' || line[i] == '\r' {
			line[i] = ' '
		}
	}
	return line
}

// writeSign writes what says nothing but that somebody is there.
func writeSign(w http.ResponseWriter) error {
	give(w, 0)
	if _, err := w.Write([]byte(": \n\n")); err != nil {
		return err
	}
	return http.NewResponseController(w).Flush()
}
