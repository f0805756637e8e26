package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"capgate/capability"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/leash"
	"capgate/upstream"
	"capgate/wire"
)

// call is one request of an agent while it is answered.
type call struct {
	message
	server  *Server
	ctx     context.Context //nolint:containedctx // a call is one request, and is handed down in place of it
	policy  *Policy
	tenant  *tenant
	agent   string
	session *session // nil for a request of the modern era
	modern  bool
	client  wire.Value // the capabilities of the client that asks

	credential string        // the id of the token that was shown, "" over stdio
	life       *leash.Leash  // of a request that ends with its token; nil for any other
	mirrored   *mirror       // the headers that repeat what the body says, of a modern request over HTTP
	out        stream        // takes what goes to the agent before the answer
	into       *[]byte       // where a server's answer may be read into, once; nil: memory of its own
	room       upstream.Room // for answers, nil where nothing bounds them together

	args     wire.Value        // the arguments of a tool or prompt
	exposed  string            // the name that the agent called, or the URI
	target   string            // the same among capabilities
	looked   *catalogue        // in which something was found last that is not to be of a skill
	pin      string            // what is kept of its definition, "" for a tool of that name
	behind   string            // the upstream
	declared *gate.Declaration // what the operator says that is called touches
	ref      string            // ties the events of the call
	ups      int64             // how often the server of what is asked for had come up when that was found
	stale    bool              // the policy was changed before the call went up, or the server was started anew
	renewed  bool              // the latter, so that it was decided anew
	paused   *order            // has been up, and is decided anew before it goes up with the input
	cameBack bool              // the parked call that it is about has been found
	start    time.Time

	wantsLogin bool // its server wants a person to log in, so that later is no better
}

// stream takes messages for the agent that go before the answer to a request.
type stream interface {
	// send takes one message. It does not keep its text. Whether it may go is asked when the
	// agent takes it, over HTTP.
	send(message queued) error
}

// reply is the answer to a request: a result or a failure.
type reply struct {
	result  []byte
	failure *failure
	status  int // of HTTP, 0 for the usual one

	// head and tail stand around the result, which then is one that is kept and
	// not copied.
	head, tail []byte

	ours bool // nothing of a server's is in it

	// done is set when the answer was sent already, on the stream, and empty when it says
	// nothing but that the request is over.
	done, empty bool
}

// failure is an error of JSON-RPC.
type failure struct {
	code int
	text string
	data []byte // JSON, nil for none
	raw  []byte // the whole error object as a server wrote it, instead of the above
}

func fail(code int, text string) reply { return reply{failure: &failure{code: code, text: text}} }

// size is about how long the answer is as a message.
func (r *reply) size() int { return len(r.head) + len(r.result) + len(r.tail) + maxID + 64 }

// append writes the answer as a message.
func (r *reply) append(dst, id []byte) []byte {
	dst = r.open(dst, id)
	dst = append(dst, r.result...)
	return r.close(dst)
}

// open writes what stands before the result in the message.
func (r *reply) open(dst, id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	dst = append(append(dst, `{"jsonrpc":"2.0","id":`...), id...)
	switch {
	case r.failure == nil:
		return append(append(dst, `,"result":`...), r.head...)
	case r.failure.raw != nil:
		return append(append(dst, `,"error":`...), r.failure.raw...)
	}
	dst = strconv.AppendInt(append(dst, `,"error":{"code":`...), int64(r.failure.code), 10)
	dst = wire.AppendString(append(dst, `,"message":`...), r.failure.text)
	if r.failure.data != nil {
		dst = append(append(dst, `,"data":`...), r.failure.data...)
	}
	return append(dst, '}')
}

// close writes what stands behind the result.
func (r *reply) close(dst []byte) []byte { return append(append(dst, r.tail...), '}') }

// answer finds who answers a request and has it answered.
func (c *call) answer() reply {
	h, ok := c.server.methods[c.method]
	if !ok || !c.inEra() {
		return c.unknownMethod()
	}
	if !c.tenant.enter() {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: "too many requests at once"})
	}
	defer c.tenant.leave()
	if counted(c.method) && !c.tenant.mayCall(c.start) {
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: "too many calls in a minute"})
	}
	for range maxTurns {
		if counted(c.method) && !c.policy.knows(c.agent) {
			return c.deny(gate.Verdict{Decision: capability.Denial(capability.Unauthenticated, nil), Why: noRecord})
		}
		if r := h(c); !c.stale || c.method == listenMethod {
			return r
		}
		if !c.catchUp() {
			return c.deny(revoked())
		}
	}
	return c.deny(restless())
}

// catchUp has the call decided by the policy that has come, and reports whether its token
// is good by that one.
func (c *call) catchUp() bool {
	c.stale, c.policy = false, c.server.policy.Load()
	return c.credential == "" || c.policy.holds(c.credential, c.agent, c.server.now())
}

// revoked is the verdict on what is asked for with a token that is good no more.
func revoked() gate.Verdict {
	return gate.Verdict{Decision: capability.Denial(capability.Unauthenticated, nil), Why: errRevoked.Error()}
}

// restless is the verdict on what no policy lasted long enough for.
func restless() gate.Verdict {
	return gate.Verdict{Decision: capability.Denial(capability.NotAvailable, nil), Why: unsettled}
}

const unsettled = "the policy was changed again and again during the call, or its server was started anew"

// maxTurns is how often a call is decided anew because the policy has changed, or what its server has.
const maxTurns = 4

// counted reports whether a method counts against what an agent may call in a
// minute: all that a server could be contacted for.
func counted(method string) bool {
	switch method {
	case "tools/call", "prompts/get", "resources/read", "resources/subscribe", "completion/complete",
		"skills/get", "resources/directory/read":
		return true
	}
	return false
}

// inEra reports whether a method is one of the era that the request is of.
func (c *call) inEra() bool {
	switch c.method {
	case "server/discover":
		return true // it is how a client finds out
	case listenMethod:
		return c.modern
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return !c.modern
	}
	return true
}

func (c *call) unknownMethod() reply {
	e := c.event("refusal")
	e.Code, e.Text = string(capability.MalformedRequest), "there is no such method"
	c.server.record(e)
	r := fail(codeMethod, "there is no method "+strconv.QuoteToASCII(c.method))
	if c.modern {
		r.status = 404
	}
	return r
}

// event begins a record of what happens to the call.
func (c *call) event(kind string) *guardrail.Event {
	e := &guardrail.Event{
		Kind: kind, Call: c.ref, Agent: c.agent, Upstream: c.behind, Tool: c.target, Method: c.method, Policy: c.policy.Hash,
	}
	if c.session != nil {
		e.Session = c.session.name
	}
	return e
}

// decision begins the record of what is decided of the call. Of its arguments, that has the names.
func (c *call) decision() *guardrail.Event {
	e := c.event(guardrail.Decision)
	if n := c.args.Len(); n > 0 && c.args.Kind() == wire.Object {
		e.Names = make([]string, 0, min(n, maxNames))
		for key := range c.args.Members() {
			if len(e.Names) == maxNames {
				break
			}
			name, _ := key.Str()
			e.Names = append(e.Names, name)
		}
		e.MoreNames = n - len(e.Names)
	}
	return e
}

// maxNames is how many names of arguments an event has.
const maxNames = 64

// maxNoise is how many events a minute there may be, of each agent and of those who
// are none, of what was refused before it was decided, and of sessions. Anybody can
// cause them, and nobody shall fill the disk with them, or hide among them what
// somebody else does.
const maxNoise = 600

// noise is the events of one agent that it can cause at will.
type noise struct {
	bucket bucket
	missed int // of them, not recorded
}

// loud reports whether one more may be recorded, and how many before it were not.
func (s *Server) loud(agent string) (missed int, fits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.noise[agent]
	if n == nil {
		n = new(noise)
		s.noise[agent] = n
	}
	if !n.bucket.take(s.now(), maxNoise) {
		n.missed++
		return 0, false
	}
	missed, n.missed = n.missed, 0
	return missed, true
}

// record writes an event. That it could not be written is logged here; whether
// that stops anything is for whoever asked to know. Of refusals and sessions beyond a
// limit only the number is recorded, with the next one.
func (s *Server) record(e *guardrail.Event) string {
	if e.Kind == "refusal" || e.Method == "initialize" || e.Code == string(capability.LimitExceeded) || e.Kind == guardrail.Notice && e.Session != "" {
		missed, fits := s.loud(e.Agent)
		if !fits {
			return ""
		}
		if missed > 0 {
			e.Text = fmt.Sprintf("%s (%d before it were not recorded)", e.Text, missed)
		}
	}
	ref, err := s.events.Record(e)
	if err != nil {
		s.log.Error("an event could not be recorded", "error", err, "kind", e.Kind, "agent", e.Agent)
	}
	if e.Kind == guardrail.Refusal && e.Agent+e.Upstream != "" { // what nobody asks is logged with where it comes from
		s.tell(ref, e)
	}
	return ref
}

// allow records that a call goes up, and says so only if that could be recorded.
func (c *call) allow(v gate.Verdict) (reply, bool) {
	if c.server.policy.Load() != c.policy {
		// What was looked up may be of the policy that came, what was decided of the one
		// that went: it is decided anew.
		c.stale = true
		return reply{}, false
	}
	if !c.server.holds(c.credential, c.agent) { // it may have waited for long
		return c.deny(revoked()), false
	}
	e := c.decision()
	e.Decision, e.Needs, e.Grant = "allow", needsOf(v), grantText(v)
	if _, err := c.server.events.Record(e); err != nil {
		c.server.log.Error("a call was not forwarded, because it could not be recorded", "error", err, "agent", c.agent, "tool", c.target)
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.NotAvailable, nil), Why: unrecorded}), false
	}
	return reply{}, true
}

// cut is the answer to a call that something has ended before its server answered.
func (c *call) cut() reply {
	d := denial{code: capability.Unauthenticated, tool: c.exposed, hint: operatorHint + "; it may or may not have been done"}
	switch {
	case c.server.ctx.Err() != nil, errors.Is(c.ctx.Err(), errEnded):
		return fail(codeInternal, "the gateway ends; what was asked may or may not have been done")
	case !c.server.policy.Load().knows(c.agent):
		d.why = noRecord
	case !c.server.holds(c.credential, c.agent):
		d.why = errRevoked.Error()
	default:
		return fail(codeInternal, "the request was cancelled")
	}
	return c.unanswered(d, d.why)
}

// take is memory that an answer may be written to, once; nil for none.
func (c *call) take() *[]byte {
	into := c.into
	c.into = nil
	return into
}

// unanswered is the answer to a call that went up and has none.
func (c *call) unanswered(d denial, why string) reply {
	e := c.event("refusal")
	e.Code, e.Error = string(d.code), why
	d.event = c.server.record(e)
	if c.method == "tools/call" {
		return reply{result: c.server.word(d).result(nil, c.modern), ours: true}
	}
	f := c.server.word(d).failure()
	f.code = codeInternal
	return reply{failure: f, ours: true}
}

const noRecord = "there is no record of the agent any more"

// outcome records what came of a call that went up.
func (c *call) outcome(size int, problem string) {
	e := c.event("outcome")
	e.Latency, e.Bytes, e.Error = c.server.now().Sub(c.start), size, problem
	c.server.record(e)
}

// fault is what went wrong by the word of a tool itself, "" for nothing.
func (c *call) fault(answer upstream.Answer) string {
	if answer.Failed && c.method == "tools/call" {
		return "the tool says that it failed"
	}
	return ""
}

// grantText is the text of the grant that allowed a call, or of all that did.
func grantText(v gate.Verdict) string {
	if g := v.Decision.Grant(); g != nil && len(v.Grants) < 2 {
		return g.String()
	}
	texts := make([]string, 0, 8) // there are seldom more
	for _, g := range v.Grants {
		texts = append(texts, g.String())
	}
	return strings.Join(texts, "; ")
}

// reference makes the text that ties the events of one call.
func (s *Server) reference() string {
	return s.name + strconv.FormatUint(s.ids.Add(1), 36)
}

// secret makes a text that nobody guesses.
func (s *Server) secret() (string, error) {
	var b [18]byte
	if _, err := io.ReadFull(s.random, b[:]); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b[:]), nil
}

// closing makes a result one of the modern era, which says that it is complete,
// when the request was and the result says nothing of the kind.
func (c *call) closing(result []byte) []byte {
	if !c.modern {
		return result
	}
	return withMembers(result, complete)
}

const complete = `"resultType":"complete"`

// typed is an answer whose resultType is the protocol's. To a legacy server it is a word of
// its own, which a legacy agent gets as it is, but for the one that would have a client call again:
// the server has done what was asked, and is not asked once more.
func typed(info upstream.Info, answer upstream.Answer, modern bool) upstream.Answer {
	switch {
	case info.Modern || answer.Type == "" || answer.Type == "complete":
		return answer
	case answer.Type == "input_required":
		answer.Type = "of a legacy server"
		return answer
	}
	if modern {
		var doc wire.Doc
		if doc.ParseLoosely(answer.Result, wire.Limits{Bytes: len(answer.Result)}) != nil {
			return answer
		}
		v, _ := doc.Root().Get("resultType")
		start, end := v.Span()
		answer.Result = slices.Concat(answer.Result[:start], []byte(`"complete"`), answer.Result[end:])
	}
	answer.Type = "complete"
	return answer
}

// withMembers puts members in front of those that an object has.
func withMembers(object []byte, members string) []byte {
	rest := bytes.TrimLeft(object[1:], " \t\r\n")
	dst := make([]byte, 0, len(object)+len(members)+2)
	dst = append(append(dst, '{'), members...)
	if rest[0] != '}' {
		dst = append(dst, ',')
	}
	return append(dst, rest...)
}

// notice logs something about the call that its agent is not told.
func (c *call) notice(text string, args ...any) {
	args = append(args, "agent", c.agent, "upstream", c.behind, "tool", c.target)
	c.server.log.WarnContext(c.ctx, text, args...) //nolint:sloglint // each of the few callers passes a constant
}
