package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/provider"
	"capgate/proxy"
	"capgate/secrets"
)

// pair is a gateway and a plain reverse proxy in front of the same provider.
type pair struct {
	b           *testing.B
	gateway, to string // where they are
	token       string
}

func paired(b *testing.B, behind http.Handler) *pair {
	b.Helper()
	srv := httptest.NewServer(behind)
	b.Cleanup(srv.Close)
	at, err := url.Parse(srv.URL)
	if err != nil {
		b.Fatal(err)
	}
	plain := httptest.NewServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		body, _ := io.ReadAll(r.In.Body) // else the proxy now and then cuts off an answer that comes before the body's end is read
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}})
	b.Cleanup(plain.Close)
	log, err := guardrail.Open(guardrail.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	keys, err := secrets.New(map[string]secrets.Source{"k": {Env: "K"}}, secrets.Options{Getenv: func(string) string { return vendorKey }})
	if err != nil {
		b.Fatal(err)
	}
	vendor, _ := provider.Lookup("anthropic")
	one := &proxy.Provider{Vendor: vendor, URL: srv.URL, Start: time.Minute, Idle: time.Minute, Key: func() (string, error) { return keys.Expand("{{secret:k}}") }}
	front, token := bringWith(b, proxy.Options{Events: log, Scrub: keys.Scrub, Limits: proxy.Limits{Calls: 1 << 30}}, crowd(), &proxy.Policy{Providers: []*proxy.Provider{one}})
	gate := httptest.NewServer(front)
	b.Cleanup(gate.Close)
	return &pair{b, gate.URL + "/provider/anthropic", plain.URL, token}
}

// post sends a request to one of the two.
func (s *pair) post(base, body string) *http.Response {
	r, err := http.NewRequestWithContext(s.b.Context(), http.MethodPost, base+"/v1/messages", strings.NewReader(body))
	if err != nil {
		s.b.Fatal(err)
	}
	r.Header = http.Header{"X-Api-Key": {s.token}, "Content-Type": {"application/json"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != 200 {
		s.b.Fatal(resp, err)
	}
	return resp
}

// report gives the middle of what each took, and how much longer the gateway took.
func (s *pair) report(gateway, plain []time.Duration, what string) {
	slices.Sort(gateway)
	slices.Sort(plain)
	g, p := gateway[len(gateway)/2], plain[len(plain)/2]
	s.b.ReportMetric(float64(g.Nanoseconds()), "ns/"+what)
	s.b.ReportMetric(float64(p.Nanoseconds()), "ns/plain-"+what)
	s.b.ReportMetric(100*(float64(g)/float64(p)-1), "%more")
}

// BenchmarkConsultStream is the way of one event of a stream, from when the provider
// writes it until the agent has it, beside a plain reverse proxy: by turns, so that
// both meet the same machine.
func BenchmarkConsultStream(b *testing.B) {
	froms := make(chan chan string, 2)
	s := paired(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		pieces(eventStream, <-froms, nil)(w, r)
	}))
	event := "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + strings.Repeat("word ", 8) + "\"}}\n\n"
	type lane struct {
		from chan string
		body io.ReadCloser
		took []time.Duration
	}
	lanes := make([]*lane, 2)
	for i, base := range []string{s.gateway, s.to} {
		lanes[i] = &lane{from: make(chan string)}
		froms <- lanes[i].from
		lanes[i].body = s.post(base, greeting).Body
	}
	got := make([]byte, len(event))
	for n := 0; b.Loop(); n++ {
		for i := range lanes {
			l := lanes[(i+n)%2]
			start := time.Now()
			l.from <- event
			if _, err := io.ReadFull(l.body, got); err != nil {
				b.Fatal(err)
			}
			l.took = append(l.took, time.Since(start))
		}
	}
	for _, l := range lanes {
		close(l.from)
		_ = l.body.Close()
	}
	s.report(lanes[0].took, lanes[1].took, "event")
}

// BenchmarkConsultRequest is a whole request of 100 KB with fifty tools, of which
// one is narrowed, beside the same request through a plain reverse proxy.
func BenchmarkConsultRequest(b *testing.B) {
	s := paired(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","content":[]}`)
	}))
	tools := []string{`{"type":"web_search_20250305","name":"web_search"}`}
	for i := range 49 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":%q,"input_schema":{"type":"object","properties":{"a":{"type":"string"}}}}`, i, strings.Repeat("does things ", 20)))
	}
	body := strings.Replace(greeting, "{", `{"tools":[`+strings.Join(tools, ",")+`],`, 1)
	body = strings.Replace(body, "hello", strings.Repeat("hello world ", (100<<10-len(body))/12), 1)
	var took [2][]time.Duration
	for n := 0; b.Loop(); n++ {
		for i := range 2 {
			which := (i + n) % 2
			start := time.Now()
			resp := s.post([]string{s.gateway, s.to}[which], body)
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			took[which] = append(took[which], time.Since(start))
		}
	}
	s.report(took[0], took[1], "request")
}
