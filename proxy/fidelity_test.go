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
	"slices"
	"strings"
	"testing"
	"time"

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

// playStdio is the server as a process.
func (s *script) playStdio() {
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
		switch ill {
		case "mute":
			if m.Method == "tools/call" {
				s.done()
			}
			continue
		case "die":
			if m.Method == "tools/call" {
				s.done()
			}
			os.Exit(3)
		case "huge":
			chunk := bytes.Repeat([]byte("x"), 1<<20)
			for range 100 {
				if _, err := os.Stdout.Write(chunk); err != nil {
					return
				}
			}
		case "garbage":
			s.done()
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{]}\n", m.ID)
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

// caller is an agent that may call every tool, whatever its arguments.
const caller = `---
class: agent
capabilities:
  - tool.invoke: { tools: ["*"] }
---
`

// raw makes a request as it is written, in either era. The params are members.
func (c *client) raw(modern bool, id, method, params, meta string) said {
	c.w.t.Helper()
	var p struct{ Name string }
	if err := json.Unmarshal([]byte("{"+params+"}"), &p); err != nil {
		c.w.t.Fatal(err)
	}
	var headers []string
	if modern {
		headers = []string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method}
		if p.Name != "" {
			headers = append(headers, "Mcp-Name", p.Name)
		}
		if meta != "" {
			meta += ","
		}
		meta += `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	}
	if params != "" {
		params += ","
	}
	return take(c.w.t, c.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":{`+params+`"_meta":{`+meta+`}}}`, headers...))
}

// route is a way from an agent to a server and back.
type route struct {
	agent, server bool // of the modern era
	transport     string
}

func (r route) String() string {
	era := map[bool]string{true: "modern", false: "legacy"}
	return era[r.agent] + " agent, " + era[r.server] + " server, " + r.transport
}

func (r route) oneLine() bool { return r.transport == "stdio" }

func routes() (all []route) {
	for _, transport := range []string{"json", "events", "stdio"} {
		for _, server := range []bool{false, true} {
			for _, agent := range []bool{false, true} {
				all = append(all, route{agent, server, transport})
			}
		}
	}
	return all
}

// travel brings a gateway up before a server, and an agent that speaks to it.
func (r route) travel(t *testing.T, s *script) *client {
	t.Helper()
	s.Modern = r.server
	u := s.over(t, "up", r.transport)
	u.Timeout = 5 * time.Second
	c := start(t, map[string]string{"scout": caller}, u).client("scout")
	if !r.agent {
		c.initialize("{}")
	}
	return c
}

// plain is a definition without anything to it.
func plain(name string) []byte { return []byte(tool(name)) }

// spaced is a message as it is on a transport that ends one at a line break.
func spaced(text string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(text) }

// oddResults are results and errors that a typed copy would lose something of.
func oddResults() map[string]string {
	return map[string]string{
		"unknown_content":  `"result":{"content":[{"type":"hologram","depth":3,"of":[{}]}]}`,
		"unknown_members":  `"result":{"zz":[null],"content":[{"type":"text","text":"a","zz":1,"aa":2}],"aa":{"b":1}}`,
		"numbers":          `"result":{"content":[],"structuredContent":{"n":9007199254740993,"f":1.0,"e":1E+2,"z":-0,"long":123456789012345678901234567890}}`,
		"order":            `"result":{"isError":false,"_meta":{"b":1,"a":2},"content":[{"text":"a","type":"text"}]}`,
		"whitespace":       `"result": { "content" : [ { "type":"text" ,	"text":"a" } ] , "b" :1 }`,
		"breaks":           "\"result\": {\n\t\"content\": [\n\t],\r\n\t\"b\": 1\n}",
		"meta":             `"result":{"content":[],"_meta":{"x/y":{"n":1e2},"progressToken":9007199254740993}}`,
		"structured_list":  `"result":{"content":[],"structuredContent":[1,"a",null]}`,
		"structured_null":  `"result":{"content":[],"structuredContent":null}`,
		"structured_text":  `"result":{"content":[],"structuredContent":"a"}`,
		"structured_false": `"result":{"content":[],"structuredContent":false}`,
		"empty":            `"result":{}`,
		"escapes":          `"result":{"content":[{"type":"text","text":"\u00e9\/\ud83d\ude00<>&\u2028 é😀` + "\u2028" + `\b\f"}],"\u0061":1}`,
		"is_error":         `"result":{"content":[{"type":"text","text":"no"}],"isError":true}`,
		"complete":         `"result":{"content":[],"resultType":"complete","x":1}`,
		"no_content":       `"result":{"contents":"none"}`,
		"error":            `"error":{"code":-32000,"message":"no"}`,
		"error_data":       `"error":{ "message":"n\u006f", "code":-32050,"data":{"n":9007199254740993 , "a":[1.0]},"more":{"x":1} }`,
		"error_method":     `"error":{"code":-32601,"message":"no such method, says the tool","data":null}`,
		"large":            `"result":{"content":[{"type":"text","text":"` + strings.Repeat("0123456789abcdef", 20<<20/16) + `"}]}`,
	}
}

// TestFidelityResults: what a server answers is what the agent gets, byte by byte.
func TestFidelityResults(t *testing.T) {
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{Answers: map[string][]byte{}}
			for name, member := range oddResults() {
				if r.oneLine() {
					member = spaced(member)
				}
				s.Tools = append(s.Tools, plain(name))
				s.Answers[name] = []byte(member)
			}
			c := r.travel(t, s)
			for name, member := range s.Answers {
				a := c.raw(r.agent, "7", "tools/call", `"name":"up__`+name+`","arguments":{}`, "")
				kind, want, _ := strings.Cut(string(member), ":")
				want = strings.TrimSpace(want)
				if r.transport == "events" {
					want = strings.ReplaceAll(want, "\r\n", "\n") // there a line break is a line break
				}
				if got := answered(t, a, kind); !sameBut(r.agent, got, want) {
					t.Errorf("%s: got %.300q, want %.300q", name, got, want)
				}
			}
		})
	}
}

// answered is the member of an answer that tells its kind, as it was written.
func answered(t *testing.T, a said, kind string) string {
	t.Helper()
	var members map[string]json.RawMessage
	_, body, ok := strings.Cut(a.Raw, "data: ")
	if !ok || a.Raw[0] == '{' {
		body = a.Raw
	}
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatalf("%.300s: %v", a.Raw, err)
	}
	return string(members[strings.Trim(kind, `"`)])
}

// sameBut reports whether a result is the same, but for the member that the modern
// era wants and that the server did not write.
func sameBut(modern bool, got, want string) bool {
	if got == want {
		return true
	}
	const complete = `{"resultType":"complete"`
	rest, added := strings.CutPrefix(got, complete)
	if !modern || !added || strings.Contains(want, "resultType") {
		return false
	}
	return strings.TrimPrefix(rest, ",") == strings.TrimLeft(want[1:], " \t\r\n")
}

// TestFidelityUnreadable: what parsers read in different ways is passed to nobody.
func TestFidelityUnreadable(t *testing.T) {
	members := map[string]string{
		"no_utf8":       "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xff\"}]}",
		"overlong":      "\"result\":{\"content\":[],\"a\":\"\xc0\xaf\"}",
		"duplicate":     `"result":{"content":[],"a":1,"a":2}`,
		"deep":          `"result":{"content":[{"x":{"k":1,"\u006b":2}}]}`,
		"case":          `"result":{"content":[],"Content":[]}`,
		"surrogate":     `"result":{"content":[{"type":"text","text":"\ud800"}]}`,
		"reversed":      `"result":{"content":[{"type":"text","text":"\ude00\ud83d"}]}`,
		"nul":           `"result":{"content":[{"type":"text","text":"\u0000"}]}`,
		"raw_nul":       "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\x00\"}]}",
		"control":       "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\x1b\"}]}",
		"list":          `"result":[]`,
		"null":          `"result":null`,
		"text":          `"result":"a"`,
		"both":          `"result":{},"error":{"code":1,"message":"a"}`,
		"neither":       `"results":{}`,
		"no_code":       `"error":{"message":"a"}`,
		"result_twice":  `"result":{},"result":{"content":[]}`,
		"half":          `"result":{"content":[`,
		"type_unknown":  `"result":{"content":[],"resultType":"other"}`,
		"type_number":   `"result":{"content":[],"resultType":7}`,
		"infinite":      `"result":{"n":1e400}`,
		"leading_zeros": `"result":{"n":007}`,
	}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			s := &script{Answers: map[string][]byte{}}
			for name, member := range members {
				s.Tools = append(s.Tools, plain(name))
				s.Answers[name] = []byte(member)
			}
			c := r.travel(t, s)
			for name := range members {
				begun := time.Now()
				a := c.raw(r.agent, "7", "tools/call", `"name":"up__`+name+`"`, "")
				if d := denialOf(t, a); d.Code != "upstream_failed" || !strings.Contains(a.Raw, `upstream \"up\"`) {
					t.Errorf("%s: %.300q", name, a.Raw)
				}
				if took := time.Since(begun); took > 4*time.Second {
					t.Errorf("%s: the agent learns of it after %v, when the time of the call is up", name, took)
				}
			}
		})
	}
}

// TestFidelityArguments: what an agent writes is what the server gets.
func TestFidelityArguments(t *testing.T) {
	arguments := []string{
		`{}`, `{ }`, `{ "path" : "a" ,	"n":1 }`, "{\n\t\"a\": [\r\n1 ]\n}",
		`{"n":12345678901234567890,"f":1.0,"e":1E+2,"z":-0,"s":0.10}`,
		`{"s":"\u0041\/\ud83d\ude00\u2028é😀<>&\b","\u00e9":1,"":2}`,
		`{"z":1,"a":{"y":[],"b":null},"m":[true,false,[[]]]}`,
		strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60),
		`{"text":"` + strings.Repeat("x", 5<<20) + `"}`,
	}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			c := r.travel(t, &script{Tools: [][]byte{plain("echo")}})
			for _, want := range arguments {
				a := c.raw(r.agent, "1", "tools/call", `"name":"up__echo","arguments":`+want, "")
				var result struct{ Got []byte }
				if err := json.Unmarshal(a.Result, &result); err != nil {
					t.Fatalf("%.200s: %v", a.Raw, err)
				}
				if r.oneLine() {
					want = spaced(want)
				}
				if string(result.Got) != want {
					t.Errorf("got %.200q, want %.200q", result.Got, want)
				}
			}
		})
	}
}

// TestFidelityIDs: an id comes back as it was written, and so does the token of
// what is said before the answer.
func TestFidelityIDs(t *testing.T) {
	ids := []string{
		`0`, `-1`, `-0`, `9007199254740993`, `123456789012345678901234567890`, `""`, `"a\"b"`, `"é😀"`, `"\u00e9\ud83d\ude00"`, `"1"`, `" "`,
		`"` + strings.Repeat("x", 200) + `"`,
	}
	tokens := []string{``, `"t"`, `0`, `9007199254740993`, `"\u00e9\""`, `""`}
	for _, r := range routes() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			c := r.travel(t, &script{Tools: [][]byte{plain("echo")}, Progress: 3})
			for _, id := range ids {
				for _, token := range tokens {
					checkID(t, c, r, id, token)
				}
			}
		})
	}
}

func checkID(t *testing.T, c *client, r route, id, token string) {
	t.Helper()
	meta := ""
	if token != "" {
		meta = `"progressToken":` + token
	}
	a := c.raw(r.agent, id, "tools/call", `"name":"up__echo","arguments":{}`, meta)
	if string(a.ID) != id || a.Result == nil {
		t.Errorf("id %s, token %s: %.300s", id, token, a.Raw)
	}
	var want []string
	for i := range 3 {
		if token != "" {
			want = append(want, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, token, i))
		}
	}
	if !slices.Equal(a.Before, want) {
		t.Errorf("id %s: before the answer came %q, not %q", id, a.Before, want)
	}
}
