//go:build unix

package door_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestSlowBody: a body that comes slowly is cut off when its time is over. One that came
// in time leaves no deadline behind, neither for the call nor for the next request.
func TestSlowBody(t *testing.T) {
	const limit = 300 * time.Millisecond
	began, read, gone := make(chan bool, 9), make(chan error, 1), make(chan bool, 1)
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
		began <- true
		_, err := io.ReadAll(r.Body)
		read <- err
		if r.Header.Get("Kind") != "call" {
			return
		}
		select {
		case <-r.Context().Done():
			gone <- true
		case <-time.After(patience):
			gone <- false
		}
	})
	begin := func(kind string) (v *visitor, rest string) {
		v = o.visit()
		request := post(strings.Repeat("x", 100), "Kind: "+kind)
		v.say(request[:len(request)-50])
		<-began
		return v, request[len(request)-50:]
	}
	slow, _ := begin("slow")
	select {
	case err := <-read:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("it was read: %v", err)
		}
	case <-time.After(patience):
		t.Fatal("it was waited for")
	}
	slow.ended()
	v, rest := begin("in time")
	for range 2 {
		v.say(rest)
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		v.hear()
		<-time.After(2 * limit)
		rest = post("{}")
	}
	v, rest = begin("call")
	v.say(rest)
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * limit)
	_ = v.Close()
	if !<-gone {
		t.Error("nobody noticed")
	}
}

// TestNothingLeft: what is said in an answer is not said in the next one on the same
// connection, and its deadline does not go with it to net/http.
func TestNothingLeft(t *testing.T) {
	const limit = 300 * time.Millisecond
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		if r.Header.Get("Kind") == "full" {
			w.Header().Set("Mcp-Session-Id", "secret")
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit - 15*time.Second)) // which is given beside
			w.WriteHeader(http.StatusTeapot)
			_, _ = io.WriteString(w, "secret")
		}
	})
	v := o.visit()
	for range 2 {
		v.say(post("{}", "Kind: full"))
		if resp, body := v.hear(); resp.StatusCode != http.StatusTeapot || body != "secret" {
			t.Error(resp, body)
		}
		v.say(post("{}"))
		if resp, body := v.hear(); resp.StatusCode != http.StatusOK || len(resp.Header) != 2 || body != "" { // Date and Content-Length
			t.Error(resp, body)
		}
	}
	v.say(post("{}", "Kind: full"))
	v.hear()
	<-time.After(2 * limit)
	v.say("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
	if resp, _ := v.hear(); resp.StatusCode != http.StatusOK || o.passed() != 1 {
		t.Error(resp.Status)
	}
}

// TestIdleAfterLong: also a connection on which a request took long is closed when the
// next one does not come.
func TestIdleAfterLong(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := openAt(t, l, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-time.After(200 * time.Millisecond) // longer than most
	}, time.Second, time.Second).visit()
	v.say(post("{}"))
	v.hear()
	_ = v.SetReadDeadline(time.Now().Add(3 * time.Second))
	if rest := v.ended(); rest != "" {
		t.Errorf("it was told %q", rest)
	}
}
