package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"capgate/proxy"
)

// asPage makes a request with headers that a browser adds for a page.
func asPage(t *testing.T, w *world, method, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, w.http.URL+"/mcp", strings.NewReader(body))
	must(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := w.http.Client().Do(r)
	must(t, err)
	must(t, resp.Body.Close())
	return resp
}

// TestPages: a web page that the configuration names can do all that MCP needs, as its browser
// sees it.
func TestPages(t *testing.T) {
	const page = "https://app.example.com"
	w := startWith(t, proxy.Options{Origins: []string{page}}, map[string]string{"scout": reader}, files(t, &scripted{}))
	ask := func(method, body string, header ...string) *http.Response {
		t.Helper()
		return asPage(t, w, method, body, header...)
	}
	preflight := []string{"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type,mcp-param-x"}
	allowed := func(r *http.Response) string { return r.Header.Get("Access-Control-Allow-Origin") }

	before := ask(http.MethodOptions, "", append(preflight, "Origin", page)...)
	if before.StatusCode != http.StatusNoContent || allowed(before) != page || before.Header.Get("Access-Control-Allow-Headers") != preflight[3] ||
		before.Header.Get("Access-Control-Allow-Methods") != "GET, POST, DELETE" || before.Header.Get("Vary") != "Origin" {
		t.Errorf("before a request: %d %v", before.StatusCode, before.Header)
	}
	token := []string{"Authorization", "Bearer " + w.tokens["scout"], "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	hi := ask(http.MethodPost, hello, append(token, "Origin", page)...)
	if hi.StatusCode != http.StatusOK || allowed(hi) != page || !strings.Contains(hi.Header.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") {
		t.Errorf("a request: %d %v", hi.StatusCode, hi.Header)
	}
	if r := ask(http.MethodPost, hello, "Origin", page); r.StatusCode != http.StatusUnauthorized || allowed(r) != page {
		t.Errorf("without a token: %d %v", r.StatusCode, r.Header)
	}
	if r := ask(http.MethodOptions, "", "Origin", page); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a request with the method OPTIONS: %d", r.StatusCode)
	}
}

// TestOtherPages: of a page that nobody has named nothing is said that its browser would take for
// a yes, nor of one of this machine.
func TestOtherPages(t *testing.T) {
	w := startWith(t, proxy.Options{Origins: []string{"https://app.example.com"}}, map[string]string{"scout": reader}, files(t, &scripted{}))
	for _, other := range []string{"https://evil.example", "null", "http://localhost:6274", ""} {
		before := asPage(t, w, http.MethodOptions, "", "Access-Control-Request-Method", "POST", "Origin", other)
		hi := asPage(t, w, http.MethodPost, hello, "Authorization", "Bearer "+w.tokens["scout"], "Content-Type", "application/json", "Origin", other)
		for _, r := range []*http.Response{before, hi} {
			if r.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%q: %d %v", other, r.StatusCode, r.Header)
			}
		}
		if before.StatusCode < http.StatusBadRequest {
			t.Errorf("%q before a request: %d", other, before.StatusCode)
		}
	}
}
