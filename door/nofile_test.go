//go:build unix

package door_test

import (
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// TestNoFile has connections come that have no descriptor, as those over TLS: net/http serves
// them, as whether they have ended cannot be seen.
func TestNoFile(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := openAt(t, bareListener{l}, func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }, time.Minute, time.Minute)
	v := h.visit()
	v.say("POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nwhole")
	if resp, body := v.hear(); resp.StatusCode != http.StatusOK || body != "whole" {
		t.Errorf("it is answered with %s, %q", resp.Status, body)
	}
	if n := h.passed(); n != 1 {
		t.Errorf("net/http has got %d connections", n)
	}
}

type bareListener struct{ net.Listener }

// Accept returns a connection that only reads and writes.
func (l bareListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}
