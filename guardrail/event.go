package guardrail

import (
	"fmt"
	"time"
)

// The kinds of events.
const (
	Decision = "decision" // a call was allowed or denied
	Outcome  = "outcome"  // what became of an allowed call
	Refusal  = "refusal"  // a message was refused before there was anything to decide
	Notice   = "notice"   // start, stop, reload, record, tool that is hidden, pin, session, token, login
)

// The kinds of lines that a log writes by itself; no event may call itself so.
// All of them are signed.
const (
	lineBegin      = "begin"      // the first line of a file
	lineCheckpoint = "checkpoint" // vouches for all lines above it
	lineEnd        = "end"        // the last line of a file that was closed or rotated
)

// Need is one requirement of a call.
type Need struct {
	Verb     string   `json:"verb"`
	Object   string   `json:"object"`             // the canonical target
	Also     []string `json:"also,omitempty"`     // what else it may be read as, and where its links lead
	In       string   `json:"in,omitempty"`       // the directory that a program runs in
	Argument string   `json:"argument,omitempty"` // the name of the argument that named it
}

// Event is what a gateway did. It holds names of arguments and the targets of
// requirements, and no other value of an argument.
type Event struct {
	Kind string `json:"kind"`
	Call string `json:"call,omitempty"` // ties an outcome to its decision

	Agent    string `json:"agent,omitempty"`
	Session  string `json:"session,omitempty"`
	Upstream string `json:"upstream,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Method   string `json:"method,omitempty"`

	Decision string `json:"decision,omitempty"` // "allow" or "deny"
	Code     string `json:"code,omitempty"`
	Needs    []Need `json:"needs,omitempty"`
	Grant    string `json:"grant,omitempty"`    // the grant that decided, or all that did
	Link     string `json:"link,omitempty"`     // the link of the chain that denied
	Policy   string `json:"policy,omitempty"`   // hash of the policy in force
	Argument string `json:"argument,omitempty"` // the argument that gave offence
	Text     string `json:"text,omitempty"`     // for the operator

	Names     []string `json:"names,omitempty"` // of the call's arguments
	MoreNames int      `json:"more_names,omitempty"`

	Latency time.Duration `json:"latency_ns,omitempty"` // of an outcome, and so are the next two
	Bytes   int           `json:"bytes,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// Recorder records events. The reference names the event in denials, and
// Filter.Ref finds it.
//
// An error means that the event is not recorded: a call that was allowed is
// then not forwarded.
type Recorder interface {
	Record(e *Event) (ref string, err error)
}

// How much of an event is kept. Sizes are those of the escaped text; what is
// longer is cut, and says by how many bytes.
const (
	maxName   = 256
	maxObject = 4096
	maxText   = 4096
	maxAside  = 768 // of what stands beside an object
	maxAlso   = 2   // of one need
	maxNeeds  = 32
	maxNames  = 64
)

// maxLine bounds a line with all its fields at their limits.
const maxLine = 256 << 10

// appendEvent appends the members of an event that stand behind its time.
func (d *draft) appendEvent(e *Event) error {
	switch e.Kind {
	case Decision, Outcome, Refusal, Notice:
	default:
		return fmt.Errorf("record event: there is no kind %q", e.Kind)
	}
	d.about = e.Upstream
	d.name("kind", e.Kind)
	d.name("call", e.Call)
	d.name("agent", e.Agent)
	d.name("session", e.Session)
	d.name("upstream", e.Upstream)
	tool, method, argument := e.Tool, e.Method, e.Argument
	if e.Code != "" || e.Kind == Refusal || e.Kind == Notice { // of a tool that there may not be, or of what a server asks: by its own words
		tool, method, argument = d.scrubbed(tool), d.scrubbed(method), d.scrubbed(argument)
	}
	d.name("tool", tool)
	d.name("method", method)
	d.name("decision", e.Decision)
	d.name("code", e.Code)
	d.needs(e.Needs)
	d.text("grant", e.Grant)
	d.text("link", d.scrubbed(e.Link))
	d.name("policy", e.Policy)
	d.name("argument", argument)
	if d.mac == nil || e.Kind != Decision { // the words of a decision quote its targets
		d.text("text", d.scrubbed(e.Text))
	}
	d.names(e.Names, e.MoreNames)
	d.number("latency_ns", int64(e.Latency))
	d.number("bytes", int64(e.Bytes))
	d.text("error", d.scrubbed(e.Error))
	return nil
}

func (d *draft) needs(needs []Need) {
	if len(needs) == 0 {
		return
	}
	d.buf = append(d.buf, `,"needs":[`...)
	for i, n := range needs[:min(len(needs), maxNeeds)] {
		if i > 0 {
			d.buf = append(d.buf, ',')
		}
		d.buf = append(d.buf, `{"verb":`...)
		d.buf = appendString(d.buf, n.Verb, maxName)
		d.buf = append(d.buf, `,"object":`...)
		d.object(n.Object, maxObject)
		d.also(n.Also)
		if n.In != "" {
			d.key("in")
			d.object(n.In, maxAside)
		}
		d.name("argument", n.Argument)
		d.buf = append(d.buf, '}')
	}
	d.buf = append(d.buf, ']')
	d.number("more_needs", int64(max(0, len(needs)-maxNeeds)))
}

// also appends the other targets of a need.
func (d *draft) also(targets []string) {
	if len(targets) == 0 {
		return
	}
	d.buf = append(d.buf, `,"also":[`...)
	for i, target := range targets[:min(len(targets), maxAlso)] {
		if i > 0 {
			d.buf = append(d.buf, ',')
		}
		d.object(target, maxAside)
	}
	d.buf = append(d.buf, ']')
	d.number("more_also", int64(max(0, len(targets)-maxAlso)))
}

func (d *draft) names(names []string, more int) {
	if len(names) == 0 {
		return
	}
	d.buf = append(d.buf, `,"names":[`...)
	for i, name := range names[:min(len(names), maxNames)] {
		if i > 0 {
			d.buf = append(d.buf, ',')
		}
		d.buf = appendString(d.buf, d.scrubbed(name), maxName)
	}
	d.buf = append(d.buf, ']')
	d.number("more_names", int64(more+max(0, len(names)-maxNames)))
}
