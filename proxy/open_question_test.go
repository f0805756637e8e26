package proxy_test

import (
	"context"
	"strings"
	"testing"

	"capgate/upstream"
)

// TestOpenQuestionsAreBounded: what servers ask while their calls wait for an agent to come back takes no more memory
// than what waits for sessions, and leaves room once it is answered or nobody asks it any more.
func TestOpenQuestionsAreBounded(t *testing.T) {
	const size, fit = 4 << 20, 15 // with what is written around them
	question := []byte(`{"message":"` + strings.Repeat("x", size) + `"}`)
	refused := make(chan struct{}, 64)
	withdraws := false
	s := &scripted{reply: func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		if withdraws {
			var withdraw context.CancelFunc
			ctx, withdraw = context.WithCancel(ctx)
			withdraw()
		}
		if _, err := sink.Ask(ctx, "elicitation/create", question); err != nil {
			refused <- struct{}{}
		}
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c, args := w.client("scout"), ""
	args = `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
	call := func(more string) said { return c.modern("tools/call", `{`+args+more+`}`, `{"elicitation":{}}`) }
	for range 2 {
		var states []string
		for range fit {
			states = append(states, inputOf(t, call("")).RequestState)
		}
		if call(""); len(refused) != 1 {
			t.Fatalf("%d questions are refused", len(refused))
		}
		<-refused
		for _, state := range states {
			call(`,"inputResponses":{"ask-1":{"action":"accept"}},"requestState":"` + state + `"`)
		}
	}
	withdraws = true
	for range 2 * fit {
		call("")
		<-refused
	}
	withdraws = false
	inputOf(t, call(""))
}
