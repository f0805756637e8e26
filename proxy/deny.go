package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/mapping"
	"capgate/provider"
)

// denial is a denying decision as the agent sees it.
type denial struct {
	code     capability.Code
	need     string // what is missing: a verb and what it would touch
	verb     string // the verb of it: all that the log on standard error says
	tool     string // the exposed name
	argument string
	held     []string // what the agent holds for the verb
	why      string   // what is the case, for the agent
	hint     string   // what to do about it
	blocked  string   // why no grant would help, which is the operator's to know
	event    string   // where it is recorded
	detail   string   // what the clients of a provider's vendor go by
}

// deny is the one place where a decision becomes an answer, an event and a line
// of the log. They carry the same reference.
func (c *call) deny(v gate.Verdict) reply {
	d := c.denial(v)
	if d.ends() {
		c.abandon()
	}
	e := c.decision()
	e.Decision, e.Code = "deny", string(d.code)
	switch {
	case v.Why == "":
		v.Why = d.blocked
	case !strings.Contains(d.blocked, v.Why) && d.blocked != "":
		v.Why += ": " + d.blocked
	}
	e.Needs, e.Argument, e.Link, e.Text = needsOf(v), d.argument, v.Why, d.why
	switch { // where targets are hashed, a link stands in clear, and a text that may quote them is left out
	case v.Refused != nil: // the text says the same
		e.Link = ""
	case d.unfilled():
		e.Link, e.Text = "", cmp.Or(v.Why, d.why)
	}
	if d.event = c.server.record(e); d.event != "" || d.code != capability.LimitExceeded {
		c.server.inform(
			c.ctx, "denied", slog.String("event", d.event), slog.String("agent", c.agent),
			slog.String("method", c.method), slog.String("tool", c.target), slog.String("code", string(d.code)), slog.String("verb", d.verb), slog.String("why", v.Why),
		)
	}
	said := c.server.word(d)
	if c.method != "tools/call" {
		return reply{failure: said.failure()}
	}
	return reply{result: said.result(c.take(), c.modern)}
}

// ends reports whether the same call is not one that the agent may make a little later.
func (d denial) ends() bool {
	switch d.code {
	case capability.LimitExceeded, capability.UpstreamFailed, capability.NotAvailable, capability.HeaderMismatch, capability.MalformedRequest:
		return false
	}
	return true
}

// tell logs what was refused before there was anything to decide, as deny does with
// denials: under the reference of the event. What there are too many of to record fills
// no log either.
func (s *Server) tell(ref string, e *guardrail.Event) {
	s.inform(
		s.ctx, "refused", slog.String("event", ref), slog.String("agent", e.Agent), slog.String("upstream", e.Upstream),
		slog.String("method", e.Method), slog.String("tool", e.Tool), slog.String("code", e.Code), slog.String("why", cmp.Or(e.Error, e.Text)),
	)
}

// inform logs at level info. It does not find out where it is called, as a logger does,
// which takes longer than the rest and is not shown.
func (s *Server) inform(ctx context.Context, text string, attrs ...slog.Attr) {
	h := s.log.Handler()
	if !h.Enabled(ctx, slog.LevelInfo) {
		return
	}
	r := slog.NewRecord(time.Now(), slog.LevelInfo, text, 0)
	r.AddAttrs(attrs...)
	_ = h.Handle(ctx, r) // as of a logger
}

// denial words a verdict for the agent. Nothing of it tells about other agents,
// about where a path leads, or whether a file is there.
func (c *call) denial(v gate.Verdict) denial {
	d := denial{code: v.Decision.Code, tool: c.exposed, argument: v.Argument}
	need := v.Decision.Need()
	if d.verb = string(v.Verb); need != nil {
		d.verb = string(need.Verb())
		d.need, d.held = need.String(), quote(v.Decision.Held(), math.MaxInt)
	}
	switch {
	case d.code == "":
		d.code = capability.MalformedRequest // nothing that could be decided on
	case d.code == capability.ToolQuarantined:
		d.hint = c.review()
	case v.Refused != nil:
		d.why = strings.TrimPrefix(v.Refused.Error(), string(v.Refused.Code)+": ")
		d.hint = "call the tool with the arguments that its schema lists, and leave out what the operator's mapping of the tool does not know"
	case c.remedy(v) != "":
		d.why, d.hint = v.Why, c.remedy(v)
	case d.unfilled():
		d.why = fmt.Sprintf("the secret %s cannot be filled in", need.Object())
		d.hint = "do without it, or ask the operator, who finds the reason in the event"
	case v.Verb != "":
		d.need = string(v.Verb)
		d.why = fmt.Sprintf("this needs %s, and no grant of %s is held", v.Verb, v.Verb)
		c.advise(&d, v)
	case v.Approve != "":
		d.why = fmt.Sprintf("%s is allowed once somebody approves it (%s)", need, v.Approve)
		d.hint = "do without it: there is no way to approve it yet, but that the operator takes " + v.Approve + " out of approve:"
	case v.Whole:
		c.whole(&d, v)
	case d.code == capability.CapabilityAbsent && need == nil: // what the client, or may_ask, lacks
		d.why, d.hint = strings.TrimPrefix(v.Why, "capgate: "), "do without it"
	case need != nil:
		d.why = c.reason(v.Decision, d.held)
		c.advise(&d, v)
	}
	if d.why == "" {
		d.why = meaning(d.code, noun(c.method))
	}
	return d
}

// whole words what is about all that a template may become: there is no one grant to ask for.
func (c *call) whole(d *denial, v gate.Verdict) {
	d.hint = "stay within what is held, or ask the operator"
	switch need := v.Decision.Need(); {
	case need != nil && d.code == capability.MalformedArguments: // of what was given, and no more
		d.why = v.Why
	case need != nil:
		d.why = c.reason(v.Decision, d.held)
	}
}

// unfilled reports whether a secret that may be used cannot be had.
func (d denial) unfilled() bool {
	return d.code == capability.NotAvailable && d.verb == string(useSecret) && d.need != ""
}

// remedy is what can be done about a denial that is not about grants, "" where it is.
func (c *call) remedy(v gate.Verdict) string {
	switch {
	case v.Decision.Code == capability.UpstreamFailed && !c.wantsLogin:
		return laterHint
	case v.Decision.Code == capability.UpstreamFailed, v.Decision.Code == capability.Unauthenticated:
		return operatorHint
	case v.Decision.Code == capability.LimitExceeded, v.Why == unsettled:
		return "wait a little, and try again"
	case v.Why == unrecorded:
		return "ask the operator, who finds the reason in the log of the gateway"
	}
	return ""
}

// What to do where it is not about grants: time helps, or only a person does.
const (
	laterHint    = "try again later"
	operatorHint = "ask the operator"
)

// advised takes what to do about a failure out of what it says: "it has too much; ask it for less".
func advised(said string) (why, hint string) {
	if why, hint, ok := strings.Cut(said, "; "); ok {
		return why, hint
	}
	return said, laterHint
}

// unrecorded is why a call that is allowed does not go up when its event cannot be written.
const unrecorded = "the gateway cannot record what is done, and so has nothing done"

// useSecret is the verb of what is filled in.
const useSecret = capability.Verb("secret.use")

// maxHeld is how many grants a denial quotes.
const maxHeld = 8

// quote cuts what is held, in place, to what a reader can use.
func quote(held []string, bytes int) []string {
	n := 0
	for ; n < min(len(held), maxHeld) && len(held[n]) <= bytes; n++ {
		bytes -= len(held[n])
	}
	if n == len(held) {
		return held
	}
	return append(held[:n], "and "+strconv.Itoa(len(held)-n)+" more")
}

// reason says why a requirement is denied, with what is held. A secret is found in a whole
// word, and not in a part of one.
func (c *call) reason(d capability.Decision, held []string) string {
	if object := d.Need().Object(); c.server.cleanText(object) != object {
		d = d.Vague()
	}
	return strings.TrimPrefix(d.Quoting(held), string(d.Code)+": ")
}

// meaning says of a code what stands behind it, where a decision says no more.
func meaning(code capability.Code, noun string) string {
	switch code {
	case capability.UnknownTool:
		return "there is no " + noun + " of that name"
	case capability.InvalidConfig:
		return "the agent's record cannot be loaded, or has changed a moment ago: it may do nothing until that is mended, or has rested"
	case capability.NotAvailable:
		return "the " + noun + " is not available to this agent"
	case capability.ToolQuarantined:
		return "the definition is new or has changed and waits for approval"
	case capability.ToolRejected:
		return "its definition is not one that agents may be shown"
	case capability.NameCollision:
		return "several claim this name, so that none of them has it"
	case capability.UpstreamFailed:
		return "the server behind it does not answer, or has not said yet what it has"
	case capability.LimitExceeded:
		return "a limit was hit"
	case capability.ScopeViolation:
		return "this is outside what is held"
	case capability.MalformedArguments, capability.MalformedRequest:
		return "the arguments are not what the " + noun + " takes"
	}
	return "this is not allowed"
}

// noun is what a request is for. It goes by the method and nothing else: what is hidden
// must read as what there never was.
func noun(method string) string {
	switch kind, _, _ := strings.Cut(method, "/"); kind {
	case "tools":
		return "tool"
	case "prompts":
		return "prompt"
	case "skills":
		return "skill"
	case "completion":
		return "prompt or resource"
	}
	return "resource"
}

// advise names the narrowest grants that would allow what was denied. Where none
// would, the agent is not told what stands in the way: that may be another agent.
func (c *call) advise(d *denial, v gate.Verdict) {
	if d.code == capability.NotAvailable {
		d.hint = "do without it"
		return
	}
	needs := v.Needs
	if need := v.Decision.Need(); len(needs) == 0 && need != nil {
		needs = []mapping.Need{{Requirement: need}}
	}
	if len(needs) == 0 { // the arguments cannot be read
		d.hint = "ask the operator for a grant of " + string(v.Verb)
		return
	}
	d.hint, d.blocked = c.wish(d, needs)
	if v.Wanted != nil && !v.Unmapped {
		d.hint, _ = c.wish(d, v.Wanted)
	}
	if d.hint == "" {
		d.hint = stay + ", or ask the operator, who finds the reason in the event"
	}
	if len(v.Wanted) == 0 || !v.Unmapped {
		return
	}
	d.why += "; no mapping " + c.whichMapping() + "says what its arguments touch, so that only grants of tool.invoke count"
	switch hint, _ := c.wish(d, v.Wanted); {
	case d.blocked != "":
	case hint != "" && hint != d.hint:
		d.hint = hint
	case c.args.Len() > 0:
		d.why += ", and none can be written with all of these arguments, but one for any"
	}
}

// whichMapping says how one is given where only the command line does.
func (c *call) whichMapping() string {
	if c.policy.Flags {
		return "(of --mapping) "
	}
	return ""
}

// stay is what an agent may do about every denial of what needs a grant.
const stay = "stay within what is held"

// wish words the grants by which all that is needed would be allowed, "" where none would, with the reason, or none
// can be asked for.
func (c *call) wish(d *denial, needs []mapping.Need) (hint, blocked string) {
	tool := ""
	if c.method == "tools/call" {
		tool = c.target
	}
	e := c.policy.Gate.Edit(c.agent, tool, c.declared, needs)
	before := stay + ", or "
	switch {
	case d.held == nil:
		before = ""
	case e.Special: // in front, as the command is pasted up to its end
		before = stay + " (no wildcard covers what is not of the public internet), or "
	}
	if ask, ok := c.ask(before, e); ok && e.Blocked == "" {
		return ask, ""
	}
	return "", e.Blocked
}

// What a denial asks for fits into a line that somebody reads before running it.
const (
	mostAsked    = 8       // grants
	longestAsked = 2 << 10 // bytes
)

// ask says, behind other words, how authority is widened: by whoever runs the gateway, never from
// here. The agent has chosen words of it, which a shell must not read as anything else.
func (c *call) ask(before string, e gate.Edit) (text string, ok bool) {
	if len(e.Grants) == 0 || len(e.Grants) > mostAsked {
		return "", false
	}
	var command strings.Builder
	command.Grow(len(before) + 160) // most are not longer
	command.WriteString(before)
	switch {
	case c.policy.Flags:
		command.WriteString("ask the operator to start capgate wrap with:")
	case e.ByHand:
		command.WriteString("ask the operator for:")
	default:
		command.WriteString("ask the operator for: capgate agents grant ")
		command.WriteString(strings.TrimPrefix(c.agent, "agents/"))
	}
	start := command.Len()
	for _, spec := range e.Grants {
		word := spec.String()
		if !isLine(word) || c.server.cleanText(word) != word {
			return "", false
		}
		if c.policy.Flags {
			command.WriteString(" --grant")
		}
		command.WriteString(" '")
		command.WriteString(strings.ReplaceAll(word, "'", `'\''`))
		command.WriteByte('\'')
	}
	return command.String(), command.Len()-start <= longestAsked
}

// review says how a definition that waits is looked at. A name that a shell could
// read as something else is not put into a command.
func (c *call) review() string {
	up := c.policy.upstream(c.behind)
	if up == nil {
		return ""
	}
	pinned := c.pin
	if pinned == "" {
		pinned = strings.TrimPrefix(c.target, up.called(""))
	}
	command := "capgate pins diff " + up.Name
	if strings.Trim(pinned, wordLetters) == "" && !strings.HasPrefix(pinned, "-") {
		command += " " + pinned
	}
	return "ask the operator to look at: " + command
}

// wordLetters are those that every shell takes for themselves.
const wordLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.:/"

// needsOf writes requirements for an event, as far as they are known.
func needsOf(v gate.Verdict) []guardrail.Need {
	if len(v.Needs) == 0 {
		if need := v.Decision.Need(); need != nil {
			return []guardrail.Need{recorded(need, v.Argument)}
		}
		if v.Verb != "" {
			return []guardrail.Need{{Verb: string(v.Verb)}}
		}
		return nil
	}
	needs := make([]guardrail.Need, len(v.Needs))
	for i, n := range v.Needs {
		needs[i] = recorded(n.Requirement, n.Argument)
	}
	return needs
}

// deny is the same for a request to a provider, which words it as its vendor does.
func (c *consultation) deny(status int, v gate.Verdict, why string) {
	d := denial{code: v.Decision.Code, why: why}
	if d.code == capability.Unauthenticated {
		d.why = cmp.Or(why, v.Why)
	}
	if d.why == "" {
		d.why = meaning(d.code, "provider")
	}
	e := c.event(guardrail.Decision)
	e.Decision, e.Code, e.Needs, e.Link, e.Text = capability.Deny.String(), string(d.code), needsOf(v), v.Why, agents.WithoutTokens(d.why)
	d.event = c.server.record(e)
	c.server.inform(
		c.r.Context(), "denied", slog.String("event", d.event), slog.String("agent", c.agent),
		slog.String("provider", c.name), slog.String("code", string(d.code)), slog.String("why", cmp.Or(v.Why, e.Text)),
	)
	c.turnDown(status, d)
}

// refuse answers a request to a provider that there is nothing to decide on.
func (c *consultation) refuse(status int, code capability.Code, why string) {
	c.refused(provider.Refused{Status: status, Code: code, Why: why})
}

func (c *consultation) refused(r provider.Refused) {
	e := c.event(guardrail.Refusal)
	e.Code, e.Text = string(r.Code), agents.WithoutTokens(r.Why)
	c.turnDown(r.Status, denial{code: r.Code, why: r.Why, event: c.server.record(e), detail: r.Detail})
}

// turnDown writes a denial as the vendor's client expects an error.
func (c *consultation) turnDown(status int, d denial) {
	said := c.server.word(d)
	body := c.vendor.Refusal(provider.Refused{Status: status, Code: said.code, Why: said.clause(), Detail: said.detail})
	h := c.w.Header()
	h["Content-Type"] = jsonType()
	if status != http.StatusTooManyRequests && status < http.StatusInternalServerError {
		h.Set("X-Should-Retry", "false") // the same request is denied again
	}
	give(c.w, len(body))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body) // an agent that is gone will not miss it
}

// recorded is a requirement as it was decided on.
func recorded(need *capability.Requirement, argument string) guardrail.Need {
	return guardrail.Need{
		Verb: string(need.Verb()), Object: need.Canonical(), Also: need.Also(), In: need.Dir(), Argument: argument,
	}
}
