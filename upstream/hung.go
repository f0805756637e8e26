package upstream

import (
	"context"
	"errors"
	"time"
)

const (
	// A server that has said nothing for hungTime while calls waited for it in vain is asked for
	// a sign of life, for which it has wakeTime. One that works may not look at what it is sent
	// for as long as one of its calls takes.
	hungTime = 2 * time.Minute
	wakeTime = 10 * time.Second
	vainTime = 30 * time.Second // that a call has waited which its agent gives up
)

var errHung = errors.New("it says nothing, whatever it is called for")

// doubt notes that a call has waited in vain, and asks the server for a sign of life: at first so that
// one that has become free since gives one, and then, when it has said nothing for long, for its
// life. While a call has time left that is older, or older than the first doubt, it may be at work
// for that, and while it has asked something, it may wait for the answer.
func (p *pipe) doubt(id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.missed.IsZero() || p.before != p.sent.Load()
	if first {
		p.missed, p.before = time.Now(), p.sent.Load()
	}
	if p.waking || !first && (time.Since(p.missed) < p.hung || len(p.asks) > 0 || p.works(id)) {
		return
	}
	p.waking = true
	go p.rouse(!first)
}

// works reports whether a call is up that is older than another, or than the first doubt: of those
// the server may be at work for any. The lock is held.
func (p *pipe) works(id int64) bool {
	for older, c := range p.pending {
		if (older < id || c.since.Before(p.missed)) && c.sink != nil && c.method != listenMethod { // which never ends
			return true
		}
	}
	return false
}

// rouse asks for a sign of life. A server that must give one, and does not, is ended, so that the
// next call has it started anew. Any answers a ping, if only that it does not know it.
func (p *pipe) rouse(must bool) {
	ctx, cancel := context.WithTimeout(p.life, p.wake)
	defer cancel()
	before := p.sent.Load()
	_, _ = p.Call(ctx, Request{Method: ping}, nil) // any message is one
	if must && p.sent.Load() == before && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		p.out.end(errHung)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waking = false
}
