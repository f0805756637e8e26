package proxy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTracing: of an agent's _meta goes up what places a call in a trace, as W3C writes it, and
// nothing else.
func TestTracing(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for sent, want := range map[string]string{
		`{"traceparent":"` + parent + `","tracestate":"a=b","baggage":"c=d"}`:       `,"_meta":{"traceparent":"` + parent + `","tracestate":"a=b","baggage":"c=d"}`,
		`{"traceparent":"` + parent[:54] + `X","secret":"x"}`:                       "",
		`{"traceparent":"` + parent + `0","Traceparent2":"` + parent + `"}`:         "",
		`{"tracestate":"a\nb","baggage":"é"}`:                                       "",
		`{"tracestate":1,"baggage":{"a":"b"}}`:                                      "",
		`{"io.modelcontextprotocol/clientInfo":{"name":"agents/boss"},"agent":"x"}`: "",
	} {
		s := &scripted{}
		w := start(t, map[string]string{"scout": reader}, files(t, s))
		c := w.client("scout")
		c.initialize("{}")
		call := `"name":"read_text_file","arguments":{"path":"` + w.root + `/docs/a"}`
		c.request("tools/call", `{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"},"_meta":`+sent+`}`)
		got := s.calls()
		if len(got) != 1 {
			t.Fatalf("%s: %v", sent, got)
		}
		if diff := cmp.Diff("{"+call+want+"}", string(got[0].Params)); diff != "" {
			t.Errorf("%s: %s", sent, diff)
		}
	}
}
