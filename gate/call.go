package gate

import (
	"errors"
	"slices"
	"sync/atomic"

	"capgate/agents"
	"capgate/capability"
	"capgate/mapping"
	"capgate/wire"
)

// Tool is what is known of a tool besides the arguments of a call. It is
// immutable.
type Tool struct {
	Name    string        // among capabilities: upstream.tool
	Mapping *mapping.Tool // nil for one that no mapping covers
	View    capability.View
	Roots   bool // the server may ask in which directory the agent works

	// Declared is what the operator declares that the tool touches: a call must
	// be inside it. Nil is no declaration. An agent of the Ethos dialect, and each
	// one below it, calls only what is declared, and only where that policy covers
	// all of it, unless the operator wrote that the tool is unmediated.
	Declared   *Declaration
	Unmediated bool

	name atomic.Pointer[capability.Requirement] // to call it, made when it is first needed
}

// called is the requirement to call the tool by its name, whatever the arguments.
func (t *Tool) called() (*capability.Requirement, error) {
	if name := t.name.Load(); name != nil {
		return name, nil
	}
	name, err := capability.Keyed(invoke, capability.Word{Dim: "tool", Value: t.Name})
	if err == nil {
		t.name.Store(name)
	}
	return name, err
}

// Call decides a whole tools/call: is the tool within every ceiling and
// available to the agent, are its verbs held, can the arguments be read, and is
// everything they need allowed?
func (g *Gate) Call(agent string, t *Tool, args wire.Value) Verdict {
	v := g.call(agent, t, args)
	if v.Unmapped = t.Mapping == nil; !v.differs(t.View) {
		return v
	}
	return v.wanting(g.view(agent, t.View, t.Roots), func(view capability.View) ([]mapping.Need, error) {
		return t.Mapping.Require(mapping.Call{Name: t.Name, Args: args, View: view})
	})
}

// differs reports whether what is asked for may be something else than what is needed, as a view has it.
func (v Verdict) differs(view capability.View) bool {
	return !v.Decision.Allowed() && len(v.Needs) > 0 && (v.Unmapped || view.FS != nil && v.ofPaths())
}

// ofPaths reports whether something may be asked for that depends on what lies where. All that is needed before
// what is denied is allowed.
func (v Verdict) ofPaths() bool {
	from := max(0, slices.IndexFunc(v.Needs, func(n mapping.Need) bool { return n.Requirement == v.Decision.Need() }))
	return slices.ContainsFunc(v.Needs[from:], func(n mapping.Need) bool {
		r := n.Requirement.Verb().Resource()
		return r == "fs" || r == "proc"
	})
}

// wanting is a denial with what may be asked for, as it is read without a look at the files.
func (v Verdict) wanting(view capability.View, read func(capability.View) ([]mapping.Need, error)) Verdict {
	view.FS = nil
	if v.Wanted, _ = read(view); v.Wanted == nil { // what cannot be read so is not asked for
		v.Wanted = []mapping.Need{}
	}
	return v
}

func (g *Gate) call(agent string, t *Tool, args wire.Value) Verdict {
	line, denied := g.available(agent, t)
	if denied != nil && denied.Verb == "" {
		return *denied
	}
	needs, err := t.Mapping.Require(mapping.Call{Name: t.Name, Args: args, View: g.view(agent, t.View, t.Roots), Limits: line.Chain.Limits})
	if denied != nil {
		denied.Needs = needs // decided already; what would be needed is worth knowing all the same
		return *denied
	}
	if err != nil {
		return refused(err)
	}
	return t.revealing(line, g.all(line, t.Name, needs))
}

// undisclosed is why a secret is not filled in at a server of which nobody says that
// it takes it.
const undisclosed = "nothing declares which secrets the tool takes"

// revealing denies what would fill in a secret that the operator did not declare of
// the tool: where there is no declaration, there is nothing else to keep it back. That
// a tool is unmediated does not say what it may be told.
func (t *Tool) revealing(line agents.Lineage, v Verdict) Verdict {
	if !v.Decision.Allowed() && v.Approve == "" {
		return v
	}
	for i := range v.Needs {
		if n := &v.Needs[i]; t.Declared == nil && !t.Declares(*n) { // where there is a declaration, it was part of the decision
			return Verdict{
				Decision: decide(line, n.Requirement).Narrowed(undisclosed), Needs: v.Needs, Argument: n.Argument, Why: undisclosed,
			}
		}
	}
	return v
}

// Declares reports whether what a call needs is within the declaration of the tool.
// Without one everything is, except for secrets that are to be filled in.
func (t *Tool) Declares(n mapping.Need) bool {
	if t.Declared == nil {
		return !n.Handle
	}
	return t.Declared.Allows(n.Requirement)
}

// view is how a server reads the paths of an agent. One that asks for roots may take
// the agent's for what relative paths hang from, in place of its own directory.
func (g *Gate) view(agent string, v capability.View, roots bool) capability.View {
	ag, ok := g.Roster.Agent(agent)
	if !ok || !roots {
		return v
	}
	if root := g.Roster.Root(ag); !root.IsZero() && root.Dir != v.Cwd {
		v.Told = append(slices.Clip(v.Told), root.Dir)
	}
	return v
}

// Use decides what a server in this process is about to touch, while it answers a
// call that was allowed: the agent's chain and the server's declaration again.
func (g *Gate) Use(agent string, t *Tool, need *capability.Requirement) Verdict {
	line, denied := g.lineage(agent, need)
	if denied != nil {
		return *denied
	}
	line.Chain = t.Declared.link(line.Chain, t.Name)
	return g.all(line, "", []mapping.Need{{Requirement: need}})
}

// all decides what was read off a message. Without anything to decide there is
// nothing that could allow.
func (g *Gate) all(line agents.Lineage, name string, needs []mapping.Need) Verdict {
	v := Verdict{Needs: needs}
	if len(needs) > 1 {
		v.Grants = make([]*capability.Grant, 0, len(needs))
	}
	for i := range needs {
		need := needs[i].Requirement
		if v.Decision = decide(line, need); !v.Decision.Allowed() {
			v.Why, v.Argument = v.Decision.Link(), needs[i].Argument
			return v
		}
		if g.Fence.Touches(need) {
			v.Decision, v.Why, v.Argument = g.Fence.Deny(need), Fenced, needs[i].Argument
			return v
		}
		if grant := v.Decision.Grant(); grant != nil && len(needs) > 1 && !slices.Contains(v.Grants, grant) {
			v.Grants = append(v.Grants, grant)
		}
	}
	if entry, need := approver(line, name, needs); entry != "" {
		v.Decision, v.Approve = decide(line, need).Narrowed(""), entry
		v.Decision.Code = capability.RequiresApproval
	}
	return v
}

// refused is the verdict on a message that the mapping cannot read.
func refused(err error) Verdict {
	v := Verdict{Decision: capability.Denial(capability.MalformedArguments, nil), Why: err.Error()}
	if r := (*mapping.Refused)(nil); errors.As(err, &r) {
		v.Decision, v.Argument, v.Refused = capability.Denial(r.Code, nil), r.Argument, r
	}
	return v
}

// available decides what can be decided without the arguments. The chain that it
// returns has the tool's declaration as its last link.
func (g *Gate) available(agent string, t *Tool) (agents.Lineage, *Verdict) {
	line, denied := g.lineage(agent, nil)
	if denied != nil {
		return line, denied
	}
	return t.availableTo(line)
}

// availableTo is available, for a lineage.
func (t *Tool) availableTo(line agents.Lineage) (agents.Lineage, *Verdict) {
	name, err := t.called()
	if err != nil {
		return line, &Verdict{Decision: capability.Denial(capability.UnknownTool, nil), Why: err.Error()}
	}
	for _, ceiling := range line.Ceilings {
		if !ceiling.Set.Decide(name).Allowed() {
			why := "toolset of " + ceiling.Name
			return line, &Verdict{Decision: capability.Denial(capability.ScopeViolation, name), Why: why}
		}
	}
	if why := t.undeclared(line); why != "" {
		return line, &Verdict{Decision: capability.Denial(capability.NotAvailable, name), Why: why}
	}
	if v := t.Mapping.Lacking(line.Chain.Holds); v != "" {
		return line, &Verdict{Decision: capability.Denial(capability.CapabilityAbsent, nil), Verb: v}
	}
	line.Chain = t.Declared.link(line.Chain, t.Name)
	return line, nil
}

const (
	invoke  = capability.Verb("tool.invoke")
	execute = capability.Verb("rye.execute.tool")

	exceed = "the tool's declaration exceeds what the agent's policy covers"
	silent = "nothing declares what the tool touches"
)

// undeclared says why a tool is not there for an agent when its policy, or one above
// it, is of the dialect that demands declarations, "" if it is.
func (t *Tool) undeclared(line agents.Lineage) string {
	switch {
	case line.Declared == nil || t.Unmediated:
		return ""
	case t.Declared == nil:
		return silent
	}
	if d, _ := line.Declared.Covers(t.Declared.says); !d.Allowed() {
		return exceed
	}
	return ""
}
