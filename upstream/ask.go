package upstream

import (
	"context"
	"errors"
)

// The codes that a server's request is refused with.
const (
	codeRequest  = -32600 // it is not a request that can be answered
	codeMethod   = -32601 // nobody here knows the method
	codeInternal = -32603 // something went wrong on this side
)

// maxAsks is how many requests of one server may wait for an answer.
const maxAsks = 16

// ask lets a sink answer a request of the server.
func ask(ctx context.Context, s Sink, method string, params []byte) (result []byte, refused *Refusal) {
	result, err := s.Ask(ctx, method, params)
	switch {
	case errors.As(err, &refused):
		return nil, refused
	case err != nil || result == nil:
		// What went wrong here is not the server's to know.
		return nil, &Refusal{Code: codeInternal, Message: "the request could not be answered"}
	}
	return result, nil
}
