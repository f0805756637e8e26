package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"capgate/agents"
	"capgate/capability"
	"capgate/guardrail"
	"capgate/provider"
	"capgate/upstream"
)

// consultation is one request of an agent to a model's provider.
type consultation struct {
	visit
	vendor   provider.Vendor
	name     string // of the provider
	path     string // within its API
	query    string // without the agent's token
	provider *Provider
	endpoint provider.Endpoint
	header   http.Header // of what goes up
	asked    []byte      // the body as it came
	body     []byte      // as it goes up
	changes  []provider.Change
	held     provider.Policy
	needs    []guardrail.Need // what of that the request rests on
	key      string           // of the gateway's, which goes up and never down
	ref      string           // ties the events
	start    time.Time
}

// consult answers a request to a provider.
func (s *Server) consult(w http.ResponseWriter, r *http.Request, name, path string) {
	c := &consultation{
		visit: visit{server: s, w: w, r: r, policy: s.policy.Load()}, name: name, path: path, ref: s.reference(), start: s.now(),
	}
	c.vendor, _ = provider.Lookup(name) // the zero one words errors as most do
	if why := s.foreign(r); why != "" {
		c.refuse(http.StatusForbidden, capability.Forbidden, why)
		return
	}
	if r.Method == http.MethodHead && path == "/" {
		return // clients look whether anybody is there
	}
	if !c.recognised() || !c.wellFormed() {
		return
	}
	if !c.tenant.enter() {
		c.refuse(http.StatusTooManyRequests, capability.LimitExceeded, "too many requests at once")
		return
	}
	defer c.tenant.leave()
	defer c.unload()
	if !c.tenant.mayCall(c.start) {
		c.w.Header().Set("Retry-After", strconv.Itoa(c.tenant.nextCall()))
		c.refuse(http.StatusTooManyRequests, capability.LimitExceeded, "too many requests in a minute")
		return
	}
	if c.whole() {
		c.carry()
	}
}

// carry has the request decided and sent: anew when another policy comes while it waits for a
// connection.
func (c *consultation) carry() {
	for range maxTurns {
		if !c.judged(c.asked) || !c.send() {
			return
		}
	}
	c.restless()
}

func (c *consultation) restless() {
	c.refuse(http.StatusServiceUnavailable, capability.NotAvailable, "the policy was changed again and again during the request")
}

// recognised finds out whose token the request shows, wherever the client of the
// vendor puts its key.
func (c *consultation) recognised() bool {
	if c.policy == nil {
		http.Error(c.w, "the gateway is starting", http.StatusServiceUnavailable)
		return false
	}
	token, query, why := shown(c.r)
	if why == "" {
		c.query = query
		if held, ok := c.issued(token); ok {
			return c.admit(held.Agent, held.ID)
		}
		if why = "the key is no token of an agent: set the API key of the client to one that capgate agents token issue has printed"; agents.IsToken(token) {
			why = cmp.Or(c.outlived(token), notGood)
		}
	}
	c.refuse(http.StatusUnauthorized, capability.Unauthenticated, why)
	return false
}

// wellFormed looks at everything but the body.
func (c *consultation) wellFormed() bool {
	switch p := c.policy.provider(c.name); {
	case p == nil:
		c.refuse(http.StatusNotFound, capability.NotAvailable, "the gateway has no provider of this name")
		return false
	case !p.isFor(c.agent):
		c.refuse(http.StatusForbidden, capability.NotAvailable, "the provider is not for this agent: agents: of it in the configuration names others")
		return false
	}
	if status, why := obstacle(c.r); why != "" {
		c.refuse(status, capability.MalformedRequest, why)
		return false
	}
	if !isExact(c.path) {
		c.refuse(http.StatusForbidden, capability.Forbidden, "the path is not written as the provider's documentation has it")
		return false
	}
	var err error
	if c.endpoint, err = c.vendor.Endpoint(c.r.Method, c.path, c.query); err != nil {
		c.unwritable(err)
		return false
	}
	var why string
	if c.header, why = upward(c.r.Header); why != "" {
		c.refuse(http.StatusBadRequest, capability.MalformedRequest, why)
		return false
	}
	if c.endpoint.Body && !isJSON(c.r.Header["Content-Type"]) {
		c.refuse(http.StatusUnsupportedMediaType, capability.MalformedRequest, "the body must be application/json")
		return false
	}
	return true
}

// whole takes in the body. It is not one of those that are used again: what carries
// it up may read it for longer than the request takes.
func (c *consultation) whole() bool {
	var l letter
	if f := c.takeIn(&l); f != nil {
		c.refuse(f.status, refusalOf(f.status), f.text)
		return false
	}
	if !c.endpoint.Body && len(l.body) > 0 {
		c.refuse(http.StatusBadRequest, capability.MalformedRequest, "this request has no body")
		return false
	}
	c.asked = l.body
	return true
}

// judged decides on one long request of an agent after another: the index over a body
// can be many times its size, and takes a while to make.
func (c *consultation) judged(body []byte) bool {
	if len(body) <= trusted {
		return c.decided(body)
	}
	select {
	case c.tenant.judging <- struct{}{}:
		defer func() { <-c.tenant.judging }()
		return c.decided(body)
	case <-c.r.Context().Done():
		return false // who waits no longer is told nothing
	}
}

// decided has the gate say what the agent holds, the body rewritten by it, and all
// of it recorded. A policy that came meanwhile begins anew.
func (c *consultation) decided(body []byte) bool {
	for range maxTurns {
		c.policy = c.server.policy.Load()
		if c.provider = c.policy.provider(c.name); c.provider == nil || !c.provider.isFor(c.agent) || !c.policy.holds(c.credential, c.agent, c.server.now()) {
			c.refuse(http.StatusUnauthorized, capability.Unauthenticated, "the token was revoked or has expired, or the provider was removed or given to others")
			return false
		}
		reach, verdict := c.policy.Gate.Provider(c.agent)
		if verdict != nil {
			c.deny(http.StatusForbidden, *verdict, "")
			return false
		}
		c.held = c.provider.Rules
		c.held.Authority, c.needs = reach, nil
		c.held.Uses = func(v capability.Verb, object string) {
			c.needs = append(c.needs, guardrail.Need{Verb: string(v), Object: agents.WithoutTokens(object)})
		}
		var err error
		if c.endpoint.Body {
			c.body, c.changes, err = c.vendor.Rewrite(c.endpoint, body, c.held)
		}
		if err != nil {
			c.unwritable(err)
			return false
		}
		if c.server.policy.Load() == c.policy {
			return c.recorded()
		}
	}
	c.restless()
	return false
}

// The reasons why a provider is no longer waited for.
var (
	errStart = errors.New("it did not begin to answer in time")
	errIdle  = errors.New("it paused for too long within its answer")
	errEnded = errors.New("the gateway ends")
)

// errKeyless is why a provider is not asked at all, which only a person changes.
var errKeyless = errors.New("the gateway has no usable key for it")

// send carries the request up, and the answer down. It reports whether nothing of it went up, as it
// has to be decided anew.
func (c *consultation) send() (again bool) {
	key, err := c.provider.Key()
	if err == nil && !isStrained(key) {
		err = errors.New("it holds what no key of a provider may")
	}
	if err != nil {
		c.server.log.Error("the key of a provider cannot be used", "provider", c.name, "error", err)
		c.failed(http.StatusBadGateway, errKeyless)
		return false
	}
	c.key = key
	ctx, cancel := context.WithCancelCause(c.r.Context())
	defer cancel(nil)
	defer context.AfterFunc(c.server.ctx, func() { cancel(errEnded) })()
	wait := time.AfterFunc(c.provider.Start, func() { cancel(errStart) })
	defer wait.Stop()
	req, err := c.request(ctx, key)
	if err != nil {
		c.failed(http.StatusBadGateway, errors.New("its address cannot be used"))
		return false
	}
	resp, err := c.server.outside.RoundTrip(upstream.AskLast(req, func() error {
		if again = c.server.policy.Load() != c.policy || !c.server.holds(c.credential, c.agent); again {
			return errStale
		}
		return nil
	}))
	switch {
	case err != nil && again:
		c.outcome(0, errStale.Error())
		return true
	case err != nil:
		c.unanswered(ctx, err)
		return false
	}
	defer func() { _ = resp.Body.Close() }() // what was not read is not wanted
	wait.Stop()
	c.asked, c.body, c.needs, resp.Request = nil, nil, nil, nil // an answer may take long, and what was asked may be large
	if why := unfit(resp); why != "" {
		c.unusable(why)
		return false
	}
	v := newVigil(c.provider.Idle, func() { cancel(errIdle) })
	defer v.end()
	c.relay(ctx, resp, v)
	return false
}

// request is what goes up: the bytes that were decided on, and the gateway's own key.
func (c *consultation) request(ctx context.Context, key string) (*http.Request, error) {
	target := c.provider.URL + c.endpoint.Path
	if c.endpoint.Query != "" {
		target += "?" + c.endpoint.Query
	}
	var body io.Reader
	if c.endpoint.Body {
		body = bytes.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.endpoint.Method, target, body)
	if err != nil {
		return nil, err
	}
	req.Header = maps.Clone(c.header) // which may be read for longer than the request takes
	if body != nil {
		req.Header["Content-Type"] = jsonType()
	}
	name, value := c.vendor.Credential(key)
	req.Header[name] = []string{value}
	return req, nil
}

// unanswered says why there is no answer.
func (c *consultation) unanswered(ctx context.Context, err error) {
	switch cause := context.Cause(ctx); {
	case c.r.Context().Err() != nil:
		c.outcome(0, "the agent left")
		panic(http.ErrAbortHandler) // one that still reads shall not take nothing for an answer
	case errors.Is(cause, errStart):
		c.failed(http.StatusGatewayTimeout, errStart)
	case errors.Is(cause, errEnded):
		c.failed(http.StatusBadGateway, errEnded)
	case strings.Contains(err.Error(), "unsupported transfer encoding"): // which has no type
		c.unusable("it answers in a transfer encoding that nobody asked for")
	default:
		c.server.log.Warn("a provider cannot be reached", "provider", c.name, "error", err)
		c.failed(http.StatusBadGateway, errors.New("it cannot be reached"))
	}
}

// unfit says what about an answer keeps it from being passed on.
func unfit(resp *http.Response) string {
	encoded := func(form string) bool { return form != "" && form != "identity" }
	switch {
	case resp.StatusCode < http.StatusOK:
		return "it answers with " + strconv.Itoa(resp.StatusCode) + ", which is no answer"
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return "it sends the request elsewhere (" + strconv.Itoa(resp.StatusCode) + ")"
	case slices.ContainsFunc(resp.Header["Content-Encoding"], encoded):
		return "it compresses its answer without being asked to"
	}
	return ""
}

// outcome records what came of a request that went up, and says where.
func (c *consultation) outcome(size int, problem string) string {
	e := c.event(guardrail.Outcome)
	e.Latency, e.Bytes, e.Error = c.server.now().Sub(c.start), size, problem
	return c.server.record(e)
}
