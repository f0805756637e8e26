package proxy_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"capgate/proxy"
)

// TestBulk: long messages of one agent fill the memory of the others only so far, be
// they announced or not, come or not.
func TestBulk(t *testing.T) {
	const long = 1 << 20
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: long, Bulk: 3 * long}}, map[string]string{"scout": reader, "other": reader}, files(t, &scripted{}))
	var reading atomic.Int64
	until, none := make(chan struct{}), make(chan struct{})
	close(none)
	post := func(agent string, announced int64, sent int, until chan struct{}) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", &stalled{left: sent, now: &reading, until: until})
		r.ContentLength = announced
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+w.tokens[agent])
		answer := httptest.NewRecorder()
		w.server.ServeHTTP(answer, r)
		return answer
	}
	all := make(chan *httptest.ResponseRecorder)
	for _, announced := range []int64{long, long, -1} {
		go func() { all <- post("scout", announced, 100, until) }()
	}
	for reading.Load() < 3 {
		select {
		case answer := <-all:
			t.Fatalf("one of three is refused: %d %s", answer.Code, answer.Body)
		default:
			runtime.Gosched()
		}
	}
	tooMany := func(announced int64) bool {
		answer := post("scout", announced, 0, none)
		return answer.Code == http.StatusTooManyRequests && strings.Contains(answer.Body.String(), "too many long messages at once")
	}
	go func() {
		for reading.Load() < 5 { // those below too
			runtime.Gosched()
		}
		close(until)
	}()
	if !tooMany(-1) || !tooMany(100_000) {
		t.Error("a fourth is taken in")
	}
	go func() { all <- post("scout", 1000, 10, until) }()
	go func() { all <- post("other", long, 10, until) }()
	for range 5 {
		if answer := <-all; answer.Code == http.StatusTooManyRequests {
			t.Errorf("a short message, or another agent's, is refused: %s", answer.Body)
		}
	}
	if tooMany(long) {
		t.Error("what has gone still counts")
	}
}

// TestConsultBulk: what goes to a provider counts for as long as it answers.
func TestConsultBulk(t *testing.T) {
	from := make(chan string)
	v := consulting(t, proxy.Options{Limits: proxy.Limits{Body: 1 << 20, Bulk: 1 << 20}}, pieces(eventStream, from, nil))
	long := strings.Replace(greeting, "hello", strings.Repeat("hello ", 100_000), 1)
	first := v.ask("POST", messages, long)
	if resp := v.ask("POST", messages, long); resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(text(t, resp), "too many long messages at once") {
		t.Errorf("a second one: %d", resp.StatusCode)
	}
	short := v.ask("POST", messages, greeting)
	close(from)
	for _, resp := range []*http.Response{first, short} {
		if text(t, resp); resp.StatusCode != http.StatusOK {
			t.Errorf("the first, or a short one: %d", resp.StatusCode)
		}
	}
	if resp := v.ask("POST", messages, long); resp.StatusCode != http.StatusOK {
		t.Errorf("what has gone still counts: %d %s", resp.StatusCode, text(t, resp))
	}
}
