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
	arguments  []argument
	answer     func(*call) []byte
}

// argument is one that such a tool takes.
type argument struct {
	name  string
	kinds []wire.Kind // that it may be of; invalid where it need not be there
	wrong string      // why any other is none
}

// ownPrefix is what no tool of a server is shown with, and ownCalled the same in events.
const (
	ownPrefix = ownName + separator
	ownCalled = ownName + "."
)

const readOnly = `"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}`

// introspections are in the order of their names.
func introspections() []introspection {
	return []introspection{
		{
			name: ownPrefix + "explain", called: ownCalled + "explain", arguments: []argument{
				{"tool", []wire.Kind{wire.String}, "it is the name of a tool"},
				{"arguments", []wire.Kind{wire.Object, wire.Null, wire.Invalid}, "they are not an object"},
			}, answer: (*call).explain,
			definition: `{"name":"` + ownPrefix + `explain","description":"Says whether a call would be allowed, and if not, what is missing. The call is not made.",` +
				`"inputSchema":{"type":"object","properties":{"tool":{"type":"string","description":"the name of the tool"},` +
				`"arguments":{"type":"object","description":"the arguments that it would be called with"}},"required":["tool"],"additionalProperties":false},` + readOnly + `}`,
		},
		{
			name: ownPrefix + "whoami", called: ownCalled + "whoami", answer: (*call).whoami,
			definition: `{"name":"` + ownPrefix + `whoami","description":"Says which agent this is, and what it holds: verbs, and the scope of each.",` +
				`"inputSchema":{"type":"object","additionalProperties":false},` + readOnly + `}`,
		},
	}
}

// reserved reports whether a name could be taken for one of the gateway's own.
func (p *Policy) reserved(exposed string) bool {
	return p.Introspection && strings.HasPrefix(foldName(exposed), ownPrefix)
}

// own finds one of the gateway's own tools.
func (p *Policy) own(exposed string) (introspection, bool) {
	if !p.reserved(exposed) {
		return introspection{}, false
	}
	all := introspections()
	i := slices.IndexFunc(all, func(t introspection) bool { return t.name == exposed })
	if i < 0 {
		return introspection{}, false
	}
	return all[i], true
}

// Own decides on a call of one of the gateway's own tools, by the name that agents see or the one that
// events have: why it is denied, nil if it is not. Not ok is any other tool.
func (p *Policy) Own(agent, name string, args wire.Value) (denied *gate.Verdict, ok bool) {
	if rest, dotted := strings.CutPrefix(name, ownCalled); dotted {
		name = ownPrefix + rest
	}
	t, ok := p.own(name)
	if !ok {
		return nil, false
	}
	deny := func(code capability.Code, argument, why string) (*gate.Verdict, bool) {
		return &gate.Verdict{Decision: capability.Denial(code, nil), Argument: argument, Why: why}, true
	}
	if k := args.Kind(); k != wire.Object && k != wire.Null && k != wire.Invalid {
		return deny(capability.MalformedRequest, "", "the arguments of tools/call are not an object")
	}
	for key := range args.Members() {
		if name, _ := key.Str(); !slices.ContainsFunc(t.arguments, func(a argument) bool { return a.name == name }) {
			return deny(capability.MalformedRequest, "", t.name+" takes no argument of that name")
		}
	}
	if _, err := p.Gate.Roster.Lineage(agent); err != nil {
		return deny(capability.InvalidConfig, "", err.Error())
	}
	for _, a := range t.arguments {
		if v, _ := args.Get(a.name); !slices.Contains(a.kinds, v.Kind()) {
			return deny(capability.MalformedArguments, a.name, a.wrong)
		}
	}
	return nil, true
}

// introspect answers a call of one of the gateway's own tools; not ok is any other.
func (c *call) introspect() (r reply, ok bool) {
	t, ok := c.policy.own(c.exposed)
	if !ok {
		return reply{}, false
	}
	c.target = t.called
	switch denied, _ := c.policy.Own(c.agent, c.exposed, c.args); {
	case denied == nil:
	case denied.Decision.Code == capability.MalformedRequest:
		return c.malformed(denied.Why), true
	default:
		return c.deny(*denied), true
	}
	result := t.answer(c)
	if r, ok := c.allow(gate.Verdict{}); !ok {
		return r, true
	}
	dst := wire.AppendString([]byte(`{"content":[{"type":"text","text":`), string(result))
	dst = append(dst, `}]}`...)
	c.outcome(len(dst), "")
	return reply{result: c.closing(dst)}, true
}

// whoami says what the agent's own record gives it: of what stands above it, and of
// others, it is told nothing.
func (c *call) whoami() []byte {
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
	return append(dst, `]}`...)
}

// explain decides a call as if it were made, in the words of the denial that it
// would get.
func (c *call) explain() []byte {
	name, _ := c.args.Get("tool")
	asked := *c
	asked.args, _ = c.args.Get("arguments")
	asked.exposed, _ = name.Str()
	v, denied := asked.foresee()
	if !denied {
		return []byte(`{"decision":"allow"}`)
	}
	d := c.server.word(asked.denial(v))
	dst := []byte(`{"decision":"deny","why":`)
	dst = append(wire.AppendString(dst, d.why), ',')
	return append(dst, d.body(nil)[1:]...)
}

// foresee decides a call that is not made.
func (c *call) foresee() (v gate.Verdict, denied bool) {
	if _, own := c.policy.own(c.exposed); own {
		refused, _ := c.policy.Own(c.agent, c.exposed, c.args)
		if refused != nil {
			v = *refused
		}
		return v, refused != nil
	}
	t, v := c.judge()
	if t == nil {
		return v, true
	}
	if !v.Decision.Allowed() {
		return v, true
	}
	if _, _, unready := c.prepare(t, v); unready != nil {
		v = *unready
	}
	return v, !v.Decision.Allowed()
}
