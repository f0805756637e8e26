package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"path"
	"strings"

	"capgate/capability"
	"capgate/gate"
	"capgate/upstream"
	"capgate/wire"
)

// What a server may ask of the client behind the gateway, by method.
const (
	askRoots       = "roots/list"
	askElicitation = "elicitation/create"
	askSampling    = "sampling/createMessage"
)

// askName is a request of a server in the words of may_ask:, "" for one that no
// server may make.
func askName(method string) string {
	switch method {
	case askRoots:
		return "roots"
	case askElicitation:
		return "elicitation"
	case askSampling:
		return "sampling"
	}
	return ""
}

// mayAsk decides whether a server may ask something. It is an event when not.
func (s *Server) mayAsk(l *line, client wire.Value, method string, params wire.Value) error {
	what := askName(method)
	var why string
	switch {
	case what == "":
		why = "the server asked for " + method + ", which is not known"
	case !l.up.mayAsk(what):
		why = "the server asked for " + what + ", which may_ask does not let it"
	case what == "roots":
		return nil
	default:
		why = unable(client, what, params)
	}
	if why == "" {
		return nil
	}
	e := l.event("refusal", method)
	e.Code, e.Text = string(capability.CapabilityAbsent), why
	s.record(e)
	return &upstream.Refusal{Code: codeMethod, Message: "capgate: " + why}
}

// unable says why a client cannot be asked, "" if it can. A page is opened only
// over https.
func unable(client wire.Value, what string, params wire.Value) string {
	able, ok := client.Get(what)
	if !ok || able.Kind() != wire.Object {
		return "the client cannot answer requests for " + what
	}
	mode, _ := params.Get("mode")
	if what != "elicitation" || !mode.Equal("url") {
		return ""
	}
	if v, ok := able.Get("url"); !ok || v.Kind() != wire.Object {
		return "the client does not open pages"
	}
	page, _ := params.Get("url")
	if text, _ := page.Str(); !isHTTPS(text) {
		return "the server asked to open a page that is not https"
	}
	return ""
}

func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// roots answers what directories the agent works in: those that its grants hang
// from, and nothing that its client says. Servers take what they are told here
// for what they may touch.
func (s *Server) roots(agent string) []byte {
	ag, ok := s.policy.Load().Gate.Roster.Agent(agent)
	if !ok || ag.Err != nil || ag.Root.IsZero() {
		return []byte(`{"roots":[]}`)
	}
	uri := (&url.URL{Scheme: "file", Path: ag.Root.Dir}).String()
	dst := wire.AppendString([]byte(`{"roots":[{"uri":`), uri)
	dst = wire.AppendString(append(dst, `,"name":`...), path.Base(ag.Root.Dir))
	return append(dst, "}]}"...)
}

// within keeps of the directories that a client says it works in those that lie
// in the agent's own root, and gives the root itself when it says nothing of the
// kind: a server may take what it is told here for what it may touch.
func (s *Server) within(agent string, said []byte) []byte {
	ag, ok := s.policy.Load().Gate.Roster.Agent(agent)
	var doc wire.Doc
	if !ok || ag.Err != nil || ag.Root.IsZero() || doc.Parse(said, wire.Limits{}) != nil {
		return s.roots(agent)
	}
	dst := []byte(`{"roots":[`)
	list, _ := doc.Root().Get("roots")
	for one := range list.Elems() {
		v, _ := one.Get("uri")
		text, _ := v.Str()
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "file" || u.Host != "" || u.RawQuery != "" || u.Fragment != "" {
			continue
		}
		root, err := capability.ParseRoot(u.Path, "/", capability.View{FS: s.files})
		if err != nil || !root.Within(ag.Root) {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		uri := (&url.URL{Scheme: "file", Path: root.Dir}).String()
		dst = wire.AppendString(append(dst, `{"uri":`...), uri)
		dst = wire.AppendString(append(dst, `,"name":`...), path.Base(root.Dir))
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// hasRoots reports whether a client can be asked what directories it works in.
func hasRoots(client wire.Value) bool {
	v, ok := client.Get("roots")
	return ok && v.Kind() == wire.Object
}

// Ask answers what a server asks during a call.
func (e *errand) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	c := e.call
	var doc wire.Doc
	if params != nil && doc.Parse(params, wire.Limits{}) != nil {
		return nil, &upstream.Refusal{Code: codeParams, Message: "the params cannot be read"}
	}
	if err := c.server.mayAsk(e.line, c.client, method, doc.Root()); err != nil {
		return nil, err
	}
	if method == askRoots {
		return c.rootsFor(ctx, e.line), nil
	}
	if c.session == nil {
		return nil, &upstream.Refusal{Code: codeMethod, Message: "the client cannot be asked during this request"}
	}
	return answerOf(c.session.ask(ctx, c.out, method, c.scrubbed(params)))
}

// rootsFor answers a server that asks for roots during a call. Where the connection
// is for one session, its client may narrow them.
func (c *call) rootsFor(ctx context.Context, l *line) []byte {
	if l.tenant.only == nil || c.session == nil || !hasRoots(c.client) {
		return c.server.roots(c.agent)
	}
	got, err := answerOf(c.session.ask(ctx, c.out, askRoots, nil))
	if err != nil {
		return c.server.roots(c.agent)
	}
	return c.server.within(c.agent, got)
}

// answerOf is what a client answered, in the words of a sink.
func answerOf(o outcome, err error) ([]byte, error) {
	switch {
	case err != nil:
		return nil, &upstream.Refusal{Code: codeInternal, Message: "the client did not answer: " + err.Error()}
	case o.refusal != nil:
		return nil, o.refusal
	}
	return o.result, nil
}

// loose takes what a server sends that belongs to no call.
type loose struct{ line *line }

// Notify passes on that something has changed, to whom it concerns.
func (e loose) Notify(method string, params []byte) {
	l := e.line
	switch method {
	case "notifications/tools/list_changed":
		l.renew(toolList)
	case "notifications/prompts/list_changed":
		l.renew(promptList)
	case "notifications/resources/list_changed":
		l.renew(resourceList, templateList)
	case "notifications/resources/updated":
		l.updated(params)
	case "notifications/message", "notifications/elicitation/complete":
		if s := l.tenant.only; s != nil && (method != "notifications/message" || s.wants(params)) {
			s.notify(method, append([]byte(nil), params...))
		}
	}
}

func (l *line) renew(kinds ...listKind) {
	for _, k := range kinds {
		l.lists[k].renew()
	}
	l.tenant.touched(kinds[0])
}

// Ask answers what a server asks without saying for which call. If there is but
// one, it is that one. Else what only a client can answer goes to the one whose
// session it is, if the connection is for one.
func (e loose) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	l := e.line
	s := l.tenant.server
	if sink := l.onlyCall(); sink != nil {
		return sink.Ask(ctx, method, params)
	}
	var doc wire.Doc
	if params != nil && doc.Parse(params, wire.Limits{}) != nil {
		return nil, &upstream.Refusal{Code: codeParams, Message: "the params cannot be read"}
	}
	var client wire.Value
	if l.tenant.only != nil {
		client = l.tenant.only.capabilities()
	}
	if err := s.mayAsk(l, client, method, doc.Root()); err != nil {
		return nil, err
	}
	if method == askRoots {
		if l.tenant.agent == "" {
			return []byte(`{"roots":[]}`), nil // of which agent, nobody can say
		}
		return s.roots(l.tenant.agent), nil
	}
	return answerOf(l.tenant.only.ask(ctx, nil, method, params))
}

// onlyCall is the sink of the only call that is up, nil when there is none or
// there are several.
func (l *line) onlyCall() upstream.Sink {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.flights) != 1 {
		return nil
	}
	for _, sink := range l.flights {
		return sink
	}
	return nil
}

// inputs is what a server of the modern era asks for before it can answer.
type inputs struct {
	requests wire.Value
	state    wire.Value
}

func readInputs(answer *upstream.Answer) (inputs, error) {
	var doc wire.Doc
	if err := doc.Parse(answer.Result, wire.Limits{}); err != nil {
		return inputs{}, err
	}
	var in inputs
	in.requests, _ = doc.Root().Get("inputRequests")
	in.state, _ = doc.Root().Get("requestState")
	if k := in.requests.Kind(); k != wire.Object && k != wire.Invalid && k != wire.Null {
		return in, errors.New("the input that the server asks for cannot be read")
	}
	if k := in.state.Kind(); k != wire.String && k != wire.Invalid && k != wire.Null {
		return in, errors.New("the state that the server gives cannot be read")
	}
	return in, nil
}

// supply gets what a server asks for. A client of the legacy era is asked on the
// spot; one of the modern era gets the request as its answer, with our seal on
// it, and comes back with what was asked: then the answer is done.
func (c *call) supply(ctx context.Context, o *order, answer *upstream.Answer) (done bool, err error) {
	in, err := readInputs(answer)
	if err != nil {
		return false, &upstream.Failed{Upstream: o.line.up.Name, Text: "asked for input that cannot be read", Err: err}
	}
	responses := []byte(`"inputResponses":{`)
	open := 0
	for key, value := range in.requests.Members() {
		method, _ := value.Get("method")
		name, _ := method.Str()
		params, _ := value.Get("params")
		if err := c.server.mayAsk(o.line, c.client, name, params); err != nil {
			return false, c.refuseInput(err)
		}
		var got []byte
		switch {
		case c.modern && (name != askRoots || hasRoots(c.client)):
			open++
			continue
		case name == askRoots:
			got = c.rootsFor(ctx, o.line)
		default:
			if got, err = c.askClient(ctx, name, params.Raw()); err != nil {
				return false, err
			}
		}
		if responses[len(responses)-1] != '{' {
			responses = append(responses, ',')
		}
		responses = append(append(append(responses, key.Raw()...), ':'), got...)
	}
	responses = append(responses, '}')
	if open > 0 {
		return true, c.passInput(answer, in)
	}
	if in.state.Kind() == wire.String {
		responses = append(append(responses, `,"requestState":`...), in.state.Raw()...)
	}
	if in.requests.Len() == 0 {
		responses = bytesAfter(responses, `"inputResponses":{},`)
	}
	o.again = responses
	return false, nil
}

// bytesAfter cuts a beginning off.
func bytesAfter(b []byte, prefix string) []byte {
	return []byte(strings.TrimPrefix(string(b), prefix))
}

func (c *call) refuseInput(err error) error {
	return &refused{gate.Verdict{Decision: capability.Denial(capability.CapabilityAbsent, nil), Why: err.Error()}}
}

// askClient asks a client of the legacy era what a modern server wants to know.
// There is no way to hand on a client's refusal, except that a question to a
// person can be called off.
func (c *call) askClient(ctx context.Context, method string, params []byte) ([]byte, error) {
	if c.session == nil {
		return nil, c.refuseInput(errors.New("the client cannot be asked during this request"))
	}
	got, err := answerOf(c.session.ask(ctx, c.out, method, c.scrubbed(params)))
	if err != nil && method == askElicitation && ctx.Err() == nil {
		return []byte(`{"action":"cancel"}`), nil
	}
	if err != nil {
		return nil, &upstream.Failed{Upstream: c.behind, Text: "asked for input that the client did not give", Err: err}
	}
	return got, nil
}

// passInput seals the state of a server into the answer of an agent, together
// with the keys of what we answer ourselves when the agent comes back.
func (c *call) passInput(answer *upstream.Answer, in inputs) error {
	var own, filtered, shown []byte
	for key, value := range in.requests.Members() {
		if method, _ := value.Get("method"); method.Equal(askRoots) {
			if !hasRoots(c.client) {
				own = append(append(own, key.Raw()...), ',')
				continue
			}
			filtered = append(append(filtered, key.Raw()...), ',')
		}
		if len(shown) > 0 {
			shown = append(shown, ',')
		}
		shown = append(append(append(shown, key.Raw()...), ':'), value.Raw()...)
	}
	text := `{"own":[` + strings.TrimSuffix(string(own), ",") + `],"roots":[` + strings.TrimSuffix(string(filtered), ",") + `]`
	if in.state.Kind() == wire.String {
		text += `,"state":` + string(in.state.Raw())
	}
	sealed, err := c.server.seal.close(c.bond("input"), []byte(text+"}"))
	if err != nil {
		return err
	}
	answer.Result = []byte(`{"resultType":"input_required","inputRequests":{` + string(c.scrubbed(shown)) + `},"requestState":"` + sealed + `"}`)
	return nil
}

// bond is what the state of this call is bound to: the agent, what it called, and
// the very arguments.
func (c *call) bond(purpose string) bond {
	return bond{purpose: purpose, agent: c.agent, about: c.method + " " + c.exposed, digest: sha256.Sum256(c.args.Raw())}
}

// resume reads the state that an agent brings back into an order, and refuses
// one that it was not given for exactly this.
func (c *call) resume(o *order) error {
	state, hasState := c.params.Get("requestState")
	given, hasInput := c.params.Get("inputResponses")
	if !hasState {
		o.again = unasked(o.line.up, given)
		return nil
	}
	text, ok := state.Str()
	if !ok || hasInput && given.Kind() != wire.Object {
		return errSeal
	}
	plain, err := c.server.seal.open(c.bond("input"), text)
	if err != nil {
		return err
	}
	var doc wire.Doc
	if err := doc.Parse(plain, wire.Limits{}); err != nil {
		return err
	}
	own, _ := doc.Root().Get("own")
	responses := []byte(`"inputResponses":{`)
	add := func(key, value []byte) {
		if responses[len(responses)-1] != '{' {
			responses = append(responses, ',')
		}
		responses = append(append(append(responses, key...), ':'), value...)
	}
	for key := range own.Elems() {
		add(key.Raw(), c.server.roots(c.agent))
	}
	roots, _ := doc.Root().Get("roots")
	for key, value := range given.Members() {
		switch {
		case holds(own, key):
		case holds(roots, key):
			add(key.Raw(), c.server.within(c.agent, value.Raw()))
		default:
			add(key.Raw(), value.Raw())
		}
	}
	o.again = append(responses, '}')
	if v, ok := doc.Root().Get("state"); ok {
		o.again = append(append(o.again, `,"requestState":`...), v.Raw()...)
	}
	return nil
}

// holds reports whether a list of texts holds one.
func holds(list, key wire.Value) bool {
	text, _ := key.Str()
	for v := range list.Elems() {
		if v.Equal(text) {
			return true
		}
	}
	return false
}

// unasked is what goes up of answers to questions that were not put in this call.
// A client may know beforehand what it will be asked. What directories it works
// in is not for it to say.
func unasked(u *Upstream, given wire.Value) []byte {
	if !u.asksClient() || given.Kind() != wire.Object {
		return nil
	}
	dst := []byte(`"inputResponses":{`)
	for key, value := range given.Members() {
		if _, has := value.Get("roots"); has || value.Kind() != wire.Object {
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, key.Raw()...), ':'), value.Raw()...)
	}
	if dst[len(dst)-1] == '{' {
		return nil
	}
	return append(dst, '}')
}
