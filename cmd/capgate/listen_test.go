package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"capgate/config"
	"capgate/proxy"
)

// TestListenSocket: serve listens at a socket that the command line names, only for
// its owner, and nothing but the gateway touches it.
func TestListenSocket(t *testing.T) {
	p := newPlace(t)
	dir, err := os.MkdirTemp("", "cg") //nolint:usetesting // a socket's name must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "gate.sock")
	ctx, stop := context.WithCancel(t.Context())
	said, errs := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"-c", filepath.Join(p.dir, "capgate.yml"), "serve", "--listen", "unix:" + socket}, stdio{out: io.Discard, err: errs})
		_ = errs.Close()
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening at unix:"+socket) {
		t.Log(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, said) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	r, err := client.Get("http://localhost/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if _ = r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Errorf("the gateway is not well: %s", r.Status)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	client.CloseIdleConnections()
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// TestListenTogether: of several gateways that start at once where another has left its socket behind, one listens at it.
func TestListenTogether(t *testing.T) {
	dir, err := os.MkdirTemp("", "cg") //nolint:usetesting // a socket's name must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "gate.sock")
	for range 30 {
		left, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
		if err != nil {
			t.Fatal(err)
		}
		left.SetUnlinkOnClose(false)
		_ = left.Close()
		all := make(chan net.Listener)
		for range 4 {
			go func() {
				l, _ := listenUnix(t.Context(), socket)
				all <- l
			}()
		}
		var listen []net.Listener
		for range 4 {
			if l := <-all; l != nil {
				listen = append(listen, l)
			}
		}
		if len(listen) != 1 {
			t.Fatalf("%d listen", len(listen))
		}
		_ = listen[0].Close()
	}
}

// TestListenRefused: an address that cannot be listened at is said to be just that.
func TestListenRefused(t *testing.T) {
	p := newPlace(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	p.write(map[string]string{"file": ""})
	for name, c := range map[string]struct {
		at, want string
		code     int
	}{
		"taken":       {taken.Addr().String(), "hint: another process uses the address", exitConfig},
		"elsewhere":   {"127.0.0.1.example:1", "tokens would travel to 127.0.0.1.example:1 in clear", exitUsage},
		"everywhere":  {"0.0.0.0:0", "tokens would travel to 0.0.0.0:0 in clear\ncapgate: hint: write 127.0.0.1, or add tls: to listen: of the configuration", exitUsage},
		"no port":     {"127.0.0.1", "listen takes host:port or unix:/path.sock, which \"127.0.0.1\" is not", exitUsage},
		"no folder":   {"unix:" + filepath.Join(p.dir, "none", "s"), "hint: make the folder", exitConfig},
		"no socket":   {"unix:" + filepath.Join(p.dir, "file"), "is there and is not a socket", exitConfig},
		"a long name": {"unix:/" + strings.Repeat("a", 110), "the path of a socket is at most 103 bytes", exitUsage},
	} {
		var errs bytes.Buffer
		code := run(t.Context(), []string{"-c", filepath.Join(p.dir, "capgate.yml"), "serve", "--listen", c.at}, stdio{out: &errs, err: &errs})
		if code != c.code || !strings.Contains(errs.String(), c.want) {
			t.Errorf("%s: exit %d: %s", name, code, errs.String())
		}
	}
}

// TestServeOneProtocol: no client is answered over HTTP/2, whatever the listener
// agrees to.
func TestServeOneProtocol(t *testing.T) {
	front, err := proxy.New(t.Context(), proxy.Options{Events: unrecorded{}})
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	lender := httptest.NewTLSServer(http.NotFoundHandler())
	defer lender.Close()
	for protocol, answers := range map[string]bool{"http/1.1": true, "h2": false} {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: lender.TLS.Certificates, NextProtos: []string{protocol}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- serveHTTP(ctx, l, front, slog.New(slog.DiscardHandler)) }()
		carrier := lender.Client().Transport.(*http.Transport).Clone()
		carrier.ForceAttemptHTTP2 = true
		resp, err := (&http.Client{Transport: carrier, Timeout: 10 * time.Second}).Get("https://" + l.Addr().String() + "/healthz")
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != answers || err == nil && resp.ProtoMajor != 1 {
			t.Errorf("%s: %v, %v", protocol, resp, err)
		}
		carrier.CloseIdleConnections()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestServeSaysItsEnd: who reads the log sees that the gateway has ended, and what told it to.
func TestServeSaysItsEnd(t *testing.T) {
	front, err := proxy.New(t.Context(), proxy.Options{Events: unrecorded{}})
	if err != nil {
		t.Fatal(err)
	}
	defer front.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, tell := context.WithCancelCause(t.Context())
	tell(errors.New("hangup signal received"))
	var text bytes.Buffer
	if err := serveHTTP(ctx, l, front, slog.New(slog.NewTextHandler(&text, nil))); err != nil {
		t.Error(err)
	}
	if !strings.Contains(text.String(), `level=INFO msg="the gateway ends" why="hangup signal received"`) {
		t.Errorf("it says %s", &text)
	}
}

// TestNetwork: who writes an address of IPv4 listens at none of IPv6.
func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:1": "tcp4", "127.0.0.1:0": "tcp4", "[::1]:1": "tcp", "[::]:1": "tcp", "localhost:1": "tcp", ":1": "tcp"} {
		if got := network(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// TestAddress: what serve prints is an address that a client can use.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		at    string
		hosts []string
		want  string
	}{
		{"127.0.0.1:8", nil, "https://127.0.0.1:8/mcp"},
		{"[::1]:8", []string{"gate.example"}, "https://[::1]:8/mcp"},
		{"0.0.0.0:8", nil, "https://127.0.0.1:8/mcp"},
		{"[::]:8", nil, "https://[::1]:8/mcp"},
		{"0.0.0.0:8", []string{"gate.example", "other.example"}, "https://gate.example:8/mcp"},
		{"[::]:8", []string{"gate.example:443"}, "https://gate.example:443/mcp"},
		{"[::]:8", []string{"2001:db8::1"}, "https://[2001:db8::1]:8/mcp"},
	} {
		addr, err := net.ResolveTCPAddr("tcp", c.at)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{cfg: &config.Config{Listen: config.Listen{Cert: "cert.pem", Hosts: c.hosts}}}
		if got := w.address(bound{addr: addr}); got != c.want {
			t.Errorf("%s for %q: %s", c.at, c.hosts, got)
		}
	}
}

// bound is a listener that only has an address.
type bound struct {
	net.Listener
	addr net.Addr
}

func (b bound) Addr() net.Addr { return b.addr }
