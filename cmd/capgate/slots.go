package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// slots are the places of the processes that may run at once. Who has a share of them
// already leaves the last share to others: one agent that opens sessions without end
// must not keep another from its first server.
type slots struct {
	most int

	mu    sync.Mutex
	taken int
	of    map[string]int // by agent; those that agents share are nobody's, ""
	heirs map[string][]chan struct{}
}

// shares is into how many parts the places are divided.
const shares = 4

func newSlots(most int) *slots {
	return &slots{most: most, of: map[string]int{}, heirs: map[string][]chan struct{}{}}
}

// take takes a place for a process of an agent, if there is one left for it.
func (s *slots) take(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	free, share := s.most-s.taken, s.most/shares
	if free <= 0 || free <= share && s.of[agent] >= share {
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
// is for who waits, whatever its share is: others have no less of them than before.
func (s *slots) await(ctx context.Context, agent string, room func() bool) bool {
	if s.take(agent) {
		return true
	}
	if room == nil {
		return false
	}
	place := make(chan struct{})
	s.mu.Lock()
	s.heirs[agent] = append(s.heirs[agent], place)
	s.mu.Unlock()
	if !room() {
		return !s.renounce(agent, place)
	}
	ctx, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	select {
	case <-place:
		return true
	case <-ctx.Done():
		return !s.renounce(agent, place)
	}
}

// renounce takes back that somebody waits, and is false if he has a place by now.
func (s *slots) renounce(agent string, place chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.heirs[agent], place)
	if at < 0 {
		return false
	}
	s.heirs[agent] = slices.Delete(s.heirs[agent], at, at+1)
	return true
}

// give gives the place of an agent back.
func (s *slots) give(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if heirs := s.heirs[agent]; len(heirs) > 0 {
		close(heirs[0])
		s.heirs[agent] = heirs[1:]
		return
	}
	s.taken--
	if s.of[agent]--; s.of[agent] == 0 {
		delete(s.of, agent)
		delete(s.heirs, agent)
	}
}
