package proxy

import (
	"bytes"
	"errors"

	"capgate/capability"
	"capgate/wire"
)

var errScrubbed = errors.New("the result is no longer one once the secrets in it are taken out")

// clean takes secrets out of what a server wrote. What is changed must be JSON
// still.
func (s *Server) clean(b []byte) ([]byte, bool) {
	if s.scrub == nil {
		return b, true
	}
	clean := s.scrub(b)
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
func (s *Server) isClean(b []byte) bool {
	clean, ok := s.clean(b)
	return ok && bytes.Equal(clean, b)
}

// why a definition is shown to nobody
const secretWithin = "a secret of the gateway's stands in its definition"

// cleanOnly rules out a definition that a secret stands in, whoever has approved it.
func (s *Server) cleanOnly(held ruling, definition []byte) ruling {
	if !s.isClean(definition) {
		return ruling{capability.ToolRejected, secretWithin}
	}
	return held
}

// scrubbed is what is left to show of what a server wrote once secrets are taken out.
func (c *call) scrubbed(b []byte) []byte {
	if clean, ok := c.server.clean(b); ok {
		return clean
	}
	return []byte("{}")
}
