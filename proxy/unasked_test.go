package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"capgate/upstream"
)

// TestUnaskedAnswers: an agent that knows beforehand what it will be asked answers no more
// than the server may ask, and its client be asked.
func TestUnaskedAnswers(t *testing.T) {
	const form, sample = `{"action":"accept","content":{}}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"x"}}`
	for _, test := range []struct {
		may             string
		able, given, up string
	}{
		{"elicitation", `{"elicitation":{}}`, form, form},
		{"elicitation", `{}`, form, ""},
		{"elicitation", `{"sampling":{}}`, form, ""},
		{"elicitation", `{"elicitation":{},"sampling":{}}`, sample, ""},
		{"elicitation", `{"elicitation":{},"sampling":{}}`, `{"action":"accept","role":"assistant"}`, ""},
		{"elicitation", `{"elicitation":{}}`, `{"Action":"accept"}`, `{"Action":"accept"}`},
		{"elicitation", `{"elicitation":{}}`, `{"confirm":true}`, ""},
		{"sampling", `{"elicitation":{},"sampling":{}}`, form, ""},
		{"sampling", `{"elicitation":{},"sampling":{}}`, sample, sample},
		{"roots", `{"elicitation":{},"sampling":{}}`, sample, ""},
	} {
		s := &scripted{info: upstream.Info{Modern: true, Version: "2026-07-28"}}
		s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
			return upstream.Answer{Type: "complete", Result: []byte(`{"resultType":"complete","content":[]}`)}, nil
		}
		up := files(t, s)
		up.MayAsk = []string{test.may}
		w := start(t, map[string]string{"scout": reader}, up)
		w.client("scout").modern("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"},"inputResponses":{"k":`+test.given+`}}`, test.able)
		calls := s.calls()
		if len(calls) != 1 {
			t.Fatalf("%d calls", len(calls))
		}
		got := string(calls[0].Params)
		if strings.Contains(got, "inputResponses") != (test.up != "") || test.up != "" && !strings.Contains(got, `{"k":`+test.up+`}`) {
			t.Errorf("may ask for %s, client %s, given %s: %s", test.may, test.able, test.given, got)
		}
	}
}

// TestLegacyServerWantsNoInput: a result of a legacy server that reads as if it wanted to be
// called again is no reason to: it has done what was asked.
func TestLegacyServerWantsNoInput(t *testing.T) {
	s := &scripted{}
	s.reply = func(context.Context, upstream.Request, upstream.Sink) (upstream.Answer, error) {
		return upstream.Answer{Type: "input_required", Result: []byte(`{"resultType":"input_required","content":[]}`)}, nil
	}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	call := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`
	first, second := c.request("tools/call", call), c.modern("tools/call", call, `{}`)
	for _, a := range []said{first, second} {
		if n := len(s.calls()); n != 2 || !strings.Contains(a.Raw, "of a type that is not known") {
			t.Errorf("called %d times: %s", n, a.Raw)
		}
	}
}

// TestQuestionIsCalledOffWhereItWasAsked: over HTTP, on the stream of the call, whether or not
// the client listens elsewhere.
func TestQuestionIsCalledOffWhereItWasAsked(t *testing.T) {
	s, seen := &scripted{}, make(chan struct{})
	s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		now, withdraw := context.WithCancel(ctx)
		go func() {
			<-seen
			withdraw()
		}()
		_, _ = sink.Ask(now, "elicitation/create", []byte(`{"message":"no more?"}`))
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader}, up)
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	in := c.open(t.Context(), t, http.MethodPost, `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
	asked := fmt.Sprint(in.question())
	close(seen)
	if got := in.next(); !strings.Contains(got, "notifications/cancelled") || !strings.Contains(got, `"requestId":"`+asked+`"`) {
		t.Errorf("of %s: %s", asked, got)
	}
}
