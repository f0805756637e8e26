package builtin

import (
	"errors"
	"io"

	"capgate/upstream"
)

const (
	firstRead = 4 << 10 // bytes of memory that reading begins with
	nameSize  = 32      // bytes of a name in a list, besides those of its text
	entrySize = 512     // bytes of an entry that is shown, besides those of its paths
)

// memory counts what a call holds at once, and asks for room before there is more of it
// than there was before. What the call gives back is for the rest of it first, and for the
// room once there is an answer.
type memory struct {
	room upstream.Room // nil: there always is
	held int           // bytes
	had  int           // beyond upstream.FreeRoom, of the most that was held
	full bool          // there was no room, so that the call fails whatever comes of it
}

// take counts so many bytes, unless there is no room for them. Without a memory nothing
// is counted.
func (m *memory) take(bytes int) error {
	if m == nil {
		return nil
	}
	m.held += bytes
	if more := m.held - upstream.FreeRoom - m.had; more > 0 && m.room != nil {
		if m.full || !m.room.Take(more) {
			m.full = true
			return upstream.ErrNoRoom
		}
		m.had += more
	}
	return nil
}

// give says that so many bytes of what was taken are not held any more.
func (m *memory) give(bytes int) {
	if m != nil {
		m.held -= bytes
	}
}

// settle gives back what is not in an answer of so many bytes.
func (m *memory) settle(size int) {
	if more := m.had - max(0, size-upstream.FreeRoom); more > 0 {
		m.room.Give(more)
		m.had -= more
	}
}

// grow returns data with memory for so many bytes more behind it.
func (m *memory) grow(data []byte, more int) ([]byte, error) {
	if cap(data)-len(data) >= more {
		return data, nil
	}
	size := len(data) + more
	if err := m.take(size); err != nil {
		return data, err
	}
	grown := append(make([]byte, 0, size), data...)
	m.give(cap(data))
	return grown, nil
}

// read reads to the end, or until there is more than so many bytes, into the memory of
// data, which grows with what comes.
func (m *memory) read(src io.Reader, data []byte, most int) ([]byte, error) {
	for data = data[:0]; ; {
		var err error
		if len(data) == cap(data) {
			if data, err = m.grow(data, min(max(len(data), firstRead), most+1-len(data))); err != nil {
				return data, err
			}
		}
		n, err := src.Read(data[len(data):min(cap(data), most+1)])
		data = data[:len(data)+n]
		switch {
		case len(data) > most || errors.Is(err, io.EOF):
			return data, nil
		case err != nil:
			return data, err
		}
	}
}

// namesSize is about what a list of names holds.
func namesSize(names []string) (bytes int) {
	for _, name := range names {
		bytes += len(name) + nameSize
	}
	return bytes
}
