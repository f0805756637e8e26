package upstream_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"capgate/upstream"
)

// fakeMode is the variable that makes this test binary a server instead. Its
// value is how the server behaves; how it answers a call is up to the tool.
const fakeMode = "CAPGATE_FAKE_SERVER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(fakeMode); mode {
	case "mcp-go":
		serveMCPGo()
		return
	case "":
		_ = flag.Set("test.parallel", "8") // what runs beside others mostly waits; it is a flag that there is
		os.Exit(m.Run())
	case "parent":
		beParent()
	case "echo":
		echoServer()
	default:
		(&fakeServer{mode: mode, in: bufio.NewReader(os.Stdin)}).serve()
	}
	os.Exit(0)
}

// program is the test binary as a server.
func program(t testing.TB, mode string, env ...string) upstream.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Under the race detector a process would wait a second before it ends.
	env = append([]string{fakeMode + "=" + mode, "GORACE=atexit_sleep_ms=0"}, env...)
	return upstream.Program{Name: "files", Argv: []string{self}, Env: env}
}

// fakeServer is a scripted MCP server.
type fakeServer struct {
	mode      string
	in        *bufio.Reader
	cancelled []string
	greeted   bool
}

// asking is a message that the fake server reads.
type asking struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (s *fakeServer) serve() {
	switch s.mode {
	case "crash":
		fmt.Fprintln(os.Stderr, "no such\x1b[31m database")
		os.Exit(7)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "survivor": // what a grandchild does
		signal.Ignore(syscall.SIGTERM)
		hang()
	}
	for {
		m, err := s.read()
		if err != nil {
			break
		}
		s.handle(m)
	}
	if s.mode == "stubborn" {
		hang()
	}
}

// hang does nothing for ever.
func hang() {
	signals := make(chan os.Signal, 1) // with it the runtime sees no deadlock
	signal.Notify(signals, syscall.SIGUSR1)
	<-signals
}

func (s *fakeServer) read() (m asking, err error) {
	text, err := s.in.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(text, &m)
}

func (s *fakeServer) handle(m asking) {
	if string(m.Params) == `{"print":true}` {
		m.Method = "print"
	}
	switch m.Method {
	case "print":
		result(m.ID, `{"messages":[],"contents":[{"text":"\u0000"}],"tools":[],"content":[{"text":"\u0000"}]}`)
	case "server/discover":
		s.discover(m)
	case "initialize":
		s.initialize(m)
	case "notifications/initialized":
		s.greeted = true
	case "notifications/cancelled":
		s.cancelled = append(s.cancelled, string(m.Params))
	case "subscriptions/listen":
		note("notifications/subscriptions/acknowledged", `{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{}}`, m.ID)
		note("notifications/cancelled", `{"requestId":%s}`, m.ID)
	case "tools/call":
		var p struct {
			Name      string
			Arguments struct{ N int }
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			panic(err)
		}
		s.call(m, p.Name, p.Arguments.N)
	default:
		if len(m.ID) > 0 {
			failure(m.ID, -32601, "Method not found")
		}
	}
}

func (s *fakeServer) discover(m asking) {
	switch s.mode {
	case "modern":
		result(m.ID, `{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25"],"capabilities":{"tools":{"listChanged":true}},"instructions":"be brief","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"2"}}}`)
	case "mute":
	case "touchy":
		fmt.Fprintln(os.Stderr, "expected initialize")
		os.Exit(1)
	default:
		failure(m.ID, -32601, "Method not found")
	}
}

func (s *fakeServer) initialize(m asking) {
	if s.mode == "modern" {
		failure(m.ID, -32601, "2026-07-28 only")
		return
	}
	version := "2025-11-25"
	if v, ok := strings.CutPrefix(s.mode, "version:"); ok {
		version = v
	}
	result(m.ID, `{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"},"instructions":"be kind"}`, version)
}

// call does what the tool of a name does.
func (s *fakeServer) call(m asking, tool string, n int) {
	switch tool {
	case "echo":
		result(m.ID, `{"content":[],"params":%s}`, m.Params)
	case "refuse":
		failure(m.ID, -32602, "Unknown tool")
	case "die":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(3)
	case "die after":
		result(m.ID, `{}`)
		os.Exit(0)
	case "silence":
	case "twice":
		result(m.ID, `{"n":1}`)
		result(m.ID, `{"n":2}`)
	case "foreign":
		result([]byte(`999999`), `{"n":1}`)
		result(fmt.Appendf(nil, "%q", m.ID), `{"n":2}`)
		result(fmt.Appendf(nil, "%s.0", m.ID), `{"n":3}`)
		result([]byte(`null`), `{"n":4}`)
		result(m.ID, `{"n":5}`)
	case "raw": // an answer that is malformed in one of several ways
		send(rawAnswers()[n].line, string(m.ID))
	case "noise":
		os.Stdout.WriteString(strings.Repeat("listening on port 8080\n", n))
		result(m.ID, `{}`)
	case "size":
		result(m.ID, `{"text":"%s"}`, strings.Repeat("x", n))
	case "print":
		send(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, printed()[n].member)
	case "long":
		send(strings.Replace(longAnswers()[n].line, "LONG", strings.Repeat("x", 1<<20), 1), string(m.ID))
	case "endless":
		chunk := bytes.Repeat([]byte("x"), 1<<20)
		for range n {
			os.Stdout.Write(chunk)
		}
	default:
		s.converse(m, tool, n)
	}
}

// converse is call with the tools that say or ask something besides answering.
func (s *fakeServer) converse(m asking, tool string, n int) {
	switch tool {
	case "ask":
		s.ask(m, n)
	case "ask and cancel":
		send(`{"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{}}`)
		note("notifications/cancelled", `{"requestId":"s1"}`)
	case "ping":
		send(`{"jsonrpc":"2.0","id":"p1","method":"ping"}`)
		answer, _ := s.read()
		result(m.ID, `{"id":%s,"answer":%s}`, answer.ID, answer.Result)
	case "progress":
		var p struct {
			Meta struct {
				ProgressToken json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		json.Unmarshal(m.Params, &p)
		for i := range n {
			note("notifications/progress", `{"progressToken":%s,"progress":%d}`, p.Meta.ProgressToken, i)
		}
		note("notifications/progress", `{"progressToken":"another","progress":1}`)
		note("notifications/tools/list_changed", `{}`)
		result(m.ID, `{}`)
	case "cancelled":
		text, _ := json.Marshal(s.cancelled)
		result(m.ID, `{"cancelled":%s}`, text)
	default:
		s.behave(m, tool, n)
	}
}

// behave is call with the tools that are about the process.
func (s *fakeServer) behave(m asking, tool string, n int) {
	switch tool {
	case "env":
		text, _ := json.Marshal(os.Environ())
		result(m.ID, `{"env":%s}`, text)
	case "place":
		dir, _ := os.Getwd()
		pgid, _ := syscall.Getpgid(0)
		result(m.ID, `{"dir":%q,"leader":%t,"files":%s,"flags":%s}`, dir, pgid == os.Getpid(), openFiles(), pipeFlags())
	case "grandchild":
		child := exec.Command(os.Args[0])
		child.Env = []string{fakeMode + "=survivor"}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		result(m.ID, `{"pid":%d}`, child.Process.Pid)
	case "complain":
		line := strings.Repeat("e", n) + "\x00\xff\n"
		for range 1000 {
			os.Stderr.WriteString(line)
		}
		result(m.ID, `{}`)
	case "confide":
		os.Stderr.WriteString(strings.Repeat("x", n) + value + "\n")
		os.Exit(3)
	case "close stdout":
		os.Stdout.Close()
	case "stop reading":
		result(m.ID, `{}`)
		hang()
	case "work":
		time.Sleep(time.Duration(n) * time.Millisecond)
	case "ask and stop reading":
		result(m.ID, `{}`)
		send(`{"jsonrpc":"2.0","id":"s1","method":"elicitation/create","params":{}}`)
		hang()
	case "pid":
		result(m.ID, `{"pid":%d}`, os.Getpid())
	case "reads":
		s.reads(m, n)
	default:
		failure(m.ID, -32602, "Unknown tool")
	}
}

// ask asks the client, chatters meanwhile, and answers with what it says.
func (s *fakeServer) ask(m asking, n int) {
	send(`{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"maxTokens":1}}`)
	for range n {
		note("chatter", `{"text":"%s"}`, strings.Repeat("x", 1000))
	}
	for {
		answer, err := s.read()
		if err != nil {
			return
		}
		if string(answer.ID) == `"s1"` {
			text := answer.Result
			if text == nil {
				text = answer.Error
			}
			result(m.ID, `{"said":%s}`, text)
			return
		}
		s.handle(answer)
	}
}

// reads answers with what each of n reads of the standard input brings, to tell
// how the other side writes.
func (s *fakeServer) reads(m asking, n int) {
	result(m.ID, `{}`)
	sizes := make([]int, n)
	buf := make([]byte, 1<<20)
	for i := range sizes {
		sizes[i], _ = os.Stdin.Read(buf)
	}
	text, _ := json.Marshal(sizes)
	note("sizes", `{"sizes":%s}`, text)
}

func openFiles() string {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return "0"
	}
	n := 0
	for _, e := range entries { // some the runtime opens itself, and one was this folder
		target, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if target != "" && !strings.Contains(target, "anon_inode") && !strings.HasPrefix(target, "/sys/fs/cgroup/") {
			n++
		}
	}
	return strconv.Itoa(n)
}

// pipeFlags tells whether the standard files are in non-blocking mode, which
// many programs do not expect.
func pipeFlags() string {
	var flags []string
	for fd := range 3 {
		v, _, _ := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFL, 0)
		flags = append(flags, strconv.FormatBool(v&syscall.O_NONBLOCK != 0))
	}
	return "[" + strings.Join(flags, ",") + "]"
}

func send(format string, args ...any) {
	if _, err := fmt.Fprintf(os.Stdout, format+"\n", args...); err != nil {
		os.Exit(1)
	}
}

func result(id []byte, format string, args ...any) {
	send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, fmt.Sprintf(format, args...))
}

func failure(id []byte, code int, message string) {
	send(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":{"kept":1.0}}}`, id, code, message)
}

func note(method, format string, args ...any) {
	send(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, fmt.Sprintf(format, args...))
}

// echoServer answers as fast as it can: it is measured against.
func echoServer() {
	in := bufio.NewReaderSize(os.Stdin, 4<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		text, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		head, _, _ := bytes.Cut(text[len(`{"jsonrpc":"2.0","id":`):], []byte(","))
		switch {
		case bytes.Contains(text[:64], []byte(`"initialize"`)):
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}`+"\n", head)
		case bytes.HasPrefix(text, []byte(`{"jsonrpc":"2.0","method"`)):
		default:
			_, params, _ := bytes.Cut(text, []byte(`"params":`))
			out.WriteString(`{"jsonrpc":"2.0","id":`)
			out.Write(head)
			out.WriteString(`,"result":`)
			out.Write(params[:len(params)-2])
			out.WriteString("}\n")
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
	}
}

// beParent starts a server as the gateway does and tells its number, and waits
// to be killed.
func beParent() {
	conn, err := upstream.Start(context.Background(), upstream.Program{
		Name: "child", Argv: []string{os.Args[0]}, Env: []string{fakeMode + "=stubborn"},
	}, upstream.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	answer, err := conn.Call(context.Background(), tool("pid", 0), nil)
	fmt.Printf("%s %v\n", answer.Result, err)
	io.Copy(io.Discard, os.Stdin)
	hang()
}
