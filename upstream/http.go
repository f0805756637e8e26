package upstream

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"capgate/leash"
	"capgate/wire"
)

const (
	leaveTime  = 2 * time.Second        // how long a server may take to end a session
	cancelTime = 2 * time.Second        // how long it may take to hear that a call is cancelled
	replyTime  = 30 * time.Second       // how long it may take to hear an answer to what it asked
	maxSession = 1 << 10                // bytes of the id of a session
	hearTime   = 250 * time.Millisecond // until a server that may ask is called although nobody listens to it yet
)

var errHungUp = errors.New("the connection is closed")

// web is a connection over streamable HTTP, in either era: one POST for each
// message, and each answer on the response to it.
type web struct {
	*target
	events Sink
	client Client

	post, get *http.Request // what requests are made of
	ids       atomic.Int64
	docs      sync.Pool     // of *wire.Doc
	readers   sync.Pool     // of *eventReader
	bodies    sync.Pool     // of *[]byte
	indexing  chan struct{} // long messages that are read as JSON

	changing sync.Mutex // held to change stance
	stance   atomic.Pointer[stance]

	greeted  atomic.Pointer[time.Time] // when the handshake was over: what is refused from here on may be for the connection's sake
	gone     atomic.Bool               // the server has said that it does not know the session
	life     context.Context           //nolint:containedctx // of everything in flight
	end      context.CancelCauseFunc
	closing  sync.Once
	finished sync.Once
	hearing  sync.Once
	heard    chan struct{} // closed by it, when the server has said whether it can be listened to
	doubting sync.Mutex    // of doubt
	doubt    *doubt        // that is under way, or has found that the connection is gone
	done     chan struct{}
}

// stance is what is spoken, and the headers that say so.
type stance struct {
	info      Info
	session   string
	post, get http.Header // of every request of the kind
}

func newWeb(ctx context.Context, t *target, o Options) *web {
	c := &web{
		target: t,
		events: o.Events,
		client: o.Client,
		post:   template(http.MethodPost, t.url),
		get:    template(http.MethodGet, t.url),
		done:   make(chan struct{}),
		heard:  make(chan struct{}),

		indexing: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
	life := leash.New(apart{context.WithoutCancel(ctx)})
	c.life, c.end = life, life.Cut
	c.set(func(*stance) {})
	return c
}

func dialWeb(ctx context.Context, t *target, o Options) (Conn, error) {
	c := newWeb(ctx, t, o)
	info, err := greet(ctx, c, o, t.name)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	c.greeted.Store(new(time.Now()))
	if o.Events != nil {
		go c.listen(info)
		c.awaitStream(ctx, info)
	}
	return c, nil
}

// awaitStream waits a moment until a server is listened to that may ask something: what it asks
// while nobody does reaches nobody, and it waits for an answer in vain.
func (c *web) awaitStream(ctx context.Context, info Info) {
	if info.Modern || bytes.IndexByte(c.client.Capabilities, '"') < 0 {
		return
	}
	limit := time.NewTimer(hearTime)
	defer limit.Stop()
	select {
	case <-c.heard:
	case <-limit.C: // it says so with the first thing that it has to say
	case <-ctx.Done():
	}
}

// set changes the stance. What is in flight keeps the one it was sent with.
func (c *web) set(change func(*stance)) {
	c.changing.Lock()
	defer c.changing.Unlock()
	var next stance
	if now := c.stance.Load(); now != nil {
		next = *now
	}
	change(&next)
	if next.info.Modern {
		next.session = ""
	}
	next.post = c.with("Content-Type", mediaJSON, "Accept", mediaJSON+", "+mediaEvents,
		headerVersion, next.info.Version, headerSession, next.session)
	next.get = c.with("Accept", mediaEvents, headerVersion, next.info.Version, headerSession, next.session)
	c.stance.Store(&next)
}

// adopt takes what the handshake found out, or is about to try.
func (c *web) adopt(info Info) { c.set(func(s *stance) { s.info = info }) }

// enter takes the session that a server began with its answer to initialize.
func (c *web) enter(h http.Header) error {
	session := h.Get(headerSession)
	if len(session) > maxSession || !isSession(session) {
		return c.failed("names a session that cannot be sent back", nil)
	}
	c.set(func(s *stance) { s.session = session })
	return nil
}

func isSession(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}

// Info is what the handshake brought.
func (c *web) Info() Info { return c.stance.Load().info }

// Done is closed when the session is lost, or the connection closed.
func (c *web) Done() <-chan struct{} { return c.done }

// Call sends a request and waits for its answer.
func (c *web) Call(ctx context.Context, r Request, s Sink) (Answer, error) {
	if ctx.Err() != nil || c.life.Err() != nil {
		return Answer{}, &Failed{Upstream: c.name, Text: "was not asked", Unsent: true, Err: c.over(ctx)}
	}
	x := c.begin(ctx, s)
	defer x.finish()
	answer, err := x.run(r)
	if err != nil && ctx.Err() != nil {
		x.cancelled(r, err)
	}
	return answer, err
}

// over says why nothing can be asked any more.
func (c *web) over(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return context.Cause(c.life)
}

// Notify sends a notification. A caller that leaves does not break it off: when a
// request is cancelled just as a response without a body comes, net/http may
// break off the next request on that connection in its stead.
func (c *web) Notify(ctx context.Context, method string, params []byte) error {
	sent := make(chan error, 1)
	go func() {
		bound := leash.New(c.life).Lend(ctx).Within(replyTime)
		defer bound.Cut(nil)
		sent <- c.deliver(bound, method, newParcel(appendNote(method, params)))
	}()
	select {
	case err := <-sent:
		return err
	case <-ctx.Done():
		return c.unreached(ctx, ctx.Err())
	}
}

// deliver sends what has no answer.
func (c *web) deliver(ctx context.Context, method string, body *parcel) error {
	st := c.stance.Load()
	header, err := c.headerFor(st, Request{Method: method})
	if err != nil {
		return err
	}
	resp, err := c.carry(ctx, c.post, header, body) //nolint:bodyclose // discard closes it
	if err != nil {
		return err
	}
	if resp.StatusCode/100 == 2 {
		discard(resp.Body)
		return nil
	}
	if method == "" { // an answer, of which nothing is made: what the server asked may be what the connection is in doubt for
		_, odd, err := c.hearsRefusal(ctx, resp, 0)
		if err == nil {
			err = c.failed(odd.said(), odd)
		}
		return err
	}
	answer, err := c.refused(ctx, resp, 0, st.session, time.Now())
	if err == nil {
		err = c.failed("does not take a notification", errors.New(quote(string(c.scrub.of(answer.Error, maxRefusal)))))
	}
	return err
}

// headerFor returns the headers of a POST. They are shared by all of them in the
// legacy era; in the modern one they repeat what the body says.
func (c *web) headerFor(st *stance, r Request) (http.Header, error) {
	if !st.info.Modern {
		return st.post, nil
	}
	h := make(http.Header, len(st.post)+2+len(r.Header))
	maps.Copy(h, st.post)
	if r.Method != "" {
		h[headerMethod] = []string{plainMethod(r.Method)}
	}
	if r.Name != "" {
		name := EncodeHeader(r.Name)
		if len(name) > maxHeaderValue {
			return nil, c.unfit("has a name that is too long for a header")
		}
		h[headerName] = []string{name}
	}
	for _, f := range r.Header {
		name := http.CanonicalHeaderKey(f.Name)
		if len(name) <= len(headerParam) || name[:len(headerParam)] != headerParam || h[name] != nil ||
			len(f.Value) > maxHeaderValue || !isPlainHeader(f.Value) {
			return nil, c.unfit("has a parameter that is not fit for a header")
		}
		h[name] = []string{f.Value}
	}
	return h, nil
}

// unfit is the error of a request that cannot be sent, and could not either on
// another connection: so it does not count as unsent.
func (c *web) unfit(text string) *Failed {
	return c.undone("was not asked: the request "+text, nil)
}

// lose says that the session is gone. What is in flight may still be answered.
func (c *web) lose() { c.finished.Do(func() { close(c.done) }) }

// isOver reports whether the session is gone.
func (c *web) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Close ends what is in flight, and the session.
func (c *web) Close() error {
	c.closing.Do(func() {
		c.end(errHungUp)
		c.leave()
		c.lose()
		c.target.close()
	})
	return nil
}

// leave tells the server that its session is over. It may not care to know.
func (c *web) leave() {
	st := c.stance.Load()
	if st.session == "" || c.gone.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.life), leaveTime)
	defer cancel()
	if resp, err := c.send(ctx, template(http.MethodDelete, c.url), st.get, nil); err == nil { //nolint:bodyclose // discard closes it
		discard(resp.Body)
	}
}

func (c *web) doc() *wire.Doc {
	if doc, ok := c.docs.Get().(*wire.Doc); ok {
		return doc
	}
	return new(wire.Doc)
}

func (c *web) putDoc(doc *wire.Doc) {
	doc.Reset()
	c.docs.Put(doc)
}

func (c *web) reader() *eventReader {
	if r, ok := c.readers.Get().(*eventReader); ok {
		return r
	}
	return newEventReader(nil, c.limit)
}

// putReader keeps a reader for another stream, unless it has grown large.
func (c *web) putReader(r *eventReader) {
	if cap(r.line)+cap(r.data) <= 2*keepBody {
		r.reset(nil)
		c.readers.Put(r)
	}
}
