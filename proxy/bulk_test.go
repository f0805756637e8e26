package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/proxy"
	"capgate/upstream"
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

// lengthy is a server whose answers are long, and wait, but for that of the third call.
type lengthy struct {
	calls atomic.Int64
	taken chan bool // whether there was room for each
	until chan struct{}
}

func (l *lengthy) reply(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
	ok := r.Room != nil && r.Room.Take(1<<20)
	wait := l.calls.Add(1) != 3
	if l.taken <- ok; !ok {
		return upstream.Answer{}, &upstream.Failed{Upstream: "files", Text: "answers too long", Err: upstream.ErrNoRoom}
	}
	if wait {
		<-l.until
	}
	return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
}

// TestBulkAnswers: the long answers that one agent waits for, or does not take, fill the
// memory of the others only so far: in both eras, and of calls that may be parked.
func TestBulkAnswers(t *testing.T) {
	for name, mayAsk := range map[string][]string{"plain": nil, "parked": {"elicitation"}} {
		t.Run(name, func(t *testing.T) {
			l := &lengthy{taken: make(chan bool, 10), until: make(chan struct{})}
			up := files(t, &scripted{reply: l.reply})
			up.MayAsk = mayAsk
			w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: 1 << 20, Bulk: 2 << 20}}, map[string]string{"scout": reader, "other": reader}, up)
			args := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`
			scout, legacy, other := w.client("scout"), w.client("scout"), w.client("other") // each counts its own requests
			legacy.initialize("{}")
			all := make(chan said, 3)
			go func() { all <- w.client("scout").modern("tools/call", args, `{"elicitation":{}}`) }()
			go func() { all <- legacy.request("tools/call", args) }()
			if first, second := <-l.taken, <-l.taken; !first || !second {
				t.Error("one of two has no room")
			}
			if d := denialOf(t, scout.modern("tools/call", args, `{"elicitation":{}}`)); <-l.taken || d.Code != "limit_exceeded" || d.Hint == "" {
				t.Errorf("a third: %+v", d)
			}
			go func() { all <- other.modern("tools/call", args, `{"elicitation":{}}`) }()
			if !<-l.taken {
				t.Error("another agent's has no room")
			}
			close(l.until)
			for range 3 {
				if a := <-all; a.Error != nil || strings.Contains(a.Raw, "denial") {
					t.Error(a.Raw)
				}
			}
			for range 3 {
				if scout.modern("tools/call", args, `{"elicitation":{}}`); !<-l.taken {
					t.Error("what has gone still counts")
				}
			}
		})
	}
}

// TestBulkGiven: what an answer was made with, and does not hold, is there for others while
// the call goes on.
func TestBulkGiven(t *testing.T) {
	taken, until := make(chan bool, 2), make(chan struct{})
	up := files(t, &scripted{reply: func(_ context.Context, r upstream.Request, _ upstream.Sink) (upstream.Answer, error) {
		ok := r.Room.Take(2 << 20)
		r.Room.Give(2 << 20)
		taken <- ok
		<-until
		return upstream.Answer{Result: []byte(`{"content":[]}`)}, nil
	}})
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: 1 << 20, Bulk: 2 << 20}}, map[string]string{"scout": reader}, up)
	args := `{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}`
	var calls sync.WaitGroup
	for range 2 {
		calls.Go(func() { w.client("scout").modern("tools/call", args, `{"elicitation":{}}`) })
		if !<-taken {
			t.Error("what was given back still counts")
		}
	}
	close(until)
	calls.Wait()
}

// TestBulkUnannounced: of a message whose length was not announced only what came counts
// once it is here, so that there is room for the answers to many of them.
func TestBulkUnannounced(t *testing.T) {
	l := &lengthy{taken: make(chan bool, 2), until: make(chan struct{})}
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: 1 << 20, Bulk: 3 << 20}}, map[string]string{"scout": reader}, files(t, &scripted{reply: l.reply}))
	scout := w.client("scout")
	scout.initialize("{}")
	var calls sync.WaitGroup
	for id := range 2 {
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":%q}}}`, id, w.root+"/docs/a")
		r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", io.MultiReader(strings.NewReader(body)))
		r.ContentLength = -1
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+scout.token)
		r.Header.Set("Mcp-Session-Id", scout.session)
		calls.Go(func() { w.server.ServeHTTP(httptest.NewRecorder(), r) })
	}
	if first, second := <-l.taken, <-l.taken; !first || !second {
		t.Error("one of two has no room for its answer")
	}
	close(l.until)
	calls.Wait()
}

// TestBulkIndex: what is made of a message counts as well. One of many short values takes
// eight times its length.
func TestBulkIndex(t *testing.T) {
	const long = 1 << 20
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: long, Bulk: 5 * long}}, map[string]string{"scout": reader}, files(t, &scripted{}))
	c := w.client("scout")
	c.initialize("{}")
	numbers := func(n int) string { return `{"name":"none","arguments":{"a":[0` + strings.Repeat(",0", n) + `]}}` }
	for range 3 { // what was counted is given back
		if a := c.request("tools/call", numbers(long/16)); !strings.Contains(a.Raw, "unknown_tool") {
			t.Errorf("a message that there is room for: %.200s", a.Raw)
		}
		if a := c.request("tools/call", numbers(long/3)); !strings.Contains(a.Raw, "too many long messages at once") {
			t.Errorf("one that is too much: %.200s", a.Raw)
		}
	}
}

// TestBulkReading: no more long messages of one agent are read at once than there is work
// done, so that what is made of them is not all here, however many come.
func TestBulkReading(t *testing.T) {
	w := startWith(t, proxy.Options{}, map[string]string{"scout": reader}, files(t, &scripted{}))
	body := `{"jsonrpc":"2.0","id":1,"method":"none","params":{"a":[0` + strings.Repeat(",0", 400_000) + `]}}`
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var posts sync.WaitGroup
	for range 30 {
		posts.Go(func() {
			for ctx.Err() == nil {
				r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Authorization", "Bearer "+w.tokens["scout"])
				w.server.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
	most, seen, stacks := 0, 0, make([]byte, 8<<20)
	for seen < 50 && ctx.Err() == nil { // to look stops them, and others go on
		n := runtime.Stack(stacks, true)
		if now := bytes.Count(stacks[:n], []byte("wire.(*Doc).Parse(")); now > 0 {
			most, seen = max(most, now), seen+1
		}
		runtime.Gosched()
	}
	cancel()
	posts.Wait()
	if most == 0 || most > runtime.GOMAXPROCS(0) {
		t.Errorf("%d were read at once", most)
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

// TestConsultWatchBulk: what is kept of long answers, to look at them, counts as well.
// An answer that there is no room for comes all the same, and leaves a notice.
func TestConsultWatchBulk(t *testing.T) {
	for most, want := range map[int]int{8 << 20: 0, 1 << 20: 1} {
		answer := `{"embedding":"` + strings.Repeat("x", 3<<20) + `","tool":1}`
		v := consulting(t, proxy.Options{Limits: proxy.Limits{Body: 1 << 20, Bulk: most}}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		if got := text(t, v.ask("POST", messages, greeting)); got != answer {
			t.Errorf("%d bytes of the answer came, want %d", len(got), len(answer))
		}
		v.http.Close() // the handler has ended, and so has its record
		if all := v.events.of(guardrail.Notice); len(all) != want || want > 0 && !strings.HasPrefix(all[0].Text, "provider_answer_unread: 1 ") {
			t.Errorf("room for %d: %v", most, all)
		}
	}
}

// TestConsultOneByOne: long requests of one agent are judged one after another, as each
// takes memory and time, and keep neither its short ones nor those of others waiting.
func TestConsultOneByOne(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	var judged, most atomic.Int64
	first, begun, goOn := new(atomic.Bool), make(chan struct{}), make(chan struct{})
	v.events.before = func(e *guardrail.Event) {
		if e.Kind != guardrail.Decision || e.Agent != "agents/scout" || e.Method != "POST /v1/messages" {
			return
		}
		most.Store(max(most.Load(), judged.Add(1)))
		if first.CompareAndSwap(false, true) {
			close(begun)
			<-goOn
		}
		for range 1000 {
			runtime.Gosched()
		}
		judged.Add(-1)
	}
	long := strings.Replace(greeting, "hello", strings.Repeat("hello ", 20_000), 1)
	all := make(chan int)
	for range 8 {
		go func() { all <- v.ask("POST", messages, long).StatusCode }()
	}
	<-begun
	if short := v.ask("POST", messages+"/count_tokens", greeting); short.StatusCode != http.StatusOK {
		t.Errorf("a short one: %d", short.StatusCode)
	}
	if other := v.ask("POST", messages, long, "X-Api-Key", "", "X-Api-Key", v.tokens["nobody"]); other.StatusCode != http.StatusOK {
		t.Errorf("another agent's: %d", other.StatusCode)
	}
	close(goOn)
	for range 8 {
		if code := <-all; code != http.StatusOK {
			t.Errorf("one of them: %d", code)
		}
	}
	if most.Load() != 1 {
		t.Errorf("%d were judged at once", most.Load())
	}
}
