package proxy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/skills"
	"capgate/wire"
)

// Shown is one tool as an operator sees it: under its names, and why an agent
// does not see it, if that is so.
type Shown struct {
	Name     string            `json:"name"`     // what agents call it
	Tool     string            `json:"tool"`     // among capabilities
	Upstream string            `json:"upstream"` // whose it is
	Visible  bool              `json:"visible"`
	Code     capability.Code   `json:"code,omitempty"`  // why it is hidden
	Why      string            `json:"why,omitempty"`   // the same in words
	Verbs    []capability.Verb `json:"verbs"`           // what calls of it may need
	Requires []mapping.Role    `json:"requires"`        // the same, argument by argument
	Risk     capability.Risk   `json:"risk"`            // of the riskiest of them
	Scope    string            `json:"scope,omitempty"` // what its description says that arguments may name
	Bytes    int               `json:"bytes"`           // of its definition as the agent sees it
	Tokens   int               `json:"tokens"`          // what a model reads of that, about
}

// Look fetches the tools of every server for an agent, and says of each whether
// the agent sees it. Missing names the servers that did not answer.
func (s *Server) Look(ctx context.Context, agent string) (tools []Shown, missing []string, err error) {
	cat, missing, err := s.looked(ctx, agent, toolList)
	if err != nil {
		return nil, nil, err
	}
	survey := cat.policy.Gate.Survey(agent, held)
	for _, one := range cat.tools {
		tools = append(tools, cat.show(s, survey, agent, one))
	}
	if cat.policy.Introspection {
		tools = append(tools, showOwn()...)
	}
	slices.SortFunc(tools, func(a, b Shown) int {
		return strings.Compare(a.Name, b.Name)
	})
	return tools, missing, nil
}

// looked is what an agent sees, and the names of the servers that did not give one of
// their lists.
func (s *Server) looked(ctx context.Context, agent string, k listKind) (cat *catalogue, missing []string, err error) {
	t, err := s.tenant(agent)
	if err != nil {
		return nil, nil, err
	}
	if cat, err = t.catalogue(ctx); err == nil && cat.settle(ctx) {
		cat, err = t.catalogue(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	for i := range cat.sources {
		if !cat.sources[i].editions[k].isKnown() {
			missing = append(missing, cat.sources[i].up.Name)
		}
	}
	return cat, missing, nil
}

// settle waits for the lists that agents are not kept waiting for, as those of a server
// that takes long to start. It reports whether there were any.
func (c *catalogue) settle(ctx context.Context) (waited bool) {
	for i := range c.sources {
		for k := range listKinds {
			g := &c.sources[i].line.lists[k]
			g.mu.Lock()
			busy := g.busy
			g.mu.Unlock()
			if busy == nil {
				continue
			}
			waited = true
			select {
			case <-busy:
			case <-ctx.Done():
			}
		}
	}
	return waited
}

// ShownSkill is one skill as an operator sees it, the gateway's own or a server's.
type ShownSkill struct {
	URI      string // of its folder, as agents see it; "" where there is none to be told
	Upstream string // whose it is, "" for one of the gateway's own
	Files    int
	Visible  bool
	Why      string            // what hides it beside what the agent lacks, "" if nothing does
	Waits    string            // the name under which it waits for approval, if that is what hides it
	About    *skills.Skill     // what it says of itself, as far as that may be told
	Lacks    gate.Satisfaction // what the gate says of the agent
}

// LookSkills fetches the skills of every server for an agent, and says of each, and of
// the gateway's own, whether the agent sees it. Missing names the servers that did not
// answer.
func (s *Server) LookSkills(ctx context.Context, agent string) (all []ShownSkill, missing []string, err error) {
	cat, missing, err := s.looked(ctx, agent, skillList)
	if err != nil {
		return nil, nil, err
	}
	for _, one := range cat.skilled {
		all = append(all, cat.showSkill(s, agent, one))
	}
	return all, missing, nil
}

func (c *catalogue) showSkill(s *Server, agent string, one *skill) ShownSkill {
	out := ShownSkill{URI: one.root, Files: len(one.files), Visible: one.hidden == "", About: one.about, Lacks: c.policy.Gate.Skill(agent, one.about)}
	from := one.server()
	if from != nil {
		out.Upstream = from.Name
	}
	if one.hidden != lacking(out.Lacks) {
		out.Why = one.hidden
	}
	if one.held.code == capability.ToolQuarantined && out.Why == one.held.why {
		if pin := skillPin + one.from.uri(); quoted(pin) <= maxPinName {
			out.Waits = pin
		}
	}
	told := []string{out.Why, out.Waits, one.about.Path, one.about.Description, one.about.Broken}
	for _, n := range one.about.Needs {
		told = append(told, n.Token, n.String())
	}
	if !s.isClean(from, []byte(strings.Join(told, "\n"))) {
		out.About, out.Lacks, out.Why, out.Waits = new(skills.Skill), gate.Satisfaction{}, secretWithin, ""
	}
	if !s.isClean(from, []byte(out.URI)) {
		out.URI = ""
	}
	return out
}

// showOwn are the tools of the gateway itself, which every agent sees.
func showOwn() []Shown {
	var own []Shown
	for _, t := range introspections() {
		own = append(own, Shown{
			Name: t.name, Tool: t.called, Upstream: ownName, Visible: true, Verbs: []capability.Verb{}, Requires: []mapping.Role{},
			Bytes: len(t.definition), Tokens: tokens([]byte(t.definition)),
		})
	}
	return own
}

// bytesOfToken is how many bytes of a definition most models take for one token.
const bytesOfToken = 4

// tokens estimates what a model reads of a definition: the name, the description and
// what arguments it takes.
func tokens(definition []byte) int {
	var doc wire.Doc
	if doc.ParseLoosely(definition, wire.Limits{Bytes: len(definition) + 1}) != nil {
		return 0
	}
	size := 0
	for _, name := range [...]string{"name", "description", "inputSchema"} {
		v, _ := doc.Root().Get(name)
		size += len(v.Raw())
	}
	return (size + bytesOfToken - 1) / bytesOfToken
}

// requires says what calls of a tool need, its name too where that is needed.
func requires(t *gate.Tool) []mapping.Role {
	roles := append([]mapping.Role{}, t.Mapping.Roles()...)
	const invoke = capability.Verb("tool.invoke")
	if slices.Contains(t.Mapping.Surface(), invoke) {
		roles = append(roles, mapping.Role{Verbs: []capability.Verb{invoke}, Fixed: capability.Spec{Verb: string(invoke)}.With("tool", t.Name).String()})
	}
	return roles
}

// lack says why no call of a tool could be allowed to an agent.
func (c *catalogue) lack(agent string, t *gate.Tool) (capability.Code, string) {
	verbs := t.Mapping.Surface()
	switch v := c.policy.Gate.Call(agent, t, wire.Value{}); {
	case v.Verb != "":
		why := fmt.Sprintf("no call of it could be allowed: it may need %v", verbs)
		if t.Mapping == nil {
			why += ", as no mapping covers it"
		}
		return capability.CapabilityAbsent, why
	case strings.HasPrefix(v.Why, "toolset of "):
		return v.Decision.Code, "no call of it is allowed by the " + v.Why
	case v.Decision.Code == capability.NotAvailable || v.Decision.Code == capability.InvalidConfig:
		return v.Decision.Code, v.Why
	}
	if free := (&gate.Tool{Name: t.Name, Mapping: t.Mapping, View: t.View, Roots: t.Roots, Unmediated: true}); c.policy.Gate.Visible(agent, free) {
		return capability.ScopeViolation, fmt.Sprintf("no call of it could be allowed: what is declared of %v is not enough for any, see declares: of the upstream or its mapping", verbs)
	}
	return capability.ScopeViolation, fmt.Sprintf("no call of it could be allowed: what is held of %v is not enough for any", verbs)
}

func (c *catalogue) show(s *Server, survey *gate.Survey, agent string, t *tool) Shown {
	one := Shown{Name: t.exposed, Tool: t.gate.Name, Upstream: t.up.Name, Verbs: t.gate.Mapping.Surface(), Requires: requires(t.gate)}
	for _, v := range one.Verbs {
		if e, ok := capability.Lookup(v); ok {
			one.Risk = max(one.Risk, e.Risk)
		}
	}
	switch {
	case t.blocked != "":
		one.Code, one.Why = t.blocked, t.why
	case !c.policy.Gate.Visible(agent, t.gate):
		one.Code, one.Why = c.lack(agent, t.gate)
	default:
		one.Visible = true
		if scope := narrowing(survey.Scopes(t.gate)); s.isClean(nil, []byte(scope)) {
			one.Scope = scope
		}
	}
	definition := advertised(t.raw, t.exposed, one.Scope)
	one.Bytes, one.Tokens = len(definition), tokens(definition)
	return one
}
