package upstream

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"
)

// Event is an event as the reader of streams found it.
type Event struct {
	Data  string
	ID    string
	Plain bool // it is a message
}

// ReadEvents reads a stream to its end.
func ReadEvents(r io.Reader, limit int) (events []Event, err error) {
	e := newEventReader(r, limit)
	for {
		if err := e.next(); err != nil {
			return events, err
		}
		events = append(events, Event{Data: string(e.data), ID: string(e.id), Plain: e.is("message")})
	}
}

// Age has a connection over HTTP have lasted.
func Age(c Conn) Conn {
	if web, ok := c.(*web); ok {
		web.greeted.Store(new(time.Time))
	}
	return c
}

// Lanes are lanes to a URL, and what ends them.
func Lanes(t *testing.T, text string) (http.RoundTripper, func()) {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	usual := NewTransport(nil)
	p, ok := newLanes(u, usual.DialContext, usual).(*lanes)
	if !ok {
		const why = "there are no lanes on this system: what has come on a connection cannot be seen there"
		if os.Getenv("CAPGATE_REQUIRE") == "all" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	return p, p.close
}

// IdleLanes counts the connections that are kept.
func IdleLanes(over http.RoundTripper) int {
	p, _ := over.(*lanes)
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle)
}
