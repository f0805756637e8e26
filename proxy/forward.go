package proxy

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"

	"capgate/capability"
	"capgate/gate"
	"capgate/leash"
	"capgate/upstream"
	"capgate/wire"
)

// order is a request to a server, before it is known which era it speaks.
type order struct {
	line    *line
	method  string
	name    string // what Mcp-Name carries
	header  []upstream.Field
	body    func(dst []byte) ([]byte, error) // the members of params, without _meta
	again   []byte                           // further members that a retry carries
	up      bool                             // the server has answered it, and asked for more
	renewed bool                             // it was decided for a server before that was started anew
	ups     int64                            // how often the server had come up when it was decided, 0 where any may have it
}

// request writes an order in the words of the server.
func (c *call) request(o *order, info upstream.Info, token string) (upstream.Request, error) {
	r := upstream.Request{Method: o.method, Token: token}
	dst, giveBack := c.server.paper(upstream.HeadRoom + len(c.params.Raw()) + metaRoom)
	dst = append(dst[:upstream.HeadRoom], '{')
	dst, err := o.body(dst)
	if err != nil {
		return r, err
	}
	if len(o.again) > 0 {
		dst = append(append(dst, ','), o.again...)
	}
	mark := len(dst)
	if mark > upstream.HeadRoom+1 {
		dst = append(dst, ',')
	}
	before := len(dst)
	dst = c.appendMeta(dst, o.line, info, token)
	if len(dst) == before {
		dst = dst[:mark]
	}
	dst = append(dst, '}')
	r.Params, r.Around = dst[upstream.HeadRoom:], dst
	if giveBack != nil {
		r.Sent = func() { giveBack(dst) }
	}
	if info.Modern {
		r.Name, r.Header = o.name, o.header
	}
	return r, nil
}

const (
	metaRoom   = 512      // bytes of what is written besides the params of an agent
	largePaper = 32 << 10 // from which length memory for params is worth keeping
)

// paper returns memory to write the params of a request in, and what takes it back
// when nothing reads it any more; nil where that is not worth it.
func (s *Server) paper(size int) ([]byte, func([]byte)) {
	if size < largePaper {
		return make([]byte, size), nil
	}
	kept, ok := s.papers.Get().(*[]byte)
	if !ok {
		kept = new([]byte)
	}
	return slices.Grow((*kept)[:0], size)[:size], func(used []byte) {
		if cap(used) <= pooledBody {
			*kept = used
			s.papers.Put(kept)
		}
	}
}

// appendMeta writes what a server may know besides the arguments: how to report
// progress, where the call belongs in a trace, and, in the modern era, what may
// be asked of the client. Nothing else of the agent's _meta goes up.
func (c *call) appendMeta(dst []byte, l *line, info upstream.Info, token string) []byte {
	start := len(dst)
	sep := `"_meta":{`
	member := func(key string, value []byte) {
		dst = append(append(dst, sep...), '"')
		dst = append(append(append(dst, key...), `":`...), value...)
		sep = ","
	}
	if token != "" {
		member("progressToken", []byte(`"`+token+`"`))
	}
	for _, key := range [...]string{"traceparent", "tracestate", "baggage"} {
		if v, ok := c.meta.Get(key); ok && isTrace(key, v) {
			member(key, v.Raw())
		}
	}
	if info.Modern {
		member(metaVersion, []byte(`"`+info.Version+`"`))
		member(metaClient, c.server.self())
		member(metaCapabilities, appendOffered(nil, l.up(), c.client))
		if level := c.logLevel(); level != "" {
			member(metaLogLevel, []byte(`"`+level+`"`))
		}
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, '}')
}

// meta appends _meta for requests of our own. It is nil for a server that wants
// none.
func (l *line) meta(info upstream.Info) func(dst []byte) []byte {
	if !info.Modern {
		return nil
	}
	return func(dst []byte) []byte {
		dst = append(dst, `{"`+metaVersion+`":"`+info.Version+`","`+metaClient+`":`...)
		dst = append(dst, l.tenant.server.self()...)
		return append(dst, `,"`+metaCapabilities+`":{`+ourExtensions+`}}`...)
	}
}

// self is the gateway as a client.
func (s *Server) self() []byte {
	return []byte(`{"name":"capgate","version":` + string(wire.AppendString(nil, s.version)) + `}`)
}

// What a modern request says of itself within _meta.
const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
)

const maxTrace = 8192 // bytes of a member of _meta that belongs to a trace

// isTrace reports whether a value may be one of those that W3C defines. What it
// says is for tracing only; it is never made a header.
func isTrace(key string, v wire.Value) bool {
	text, ok := v.Str()
	if !ok || text == "" || len(text) > maxTrace {
		return false
	}
	if key == "traceparent" {
		return isTraceParent(text)
	}
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

func isTraceParent(text string) bool {
	if len(text) != 55 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		switch {
		case i == 2 || i == 35 || i == 52:
			if c != '-' {
				return false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
		default:
			return false
		}
	}
	return true
}

// forward sends an order up and brings the answer back as a reply.
func (c *call) forward(o *order) reply {
	answer, err := c.exchange(o)
	if err != nil {
		return c.failed(o, err)
	}
	if answer.Error != nil {
		c.outcome(len(answer.Error), "the server answered with an error")
		return c.translated(o, answer.Error)
	}
	c.outcome(len(answer.Result), c.fault(answer))
	result, ok := c.server.clean(o.line.up(), answer.Result)
	if !ok {
		return c.broken(o, errScrubbed)
	}
	if answer.Type == "" {
		result = c.closing(result)
	}
	return reply{result: result}
}

// translated is an error of a server in the era of the agent: some codes mean
// something else there, or nothing.
func (c *call) translated(o *order, raw []byte) reply {
	raw, ok := c.server.clean(o.line.up(), raw)
	if !ok {
		return fail(codeInternal, "the server answered with an error that cannot be shown")
	}
	var doc wire.Doc
	if doc.ParseLoosely(raw, wire.Limits{}) != nil {
		return fail(codeInternal, "the server answered with an error that cannot be read")
	}
	v, _ := doc.Root().Get("code")
	if code, _ := v.Int64(); code == openPages && (!doc.Sound() || c.pages(o.line, doc.Root()) != nil) {
		return fail(codeInternal, "the server wants a page to be opened first, which it may not ask for here")
	}
	if !c.modern {
		return reply{failure: &failure{raw: raw}}
	}
	start, end := v.Span()
	as := func(code int) []byte {
		return append(append(append([]byte(nil), raw[:start]...), strconv.Itoa(code)...), raw[end:]...)
	}
	switch code, _ := v.Int64(); code {
	case codeClientCannot:
		return reply{failure: &failure{raw: raw}, status: 400}
	case legacyNotFound:
		return reply{failure: &failure{raw: as(codeParams)}}
	case codeHeader, codeVersion: // what went wrong is between the gateway and the server
		return reply{failure: &failure{raw: as(codeInternal)}}
	}
	return reply{failure: &failure{raw: raw}}
}

// openPages is the code of an error that has a client open pages and come back.
const openPages = -32042

// pages refuses the pages of such an error that the server could not have asked to
// be opened in a request of its own.
func (c *call) pages(l *line, failure wire.Value) error {
	data, _ := failure.Get("data")
	list, _ := data.Get("elicitations")
	switch {
	case c.modern:
		return l.unasked(askElicitation, "the server wants pages to be opened by an error, which the client does not know")
	case list.Kind() != wire.Array || list.Len() == 0 || disguised(failure, "data"):
		return l.unasked(askElicitation, "which pages the server wants to be opened cannot be read")
	}
	for one := range list.Elems() {
		if mode, _ := one.Get("mode"); !mode.Equal("url") {
			return l.unasked(askElicitation, "the server wants something to be opened that is no page")
		}
		if err := c.server.mayAsk(l, c.client, askElicitation, one); err != nil {
			return err
		}
	}
	return nil
}

// legacyNotFound is the code of a resource that is not there, in the legacy era.
const legacyNotFound = -32002

// failed is the answer when there is none from the server.
func (c *call) failed(o *order, err error) reply {
	if errors.Is(err, errStale) || errors.Is(err, errOther) { // so that it did not go up
		c.stale, c.renewed = true, c.renewed || errors.Is(err, errOther)
		c.outcome(0, err.Error())
		return reply{}
	}
	if denied := (*capability.Denied)(nil); errors.As(err, &denied) {
		c.outcome(0, "denied at the moment of use")
		return c.deny(gate.Verdict{Decision: denied.Decision, Why: "denied at the moment of use"})
	}
	if r, ok := errors.AsType[*refused](err); ok {
		c.outcome(0, r.verdict.Why)
		return c.deny(r.verdict)
	}
	if errors.Is(err, errSeal) {
		c.outcome(0, "requestState: "+err.Error())
		return c.malformed("requestState: " + err.Error())
	}
	c.outcome(0, err.Error())
	if c.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return c.cut()
	}
	c.notice("a call failed", "error", err)
	return c.broken(o, err)
}

// refused is a denial that came up while the call was under way.
type refused struct{ verdict gate.Verdict }

func (r *refused) Error() string { return r.verdict.Why }

// broken tells the agent that a server did not answer, and which one.
func (c *call) broken(o *order, err error) reply {
	name := "upstream " + strconv.Quote(o.line.up().Name)
	said, done := "did not answer", "; it may or may not have been done"
	if f, ok := errors.AsType[*upstream.Failed](err); ok {
		if said = f.Text; (f.Unsent || f.Undone) && !o.up && !c.isBack() {
			done = "; it was not done"
		}
	}
	said, hint := advised(said)
	d := denial{code: capability.UpstreamFailed, tool: c.exposed, why: name + " " + said, hint: hint + done}
	switch login, wanted := errors.AsType[*upstream.NeedsLogin](err); {
	case wanted:
		d.why, d.hint = name+": "+login.Error(), operatorHint+done
	case errors.Is(err, context.DeadlineExceeded):
		d.why = name + " did not answer in time"
	case errors.Is(err, errTooManyParked):
		d.code, d.why = capability.LimitExceeded, name+" asks for input, and "+err.Error()
		d.hint = "answer what other calls ask first; it may or may not have been done"
	case errors.Is(err, upstream.ErrNoRoom):
		d.code = capability.LimitExceeded
	}
	return c.unanswered(d, err.Error())
}

// exchange sends an order up, as often as the server asks for input in between.
func (c *call) exchange(o *order) (upstream.Answer, error) {
	ctx := leash.New(c.ctx).Within(c.timeLimit(o.line.up()))
	defer ctx.Cut(nil)
	if p := c.paused; p != nil {
		if c.paused = nil; p.line != o.line { // what it gave is for nobody else
			return upstream.Answer{}, &upstream.Failed{Upstream: o.line.up().Name, Text: "is another one than asked for input"}
		}
		o.again, o.up = p.again, true
		return c.rounds(ctx, o)
	}
	if c.modern && mayNeedInput(o.method) && o.line.up().asksClient() {
		reach := leash.New(ctx).Within(c.patience(o.line.up()))
		conn, err := o.line.link.Conn(reach)
		reach.Cut(nil)
		if err == nil && !c.server.holds(c.credential, c.agent) { // which is looked at again for what is up
			err = &refused{revoked()}
		}
		if err != nil {
			return upstream.Answer{}, err
		}
		if info := conn.Info(); !info.Modern {
			return c.park(o, info)
		}
	}
	if c.modern {
		if err := c.resume(o); err != nil {
			return upstream.Answer{}, err
		}
	}
	return c.rounds(ctx, o)
}

// rounds sends an order up until the answer is complete.
func (c *call) rounds(ctx context.Context, o *order) (upstream.Answer, error) {
	for range maxRounds {
		answer, err := c.send(ctx, o)
		if err != nil || answer.Type != "input_required" || !mayNeedInput(o.method) {
			return c.known(answer, err)
		}
		o.up = true
		done, err := c.supply(ctx, o, &answer)
		if err != nil || done {
			return answer, err
		}
	}
	return upstream.Answer{}, &upstream.Failed{Upstream: o.line.up().Name, Text: "asked for input again and again"}
}

// mayNeedInput reports whether a method is one in which a server may ask for input.
func mayNeedInput(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// known refuses results of a type that is not known: what they mean cannot be
// known either.
func (c *call) known(answer upstream.Answer, err error) (upstream.Answer, error) {
	if err == nil && answer.Type != "" && answer.Type != "complete" {
		err = &upstream.Failed{Upstream: c.behind, Text: "answered with a result of a type that is not known"}
	}
	return answer, err
}

// maxRounds is how often a server may ask for input within one call.
const maxRounds = 16

// send makes one request of an order and waits for its answer.
func (c *call) send(ctx context.Context, o *order) (upstream.Answer, error) {
	sink := &errand{call: c, line: o.line, of: o}
	var token string
	if v, ok := c.progress(); ok {
		token = "capgate-" + c.server.reference()
		sink.token, sink.progress = token, v.Raw()
	}
	into := c.take() // what a server asks for is used while the next answer comes
	if u := o.line.up(); u.asksClient() {
		wait := leash.New(ctx)
		defer wait.Cut(nil)
		sink.vigil = newVigil(c.patience(u), func() { wait.Cut(context.DeadlineExceeded) })
		defer sink.vigil.end()
		ctx = wait
	}
	o.line.begin(c, sink)
	defer o.line.finish(c)
	may := func() error { return cmp.Or(c.current(o), c.still(o)) }
	return o.try(ctx, func(conn upstream.Conn) (upstream.Answer, error) {
		o.line.loudness(ctx, conn, c.logLevel(), may) // before the last look, as the server is waited for
		if err := may(); err != nil {
			return upstream.Answer{}, err
		}
		r, err := c.request(o, conn.Info(), token)
		if err != nil {
			return upstream.Answer{}, err
		}
		r.Into, r.Room = into, c.room
		r.May = may
		answer, err := conn.Call(ctx, r, sink)
		return typed(conn.Info(), answer, c.modern), err
	})
}

// current refuses to send up what was decided by a policy that has gone while the
// server was reached, or reached once more, or was given the input that it asked for.
func (c *call) current(o *order) error {
	if c.server.policy.Load() == c.policy {
		return nil
	}
	if o.up {
		c.paused = o
	}
	return errStale
}

// progress is the token that the agent wants progress to be reported by.
func (c *call) progress() (wire.Value, bool) {
	v, ok := c.meta.Get("progressToken")
	return v, ok && (v.Kind() == wire.String || v.Kind() == wire.Number) && len(v.Raw()) <= maxID
}

// errand takes what a server sends while a call is up.
type errand struct {
	call     *call
	line     *line
	of       *order // what is up
	token    string // the progress token that the server has
	progress []byte // the one that the agent gave
	vigil    *vigil // over the server; nil where it may not ask anything
	asked    int    // questions of the call that are open, of a server that agents share
}

// Notify passes on what belongs to the call.
func (e *errand) Notify(method string, params []byte) {
	c := e.call
	switch method {
	case "notifications/progress":
		if out := e.progressFor(params); out != nil && c.out != nil {
			c.say(note(method, c.scrubbed(e.line.up(), out)))
		}
	case logMessage:
		if c.out != nil && c.wants(params) {
			c.say(note(method, c.scrubbed(e.line.up(), params)))
		}
	default:
		loose{e.line}.Notify(method, params)
	}
}

// say sends the agent something before the answer. An agent that is gone will
// not miss it.
func (c *call) say(message []byte) {
	if err := c.out.send(queued{text: message}); err != nil {
		c.server.log.Debug("a notification was not delivered", "agent", c.agent, "error", err)
	}
}

// progressFor puts the agent's token in the place of ours.
func (e *errand) progressFor(params []byte) []byte {
	var doc wire.Doc
	if e.token == "" || doc.Parse(params, wire.Limits{}) != nil {
		return nil
	}
	v, _ := doc.Root().Get("progressToken")
	if !v.Equal(e.token) {
		return nil
	}
	start, end := v.Span()
	return bytes.Join([][]byte{params[:start], e.progress, params[end:]}, nil)
}
