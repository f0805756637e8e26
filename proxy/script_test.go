package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"capgate/proxy"
	"capgate/upstream"
)

// scriptFile is the variable that makes this test binary a server instead, which
// plays the script in the file that it names.
const scriptFile = "CAPGATE_PLAYED_SCRIPT"

func TestMain(m *testing.M) {
	file := os.Getenv(scriptFile)
	if file == "" {
		os.Exit(m.Run())
	}
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	var s script
	if err := json.Unmarshal(data, &s); err != nil {
		panic(err)
	}
	s.playStdio()
	os.Exit(0)
}

// script is a server on the wire, byte by byte. It is played over HTTP by the
// test, and over stdio by a process.
type script struct {
	Modern   bool
	Events   bool              // over HTTP, answers are event streams
	Tools    [][]byte          // definitions
	Answers  map[string][]byte // the last member of the answer to a call, by tool
	Progress int               // notifications before the answer to a call that has a token
	Sick     string            // a file: what stands in it is what the server suffers from
	Deeds    string            // a file: a byte is added for each call that was executed

	health func() string // the same as Sick, within the test
	deed   func()
}

// heard is one message of the gateway.
type heard struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// called is what a tools/call asks for.
type called struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
	Cursor string `json:"cursor"`
}

const scriptPage = 40 // tools on a page

// answer is what the server says to a request, notifications first.
func (s *script) answer(m heard) (messages [][]byte) {
	say := func(format string, args ...any) {
		messages = append(messages, fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format+`}`, args...))
	}
	var p called
	if m.Params != nil {
		if err := json.Unmarshal(m.Params, &p); err != nil {
			panic(err)
		}
	}
	switch {
	case m.Method == "server/discover" && s.Modern:
		say(`"id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}`, m.ID)
	case m.Method == "initialize" && !s.Modern:
		say(`"id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"played","version":"1"}}`, m.ID)
	case m.Method == "tools/list":
		from := 0
		if p.Cursor != "" {
			from = len(p.Cursor) * scriptPage
		}
		to, next := min(from+scriptPage, len(s.Tools)), ""
		if to < len(s.Tools) {
			next = `,"nextCursor":"` + p.Cursor + `x"`
		}
		say(`"id":%s,"result":{"tools":[%s]%s}`, m.ID, bytes.Join(s.Tools[from:to], []byte(",")), next)
	case m.Method == "tools/call":
		s.done()
		for i := range s.Progress {
			if p.Meta.Token != nil {
				say(`"method":"notifications/progress","params":{"progressToken":%s,"progress":%d}`, p.Meta.Token, i)
			}
		}
		member, ok := s.Answers[p.Name]
		if !ok { // it says what it was given
			member = fmt.Appendf(nil, `"result":{"content":[],"got":%q}`, base64.StdEncoding.EncodeToString(p.Arguments))
		}
		say(`"id":%s,%s`, m.ID, member)
	default:
		say(`"id":%s,"error":{"code":-32601,"message":"Method not found"}`, m.ID)
	}
	return messages
}

// done notes that a call was executed.
func (s *script) done() {
	if s.deed != nil {
		s.deed()
	}
	if s.Deeds == "" {
		return
	}
	f, err := os.OpenFile(s.Deeds, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.Write([]byte("x"))
	}
	if err != nil || f.Close() != nil {
		panic(err)
	}
}

// suffers is what the server suffers from, "" when it is well.
func (s *script) suffers() string {
	if s.health != nil {
		return s.health()
	}
	if s.Sick == "" {
		return ""
	}
	text, err := os.ReadFile(s.Sick)
	if err != nil {
		return ""
	}
	return string(text)
}

// began notes that the process began, and its number.
func (s *script) began() {
	if s.Deeds == "" {
		return
	}
	f, err := os.OpenFile(s.Deeds+".pids", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil || f.Close() != nil {
		panic(err)
	}
}

// playStdio is the server as a process.
func (s *script) playStdio() {
	s.began()
	if s.suffers() == "crash" {
		fmt.Fprintln(os.Stderr, "no database")
		os.Exit(7)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		text, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m heard
		if err := json.Unmarshal(text, &m); err != nil {
			panic(err)
		}
		if m.ID == nil || m.Method == "" {
			continue
		}
		ill, when, _ := strings.Cut(s.suffers(), " ")
		if when != "" && when != m.Method {
			ill = ""
		}
		if s.ail(ill, m) {
			continue
		}
		for _, message := range s.answer(m) {
			if _, err := os.Stdout.Write(append(message, '\n')); err != nil {
				return
			}
		}
		if ill == "flap" {
			os.Exit(0)
		}
	}
}

// ail does to a request what an illness does. It reports whether there is no
// answer.
func (s *script) ail(ill string, m heard) bool {
	if ill != "" && m.Method == "tools/call" {
		s.done()
	}
	switch ill {
	case "mute":
		return true
	case "die":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(3)
	case "garbage":
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"a\":1,\"a\":2}}\n", m.ID)
		return true
	case "huge":
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range 100 {
			if _, err := os.Stdout.Write(chunk); err != nil {
				os.Exit(0)
			}
		}
		return true
	}
	return false
}

// ServeHTTP is the server over HTTP, while it is well.
func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var m heard
	if err := json.Unmarshal(body, &m); err != nil {
		panic(err)
	}
	if m.ID == nil || m.Method == "" {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	messages := s.answer(m)
	if !s.Events && len(messages) == 1 {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(messages[0])
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, message := range messages {
		for line := range bytes.SplitSeq(bytes.ReplaceAll(message, []byte("\r\n"), []byte("\n")), []byte("\n")) {
			_, _ = fmt.Fprintf(w, "data: %s\n", line)
		}
		_, _ = io.WriteString(w, "\n")
	}
}

// over returns the server as an upstream: over "json", "events" or "stdio".
func (s *script) over(t testing.TB, name, transport string) *proxy.Upstream {
	t.Helper()
	u := &proxy.Upstream{Name: name, Prefix: name, Pins: proxy.Off}
	if transport == "stdio" {
		u.Open = s.process(t, name)
		return u
	}
	s.Events = transport == "events"
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	u.Open = dialling(name, web.URL)
	return u
}

func dialling(name, url string) func(context.Context, proxy.Peer) (upstream.Conn, error) {
	return func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		return upstream.Dial(ctx, upstream.Endpoint{Name: name, URL: url}, upstream.Options{Client: p.Client, Events: p.Events})
	}
}

func (s *script) process(t testing.TB, name string) func(context.Context, proxy.Peer) (upstream.Conn, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	// Under the race detector a process would wait a second before it ends.
	env := []string{scriptFile + "=" + file, "GORACE=atexit_sleep_ms=0"}
	return func(ctx context.Context, p proxy.Peer) (upstream.Conn, error) {
		return upstream.Start(ctx, upstream.Program{Name: name, Argv: []string{self}, Env: env}, upstream.Options{Client: p.Client, Events: p.Events})
	}
}
