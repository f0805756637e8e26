package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/mapping"
	"capgate/proxy"
	"capgate/wire"
)

// asked is one requirement of a call, and what becomes of it.
type asked struct {
	Need     string `json:"need"`
	Argument string `json:"argument,omitempty"`
	Decision string `json:"decision"`
	Code     string `json:"code,omitempty"`
	Grant    string `json:"grant,omitempty"`
	Source   string `json:"source,omitempty"`
}

// explainCall answers whether a whole call would be forwarded, as the gateway
// would: the arguments are read as strictly, and the same gate decides.
func (w *world) explainCall(ag *agents.Agent, q question) explanation {
	x := explanation{Agent: ag.ID, Tool: q.tool, Decision: capability.Deny.String()}
	doc, err := wire.Parse([]byte(q.args))
	if err != nil {
		x.Code, x.Why = string(capability.MalformedRequest), "the arguments are not strict JSON: "+err.Error()
		x.Blocked = "no grant changes that"
		return x
	}
	if denied, own := w.policy.Own(ag.ID, q.tool, doc.Root()); own {
		x.Decision, x.Why = capability.Allow.String(), "it is the gateway's own, and needs no grant"
		if denied != nil {
			x.Decision, x.Code = capability.Deny.String(), string(denied.Decision.Code)
			x.Argument, x.Why = denied.Argument, denied.Why
			if denied.Decision.Code != capability.InvalidConfig {
				x.Blocked = "no grant changes that"
			}
		}
		return x
	}
	t, up, why := w.toolNamed(q.tool)
	if t == nil {
		x.Code, x.Why = string(capability.UnknownTool), why
		if d, ok := w.connected(ag.ID, q.tool); ok {
			x.Decision, x.Code = d.Effect.String(), string(d.Code)
			x.Why = "it is a tool of a server that a model's provider connects to: the arguments of its calls are not seen here"
		}
		return x
	}
	c := explainedCall{world: w, agent: ag, tool: t, upstream: up, open: q.open, verdict: w.gate.Call(ag.ID, t, doc.Root())}
	x.Tool = t.Name
	c.explain(&x, doc.Root())
	if x.Unseen = c.unseen(); x.Unseen { // no edit would make a tool of it
		x.Allow = nil
	}
	return x
}

// exposedSeparator stands between an upstream's prefix and its tool in the names
// that agents see.
const exposedSeparator = "__"

// toolNamed finds a tool by its name among capabilities or by the one that agents
// see, and the upstream that it would be of. Without one it says why.
func (w *world) toolNamed(name string) (t *gate.Tool, upstream, why string) {
	called, why := w.called(name)
	if why != "" {
		return nil, "", why
	}
	up := w.upstreamOf(called)
	if t = w.policy.Tool(called); t == nil && up != nil && up.Prefix == "" {
		if up = w.alone(called); up != nil {
			t = up.Tool(called)
		}
	}
	if t == nil || up == nil {
		return nil, "", "no upstream has a tool of that name, or several could" + w.upstreamsThereAre()
	}
	own := called
	if up.Prefix != "" {
		own = strings.TrimPrefix(called, up.Prefix+".")
	}
	for _, u := range w.cfg.Upstreams {
		if u.Name == up.Name && u.Builtin != "" && up.Mapping.Tool(own) == nil {
			return nil, "", fmt.Sprintf("the upstream %s has no tool %q; it has %s", u.Name, own, strings.Join(up.Mapping.Names(), ", "))
		}
	}
	return t, up.Name, ""
}

// called turns a name that agents see into the one among capabilities. Agents see
// an underscore where the server's name has a dot, so that two tools may claim it.
func (w *world) called(name string) (called, why string) {
	for _, u := range w.policy.Upstreams {
		shown, ok := strings.CutPrefix(name, u.Prefix+exposedSeparator)
		if u.Prefix == "" || !ok || strings.Contains(shown, ".") {
			continue
		}
		claim := slices.DeleteFunc(u.Mapping.Names(), func(own string) bool { return strings.ReplaceAll(own, ".", "_") != shown })
		switch len(claim) {
		case 0:
			return u.Prefix + "." + shown, ""
		case 1:
			return u.Prefix + "." + claim[0], ""
		}
		return "", fmt.Sprintf("%s claim this name, so that none of them has it", strings.Join(claim, " and "))
	}
	return name, ""
}

// upstreamOf is the upstream whose tool a name among capabilities is.
func (w *world) upstreamOf(called string) (found *proxy.Upstream) {
	for _, u := range w.policy.Upstreams {
		if u.Prefix != "" && strings.HasPrefix(called, u.Prefix+".") {
			return u
		}
		if u.Prefix == "" && (found == nil || u.Mapping.Tool(called) != nil) {
			found = u
		}
	}
	return found
}

// alone is the one upstream without a prefix at which a tool of that name was seen, where all of them have been seen.
func (w *world) alone(called string) (found *proxy.Upstream) {
	k := w.kept()
	if _, err := os.Stat(k.state); err != nil {
		return nil
	}
	rows, err := k.pinned(nil)
	if err != nil {
		return nil
	}
	for _, u := range w.policy.Upstreams {
		if u.Prefix != "" || u.Mapping != nil && u.Mapping.Tool(called) == nil {
			continue
		}
		own := slices.DeleteFunc(slices.Clone(rows), func(row pinRow) bool { return row.Upstream != u.Name })
		switch has := slices.ContainsFunc(own, func(row pinRow) bool { return row.Tool == called }); {
		case len(own) == 0 || k.mode(u.Name, called) == proxy.Off || has && found != nil:
			return nil
		case has:
			found = u
		}
	}
	return found
}

func (w *world) upstreamsThereAre() string {
	var names []string
	for _, u := range w.cfg.Upstreams {
		names = append(names, u.Name)
	}
	if len(names) == 0 {
		return ": there are no upstreams"
	}
	return "; the upstreams are " + strings.Join(names, ", ")
}

// explainedCall is a call that the gate has decided on, while it is explained.
type explainedCall struct {
	world    *world
	agent    *agents.Agent
	tool     *gate.Tool
	upstream string
	open     bool // nothing is said of the arguments
	verdict  gate.Verdict
}

func (c *explainedCall) explain(x *explanation, args wire.Value) {
	v, d := c.verdict, c.verdict.Decision
	x.Decision, x.Code, x.Argument, x.Why = d.Effect.String(), string(d.Code), v.Argument, cmp.Or(d.Reason(), v.Why)
	if need := d.Need(); need != nil {
		x.Need, x.Held = need.String(), d.Held()
		if !d.Allowed() {
			x.Also = need.Also()
		}
		if g := d.Nearest(); g != nil && !d.Allowed() {
			x.Nearest, x.NearAt = g.String(), g.Spec().Pos.String()
		}
	}
	if c.tool.Mapping == nil {
		x.Note = "no mapping covers this tool, so that a call of it needs tool.invoke of its name"
	}
	needs, refused := c.needs(args)
	for _, n := range needs {
		x.Needs = append(x.Needs, c.ask(n))
	}
	switch {
	case d.Allowed():
		x.Held = nil
		if g := d.Grant(); len(needs) == 1 && g != nil {
			x.Grant, x.Source = g.String(), g.Spec().Pos.String()
		}
	case v.Approve != "":
		x.Why, x.Held, x.Nearest, x.NearAt, x.Also = "approve: lists "+v.Approve, nil, "", "", nil
		x.Blocked = unapproved
	default:
		c.denied(x, needs, refused)
		return
	}
	if c.collide(x); x.Decision == capability.Allow.String() {
		c.quarantine(x)
	}
	if x.Decision == capability.Allow.String() {
		c.fill(x, args)
	}
}

// fill says of a call that is allowed that its secrets cannot be filled in, as far as is seen from here.
func (c *explainedCall) fill(x *explanation, args wire.Value) {
	v := c.world.policy.Unfilled(args, c.verdict)
	if v == nil {
		return
	}
	c.verdict = *v
	*x = explanation{Agent: x.Agent, Tool: x.Tool}
	c.explain(x, args)
	if v.Decision.Code == capability.NotAvailable {
		x.Blocked = "no grant changes that: set the secret where the gateway is started"
		x.Note = "it was looked for here; a gateway that was started elsewhere may have it"
	}
}

// own is the server's own name of the tool.
func (c *explainedCall) own() string {
	if up := c.world.upstreamOf(c.tool.Name); up.Prefix != "" {
		return strings.TrimPrefix(c.tool.Name, up.Prefix+".")
	}
	return c.tool.Name
}

// unseen reports whether definitions of the server's tools are known, and none of this one, which may have
// been asked for as agents see it.
func (c *explainedCall) unseen() bool {
	k, own := c.world.kept(), c.own()
	if _, err := os.Stat(k.state); err != nil || k.mode(c.upstream, own) == proxy.Off {
		return false
	}
	rows, err := k.pinned([]string{c.upstream})
	if err != nil {
		return false
	}
	tools := false
	for _, row := range rows {
		if row.Tool == own || strings.ReplaceAll(row.Tool, ".", "_") == own {
			return false
		}
		tools = tools || !strings.Contains(row.Tool, ":") // as what is pinned besides tools has
	}
	return tools
}

// quarantine says of a call that its tool is hidden until somebody approves its definition,
// as it was seen last. Where no gateway has run yet, nothing is looked for.
func (c *explainedCall) quarantine(x *explanation) {
	k := c.world.kept()
	if _, err := os.Stat(k.state); err != nil {
		return
	}
	own := c.own()
	rows, err := k.pinned([]string{c.upstream, own})
	why := ""
	none, unseen := errors.AsType[*exit](err)
	switch {
	case unseen && none.code == exitRed && k.mode(c.upstream, own) == proxy.Require:
		why = "nobody has approved the definition, which has not been seen yet"
	case unseen && none.code == exitRed:
	case err != nil:
		x.Note = "whether the definition of the tool waits for approval is not known: " + err.Error()
	default:
		if why = rows[0].Hidden; why != "" && rows[0].Pinned != nil && rows[0].Offered != nil {
			x.Note = "while the server lists the definition that is shown, the tool is called"
		}
	}
	if why != "" {
		x.Decision, x.Code, x.Grant, x.Source = capability.Deny.String(), string(capability.ToolQuarantined), "", ""
		x.Why, x.Blocked = why, "no grant changes that: see "+pinsDiff(c.upstream, own)
	}
}

// denied says why no edit of records would allow the call, or which ones would.
func (c *explainedCall) denied(x *explanation, needs []mapping.Need, refused *mapping.Refused) {
	v := c.verdict
	if v.Verb != "" {
		x.Need, x.Why = string(v.Verb), fmt.Sprintf("every call of this tool needs %s, and no grant of it is held", v.Verb)
	}
	if len(needs) == 1 && v.Decision.Need() == nil {
		x.Need = needs[0].Requirement.String()
	}
	switch {
	case c.agent.Err != nil:
		x.Blocked = "the record cannot be loaded; mend it first"
	case v.Decision.Code == capability.NotAvailable:
		x.Blocked = "no grant changes that: see declares: and unmediated: of the upstream " + c.upstream + " in the configuration"
	case refused != nil:
		x.refuse(refused, c.tool)
		if c.open && !c.world.gate.Visible(c.agent.ID, c.tool) {
			x.Allow, x.Blocked = c.world.calling(c.agent, c.tool)
		}
	default:
		x.Allow, x.Blocked = c.smallest(needs)
	}
}

// refuse says of arguments that cannot be decided on what is wrong with them.
func (x *explanation) refuse(r *mapping.Refused, t *gate.Tool) {
	why := strings.TrimPrefix(r.Error(), string(r.Code)+": ")
	if x.Why != "" && x.Code != string(r.Code) {
		why = x.Why + "; besides, " + why
	}
	x.Why, x.Argument, x.Blocked = why, r.Argument, "no grant changes that"
	if names := t.Mapping.Arguments(); len(names) > 0 {
		x.Note = "the arguments that the mapping knows are " + strings.Join(names, ", ")
	}
}

// needs is all that the call needs. The gate stops before the arguments when a
// verb is not held; what they need is worth knowing all the same.
func (c *explainedCall) needs(args wire.Value) ([]mapping.Need, *mapping.Refused) {
	if c.verdict.Unmapped && len(c.verdict.Wanted) > 0 {
		return c.verdict.Wanted, nil
	}
	if c.verdict.Verb == "" && (c.verdict.Needs != nil || c.verdict.Refused != nil) {
		return c.verdict.Needs, c.verdict.Refused
	}
	needs, err := c.tool.Mapping.Require(mapping.Call{Name: c.tool.Name, Args: args, View: c.tool.View})
	if err == nil {
		return needs, nil
	}
	r, ok := errors.AsType[*mapping.Refused](err)
	if !ok {
		r = &mapping.Refused{Code: capability.MalformedArguments, Text: "cannot be read"}
	}
	return nil, r
}

// ask decides one requirement by itself.
func (c *explainedCall) ask(n mapping.Need) asked {
	d := c.world.gate.Require(c.agent.ID, n.Requirement).Decision
	row := asked{Need: n.Requirement.String(), Argument: n.Argument, Decision: d.Effect.String(), Code: string(d.Code)}
	if g := d.Grant(); g != nil {
		row.Grant, row.Source = g.String(), g.Spec().Pos.String()
	}
	if own := c.verdict.Decision; d.Allowed() && (!c.tool.Declares(n) || !own.Allowed() && own.Need() == n.Requirement) {
		row.Decision, row.Code, row.Grant, row.Source = capability.Deny.String(), string(capability.ScopeViolation), "", ""
		if own.Need() == n.Requirement {
			row.Code = string(own.Code)
		}
	}
	return row
}

// smallest finds the edits that would allow the call, all of them needed.
func (c *explainedCall) smallest(needs []mapping.Need) (edits []edit, blocked string) {
	if strings.HasPrefix(c.verdict.Why, "toolset of ") {
		return c.world.smallest(c.agent, c.verdict.Decision.Need())
	}
	for _, n := range needs {
		if o := n.Requirement.Opaque(); o != "" {
			return nil, "no grant can cover this: " + o
		}
		if !c.tool.Declares(n) {
			if c.tool.Declared == nil {
				return nil, fmt.Sprintf("nothing declares that the upstream %s takes %s; see declares: in the configuration", c.upstream, n.Requirement)
			}
			return nil, fmt.Sprintf("the upstream %s declares that it does not touch %s; see declares: %s", c.upstream, n.Requirement, c.declaredIn())
		}
		v := c.world.gate.Require(c.agent.ID, n.Requirement)
		if v.Decision.Allowed() || v.Approve != "" {
			continue
		}
		more, blocked := c.world.smallest(c.agent, n.Requirement)
		if blocked != "" {
			return nil, blocked
		}
		for _, e := range more {
			if !slices.Contains(edits, e) {
				edits = append(edits, e)
			}
		}
	}
	return edits, ""
}

// declaredIn says where it stands what the tool may touch.
func (c *explainedCall) declaredIn() string {
	for _, u := range c.world.cfg.Upstreams {
		own := strings.TrimPrefix(c.tool.Name, u.Prefix+".")
		if u.Name == c.upstream && u.Mapping != "" && !u.Declared && !u.Unmediated && !u.Tools[own].Declared {
			return "of the mapping " + u.Mapping + ", whose place declares: of the upstream takes"
		}
	}
	return "in the configuration"
}

const mostNeeds = 20 // that are printed; the rest is counted

// printNeeds writes what is needed: one line, or one for each part of a call with
// what becomes of it, those that are denied first.
func (a *app) printNeeds(x explanation) {
	u := a.ui
	if len(x.Needs) < 2 {
		u.row("needs", x.Need, "")
		return
	}
	rows := slices.Clone(x.Needs)
	slices.SortStableFunc(rows, func(p, q asked) int { return strings.Compare(q.Decision, p.Decision) })
	for _, n := range rows[:min(len(rows), mostNeeds)] {
		color := red
		if n.Decision == capability.Allow.String() {
			color = green
		}
		at := []string{n.Argument, n.Grant, u.short(n.Source)}
		if n.Grant == "" && n.Source == "" {
			at = append(at, n.Code)
		}
		at = slices.DeleteFunc(at, func(text string) bool { return text == "" })
		for i, text := range at {
			at[i] = cell(text)
		}
		u.printf("  %-8s %s  %s  %s\n", "needs", u.paint(color, n.Decision), cell(n.Need), u.paint(faint, strings.Join(at, "  ")))
	}
	if more := len(rows) - mostNeeds; more > 0 {
		u.row("needs", fmt.Sprintf("and %d more", more), "")
	}
}
