package upstream_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"

	"capgate/upstream"
)

// rooms has so much room, and counts what is taken.
type rooms struct{ left, taken int }

func (r *rooms) Take(bytes int) bool {
	if bytes <= 0 || bytes > r.left {
		return false
	}
	r.left, r.taken = r.left-bytes, r.taken+bytes
	return true
}

func (r *rooms) Give(bytes int) { r.left += bytes }

const longSize = 1 << 20

// lengthy answers each method in its own way, at length but for some.
func lengthy(w http.ResponseWriter, _ *http.Request, m msg) {
	whole := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, longResult())
	switch m.Method {
	case "announced":
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		status(w, http.StatusOK, "application/json", whole)
	case "unannounced":
		status(w, http.StatusOK, "application/json", whole)
	case "event":
		events(w)("data: %s", whole)
	case "event of many lines":
		events(w)("data: %s", strings.Replace(whole, ":", strings.Repeat("\ndata:", 1000)+"\ndata::", 1))
	case "many events":
		send := events(w)
		for range longSize / 10_000 {
			send(`data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"%s"}}`, strings.Repeat("x", 20_000))
		}
		send(`data: {"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
	default:
		answer(w, m, "{}")
	}
}

func longResult() string { return `{"text":"` + strings.Repeat("x", longSize) + `"}` }

// TestRoom: whatever carries an answer, what of it is long is asked room for before
// it is taken in, no more than twice as much, and it fails when there is none.
func TestRoom(t *testing.T) {
	web := serve(t, func(s *server) { s.call = lengthy }).dial(upstream.Options{})
	sse := feed(t, func(f *feeder) {
		f.call = func(f *feeder, w http.ResponseWriter, m msg) {
			w.WriteHeader(http.StatusAccepted)
			f.send(`data: {"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, longResult())
		}
	}).dial(t, upstream.Options{})
	pipe := started(t, program(t, "legacy"), upstream.Options{})
	for _, test := range []struct {
		name    string
		conn    upstream.Conn
		request upstream.Request
		long    bool
	}{
		{"announced", web, upstream.Request{Method: "announced"}, true},
		{"unannounced", web, upstream.Request{Method: "unannounced"}, true},
		{"an event", web, upstream.Request{Method: "event"}, true},
		{"an event of many lines", web, upstream.Request{Method: "event of many lines"}, true},
		{"much that is no answer", web, upstream.Request{Method: "many events"}, false},
		{"short", web, upstream.Request{Method: "short"}, false},
		{"HTTP+SSE", sse, upstream.Request{Method: "tools/call"}, true},
		{"a pipe", pipe, tool("size", longSize), true},
		{"a pipe, short", pipe, tool("size", 1000), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			roomy, narrow := &rooms{left: 4 * longSize}, &rooms{left: longSize / 2}
			test.request.Room = roomy
			if _, err := test.conn.Call(t.Context(), test.request, nil); err != nil {
				t.Errorf("with room for it: %v", err)
			}
			least, most := 0, 0
			if test.long {
				least, most = longSize-upstream.FreeRoom, 2*longSize+upstream.FreeRoom
			}
			if roomy.taken < least || roomy.taken > most {
				t.Errorf("it took %d bytes", roomy.taken)
			}
			test.request.Room = narrow
			if _, err := test.conn.Call(t.Context(), test.request, nil); errors.Is(err, upstream.ErrNoRoom) != test.long {
				t.Errorf("without room for it: %v", err)
			}
		})
	}
}

// TestRoomAnnounced: what is only announced takes room as well, as memory for it may be
// made before it comes.
func TestRoomAnnounced(t *testing.T) {
	s := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, r *http.Request, _ msg) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", fmt.Sprint(1<<20))
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	_, err := s.dial(upstream.Options{}).Call(t.Context(), upstream.Request{Method: "x", Room: &rooms{left: 1 << 19}}, nil)
	if !errors.Is(err, upstream.ErrNoRoom) {
		t.Error(err)
	}
}

// TestRoomToRead: no more long answers over one connection are read at once than there is
// work done.
func TestRoomToRead(t *testing.T) {
	numbers := `{"a":[0` + strings.Repeat(",0", 100_000) + `]}`
	c := serve(t, func(s *server) {
		s.call = func(w http.ResponseWriter, _ *http.Request, m msg) { answer(w, m, numbers) }
	}).dial(upstream.Options{})
	var calls sync.WaitGroup
	for range 30 {
		calls.Go(func() {
			if _, err := c.Call(t.Context(), upstream.Request{Method: "x"}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		calls.Wait()
	}()
	most, stacks := 0, make([]byte, 8<<20)
	for reading := true; reading; { // to look stops them, and others go on
		n := runtime.Stack(stacks, true)
		most = max(most, bytes.Count(stacks[:n], []byte("wire.(*Doc).read(")))
		select {
		case <-done:
			reading = false
		default:
			runtime.Gosched()
		}
	}
	if most == 0 || most > runtime.GOMAXPROCS(0) {
		t.Errorf("%d were read at once", most)
	}
}
