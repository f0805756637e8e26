package upstream

import "io"

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
