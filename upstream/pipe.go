package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"capgate/brief"
	"capgate/wire"
)

// The limits of a pipe.
const (
	maxPending = 4096    // requests that wait for an answer
	maxNoise   = 1000    // lines in a row that are no messages
	maxID      = 256     // bytes of the id of a server's request
	keepLine   = 2 << 20 // bytes of the longest request whose memory is used again
)

// pipe is a connection to a server that was started here.
type pipe struct {
	name  string
	limit int // bytes of one message
	proc  *process
	out   *outbox
	said  *transcript
	event Sink
	many  bool // parties use it

	hung, wake, vain time.Duration // see hungTime

	info  atomic.Pointer[Info]
	calls sync.Pool // of *call
	done  chan struct{}
	shut  atomic.Bool        // from here
	told  sync.Once          // that it has ended
	life  context.Context    //nolint:containedctx // of what goes on besides calls
	end   context.CancelFunc // of the same
	tasks sync.WaitGroup     // what goes on besides calls

	mu      sync.Mutex
	lastID  int64
	pending map[int64]*call
	tokens  map[string]*call
	asks    map[string]*waiting // by id, as it was written
	dead    *Failed             // why there are no more calls
	missed  time.Time           // when a call first ran out of time
	before  uint64              // how many messages it had sent by then
	waking  bool                // it is asked for a sign of life

	sent atomic.Uint64 // messages of the server

	// What belongs to the goroutine that reads.
	doc   wire.Doc
	noise int
}

// call is one request that waits for its answer.
type call struct {
	id     int64
	method string
	token  string
	sink   Sink
	hearer *hearer // of the sink, nil while nothing is asked
	line   line
	own    []byte         // the call's memory for lines
	lent   bool           // the line is in that of the request
	sent   func()         // of the request
	into   *[]byte        // the same
	since  time.Time      // when it was made
	reply  chan reply     // one, from who takes the call out of pending
	busy   sync.WaitGroup // uses of the sink
}

// reply is what a call waits for.
type reply struct {
	answer  Answer
	failed  *Failed
	refused error // by the request's May: it was not sent
}

// Start starts a server, and greets it. The context is for the handshake: it
// does not end the connection.
func Start(ctx context.Context, p Program, o Options) (Conn, error) {
	o = o.orDefault()
	conn, err := launch(ctx, p, o)
	if err != nil {
		return nil, err
	}
	info, err := greet(ctx, conn, o, p.Name)
	if err == nil {
		conn.follow(o.Client.orDefault(), info)
		return conn, nil
	}
	if o.Client.Protocol == "" && !o.Client.Session && conn.isDone() && ctx.Err() == nil {
		// Some legacy servers end when the first request is not the one that
		// they expect. The others fail once more.
		conn.abort()
		if conn, err = launch(ctx, p, o); err != nil {
			return nil, err
		}
		if err = greetLegacy(ctx, conn, o, p.Name); err == nil {
			return conn, nil
		}
	}
	conn.abort()
	return nil, err
}

// follow asks a server of the modern era to tell of changes, for as long as the
// connection lasts. One of the legacy era does so unasked.
func (p *pipe) follow(c Client, info Info) {
	params := c.wishes(info)
	if !info.Modern || params == nil {
		return
	}
	p.tasks.Go(func() {
		insist(p.life, func(again bool) (time.Duration, bool) {
			answer, err := p.Call(p.life, Request{Method: listenMethod, Params: params}, subscriber{p.event, again})
			p.said.log.Debug("the server tells of no more changes", "error", err)
			return 0, answer.Error == nil && !p.isDone()
		})
	})
}

// launch starts a server and what listens to it.
func launch(ctx context.Context, program Program, o Options) (*pipe, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	p := newPipe(program.Name, o, end)
	p.life = life
	proc, err := start(program)
	if err != nil {
		end()
		return nil, &Failed{Upstream: program.Name, Text: "does not start", Unsent: true, Err: err}
	}
	p.proc = proc
	heard := make(chan struct{})
	p.tasks.Go(func() {
		defer close(heard)
		p.said.listen(proc.stderr)
		_ = proc.stderr.Close()
	})
	p.out, err = newOutbox(proc.stdin, func(err error) { go p.finish(err, heard) })
	if err != nil {
		end()
		return nil, errors.Join(err, proc.kill())
	}
	p.tasks.Go(func() {
		err := p.listen(life, brief.NewPipe(proc.stdout))
		_ = proc.stdout.Close()
		p.finish(err, heard)
	})
	return p, nil
}

func newPipe(name string, o Options, end context.CancelFunc) *pipe {
	p := &pipe{
		name:    name,
		limit:   o.Limits.Message,
		said:    newTranscript(o.Log.With("upstream", name), o.Scrub),
		event:   o.Events,
		many:    o.Shared,
		done:    make(chan struct{}),
		end:     end,
		pending: make(map[int64]*call),
		tokens:  make(map[string]*call),
		asks:    make(map[string]*waiting),

		hung: hungTime, wake: wakeTime, vain: vainTime,
	}
	p.info.Store(new(Info))
	return p
}

// Info returns what the handshake brought.
func (p *pipe) Info() Info { return *p.info.Load() }

func (p *pipe) adopt(info Info) { p.info.Store(&info) }

// Done is closed when the server has ended, or is about to.
func (p *pipe) Done() <-chan struct{} { return p.done }

func (p *pipe) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Close ends the server, and waits until it has ended.
func (p *pipe) Close() error {
	p.shut.Store(true)
	p.fail(&Failed{Upstream: p.name, Text: "was closed"})
	err := p.proc.stop()
	p.tasks.Wait()
	return err
}

// abort ends a server that is of no use.
func (p *pipe) abort() {
	p.shut.Store(true)
	p.fail(&Failed{Upstream: p.name, Text: "was given up"})
	_ = p.proc.kill() // the kernel has the process: nothing is left to do
	p.tasks.Wait()
}

// finish ends the connection because of an error, and says how the server ended
// if it has.
func (p *pipe) finish(cause error, heard <-chan struct{}) {
	p.out.end(errEnded)
	f := &Failed{Upstream: p.name, Text: "ended", Err: cause}
	ended := p.proc.ended(drainTime)
	switch {
	case errors.Is(cause, errLong):
		f.Text = "was ended: it sent a message that is too long; ask it for less"
	case errors.Is(cause, errUnread), errors.Is(cause, errNoise), errors.Is(cause, errHung):
		f.Text = "was given up"
	case !ended:
		f.Text, f.Err = "closed its output", nil
	default:
		<-heard // what reads standard error ends soon after the process
		f.Err = errors.New(p.proc.status + saidLast(p.said.last()))
	}
	if !p.isDone() && p.Info().Version != "" { // nobody closed it, and nobody waits for it to start, who would be told
		p.told.Do(func() { p.said.log.Warn("an upstream has ended", "error", f) }) // who reads notices, and who writes
	}
	p.fail(f)
	_ = p.proc.stop() // who waits for the end calls Close
}

func saidLast(text string) string {
	if text == "" {
		return ""
	}
	return `, and last said: ` + text
}

// fail ends all calls, once.
func (p *pipe) fail(f *Failed) {
	p.out.end(errEnded)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		return
	}
	p.dead = f
	p.end()
	close(p.done)
	for id, c := range p.pending {
		delete(p.pending, id)
		c.reply <- reply{failed: f}
	}
	clear(p.tokens)
}

// Call sends a request and waits for the answer.
func (p *pipe) Call(ctx context.Context, r Request, s Sink) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, p.failed("was sent nothing", true, context.Cause(ctx))
	}
	c, err := p.register(r, s)
	if err != nil {
		return Answer{}, err
	}
	got := p.exchange(ctx, c)
	c.busy.Wait()
	if c.hearer != nil {
		c.hearer.end()
		c.hearer = nil
	}
	// The sink is the caller's again.
	state := p.out.leave(&c.line) // what answers a request that it has not read is answered no less
	if got.refused != nil {
		p.putBack(c)
		return Answer{}, got.refused
	}
	if got.failed != nil {
		f := *got.failed
		f.Unsent = f.Unsent || state == queued || state == dropped
		return Answer{}, &f
	}
	if state == written {
		p.putBack(c)
	}
	return r.Fitting(p.name, got.answer, nil)
}

// putBack gives back what a call used that is over, and whose line is written.
func (p *pipe) putBack(c *call) {
	if c.lent && c.sent != nil {
		c.sent()
	}
	c.line.data, c.line.may, c.sink, c.sent, c.into = nil, nil, nil, nil, nil
	if cap(c.own) <= keepLine {
		p.calls.Put(c)
	}
}

// exchange sends a call and takes its reply, or gives up on it. An overfull
// outbox does not count as unsent: it is not to be sent more.
func (p *pipe) exchange(ctx context.Context, c *call) reply {
	if err := p.out.push(&c.line); err != nil {
		return p.giveUp(c, p.failed("was not sent the request", errors.Is(err, errEnded), err))
	}
	select {
	case got := <-c.reply:
		return got
	case <-ctx.Done():
		return p.giveUp(c, p.failed("gave no answer", false, context.Cause(ctx)))
	}
}

// giveUp ends a call, unless it has a reply by now.
func (p *pipe) giveUp(c *call, f *Failed) reply {
	if !p.forget(c) {
		return <-c.reply
	}
	if state := p.out.leave(&c.line); (state == begun || state == written) && c.method != "initialize" && c.method != ping { // which must not be cancelled, and is of use when it comes late
		p.cancel(c.id)
	}
	if c.method != ping && (errors.Is(f.Err, context.DeadlineExceeded) || time.Since(c.since) >= p.vain) {
		p.doubt(c.id)
	}
	return reply{failed: f}
}

// register makes a request into a call that may be answered.
func (p *pipe) register(r Request, s Sink) (*call, error) {
	c, ok := p.calls.Get().(*call)
	if !ok {
		c = &call{reply: make(chan reply, 1)}
		c.line.refused = func(why error) {
			if p.forget(c) {
				c.reply <- reply{refused: why}
			}
		}
	}
	c.sink, c.token, c.method, c.into, c.since = s, r.Token, r.Method, r.Into, time.Now()
	c.line.state, c.line.may = queued, r.May
	if err := p.admit(c); err != nil {
		return nil, err
	}
	message, lent := r.message(c.own[:0], c.id)
	c.line.data = appendLine(message)
	if c.lent = lent; lent {
		c.sent = r.Sent
	} else {
		c.own = c.line.data
	}
	return c, nil
}

// admit adds a call to those that wait.
func (p *pipe) admit(c *call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dead != nil:
		f := *p.dead
		f.Unsent = true
		return &f
	case len(p.pending) >= maxPending:
		return p.failed("has too many requests to answer", false, nil)
	case c.token != "" && p.tokens[c.token] != nil:
		return p.failed("has a request with this progress token already", false, nil)
	}
	p.lastID++
	c.id = p.lastID
	p.pending[c.id] = c
	if c.token != "" {
		p.tokens[c.token] = c
	}
	return nil
}

// appendLine makes a message a line.
func appendLine(message []byte) []byte { return append(oneLine(message), '\n') }

// forget takes a call out of those that wait. It is false if somebody else has,
// who then replies.
func (p *pipe) forget(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending[c.id] != c {
		return false
	}
	p.remove(c)
	return true
}

// remove is forget with the lock held.
func (p *pipe) remove(c *call) {
	delete(p.pending, c.id)
	if c.token != "" {
		delete(p.tokens, c.token)
	}
	for _, w := range p.asks {
		if w.during == c {
			w.cancel()
		}
	}
}

// cancel tells the server that nobody waits for an answer any more.
func (p *pipe) cancel(id int64) {
	params := fmt.Appendf(nil, `{"requestId":%d}`, id)
	if err := p.post(appendNote("notifications/cancelled", params)); err != nil {
		p.said.odd("no sign of reading that a request is cancelled", nil)
	}
}

// Notify sends a notification.
func (p *pipe) Notify(ctx context.Context, method string, params []byte) error {
	if ctx.Err() != nil {
		return p.failed("was sent nothing", true, context.Cause(ctx))
	}
	if err := p.post(appendNote(method, params)); err != nil {
		return p.failed("was not sent the notification", errors.Is(err, errEnded), err)
	}
	return nil
}

// post sends a message that no answer is waited for.
func (p *pipe) post(message []byte) error {
	return p.out.push(&line{data: appendLine(message)})
}

func (p *pipe) failed(text string, unsent bool, err error) *Failed {
	return &Failed{Upstream: p.name, Text: text, Unsent: unsent, Err: err}
}

// listen reads what the server sends, to the end.
func (p *pipe) listen(ctx context.Context, out io.Reader) error {
	in := lines{src: out, limit: p.limit}
	for {
		text, err := in.next()
		switch {
		case err == nil:
			err = p.take(ctx, text)
		case errors.Is(err, errLong):
			err = p.overlong(&in, text)
		}
		if err != nil {
			return err
		}
	}
}
