package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/provider"
)

// large is a request of 100 KB with fifty tools, one of which is a search.
func large() []byte {
	var tools []string
	for i := range 49 {
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"%s","input_schema":{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer"}}}}`, i, strings.Repeat("what it does ", 20)))
	}
	tools = append(tools, `{"type":"web_search_20250305","name":"web_search"}`)
	var turns []string
	for i := range 80 {
		role := []string{"user", "assistant"}[i%2]
		turns = append(turns, fmt.Sprintf(`{"role":%q,"content":[{"type":"text","text":"%s"}]}`, role, strings.Repeat("some words and more ", 48)))
	}
	return []byte(`{"model":"m","max_tokens":1024,"tools":[` + strings.Join(tools, ",") + `],"messages":[` + strings.Join(turns, ",") + `]}`)
}

// BenchmarkRewrite measures a large request of an agent with fifty hosts, the
// reading of its grants included.
func BenchmarkRewrite(b *testing.B) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("*.host%d.example.com", i))
	}
	p := holding(b, hosts(names...))
	vendor, _ := provider.Lookup("anthropic")
	place, err := vendor.Endpoint("POST", "/v1/messages", "")
	if err != nil {
		b.Fatal(err)
	}
	body := large()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		out, changes, err := vendor.Rewrite(place, body, p)
		if err != nil || len(changes) != 1 || len(out) <= len(body) {
			b.Fatal(len(out), changes, err)
		}
	}
}

// BenchmarkWatch measures a stream of pieces of text, which is most of what passes.
func BenchmarkWatch(b *testing.B) {
	vendor, _ := provider.Lookup("anthropic")
	w := vendor.Watch(holding(b, hosts("*.github.com")))
	chunk := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"some words\"}}\n\n")
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = w.Write(chunk)
	}
}
