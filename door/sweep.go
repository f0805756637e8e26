package door

import (
	"sync/atomic"
	"time"
)

const (
	lookTime  = 50 * time.Millisecond // between two looks at who is there
	sleepTime = time.Second           // without such a request, until it sleeps
)

// sweep looks at the guests now and then. A request that it sees twice takes long, and
// from then on somebody waits for the end of its connection. While there are no others it
// sleeps.
type sweep struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// stir wakes it, if need be.
func (s *sweep) stir() {
	if s.asleep.Load() && s.asleep.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}

// run looks until the door is shut and nobody is left.
func (s *sweep) run(d *Door) {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	var guests []*guest
	last := time.Now()
	for {
		select {
		case <-tick.C:
		case <-d.empty:
			return
		}
		clear(guests)
		guests = d.all(guests[:0])
		if looks(guests) {
			last = time.Now()
		}
		if time.Since(last) < sleepTime {
			continue
		}
		s.asleep.Store(true)
		if looks(d.all(nil)) && s.asleep.CompareAndSwap(true, false) {
			continue // one that has begun in between
		}
		tick.Stop()
		guests = nil // who leaves while it sleeps is not kept
		select {
		case <-s.wake:
		case <-d.empty:
			return
		}
		tick.Reset(lookTime)
		last = time.Now()
	}
}

// looks reports whether any of them must be looked at again.
func looks(guests []*guest) bool {
	busy := false
	for _, g := range guests {
		busy = g.look() || busy
	}
	return busy
}
