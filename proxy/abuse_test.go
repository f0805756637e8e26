package proxy_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"capgate/proxy"
	"capgate/upstream"
)

// TestNoMessage: what is no message is refused with a status, an error and an
// event, and reaches nobody.
func TestNoMessage(t *testing.T) {
	s := &scripted{}
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Body: 64 << 10}}, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"` + w.root + `/docs/a"}}}`
	for _, test := range []struct {
		name, body string
		status     int
		headers    []string
	}{
		{"too long", strings.Replace(call, "/a", "/"+strings.Repeat("a", 64<<10), 1), 413, nil},
		{"nothing", "", 400, nil},
		{"truncated", call[:len(call)-2], 400, nil},
		{"two of them", call + call, 400, nil},
		{"batch", "[" + call + "]", 400, nil},
		{"empty batch", "[]", 400, nil},
		{"text", `"tools/call"`, 400, nil},
		{"deep", `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 80) + "1" + strings.Repeat("}", 81), 400, nil},
		{"byte order mark", "\xef\xbb\xbf" + call, 400, nil},
		{"not UTF-8", strings.Replace(call, "/a", "/\xff", 1), 400, nil},
		{"half a surrogate", strings.Replace(call, "/a", `/\ud800`, 1), 400, nil},
		{"NUL", strings.Replace(call, "/a", `/\u0000`, 1), 400, nil},
		{"two ids", strings.Replace(call, `"id":1`, `"id":1,"id":2`, 1), 400, nil},
		{"two methods in case", strings.Replace(call, `"id":1`, `"id":1,"Method":"ping"`, 1), 400, nil},
		{"two names", strings.Replace(call, `"params":{`, `"params":{"name":"x",`, 1), 400, nil},
		{"escaped twin", strings.Replace(call, `"arguments":{`, `"arguments":{"p\u0061th":"/etc/passwd",`, 1), 400, nil},
		{"no version", strings.Replace(call, `"jsonrpc":"2.0",`, "", 1), 400, nil},
		{"id of an array", strings.Replace(call, `"id":1`, `"id":[1]`, 1), 400, nil},
		{"id of a fraction", strings.Replace(call, `"id":1`, `"id":1.5`, 1), 400, nil},
		{"long id", strings.Replace(call, `"id":1`, `"id":"`+strings.Repeat("x", 300)+`"`, 1), 400, nil},
		{"a member that there is not", strings.Replace(call, `"id":1`, `"id":1,"x":1`, 1), 400, nil},
		{"more members", strings.Replace(call, `"id":1`, `"id":1,"result":{}`, 1), 400, nil},
		{"params of an array", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["files__read_text_file"]}`, 400, nil},
		{"method of a number", `{"jsonrpc":"2.0","id":1,"method":1}`, 400, nil},
		{"long method", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 200) + `"}`, 400, nil},
		{"plain text", call, 415, []string{"Content-Type", "text/plain"}},
		{"no type", call, 415, []string{"Content-Type", ""}},
		{"form", call, 415, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"charset", call, 415, []string{"Content-Type", "application/json; charset=utf-16"}},
		{"compressed", call, 415, []string{"Content-Encoding", "gzip"}},
		{"by a name", call[1:], 400, []string{"Content-Encoding", "Identity"}},
		{"accept", call, 406, []string{"Accept", "text/html"}},
		{"answer to nothing", `{"jsonrpc":"2.0","id":"capgate-1","result":{}}`, 400, nil},
		{"unknown revision", call, 400, []string{"Mcp-Protocol-Version", "2031-01-01"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(w.events.of("refusal"))
			a := take(t, c.post(test.body, test.headers...))
			if a.Status != test.status || a.Error == nil {
				t.Errorf("%d %.300s", a.Status, a.Raw)
			}
			if n := len(w.events.of("refusal")) - before; n != 1 {
				t.Errorf("%d events", n)
			}
		})
	}
	if n := len(s.calls()); n != 0 {
		t.Errorf("%d calls reached the server", n)
	}
}

// saysExpired checks whether an answer says that a token of scout's has expired.
func saysExpired(t *testing.T, a said, want bool) {
	t.Helper()
	if strings.Contains(a.Raw, " expired at ") != want || strings.Contains(a.Raw, ": capgate agents token issue scout ") != want {
		t.Errorf("%s", a.Raw)
	}
}

// saysNotGood checks that who shows a whole token is told that it is not good here, in the same words
// whatever it once was, and not that there is none.
func saysNotGood(t *testing.T, a said, header []string) {
	t.Helper()
	want := a.Status == 401 && len(header) == 2 && strings.HasPrefix(header[1], "Bearer cg_") && !strings.Contains(a.Raw, " expired at ")
	const text = "the token that is shown is not good here, or no longer: ask the operator for a new one, which capgate agents token issue or rotate prints."
	if strings.Contains(a.Raw, text) != want || strings.Contains(a.Raw, "shows no token of an agent") != (a.Status == 401 && !want && !strings.Contains(a.Raw, " expired at ")) {
		t.Errorf("%s", a.Raw)
	}
}

// namesToken checks that the operator is told which token was shown, if one was: in the event and
// nowhere else, and without its secret.
func namesToken(t *testing.T, a said, told string, header []string) {
	t.Helper()
	want := a.Status == 401 && len(header) == 2 && strings.HasPrefix(header[1], "Bearer cg_") && !strings.Contains(a.Raw, " expired at ")
	id, secret := "", "none"
	if want {
		id, secret, _ = strings.Cut(strings.TrimPrefix(header[1], "Bearer cg_"), "_")
	}
	if strings.Contains(told, "it shows cg_"+id+"_…") != want || strings.Contains(a.Raw, "it shows") || want && strings.Contains(told, secret) {
		t.Errorf("the event says %q, the answer %s", told, a.Raw)
	}
}

// TestNobody: who shows no good token of an agent, or comes from elsewhere, is
// turned away with an event, and nothing of what it sent is read.
// TestSaidTwice: of two headers of one name, whoever stands in front may have looked at the other.
func TestSaidTwice(t *testing.T) {
	w := start(t, map[string]string{"scout": reader, "other": reader}, files(t, &scripted{}))
	c := w.client("scout")
	c.initialize("{}")
	for name, test := range map[string]struct {
		values []string
		status int
	}{
		"Authorization":        {[]string{"Bearer " + w.tokens["scout"], "Bearer " + w.tokens["other"]}, 401},
		"Origin":               {[]string{"http://localhost", "https://evil.example"}, 403},
		"Mcp-Session-Id":       {[]string{c.session, "another"}, 400},
		"Mcp-Protocol-Version": {[]string{"2025-11-25", "2026-07-28"}, 400},
		"Content-Type":         {[]string{"application/json", "text/plain"}, 415},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.http.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		must(t, err)
		r.Header = http.Header{
			"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer " + c.token}, "Mcp-Session-Id": {c.session},
		}
		r.Header[name] = test.values
		resp, err := w.http.Client().Do(r)
		must(t, err)
		resp.Body.Close()
		if resp.StatusCode != test.status {
			t.Errorf("%s: %d", name, resp.StatusCode)
		}
	}
}

func TestNobody(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader, "gone": reader}, files(t, s))
	good := w.tokens["scout"]
	revoked := w.tokens["gone"]
	for one := range w.creds.Of("agents/gone") {
		w.creds, _ = w.creds.Revoke(one.ID)
	}
	expired, creds, err := w.creds.Issue("agents/scout", "", time.Minute, time.Now().Add(-time.Hour), zeros{})
	if err != nil {
		t.Fatal(err)
	}
	w.creds = creds
	w.adopt()
	c := w.client("scout")
	c.token = ""
	for _, test := range []struct {
		name   string
		status int
		header []string
	}{
		{"no token", 401, nil},
		{"wrong secret", 401, []string{"Authorization", "Bearer " + good[:len(good)-1] + "_"}},
		{"unknown id", 401, []string{"Authorization", "Bearer " + strings.Replace(good, good[3:19], "0123456789abcdef", 1)}},
		{"revoked", 401, []string{"Authorization", "Bearer " + revoked}},
		{"expired", 401, []string{"Authorization", "Bearer " + expired}},
		{"expired, wrong secret", 401, []string{"Authorization", "Bearer " + expired[:20] + good[20:]}},
		{"basic", 401, []string{"Authorization", "Basic " + good}},
		{"bare", 401, []string{"Authorization", good}},
		{"another header", 401, []string{"X-Api-Key", good}},
		{"cookie", 401, []string{"Cookie", "token=" + good}},
		{"forwarded agent", 401, []string{"X-Capgate-Agent", "scout"}},
		{"other host", 403, []string{"Authorization", "Bearer " + good, "Host", "evil.example"}},
		{"other host with a port", 403, []string{"Authorization", "Bearer " + good, "Host", "evil.example:80"}},
		{"host below localhost", 403, []string{"Authorization", "Bearer " + good, "Host", "localhost.evil.example"}},
		{"address in a name", 403, []string{"Authorization", "Bearer " + good, "Host", "127.0.0.1.nip.io"}},
		{"page of another origin", 403, []string{"Authorization", "Bearer " + good, "Origin", "https://evil.example"}},
		{"page of no origin", 403, []string{"Authorization", "Bearer " + good, "Origin", "null"}},
		{"page with a user", 403, []string{"Authorization", "Bearer " + good, "Origin", "http://localhost@evil.example"}},
		{"page with a user here", 403, []string{"Authorization", "Bearer " + good, "Origin", "http://evil@localhost"}},
		{"page of a file", 403, []string{"Authorization", "Bearer " + good, "Origin", "file://localhost"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := len(w.events.of("refusal"))
			a := take(t, c.post(hello, test.header...))
			if a.Status != test.status || strings.Contains(a.Raw, "serverInfo") || strings.Contains(a.Raw, good[3:19]) {
				t.Errorf("%d %s", a.Status, a.Raw)
			}
			saysExpired(t, a, test.name == "expired")
			saysNotGood(t, a, test.header)
			all := w.events.of("refusal")[before:]
			if len(all) != 1 {
				t.Fatalf("%d events", len(all))
			}
			namesToken(t, a, all[0].Text, test.header)
		})
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.http.URL+"/mcp?token="+good+"&access_token="+good, strings.NewReader(hello))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := w.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("a token in the query: %d", resp.StatusCode)
	}
	for _, e := range w.events.of("refusal") {
		if strings.Contains(fmt.Sprintf("%+v", e), good[20:]) {
			t.Errorf("an event holds the token: %+v", e)
		}
	}
	if s.opened.Load() != 0 {
		t.Error("a server was started for nobody")
	}
}

// zeros is randomness that a test can do without.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestSessionsApart: nothing of one agent's session can be had, ended or answered
// by another agent, nor by another session of the same one.
func TestSessionsApart(t *testing.T) {
	asking, cancelled := make(chan struct{}), make(chan struct{}, 1)
	s := &scripted{}
	s.reply = func(ctx context.Context, _ upstream.Request, sink upstream.Sink) (upstream.Answer, error) {
		close(asking)
		got, err := sink.Ask(ctx, "elicitation/create", []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`))
		if err != nil {
			cancelled <- struct{}{}
			return upstream.Answer{}, err
		}
		return upstream.Answer{Result: append(append([]byte(`{"content":[],"heard":`), got...), '}')}, nil
	}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"}
	w := start(t, map[string]string{"scout": reader, "spy": reader}, up)
	c := w.client("scout")
	c.initialize(`{"elicitation":{}}`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	in := c.open(ctx, t, http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"files__read_text_file","arguments":{"path":"`+w.root+`/docs/a"}}}`)
	<-asking
	question := in.next()
	if !strings.Contains(question, `"id":"capgate-1"`) {
		t.Fatal(question)
	}
	spy := w.client("spy")
	spy.initialize(`{"elicitation":{}}`)
	own := spy.session
	const answer = `{"jsonrpc":"2.0","id":"capgate-1","result":{"action":"accept","content":{"from":"spy"}}}`
	twin := w.client("scout")
	twin.initialize(`{"elicitation":{}}`)
	for name, who := range map[string]*client{"the session of another agent": {w: w, token: spy.token, session: c.session}, "a session of one's own": {w: w, token: spy.token, session: own}, "another session of the agent": twin} {
		if a := take(t, who.post(answer)); a.Status != 404 && a.Status != 400 {
			t.Errorf("%s: the answer to another's question: %d", name, a.Status)
		}
		if resp := who.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`); resp.StatusCode != 404 && resp.StatusCode != 202 {
			t.Errorf("%s: cancelling: %d", name, resp.StatusCode)
		}
	}
	spy.session = c.session
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		before := len(w.events.of("refusal"))
		if e := spy.open(ctx, t, method, ""); e.resp.StatusCode != 404 {
			t.Errorf("%s of another's session: %d", method, e.resp.StatusCode)
		}
		if n := len(w.events.of("refusal")) - before; n != 1 {
			t.Errorf("%s left %d events", method, n)
		}
	}
	if a := spy.request("tools/list", "{}"); a.Status != 404 {
		t.Errorf("a request in another's session: %d %s", a.Status, a.Raw)
	}
	select {
	case <-cancelled:
		t.Error("another has cancelled the call")
	default:
	}
	if resp := c.post(strings.Replace(answer, "spy", "scout", 1)); resp.StatusCode != 202 {
		t.Errorf("its own answer: %d", resp.StatusCode)
	}
	if got := in.next(); !strings.Contains(got, `"from":"scout"`) {
		t.Error(got)
	}
}

// TestOneStream: a session has one stream, and what is over is not found.
func TestOneStream(t *testing.T) {
	w := start(t, map[string]string{"scout": reader}, files(t, &scripted{}))
	c := w.client("scout")
	c.initialize("{}")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first := c.open(ctx, t, http.MethodGet, "")
	if first.resp.StatusCode != 200 {
		t.Fatal(first.resp.StatusCode)
	}
	if e := c.open(ctx, t, http.MethodGet, ""); e.resp.StatusCode != 409 {
		t.Errorf("a second stream: %d", e.resp.StatusCode)
	}
	if e := c.open(ctx, t, http.MethodDelete, ""); e.resp.StatusCode != 204 {
		t.Errorf("delete: %d", e.resp.StatusCode)
	}
	if data := first.next(); data != "" {
		t.Error(data)
	}
	if a := c.request("tools/list", "{}"); a.Status != 404 {
		t.Errorf("after the end: %d", a.Status)
	}
}

// TestCursorsApart: a cursor is good for the agent and the list it was given for.
func TestCursorsApart(t *testing.T) {
	var list strings.Builder
	for i := range 10001 {
		fmt.Fprintf(&list, `,{"name":"t%d","inputSchema":{"type":"object"}}`, i)
	}
	s := &scripted{lists: map[string]string{"tools/list": `"tools":[` + list.String()[1:] + `]`}}
	w := start(t, map[string]string{"scout": everything, "spy": everything}, &proxy.Upstream{Name: "up", Prefix: "up", Open: s.open})
	c := w.client("scout")
	c.initialize("{}")
	a := c.request("tools/list", "{}")
	_, cursor, ok := strings.Cut(a.Raw[len(a.Raw)-400:], `"nextCursor":"`)
	if !ok {
		t.Fatal("one page")
	}
	cursor, _, _ = strings.Cut(cursor, `"`)
	if a := c.request("tools/list", `{"cursor":"`+cursor+`"}`); len(toolNames(t, a)) != 1 {
		t.Errorf("the second page: %.300s", a.Raw)
	}
	spy := w.client("spy")
	spy.initialize("{}")
	for name, a := range map[string]said{
		"of another agent": spy.request("tools/list", `{"cursor":"`+cursor+`"}`), "of another list": c.request("prompts/list", `{"cursor":"`+cursor+`"}`),
		"cut": c.request("tools/list", `{"cursor":"`+cursor[1:]+`"}`), "of a number": c.request("tools/list", `{"cursor":1}`), "empty": c.request("tools/list", `{"cursor":""}`),
	} {
		if a.Error == nil || a.Error.Code != -32602 {
			t.Errorf("a cursor %s: %.200s", name, a.Raw)
		}
	}
}

// TestManySessions: sessions are limited, and leave nothing behind.
func TestManySessions(t *testing.T) {
	s := &scripted{}
	up := files(t, s)
	up.MayAsk = []string{"elicitation"} // each has connections of its own
	w := startWith(t, proxy.Options{Limits: proxy.Limits{Sessions: 100}}, map[string]string{"scout": reader}, up)
	c := w.client("scout")
	var open []string
	for range 120 {
		resp := c.post(hello)
		if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
			open = append(open, id)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if len(open) != 100 {
		t.Errorf("%d sessions are open", len(open))
	}
	drop := func(id string) {
		c.session = id
		e := c.open(t.Context(), t, http.MethodDelete, "")
		if e.resp.StatusCode != 204 {
			t.Fatal(e.resp.StatusCode)
		}
		c.session = ""
	}
	for _, id := range open {
		drop(id)
	}
	before := runtime.NumGoroutine()
	for range 2000 {
		resp := c.post(hello)
		id := resp.Header.Get("Mcp-Session-Id")
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		drop(id)
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before+10 && s.opened.Load() == s.closed.Load() {
			break
		}
		runtime.Gosched()
		runtime.GC()
	}
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Errorf("2000 sessions left %d goroutines", n)
	}
	if open := s.opened.Load() - s.closed.Load(); open != 0 {
		t.Errorf("2000 sessions left %d connections", open)
	}
}

// TestNotificationFlood: notifications of a client cost nothing that stays.
func TestNotificationFlood(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	c := w.client("scout")
	c.initialize("{}")
	before := runtime.NumGoroutine()
	for i := range 2000 {
		method := [...]string{"notifications/cancelled", "notifications/initialized", "notifications/roots/list_changed", "notifications/none"}[i%4]
		resp := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"requestId":%d}}`, method, i))
		resp.Body.Close()
		if resp.StatusCode != 202 {
			t.Fatal(resp.StatusCode)
		}
	}
	if n := runtime.NumGoroutine() - before; n > 10 {
		t.Errorf("%d goroutines", n)
	}
	if n := len(s.calls()); n != 0 {
		t.Errorf("%d of them reached the server", n)
	}
}

// TestBrokenOffBody: a body that ends before its time is refused.
func TestBrokenOffBody(t *testing.T) {
	s := &scripted{}
	w := start(t, map[string]string{"scout": reader}, files(t, s))
	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", w.tokens["scout"])
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn) // how the connection ends does not matter
	if strings.Contains(string(answer), "200 OK") || len(w.events.of("refusal")) != 1 {
		t.Errorf("%s", answer)
	}
}

// TestNoise sends more nonsense than is recorded: of one agent, it does not hide
// what another sends, nor what somebody without a token does.
func TestNoise(t *testing.T) {
	w := start(t, map[string]string{"loud": reader, "quiet": reader}, files(t, &scripted{}))
	by := func(agent string) int {
		count := 0
		for _, e := range w.events.of("refusal") {
			if e.Agent == agent {
				count++
			}
		}
		return count
	}
	send := func(c *client) { _ = c.post("nonsense").Body.Close() }
	for range 700 {
		send(w.client("loud"))
	}
	if n := by("agents/loud"); n < 600 || n >= 700 {
		t.Errorf("%d of 700 are recorded, want 600 and what a moment allows", n)
	}
	send(w.client("quiet"))
	send(&client{w: w, token: "cg_none"})
	if by("agents/quiet") != 1 || by("") != 1 {
		t.Errorf("%d and %d of another's, want 1 of each", by("agents/quiet"), by(""))
	}
}
