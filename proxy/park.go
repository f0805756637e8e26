package proxy

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"capgate/upstream"
	"capgate/wire"
)

const (
	parkTime  = 10 * time.Minute // that a call waits for an agent to come back
	awayTime  = time.Minute      // the same, where it is in the way of another call
	maxParked = 32               // calls of one agent that wait
)

// parking holds the calls of agents of the modern era whose server, of the legacy
// era, asked something in between. The call stays open at the server, while the
// agent gets the question as its answer and comes back with another request.
type parking struct {
	mu    sync.Mutex
	calls map[string]*parked // by ticket
}

// parked is one such call.
type parked struct {
	cancel context.CancelFunc
	expire context.CancelCauseFunc // the same, for a call whose time is over
	line   *line
	token  string        // that the server reports progress by
	asks   chan struct{} // holds a token when there is something to answer
	done   chan struct{} // closed when the server has answered
	answer upstream.Answer
	err    error

	mu    sync.Mutex
	now   *errand // of the request that waits at the moment
	last  *call   // the last request of it
	by    *Policy // that it was decided by
	open  map[string]question
	count int
	limit *time.Timer
	agent *tenant   // whose call it is
	since time.Time // when its agent was asked; guarded by the parking
}

// question is what a server asks while its call is up.
type question struct {
	method string
	params []byte
	answer chan outcome
}

// Notify passes on to the request that waits at the moment. While none does, what is about
// the call is for nobody.
func (p *parked) Notify(method string, params []byte) {
	switch now := p.waiting(); {
	case now != nil:
		now.Notify(method, params)
	case method != "notifications/progress" && method != logMessage:
		loose{p.line}.Notify(method, params)
	}
}

// Take counts what the answer takes for the request that waits at the moment. While
// none does, the server has no reason to answer at length.
func (p *parked) Take(bytes int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now != nil && (p.now.call.room == nil || p.now.call.room.Take(bytes))
}

// Give leaves what was taken with the request that it was taken for, which may not be the
// one that waits now.
func (p *parked) Give(int) {}

// waiting is what waits for the call at the moment, nil while nobody does.
func (p *parked) waiting() *errand {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// owner is the request that waits for the call at the moment, or did last.
func (p *parked) owner() *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// isDone reports whether the server has answered.
func (p *parked) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Ask hands a question to the request that waits, and waits itself until some
// request has brought the answer. Meanwhile it counts like what waits for sessions.
func (p *parked) Ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	now := p.waiting()
	if now == nil {
		return nil, p.line.unasked(method, "nobody waits for the call, whose agent has been asked something")
	}
	c := now.call
	var doc wire.Doc
	if params != nil && doc.Parse(params, wire.Limits{}) != nil {
		return nil, &upstream.Refusal{Code: codeParams, Message: "the params cannot be read"}
	}
	if err := c.server.mayAsk(now.line, c.client, method, doc.Root()); err != nil {
		return nil, err
	}
	if method == askRoots {
		return c.rootsFor(now.line), nil
	}
	now.line.asking(now, 1)
	defer now.line.asking(now, -1)
	q := question{method: method, params: append([]byte(nil), c.scrubbed(now.line.up(), params)...), answer: make(chan outcome, 1)}
	size := len(q.params) + perMessage
	if !c.tenant.keep(size, maxUntaken) {
		return answerOf(outcome{}, errAskLimit)
	}
	defer c.tenant.keep(-size, 0)
	defer p.drop(p.add(q))
	select {
	case p.asks <- struct{}{}:
	default: // it is there already
	}
	select {
	case got := <-q.answer:
		if !p.mayStill() {
			return nil, p.line.unasked(method, notAnyMore)
		}
		return answerOf(got, nil)
	case <-p.done: // what came on a stream of no call outlives this one
		return answerOf(outcome{}, errCallOver)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

var errCallOver = errors.New("its call is over")

// Still is that of an errand.
func (p *parked) Still(method string) error { return p.line.stands(method, p.mayStill, notAnyMore) }

// mayStill is that of an errand. Where no request waits, what has come after the last one has
// decided on nothing.
func (p *parked) mayStill() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now != nil {
		return p.now.mayStill()
	}
	return p.line.tenant.server.policy.Load() == p.by
}

// park carries a call that may be asked something in between: a new one, or one
// that the agent comes back to.
func (c *call) park(o *order, info upstream.Info) (upstream.Answer, error) {
	late := make(chan struct{})
	sink := &errand{call: c, line: o.line, of: o, vigil: newVigil(c.patience(o.line.up()), func() { close(late) })}
	defer sink.vigil.end()
	p, err := c.unpark(sink)
	switch {
	case err != nil:
		return upstream.Answer{}, err
	case p == nil:
		if p, err = c.startParked(o, info, sink); err != nil {
			return upstream.Answer{}, err
		}
	case p.unanswered():
		return c.hold(p)
	}
	defer p.leave(sink)
	return c.await(p, late)
}

// leave ends the use of a request, and of what its agent sent.
func (p *parked) leave(e *errand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == e {
		p.now = nil
	}
}

// strand ends a call that no request waits for when the gateway ends. One that does has its time.
func (p *parked) strand() {
	if p.waiting() == nil {
		p.cancel()
	}
}

// outlive gives the call memory of its own for what the server's goroutines read
// of it: they may do so when the request, and its document, are over.
func (c *call) outlive() {
	for _, v := range [...]*wire.Value{&c.client, &c.meta} {
		own := new(wire.Doc)
		if raw := v.Raw(); raw != nil && own.Parse(bytes.Clone(raw), wire.Limits{Bytes: len(raw) + 1}) == nil {
			*v = own.Root()
		} else {
			*v = wire.Value{}
		}
	}
}

// startParked sends the order up. The call at the server outlives the request of
// the agent, within a limit of its own.
func (c *call) startParked(o *order, info upstream.Info, sink *errand) (*parked, error) {
	life, expire := context.WithCancelCause(context.WithoutCancel(c.server.ctx))
	ctx, cancel := context.WithTimeout(life, parkTime+c.timeLimit(o.line.up()))
	level, decided := c.logLevel(), c.policy // which is another once the agent is told something by another
	c.outlive()
	p := &parked{cancel: cancel, expire: expire, line: o.line, asks: make(chan struct{}, 1), done: make(chan struct{}), now: sink, last: c, by: c.policy, open: map[string]question{}}
	var token string
	if v, ok := c.progress(); ok {
		token = "capgate-" + c.server.reference()
		sink.token, sink.progress = token, append([]byte(nil), v.Raw()...)
	}
	p.token = token
	r, err := c.request(o, info, token) // now: the document goes when this request does
	if err != nil {
		cancel()
		return nil, err
	}
	r.Room = p
	r.May = func() error {
		if c.server.policy.Load() != decided {
			return errStale
		}
		return c.still(o)
	}
	r.Around, r.Sent = nil, nil // it may go up once more: what it stands in is nobody else's
	o.line.begin(c, p)
	c.server.work.Go(func() {
		defer expire(nil)
		defer cancel()
		defer close(p.done)
		defer o.line.finish(c)
		defer context.AfterFunc(c.server.ctx, p.strand)()
		p.answer, p.err = o.try(ctx, func(conn upstream.Conn) (upstream.Answer, error) {
			o.line.loudness(ctx, conn, level, r.May)
			if err := r.May(); err != nil {
				return upstream.Answer{}, err
			}
			answer, err := conn.Call(ctx, r, p)
			return typed(conn.Info(), answer, true), err
		})
	})
	return p, nil
}

// await waits for the server's answer, or for something that it asks.
func (c *call) await(p *parked, late <-chan struct{}) (upstream.Answer, error) {
	for {
		select {
		case <-p.done:
			return c.known(p.answer, p.err)
		case <-p.asks:
			if p.unanswered() {
				return c.hold(p)
			}
		case <-c.ctx.Done():
			p.cancel()
			<-p.done
			return upstream.Answer{}, c.ctx.Err()
		case <-late:
			p.expire(context.DeadlineExceeded)
			<-p.done
			return upstream.Answer{}, context.DeadlineExceeded
		}
	}
}

// add notes a question that is to be answered.
func (p *parked) add(q question) (key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	key = "ask-" + strconv.Itoa(p.count)
	p.open[key] = q
	return key
}

// drop forgets one that is answered, or that nobody asks any more.
func (p *parked) drop(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, key)
}

func (p *parked) unanswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) > 0
}

// hold parks the call and makes what is asked the agent's answer.
func (c *call) hold(p *parked) (upstream.Answer, error) {
	p.mu.Lock()
	p.now = nil
	p.mu.Unlock()
	s := c.server
	if s.ctx.Err() != nil {
		p.strand()
	}
	ticket, err := s.secret()
	if err != nil {
		p.cancel()
		return upstream.Answer{}, err
	}
	sealed, err := s.seal.close(c.bond("parked"), []byte(ticket))
	if err != nil {
		p.cancel()
		return upstream.Answer{}, err
	}
	s.parked.mu.Lock()
	if s.parked.calls == nil {
		s.parked.calls = map[string]*parked{}
	}
	if c.tenant.parked >= maxParked {
		s.parked.mu.Unlock()
		p.cancel()
		return upstream.Answer{}, errTooManyParked
	}
	c.tenant.parked++
	p.agent, p.since = c.tenant, time.Now()
	s.parked.calls[ticket] = p
	p.limit = time.AfterFunc(parkTime, func() {
		if s.parked.take(ticket) != nil {
			p.cancel()
		}
	})
	s.parked.mu.Unlock()
	return upstream.Answer{Type: "input_required", Result: p.questions(sealed)}, nil
}

var errTooManyParked = errors.New("too many calls wait for theirs")

// questions writes what is open, as the answer of the agent.
func (p *parked) questions(state string) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	dst := []byte(`{"resultType":"input_required","inputRequests":{`)
	first := true
	for key, q := range p.open {
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(wire.AppendString(dst, key), `:{"method":`...)
		dst = wire.AppendString(dst, q.method)
		if q.params != nil {
			dst = append(append(dst, `,"params":`...), q.params...)
		}
		dst = append(dst, '}')
	}
	return append(dst, `},"requestState":"`+state+`"}`...)
}

// take removes a parked call. A ticket is good once.
func (k *parking) take(ticket string) *parked {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.calls[ticket]
	if p != nil {
		p.agent.parked--
		delete(k.calls, ticket)
	}
	return p
}

// lapse ends the calls of a line that have waited for long enough to be in nobody's way any more,
// and reports whether there were any, or are others.
func (k *parking) lapse(l *line) (some, others bool) {
	var away []string
	k.mu.Lock()
	for ticket, p := range k.calls {
		switch {
		case p.line != l || p.isDone():
		case time.Since(p.since) < awayTime:
			others = true
		default:
			away = append(away, ticket)
		}
	}
	k.mu.Unlock()
	for _, ticket := range away {
		if p := k.take(ticket); p != nil { // nobody has come back to it meanwhile
			some = true
			p.end()
		}
	}
	return some, others
}

// end ends a call that was taken.
func (p *parked) end() {
	p.limit.Stop()
	p.cancel()
}

// abandon ends the call that an agent comes back to and may not make any more. Nobody else
// would, and a program that waits for an answer may look at nothing else.
func (c *call) abandon() {
	state, ok := c.params.Get("requestState")
	if !ok {
		return
	}
	text, _ := state.Str()
	ticket, err := c.server.seal.open(c.bond("parked"), text)
	if err != nil {
		return
	}
	if p := c.server.parked.take(string(ticket)); p != nil {
		p.end()
	}
}

// unpark finds the call that an agent comes back to, and gives the server what it
// asked for. It returns nil for a request that begins a call.
func (c *call) unpark(sink *errand) (*parked, error) {
	state, ok := c.params.Get("requestState")
	if !ok || c.cameBack { // to a call that did not go up once more, as it has to be decided anew
		return nil, nil
	}
	text, _ := state.Str()
	ticket, err := c.server.seal.open(c.bond("parked"), text)
	if err != nil {
		return nil, err
	}
	p := c.server.parked.take(string(ticket))
	if p == nil {
		return nil, errSeal
	}
	c.cameBack = true
	p.limit.Stop()
	c.outlive() // before the server is heard again: the sink reads what is kept
	given, _ := c.params.Get("inputResponses")
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, ok := c.progress(); ok {
		sink.token, sink.progress = p.token, v.Raw()
	}
	p.now, p.last, p.by = sink, c, c.policy
	for key, value := range given.Members() {
		name, _ := key.Str()
		q, asked := p.open[name]
		if !asked || value.Kind() != wire.Object {
			continue
		}
		delete(p.open, name)
		q.answer <- outcome{result: append([]byte(nil), value.Raw()...)}
	}
	return p, nil
}
