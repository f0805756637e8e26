package provider

import "capgate/capability"

// What was done to a request.
const (
	Omitted  = "omitted"  // a tool was left out
	Narrowed = "narrowed" // a tool reaches less than was asked for
	Repaired = "repaired" // what hangs from it was put right

	// Wider says that the provider takes a granted name for itself and everything
	// beneath, which is more than was granted.
	Wider = "provider_scope_wider"
)

// Change is one thing that was done to a request, or, for [Wider], that goes
// further than the grants do.
type Change struct {
	Tool  string          `json:"tool"` // type or name of the tool, or the member of the request
	Did   string          `json:"did"`
	Code  capability.Code `json:"code,omitempty"`
	Why   string          `json:"why"`
	Hosts []string        `json:"hosts,omitempty"` // what the tool reaches now; for Wider, what is wider
	Tools []string        `json:"tools,omitempty"` // of an MCP server: what it offers now, as tool.invoke names it
}

// Refused is why a request does not go up at all.
type Refused struct {
	Status int // of HTTP
	Code   capability.Code
	Why    string // a clause, safe to show to the agent
	Detail string // the vendor's own word for it that its clients go by, "" for none
}

// Error returns the sentence.
func (r *Refused) Error() string { return string(r.Code) + ": " + r.Why }
