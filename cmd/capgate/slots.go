package main

import (
	"context"
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
}

// shares is into how many parts the places are divided.
const shares = 4

func newSlots(most int) *slots { return &slots{most: most, of: map[string]int{}} }

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

// How long a process that is ended may take to make room for another, and how often one looks for it.
const (
	roomTime  = 5 * time.Second
	placeTime = 20 * time.Millisecond
)

// await is take that has room made where there is none.
func (s *slots) await(ctx context.Context, agent string, room func() bool) bool {
	if s.take(agent) {
		return true
	}
	if room == nil || !room() {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, roomTime)
	defer cancel()
	for !s.take(agent) {
		select {
		case <-time.After(placeTime):
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// give gives the place of an agent back.
func (s *slots) give(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[agent]--; s.of[agent] == 0 {
		delete(s.of, agent)
	}
}
