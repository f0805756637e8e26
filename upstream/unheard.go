package upstream

import "context"

// unheard is the sink of those who listen to nothing.
type unheard struct{}

func (unheard) Notify(string, []byte) {}

func (unheard) Ask(context.Context, string, []byte) ([]byte, error) {
	return nil, &Refusal{Code: codeMethod, Message: "nobody answers this here"}
}
