package proxy

import (
	"bytes"
	"strings"

	"capgate/wire"
)

// postmark is what is seen of a message that cannot be read, or is too long to be kept:
// the id under which its sender waits for an answer. The message may come in pieces. It is
// read loosely: all that can come of it is that a request of the sender's fails.
type postmark struct {
	begun, ended bool // the object
	beside       bool // there is something outside of it
	depth        int
	quoted       bool
	escaped      bool
	name, text   []byte // of the member that is open, as far as an id may go
	cut          bool   // it goes further
	id           []byte
	ids          int
	answer       bool // it is one, which nobody answers
}

// requestID is the id in a message, nil where another reader may find another, or none.
func requestID(message []byte) []byte {
	var p postmark
	p.read(message)
	return p.requestID()
}

func (p *postmark) requestID() []byte {
	if !p.ended || p.beside || p.answer || p.ids != 1 {
		return nil
	}
	doc, err := wire.Parse(p.id)
	if err != nil || !validID(doc.Root()) {
		return nil
	}
	return doc.Root().Raw()
}

func (p *postmark) read(part []byte) {
	for _, c := range part {
		switch {
		case p.escaped:
			p.escaped = false
		case p.quoted:
			p.quoted, p.escaped = c != '"', c == '\\'
		case p.depth == 0:
			p.outside(c)
			continue
		case p.depth == 1 && p.divides(c):
			continue
		case c == '{' || c == '[':
			p.depth++
		case c == '}' || c == ']':
			p.depth--
		default:
			p.quoted = c == '"'
		}
		switch {
		case p.depth != 1, len(p.text) == 0 && isBlank(c):
		case len(p.text) <= maxID:
			p.text = append(p.text, c)
		default:
			p.cut = true
		}
	}
}

func (p *postmark) outside(c byte) {
	switch {
	case isBlank(c):
	case c == '{' && !p.begun:
		p.begun, p.depth = true, 1
	default:
		p.beside = true
	}
}

// divides reports whether a name or a value ends here.
func (p *postmark) divides(c byte) bool {
	switch c {
	case ':':
		p.name, p.text, p.cut = bytes.TrimSpace(p.text), nil, false
		return true
	case '}':
		p.depth, p.ended = 0, true
	case ',':
	default:
		return false
	}
	switch name := strings.ToLower(string(p.name)); {
	case string(p.name) == `"id"` && !p.cut:
		p.id, p.ids = p.text, p.ids+1
	case name == `"id"` || strings.Contains(name, `\`): // which some take for it, or which is too long
		p.ids++
	case name == `"result"` || name == `"error"`:
		p.answer = true
	}
	p.name, p.text, p.cut = nil, nil, false
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }
