package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"capgate/leash"
	"capgate/wire"
)

const (
	// A stream that ended early is taken up again after firstResume, or as the
	// server says, and given up after maxResumes that brought nothing new.
	firstResume = 500 * time.Millisecond
	leastResume = 20 * time.Millisecond
	mostResume  = time.Minute
	maxResumes  = 5

	tailTime  = 250 * time.Millisecond // how long a stream may go on after its answer
	tailBytes = 64 << 10               // how much it may then bring
)

// exchange is one request to a server, and what comes back for it.
type exchange struct {
	*web
	id     int64
	method string
	sink   Sink
	hearer hearer  // of the sink
	stance *stance // it was sent with
	into   *[]byte // where the answer may be read into
	body   meter   // what it is read from

	ctx    *leash.Leash // the request's: it ends with the caller's, and with the connection
	caller leash.Hook   // on the caller's context

	asks   asks
	asking sync.WaitGroup // the sink is asked

	noise    int  // events in a row that cannot be read
	probes   bool // it asks whether the connection is known, and waits for no other that does
	draining bool // somebody else ends ctx
}

// apart is a context without the values of the one that it was made of: those of
// a handshake are not those of the calls after it.
type apart struct {
	context.Context //nolint:containedctx // it is a context itself
}

// Value returns nothing.
func (apart) Value(any) any { return nil }

// begin prepares an exchange. Its context does not end by itself when the
// caller's has done its work: the rest of a stream is read after that.
func (c *web) begin(ctx context.Context, s Sink) *exchange {
	if s == nil {
		s = unheard{}
	}
	x := &exchange{web: c, id: c.ids.Add(1), sink: s, hearer: hearer{sink: s}, ctx: leash.New(c.life).Lend(ctx)}
	x.caller.Hang(ctx, func() { x.ctx.Cut(context.Cause(ctx)) })
	return x
}

// finish ends what the server asked meanwhile, so that no sink is used after it.
func (x *exchange) finish() {
	x.caller.Off()
	x.asks.end()
	x.asking.Wait()
	x.hearer.end()
	if !x.draining {
		x.ctx.Cut(nil)
	}
}

// put sends a request.
func (x *exchange) put(r Request) (*http.Response, error) {
	header, err := x.headerFor(x.stance, r)
	if err != nil {
		return nil, err
	}
	body, lent := r.message(nil, x.id)
	p := newParcel(body)
	p.may = r.May
	if lent && len(body) >= largeBody {
		p.sent = r.Sent
	}
	x.method, x.into, x.body.room = r.Method, r.Into, r.Room
	return x.carry(x.ctx, x.post, header, p)
}

func (x *exchange) run(r Request) (Answer, error) {
	x.stance = x.web.stance.Load()
	began := time.Now()
	resp, err := x.put(r)
	if err != nil {
		return Answer{}, err
	}
	if r.Method == "initialize" && resp.StatusCode == http.StatusOK {
		if err := x.enter(resp.Header); err != nil {
			_ = resp.Body.Close()
			return Answer{}, err
		}
	}
	answer, ok, err := x.reads(resp)
	if !ok {
		return x.refused(x.ctx, resp, x.id, x.stance.session, began)
	}
	if answer.Error != nil && isForgotten(x.wordOf(answer.Error).text, x.stance.session) && x.greeted.Load() != nil {
		x.inDoubt(x.ctx)
	}
	return answer, err
}

// reads reads a response that brings an answer, and reports whether it does.
func (x *exchange) reads(resp *http.Response) (answer Answer, ok bool, err error) {
	if resp.StatusCode == http.StatusOK {
		switch media(resp.Header) {
		case mediaJSON:
			answer, err = x.single(resp)
			return answer, true, err
		case mediaEvents:
			answer, err = x.stream(resp)
			return answer, true, err
		}
	}
	return Answer{}, false, nil
}

// single reads a response that is the answer. The answer owns its memory, or has
// that of the request's Into.
func (x *exchange) single(resp *http.Response) (Answer, error) {
	defer func() { _ = resp.Body.Close() }()
	x.body.src = resp.Body
	if !x.body.expect(min(resp.ContentLength, int64(x.limit))) {
		return Answer{}, NoRoom(x.name)
	}
	body, err := x.readWhole(&x.body, resp.ContentLength, x.into)
	switch {
	case errors.Is(err, ErrNoRoom):
		return Answer{}, NoRoom(x.name)
	case errors.Is(err, errLong):
		return Answer{}, x.failed("answers with too much; ask it for less", err)
	case err != nil && x.ctx.Err() != nil:
		return Answer{}, x.unreached(x.ctx, err)
	case err != nil:
		return Answer{}, x.failed("broke its answer off", err)
	}
	doc := x.doc()
	defer x.putDoc(doc)
	m, err := x.read(doc, body)
	switch {
	case err != nil:
		return Answer{}, x.failed("answers with what cannot be read", &strange{resp.StatusCode, err.Error()})
	case m.kind != answered, !x.isMine(m) && (m.answer.Error == nil || m.id.Kind() != wire.Null):
		return Answer{}, x.failed("answers another request", nil)
	}
	return m.answer, nil
}

// read reads a message. What is made of a long one can take many times its memory, so
// that no more of them are read at once than there is work done.
func (x *exchange) read(doc *wire.Doc, data []byte) (message, error) {
	if len(data) > FreeRoom {
		x.indexing <- struct{}{}
		defer func() { <-x.indexing }()
	}
	if err := doc.ParseLoosely(data, wire.Limits{Bytes: x.limit}); err != nil {
		return message{}, err
	}
	m, err := read(doc)
	if err != nil {
		return message{}, err
	}
	method := ""
	if m.kind == answered && x.isMine(m) {
		method = x.method
	}
	return m, misread(doc, method)
}

// isMine reports whether an answer names the request of the exchange, by a number
// that is written as it was. Ours begin at one.
func (x *exchange) isMine(m message) bool {
	id, _ := m.id.Int64()
	return id != 0 && id == x.id
}

// stream reads a response that is a stream of events, and takes it up again where
// a server of the legacy era ends it without having answered. The request itself
// is never sent twice.
func (x *exchange) stream(resp *http.Response) (Answer, error) {
	doc, ev := x.doc(), x.reader()
	defer x.putDoc(doc)
	defer x.putReader(ev)
	x.body.src = resp.Body
	ev.reset(&x.body)
	for tries, last := 0, ""; ; tries++ {
		answer, err := x.follow(ev, doc)
		var cut *cutOff
		if err == nil {
			x.drain(resp.Body)
			return answer, nil
		}
		_ = resp.Body.Close()
		if !errors.As(err, &cut) {
			return Answer{}, err
		}
		if last != string(ev.id) {
			tries, last = 0, string(ev.id)
		}
		if resp, err = x.resume(ev, tries, cut); err != nil {
			return Answer{}, err
		}
		x.body.src = resp.Body
		ev.resume(&x.body)
	}
}

// cutOff is the end of a stream before its answer.
type cutOff struct{ err error }

func (c *cutOff) Error() string { return c.err.Error() }

// follow hands on what a stream brings, until the answer comes.
func (x *exchange) follow(ev *eventReader, doc *wire.Doc) (Answer, error) {
	for {
		x.body.next()
		switch err := ev.next(); {
		case errors.Is(err, ErrNoRoom):
			return Answer{}, NoRoom(x.name)
		case errors.Is(err, errLong):
			return Answer{}, x.failed("sends an event that is too long", nil)
		case err != nil:
			return Answer{}, &cutOff{err}
		case !ev.is("message") || len(ev.data) == 0:
			continue
		}
		m, err := x.hears(doc, ev.data)
		if err != nil {
			return Answer{}, err
		}
		switch {
		case m.kind == noted && m.method == "notifications/cancelled" && !x.stance.info.Modern:
			x.asks.cancelled(m)
		case m.kind == noted:
			x.sink.Notify(m.method, m.params.Raw())
		case m.kind == asked:
			x.ask(ev, m)
		case x.isMine(m):
			return ev.keep(m.answer), nil
		}
	}
}

// hears reads an event. One that cannot be read is dropped, as over a pipe, if it is not the
// answer and there were not many in a row: then it is no message of any kind.
func (x *exchange) hears(doc *wire.Doc, data []byte) (message, error) {
	m, err := x.read(doc, data)
	if err == nil {
		x.noise = 0
		return m, nil
	}
	x.noise++
	if x.noise > maxNoise || x.id != 0 && !isCall(data) {
		return message{}, x.failed("sends an event that cannot be read", err)
	}
	x.said.odd(err.Error(), data)
	return message{}, nil
}

// ask has a request of the server answered. In the modern era there is none.
func (x *exchange) ask(ev *eventReader, m message) {
	if x.stance.info.Modern {
		return
	}
	id, params := m.id.Raw(), m.params.Raw()
	h, during := &x.hearer, context.Context(x.ctx)
	if m.method == ping {
		h, during = &hearer{sink: pong{}}, x.life
	}
	ctx, refused := x.asks.add(during, m)
	if refused != nil {
		x.reply(during, refused)
	}
	if ctx == nil {
		return
	}
	ev.give()
	x.asking.Add(1)
	go func() {
		defer x.asks.drop(id)
		r := h.ask(ctx, id, m.method, params)
		gone := ctx.Err() != nil && m.method != ping
		x.asking.Done()
		if !gone {
			x.reply(x.life, r)
		}
	}()
}

// reply sends what the server asked for. How long the call may take has nothing to do with that.
func (c *web) reply(ctx context.Context, r *response) {
	ctx, cancel := context.WithTimeout(ctx, replyTime)
	defer cancel()
	p := newParcel(r.message())
	p.may = r.may
	err := c.deliver(ctx, "", p)
	if p.refused != nil {
		r.refuse(p.refused)
		err = c.deliver(ctx, "", newParcel(r.message()))
	}
	if err != nil && c.life.Err() == nil {
		c.log.Warn("the server did not take an answer", "error", err)
	}
}

// resume asks for the rest of a stream.
func (x *exchange) resume(ev *eventReader, tries int, cut *cutOff) (*http.Response, error) {
	for ; ; tries++ {
		if x.ctx.Err() != nil {
			return nil, x.unreached(x.ctx, cut.err)
		}
		if x.stance.info.Modern || len(ev.id) == 0 || !isPlainHeader(string(ev.id)) || tries == maxResumes {
			return nil, x.failed("ended the stream without an answer", cut.err)
		}
		if ev.retry > mostResume {
			return nil, x.failed("wants to be asked again too late", cut.err)
		}
		pause := firstResume
		if ev.retry > 0 {
			pause = max(ev.retry, leastResume)
		}
		if err := sleep(x.ctx, pause); err != nil {
			return nil, x.unreached(x.ctx, err)
		}
		resp, err := x.listenFrom(x.ctx, x.stance, string(ev.id))
		if err != nil {
			continue // the next attempt may reach it
		}
		if resp.StatusCode == http.StatusOK && media(resp.Header) == mediaEvents {
			return resp, nil
		}
		return nil, x.refusesStream(resp, !x.probes) // the request was sent, whatever that says
	}
}

// listenFrom opens a stream that the server sends to, after the event of an id.
func (c *web) listenFrom(ctx context.Context, st *stance, id string) (*http.Response, error) {
	header := st.get
	if id != "" {
		header = header.Clone()
		header[headerResume] = []string{id}
	}
	return c.send(ctx, c.get, header, nil)
}

// drain reads the end of a stream behind its answer, so that the connection can
// be used again. A server that does not end it is not waited for.
func (x *exchange) drain(body io.ReadCloser) {
	x.draining = true
	go func() {
		timer := time.AfterFunc(tailTime, func() { x.ctx.Cut(nil) })
		_, _ = io.CopyN(io.Discard, body, tailBytes)
		_ = body.Close()
		timer.Stop()
		x.ctx.Cut(nil)
	}()
}

// cancelled tells a server of the legacy era that nobody waits for its answer. To
// one of the modern era the end of the request says so.
func (x *exchange) cancelled(r Request, err error) {
	var f *Failed
	if x.stance == nil || x.stance.info.Modern || r.Method == "initialize" || errors.As(err, &f) && f.Unsent {
		return
	}
	params := strconv.AppendInt([]byte(`{"requestId":`), x.id, 10)
	params = append(params, `,"reason":"the client no longer waits for it"}`...)
	body := appendNote("notifications/cancelled", params)
	go func() {
		ctx, cancel := context.WithTimeout(x.life, cancelTime)
		defer cancel()
		if err := x.deliver(ctx, "notifications/cancelled", newParcel(body)); err != nil {
			x.log.Debug("the server was not told of a cancelled call", "error", err)
		}
	}()
}

// sleep waits, or returns why the context ended.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
