//go:build unix

package door_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"capgate/door"
)

// TestPassedKeepsItsBytes: what has come on a connection that net/http gets is its own. The memory that it
// was read to is lent to others meanwhile.
func TestPassedKeepsItsBytes(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // who asks next is lent what was returned last
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := door.Listen(context.WithoutCancel(t.Context()), l, door.Options{
		Path: "/mcp", First: patience, Idle: patience, Log: slog.New(slog.DiscardHandler),
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }),
	})
	defer d.Close()
	passed := make(chan net.Conn, 1)
	go func() {
		if conn, err := d.Accept(); err == nil {
			passed <- conn
		}
	}()
	say := func(request string) net.Conn {
		t.Helper()
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	const other = "GET /other HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer one\r\n\r\n"
	defer say(other).Close()
	conn := <-passed
	defer conn.Close()
	for range 10 {
		there := say(post("{}", "Authorization: Bearer "+strings.Repeat("two", 20)))
		if _, err := io.ReadAtLeast(there, make([]byte, 1<<10), 50); err != nil {
			t.Fatal(err)
		}
		_ = there.Close()
	}
	got := make([]byte, len(other))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != other {
		t.Errorf("%q came, and %v", got, err)
	}
}
