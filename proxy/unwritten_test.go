package proxy_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// brokenTaker takes what begins a stream and nothing of what is sent on it.
type brokenTaker struct{ taker }

func (w *brokenTaker) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "data:") {
		return 0, io.ErrClosedPipe
	}
	return w.taker.Write(p)
}

// TestUnwrittenIsKept: what a stream did not take that broke is there for the next one.
func TestUnwrittenIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{}
		up := files(t, s)
		up.MayAsk = []string{"elicitation"}
		w := start(t, map[string]string{"scout": reader}, up)
		c := w.client("scout")
		c.initialize(`{"elicitation":{}}`)
		c.request("tools/list", "{}")
		go func() {
			_, _ = s.newest().Events.Ask(t.Context(), "elicitation/create", []byte(`{"message":"a question"}`))
		}()
		synctest.Wait()
		w.write("scout", readerAndWriter)
		w.adopt()
		time.Sleep(time.Second)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/mcp", nil)
		must(t, err)
		r.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Mcp-Session-Id": {c.session}, "Accept": {"text/event-stream"}}
		w.server.ServeHTTP(&brokenTaker{taker{header: http.Header{}}}, r)
		in, got := c.listen(), ""
		for one := soon(in); one != ""; one = soon(in) {
			got += one
		}
		for _, want := range []string{"a question", "tools/list_changed"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s is not in %s", want, got)
			}
		}
	})
}
