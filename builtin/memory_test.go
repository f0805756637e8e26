package builtin_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"capgate/builtin"
	"capgate/upstream"
)

// room has so much left, and counts what is taken.
type room struct{ left, taken int }

func (r *room) Take(bytes int) bool {
	if bytes <= 0 || bytes > r.left {
		return false
	}
	r.left, r.taken = r.left-bytes, r.taken+bytes
	return true
}

func (r *room) Give(bytes int) { r.left += bytes }

const long = 1 << 20

// lengthy is a tree and a world of long things, and what to reach them with.
func lengthy(t *testing.T) (files, web upstream.Conn) {
	t.Helper()
	lines := strings.Repeat(strings.Repeat("x", 63)+"\n", long/64)
	all := []string{"text=" + lines, "bytes=\x00" + lines[2:], "many/", "short=x"}
	for i := range 8 {
		all = append(all, fmt.Sprintf("large/%d=%s", i, lines))
	}
	for i := range 5000 {
		all = append(all, fmt.Sprintf("many/%s%d=", strings.Repeat("n", 200), i))
	}
	_, o := newWorld(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/text":
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, lines)
		case "/latin":
			w.Header().Set("Content-Type", "text/plain; charset=iso-8859-1")
			_, _ = io.WriteString(w, strings.Repeat("\xe9", long))
		case "/bytes":
			_, _ = io.WriteString(w, "\x00"+lines[1:])
		case "/stalled": // it never ends, so that only what is read can be counted
			w.Header().Set("Content-Length", fmt.Sprint(2*long))
			_, _ = io.WriteString(w, lines)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	o.Decide, o.Limits.Time = holds(t, "net.get{hosts=[*]}"), 10*time.Second
	return open(t, "fs", builtin.Options{Root: tree(t, all...), Decide: everything(t)}), open(t, "net", o)
}

// TestRoom: what a call reads and makes is asked room for before there is memory for it,
// with all that is there at once, and it fails when there is none: where it is read, be
// it ever finished or not.
func TestRoom(t *testing.T) {
	files, web := lengthy(t)
	for _, c := range []struct {
		name, tool, args string
		least, most      int // times what is long; none of a short one
	}{
		{"text", "read", `{"path":"text"}`, 3, 6},
		{"bytes", "read", `{"path":"bytes"}`, 2, 4},
		{"an end", "read", `{"path":"text","offset":16380}`, 0, 0},
		{"large files", "search", `{"path":"large","text":"y"}`, 1, 3},
		{"lines of one", "search", `{"path":"large","text":"x"}`, 1, 3},
		{"many names", "search", `{"path":"many","pattern":"*"}`, 1, 3},
		{"a long list", "list", `{"path":"many"}`, 1, 6},
		{"short", "read", `{"path":"short"}`, 0, 0},
		{"long arguments", "write", `{"path":"new","content":"` + strings.Repeat("x", long) + `"}`, 2, 3},
		{"text of a host", "fetch", `{"url":"http://example.com/text"}`, 3, 6},
		{"latin of a host", "fetch", `{"url":"http://example.com/latin"}`, 6, 10},
		{"bytes of a host", "fetch", `{"url":"http://example.com/bytes"}`, 2, 5},
		{"not all of it", "fetch", `{"url":"http://example.com/text","max_bytes":1000}`, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := files
			if c.tool == "fetch" {
				conn = web
			}
			roomy, narrow := &room{left: 20 * long}, &room{left: c.least * long / 2}
			r := upstream.Request{Method: "tools/call", Params: []byte(`{"name":"` + c.tool + `","arguments":` + c.args + `}`), Room: roomy}
			answer, err := conn.Call(t.Context(), r, nil)
			if err != nil || strings.HasSuffix(string(answer.Result), `"isError":true}`) {
				t.Errorf("with room for it: %.200s %v", answer.Result, err)
			}
			if roomy.taken < c.least*long-upstream.FreeRoom || roomy.taken > c.most*long {
				t.Errorf("it took %d bytes", roomy.taken)
			}
			if kept := 20*long - roomy.left; kept > max(0, len(answer.Result)+1024-upstream.FreeRoom) {
				t.Errorf("it keeps %d bytes for an answer of %d", kept, len(answer.Result))
			}
			r.Room = narrow
			if _, err := conn.Call(t.Context(), r, nil); errors.Is(err, upstream.ErrNoRoom) != (c.least > 0) {
				t.Errorf("without room for it: %v", err)
			}
			if narrow.left != c.least*long/2 {
				t.Errorf("it keeps %d bytes for none", c.least*long/2-narrow.left)
			}
		})
	}
	params := []byte(`{"name":"fetch","arguments":{"url":"http://example.com/stalled"}}`)
	_, err := web.Call(t.Context(), upstream.Request{Method: "tools/call", Params: params, Room: &room{left: long / 2}}, nil)
	if failed := (*upstream.Failed)(nil); !errors.As(err, &failed) || failed.Text != "answers with more than there is room for now" {
		t.Error(err)
	}
}
