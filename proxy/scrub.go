package proxy

import (
	"bytes"
	"errors"

	"capgate/capability"
	"capgate/wire"
)

var errScrubbed = errors.New("the result is no longer one once the secrets in it are taken out")

// scrubberOf is what takes secrets out of what a server says, nil where nothing does.
func (s *Server) scrubberOf(u *Upstream) func([]byte) []byte {
	if u != nil && u.Scrub != nil {
		return u.Scrub
	}
	return s.scrub
}

// clean takes secrets out of what a server wrote, nil for what is nobody's. What is changed must be
// JSON still.
func (s *Server) clean(u *Upstream, b []byte) ([]byte, bool) {
	scrub := s.scrubberOf(u)
	if scrub == nil {
		return b, true
	}
	clean := scrub(b)
	if len(clean) == len(b) && (len(b) == 0 || &clean[0] == &b[0]) {
		return b, true
	}
	var doc wire.Doc
	return clean, doc.ParseLoosely(clean, wire.Limits{Bytes: len(clean) + 1}) == nil
}

// cleanText is clean for a text of ours.
func (s *Server) cleanText(text string) string {
	if s.texts != nil {
		return s.texts(text)
	}
	if s.scrub == nil || text == "" {
		return text
	}
	return string(s.scrub([]byte(text)))
}

// isClean reports whether nothing secret is in what a server wrote.
func (s *Server) isClean(u *Upstream, b []byte) bool {
	clean, ok := s.clean(u, b)
	return ok && bytes.Equal(clean, b)
}

// why a definition is shown to nobody
const secretWithin = "a secret of the gateway's stands in its definition"

// cleanOnly rules out a definition that a secret stands in, whoever has approved it.
func (s *Server) cleanOnly(u *Upstream, held ruling, definition []byte) ruling {
	if !s.isClean(u, definition) {
		return ruling{capability.ToolRejected, secretWithin}
	}
	return held
}

// scrubbed is what is left to show of what a server wrote once secrets are taken out.
func (c *call) scrubbed(u *Upstream, b []byte) []byte {
	if clean, ok := c.server.clean(u, b); ok {
		return clean
	}
	return []byte("{}")
}
