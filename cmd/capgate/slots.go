package main

import "sync"

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

// give gives the place of an agent back.
func (s *slots) give(agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken--
	if s.of[agent]--; s.of[agent] == 0 {
		delete(s.of, agent)
	}
}
