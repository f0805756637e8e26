package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"capgate/agents"
	"capgate/gate"
	"capgate/proxy"
)

// certificate writes a certificate for 127.0.0.1 and its key, and returns who trusts it.
func (p place) certificate() *x509.CertPool {
	p.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	p.must(err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "capgate"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	p.must(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	p.must(err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.write(map[string]string{
		"cert.pem": string(cert), "key.pem": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
	})
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM(cert)
	return trust
}

func (p place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// whoami is a whole request of an agent.
func whoami(ctx context.Context, at, token string) (*http.Request, error) {
	return calling(ctx, at, token, "capgate__whoami")
}

// calling is a request that calls a tool without arguments.
func calling(ctx context.Context, at, token, tool string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":{},`+demoMeta+`}}`))
	if err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(name, value)
	}
	return r, nil
}

// TestListenTLS: with tls: an agent is answered over TLS, by the certificate that is
// written, and over nothing else.
func TestListenTLS(t *testing.T) {
	p := newPlace(t)
	trust := p.certificate()
	p.write(map[string]string{"capgate.yml": "agents: ./agents\nsandbox: ./work\nlisten: { address: 127.0.0.1:0, tls: { cert: ./cert.pem, key: ./key.pem } }\nupstreams:\n  files: { builtin: fs }\n"})
	token := p.run("agents", "token", "issue", "scout")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at, ended := p.serving(ctx)
	if !strings.HasPrefix(at, "https://127.0.0.1:") {
		t.Fatalf("it listens at %s", at)
	}
	ask := func(at string, config *tls.Config) (string, error) {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: 10 * time.Second}
		defer client.CloseIdleConnections()
		r, err := whoami(ctx, at, token)
		p.must(err)
		resp, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp.Status + " " + string(body), err
	}
	if got, err := ask(at, &tls.Config{RootCAs: trust}); err != nil || !strings.HasPrefix(got, "200 OK") || !strings.Contains(got, "agents/scout") {
		t.Errorf("over TLS: %s, %v", got, err)
	}
	if got, err := ask("http"+strings.TrimPrefix(at, "https"), nil); err == nil && (!strings.HasPrefix(got, "400 ") || strings.Contains(got, "scout")) {
		t.Errorf("without TLS: %s", got)
	}
	if got, err := ask(at, &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
		t.Errorf("to one who does not trust the certificate: %s", got)
	}
	if got, err := ask(at, &tls.Config{RootCAs: trust, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Errorf("over TLS 1.1: %s", got)
	}
	renewed := p.certificate()
	for _, cert := range []string{"", "half of one that is being written"} {
		if cert != "" {
			p.write(map[string]string{"cert.pem": cert})
		}
		if got, err := ask(at, &tls.Config{RootCAs: renewed}); err != nil {
			t.Errorf("by a certificate that was renewed: %s, %v", got, err)
		}
	}
	stop()
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// serving runs serve until the context ends, and returns where it listens.
func (p place) serving(ctx context.Context) (at string, ended chan int) {
	p.t.Helper()
	return saying(ctx, "listening at ", "-c", filepath.Join(p.dir, "capgate.yml"), "serve")
}

// saying runs a command until the context ends, and returns the rest of the line in which
// it says something.
func saying(ctx context.Context, what string, args ...string) (rest string, ended chan int) {
	said, errs := io.Pipe()
	ended = make(chan int, 1)
	go func() {
		ended <- run(ctx, args, stdio{out: io.Discard, err: errs})
		_ = errs.Close()
	}()
	found := make(chan string, 1)
	go func() {
		var seen bytes.Buffer
		for buf := make([]byte, 4<<10); ; {
			n, err := said.Read(buf)
			seen.Write(buf[:n])
			if _, rest, ok := strings.Cut(seen.String(), what); ok && strings.Contains(rest, "\n") && len(found) == 0 {
				line, _, _ := strings.Cut(rest, "\n")
				found <- strings.TrimSpace(line)
				break
			}
			if err != nil {
				found <- "nothing: " + seen.String()
				return
			}
		}
		_, _ = io.Copy(io.Discard, said)
	}()
	return <-found, ended
}

// modern makes a request of the stateless era, and returns the status and the answer.
func (p place) modern(by http.RoundTripper, at, token, method string) (status int, answer string) {
	p.t.Helper()
	const version = "2026-07-28"
	const meta = `"io.modelcontextprotocol/protocolVersion":"` + version + `","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}`
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, at, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"_meta":{`+meta+`}}}`))
	p.must(err)
	for _, h := range [][2]string{
		{"Content-Type", "application/json"},
		{"Accept", "application/json, text/event-stream"},
		{"Authorization", "Bearer " + token},
		{"Mcp-Protocol-Version", version},
		{"Mcp-Method", method},
	} {
		r.Header.Set(h[0], h[1])
	}
	resp, err := by.RoundTrip(r)
	p.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	p.must(err)
	return resp.StatusCode, string(body)
}

// plug is a listener that tests connect to without a network, so that its time is that
// of the test.
type plug struct {
	conns  chan net.Conn
	ended  chan struct{}
	ending sync.Once
}

func (l *plug) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *plug) Close() error   { l.ending.Do(func() { close(l.ended) }); return nil }
func (l *plug) Addr() net.Addr { return &net.UnixAddr{Name: "plug", Net: "unix"} }

// drip sends a text a byte at a time until nobody takes it, and returns what was
// answered, and when the connection was cut.
func (l *plug) drip(begin, then string, every time.Duration) (answer string, after time.Duration) {
	near, far := net.Pipe()
	l.conns <- far
	since := time.Now()
	got := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(near) // that it is cut is what is looked for
		after = time.Since(since)
		got <- string(all)
	}()
	_, err := io.WriteString(near, begin)
	for i := 0; err == nil && i < len(then); i++ {
		time.Sleep(every)
		_, err = near.Write([]byte{then[i]})
	}
	answer = <-got
	_ = near.Close()
	return answer, after
}

// TestSlowRequestsAreCut is R-SEC-10: who sends headers or a body slowly is cut off in
// time, whoever that is, and others are answered meanwhile.
func TestSlowRequestsAreCut(t *testing.T) {
	const whole = 30 * time.Second // that a body may take
	p := newPlace(t)
	roster, err := agents.Load(agents.Options{}, filepath.Join(p.dir, "agents"))
	p.must(err)
	token, creds, err := new(agents.Credentials).Issue("agents/scout", "", time.Hour, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), rand.Reader)
	p.must(err)
	head := func(token, kind string) string {
		return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Type: " + kind + "\r\nContent-Length: 5000\r\n"
	}
	long := strings.Repeat("a", 5000)
	for name, test := range map[string]struct {
		begin, then string
		every       time.Duration
		answer      string
		most        time.Duration
	}{
		"headers":                {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-A: ", long, time.Second, "", headerTime},
		"headers, and then none": {"POST /mcp HTTP/1.1\r\n", "x", time.Hour, "", headerTime},
		"a body":                 {head(token, "application/json") + "\r\n{", long, time.Second, " 400 ", whole},
		"a body, and then none":  {head(token, "application/json") + "\r\n{", "x", time.Hour, " 400 ", whole},
		"a body of nobody":       {head("none", "application/json") + "\r\n{", long, time.Second, " 401 ", whole},
		"a body of a wrong kind": {head(token, "text/plain") + "\r\n{", long, time.Second, " 415 ", whole},
		"a body from elsewhere":  {strings.Replace(head(token, "application/json"), "localhost", "evil.example", 1) + "\r\n{", long, time.Second, " 403 ", whole},
		"a body for a provider":  {strings.Replace(head(token, "application/json"), "/mcp", "/provider/none/v1", 1) + "\r\n{", long, time.Second, " 404 ", whole},
		"a body for nothing":     {strings.Replace(head(token, "application/json"), "/mcp", "/else", 1) + "\r\n{", long, time.Second, " 404 ", whole},
		"a body to be deleted":   {strings.Replace(head(token, "application/json"), "POST", "DELETE", 1) + "\r\n{", long, time.Second, " 405 ", whole},
		"a body of health":       {strings.Replace(head(token, "application/json"), "/mcp", "/healthz", 1) + "\r\n{", long, time.Second, "", whole},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				front, err := proxy.New(t.Context(), proxy.Options{Events: unrecorded{}})
				if err != nil {
					t.Fatal(err)
				}
				front.Adopt(&proxy.Policy{Gate: &gate.Gate{Roster: roster}, Credentials: creds, Hash: "test"})
				l := &plug{conns: make(chan net.Conn), ended: make(chan struct{})}
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- serveHTTP(ctx, l, front, slog.New(slog.DiscardHandler)) }()
				var others sync.WaitGroup
				others.Go(func() {
					time.Sleep(2 * time.Second)
					answer, _ := l.drip("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "", 0)
					if !strings.Contains(answer, " 200 ") {
						t.Errorf("another is answered %q", answer)
					}
				})
				answer, after := l.drip(test.begin, test.then, test.every)
				unread := test.answer != " 400 " // whoever goes on sending then need not hear the answer
				if !strings.Contains(answer, test.answer) && (answer != "" || !unread) || strings.Contains(answer, `"result"`) {
					t.Errorf("the answer is %q, want %q", answer, test.answer)
				}
				if after > test.most+2*time.Second {
					t.Errorf("it is cut after %s", after)
				}
				others.Wait()
				stop()
				if err := errors.Join(<-served, front.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestUnreadAnswersAreCut is R-SEC-10: nobody holds a connection by taking no answer, and least of all whoever has
// shown no token.
func TestUnreadAnswersAreCut(t *testing.T) {
	p := newPlace(t)
	roster, err := agents.Load(agents.Options{}, filepath.Join(p.dir, "agents"))
	p.must(err)
	for name, request := range map[string]string{
		"health":       "GET /healthz",
		"nothing":      "GET /else",
		"no token":     "POST /mcp",
		"for a page":   "OPTIONS /mcp",
		"of no policy": "GET /mcp",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const page = "https://app.example.com"
				front, err := proxy.New(t.Context(), proxy.Options{Events: unrecorded{}, Origins: []string{page}})
				if err != nil {
					t.Fatal(err)
				}
				if name != "of no policy" {
					front.Adopt(&proxy.Policy{Gate: &gate.Gate{Roster: roster}, Hash: "test"})
				}
				l := &plug{conns: make(chan net.Conn), ended: make(chan struct{})}
				ctx, stop := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- serveHTTP(ctx, l, front, slog.New(slog.DiscardHandler)) }()
				near, far := net.Pipe()
				l.conns <- far
				_, err = io.WriteString(near, request+" HTTP/1.1\r\nHost: localhost\r\nOrigin: "+page+"\r\nAccess-Control-Request-Method: POST\r\n\r\n")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				_ = near.SetWriteDeadline(time.Now().Add(time.Second)) // its end takes none
				if _, err := near.Write([]byte("GET")); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("after a minute, what is sent ends with %v", err)
				}
				_ = near.Close()
				stop()
				if err := errors.Join(<-served, front.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
