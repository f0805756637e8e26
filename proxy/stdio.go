package proxy

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"capgate/capability"
	"capgate/guardrail"
	"capgate/leash"
	"capgate/wire"
)

// Stdio serves one agent over a pair of pipes, one message a line, until the
// input ends. Whoever started the process said which agent it is for. A request
// of the legacy era needs an initialize before it; one of the modern era does not.
//
// Once the server ends, no request is taken any more, and those that there are may go on until
// the context ends. Each is answered all the same: that it may or may not have been done. What
// is read of the input when Stdio has returned is for nobody.
func (s *Server) Stdio(ctx context.Context, agent string, in io.Reader, out io.Writer) error {
	if s.policy.Load() == nil {
		return errors.New("no policy is in force")
	}
	t, err := s.host(agent)
	if err != nil {
		return err
	}
	defer t.pipes.Add(-1)
	life, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &pipe{server: s, tenant: t, agent: agent, ctx: life, out: out, flights: map[string]context.CancelFunc{}}
	defer p.close()
	var failed error
	read := make(chan struct{})
	go func() { // which may wait for ever
		defer close(read)
		failed = p.read(in)
	}()
	select {
	case <-read:
		if err = failed; errors.Is(err, io.EOF) {
			err = nil
			p.drain(ctx, lastTime, s.ctx.Done()) // whoever closes the pipe and then says so once more waits no longer
		}
	case <-s.ctx.Done():
		p.drain(ctx, 0, read) // nor does whoever does so the other way round
	case <-ctx.Done():
	}
	p.stop()
	cut(fmt.Errorf("%w: %w", errEnded, context.Canceled))
	p.wait.Wait()
	p.end() // which would have had its requests be left unanswered
	p.written(ctx)
	return err
}

// read takes what the agent sends, until there is no more or nobody to answer.
func (p *pipe) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := readLine(lines, p.server.limits.Body)
		if over := p.broken(); errors.Is(over, errEnded) {
			return over
		}
		if errors.Is(err, errLong) {
			p.turnDown(line, codeRequest, capability.LimitExceeded, "the message is too long")
			continue
		}
		if len(line) > 0 {
			p.line(line)
		}
		if errors.Is(err, io.EOF) {
			return io.EOF
		}
		if err != nil {
			return fmt.Errorf("read from the agent: %w", err)
		}
		if err := p.broken(); err != nil {
			return fmt.Errorf("write to the agent: %w", err)
		}
	}
}

// readLine reads to the end of a line. Of one that is too long, it reads all and
// keeps nothing but its id.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	var long *postmark
	for {
		part, err := r.ReadSlice('\n')
		if long == nil && len(line)+len(part) > limit {
			long = new(postmark)
			long.read(line)
			line = nil
		}
		if long != nil {
			long.read(part)
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long != nil {
			return long.requestID(), errors.Join(errLong, notEOF(err))
		}
		for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
			line = line[:len(line)-1]
		}
		return line, err
	}
}

func notEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// pipe is an agent at the other end of a pair of pipes.
type pipe struct {
	server *Server
	tenant *tenant
	agent  string
	ctx    context.Context //nolint:containedctx // the life of the agent behind the pipes
	wait   sync.WaitGroup
	calls  sync.WaitGroup // those of the wait that answer requests

	mu      sync.Mutex
	ending  bool // no more requests are taken
	out     io.Writer
	failed  error
	lines   [][]byte // that are to be written
	unread  int      // bytes of them
	writing bool
	idle    chan struct{} // closed when there is nothing more to write
	session *session
	flights map[string]context.CancelFunc // of requests of the modern era
}

// maxUnread is how much an agent may leave unread before it is given up.
const maxUnread = 64 << 20 // bytes

var errUnread = errors.New("the agent does not read what it is sent")

// send is say for what goes before an answer. Over a pipe it is written as it was queued.
func (p *pipe) send(message queued) error { return p.say(message.text) }

// say queues one message as a line. It does not wait for the agent to read it: a
// server's connection may be read by the same goroutine.
func (p *pipe) say(message []byte) error {
	line := appendLine(make([]byte, 0, len(message)+1), message)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil && p.unread > 0 && p.unread+len(line) > maxUnread {
		p.failed = errUnread
	}
	if p.failed != nil {
		return p.failed
	}
	p.lines, p.unread = append(p.lines, append(line, '\n')), p.unread+len(line)+1
	if !p.writing {
		p.writing = true
		p.idle = make(chan struct{})
		go p.write()
	}
	return nil
}

// write writes what is queued, until nothing is.
func (p *pipe) write() {
	for {
		p.mu.Lock()
		if len(p.lines) == 0 || p.failed != nil {
			p.writing = false
			close(p.idle)
			p.mu.Unlock()
			return
		}
		line := p.lines[0]
		p.lines[0] = nil // which may be large
		p.lines = p.lines[1:]
		p.mu.Unlock()
		_, err := p.out.Write(line)
		p.mu.Lock()
		if p.unread -= len(line); err != nil {
			p.failed = err
		}
		p.mu.Unlock()
	}
}

func (p *pipe) broken() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// refuse answers a message that is not one.
func (p *pipe) refuse(id []byte, code int, text string) {
	p.turnDown(id, code, capability.MalformedRequest, text)
}

// turnDown answers a message that is not taken.
func (p *pipe) turnDown(id []byte, code int, why capability.Code, text string) {
	d := denial{code: why, why: text, event: p.refused(why, text)}
	r := reply{failure: p.server.word(d).failure()}
	r.failure.code = code
	_ = p.say(r.append(nil, id)) // the loop looks at what went wrong
}

// refused records that a message was refused, and returns the reference.
func (p *pipe) refused(why capability.Code, text string) string {
	return p.server.record(&guardrail.Event{
		Kind: "refusal", Agent: p.agent, Code: string(why), Text: text, Policy: p.server.policy.Load().Hash,
	})
}

// line answers one message.
func (p *pipe) line(line []byte) {
	doc := new(wire.Doc)
	if err := doc.Parse(line, wire.Limits{Bytes: p.server.limits.Body}); err != nil {
		p.refuse(requestID(line), codeParse, err.Error())
		return
	}
	m, err := readMessage(doc)
	if bad := (*malformed)(nil); errors.As(err, &bad) {
		p.refuse(bad.id, bad.code, bad.Error())
		return
	}
	inBody, _ := m.meta.Get(metaVersion)
	s := p.now()
	switch {
	case m.kind == response:
		if s == nil || !s.answered(m) {
			p.refused(capability.MalformedRequest, "nothing was asked that this answers") // nobody answers an answer
		}
	case m.kind == notification:
		p.heard(m, s)
	default:
		p.request(m, s, inBody)
	}
}

// now is the session, nil before there is one.
func (p *pipe) now() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session
}

// request answers one that a line is.
func (p *pipe) request(m message, s *session, inBody wire.Value) {
	if !p.take() {
		r := fail(codeInternal, "the gateway ends; what was asked was not done")
		_ = p.say(r.append(nil, m.id)) // the loop looks at what went wrong
		return
	}
	defer p.leave()
	modern := inBody.Kind() != wire.Invalid && !isLegacyValue(inBody)
	switch {
	case modern || m.method == "server/discover":
		p.modern(m, inBody)
	case m.method == "initialize":
		p.initialize(m)
	case s == nil && m.method != "ping":
		p.refuse(m.id, codeRequest, "begin with initialize")
	default:
		p.legacy(m, s)
	}
}

// heard takes a notification. Over a pipe it is what cancels a request, in either
// era.
func (p *pipe) heard(m message, s *session) {
	if s != nil {
		s.heard(m)
	}
	if id, ok := m.params.Get("requestId"); ok && m.method == "notifications/cancelled" && validID(id) {
		p.mu.Lock()
		cancel := p.flights[string(id.Raw())]
		p.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	}
}

func (p *pipe) begin(m message) *call {
	s := p.server
	return &call{
		message: m, server: s, policy: s.policy.Load(), tenant: p.tenant, agent: p.agent, out: p, ref: s.reference(), start: s.now(),
	}
}

func (p *pipe) modern(m message, inBody wire.Value) {
	c := p.begin(m)
	c.modern = true
	if r, ok := c.introduced(inBody); !ok {
		_ = p.say(r.append(nil, m.id)) // the loop looks at what went wrong
		return
	}
	p.run(c, func(cancel context.CancelFunc) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, taken := p.flights[string(m.id)]; taken {
			return errSameID
		}
		p.flights[string(m.id)] = cancel
		return nil
	}, func() {
		p.mu.Lock()
		delete(p.flights, string(m.id))
		p.mu.Unlock()
	})
}

func (p *pipe) legacy(m message, s *session) {
	c := p.begin(m)
	if s != nil {
		c.session, c.tenant, c.client = s, s.tenant, s.capabilities()
	}
	p.run(c, func(cancel context.CancelFunc) error {
		if s == nil {
			return nil
		}
		return s.begin(m.id, cancel)
	}, func() {
		if s != nil {
			s.finish(m.id)
		}
	})
}

// run answers a request beside others. Once it is cancelled, nothing more is sent
// for it.
func (p *pipe) run(c *call, begin func(context.CancelFunc) error, finish func()) {
	ctx := leash.New(p.ctx)
	var left atomic.Bool // by its client, who waits for no answer then
	cancel := func() {
		left.Store(true)
		ctx.Cut(nil)
	}
	c.ctx, c.life = ctx, ctx
	if err := begin(cancel); err != nil {
		cancel()
		p.refuse(c.id, codeRequest, err.Error())
		return
	}
	ends := func() {}
	if c.method != listenMethod { // which nothing ends but its client
		p.calls.Add(1)
		ends = p.calls.Done
	}
	p.wait.Go(func() {
		defer ends()
		defer cancel()
		r := p.answer(c)
		finish()
		if r.done || left.Load() {
			return
		}
		_ = p.say(r.append(make([]byte, 0, r.size()), c.id)) // the loop looks at what went wrong
	})
}

// answer has a request answered. One that panics has no answer, and ends nothing but itself, as
// over HTTP.
func (p *pipe) answer(c *call) (r reply) {
	defer func() {
		if e := recover(); e != nil {
			p.server.log.Error("a request could not be answered", slog.Any("why", e), slog.String("stack", string(debug.Stack())))
			r = fail(codeInternal, "the request could not be answered")
		}
	}()
	return c.answer()
}

// initialize begins the session of the process. A second one takes its place, and what its client waits for of the one
// before is answered first: in the new one its ids may be used again, as by the initialize itself.
func (p *pipe) initialize(m message) {
	c := p.begin(m)
	c.ctx = p.ctx
	r := p.answer(c)
	if c.session != nil {
		for _, id := range p.now().abandon() {
			if bytes.Equal(id, m.id) {
				continue
			}
			over := fail(codeInternal, "the session has begun anew; what was asked may or may not have been done")
			_ = p.say(over.append(nil, id)) // the loop looks at what went wrong
		}
	}
	_ = p.say(r.append(nil, m.id)) // the loop looks at what went wrong
	if c.session != nil {
		p.mu.Lock()
		before := p.session
		p.session = c.session
		p.mu.Unlock()
		if before != nil {
			p.tenant.drop(before)
		}
		p.wait.Go(func() { p.pump(c.session) }) // several clients end at anything before the answer
	}
}

// pump sends what belongs to no request.
func (p *pipe) pump(s *session) {
	for {
		message, wake := s.take()
		if wake == nil {
			if message.goes() && p.send(message) != nil {
				return
			}
			continue
		}
		select {
		case <-wake:
		case <-s.ended:
			return
		case <-p.ctx.Done():
			return
		}
	}
}
