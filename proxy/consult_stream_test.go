package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"capgate/guardrail"
	"capgate/proxy"
)

// pieces is a provider that streams what it is handed, each piece at once, until
// the channel is closed or the gateway leaves.
func pieces(kind string, from <-chan string, left chan<- struct{}) func(w http.ResponseWriter, r *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(200)
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case piece, more := <-from:
				if !more {
					return
				}
				if piece == "break off" {
					panic(http.ErrAbortHandler)
				}
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				if left != nil {
					close(left)
				}
				return
			}
		}
	}
}

const eventStream = "text/event-stream; charset=utf-8"

// TestConsultStream: each event arrives before the provider writes the next, pings
// too, and as the bytes that it wrote.
func TestConsultStream(t *testing.T) {
	from := make(chan string)
	v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
	resp := v.ask("POST", messages, strings.Replace(greeting, "{", `{"stream":true,`, 1))
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != eventStream || resp.Header.Get("Content-Length") != "" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	for i := range 20 {
		piece := fmt.Sprintf("event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"text\":\"word %d\"}}\n\n", i)
		if i%3 == 0 {
			piece = "event: ping\ndata: {\"type\": \"ping\"}\n\n"
		}
		if i%3 == 1 {
			piece = ": OPENROUTER PROCESSING\r\n\r\n"
		}
		from <- piece
		got := make([]byte, len(piece))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != piece {
			t.Fatalf("piece %d is %q, %v", i, got, err)
		}
	}
	close(from)
	if rest, err := io.ReadAll(resp.Body); err != nil || len(rest) > 0 {
		t.Errorf("behind the end stand %q, %v", rest, err)
	}
}

// TestConsultEcho: a provider that repeats the key does not show it to the agent,
// wherever the pieces of its answer begin and end.
func TestConsultEcho(t *testing.T) {
	answer := "event: error\ndata: {\"error\":\"bad key " + vendorKey + "\",\"url\":\"https://x/?key=" + vendorKey + "\"}\n\n" +
		"data: {\"nested\":\"{\\\"k\\\":\\\"" + vendorKey + "\\\"}\",\"hex\":\"" + fmt.Sprintf("%x", vendorKey) + "\"}\n\ndata: " + vendorKey
	for _, size := range []int{1, 2, 7, 20, 37, 64, 1000} {
		from := make(chan string, len(answer)+1)
		for rest := answer; rest != ""; rest = rest[min(size, len(rest)):] {
			from <- rest[:min(size, len(rest))]
		}
		close(from)
		v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", vendorKey)
			pieces("text/event-stream", from, nil)(w, r)
		})
		got := text(t, v.ask("POST", messages, greeting))
		want := strings.ReplaceAll(strings.ReplaceAll(answer, vendorKey, "{{secret:anthropic}}"), fmt.Sprintf("%x", vendorKey), "{{secret:anthropic}}")
		if got != want {
			t.Errorf("in pieces of %d:\n%s\nwant\n%s", size, got, want)
		}
	}
}

// TestConsultGone: when the agent leaves, the provider is left too.
func TestConsultGone(t *testing.T) {
	from, left := make(chan string), make(chan struct{})
	v := consulting(t, proxy.Options{}, pieces(eventStream, from, left))
	resp := v.ask("POST", messages, greeting)
	from <- "data: {}\n\n"
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Fatal("the provider still answers")
	}
	v.await(func() bool {
		out := v.events.of(guardrail.Outcome)
		return len(out) == 1 && out[0].Error == "the agent left"
	})
}

// TestConsultGoneBefore: the same before anything was answered.
func TestConsultGoneBefore(t *testing.T) {
	left := make(chan struct{})
	v := consulting(t, proxy.Options{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); close(left) })
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, v.http.URL+messages, strings.NewReader(greeting))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Api-Key": {v.tokens["scout"]}, "Content-Type": {"application/json"}}
	failed := make(chan error, 1)
	go func() {
		resp, err := v.http.Client().Do(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	v.await(func() bool { return len(v.saw()) == 1 })
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Fatal("the provider is still asked")
	}
}

// TestConsultHalfGone: who has left by half and still reads is shown no answer where
// there was none.
func TestConsultHalfGone(t *testing.T) {
	v := consulting(t, proxy.Options{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	conn, err := net.Dial("tcp", v.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		messages, conn.RemoteAddr(), v.tokens["scout"], len(greeting), greeting)
	v.await(func() bool { return len(v.saw()) == 1 })
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("%q, %v", got, err)
	}
}

// await waits until something is the case.
func (v *vendor) await(is func() bool) {
	v.t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); {
		if time.Now().After(end) {
			v.t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond)
	}
}

// patient shortens what every provider may take.
func (v *vendor) patient(start, idle time.Duration) {
	for _, p := range v.vendors {
		p.Start, p.Idle = start, idle
	}
}

// noted is how an answer names the event of a problem.
func (v *vendor) noted(problem string) string {
	i := slices.IndexFunc(v.events.all(), func(e guardrail.Event) bool { return strings.Contains(e.Error, problem) })
	return fmt.Sprintf("[event ev-%d]", i+1)
}

// TestConsultHung: a provider that does not begin to answer is not waited for longer
// than the limit.
func TestConsultHung(t *testing.T) {
	v := consulting(t, proxy.Options{}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	v.patient(50*time.Millisecond, time.Minute)
	resp := v.ask("POST", "/provider/openai/v1/chat/completions", `{"model":"m","messages":[]}`)
	if got := text(t, resp); resp.StatusCode != 504 || !strings.Contains(got, `"code":"upstream_failed"`) || !strings.Contains(got, "did not begin to answer in time. To proceed, try again later. "+v.noted("did not begin to answer in time")+`"`) {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

// TestConsultPause: one that pauses within its answer is not either, and no client
// takes what has come for all of it.
func TestConsultPause(t *testing.T) {
	from := make(chan string, 1)
	v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
	v.patient(time.Minute, 50*time.Millisecond)
	from <- "data: {\"a\":1}\n\ndata: {\"b\""
	got := text(t, v.ask("POST", messages, greeting))
	if !strings.HasPrefix(got, "data: {\"a\":1}\n\ndata: {") || !strings.Contains(got, "\n\nevent: error\ndata: {\"type\":\"error\"") || !strings.Contains(got, "paused for too long within its answer. "+v.noted("paused for too long")+`"`) {
		t.Errorf("the stream is %q", got)
	}
	from = make(chan string, 1)
	v.script = pieces("application/json", from, nil)
	from <- `{"a":1}`
	resp := v.ask("POST", messages, greeting)
	if got, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("the answer ends as if it were whole: %q", got)
	}
	_ = resp.Body.Close()
}

// TestConsultBrokenOff: likewise when the provider breaks off.
func TestConsultBrokenOff(t *testing.T) {
	for _, kind := range []string{eventStream, "application/json"} {
		from := make(chan string, 2)
		v := consulting(t, proxy.Options{}, pieces(kind, from, nil))
		from <- "data: {\"a\":1}\n\n"
		from <- "break off"
		resp := v.ask("POST", "/provider/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{"contents":[]}`)
		got, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if kind == eventStream && !strings.Contains(string(got), `data: {"error":{"code":502,`) || kind != eventStream && err == nil {
			t.Errorf("%s: %q, %v", kind, got, err)
		}
		if out := v.events.of(guardrail.Outcome); len(out) != 1 || out[0].Error != "it broke off within its answer" {
			t.Errorf("the outcome is %+v", out)
		}
	}
}

// TestConsultBrokenOffWithin: so that what the gateway says of it stands in an event of its own.
func TestConsultBrokenOffWithin(t *testing.T) {
	for _, began := range []string{"event: x\ndata: {\"a\":1}\n", "data: {\"a\":1}\r\n"} {
		from := make(chan string, 2)
		v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
		from <- began
		from <- "break off"
		got := text(t, v.ask("POST", messages, greeting))
		if !strings.HasPrefix(got, began+"\n\nevent: error\ndata: {") {
			t.Errorf("%q ends as %q", began, got)
		}
	}
}

// TestConsultUnreachable: nobody listens where the provider should be.
func TestConsultUnreachable(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	for _, p := range v.vendors {
		p.URL = "http://127.0.0.1:1"
	}
	if resp := v.ask("POST", messages, greeting); resp.StatusCode != 502 || !strings.Contains(text(t, resp), "cannot be reached. To proceed, try again later. "+v.noted("cannot be reached")+`"`) {
		t.Errorf("%d", resp.StatusCode)
	}
	for _, p := range v.vendors {
		p.Key = func() (string, error) { return "", errors.New("K is empty") }
	}
	resp := v.ask("POST", messages, greeting)
	if got := text(t, resp); resp.StatusCode != 502 || !strings.Contains(got, "no usable key for it. To proceed, ask the operator, ") || resp.Header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	if n := len(v.saw()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestConsultRevoked: a token that is revoked is of no use from then on, and what
// is being streamed to it ends.
func TestConsultRevoked(t *testing.T) {
	from := make(chan string)
	v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
	resp := v.ask("POST", messages, greeting)
	from <- "data: 1\n\n"
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	for one := range v.creds.Of("agents/scout") {
		v.creds, _ = v.creds.Revoke(one.ID)
	}
	v.adopt()
	from <- "data: 2\n\n"
	close(from)
	if got := text(t, resp); !strings.Contains(got, "event: error") || !strings.Contains(got, "revoked") || strings.Contains(got, "data: 2") {
		t.Errorf("the stream ends with %q", got)
	}
	if resp := v.ask("POST", messages, greeting); resp.StatusCode != 401 || !strings.Contains(text(t, resp), "authentication_error") {
		t.Errorf("%d", resp.StatusCode)
	}
	if n := len(v.saw()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestConsultRevokedBefore: of an answer that begins when the token is revoked already, not
// even its status and its headers are told.
func TestConsultRevokedBefore(t *testing.T) {
	begin := make(chan struct{})
	v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		<-begin
		w.Header().Set("Anthropic-Ratelimit-Tokens-Remaining", "7")
		w.WriteHeader(429)
		_, _ = io.WriteString(w, "too many")
	})
	answer := make(chan *http.Response)
	go func() { answer <- v.ask("POST", messages, greeting) }()
	for len(v.saw()) == 0 {
		time.Sleep(time.Millisecond)
	}
	for one := range v.creds.Of("agents/scout") {
		v.creds, _ = v.creds.Revoke(one.ID)
	}
	v.adopt()
	close(begin)
	resp := <-answer
	got := text(t, resp)
	if resp.StatusCode != 401 || resp.Header.Get("Anthropic-Ratelimit-Tokens-Remaining") != "" || !strings.Contains(got, "authentication_error") || !strings.Contains(got, "revoked") {
		t.Errorf("%d %v %s", resp.StatusCode, resp.Header, got)
	}
	all := v.events.all()
	if last := all[len(all)-1]; last.Kind != guardrail.Outcome || !strings.Contains(last.Error, "revoked") {
		t.Errorf("%+v", last)
	}
}

// TestConsultTaken: so is an agent's whose record is gone or broken, or for whom the
// provider is no longer there.
func TestConsultTaken(t *testing.T) {
	for name, take := range map[string]func(v *vendor){
		"record broken": func(v *vendor) {
			if err := os.WriteFile(filepath.Join(v.dir, "scout.md"), []byte("---\nclass: agent\ncapabilites: []\n---\n"), 0o600); err != nil {
				v.t.Error(err)
			}
		},
		"record gone": func(v *vendor) {
			if err := os.Remove(filepath.Join(v.dir, "scout.md")); err != nil {
				v.t.Error(err)
			}
		},
		"provider gone": func(v *vendor) { v.vendors = nil },
		"for others": func(v *vendor) {
			v.vendors = slices.Clone(v.vendors)
			for i, p := range v.vendors {
				other := *p
				other.Agents = []string{"agents/nobody"}
				v.vendors[i] = &other
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := make(chan string)
			v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
			resp := v.ask("POST", messages, greeting)
			from <- "data: 1\n\n"
			first := make([]byte, len("data: 1\n\n"))
			if _, err := io.ReadFull(resp.Body, first); err != nil {
				t.Fatal(err)
			}
			take(v)
			v.adopt()
			from <- "data: 2\n\n"
			close(from)
			if got := text(t, resp); !strings.Contains(got, "event: error") || !strings.Contains(got, "no longer there for the agent") || strings.Contains(got, "data: 2") {
				t.Errorf("the stream ends with %q", got)
			}
		})
	}
}

// TestConsultExpired: so is one whose time is over, in the middle of an answer too.
func TestConsultExpired(t *testing.T) {
	k, from := new(clock), make(chan string)
	v := consulting(t, proxy.Options{Clock: k.now}, pieces(eventStream, from, nil))
	resp := v.ask("POST", messages, greeting)
	from <- "data: 1\n\n"
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil {
		t.Fatal(err)
	}
	k.forward(2 * tokenLife)
	from <- "data: 2\n\n"
	close(from)
	if got := text(t, resp); !strings.Contains(got, "event: error") || strings.Contains(got, "data: 2") {
		t.Errorf("the stream ends with %q", got)
	}
}

// TestConsultLimits: how often, and how much at once, is the same as for MCP.
func TestConsultLimits(t *testing.T) {
	from := make(chan string)
	v := consulting(t, proxy.Options{Limits: proxy.Limits{Flights: 2, Calls: 4}}, pieces(eventStream, from, nil))
	a, b := v.ask("POST", messages, greeting), v.ask("POST", messages, greeting)
	if resp := v.ask("POST", messages, greeting); resp.StatusCode != 429 || !strings.Contains(text(t, resp), "too many requests at once") {
		t.Errorf("a third at once: %d", resp.StatusCode)
	}
	close(from)
	for _, resp := range []*http.Response{a, b} {
		text(t, resp)
	}
	for i := range 3 {
		resp := v.ask("POST", messages, greeting)
		if got := text(t, resp); (resp.StatusCode == 429) != (i == 2) {
			t.Errorf("request %d: %d %s", i+3, resp.StatusCode, got)
		}
	}
}

// TestConsultUnrecorded: what cannot be recorded does not go up.
func TestConsultUnrecorded(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	v.events.failWith(errors.New("the disk is full"))
	resp := v.ask("POST", messages, greeting)
	if got := text(t, resp); resp.StatusCode != 503 || !strings.Contains(got, "not_available") || strings.Contains(got, "disk") {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
	if n := len(v.saw()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestConsultEnds: a gateway that ends does not wait for providers.
func TestConsultEnds(t *testing.T) {
	from := make(chan string)
	v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
	resp := v.ask("POST", messages, greeting)
	from <- "data: 1\n\n"
	_ = v.server.Close()
	if got := text(t, resp); !strings.Contains(got, "the gateway ends") {
		t.Errorf("the stream ends with %q", got)
	}
}

// TestConsultBrokenOffGoogle: Google's clients take no event that has a name.
func TestConsultBrokenOffGoogle(t *testing.T) {
	from := make(chan string, 2)
	v := consulting(t, proxy.Options{}, pieces(eventStream, from, nil))
	from <- "data: {\"a\":1}\n\n"
	from <- "break off"
	got := text(t, v.ask("POST", "/provider/gemini/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[]}`))
	if !strings.HasPrefix(got, "data: {\"a\":1}\n\n\n\ndata: {\"error\":") && !strings.HasPrefix(got, "data: {\"a\":1}\n\ndata: {\"error\":") {
		t.Errorf("the stream ends with %q", got)
	}
}

// TestConsultThread: who asks for a conversation that is kept is told to send all of it,
// as the vendor tells its clients.
func TestConsultThread(t *testing.T) {
	v := consulting(t, proxy.Options{}, nil)
	resp := v.ask("POST", messages, strings.Replace(greeting, "{", `{"thread":{"type":"create"},`, 1))
	if got := text(t, resp); resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, `"details":{"error_code":"thread_unsupported_request"}`) || len(v.saw()) > 0 {
		t.Errorf("%d %s", resp.StatusCode, got)
	}
}

// TestConsultUnread: an answer that could not be looked at leaves a notice, and one
// that could does not.
func TestConsultUnread(t *testing.T) {
	for answer, want := range map[string]int{
		"data: {\"tool\":1,\"tool\":2}\n\n":      1,
		"\x0a\x07\x12\x05tools":                  1,
		"data: {\"tool\":1}\n\ndata: [DONE]\n\n": 0,
		`{"ok":true}`:                            0,
	} {
		v := consulting(t, proxy.Options{}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
		if got := text(t, v.ask("POST", messages, greeting)); got != answer {
			t.Errorf("%q came as %q", answer, got)
		}
		v.http.Close() // the handler has ended, and so has its record
		if all := v.events.of(guardrail.Notice); len(all) != want || want > 0 && !strings.HasPrefix(all[0].Text, "provider_answer_unread: 1 ") {
			t.Errorf("%q: %v", answer, all)
		}
	}
}
