package proxy

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"capgate/agents"
	"capgate/capability"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/provider"
)

// maxChanges is how much of one request may have to be changed. Each change is an
// event, and no request shall fill the log with them.
const maxChanges = 128

// event begins a record of what happens to the request.
func (c *consultation) event(kind string) *guardrail.Event {
	e := &guardrail.Event{Kind: kind, Call: c.ref, Agent: c.agent}
	e.Upstream, e.Method = agents.WithoutTokens("provider/"+c.name), agents.WithoutTokens(c.r.Method+" "+c.path)
	if c.policy != nil {
		e.Policy = c.policy.Hash
	}
	return e
}

// recorded records that the request goes up, and every tool that does not or was
// narrowed. It does not go up unless all of that is recorded.
func (c *consultation) recorded() bool {
	if len(c.changes) > maxChanges {
		c.refuse(http.StatusForbidden, capability.LimitExceeded, "too many of the request's provider tools are not held")
		return false
	}
	events := []*guardrail.Event{c.event(guardrail.Decision)}
	events[0].Decision, events[0].Needs = capability.Allow.String(), c.needs
	for _, change := range c.changes {
		events = append(events, c.changed(change))
	}
	for _, e := range events {
		if _, err := c.server.events.Record(e); err != nil {
			c.server.log.Error("a request was not forwarded, because it could not be recorded", "error", err, "agent", c.agent, "provider", c.name)
			c.refuse(http.StatusServiceUnavailable, capability.NotAvailable, "the event could not be recorded")
			return false
		}
	}
	if len(c.changes) > 0 {
		c.server.log.LogAttrs(c.r.Context(), slog.LevelInfo, "provider tools changed", slog.String("agent", c.agent),
			slog.String("provider", c.name), slog.String("call", c.ref), slog.String("tools", c.became()))
	}
	return true
}

// changed is the record of one change: of a tool that is omitted a denial, of any
// other an allow with the hosts that are left.
func (c *consultation) changed(change provider.Change) *guardrail.Event {
	e := c.event(guardrail.Decision)
	e.Decision, e.Tool, e.Text, e.Needs = capability.Allow.String(), plain(change.Tool), change.Did+": "+agents.WithoutTokens(change.Why), hostNeeds(change.Hosts)
	for _, tool := range change.Tools {
		e.Needs = append(e.Needs, guardrail.Need{Verb: "tool.invoke", Object: tool})
	}
	switch change.Did {
	case provider.Omitted:
		e.Decision, e.Code = capability.Deny.String(), string(change.Code)
	case provider.Wider:
		e.Code = change.Did
	}
	return e
}

// became says for the client what became of the tools: omitted=web_fetch;
// narrowed=web_search.
func (c *consultation) became() string {
	var order []string
	tools := map[string][]string{}
	for _, change := range c.changes {
		if !slices.Contains(order, change.Did) {
			order = append(order, change.Did)
		}
		if name := plain(change.Tool); !slices.Contains(tools[change.Did], name) {
			tools[change.Did] = append(tools[change.Did], name)
		}
	}
	parts := make([]string, 0, len(order))
	for _, did := range order {
		parts = append(parts, plain(did)+"="+strings.Join(tools[did], ","))
	}
	text := strings.Join(parts, "; ")
	return text[:min(len(text), maxToolList)]
}

// unwritable refuses a request that cannot go up within what the agent holds.
func (c *consultation) unwritable(err error) {
	refused, ok := errors.AsType[*provider.Refused](err)
	switch {
	case !ok:
		c.refuse(http.StatusBadRequest, capability.MalformedRequest, err.Error())
	case slices.Contains([]capability.Code{capability.CapabilityAbsent, capability.ScopeViolation, capability.RequiresApproval}, refused.Code):
		c.deny(refused.Status, gate.Verdict{Decision: capability.Denial(refused.Code, nil)}, refused.Why)
	default:
		c.refused(*refused)
	}
}

// sentence names the provider in front of what is wrong with it.
func (c *consultation) sentence(err error) string {
	return fmt.Sprintf("provider %q: %v", c.name, err)
}

// failed answers in place of a provider that did not.
func (c *consultation) failed(status int, err error) {
	ref, hint := c.outcome(0, err.Error()), laterHint
	if errors.Is(err, errKeyless) {
		hint = operatorHint + ", who finds the reason in the log of the gateway"
		c.w.Header().Set("X-Should-Retry", "false")
	}
	c.turnDown(status, denial{code: capability.UpstreamFailed, why: c.sentence(err), hint: hint, event: ref})
}

// withdrawn answers in place of a provider whose answer the agent may no longer have.
func (c *consultation) withdrawn(err error) {
	status, code := http.StatusForbidden, capability.NotAvailable
	if errors.Is(err, errRevoked) {
		status, code = http.StatusUnauthorized, capability.Unauthenticated
	}
	ref := c.outcome(0, err.Error())
	c.turnDown(status, denial{code: code, why: c.sentence(err), event: ref})
}

// unusable answers in place of a provider whose answer cannot be passed on, and will not
// be otherwise the next time.
func (c *consultation) unusable(why string) {
	c.server.log.Warn("the answer of a provider cannot be passed on", "provider", c.name, "why", why)
	ref := c.outcome(0, why)
	c.w.Header().Set("X-Should-Retry", "false")
	c.turnDown(http.StatusBadGateway, denial{code: capability.UpstreamFailed, why: c.sentence(errors.New(why)), event: ref})
}
