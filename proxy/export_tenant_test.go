package proxy

import "time"

// KeepsStale has an agent's server be reached just as another policy comes, and reports whether
// a connection stays that leads where the one before it said.
func (s *Server) KeepsStale(agent string, next *Policy) bool {
	t, err := s.tenant("agents/" + agent)
	if err != nil {
		return false
	}
	u := s.policy.Load().Upstreams[0]
	ended := make(chan struct{})
	t.mu.Lock()
	go func() {
		defer close(ended)
		_, _ = t.line(u)
	}()
	time.Sleep(10 * time.Millisecond) // by which it waits for the lock
	s.policy.Store(next)              // and so did whoever has adopted it
	t.mu.Unlock()
	<-ended
	return len(t.lines) > 0
}

// Holds reports whether something is held of an agent.
func (s *Server) Holds(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tenants["agents/"+agent] != nil
}
