package proxy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"capgate/proxy"
)

// host plays a script over HTTP at one address, and is as ill as a test says.
type host struct {
	script
	t     testing.TB
	addr  string
	deeds atomic.Int64 // calls that were executed
	asked atomic.Int64 // calls that came, executed or not

	mu     sync.Mutex
	ill    string // what it suffers from, and by which method if not by all
	well   chan struct{}
	web    *httptest.Server
	epoch  int // sessions of another are not known
	opened int
	closed int
}

func newHost(t testing.TB, s script) *host {
	t.Helper()
	h := &host{script: s, t: t, addr: ownAddress(), well: make(chan struct{})}
	h.deed = func() { h.deeds.Add(1) }
	h.start()
	t.Cleanup(func() { h.suffer(""); h.stop() })
	return h
}

// ownAddress is one of this machine that nothing else listens at, so that no other server gets
// the port of one that is down. Only Linux has all of them.
func ownAddress() string {
	if runtime.GOOS != "linux" {
		return "127.0.0.1:0"
	}
	return fmt.Sprintf("127.%d.%d.%d:0", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254))
}

// start brings the server up where it was before.
func (h *host) start() {
	h.t.Helper()
	listener, err := net.Listen("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.addr = listener.Addr().String()
	h.web = httptest.NewUnstartedServer(h)
	_ = h.web.Listener.Close()
	h.web.Listener = listener
	h.web.Start()
}

func (h *host) stop() {
	h.web.CloseClientConnections()
	h.web.Close()
}

// suffer makes the server ill, or well again with "". What hangs then breaks off.
func (h *host) suffer(ill string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ill = ill
	close(h.well)
	h.well = make(chan struct{})
}

// forget makes sessions that were begun unknown.
func (h *host) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.epoch++
}

func (h *host) upstream(name string) *proxy.Upstream {
	return &proxy.Upstream{Name: name, Prefix: name, Pins: proxy.Off, Timeout: 2 * time.Second, Open: dialling(name, "http://"+h.addr)}
}

// session keeps the books of sessions. It reports whether the request is of one.
func (h *host) session(w http.ResponseWriter, r *http.Request, method string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	const header = "Mcp-Session-Id"
	switch {
	case h.Modern || method == "server/discover":
	case method == "initialize":
		h.opened++
		w.Header().Set(header, fmt.Sprintf("%d-%d", h.epoch, h.opened))
	case !strings.HasPrefix(r.Header.Get(header), fmt.Sprint(h.epoch, "-")):
		http.Error(w, "no such session", http.StatusNotFound)
		return false
	case r.Method == http.MethodDelete:
		h.closed++
	}
	return true
}

// ServeHTTP answers as the illness lets it.
func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var m heard
	if r.Method == http.MethodPost {
		if err := json.Unmarshal(body, &m); err != nil {
			panic(err)
		}
	}
	if m.Method == "tools/call" {
		h.asked.Add(1)
	}
	if !h.session(w, r, m.Method) {
		return
	}
	h.mu.Lock()
	ill, when, _ := strings.Cut(h.ill, " ")
	well := h.well
	h.mu.Unlock()
	if treat := illnesses()[ill]; treat != nil && m.ID != nil && (when == "" || when == m.Method) {
		if m.Method == "tools/call" && ill != "refuse" {
			h.done()
		}
		treat(h, w, r, well)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.script.ServeHTTP(w, r)
}

type treatment func(h *host, w http.ResponseWriter, r *http.Request, well <-chan struct{})

// illnesses are what may befall a server over HTTP between a request and its
// answer.
func illnesses() map[string]treatment {
	page := func(status int, kind, body string) treatment {
		return func(_ *host, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	return map[string]treatment{
		"hang": func(_ *host, _ http.ResponseWriter, r *http.Request, well <-chan struct{}) {
			select {
			case <-r.Context().Done():
			case <-well:
			}
			panic(http.ErrAbortHandler)
		},
		"drip": func(_ *host, w http.ResponseWriter, r *http.Request, well <-chan struct{}) {
			w.Header().Set("Content-Type", "text/event-stream")
			for {
				_, _ = io.WriteString(w, ": alive\n\n")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-time.After(50 * time.Millisecond):
				case <-r.Context().Done():
					return
				case <-well:
					panic(http.ErrAbortHandler)
				}
			}
		},
		"drop": func(*host, http.ResponseWriter, *http.Request, <-chan struct{}) { panic(http.ErrAbortHandler) },
		"half": func(_ *host, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0",`)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		},
		"huge": func(_ *host, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.Header().Set("Content-Type", "application/json")
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 100 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		},
		"event":    page(200, "text/event-stream", "id: 7\nretry: 20\ndata: \n\n"),
		"silent":   page(200, "text/event-stream", ""),
		"garbage":  page(200, "application/json", `{"jsonrpc":"2.0","id":]`),
		"foreign":  page(200, "application/json", `{"jsonrpc":"2.0","id":999,"result":{}}`),
		"html":     page(200, "text/html", "<h1>It works!</h1>"),
		"accepted": page(202, "application/json", ""),
		"broken":   page(500, "text/plain", "panic"),
		"busy":     page(503, "text/plain", "later"),
		"gateway":  page(502, "text/html", "<h1>Bad gateway</h1>"),
		"limited":  page(429, "text/plain", "slow down"),
		"forbids":  page(403, "text/plain", "no"),
		"asks":     page(401, "text/plain", "who?"),
		"moved": func(h *host, w http.ResponseWriter, _ *http.Request, _ <-chan struct{}) {
			w.Header().Set("Location", "http://"+h.addr+"/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"refuse": page(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}`),
	}
}

// child is a script that a process plays.
type child struct {
	script
	t testing.TB
}

func newChild(t testing.TB, s script) *child {
	t.Helper()
	dir := t.TempDir()
	s.Sick, s.Deeds = filepath.Join(dir, "sick"), filepath.Join(dir, "deeds")
	return &child{script: s, t: t}
}

func (c *child) upstream() *proxy.Upstream {
	return &proxy.Upstream{Name: "bad", Prefix: "bad", Pins: proxy.Off, Timeout: 2 * time.Second, Open: c.process(c.t, "bad")}
}

func (c *child) suffer(ill string) {
	c.t.Helper()
	if err := os.WriteFile(c.Sick, []byte(ill), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// executed is how many calls were.
func (c *child) executed() int {
	c.t.Helper()
	data, err := os.ReadFile(c.Deeds)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.t.Fatal(err)
	}
	return len(data)
}

// pids are the numbers of all processes that there were, the newest last.
func (c *child) pids() (all []int) {
	c.t.Helper()
	data, err := os.ReadFile(c.Deeds + ".pids")
	if err != nil {
		c.t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, pid)
	}
	return all
}

func (c *child) kill() {
	c.t.Helper()
	pids := c.pids()
	if err := syscall.Kill(pids[len(pids)-1], syscall.SIGKILL); err != nil {
		c.t.Error(err)
	}
}
