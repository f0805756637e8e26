//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	anchorOf = "CAPGATE_E2E_ANCHOR" // has this program be an anchor in front of a server

	speedRounds = 7
	speedCalls  = 1500 // of a round
	speedGrants = 50
	speedTicks  = 100 // a second, in /proc

	// What a call may cost, as a multiple of what it costs the anchor. It is meant to be
	// 1.2; what is more is for machines on which others work.
	speedLimit = 1.3
)

// anchor is the least that a gateway could do: it reads each body, looks for the URL in
// it, compares that with as many grants, and forwards the bytes.
type anchor struct {
	to     *url.URL
	grants []string
	client *http.Transport
}

func serveAnchor(to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	a := &anchor{to: u, client: &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}}
	for i := range speedGrants {
		a.grants = append(a.grants, fmt.Sprintf(".host%d.example", i))
	}
	fmt.Printf("listening at http://%s/mcp\n", l.Addr())
	return (&http.Server{Handler: a, ReadHeaderTimeout: time.Minute}).Serve(l)
}

func (a *anchor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !a.allows(body) {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	out := (&http.Request{
		Method: r.Method, URL: a.to, Host: a.to.Host, Header: r.Header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}).WithContext(r.Context())
	resp, err := a.client.RoundTrip(out)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	w.Header()["Content-Type"] = resp.Header["Content-Type"]
	w.Header()["Content-Length"] = []string{strconv.Itoa(len(answer))}
	_, _ = w.Write(answer)
}

func (a *anchor) allows(body []byte) bool {
	_, rest, ok := bytes.Cut(body, []byte(`"url":"`))
	if !ok {
		return true
	}
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	u, err := url.Parse(string(text))
	return err == nil && slices.ContainsFunc(a.grants, func(g string) bool { return strings.HasSuffix(u.Hostname(), g) })
}

// quick is a server that answers at once.
func quick(t *testing.T) string {
	t.Helper()
	return answering(t, map[string]string{
		"initialize": `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"quick","version":"1"}}`,
		"tools/list": `{"tools":[{"name":"fetch","inputSchema":{"type":"object","properties":{"url":{"type":"string"}}}}]}`,
		"tools/call": `{"content":[{"type":"text","text":"fetched"}]}`,
	})
}

// answering is a server with a result for each of its methods.
func answering(t *testing.T, results map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m message
		switch err := json.NewDecoder(r.Body).Decode(&m); {
		case r.Method != http.MethodPost || err != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if result := results[m.Method]; result != "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, m.ID)
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// runner is a program under test, and a session at it.
type runner struct {
	*process
	at, token, session string
	client             *http.Client
}

func (r *runner) post(t *testing.T, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + r.token} {
		req.Header.Set(name, value)
	}
	if r.session != "" {
		req.Header.Set("Mcp-Session-Id", r.session)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// calls makes calls, so many at once, and returns what of the processor's time each took.
func (r *runner) calls(t *testing.T, atOnce int) time.Duration {
	t.Helper()
	before := r.worked(t)
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			for n := range speedCalls / atOnce {
				resp := r.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d-%d","method":"tools/call","params":{"name":"fetch","arguments":{"url":"https://api.host49.example/%d"}}}`, i, n, n))
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !bytes.Contains(text, []byte(`"fetched"`)) {
					t.Errorf("the call was answered %s, %v", text, err)
					return
				}
			}
		})
	}
	all.Wait()
	return (r.worked(t) - before) / speedCalls
}

// worked is the processor's time that a process has had.
func (r *runner) worked(t *testing.T) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	var ticks int
	for _, text := range fields[11:13] { // in user and in kernel mode
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / speedTicks
}

// TestSpeed: a call through the gateway, with fifty grants and the log of events on, takes
// little more of the processor's time than through the least that could stand there.
func TestSpeed(t *testing.T) {
	if runtime.GOOS != "linux" {
		unavailable(t, "what a process has worked is read from /proc, which Linux has")
	}
	to := quick(t)
	var record strings.Builder
	for i := range speedGrants {
		fmt.Fprintf(&record, "  - net.get: { hosts: [\"*.host%d.example\"] }\n", i)
	}
	dir := tree(t, map[string]string{
		"agents/scout.md": "---\nid: agents/scout\nclass: agent\ncapabilities:\n" + record.String() + "---\n",
		"capgate.yml": "agents: ./agents\nstate: ./state\nlimits: { calls_per_minute: 1000000 }\nupstreams:\n" +
			"  web: { url: \"" + to + "\", mapping: fetch, prefix: none, unmediated: true, may_ask: [] }\n",
	})
	g := serve(t, dir, "capgate.yml", "scout")
	cmd := command(t, os.Args[0])
	cmd.Env = append(cmd.Env, anchorOf+"="+to)
	p := start(t, cmd)
	pool := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(pool.CloseIdleConnections)
	ours := &runner{process: g.process, at: g.at, token: g.token, client: &http.Client{Transport: pool}}
	least := &runner{process: p, at: p.said.await(t, `listening at (\S+)\n`), client: ours.client}
	resp := ours.post(t, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`)
	resp.Body.Close()
	if ours.session = resp.Header.Get("Mcp-Session-Id"); ours.session == "" {
		t.Fatalf("there is no session: %s", resp.Status)
	}
	for _, atOnce := range []int{1, 32} {
		var ratios []float64
		for range speedRounds {
			a, b := ours.calls(t, atOnce), least.calls(t, atOnce)
			ratios = append(ratios, float64(a)/float64(b))
		}
		slices.Sort(ratios)
		t.Logf("%d at once: %.2f, from %.2f to %.2f", atOnce, ratios[speedRounds/2], ratios[0], ratios[speedRounds-1])
		if median := ratios[speedRounds/2]; median > speedLimit {
			t.Errorf("%d at once: a call takes %.2f times as much as it does the anchor, want %.2f at most", atOnce, median, speedLimit)
		}
	}
}
