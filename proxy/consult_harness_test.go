package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/provider"
	"capgate/proxy"
	"capgate/secrets"
)

// searcher is an agent that may fetch from one host and what is beneath it, and may
// use one tool of a foreign server.
const searcher = `---
class: agent
capabilities:
  - tool.invoke: { tools: [hub.read] }
  - net.get: { hosts: ["*.github.com"] }
---
`

// nobody is an agent that holds nothing.
const nobody = "---\nclass: agent\ncapabilities: []\n---\n"

// vendorKey is what only the provider may see.
const vendorKey = "sk-ant-api03-TheGatewaysOwn-0123456789"

// vendorSaw is one request as it came to a provider.
type vendorSaw struct {
	method, uri string
	header      http.Header
	body        string
}

// vendor is a provider within the test, and the gateway in front of it.
type vendor struct {
	*world
	script func(w http.ResponseWriter, r *http.Request) // how it answers
	log    syncBuffer

	mu  sync.Mutex
	got []vendorSaw
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// saw returns what has reached the provider.
func (v *vendor) saw() []vendorSaw {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]vendorSaw(nil), v.got...)
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.got = append(v.got, vendorSaw{r.Method, r.RequestURI, r.Header.Clone(), string(body)})
	v.mu.Unlock()
	if v.script != nil {
		v.script(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"msg_1","type":"message","content":[]}`)
}

// consulting brings up a provider of each vendor, one server behind them all, and
// the gateway.
func consulting(t *testing.T, o proxy.Options, script func(w http.ResponseWriter, r *http.Request)) *vendor {
	t.Helper()
	v := &vendor{script: script}
	behind := httptest.NewServer(v)
	t.Cleanup(behind.Close)
	keys, err := secrets.New(map[string]secrets.Source{"anthropic": {Env: "K"}}, secrets.Options{Getenv: func(string) string { return vendorKey }})
	if err != nil {
		t.Fatal(err)
	}
	o.Scrub = keys.Scrub
	o.Log = slog.New(slog.NewTextHandler(&v.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	v.world = startWith(t, o, map[string]string{"scout": searcher, "nobody": nobody})
	for _, one := range provider.Vendors() {
		v.vendors = append(v.vendors, &proxy.Provider{
			Vendor: one, URL: behind.URL + "/base", Start: time.Minute, Idle: time.Minute,
			Key: func() (string, error) { return keys.Expand("{{secret:anthropic}}") },
		})
	}
	v.adopt()
	t.Cleanup(func() { v.noKey() })
	return v
}

// noKey looks for the key wherever somebody may read.
func (v *vendor) noKey() {
	v.t.Helper()
	if strings.Contains(v.log.String(), vendorKey) {
		v.t.Errorf("the log holds the key:\n%s", v.log.String())
	}
	if all := fmt.Sprintf("%+v", v.events.all()); strings.Contains(all, vendorKey) {
		v.t.Errorf("the events hold the key:\n%s", all)
	}
}

// ask sends a request to the gateway as a client of a vendor does. Headers come in
// pairs; an empty value takes one away.
func (v *vendor) ask(method, path, body string, headers ...string) *http.Response {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.http.URL+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("X-Api-Key", v.tokens["scout"])
	for i := 0; i+1 < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			r.Host = headers[i+1]
		case headers[i+1] == "":
			r.Header.Del(headers[i])
		default:
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	resp, err := v.http.Client().Transport.RoundTrip(r)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp
}

// text reads an answer to its end.
func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	if strings.Contains(string(data), vendorKey) || strings.Contains(fmt.Sprint(resp.Header), vendorKey) {
		t.Errorf("the agent sees the key: %v %s", resp.Header, data)
	}
	return string(data)
}

const (
	messages = "/provider/anthropic/v1/messages"
	greeting = `{"model":"claude-x","max_tokens":16,"messages":[{"role":"user","content":"hello"}]}`
)
