//go:build unix

package door_test

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLongPieces: a connection that waits for its next request does not keep the
// memory of a long piece of the answer before.
func TestLongPieces(t *testing.T) {
	const guests, size = 8, 4 << 20
	long := bytes.Repeat([]byte("x"), size)
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		for _, piece := range [][]byte{[]byte("first"), long, []byte("last")} {
			_, _ = w.Write(piece)
			_ = http.NewResponseController(w).Flush()
		}
	})
	before := memory()
	for range guests {
		v := o.visit()
		v.say(post("{}"))
		if _, body := v.hear(); body != "first"+string(long)+"last" {
			t.Fatalf("an answer of %d bytes", len(body))
		}
	}
	if kept := memory() - before; kept > guests*size/4 {
		t.Errorf("%d connections keep %d bytes", guests, kept)
	}
	if o.passed() != 0 {
		t.Error("net/http answered one")
	}
}

// TestIdleMemory: who says nothing takes no memory for what he may say.
func TestIdleMemory(t *testing.T) {
	const guests = 200
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = w.Write([]byte("well"))
	})
	var there [guests]net.Conn
	for i := range there {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", o.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		there[i] = conn
	}
	before := memory()
	for _, conn := range there {
		if _, err := conn.Write([]byte(post("{}"))); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAtLeast(conn, make([]byte, 1<<10), 50); err != nil {
			t.Fatal(err)
		}
	}
	if kept := (memory() - before) / guests; kept > 4<<10 {
		t.Errorf("a connection keeps %d bytes", kept)
	}
	if o.passed() != 0 {
		t.Error("net/http answered one")
	}
}

// memory is what is in use.
func memory() int64 {
	runtime.GC()
	runtime.GC() // what pools kept over the first
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDeafLater: the time that was given for the answer before does not count for the
// next one on the same connection.
func TestDeafLater(t *testing.T) {
	failed := make(chan error, 1)
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		limit := time.Now().Add(-20 * time.Second) // more than it is given beside
		if r.Header.Get("Kind") == "long" {
			limit = time.Now().Add(time.Hour)
		}
		_ = http.NewResponseController(w).SetWriteDeadline(limit)
		_, err := w.Write([]byte("well"))
		if err == nil {
			err = http.NewResponseController(w).Flush()
		}
		failed <- err
	})
	v := o.visit()
	for kind, late := range []bool{false, true} {
		v.say(post("{}", "Kind: "+[]string{"long", "late"}[kind]))
		if err := <-failed; (err != nil) != late {
			t.Errorf("late: %v; %v", late, err)
		}
		if !late {
			v.hear()
		}
	}
}

// TestPipelined: the rest of a request that was sent behind one that took long may come
// when it is answered.
func TestPipelined(t *testing.T) {
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Header.Get("Kind") == "slow" {
			<-time.After(200 * time.Millisecond) // longer than most
		}
		_, _ = w.Write(body)
	})
	v := o.visit()
	next := post(strings.Repeat("y", 100))
	v.say(post("{}", "Kind: slow") + next[:len(next)-50])
	v.hear()
	v.say(next[len(next)-50:])
	if resp, body := v.hear(); resp.StatusCode != http.StatusOK || body != strings.Repeat("y", 100) {
		t.Error(resp.Status, body)
	}
}

// TestBodiless: nothing stands behind the head of an answer that has no body, and one that
// only announces another is not the answer.
func TestBodiless(t *testing.T) {
	for _, status := range []int{http.StatusNoContent, http.StatusNotModified} {
		for _, how := range []string{"written", "flushed", "neither"} {
			o := open(t, func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.ReadAll(r.Body)
				w.WriteHeader(http.StatusEarlyHints)
				w.WriteHeader(status)
				switch how {
				case "written":
					_, _ = io.WriteString(w, "HTTP/1.1 200 OK\r\n\r\n")
				case "flushed":
					_ = http.NewResponseController(w).Flush()
				}
			})
			v := o.visit()
			v.say(post("{}"))
			_ = v.Conn.(*net.TCPConn).CloseWrite() //nolint:forcetypeassert // it is one
			told := v.ended()
			if head, body, _ := strings.Cut(told, "\r\n\r\n"); body != "" || strings.Contains(head, "Length") || strings.Contains(head, "Transfer") || how != "written" && !strings.Contains(head, http.StatusText(status)) {
				t.Errorf("%d %s: it was told %q", status, how, told)
			}
		}
	}
}

// TestEndFirst: a short answer goes when its handler has ended, so that what a request
// holds is free when the client knows of its answer.
func TestEndFirst(t *testing.T) {
	sent := make(chan struct{})
	o := open(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Length", "4")
		_, _ = w.Write([]byte("well"))
		select {
		case <-sent:
			t.Error("it was sent before")
		case <-time.After(100 * time.Millisecond):
		}
	})
	v := o.visit()
	v.say(post("{}"))
	if _, body := v.hear(); body != "well" {
		t.Error(body)
	}
	close(sent)
}

// TestIdleWhole: a connection waits for its next request as long as was said, and not
// only for what the one before has left of that.
func TestIdleWhole(t *testing.T) {
	const idle = time.Second
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := openAt(t, l, tell, idle, idle).visit()
	v.say(post("{}"))
	v.hear()
	<-time.After(idle * 2 / 5)
	v.say(post("{}"))
	v.hear()
	began := time.Now()
	v.ended()
	if waited := time.Since(began); waited < idle*9/10 {
		t.Errorf("it waited %v", waited)
	}
}
