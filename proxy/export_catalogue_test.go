package proxy

import "time"

// FailedLongAgo makes each failure to list something one of long ago.
func (s *Server) FailedLongAgo(agent string) error {
	t, err := s.tenant("agents/" + agent)
	for _, l := range t.lines {
		for k := range l.lists {
			g := &l.lists[k]
			g.mu.Lock()
			g.failed = time.Now().Add(-time.Hour)
			g.mu.Unlock()
		}
	}
	return err
}

// Known is the catalogue that was made last for an agent.
func (s *Server) Known(agent string) (any, error) {
	t, err := s.tenant("agents/" + agent)
	return t.known(), err
}

// Looks reports whether lists are made for those who are told of changes, or were just now.
func (s *Server) Looks(agent string) bool {
	t, err := s.tenant("agents/" + agent)
	t.mu.Lock()
	defer t.mu.Unlock()
	return err == nil && t.looking
}
