package provider

import (
	"capgate/capability"
)

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
