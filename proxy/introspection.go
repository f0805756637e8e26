package proxy

import (
	"slices"
	"strings"

	"capgate/capability"
	"capgate/gate"
	"capgate/wire"
)

// introspection is a tool of the gateway itself, by which an agent asks about its own
// authority. It needs no grant, and the list of them is exact.
type introspection struct {
	name       string // as agents call it
	called     string // as events have it
	definition string
	arguments  []string
	answer     func(*call) (result []byte, denied *gate.Verdict)
}

// ownPrefix is what no tool of a server is shown with.
const ownPrefix = "capgate" + separator

const readOnly = `"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`

// introspections are in the order of their names.
func introspections() []introspection {
	return []introspection{
		{
			name: ownPrefix + "explain", called: "capgate.explain", arguments: []string{"tool", "arguments"}, answer: (*call).explain,
			definition: `{"name":"` + ownPrefix + `explain","description":"Says whether a call would be allowed, and if not, what is missing. The call is not made.",` +
				`"inputSchema":{"type":"object","properties":{"tool":{"type":"string","description":"the name of the tool"},` +
				`"arguments":{"type":"object","description":"the arguments that it would be called with"}},"required":["tool"],"additionalProperties":false},` + readOnly + `}`,
		},
		{
			name: ownPrefix + "whoami", called: "capgate.whoami", answer: (*call).whoami,
			definition: `{"name":"` + ownPrefix + `whoami","description":"Says which agent this is, and what it holds: verbs, and the scope of each.",` +
				`"inputSchema":{"type":"object","additionalProperties":false},` + readOnly + `}`,
		},
	}
}

// reserved reports whether a name could be taken for one of the gateway's own.
func (p *Policy) reserved(exposed string) bool {
	return p.Introspection && strings.HasPrefix(foldName(exposed), ownPrefix)
}

// introspect answers a call of one of the gateway's own tools; not ok is any other.
func (c *call) introspect() (r reply, ok bool) {
	if !c.policy.reserved(c.exposed) {
		return reply{}, false
	}
	own := introspections()
	i := slices.IndexFunc(own, func(t introspection) bool { return t.name == c.exposed })
	if i < 0 {
		return reply{}, false
	}
	c.target = own[i].called
	for key := range c.args.Members() {
		if name, _ := key.Str(); !slices.Contains(own[i].arguments, name) {
			return c.malformed(c.exposed + " takes no argument of that name"), true
		}
	}
	if _, err := c.policy.Gate.Roster.Lineage(c.agent); err != nil {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.InvalidConfig, nil), Why: err.Error()}), true
	}
	result, denied := own[i].answer(c)
	if denied != nil {
		return c.deny(*denied), true
	}
	if r, ok := c.allow(gate.Verdict{}); !ok {
		return r, true
	}
	dst := wire.AppendString([]byte(`{"content":[{"type":"text","text":`), string(result))
	return reply{result: c.closing(append(dst, `}]}`...))}, true
}

// whoami says what the agent's own record gives it: of what stands above it, and of
// others, it is told nothing.
func (c *call) whoami() (result []byte, denied *gate.Verdict) {
	dst := wire.AppendString([]byte(`{"agent":`), c.agent)
	dst = append(dst, `,"grants":[`...)
	if ag, ok := c.policy.Gate.Roster.Agent(c.agent); ok {
		first := true
		for g := range ag.Set.All() {
			if g.Inert() != "" {
				continue
			}
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = wire.AppendString(append(dst, `{"verb":`...), string(g.Verb()))
			dst = wire.AppendString(append(dst, `,"grant":`...), c.server.cleanText(g.String()))
			dst = append(wire.AppendString(append(dst, `,"risk":`...), g.Risk().String()), '}')
		}
	}
	return append(dst, `]}`...), nil
}

// explain decides a call as if it were made, in the words of the denial that it
// would get.
func (c *call) explain() (result []byte, denied *gate.Verdict) {
	name, _ := c.args.Get("tool")
	asked := *c
	var ok bool
	asked.args, _ = c.args.Get("arguments")
	if k := asked.args.Kind(); k != wire.Object && k != wire.Null && k != wire.Invalid {
		return nil, &gate.Verdict{Decision: capability.Denial(capability.MalformedArguments, nil), Argument: "arguments", Why: "they are not an object"}
	}
	if asked.exposed, ok = name.Str(); !ok {
		return nil, &gate.Verdict{Decision: capability.Denial(capability.MalformedArguments, nil), Argument: "tool", Why: "it is the name of a tool"}
	}
	if slices.ContainsFunc(introspections(), func(t introspection) bool { return t.name == asked.exposed }) {
		return []byte(`{"decision":"allow"}`), nil
	}
	t, v := asked.judge()
	if t != nil {
		if _, unfilled := asked.blanks(v, t.mirror); unfilled != nil {
			v = *unfilled
		}
	}
	if t != nil && v.Decision.Allowed() {
		return []byte(`{"decision":"allow"}`), nil
	}
	d := c.server.word(asked.denial(v))
	dst := []byte(`{"decision":"deny","why":`)
	dst = append(wire.AppendString(dst, d.why), ',')
	return append(dst, d.body(nil)[1:]...), nil
}
