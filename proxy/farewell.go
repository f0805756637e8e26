package proxy

import (
	"context"
	"time"
)

const (
	lastTime = 5 * time.Second        // for requests after which nothing more comes, and for the agent to read what is left
	tellTime = 200 * time.Millisecond // for the agent to read it where the gateway is to end now
)

// drain takes no more requests and lets those that there are be answered, until the context ends, the
// limit is over, if it is not 0, or there is enough.
func (p *pipe) drain(ctx context.Context, limit time.Duration, enough <-chan struct{}) {
	p.stop()
	done := make(chan struct{})
	go func() {
		p.calls.Wait()
		close(done)
	}()
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case <-done:
	case <-late:
	case <-enough:
	case <-ctx.Done():
	}
}

// stop has no more requests be taken.
func (p *pipe) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending = true
}

// take begins to answer a request, unless no more are taken. Whoever did says so to leave.
func (p *pipe) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ending {
		return false
	}
	p.wait.Add(1)
	p.calls.Add(1)
	return true
}

func (p *pipe) leave() {
	p.calls.Done()
	p.wait.Done()
}

// written waits until everything that was queued is written, for a while.
func (p *pipe) written(ctx context.Context) {
	p.mu.Lock()
	idle, writing := p.idle, p.writing
	p.mu.Unlock()
	if !writing {
		return
	}
	select {
	case <-idle:
		return
	case <-time.After(lastTime):
		return
	case <-p.server.ctx.Done():
	case <-ctx.Done():
	}
	select {
	case <-idle:
	case <-time.After(tellTime):
	}
}

// close has nothing more be said.
func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil {
		p.failed = errEnded
	}
}

// end ends the session, if there is one.
func (p *pipe) end() {
	p.mu.Lock()
	s := p.session
	p.mu.Unlock()
	if s != nil {
		p.tenant.drop(s)
	}
}
