package upstream

import (
	"context"
	"errors"
	"sync"
)

// The codes that a server's request is refused with.
const (
	codeRequest  = -32600 // it is not a request that can be answered
	codeMethod   = -32601 // nobody here knows the method
	codeInternal = -32603 // something went wrong on this side
)

// maxAsks is how many requests of one server may wait for an answer.
const maxAsks = 16

// Wary is a sink that is asked last when what it answered is about to be written, which may be long
// after Ask: it waits for a token or a connection, or for a process that does not read. With its error
// that is what the server hears instead. It is not asked once the Call that it was given to has
// returned, and must wait for nothing.
type Wary interface {
	Sink
	Still(method string) error
}

// response is what a request of the server is answered with.
type response struct {
	id      []byte
	result  []byte
	refused *Refusal
	may     func() error // is asked last, when it is about to be written; nil: nobody is
}

func (r *response) message() []byte { return appendReply(nil, r.id, r.result, r.refused) }

// refuse makes an error what it is answered with.
func (r *response) refuse(err error) {
	r.result, r.may = nil, nil
	if !errors.As(err, &r.refused) { // what went wrong here is not the server's to know
		r.refused = &Refusal{Code: codeInternal, Message: "the request could not be answered"}
	}
}

// hearer is a sink that what the server asks is put to, until its call is over. What has not been
// written by then is not to be.
type hearer struct {
	sink Sink

	mu   sync.Mutex
	over bool
}

// ask has a request of the server answered.
func (h *hearer) ask(ctx context.Context, id []byte, method string, params []byte) *response {
	r := &response{id: id}
	var err error
	r.result, err = h.sink.Ask(ctx, method, params)
	if err != nil || r.result == nil {
		r.refuse(err)
		return r
	}
	if w, ok := h.sink.(Wary); ok {
		r.may = func() error {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.over {
				return errEnded
			}
			return w.Still(method)
		}
	}
	return r
}

func (h *hearer) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
}
