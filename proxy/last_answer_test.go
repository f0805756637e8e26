package proxy_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/proxy"
	"capgate/upstream"
)

// opening reports whether the clock is looked at to see how old is what an agent has come back with.
func opening() bool {
	var callers [8]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for frame, more := frames.Next(); more; frame, more = frames.Next() {
		if strings.HasSuffix(frame.Function, "(*sealer).open") {
			return true
		}
	}
	return false
}

// TestAnswerOfBeforeWhileParked: what an agent comes back with to a parked call goes up only if that may by then,
// whether another policy comes right behind the decision or when the call has been found.
func TestAnswerOfBeforeWhileParked(t *testing.T) {
	for name, record := range map[string]string{
		"taken": strings.ReplaceAll(reader, "docs", "notes"),
		"kept":  strings.ReplaceAll(reader, "docs]", "docs, more]"),
	} {
		for _, found := range []bool{false, true} {
			t.Run(fmt.Sprint(name, found), func(t *testing.T) {
				heard := make(chan string, 1)
				s := &scripted{reply: func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
					got, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?"}`))
					heard <- string(got)
					return upstream.Answer{Result: []byte(`{"content":[]}`)}, err
				}}
				up := files(t, s)
				up.MayAsk = []string{"elicitation"}
				var w *world
				var armed atomic.Bool
				edit := func() {
					if armed.Swap(false) {
						w.write("scout", record)
						w.adopt()
					}
				}
				w = startWith(t, proxy.Options{Clock: func() time.Time {
					if armed.Load() && opening() {
						edit()
					}
					return time.Now()
				}}, map[string]string{"scout": reader}, up)
				c, able := w.client("scout"), `{"elicitation":{}}`
				args := `"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
				in := inputOf(t, c.modern("tools/call", `{`+args+`}`, able))
				armed.Store(true)
				w.events.before = func(e *guardrail.Event) {
					if e.Decision == "allow" && !found {
						edit()
					}
				}
				c.modern("tools/call", `{`+args+`,"inputResponses":{"ask-1":{"action":"accept","content":{"x":"secret"}}},"requestState":"`+in.RequestState+`"}`, able)
				if got := <-heard; strings.Contains(got, "secret") != (name == "kept") || armed.Load() {
					t.Errorf("the server hears %q", got)
				}
			})
		}
	}
}
