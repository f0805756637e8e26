//go:build unix

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// message is any message of the protocol.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
	} `json:"error"`
}

// answer is what came of a request: the response, and what was sent before it.
type answer struct {
	message
	notes []message
}

// text is what a model reads of a tool's result, or the error of the request.
func (a answer) text() string {
	if a.Error != nil {
		return a.Error.Message
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(a.Result, &r); err != nil {
		return err.Error()
	}
	var all []string
	for _, c := range r.Content {
		all = append(all, c.Text)
	}
	return strings.Join(all, "\n")
}

// ok says whether the request had a result that is no error.
func (a answer) ok() bool {
	var r struct{ IsError bool }
	return a.Error == nil && json.Unmarshal(a.Result, &r) == nil && !r.IsError
}

// names are those of the tools of a list.
func (a answer) names() []string {
	var r struct{ Tools []struct{ Name string } }
	_ = json.Unmarshal(a.Result, &r) // what is no list has no names
	names := []string{}
	for _, tool := range r.Tools {
		names = append(names, tool.Name)
	}
	return names
}

// allowed fails unless a call was carried out, and denied unless it was denied
// with a code.
func allowed(t *testing.T, a answer, want string) {
	t.Helper()
	if !a.ok() || !strings.Contains(a.text(), want) {
		t.Errorf("answered %q, want it allowed, with %q", a.text(), want)
	}
}

func denied(t *testing.T, a answer, code string) {
	t.Helper()
	if a.ok() || !strings.Contains(a.text(), "Denied by capgate ("+code+")") {
		t.Errorf("answered %q, want it denied with %s", a.text(), code)
	}
}

// agent is one of the modern era, over HTTP. Its methods may be used by several
// goroutines.
type agent struct{ at, token string }

const agentMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// post makes a request; params is an object, or nothing.
func (a agent) post(t *testing.T, method, name, params string) (*http.Response, error) {
	t.Helper()
	if params = strings.TrimSuffix(strings.TrimPrefix(params, "{"), "}"); params != "" {
		params += ","
	}
	return a.send(t, method, name, "{"+params+agentMeta+"}")
}

// send makes a request with params that are whole.
func (a agent) send(t *testing.T, method, name, params string) (*http.Response, error) {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.at, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	for key, value := range map[string]string{
		"Authorization": "Bearer " + a.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": modern, "Mcp-Method": method, "Mcp-Name": name,
	} {
		if value != "" && value != "Bearer " {
			r.Header.Set(key, value)
		}
	}
	return (&http.Client{Timeout: awaitTime}).Do(r)
}

// ask makes a request and waits for its answer.
func (a agent) ask(t *testing.T, method, name, params string) answer {
	t.Helper()
	resp, err := a.post(t, method, name, params)
	if err != nil {
		t.Fatal(err)
	}
	return heard(t, resp)
}

// asked is a call with params that are whole.
func (a agent) asked(t *testing.T, tool, params string) answer {
	t.Helper()
	resp, err := a.send(t, "tools/call", tool, params)
	if err != nil {
		t.Fatal(err)
	}
	return heard(t, resp)
}

// heard reads what is answered, at once or in a stream.
func heard(t *testing.T, resp *http.Response) answer {
	t.Helper()
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return conversation(t, [][]byte{data})
	}
	var lines [][]byte
	for line := range bytes.Lines(data) {
		if event, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			lines = append(lines, event)
		}
	}
	return conversation(t, lines)
}

// conversation reads messages, of which the last is the response.
func conversation(t *testing.T, lines [][]byte) (a answer) {
	t.Helper()
	for i, line := range lines {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("the gateway wrote %q: %v", line, err)
		}
		if i == len(lines)-1 {
			a.message = m
		} else {
			a.notes = append(a.notes, m)
		}
	}
	return a
}

// tools lists what the agent is shown.
func (a agent) tools(t *testing.T) []string {
	t.Helper()
	return a.ask(t, "tools/list", "", "").names()
}

// call calls a tool.
func (a agent) call(t *testing.T, tool, arguments string) answer {
	t.Helper()
	return a.ask(t, "tools/call", tool, fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

// client is one of the legacy era, over the standard input and output of a
// gateway it has started.
type client struct {
	*process
	in      io.WriteCloser
	lines   chan []byte
	count   int
	answers map[string]string // to what the gateway asks: results by method
	asked   []string          // the methods of what it has asked
}

// launch starts a gateway as clients start their servers, and greets it.
// Capabilities are an object, and answers what the client says when it is asked.
func launch(t *testing.T, capabilities string, answers map[string]string, args ...string) *client {
	t.Helper()
	cmd := capgate(t, args...)
	in, ours := io.Pipe()
	theirs, out := io.Pipe()
	cmd.Stdin, cmd.Stdout = in, out
	c := &client{process: start(t, cmd), in: ours, lines: make(chan []byte), answers: answers}
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() }) // before the process is waited for
	go c.read(theirs)
	hello := c.ask(t, "initialize", `{"protocolVersion":"`+legacy+`","capabilities":`+capabilities+`,"clientInfo":{"name":"e2e","version":"0"}}`)
	if !hello.ok() {
		t.Fatalf("the gateway did not greet: %s", hello.text())
	}
	c.write(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *client) read(from io.Reader) {
	defer close(c.lines)
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		c.lines <- line
	}
}

func (c *client) write(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

// ask makes a request, answers what it is asked meanwhile, and waits for the
// answer.
func (c *client) ask(t *testing.T, method, params string) (a answer) {
	t.Helper()
	c.count++
	id, late := fmt.Sprint(c.count), time.After(awaitTime)
	c.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	for {
		select {
		case line, ok := <-c.lines:
			var m message
			if err := json.Unmarshal(line, &m); !ok || err != nil {
				t.Fatalf("%s: the gateway wrote %q and %v", method, line, err)
			}
			switch {
			case m.Method == "" && string(m.ID) == id:
				a.message = m
				return a
			case m.ID != nil:
				c.reply(t, m)
			default:
				a.notes = append(a.notes, m)
			}
		case <-late:
			t.Fatalf("%s %s was not answered within %s", method, params, awaitTime)
		}
	}
}

// reply answers what the gateway asks.
func (c *client) reply(t *testing.T, m message) {
	t.Helper()
	c.asked = append(c.asked, m.Method)
	if result, ok := c.answers[m.Method]; ok {
		c.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
		return
	}
	c.write(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not asked of me"}}`, m.ID))
}

// call calls a tool.
func (c *client) call(t *testing.T, tool, arguments string) answer {
	t.Helper()
	return c.ask(t, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":"p"}}`, tool, arguments))
}

// tools lists what the client is shown.
func (c *client) tools(t *testing.T) []string {
	t.Helper()
	return c.ask(t, "tools/list", "{}").names()
}
