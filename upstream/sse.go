package upstream

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"time"
)

const (
	eventBuffer  = 16 << 10 // bytes read at a time from an event stream
	maxEventName = 64       // bytes of the name of an event
	maxEventID   = 4 << 10  // bytes of the id of an event
	maxRetry     = 9        // digits of a retry field
	fieldRoom    = 16       // bytes of a line that stand before its value
)

// eventReader reads a stream of server-sent events. What it returns is only good
// until it reads on, but for data that was given away.
type eventReader struct {
	src   io.Reader
	buf   []byte // what was read from src
	at    int    // how much of buf is used up
	limit int

	begun   bool   // the first line is behind us
	feed    bool   // the last line ended in CR: a LF right after it belongs to it
	line    []byte // a line that did not fit buf
	name    []byte
	data    []byte
	hasData bool
	newID   []byte

	id    []byte        // the id to resume after, nil for none
	retry time.Duration // how long to wait before that, 0 if the server did not say
}

func newEventReader(src io.Reader, limit int) *eventReader {
	return &eventReader{src: src, buf: make([]byte, 0, eventBuffer), limit: limit}
}

// reset gives the reader another stream, and keeps its memory.
func (e *eventReader) reset(src io.Reader) {
	*e = eventReader{src: src, buf: e.buf[:0], limit: e.limit, line: e.line, name: e.name, data: e.data}
}

// next reads up to the end of an event that has data. An event that the stream
// ends in is none.
func (e *eventReader) next() error {
	e.name, e.data, e.hasData = e.name[:0], e.data[:0], false
	for {
		line, err := e.readLine()
		if err != nil {
			return err
		}
		if len(line) > 0 {
			if err := e.field(line); err != nil {
				return err
			}
			continue
		}
		if e.newID != nil {
			e.id = append(e.id[:0], e.newID...)
		}
		if e.hasData {
			return nil
		}
		e.name = e.name[:0]
	}
}

// is reports whether the event has the name; one without a name is a message.
func (e *eventReader) is(name string) bool {
	return string(e.name) == name || len(e.name) == 0 && name == "message"
}

// give leaves the memory of the event to those who use its data.
func (e *eventReader) give() { e.data = nil }

// field reads one line.
func (e *eventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return e.addData(value)
	case "event":
		if len(value) > maxEventName {
			return errLong
		}
		e.name = append(e.name[:0], value...)
	case "id":
		if len(value) > maxEventID {
			return errLong
		}
		if bytes.IndexByte(value, 0) < 0 {
			e.newID = append(e.newID[:0:0], value...)
		}
	case "retry":
		if ms, err := strconv.ParseUint(string(value), 10, 64); err == nil && len(value) <= maxRetry {
			e.retry = time.Duration(ms) * time.Millisecond
		}
	}
	return nil
}

// addData adds a line of data. A first line that was too long for buf is not
// copied once more: its memory becomes the event's.
func (e *eventReader) addData(value []byte) error {
	if len(e.data)+len(value) > e.limit {
		return errLong
	}
	switch {
	case e.hasData:
		e.data = append(append(e.data, '\n'), value...)
	case len(e.line) > 0:
		e.data, e.line = value, e.data[:0]
	default:
		e.data = append(e.data[:0], value...)
	}
	e.hasData = true
	return nil
}

// readLine reads one line, which CR, LF or both end.
func (e *eventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		part, ended, err := e.readPart()
		if err != nil {
			return nil, err
		}
		if ended && len(e.line) == 0 {
			return e.first(part), nil
		}
		if len(e.line)+len(part) > e.limit+fieldRoom {
			return nil, errLong
		}
		if len(e.line)+len(part) > cap(e.line) {
			e.line = slices.Grow(e.line, len(e.line)+len(part))
		}
		e.line = append(e.line, part...)
		if ended {
			return e.first(e.line), nil
		}
	}
}

// first takes the byte order mark off the first line.
func (e *eventReader) first(line []byte) []byte {
	if !e.begun {
		e.begun = true
		return bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}

// readPart returns what is there of a line, and whether that was the rest of it.
func (e *eventReader) readPart() (part []byte, ended bool, err error) {
	if err := e.fill(); err != nil {
		return nil, false, err
	}
	if e.feed {
		e.feed = false
		if e.buf[e.at] == '\n' {
			e.at++
			return e.readPart()
		}
	}
	rest := e.buf[e.at:]
	end := bytes.IndexByte(rest, '\n')
	if end < 0 {
		end = len(rest)
	}
	if cr := bytes.IndexByte(rest[:end], '\r'); cr >= 0 {
		end = cr
	}
	if end == len(rest) {
		e.at = len(e.buf)
		return rest, false, nil
	}
	e.feed = rest[end] == '\r'
	e.at += end + 1
	return rest[:end], true, nil
}

// fill sees to it that there is a byte to use. A source that keeps returning
// nothing is one that is broken.
func (e *eventReader) fill() error {
	const patience = 100
	for range patience {
		if e.at < len(e.buf) {
			return nil
		}
		n, err := e.src.Read(e.buf[:cap(e.buf)])
		e.buf, e.at = e.buf[:n], 0
		if n == 0 && err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// keep returns an answer within the event for good: a copy, or the memory of the
// event if that is so large that it would not be used again.
func (e *eventReader) keep(a Answer) Answer {
	if cap(e.data) > keepBody {
		e.give()
		return a
	}
	a.Result, a.Error = bytes.Clone(a.Result), bytes.Clone(a.Error)
	return a
}

// resume goes on with the rest of a stream.
func (e *eventReader) resume(src io.Reader) {
	id, retry := e.id, e.retry
	e.reset(src)
	e.id, e.retry = id, retry
}
