package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots are the places of the processes that may run at once. Of those that others have left,
// an agent leaves one share: one that opens sessions without end must not keep another from its
// first server, and neither must two.
type slots struct {
	most int

	mu    sync.Mutex
	taken int
	of    map[string]int // by agent; those that agents share are nobody's, ""
	heirs []heir         // the first to come first
}

// heir is who waits for a place.
type heir struct {
	agent string
	place chan struct{} // closed when it has one
}

// shares is into how many parts those are divided.
const shares = 4

func newSlots(most int) *slots {
	return &slots{most: most, of: map[string]int{}}
}

// take takes a place for a process of an agent, if there is one left for it.
func (s *slots) take(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claim(agent)
}

// claim is take, with the lock held.
func (s *slots) claim(agent string) bool {
	if free := s.most - s.taken; s.of[agent] >= (shares-1)*free {
		return false
	}
	s.taken++
	s.of[agent]++
	return true
}

// roomTime is how long a process that is ended may take to make room for another: longer than it is
// before one that heeds nothing is killed.
const roomTime = 8 * time.Second

// await is take that has room made where there is none. The next place that the agent gives back
// is for who waits, whatever its share is: others have no less of them than before. So is the next of
// another that it may take.
func (s *slots) await(ctx context.Context, agent string, room func() bool) bool {
	if s.take(agent) {
		return true
	}
	if room == nil {
		return false
	}
	place := make(chan struct{})
	s.mu.Lock()
	s.heirs = append(s.heirs, heir{agent, place})
	s.mu.Unlock()
	if !room() {
		return !s.renounce(place)
	}
	ctx, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	select {
	case <-place:
		return true
	case <-ctx.Done():
		return !s.renounce(place)
	}
}

// renounce takes back that somebody waits, and is false if he has a place by now.
func (s *slots) renounce(place chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.heirs, func(h heir) bool { return h.place == place })
	if at >= 0 {
		s.heirs = slices.Delete(s.heirs, at, at+1)
	}
	return at >= 0
}

// give gives the place of an agent back.
func (s *slots) give(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slices.IndexFunc(s.heirs, func(h heir) bool { return h.agent == agent })
	if next < 0 {
		s.taken--
		if s.of[agent]--; s.of[agent] == 0 {
			delete(s.of, agent)
		}
		next = slices.IndexFunc(s.heirs, func(h heir) bool { return s.claim(h.agent) })
	}
	if next >= 0 {
		close(s.heirs[next].place)
		s.heirs = slices.Delete(s.heirs, next, next+1)
	}
}
