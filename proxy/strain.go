package proxy

import "bytes"

const (
	strained = 16 << 10 // bytes that are kept of what has no end in sight, to join them with what follows
	between  = " \t\r\n\"{}[],"
)

// strainer takes secrets out of an answer that comes in pieces. A piece goes on at
// once, up to the last byte that no secret of a provider can hold, in whichever
// form: what stands behind it could be the first half of one, and waits for the
// rest. Where such bytes are far apart, as in a picture, it keeps the last of them
// that a secret could begin in.
type strainer struct {
	scrub func([]byte) []byte
	least int // bytes of the key, and of no form of it fewer
	held  []byte
}

// pass returns what can go on. It is good until the next call.
func (s *strainer) pass(piece []byte) []byte {
	if s.scrub == nil {
		return piece
	}
	end := bytes.LastIndexAny(piece, between) + 1
	if len(s.held) == 0 && end == len(piece) {
		return s.clean(piece)
	}
	if end > 0 {
		whole := append(s.held, piece[:end]...)
		s.held = append([]byte(nil), piece[end:]...)
		return s.clean(whole)
	}
	s.held = append(s.held, piece...)
	if len(s.held) <= 2*strained {
		return nil
	}
	clean := s.clean(s.held)
	cut := max(0, len(clean)-strained)
	s.held = append([]byte(nil), clean[cut:]...)
	return clean[:cut]
}

// rest returns what was kept, when nothing follows.
func (s *strainer) rest() []byte {
	if s.scrub == nil {
		return nil
	}
	held := s.held
	s.held = nil
	return s.clean(held)
}

// clean scrubs a text in which the key can stand at all: to look for as many bytes
// in a row as it has is much the cheaper, and most words are shorter.
func (s *strainer) clean(text []byte) []byte {
	for end := s.least; end <= len(text); {
		last := bytes.LastIndexAny(text[end-s.least:end], between)
		if last < 0 {
			return s.scrub(text)
		}
		end += last + 1
	}
	return text
}

// isStrained reports whether a strainer finds a key wherever it stands.
func isStrained(key string) bool {
	for i := range len(key) {
		if key[i] <= ' ' || key[i] > '~' || bytes.IndexByte([]byte(between), key[i]) >= 0 {
			return false
		}
	}
	return key != ""
}
