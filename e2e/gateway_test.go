//go:build unix

package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// gateway is a capgate that serves HTTP.
type gateway struct {
	*process
	at, token string
	dir       string // of its configuration
}

// capgate makes a command of the binary. It alone is told to end: what it has
// started, it has to end itself.
func capgate(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := command(t, append([]string{os.Getenv("CAPGATE_BIN")}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// wrap starts a gateway in front of one server, with the arguments of capgate
// wrap.
func wrap(t *testing.T, args ...string) *gateway {
	t.Helper()
	cmd := capgate(t, append([]string{"wrap", "--agent", "me", "--listen", "127.0.0.1:0"}, args...)...)
	g := listening(t, cmd)
	g.token = g.said.await(t, `until this ends: (\S+)\n`)
	return g
}

// serve starts a gateway with the configuration of a folder, and issues a token
// to an agent of it.
func serve(t *testing.T, dir, config, agent string) *gateway {
	t.Helper()
	file := filepath.Join(dir, config)
	issued := run(t, capgate(t, "-c", file, "agents", "token", "issue", agent))
	if issued.code != 0 {
		t.Fatalf("no token was issued: %s", issued.err)
	}
	g := listening(t, capgate(t, "-c", file, "serve", "--listen", "127.0.0.1:0"))
	g.token, g.dir = strings.TrimSpace(issued.out), dir
	return g
}

func listening(t *testing.T, cmd *exec.Cmd) *gateway {
	t.Helper()
	p := start(t, cmd)
	return &gateway{process: p, at: p.said.await(t, `listening at (\S+)\n`)}
}

// everything is what the suite needs to be granted.
func everything() []string {
	return []string{
		"--may-ask", "roots,sampling,elicitation",
		"--grant", "tool.invoke{tools=[**]}", "--grant", "prompt.get{names=[**]}", "--grant", "resource.read{uris=[**]}",
	}
}

// open is the address of a gateway for clients that cannot send a token: what
// stands between adds it and changes nothing else.
func (g *gateway) open(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(g.at)
	if err != nil {
		t.Fatal(err)
	}
	return relay(t, func(r *httputil.ProxyRequest) {
		r.Out.URL, r.Out.Host = to, r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+g.token)
	})
}

// relay forwards requests, bodies read whole, and returns where.
func relay(t *testing.T, rewrite func(*httputil.ProxyRequest)) string {
	t.Helper()
	return intercept(t, rewrite, func(http.ResponseWriter, *http.Request, []byte) bool { return false })
}

// modernOnly is a server as they are to come, which cannot be greeted any more.
func modernOnly(t *testing.T, at string) string {
	t.Helper()
	to, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return intercept(t, func(r *httputil.ProxyRequest) { r.SetURL(to) }, func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		var m message
		if json.Unmarshal(body, &m) == nil && r.Header.Get("MCP-Protocol-Version") == modern {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"method not found"}}`, cmp.Or(string(m.ID), "null"))
		return true
	})
}

// intercept forwards what an answer does not answer itself.
func intercept(t *testing.T, rewrite func(*httputil.ProxyRequest), answer func(http.ResponseWriter, *http.Request, []byte) bool) string {
	t.Helper()
	forward := &httputil.ReverseProxy{Rewrite: rewrite, FlushInterval: -1, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
		w.WriteHeader(http.StatusBadGateway)
	}}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || answer(w, r, body) {
			return // whoever asks is gone, or has been answered
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return local(srv.Listener.Addr())
}

// local is an address under the name by which the suite looks for it.
func local(addr net.Addr) string {
	_, port, _ := net.SplitHostPort(addr.String())
	return "http://localhost:" + port + "/"
}

// freePort is a port that nothing listens to.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fixture starts the server that the suite asks, in one era, and returns where.
func fixture(t *testing.T, flags ...string) string {
	t.Helper()
	at := freePort(t)
	start(t, command(t, append([]string{installed(t, everythingServer), "-http=" + at}, flags...)...))
	eventually(t, "the fixture listens", func() bool {
		conn, err := net.Dial("tcp", at)
		return err == nil && conn.Close() == nil
	})
	addr, err := net.ResolveTCPAddr("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	return local(addr)
}
