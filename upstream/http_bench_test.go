package upstream_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"capgate/upstream"
)

// fast is a server that costs little: it answers with the params of the request,
// in the head of which it looks for the id. It says how long its answer is, or
// sends it as a stream.
func fast(tb testing.TB, stream bool) string {
	buffers := sync.Pool{New: func() any { return new(bytes.Buffer) }}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := buffers.Get().(*bytes.Buffer)
		defer buffers.Put(buf)
		buf.Reset()
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
		_, _ = buf.ReadFrom(r.Body)
		rest := bytes.TrimPrefix(buf.Bytes(), []byte(`{"jsonrpc":"2.0","id":`))
		id, rest, _ := bytes.Cut(rest, []byte(","))
		_, params, _ := bytes.Cut(rest, []byte(`"params":`))
		switch {
		case bytes.HasPrefix(rest, []byte(`"method":"initialize"`)):
			params = []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}}`)
		case len(params) == 0:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		head := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":`, id)
		if stream {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: message\ndata: ")
		} else {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(len(head)+len(params)))
		}
		_, _ = w.Write(head)
		_, _ = w.Write(params)
		if stream {
			_, _ = io.WriteString(w, "\n\n")
		}
	}))
	tb.Cleanup(s.Close)
	return s.URL
}

// BenchmarkHTTPCall is a call over loopback, next to what net/http alone costs for
// the same bytes. The server takes part of the processor's time in both.
func BenchmarkHTTPCall(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 1 << 20} {
		params := []byte(`{"a":"` + strings.Repeat("x", size) + `"}`)
		b.Run(fmt.Sprint("plain/", size), func(b *testing.B) {
			url := fast(b, false)
			client := &http.Client{Transport: upstream.NewTransport(nil)}
			body := append([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`), append(params, '}')...)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				resp, err := client.Do(req)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadAll(resp.Body); err != nil {
					b.Fatal(err)
				}
				if err := resp.Body.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
		for _, kind := range []string{"json", "stream"} {
			b.Run(fmt.Sprint(kind, "/", size), func(b *testing.B) {
				c := dial(b, upstream.Endpoint{Name: "b", URL: fast(b, kind == "stream")},
					upstream.Options{Client: upstream.Client{Protocol: "2025-11-25"}})
				r := upstream.Request{Method: "tools/call", Params: params}
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Call(b.Context(), r, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
