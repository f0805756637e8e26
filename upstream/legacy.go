package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"capgate/leash"
	"capgate/wire"
)

// maxEndpoint is how long the URL may be that a server names for its messages.
const maxEndpoint = 4 << 10

var (
	errNoFeed   = errors.New("there is no stream of events")
	errFeedOver = errors.New("the stream of events ended")
)

// feed is a connection over the HTTP+SSE transport of 2024: one stream brings all
// that the server says, and messages to it are posted where it wants them.
type feed struct {
	*target
	events Sink
	many   bool                        // parties use it
	to     *http.Request               // where messages go
	header atomic.Pointer[http.Header] // of every POST
	info   atomic.Pointer[Info]
	ids    atomic.Int64
	asks   asks

	life context.Context //nolint:containedctx // of everything in flight
	end  context.CancelCauseFunc

	mu      sync.Mutex
	waiting map[int64]*waiter // nil when nothing comes any more
}

// waiter is a call that waits for its answer.
type waiter struct {
	method string
	token  string
	sink   Sink
	hearer hearer          // of the sink
	own    bool            // it is a call that the gateway makes for itself
	answer chan Answer     // has room for it
	ctx    context.Context //nolint:containedctx // the caller's, while it waits

	mu     sync.Mutex // held while the sink is used
	over   bool
	asking sync.WaitGroup
}

func dialFeed(ctx context.Context, t *target, o Options) (Conn, error) {
	f := &feed{target: t, events: o.orDefault().Events, many: o.Shared, waiting: map[int64]*waiter{}}
	f.life, f.end = context.WithCancelCause(apart{context.WithoutCancel(ctx)})
	f.adopt(Info{})
	stop := context.AfterFunc(ctx, func() { f.end(context.Cause(ctx)) })
	ev, err := f.open()
	stop()
	if err == nil {
		go f.run(ev)
		err = greetLegacy(ctx, f, o, t.name)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// stream is an open stream, and what reads it.
type stream struct {
	*eventReader
	resp *http.Response
}

// open opens the stream, whose first event says where messages go.
func (f *feed) open() (*stream, error) {
	resp, err := f.send(f.life, template(http.MethodGet, f.url), f.with("Accept", mediaEvents), nil)
	if err != nil {
		return nil, err
	}
	if kind := media(resp.Header); resp.StatusCode != http.StatusOK || kind != mediaEvents {
		discard(resp.Body)
		odd := &strange{resp.StatusCode, f.excerpt(kind, nil, maxDiscard)}
		return nil, f.failed(odd.said(), fmt.Errorf("%w: %w", errNoFeed, odd))
	}
	s := &stream{newEventReader(resp.Body, f.limit), resp}
	if err = s.next(); err == nil {
		err = f.aim(s.eventReader)
	}
	if err != nil {
		_ = resp.Body.Close()
		if f.life.Err() != nil {
			return nil, f.unreached(f.life, err)
		}
		return nil, f.failed("does not say where its messages go", err)
	}
	return s, nil
}

// aim takes the URL for messages. What is sent there holds the operator's
// credentials, so that it must be the server's own.
func (f *feed) aim(ev *eventReader) error {
	if !ev.is("endpoint") || len(ev.data) > maxEndpoint {
		return errors.New("its first event is not an endpoint")
	}
	u, err := f.url.Parse(strings.TrimSpace(string(ev.data)))
	if err != nil {
		return errors.New("its endpoint is not a URL")
	}
	if origin(u) != origin(f.url) || u.User != nil {
		return errors.New("its endpoint is another server's")
	}
	u.Fragment = ""
	f.to = template(http.MethodPost, u)
	return nil
}

// origin is what makes two URLs those of one server.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// adopt takes what the handshake found out.
func (f *feed) adopt(info Info) {
	header := f.with("Content-Type", mediaJSON, "Accept", mediaJSON+", "+mediaEvents, headerVersion, info.Version)
	f.info.Store(&info)
	f.header.Store(&header)
}

// Info is what the handshake brought.
func (f *feed) Info() Info { return *f.info.Load() }

// Done is closed when the stream has ended.
func (f *feed) Done() <-chan struct{} { return f.life.Done() }

// Close ends the stream.
func (f *feed) Close() error {
	f.end(errHungUp)
	f.target.close()
	return nil
}

// Call sends a request and waits for its answer on the stream.
func (f *feed) Call(ctx context.Context, r Request, s Sink) (Answer, error) {
	answer, err := f.call(ctx, r, s)
	return r.Fitting(f.name, answer, err)
}

func (f *feed) call(ctx context.Context, r Request, s Sink) (Answer, error) {
	own := s == nil
	if own {
		s = unheard{}
	}
	w := &waiter{method: r.Method, token: r.Token, sink: s, hearer: hearer{sink: s}, own: own, answer: make(chan Answer, 1)}
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(ctx)
	id := f.ids.Add(1)
	if ctx.Err() != nil || !f.expect(id, w) {
		cancel()
		return Answer{}, &Failed{Upstream: f.name, Text: "was not asked", Unsent: true, Err: cmp.Or(context.Cause(ctx), errFeedOver)}
	}
	defer f.forget(id, w, cancel)

	asked := make(chan chan<- error)
	posted := f.post(ctx, appendRequest(nil, id, r.Method, r.Params), w.may(ctx, r, asked))
	for {
		select {
		case answer := <-w.answer:
			return answer, nil
		case said := <-asked:
			err := cmp.Or(ctx.Err(), r.May())
			if said <- err; err != nil {
				return Answer{}, err
			}
		case err := <-posted:
			if err != nil {
				return Answer{}, err
			}
			posted = nil
		case <-ctx.Done():
			f.gaveUp(r, id)
			return Answer{}, f.unreached(ctx, ctx.Err())
		case <-f.life.Done():
			return f.last(w, posted)
		}
	}
}

// may is what is asked before a call is sent. Only the goroutine of the call may ask who made it.
func (w *waiter) may(ctx context.Context, r Request, asked chan<- chan<- error) func() error {
	if r.May == nil {
		return ctx.Err
	}
	return func() error {
		said := make(chan error, 1)
		select {
		case asked <- said:
			return <-said
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
}

// last is what a call got before the end, if it is only now that it looks.
func (f *feed) last(w *waiter, posted <-chan error) (Answer, error) {
	select {
	case answer := <-w.answer:
		return answer, nil
	default:
	}
	select {
	case err := <-posted:
		if err != nil {
			return Answer{}, err
		}
	default:
	}
	return Answer{}, f.failed("does not answer any more", context.Cause(f.life))
}

// gaveUp tells the server of a call that its caller left.
func (f *feed) gaveUp(r Request, id int64) {
	if r.Method != "initialize" { // which must not be cancelled
		params := strconv.AppendInt([]byte(`{"requestId":`), id, 10)
		go func() { _ = f.tell(appendNote("notifications/cancelled", append(params, '}')), f.life.Err) }()
	}
}

// tell posts what nobody waits for, if it may go.
func (f *feed) tell(body []byte, may func() error) error {
	err := <-f.post(f.life, body, may)
	var failed *Failed
	if errors.As(err, &failed) && f.life.Err() == nil {
		f.log.Warn("the server does not take a message", "error", err)
		return nil
	}
	return err
}

// reply posts what a request of the server is answered with.
func (f *feed) reply(r *response) {
	if err := f.tell(r.message(), r.may); err != nil {
		r.refuse(err)
		_ = f.tell(r.message(), f.life.Err) // nobody is left to be told
	}
}

// Notify sends a notification.
func (f *feed) Notify(ctx context.Context, method string, params []byte) error {
	select {
	case err := <-f.post(ctx, appendNote(method, params), ctx.Err):
		return err
	case <-ctx.Done():
		return f.unreached(ctx, ctx.Err())
	}
}

// post sends a message, and says what came of that. Who does not want to know does
// not break it off, as with [web.Notify], but nothing is begun that may not go any more, as for who has left.
func (f *feed) post(ctx context.Context, body []byte, may func() error) <-chan error {
	posted := make(chan error, 1)
	go func() {
		bound := leash.New(f.life).Lend(ctx).Within(replyTime)
		defer bound.Cut(nil)
		p := newParcel(body)
		p.may = may
		err := f.deliver(bound, p)
		posted <- err
		var failed *Failed
		if errors.As(err, &failed) && failed.Lost {
			f.end(err)
		}
	}()
	return posted
}

func (f *feed) deliver(ctx context.Context, p *parcel) error {
	resp, err := f.carry(ctx, f.to, *f.header.Load(), p) //nolint:bodyclose // discard closes it
	if err != nil {
		return err
	}
	defer discard(resp.Body)
	if resp.StatusCode/100 == 2 {
		return nil
	}
	text, cut := readRefusal(resp, maxDiscard)
	odd := &strange{resp.StatusCode, f.excerpt(media(resp.Header), text, maxDiscard)}
	said := readWord(new(wire.Doc), resp, text, cut, "")
	if surely, _ := said.forgets("", true); surely {
		return &Failed{Upstream: f.name, Text: "no longer knows the session", Unsent: true, Lost: true, Err: odd}
	}
	if resp.StatusCode == http.StatusUnauthorized {
		return f.undone("wants to know who asks (401)", odd)
	}
	return f.failed(odd.said(), odd)
}

func (f *feed) expect(id int64, w *waiter) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil || f.life.Err() != nil {
		return false
	}
	f.waiting[id] = w
	return true
}

// forget sees to it that the sink of a call is not used any more.
func (f *feed) forget(id int64, w *waiter, cancel context.CancelFunc) {
	f.mu.Lock()
	delete(f.waiting, id)
	f.mu.Unlock()
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	cancel()
	w.asking.Wait()
	w.hearer.end()
}

// run hands on what the stream brings. An event that cannot be read may have been
// an answer that somebody waits for: it ends the connection.
func (f *feed) run(s *stream) {
	defer func() { _ = s.resp.Body.Close() }()
	var doc wire.Doc
	for {
		err := s.next()
		if err == nil && s.is("message") && len(s.data) > 0 {
			err = f.take(&doc, s.eventReader)
		}
		if err != nil {
			f.mu.Lock()
			f.waiting = nil
			f.mu.Unlock()
			f.end(fmt.Errorf("%w: %w", errFeedOver, err))
			return
		}
	}
}

// take hands on one message.
func (f *feed) take(doc *wire.Doc, ev *eventReader) error {
	if err := doc.ParseLoosely(ev.data, wire.Limits{Bytes: f.limit}); err != nil {
		return err
	}
	m, err := read(doc)
	if err == nil && !doc.Sound() {
		err = misread(doc, f.methodOf(m))
	}
	if err != nil {
		return err
	}
	switch m.kind {
	case answered:
		if w := f.claim(m.id); w != nil {
			w.answer <- ev.keep(m.answer)
		}
	case noted:
		f.note(m)
	case asked:
		ev.give()
		if refused := f.ask(m); refused != nil {
			f.reply(refused)
		}
	}
	return nil
}

// methodOf returns the method that a message answers, "" for any other message.
func (f *feed) methodOf(m message) string {
	number, _ := m.id.Int64()
	f.mu.Lock()
	defer f.mu.Unlock()
	if w := f.waiting[number]; w != nil && m.kind == answered {
		return w.method
	}
	return ""
}

// claim returns who waits for an answer; nobody does for a second one.
func (f *feed) claim(id wire.Value) *waiter {
	number, _ := id.Int64() // ours begin at one
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.waiting[number]
	delete(f.waiting, number)
	return w
}

// note hands a notification to the call whose progress it tells, or to the
// events.
func (f *feed) note(m message) {
	if m.method == "notifications/cancelled" {
		f.asks.cancelled(m)
		return
	}
	w := f.tokened(m)
	if w == nil {
		f.events.Notify(m.method, m.params.Raw())
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.sink.Notify(m.method, m.params.Raw())
	}
}

// tokened finds the call that a notification has the token of.
func (f *feed) tokened(m message) *waiter {
	token, ok := m.params.Get("progressToken")
	if !ok || m.method != "notifications/progress" {
		return nil
	}
	text, ok := token.Str()
	if !ok {
		text = string(token.Raw())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.waiting {
		if w.token != "" && w.token == text {
			return w
		}
	}
	return nil
}

// ask has a request of the server answered by the one call in flight. With none, by
// the events, and with several, as nobody can know whose it is, nor where several
// parties make them. It returns what the server is told instead, nil if nothing.
func (f *feed) ask(m message) (refused *response) {
	w := f.only()
	h, ctx := &hearer{sink: f.events}, f.life
	switch {
	case m.method == ping:
		h, w = &hearer{sink: pong{}}, nil
	case f.many:
		w = nil
	case w != nil:
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.over {
			return nil
		}
		h, ctx = &w.hearer, w.ctx
	}
	id, params := m.id.Raw(), m.params.Raw()
	if ctx, refused = f.asks.add(ctx, m); ctx == nil {
		return refused
	}
	if w != nil {
		w.asking.Add(1)
	}
	go func() {
		defer f.asks.drop(id)
		r := h.ask(ctx, id, m.method, params)
		if w != nil {
			w.asking.Done()
		}
		if ctx.Err() == nil {
			f.reply(r)
		}
	}()
	return nil
}

// only returns the call in flight that a question could belong to, nil when there are
// several. What the gateway asks for itself has no sink but the events.
func (f *feed) only() *waiter {
	f.mu.Lock()
	defer f.mu.Unlock()
	var w *waiter
	for _, one := range f.waiting {
		if one.own {
			continue
		}
		if w != nil {
			return nil
		}
		w = one
	}
	return w
}
