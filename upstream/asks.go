package upstream

import (
	"context"
	"errors"
	"sync"
)

var (
	errAsks  = errors.New("too many of its requests wait for an answer")
	errTwice = errors.New("a request of the same id waits for an answer")
)

// asks are the requests of a server that are being answered. The zero value has
// none.
type asks struct {
	mu   sync.Mutex
	open map[string]context.CancelFunc // by id, as it was written
}

// add notes a request, and returns the context to answer it in.
func (a *asks) add(ctx context.Context, id []byte) (context.Context, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, twice := a.open[string(id)]; twice {
		return nil, errTwice
	}
	if len(a.open) >= maxAsks {
		return nil, errAsks
	}
	if a.open == nil {
		a.open = map[string]context.CancelFunc{}
	}
	ctx, a.open[string(id)] = context.WithCancel(ctx)
	return ctx, nil
}

// drop forgets a request that has been answered.
func (a *asks) drop(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.open[string(id)]; cancel != nil {
		cancel()
		delete(a.open, string(id))
	}
}

// cancelled ends the request that a server says it no longer waits for.
func (a *asks) cancelled(m message) {
	id, _ := m.params.Get("requestId")
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.open[string(id.Raw())]; cancel != nil {
		cancel()
	}
}

// end ends them all.
func (a *asks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.open {
		cancel()
	}
}

// ping is what either side may ask at any time, and what belongs to no call.
const ping = "ping"

// pong is the sink that answers a ping.
type pong struct{ unheard }

// Ask answers.
func (pong) Ask(context.Context, string, []byte) ([]byte, error) { return []byte("{}"), nil }
