package provider

import (
	"net/http"

	"capgate/capability"
	"capgate/wire"
)

// The limits of one request.
const (
	maxBody  = wire.MaxBytes // bytes
	maxDepth = wire.MaxDepth // objects and arrays inside each other
)

// Rewrite returns a request as it may go up for an agent, and what was done to it.
// The body is returned as it is, the same bytes, when nothing had to be done. The
// error is a [*Refused]: then nothing goes up.
func (v Vendor) Rewrite(e Endpoint, body []byte, p Policy) (out []byte, changes []Change, err error) {
	if !e.Body {
		if len(body) > 0 {
			return nil, nil, &Refused{http.StatusBadRequest, capability.MalformedRequest, "this endpoint takes no body"}
		}
		return body, nil, nil
	}
	var doc wire.Doc
	if err := doc.Parse(body, wire.Limits{Bytes: maxBody, Depth: maxDepth}); err != nil {
		return nil, nil, &Refused{http.StatusBadRequest, capability.MalformedRequest, err.Error()}
	}
	return nil, nil, &Refused{http.StatusForbidden, capability.NotAvailable, "bodies are not rewritten yet"}
}

// Tool is one of a vendor's own tools as an agent may ask for it.
type Tool struct {
	Name    string   `json:"name"`
	Entry   []byte   `json:"-"` // JSON; nil when the tool is omitted
	Changes []Change `json:"changes,omitempty"`
}

// Observation is something that a response shows and the agent's grants do not
// cover.
type Observation struct {
	Tool string          `json:"tool"`
	Host string          `json:"host,omitempty"`
	Code capability.Code `json:"code"`
	Why  string          `json:"why"`
}

// Watch reads the response of a provider as it passes, and sees what its tools
// did. It never holds a response up, and fails no request: what it cannot read it
// counts as unread.
type Watch struct {
	policy Policy
	vendor Vendor
}

// Watch returns a watch on one response.
func (v Vendor) Watch(p Policy) *Watch { return &Watch{policy: p, vendor: v} }

// Write takes the next bytes of the response. It takes all of them, always.
func (w *Watch) Write(b []byte) (int, error) { return len(b), nil }

// Close ends the response, and returns what was seen.
func (w *Watch) Close() []Observation { return nil }
