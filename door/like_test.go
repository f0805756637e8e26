//go:build unix

package door_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pairs is a listener for connections that are made within the process.
type pairs struct {
	came chan net.Conn
	over chan struct{}
}

func newPairs() *pairs { return &pairs{make(chan net.Conn), make(chan struct{})} }

func (p *pairs) Accept() (net.Conn, error) {
	select {
	case c := <-p.came:
		return c, nil
	case <-p.over:
		return nil, net.ErrClosed
	}
}

func (p *pairs) Close() error   { close(p.over); return nil }
func (p *pairs) Addr() net.Addr { return &net.UnixAddr{Name: "pair", Net: "unix"} }

// connect returns the client's end of a new connection.
func (p *pairs) connect(t testing.TB) *net.UnixConn {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends [2]net.Conn
	for i, fd := range fds {
		if err := syscall.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "pair")
		if ends[i], err = net.FileConn(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.came <- ends[0]
	return ends[1].(*net.UnixConn) //nolint:forcetypeassert // it is one
}

// answers says something to a server, ends its own half, and returns all that it is told.
func (p *pairs) answers(t testing.TB, data []byte) []string {
	conn := p.connect(t)
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() {
		_, _ = conn.Write(data) // who has heard enough does not read on
		_ = conn.CloseWrite()
	}()
	var all []string
	for r := bufio.NewReader(conn); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
				t.Fatalf("%q: %v", data, err)
			}
			return all
		}
		body, err := io.ReadAll(resp.Body)
		if errors.Is(err, syscall.ECONNRESET) { // the end, where the server has not read all that was sent
			err = nil
		}
		if resp.Header.Get("Date") == "" && resp.StatusCode != http.StatusContinue && resp.StatusCode < 400 {
			t.Errorf("%q: there is no date", data)
		}
		delete(resp.Header, "Date")
		if len(body) > 2<<10 && len(body) <= 4<<10 { // which one of the two holds back until its length is known
			resp.Header.Del("Content-Length")
			resp.ContentLength, resp.TransferEncoding = -1, nil
		}
		closes := resp.Close && resp.StatusCode != http.StatusBadRequest // which may say so or not
		all = append(all, fmt.Sprintf("%s %v %v %v %v %q %v", resp.Status, resp.Header, resp.ContentLength, resp.TransferEncoding, closes, body, err))
	}
}

// FuzzLikeNetHTTP: whatever comes, a door with net/http behind it and net/http alone read
// the same requests and give the same answers. A door may be stricter, no more.
func FuzzLikeNetHTTP(f *testing.F) {
	here, there := newPairs(), newPairs()
	openAt(f, here, tell, time.Minute, time.Minute)
	alone := &http.Server{Handler: http.HandlerFunc(tell), ReadHeaderTimeout: patience}
	go func() { _ = alone.Serve(there) }()
	f.Cleanup(func() { _ = alone.Close() })
	for _, seed := range likeSeeds() {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 64<<10 {
			return // longer than it need be
		}
		want, got := there.answers(t, data), here.answers(t, data)
		if last := len(got) - 1; last > 0 && len(want) >= last && slices.Equal(want[:last], got[:last]) && strings.HasPrefix(got[last], "400 ") && hasRest(data) {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: net/http alone (-), behind a door (+):\n%s", data, diff)
		}
	})
}

// hasRest reports whether what stands behind the body of a request is something that
// net/http overlooks there, and nowhere else: an empty line, or a few bytes at the end.
func hasRest(data []byte) bool {
	r := bufio.NewReader(bytes.NewReader(data))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return false
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return false
		}
		next, err := r.Peek(4)
		if err != nil || next[0] == '\r' || next[0] == '\n' {
			return len(next) > 0
		}
	}
}

// likeSeeds are plain requests, and what could be taken for one.
func likeSeeds() []string {
	plain := post(`{"a":1}`, "Content-Type: application/json", "Mcp-Session-Id: x", "authorization: Bearer y", "Accept: a", "accept: b")
	seeds := []string{
		"", "P", "\r\n", plain + "00", plain + "000", plain + "0000", plain, plain + plain, plain + "GET / HTTP/1.1\r\nHost: a\r\n\r\n" + plain,
		plain[:len(plain)-1], plain[:40], plain + plain[:30], strings.ToLower(plain), "\r\n" + plain, plain + "\r\n\r\n" + plain,
		strings.Replace(plain, "\r\n", "\n", 1), strings.ReplaceAll(plain, "\r\n", "\n"), strings.Replace(plain, ": ", " : ", 1),
		strings.Replace(plain, "POST", "PUT", 1), strings.Replace(plain, "HTTP/1.1", "HTTP/1.0", 1), strings.Replace(plain, "HTTP/1.1", "HTTP/1.1 ", 1),
		strings.Replace(plain, "/mcp", "/mcp?a=b", 1), strings.Replace(plain, "/mcp", "/mcp#a", 1), strings.Replace(plain, "/mcp", "/%6dcp", 1),
		strings.Replace(plain, "/mcp", "//mcp", 1), strings.Replace(plain, "/mcp", "http://localhost/mcp", 1),
		"POST /mcp HTTP/1.1\r\nHost: a\r\n\r\n", "POST /mcp HTTP/1.1\r\nContent-Length: 1\r\n\r\na",
		post(strings.Repeat("x", 20000)), post(strings.Repeat("x", 9000)) + plain, post("a", "X: "+strings.Repeat("y", 9000)) + plain, post("a", "X: "+strings.Repeat("y", 3000)) + plain,
		post(strings.Repeat("x", 9000), "Kind: stream") + plain, post("", "Kind: stream"),
	}
	for _, kind := range []string{"counted", "stream", "long", "nothing", "empty"} {
		seeds = append(seeds, post("a", "Kind: "+kind)+plain)
	}
	for _, header := range []string{
		"Host: b", "Host:", "Content-Length: 1", "Content-Length: 7", "Content-Length: +7", "Content-Length: 07", "Content-Length: 7, 7", "Content-Length:",
		"Transfer-Encoding: chunked", "transfer-encoding: identity", "Transfer-Encoding : chunked", "Connection: close", "Connection: keep-alive", "Connection: Keep-Alive, close",
		"Connection: upgrade", "Upgrade: h2c", "Expect: 100-continue", "Trailer: X", "TE: trailers", "Pragma: no-cache", "Keep-Alive: timeout=1", "Cookie: a=b", "Cookie: c",
		"X : y", ": y", " X: y", "X: y\r\n z", "X: y\x00", "X: y\x7f", "X: \x80", "X:\ty\t", "X: y\rz", "X: y\nZ: a", "Ü: y", "X", "x-y_z!: ", "X_Y: y", "X!Y: z", "X-(: y", "X{: y", "X[: y", "X@: y", "X`: y", "X/: y", "X:: y", "X:  y  ", "Content-Type: a\r\nContent-type: b",
		"Proxy-Connection: keep-alive", "HTTP2-Settings: a", "Content-Encoding: gzip",
	} {
		seeds = append(seeds, post(`{"a":1}`, header)+plain, "POST /mcp HTTP/1.1\r\n"+header+"\r\nHost: a\r\nContent-Length: 7\r\n\r\n1234567"+plain)
	}
	for _, end := range []string{"X: y\rZ: a", "X: y\r\rZ: a", "X: y\r"} {
		seeds = append(seeds, "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n"+end+"\r\n\r\na"+plain)
	}
	for _, length := range []string{"0", "-1", "9999999999", "99999999999999999999", "0x1", "1 1", "1\t", "\t1", "1_0", "2147483648"} {
		seeds = append(seeds, "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: "+length+"\r\n\r\n1"+plain)
	}
	return append(seeds, string(bytes.Repeat([]byte("X: y\r\n"), 100)), "POST /mcp HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("X: y\r\n", 70)+"Content-Length: 1\r\n\r\na"+plain)
}
