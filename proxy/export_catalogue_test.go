package proxy

// Known is the catalogue that was made last for an agent.
func (s *Server) Known(agent string) (any, error) {
	t, err := s.tenant("agents/" + agent)
	return t.known(), err
}
