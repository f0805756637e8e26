package upstream_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"capgate/upstream"
	"github.com/google/go-cmp/cmp"
)

func TestEvents(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 5000)
	tests := []struct {
		name, stream string
		want         []upstream.Event
	}{
		{"nothing", "", nil},
		{"one", "data: a\n\n", []upstream.Event{{Data: "a", Plain: true}}},
		{"cut off", "data: a\n\ndata: b\n", []upstream.Event{{Data: "a", Plain: true}}},
		{"no blank", "data: a", nil},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []upstream.Event{{Data: "a", Plain: true}, {Data: "b", Plain: true}}},
		{"cr", "data: a\r\rdata: b\r\r", []upstream.Event{{Data: "a", Plain: true}, {Data: "b", Plain: true}}},
		{"lines", "data: a\ndata\ndata:b\n\n", []upstream.Event{{Data: "a\n\nb", Plain: true}}},
		{"one space only", "data:  a\n\n", []upstream.Event{{Data: " a", Plain: true}}},
		{"comments", ":\n: hello\n\n:x\ndata: a\n\n", []upstream.Event{{Data: "a", Plain: true}}},
		{"mark", "\ufeffdata: a\n\n\ufeffdata: b\n\n", []upstream.Event{{Data: "a", Plain: true}}},
		{
			"names", "event: message\ndata: a\n\nevent: ping\ndata: b\n\ndata: c\n\n",
			[]upstream.Event{{Data: "a", Plain: true}, {Data: "b"}, {Data: "c", Plain: true}},
		},
		{"a name does not outlive an event without data", "event: ping\n\ndata: a\n\n", []upstream.Event{{Data: "a", Plain: true}}},
		{
			"ids", "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\nid\ndata: c\n\n",
			[]upstream.Event{{Data: "a", ID: "1", Plain: true}, {Data: "b", ID: "1", Plain: true}, {Data: "c", Plain: true}},
		},
		{"id with a nul", "id: 1\x00\ndata: a\n\n", []upstream.Event{{Data: "a", Plain: true}}},
		{"priming", "id: 1\ndata:\n\ndata: a\n\n", []upstream.Event{{ID: "1", Plain: true}, {Data: "a", ID: "1", Plain: true}}},
		{"unknown field", "datum: x\nretry: 5\nretry: x\ndata: a\n\n", []upstream.Event{{Data: "a", Plain: true}}},
		{"colon in the data", "data: {\"a\":1}\n\n", []upstream.Event{{Data: `{"a":1}`, Plain: true}}},
		{
			"longer than the buffer", "data: " + long + "\n\ndata: a\n\ndata: " + long + "x\n\n",
			[]upstream.Event{{Data: long, Plain: true}, {Data: "a", Plain: true}, {Data: long + "x", Plain: true}},
		},
		{"long lines", "data: " + long + "\ndata: " + long + "\n\n", []upstream.Event{{Data: long + "\n" + long, Plain: true}}},
	}
	for _, tt := range tests {
		for how, r := range map[string]io.Reader{
			"at once":     strings.NewReader(tt.stream),
			"by bytes":    iotest.OneByteReader(strings.NewReader(tt.stream)),
			"with errors": iotest.DataErrReader(strings.NewReader(tt.stream)),
		} {
			got, err := upstream.ReadEvents(r, 1<<20)
			if !errors.Is(err, io.EOF) {
				t.Errorf("%s, %s: %v", tt.name, how, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", tt.name, how, diff)
			}
		}
	}
}

func TestEventLimits(t *testing.T) {
	const limit = 1000
	fits := strings.Repeat("a", limit)
	tests := []struct {
		name, stream string
		ok           bool
	}{
		{"at the limit", "data: " + fits + "\n\n", true},
		{"one line over", "data: " + fits + "a\n\n", false},
		{"many lines over", strings.Repeat("data: aaaaaaaaa\n", limit/10+1) + "\n", false},
		{"a line that never ends", "data: " + strings.Repeat("a", 100*limit), false},
		{"a comment that never ends", ": " + strings.Repeat("a", 100*limit), false},
		{"a long name", "event: " + strings.Repeat("a", 65) + "\n\n", false},
		{"a long id", "id: " + strings.Repeat("a", 5000) + "\n\n", false},
		{"an endless stream of comments", strings.Repeat(": a\n", limit), true},
	}
	for _, tt := range tests {
		_, err := upstream.ReadEvents(strings.NewReader(tt.stream), limit)
		if ok := errors.Is(err, io.EOF); ok != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	broken := errors.New("broken")
	if _, err := upstream.ReadEvents(iotest.ErrReader(broken), limit); !errors.Is(err, broken) {
		t.Errorf("the error of the source is lost: %v", err)
	}
	if _, err := upstream.ReadEvents(idle{}, limit); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source without progress: %v", err)
	}
}

// idle is a source that never says anything.
type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// oracle reads a stream line by line, as the standard describes it.
func oracle(stream []byte) (events []upstream.Event) {
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(stream))
	text = strings.TrimPrefix(text, "\ufeff")
	lines := strings.Split(text, "\n")
	var data []string
	name, id, newID := "", "", ""
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			id = newID
			if data != nil {
				events = append(events, upstream.Event{Data: strings.Join(data, "\n"), ID: id, Plain: name == "" || name == "message"})
			}
			data, name = nil, ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "data":
			data = append(data, value)
		case field == "event":
			name = value
		case field == "id" && !strings.Contains(value, "\x00"):
			newID = value
		}
	}
	return events
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "id: 1\r\ndata: a\rdata: b\r\n\r\n", "\ufeffevent: x\ndata\n\n", ":\n\n\r\r\n", "data: \r\n\ndata:x\r\n\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > 1<<12 {
			return
		}
		want := oracle(stream)
		for _, r := range []io.Reader{bytes.NewReader(stream), iotest.OneByteReader(bytes.NewReader(stream)), iotest.HalfReader(bytes.NewReader(stream))} {
			got, err := upstream.ReadEvents(r, 1<<20)
			if !errors.Is(err, io.EOF) {
				return // a limit
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%q (-want +got):\n%s", stream, diff)
			}
		}
	})
}
