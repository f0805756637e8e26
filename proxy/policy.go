package proxy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/skills"
	"capgate/upstream"
)

// Policy is everything that decisions are made by, at one moment. It is
// immutable: a reload makes a new one, and [Server.Adopt] puts it in force.
type Policy struct {
	Gate        *gate.Gate
	Credentials *agents.Credentials
	Upstreams   []*Upstream     // each under a name of its own
	Providers   []*Provider     // likewise
	Skills      *skills.Library // nil: the gateway has none of its own
	Secrets     Secrets         // nil: none can be filled in
	Hash        string          // names the policy in events
	// Introspection shows agents the gateway's own tools, by which they ask about
	// their authority.
	Introspection bool

	Flags bool // the grants stand on the command line of wrap, and in no record
}

// Secrets knows the values of secrets by their names. A value that it gives is one
// that [Options.Scrub] takes out from then on.
type Secrets interface {
	Value(name string) (string, error)
}

// upstream finds an upstream by name.
func (p *Policy) upstream(name string) *Upstream {
	for _, u := range p.Upstreams {
		if u.Name == name {
			return u
		}
	}
	return nil
}

// root is the directory that an agent works in, "" for one that has none.
func (p *Policy) root(agent string) string {
	if ag, ok := p.Gate.Roster.Agent(agent); ok {
		return p.Gate.Roster.Root(ag).Dir
	}
	return ""
}

// byName returns the upstreams in an order that depends on nothing but their names.
func (p *Policy) byName() []*Upstream {
	return slices.SortedFunc(slices.Values(p.Upstreams), func(a, b *Upstream) int { return strings.Compare(a.Name, b.Name) })
}

// Tool finds a tool by its name among capabilities, without asking any server
// whether it has it. It returns nil when no server could, or several.
func (p *Policy) Tool(name string) *gate.Tool {
	var found *gate.Tool
	for _, u := range p.Upstreams {
		own, ok := name, u.Prefix == ""
		if u.Prefix != "" {
			own, ok = strings.CutPrefix(name, u.Prefix+".")
		} else if u.Mapping != nil && u.Mapping.Tool(name) == nil && len(p.Upstreams) > 1 {
			ok = false
		}
		if !ok {
			continue
		}
		if found != nil {
			return nil
		}
		found = u.Tool(own)
	}
	return found
}

// knows reports whether an agent has a record, if only a broken one. Nobody, for whom there
// are servers that agents share, needs none.
func (p *Policy) knows(agent string) bool {
	_, ok := p.Gate.Roster.Agent(agent)
	return ok || agent == ""
}

// holds reports whether an agent still has a token.
func (p *Policy) holds(id, agent string, now time.Time) bool {
	for c := range p.Credentials.Of(agent) {
		if c.ID == id {
			return c.Expires.IsZero() || now.Before(c.Expires)
		}
	}
	return false
}

// holds reports whether a token is good still. Over stdio there is none.
func (s *Server) holds(credential, agent string) bool {
	return credential == "" || s.policy.Load().holds(credential, agent, s.now())
}

// Upstream is a server behind the gateway, as the policy has it.
type Upstream struct {
	Name     string
	Prefix   string           // what stands before the names of its tools, "" for nothing
	Mapping  *mapping.Mapping // nil: no tool of it is mapped
	View     capability.View  // how it reads paths
	Pins     Pins             // what to do about definitions that are new or changed
	PinsOf   map[string]Pins  // the same for single tools
	MayAsk   []string         // what it may ask of the agent's client: roots, elicitation, sampling
	Shared   bool             // agents share one connection
	Process  bool             // each connection is to a process, of which only so many may run
	Timeout  time.Duration    // of one call
	Identity string           // changes when the server must be started anew

	Declared   *gate.Declaration            // what it touches, nil when nobody says
	Narrower   map[string]*gate.Declaration // the same for single tools
	Unmediated bool

	// Scrub takes secrets out of what the server says, in place of [Options.Scrub]: also those that
	// were learnt of it. Nil: as there.
	Scrub func([]byte) []byte

	modernOnly atomic.Bool // no session can be had of it, as far as is known

	// Open starts or dials the server for one agent.
	Open func(ctx context.Context, p Peer) (upstream.Conn, error)
}

// Pins says what becomes of a tool whose definition was not approved.
type Pins uint8

const (
	Tofu    Pins = iota // the first definition seen is approved, a changed one is hidden
	Require             // only what was approved is shown
	Off                 // every definition is shown
)

// Peer is who a connection is for.
type Peer struct {
	Agent  string // "" when agents share it
	Client upstream.Client
	Events upstream.Sink // what the server sends that belongs to no call

	// Decide asks again for what a server in this process is about to touch.
	Decide func(*capability.Requirement) error

	// Room ends, soon, what somebody has left behind who has servers of his own, as another
	// may not run beside them. It reports whether there was any. It may be nil.
	Room func() bool
}

// pins returns what to do about the definition of one tool.
func (u *Upstream) pins(tool string) Pins {
	if mode, ok := u.PinsOf[tool]; ok {
		return mode
	}
	return u.Pins
}

// mayAsk reports whether the server may ask the agent's client for something.
func (u *Upstream) mayAsk(what string) bool {
	return slices.Contains(u.MayAsk, what)
}

// tellsRoots reports whether the server is told in which directory an agent works.
func (u *Upstream) tellsRoots() bool { return u.mayAsk("roots") && !u.Shared }

// asksClient reports whether what the server asks depends on the client.
func (u *Upstream) asksClient() bool { return u.mayAsk("elicitation") || u.mayAsk("sampling") }

// called is the name of a tool or prompt of the server among capabilities.
func (u *Upstream) called(name string) string {
	if u.Prefix == "" {
		return name
	}
	return u.Prefix + "." + name
}

// Tool returns what the gate must know of a tool, by the server's name for it.
func (u *Upstream) Tool(name string) *gate.Tool {
	declared := u.Declared
	if narrow, ok := u.Narrower[name]; ok {
		declared = narrow
	}
	return &gate.Tool{
		Name: u.called(name), Mapping: u.Mapping.Tool(name), View: u.View, Roots: u.tellsRoots(),
		Declared: declared, Unmediated: u.Unmediated,
	}
}

// promptOf returns what the gate must know of a prompt.
func (u *Upstream) promptOf(name string) *gate.Tool {
	return &gate.Tool{
		Name: u.called(name), Mapping: u.Mapping.Prompt(name), View: u.View, Roots: u.tellsRoots(), Declared: u.Declared, Unmediated: u.Unmediated,
	}
}

// resources returns what the gate must know of the server's resources.
func (u *Upstream) resources() *gate.Resources {
	return &gate.Resources{Name: u.Name, Item: cmp.Or(u.Prefix, u.Name), Mapping: u.Mapping, View: u.View, Declared: u.Declared}
}
