package provider

import (
	"capgate/capability"
)

// Authority answers for one agent, through its whole chain.
type Authority interface {
	// Hosts returns the hosts of a verb that are held, in order and none within
	// another.
	Hosts(v capability.Verb) []capability.Host

	// Require decides one requirement.
	Require(need *capability.Requirement) capability.Decision

	// Waits reports whether every use of a verb waits for somebody's approval.
	Waits(v capability.Verb) bool
}

// Policy is what an agent may have a provider do. Its zero value is nothing.
type Policy struct {
	// Authority is what the agent holds. Nil holds nothing.
	Authority Authority

	// Strict leaves out every host that the provider would take for more than was
	// granted. Otherwise a granted name goes up although the provider includes the
	// names beneath it, and a [Wider] change says so.
	Strict bool

	// Relayed says that the request goes to some other gateway and not to the
	// provider itself. Some of those turn functions with the names of provider
	// tools into these tools.
	Relayed bool

	// Connectors are the foreign MCP servers that the operator lets the provider
	// connect to. Any other is left out of a request.
	Connectors []Connector

	// Uses is told each thing that a request which goes up rests on, and that the agent
	// holds: a verb, and what it is used on, "" for a verb that takes no scope. Nil is
	// told nothing.
	Uses func(v capability.Verb, object string)

	// Pass names members and types that this package does not know and that the
	// operator vouches for. It lets nothing through that is known to be refused.
	Pass []string
}

// Connector is an MCP server that a provider may connect to for an agent. Its
// tools need tool.invoke, as name.tool.
type Connector struct {
	Name  string
	URL   string
	Tools []string // those that it has; what is not here is not offered
}

// holds decides whether the agent holds the verb of an unscopable tool.
func (p Policy) holds(tool string) capability.Decision {
	need, err := capability.Keyed(verbOf(tool))
	if err != nil {
		return capability.Denial(capability.MalformedRequest, nil)
	}
	return p.require(need)
}

// verbOf is the verb of a tool.
func verbOf(tool string) capability.Verb { return capability.Verb("provider." + tool) }

// waits reports whether somebody has to approve a tool whatever it rests on. Nobody can
// be asked in the middle of a request.
func (p Policy) waits(tool string) bool { return p.Authority != nil && p.Authority.Waits(verbOf(tool)) }

const invoke = capability.Verb("tool.invoke")

// invokes decides whether the agent may have the provider call a tool of a connector.
func (p Policy) invokes(c Connector, tool string) capability.Decision {
	need, err := capability.Keyed(invoke, capability.Word{Dim: "tool", Value: c.granted(tool)})
	if err != nil {
		return capability.Denial(capability.MalformedRequest, nil)
	}
	return p.require(need)
}

// granted is what tool.invoke calls a tool of the connector.
func (c Connector) granted(tool string) string { return c.Name + "." + tool }

func (p Policy) require(need *capability.Requirement) capability.Decision {
	if p.Authority == nil {
		return capability.Denial(capability.CapabilityAbsent, need)
	}
	return p.Authority.Require(need)
}

func (p Policy) hosts(v capability.Verb) []capability.Host {
	if p.Authority == nil {
		return nil
	}
	return p.Authority.Hosts(v)
}
