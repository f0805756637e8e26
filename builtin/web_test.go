package builtin_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"capgate/builtin"
	"capgate/capability"
)

// world is a network of its own: names, the addresses they lead to, and what
// answers there. What a test sends never leaves the machine.
type world struct {
	names  map[string][]string // one answer of the resolver after another: "1.2.3.4 5.6.7.8"
	places map[string]string   // where an address and port really is

	mu     sync.Mutex
	dialed []string
}

const (
	front = "93.184.216.34" // addresses of the public internet, which nothing here reaches
	back  = "151.101.1.69"
)

// newWorld puts a handler behind front and back, with https on port 443.
func newWorld(t *testing.T, handler http.HandlerFunc) (*world, builtin.Options) {
	t.Helper()
	w := &world{places: map[string]string{}, names: map[string][]string{
		"example.com": {front}, "www.example.com": {front}, "other.test.org": {back}, "inside.example.com": {"10.0.0.7"},
		"both.example.com": {front + " 127.0.0.1"}, "rebind.example.com": {front, "127.0.0.1"}, "mapped.example.com": {"::ffff:127.0.0.1"},
		"zone.example.com": {"fe80::1%eth0"}, "six.example.com": {"2606:2800:220:1:248:1893:25c8:1946"},
	}}
	plain, secure := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for _, addr := range []string{front, back, "10.0.0.7", "127.0.0.1", "[2606:2800:220:1:248:1893:25c8:1946]"} {
		w.places[addr+":80"], w.places[addr+":443"] = plain.Listener.Addr().String(), secure.Listener.Addr().String()
	}
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())
	return w, builtin.Options{Resolve: w.resolve, Dial: w.dial, Roots: pool, Version: "test"}
}

func (w *world) resolve(_ context.Context, host string) (addrs []netip.Addr, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	answers := w.names[host]
	if len(answers) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.9.9:53"}
	}
	if len(answers) > 1 {
		w.names[host] = answers[1:]
	}
	for _, a := range strings.Fields(answers[0]) {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, to.String())
	place, ok := w.places[to.String()]
	w.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(to), Err: errors.New("no route to host")}
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", place)
}

func (w *world) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.dialed = nil }()
	return strings.Join(w.dialed, " ")
}

// echo answers with the request, and does what its path says.
func echo(w http.ResponseWriter, r *http.Request) {
	switch status, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/to/")); {
	case err == nil:
		w.Header().Set("Location", r.URL.Query().Get("at"))
		w.WriteHeader(status)
		fmt.Fprint(w, "the body of a redirect")
	case r.URL.Path == "/loop":
		http.Redirect(w, r, "/loop", http.StatusFound)
	default:
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("X-Internal", "10.1.2.3")
		fmt.Fprintf(w, "%s %s%s body=%q type=%q accept=%q cookie=%q agent=%q", r.Method, r.Host, r.URL.Path, body,
			r.Header.Get("Content-Type"), r.Header.Get("Accept"), r.Header.Get("Cookie"), r.Header.Get("User-Agent"))
	}
}

func to(status int, from, at string) string {
	return fmt.Sprintf("%s/to/%d?at=%s", from, status, url.QueryEscape(at))
}

// TestFetch: what a request is made of, and what comes back.
func TestFetch(t *testing.T) {
	w, o := newWorld(t, echo)
	o.Decide = holds(t, "net.get{hosts=[*]}", "net.post{hosts=[example.com]}", "net.put{hosts=[example.com]}", "net.delete{hosts=[example.com]}")
	conn := open(t, "net", o)
	for _, s := range []step{
		{"get", "fetch", `{"url":"http://example.com/a"}`, `GET example.com/a body="" type="" accept="" cookie="" agent="capgate/test"`},
		{"https", "fetch", `{"url":"https://example.com/a"}`, `200 OK https://example.com/a`},
		{"in capitals", "fetch", `{"url":"HTTPS://EXAMPLE.com:443/a#part"}`, `200 OK https://example.com:443/a`},
		{"headers", "fetch", `{"url":"http://example.com/","headers":{"accept":"x/y"}}`, `accept="x/y"`},
		{"post", "fetch", `{"url":"http://example.com/","method":"post","body":"é","headers":{"Content-Type":"text/x"}}`, `POST example.com/ body="é" type="text/x"`},
		{"put", "fetch", `{"url":"http://example.com/","method":"put","body":"b"}`, `PUT example.com/ body="b"`},
		{"in capitals", "fetch", `{"url":"http://example.com/","method":"PUT","body":"b"}`, `PUT example.com/ body="b"`},
		{"delete", "fetch", `{"url":"http://example.com/","method":"delete"}`, `DELETE example.com/`},
		{"head", "fetch", `{"url":"http://example.com/","method":"head"}`, `200 OK http://example.com/`},
		{"ipv6", "fetch", `{"url":"http://six.example.com/"}`, `GET six.example.com/`},
		{"address", "fetch", `{"url":"http://[2606:2800:220:1:248:1893:25c8:1946]/"}`, `GET [2606:2800`},
		{"no such host", "fetch", `{"url":"http://nowhere.example.com/"}`, `error: the host nowhere.example.com could not be found`},
		{"wrong certificate", "fetch", `{"url":"https://other.test.org/"}`, `error: the host other.test.org:443 has no certificate that is valid for it`},
		{"no answer", "fetch", `{"url":"http://example.com:81/"}`, `error: the host example.com:81 `},
		{"no TLS", "fetch", `{"url":"https://example.com:80/"}`, `error: the host example.com:80 `},
	} {
		s.run(t, conn)
	}
	o1 := call(t, conn, "fetch", `{"url":"http://example.com/a"}`)
	for _, hidden := range []string{"session", "10.1.2.3", front} {
		if all := o1.text() + string(o1.Structured); strings.Contains(all, hidden) {
			t.Errorf("%s is shown: %s", hidden, all)
		}
	}
	if got := w.took(); strings.Contains(got, "10.0.0") {
		t.Error(got)
	}
}

// TestAddresses: what a name leads to is decided on, once, and that is dialled
// (R-SEC-08).
func TestAddresses(t *testing.T) {
	w, o := newWorld(t, echo)
	o.Decide = holds(t, "net.get{hosts=[*]}")
	conn := open(t, "net", o)
	for _, address := range []string{
		"http://inside.example.com/", "http://both.example.com/", "http://mapped.example.com/", "http://zone.example.com/",
		"http://127.0.0.1/", "http://localhost/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://2130706433/", "http://0x7f.1/",
		"http://169.254.169.254/latest/", "http://user@example.com/", "http://example.com%2f@evil.org/", "ftp://example.com/", "http://example.com./",
		"file:///etc/passwd", `http:\\example.com/`, "http://exa mple.com/", "//example.com/", "http://example.com:080/", "http://[fe80::1%25eth0]/",
	} {
		o := call(t, conn, "fetch", fmt.Sprintf(`{"url":%q}`, address))
		if o.denied == nil {
			t.Errorf("%s: %s", address, o.text())
		} else if s := o.denied.Error(); strings.Contains(s, "10.0.0.7") {
			t.Errorf("%s: the denial tells the address: %s", address, s)
		}
		if got := w.took(); got != "" {
			t.Errorf("%s: dialled %s", address, got)
		}
	}
	step{"first answer", "fetch", `{"url":"http://rebind.example.com/"}`, "200 OK"}.run(t, conn)
	if got := w.took(); got != front+":80" {
		t.Errorf("dialled %q", got)
	}
	step{"second answer", "fetch", `{"url":"http://rebind.example.com/"}`, "denied scope_violation"}.run(t, conn)
	if got := w.took(); got != "" {
		t.Errorf("dialled %q", got)
	}
	o.Decide = holds(t, "net.get{hosts=[*.example.com,10.0.0.0/8]}")
	step{"named", "fetch", `{"url":"http://inside.example.com/"}`, "200 OK"}.run(t, open(t, "net", o))
	if got := w.took(); got != "10.0.0.7:80" {
		t.Errorf("dialled %q", got)
	}
}

// TestRedirects: each hop is decided on as what it is.
func TestRedirects(t *testing.T) {
	w, o := newWorld(t, echo)
	o.Decide = holds(t, "net.get{hosts=[*.example.com,*.test.org]}", "net.post{hosts=[*.example.com]}", "net.put{hosts=[*.example.com]}")
	conn := open(t, "net", o)
	const plain, secure = "http://example.com", "https://example.com"
	post := `"method":"post","body":"b","headers":{"Content-Type":"text/x","Accept":"x/y"}`
	for _, c := range []struct{ name, url, more, want string }{
		{"followed", to(302, plain, "/b"), "", "GET example.com/b"},
		{"to https", to(301, plain, "https://www.example.com/b"), "", "GET www.example.com/b"},
		{"to http", to(301, secure, plain+"/b"), "", "error: the server redirects from https"},
		{"to another scheme", to(301, plain, "ftp://example.com/"), "", "denied scope_violation"},
		{"to a host that is not held", to(302, plain, "http://evil.org/"), "", "denied scope_violation"},
		{"to loopback", to(302, plain, "http://127.0.0.1/"), "", "denied scope_violation"},
		{"to a metadata service", to(307, plain, "http://169.254.169.254/"), "", "denied scope_violation"},
		{"to a name that leads inside", to(302, plain, "http://inside.example.com/"), "", "denied scope_violation"},
		{"with a user name", to(302, plain, "http://u:p@example.com/"), "", "denied scope_violation"},
		{"with backslashes", to(302, plain, `\\evil.org/x`), "", `GET example.com/to/\\evil.org/x`},
		{"without a scheme", to(302, plain, "//evil.org/x"), "", "denied scope_violation"},
		{"that cannot be read", to(302, plain, "http://exa%20mple.com/"), "", "error: "},
		{"in a loop", plain + "/loop", "", "error: the server redirects more than 5 times"},
		{"nowhere", to(302, plain, ""), "", "302 Found"},
		{"that is none", to(304, plain, "http://evil.org/"), "", "304 Not Modified"},
		{"post, 302", to(302, plain, "/b"), post, `GET example.com/b body="" type="" accept="x/y"`},
		{"post, 303", to(303, plain, "/b"), post, `GET example.com/b body="" type=""`},
		{"post, 307", to(307, plain, "/b"), post, `POST example.com/b body="b" type="text/x" accept="x/y"`},
		{"post, 307, elsewhere", to(307, plain, "http://www.example.com/b"), post, `POST www.example.com/b body="b" type="" accept=""`},
		{"post, 308, where post is not held", to(308, plain, "http://other.test.org/"), post, "denied scope_violation"},
		{"post, 302, where get is held", to(302, plain, "http://other.test.org/b"), post, `GET other.test.org/b body="" type="" accept=""`},
		{"put, 301", to(301, plain, "/b"), `"method":"put","body":"b"`, `PUT example.com/b body="b"`},
		{"head, 303", to(303, plain, "/b"), `"method":"head"`, "200 OK"},
	} {
		args := fmt.Sprintf(`{"url":%q}`, c.url)
		if c.more != "" {
			args = fmt.Sprintf(`{"url":%q,%s}`, c.url, c.more)
		}
		step{c.name, "fetch", args, c.want}.run(t, conn)
		if o := call(t, conn, "fetch", args); strings.Contains(o.text(), "the body of a redirect") && c.want[0] != '3' {
			t.Errorf("%s: %s", c.name, o.text())
		}
		if got := w.took(); strings.Contains(got, "127.0.0.1") || strings.Contains(got, "10.0.0.7") || strings.Contains(got, "169.254") {
			t.Errorf("%s: dialled %s", c.name, got)
		}
	}
}

// TestBodies: what is text is text, what is not is base64, nothing is unpacked.
func TestBodies(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 8<<20))
	z.Close()
	picture := "\x89PNG\r\n\x1a\n\x00\x01"
	_, o := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		kind, body, _ := strings.Cut(r.URL.Query().Get("is"), "|")
		if kind == "bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			kind, body = "text/html", bomb.String()
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("ETag", "a\tb")
		io.WriteString(w, strings.ReplaceAll(strings.ReplaceAll(body, "LATIN", "caf\xe9"), "PICTURE", picture))
	})
	o.Decide, o.Limits.Response = holds(t, "net.get{hosts=[*]}"), 100_000
	conn := open(t, "net", o)
	for _, c := range []struct{ is, more, kind, mime, text string }{
		{"text/html|<p>", "", "text", "", "<p>"},
		{"application/problem%2Bjson|{}", "", "text", "", "{}"},
		{"text/plain; charset=iso-8859-1|LATIN", "", "text", "", "café"},
		{"text/plain; charset=utf-8|LATIN", "", "resource", "text/plain", ""},
		{"text/plain; charset=koi8-r|x", "", "resource", "text/plain", ""},
		{"text/plain|a%00b", "", "resource", "text/plain", ""},
		{"text/plain|éé", `,"max_bytes":3`, "text", "", "é"},
		{"image/png|PICTURE", "", "image", "image/png", ""},
		{"image/png|<html>", "", "resource", "application/octet-stream", ""},
		{"image/png|PICTURE", `,"max_bytes":9`, "resource", "application/octet-stream", ""},
		{"application/pdf|%25PDF", "", "resource", "application/pdf", ""},
		{"not a type|plain", "", "text", "", "plain"},
		{"bomb|", "", "resource", "application/octet-stream", ""},
	} {
		o := call(t, conn, "fetch", fmt.Sprintf(`{"url":%q%s}`, "http://example.com/?is="+strings.NewReplacer(" ", "%20", ";", "%3B").Replace(c.is), c.more))
		if len(o.Content) != 2 {
			t.Errorf("%s: %s", c.is, o.text())
			continue
		}
		if b := o.Content[1]; b.Type != c.kind || b.MimeType+b.Resource.MimeType != c.mime || b.Text != c.text {
			t.Errorf("%s: %+v", c.is, b)
		}
		if strings.ContainsFunc(o.Content[0].Text, func(r rune) bool { return r == '\t' }) {
			t.Errorf("%s: control characters in %q", c.is, o.Content[0].Text)
		}
	}
}

// endless is a body that does not end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, "0123456789"), nil }

// TestFlood: a server that sends too much or too slowly costs no more than the
// limits say.
func TestFlood(t *testing.T) {
	_, o := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			w.Header().Set("Content-Type", "text/plain")
			io.Copy(w, endless{})
		case "/header":
			w.Header().Set("X", strings.Repeat("x", 100<<10))
		case "/short":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "x")
		case "/upgrade":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n")
				conn.Close()
			}
		case "/slow":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	o.Decide, o.Limits.Response = holds(t, "net.get{hosts=[*]}"), 1000
	conn := open(t, "net", o)
	for _, s := range []step{
		{"endless", "fetch", `{"url":"http://example.com/endless"}`, "[the body is cut off]"},
		{"long header", "fetch", `{"url":"http://example.com/header"}`, "error: the host example.com:80 gave no answer"},
		{"broken off", "fetch", `{"url":"http://example.com/short"}`, "error: the answer broke off"},
		{"not HTTP", "fetch", `{"url":"http://example.com/upgrade"}`, "error: "},
		{"too much asked", "fetch", `{"url":"http://example.com/endless","max_bytes":1001}`, "error: the argument max_bytes"},
	} {
		s.run(t, conn)
	}
	if o := call(t, conn, "fetch", `{"url":"http://example.com/endless"}`); len(o.Content[1].Text) != 1000 {
		t.Errorf("%d bytes", len(o.Content[1].Text))
	}
	o.Limits.Time = 50 * time.Millisecond
	step{"slow", "fetch", `{"url":"http://example.com/slow"}`, "error: the call took longer than 50ms"}.run(t, open(t, "net", o))
}

// TestManyAddresses: a host with too many addresses is not reached, and only some
// of the allowed ones are tried.
func TestManyAddresses(t *testing.T) {
	w, o := newWorld(t, echo)
	o.Decide = holds(t, "net.get{hosts=[*]}")
	w.names["many.example.com"] = []string{strings.Repeat(front+" ", 33)}
	w.names["dead.example.com"] = []string{"8.8.8.1 8.8.8.2 " + front, "8.8.8.1 8.8.8.2 8.8.8.3 " + front}
	conn := open(t, "net", o)
	step{"too many", "fetch", `{"url":"http://many.example.com/"}`, "error: the host many.example.com has more"}.run(t, conn)
	step{"the third", "fetch", `{"url":"http://dead.example.com/"}`, "200 OK"}.run(t, conn)
	step{"not the fourth", "fetch", `{"url":"http://dead.example.com/"}`, "error: the host dead.example.com:80 gave no answer"}.run(t, conn)
	o.Decide = func(*capability.Requirement) error { return nil }
	step{"opaque, and allowed by mistake", "fetch", `{"url":"http://u@example.com/"}`, "error: the URL cannot be read"}.run(t, open(t, "net", o))
}
