package proxy

// Foreseen counts what is remembered of an agent's tools under the policy in force.
func (s *Server) Foreseen(agent string) int {
	t, err := s.tenant(agent)
	if err != nil {
		return -1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.foreseen == nil || t.foreseen.policy != s.policy.Load() {
		return 0
	}
	return len(t.foreseen.after)
}
