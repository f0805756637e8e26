package upstream

import (
	"errors"
	"io"
	"math"
)

// FreeRoom is how many bytes of an answer need no room to be made for them.
const FreeRoom = 64 << 10

// ErrNoRoom is why a call failed whose answer was longer than there was room for.
var ErrNoRoom = errors.New("other long answers are waited for, or not yet taken")

// Fitting returns an answer that is here already, unless there is no room for it.
func (r *Request) Fitting(upstream string, a Answer, err error) (Answer, error) {
	size := len(a.Result) + len(a.Error)
	if err == nil && r.Room != nil && size > FreeRoom && !r.Room.Take(size-FreeRoom) {
		return Answer{}, NoRoom(upstream)
	}
	return a, err
}

// NoRoom says of an upstream that its answer is longer than there is room for.
func NoRoom(upstream string) *Failed {
	return &Failed{Upstream: upstream, Text: "answers with more than there is room for now", Err: ErrNoRoom}
}

// meter reads messages, and asks for room as one grows. It asks for as much again each
// time, as the memory that it is read into does.
type meter struct {
	src  io.Reader
	room Room // nil: there always is
	seen int  // bytes of the message
	had  int  // beyond FreeRoom, of the longest
}

// expect asks for room for a message of a length, which is less than none where that is
// unknown.
func (m *meter) expect(length int64) bool {
	more := int(min(length, math.MaxInt)) - FreeRoom
	if more <= m.had || m.room == nil {
		return true
	}
	if !m.room.Take(more - m.had) {
		return false
	}
	m.had = more
	return true
}

// Read fails once there is no room.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.src.Read(p)
	m.seen += n
	if held := FreeRoom + m.had; m.seen > held && m.room != nil {
		more := max(held, m.seen-held)
		if !m.room.Take(more) {
			return 0, ErrNoRoom
		}
		m.had += more
	}
	return n, err
}

// next begins another message.
func (m *meter) next() { m.seen = 0 }
