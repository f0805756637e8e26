package proxy

import (
	"context"
	"net"
)

// DialOutside has providers reached by another way.
func (s *Server) DialOutside(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	s.outside.DialContext = dial
}
