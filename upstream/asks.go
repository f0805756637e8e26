package upstream

import (
	"bytes"
	"context"
	"sync"
)

// asks are the requests of a server that are being answered. The zero value has
// none.
type asks struct {
	mu   sync.Mutex
	open map[string]ask // by id, as it was written
}

// ask is one of them.
type ask struct {
	method string
	params []byte
	cancel context.CancelFunc
}

// add notes a request, and returns the context to answer it in; nil where there is none, or what the server is to be
// told instead. Who makes another of the same id has forgotten the first, whose answer would be taken for one to that.
func (a *asks) add(ctx context.Context, m message) (context.Context, *response) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id, params := string(m.id.Raw()), m.params.Raw()
	refused := func(text string) *response {
		return &response{id: []byte(id), refused: &Refusal{Code: codeInternal, Message: text}}
	}
	switch known, twice := a.open[id]; {
	case twice && known.method == m.method && bytes.Equal(known.params, params):
		return nil, nil // it is being answered
	case twice:
		known.cancel()
		return nil, refused("another request of the same id waited for an answer")
	case len(a.open) >= maxAsks:
		return nil, refused("too many requests wait for an answer")
	}
	if a.open == nil {
		a.open = map[string]ask{}
	}
	ctx, cancel := context.WithCancel(ctx)
	a.open[id] = ask{m.method, params, cancel}
	return ctx, nil
}

// drop forgets a request that has been answered.
func (a *asks) drop(id []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.open[string(id)]; ok {
		known.cancel()
		delete(a.open, string(id))
	}
}

// cancelled ends the request that a server says it no longer waits for.
func (a *asks) cancelled(m message) {
	id, _ := m.params.Get("requestId")
	a.mu.Lock()
	defer a.mu.Unlock()
	if known, ok := a.open[string(id.Raw())]; ok {
		known.cancel()
	}
}

// end ends them all.
func (a *asks) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, known := range a.open {
		known.cancel()
	}
}

// ping is what either side may ask at any time, and what belongs to no call.
const ping = "ping"

// pong is the sink that answers a ping.
type pong struct{ unheard }

// Ask answers.
func (pong) Ask(context.Context, string, []byte) ([]byte, error) { return []byte("{}"), nil }
