package proxy

import (
	"math"
	"sync/atomic"
	"time"
)

// vigil ends a request whose server or provider is waited for too long. Its clock runs
// only while it is waited for, not while the agent takes what has come, or is asked.
type vigil struct {
	limit time.Duration
	start time.Time
	since atomic.Int64 // from start on, when the wait has begun; or one of the below
	timer *time.Timer
}

// What since may be besides a time.
const (
	vigilRests = 0
	vigilEnded = -1
)

func newVigil(limit time.Duration, over func()) *vigil {
	v := &vigil{limit: limit, start: time.Now().Add(-time.Nanosecond)}
	v.begin(time.Now())
	v.timer = time.AfterFunc(math.MaxInt64, func() { v.look(over) })
	v.timer.Reset(limit) // which look may do too, and so needs to see it
	return v
}

func (v *vigil) begin(now time.Time) { v.since.Store(int64(now.Sub(v.start))) }
func (v *vigil) rest()               { v.since.Store(vigilRests) }

func (v *vigil) end() {
	v.since.Store(vigilEnded)
	v.timer.Stop()
}

// look ends the wait, or comes back when its time could be over. The timer is not
// touched otherwise, as that would cost more than all the rest of a piece.
func (v *vigil) look(over func()) {
	left := v.limit
	switch since := v.since.Load(); since {
	case vigilEnded:
		return
	case vigilRests:
	default:
		left -= time.Since(v.start) - time.Duration(since)
	}
	if left <= 0 {
		over()
		return
	}
	v.timer.Reset(left)
}
