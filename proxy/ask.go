package proxy

import (
	"context"
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"capgate/capability"
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
		why = "the server asked for " + sayMethod(method) + ", which is not known"
	case !l.up().mayAsk(what):
		why = "the server asked for " + what + ", which may_ask does not let it"
	case what == "roots":
		return nil
	default:
		why = unable(client, what, params)
	}
	if why == "" {
		return nil
	}
	return l.unasked(method, why)
}

// sayMethod is what is said of a method, which a server may have written anything into: all of
// what looks like the name of one, and of anything else no word.
func sayMethod(method string) string {
	if method == "" || len(method) > maxSaidMethod || strings.Trim(method, methodLetters) != "" {
		return "something"
	}
	return method
}

const (
	maxSaidMethod = 64 // bytes of a method of a server's that are repeated
	methodLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/_$.-"
)

// unasked refuses a question of the server, which is an event.
func (l *line) unasked(method, why string) error {
	e := l.event("refusal", sayMethod(method))
	e.Code, e.Text = string(capability.CapabilityAbsent), why
	l.tenant.server.record(e)
	return &upstream.Refusal{Code: codeMethod, Message: "capgate: " + why}
}

// unable says why a client cannot be asked, "" if it can. A page is opened only
// over https.
func unable(client wire.Value, what string, params wire.Value) string {
	able, ok := client.Get(what)
	if !ok || able.Kind() != wire.Object {
		return "the client cannot answer requests for " + what
	}
	if disguised(params, "mode", "url", "tools") {
		return "the server asked in a way that is not known"
	}
	if what == "sampling" {
		if _, tools := params.Get("tools"); tools && !has(able, "tools") {
			return "the client cannot sample with tools"
		}
		return ""
	}
	mode, given := params.Get("mode")
	switch {
	case !given || mode.Equal("form"):
		if able.Len() > 0 && !has(able, "form") {
			return "the client does not fill in forms"
		}
	case !mode.Equal("url"):
		return "the server asked in a way that is not known"
	case !has(able, "url"):
		return "the client does not open pages"
	default:
		page, _ := params.Get("url")
		if text, _ := page.Str(); !isHTTPS(text) {
			return "the server asked to open a page that is not https"
		}
	}
	return ""
}

// disguised reports whether a question says something that only a reader who
// ignores case would see. What says it twice has not come this far.
func disguised(asked wire.Value, names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, plain := asked.Get(name)
		return !plain && hasFolded(asked, name)
	})
}

// has reports whether a client has an ability.
func has(able wire.Value, name string) bool {
	v, ok := able.Get(name)
	return ok && v.Kind() == wire.Object
}

func isHTTPS(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.User == nil
}

// roots answers what directories the agent works in: those that its grants hang
// from, and nothing that its client says. Servers take what they are told here
// for what they may touch, and for what relative paths hang from: the gate decides
// on those as well.
func (s *Server) roots(agent string) []byte {
	p := s.policy.Load()
	root := p.root(agent)
	if ag, ok := p.Gate.Roster.Agent(agent); !ok || ag.Err != nil || root == "" {
		return []byte(`{"roots":[]}`)
	}
	uri := (&url.URL{Scheme: "file", Path: root}).String()
	dst := wire.AppendString([]byte(`{"roots":[{"uri":`), uri)
	dst = wire.AppendString(append(dst, `,"name":`...), path.Base(root))
	return append(dst, "}]}"...)
}

// Ask answers what a server asks during a call.
func (e *errand) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	c := e.call
	var doc wire.Doc
	if params != nil && doc.Parse(params, wire.Limits{}) != nil {
		return nil, &upstream.Refusal{Code: codeParams, Message: "the params cannot be read"}
	}
	var client wire.Value
	if c.session != nil { // without one it cannot be asked now, and what it sent may be another request's already
		client = c.session.capabilities()
	}
	if err := c.server.mayAsk(e.line, client, method, doc.Root()); err != nil {
		return nil, err
	}
	if method == askRoots {
		return c.rootsFor(e.line), nil
	}
	if c.session.tenant.only == nil { // so that the server may mean another one of the agent
		return nil, e.line.unasked(method, "the session began before the server might ask anything: begin another")
	}
	e.line.asking(e, 1)
	defer e.line.asking(e, -1)
	clean := c.scrubbed(e.line.up(), params)
	o, err := c.session.ask(ctx, c.out, method, clean)
	if errors.Is(err, errUnsent) && e.line.tenant.only == c.session { // it may take event streams elsewhere
		o, err = e.line.put(ctx, method, clean)
	}
	switch up, may := e.line.judge(e); {
	case err != nil:
	case up && !may:
		return nil, e.line.unasked(method, notAnyMore)
	case !up && !e.line.isSeen(): // what came on a stream of no call is the session's when this one is over
		return nil, e.line.unasked(method, errUnput.Error())
	}
	return answerOf(o, err)
}

// notAnyMore is why a server is not told what an agent has answered.
const notAnyMore = "what the server asked about may not be called any more"

// mayStill reports whether what is up might go up by the policy in force, as what the agent answers
// is more of it.
func (e *errand) mayStill() bool {
	c, p := e.call, e.call.server.policy.Load()
	u := p.upstream(e.line.made.Name)
	switch {
	case p == c.policy:
		return true
	case u == nil:
		return false
	}
	switch name := e.of.name; {
	case e.of.method == "tools/call":
		return p.Gate.Call(c.agent, u.Tool(name), c.args).Decision.Allowed()
	case e.of.method == "prompts/get":
		return p.Gate.Prompt(c.agent, u.promptOf(name), c.args).Decision.Allowed()
	case e.of.method == "resources/read" && !isSkillURI(name):
		return p.Gate.Resource(c.agent, u.resources(), name).Decision.Allowed()
	}
	return false // what else is up, the new policy has not decided on
}

// Still is asked when an answer to the server is about to go, which may have waited for long.
func (e *errand) Still(method string) error { return e.line.stands(method, e.mayStill, notAnyMore) }

// stands refuses an answer that may not go any more. The event is recorded elsewhere, as
// others wait meanwhile.
func (l *line) stands(method string, may func() bool, why string) error {
	if method == askRoots || may() {
		return nil
	}
	l.tenant.server.work.Go(func() { _ = l.unasked(method, why) })
	return &upstream.Refusal{Code: codeMethod, Message: "capgate: " + why}
}

// rootsFor answers a server that asks for roots during a call.
func (c *call) rootsFor(l *line) []byte {
	if l.tenant.agent == "" {
		return []byte(`{"roots":[]}`) // a server that agents share is told of none of them
	}
	return c.server.roots(c.agent)
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
	case upstream.HeardAgain:
		l.doubted()
	case "notifications/tools/list_changed":
		l.renew(toolList)
	case "notifications/prompts/list_changed":
		l.renew(promptList)
	case "notifications/resources/list_changed":
		l.renew(resourceList, templateList, skillList)
	case resourceUpdated:
		l.updated(params)
	case logMessage, "notifications/elicitation/complete":
		if s := l.tenant.only; s != nil && (method != logMessage || s.wants(params)) {
			if clean, ok := l.tenant.server.clean(l.up(), append([]byte(nil), params...)); ok {
				s.notify(method, clean, l.isSeen)
			}
		}
		if l.tenant.only == nil && method == logMessage {
			l.logged(params)
		}
	}
}

// logged passes on a log of a server that does not say for which call it is, during
// the only one that is up. Where agents share the server it may be about another.
func (l *line) logged(params []byte) {
	if l.tenant.agent == "" {
		return
	}
	l.saying.Lock()
	defer l.saying.Unlock()
	sink := l.onlyCall(true)
	if sink == nil {
		return
	}
	sink.Notify(logMessage, params)
	l.mu.Lock()
	l.told = nil
	l.mu.Unlock()
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
	if l.tenant.agent == "" && method != askRoots {
		return nil, l.unasked(method, "agents share the server: it is ambiguous whose this request is")
	}
	if sink := l.onlyCall(false); sink != nil {
		return sink.Ask(ctx, method, params)
	}
	var doc wire.Doc
	if params != nil && doc.Parse(params, wire.Limits{}) != nil {
		return nil, &upstream.Refusal{Code: codeParams, Message: "the params cannot be read"}
	}
	var client wire.Value
	switch {
	case l.tenant.only != nil:
		client = l.tenant.only.capabilities()
	case method != askRoots:
		return nil, l.unasked(method, "it is ambiguous whose this request is: "+l.inTheWay())
	}
	if err := s.mayAsk(l, client, method, doc.Root()); err != nil {
		return nil, err
	}
	if method != askRoots && !l.isSeenBy(ctx) {
		return nil, l.unasked(method, "the agent is shown nothing of the server")
	}
	if method == askRoots {
		if l.tenant.agent == "" {
			return []byte(`{"roots":[]}`), nil // of which agent, nobody can say
		}
		return s.roots(l.tenant.agent), nil
	}
	clean, ok := s.clean(l.up(), params)
	if !ok {
		return nil, &upstream.Refusal{Code: codeParams, Message: "the params cannot be shown"}
	}
	return l.answered(ctx, method, clean)
}

// Still is that of the only call that is up, as the question was for that one, or for none.
func (e loose) Still(method string) error {
	l := e.line
	if err := l.stands(method, l.isSeen, errUnput.Error()); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, sink := range l.flights {
		if only, ok := sink.(upstream.Wary); ok && len(l.flights) == 1 {
			return only.Still(method)
		}
	}
	return nil
}

// answered puts a question that belongs to no call, and returns what the agent says, if the server
// may hear of that still.
func (l *line) answered(ctx context.Context, method string, params []byte) ([]byte, error) {
	l.asking(nil, 1) // agents do not share it
	defer l.asking(nil, -1)
	o, err := l.put(ctx, method, params)
	if errors.Is(err, errUnput) || err == nil && !l.isSeenBy(ctx) {
		return nil, l.unasked(method, errUnput.Error())
	}
	return answerOf(o, err)
}

// isSeen reports whether the agent is shown anything of the server, as far as is known, or calls it.
// To others it has nothing to say.
func (l *line) isSeen() bool {
	if !l.inUse() {
		return false
	}
	l.mu.Lock()
	calls := len(l.flights) > 0
	l.mu.Unlock()
	cat := l.tenant.known()
	return calls || cat != nil && cat.seen[l]
}

// isSeenBy is isSeen once that is known.
func (l *line) isSeenBy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	if l.isSeen() {
		return true
	}
	_, err := l.tenant.catalogue(ctx)
	return err == nil && l.isSeen()
}

// inTheWay says why nobody knows which call a server asks about. One that waits for its agent to
// come back gives way to those that somebody waits for, after a while. What was asked may be about
// either, so that it is for the next question, which can only be about the other.
func (l *line) inTheWay() string {
	l.mu.Lock()
	wanted := false
	for _, sink := range l.flights {
		p, ok := sink.(*parked)
		wanted = wanted || !ok || p.waiting() != nil
	}
	l.mu.Unlock()
	if wanted {
		switch some, others := l.tenant.server.parked.lapse(l); {
		case some && !others:
			return "another call waited for an answer that did not come, and has ended now: call again"
		case some || others:
			return "another call waits for an answer, which has to come first; where none comes within a minute, that call gives way to others"
		}
	}
	return "not one call is up, or several are"
}

// put asks the client of a session, over the stream that it listens to, or else that of one
// of its calls.
func (l *line) put(ctx context.Context, method string, params []byte) (outcome, error) {
	s := l.tenant.only
	outs := l.outs()
	if len(outs) == 0 || s.isListening() {
		ctx, drop := context.WithCancelCause(ctx)
		defer drop(nil)
		may := func() bool {
			if l.isSeen() {
				return true
			}
			drop(errUnput) // else it would be waited for
			return false
		}
		return s.ask(ctx, mailbox{s, may}, method, params)
	}
	for _, out := range outs {
		if o, err := s.ask(ctx, out, method, params); !errors.Is(err, errUnsent) {
			return o, err
		}
	}
	return outcome{}, l.unasked(method, "the client takes no event streams")
}

// outs are what the calls that are up are answered on.
func (l *line) outs() []stream {
	l.mu.Lock()
	defer l.mu.Unlock()
	var outs []stream
	for c := range l.flights {
		if c.out != nil {
			outs = append(outs, c.out)
		}
	}
	return outs
}

// asking counts the questions that are open. Meanwhile no call's time runs, as a program
// may keep any of them waiting for the answer; then each has all of it anew. Of a server
// that agents share only the call is meant that the question belongs to.
func (l *line) asking(of *errand, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tenant.agent == "" {
		of.asked += more
		l.watchOver(of)
		return
	}
	l.asked += more
	for _, sink := range l.flights {
		l.watchOver(sink)
	}
}

// watchOver has the time of a call run or not. The lock is held.
func (l *line) watchOver(sink upstream.Sink) {
	e, _ := sink.(*errand)
	if p, ok := sink.(*parked); ok {
		e = p.waiting()
	}
	switch {
	case e == nil || e.vigil == nil:
	case l.asked+e.asked > 0:
		e.vigil.rest()
	default:
		e.vigil.begin(time.Now())
	}
}

// onlyCall is the sink of the only call that is up, nil when there is none or
// there are several. To tell it something is to have it not end meanwhile.
func (l *line) onlyCall(tell bool) upstream.Sink {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.flights) != 1 {
		return nil
	}
	for c, sink := range l.flights {
		if tell {
			l.told = c
		}
		return sink
	}
	return nil
}
