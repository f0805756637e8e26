package proxy

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"time"

	"capgate/upstream"
	"capgate/wire"
)

// How many resources a server is asked to tell of: for one agent, over however many
// connections, and over one that agents share.
const (
	maxFollowed       = 1024
	maxFollowedShared = 1 << 16
)

// Between two times that a server is asked again which has stopped telling.
const (
	firstAgain   = time.Second
	longestAgain = time.Minute
	oneTime      = 3 * time.Second // that it has to answer for one resource
	againAtOnce  = 8
)

// following is a resource that a server is asked to tell of.
type following struct {
	watchers map[*tenant]int // of each agent
	turn     chan struct{}   // held by who asks
	conn     upstream.Conn   // over which it tells, nil while it does not
	ended    <-chan struct{} // closed when it has stopped, in the modern era
	cancel   context.CancelFunc
}

// watch has a server tell an agent of changes to a resource. However many watch it, the
// server is asked once. Who watches is there before it is, as it may tell at once. Whether
// it may be asked is looked at once it is up, and last of all: may belongs to no goroutine.
func (l *line) watch(ctx context.Context, agent *tenant, uri string, may func() error, enter func()) error {
	conn, err := l.link.Conn(ctx)
	if err == nil {
		err = may()
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	f := l.join(agent, uri, maxFollowed)
	l.mu.Unlock()
	if f == nil {
		return &upstream.Failed{Upstream: l.up().Name, Text: "is asked to tell of too many resources"}
	}
	enter()
	return l.follow(ctx, conn, uri, f, may)
}

// join adds a watcher of a resource, unless there are too many resources, or so many for the
// agent. The lock is held.
func (l *line) join(agent *tenant, uri string, most int) *following {
	f := l.followed[uri]
	if f == nil && len(l.followed) >= l.mayFollow() {
		return nil
	}
	if (f == nil || f.watchers[agent] == 0) && !agent.follows(l.made.Name, 1, most) {
		return nil
	}
	if f == nil {
		f = &following{watchers: map[*tenant]int{}, turn: make(chan struct{}, 1), cancel: func() {}}
		l.followed[uri] = f
	}
	f.watchers[agent]++
	return f
}

// follows counts a resource in that a server is asked to tell the agent of, or out when it is
// less than none, unless there are more than so many.
func (t *tenant) follows(server string, one, most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one > 0 && t.followed[server] >= most {
		return false
	}
	if t.followed[server] += one; t.followed[server] == 0 {
		delete(t.followed, server)
	}
	return true
}

// expect is watch without waiting for the server: it is asked until it tells. What an agent has
// watched over another connection is not too much.
func (l *line) expect(agent *tenant, uri string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.join(agent, uri, math.MaxInt)
	if f != nil && f.conn == nil {
		l.insist(0)
	}
	return f != nil
}

// insist has the server asked until it tells of everything. The lock is held.
func (l *line) insist(first time.Duration) {
	switch {
	case !l.asks:
		l.asks = true
		l.tenant.server.work.Go(func() { l.askAgain(first) })
	case first == 0:
		select {
		case l.nudge <- struct{}{}:
		default: // it is told already
		}
	}
}

// cameBack has the server asked for all that it told of over another connection.
func (l *line) cameBack(conn upstream.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	silent := false
	for _, f := range l.followed {
		if f.conn != conn {
			f.conn, silent = nil, true
		}
	}
	if silent {
		l.insist(0)
	}
}

// tells reports whether the server tells of a resource, as far as is known.
func (l *line) tells(uri string) bool {
	if !l.inUse() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.followed[uri]
	return f != nil && f.conn != nil
}

func (l *line) mayFollow() int {
	if l.tenant.agent == "" {
		return maxFollowedShared
	}
	return maxFollowed
}

// unwatch ends what one watcher has begun. A server that nobody wants to hear of a
// resource any more is told so.
func (l *line) unwatch(agent *tenant, uri string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.followed[uri]
	if f == nil || f.watchers[agent] == 0 {
		return
	}
	if f.watchers[agent]--; f.watchers[agent] == 0 {
		delete(f.watchers, agent)
		agent.follows(l.made.Name, -1, 0)
	}
	if len(f.watchers) == 0 {
		l.tenant.server.work.Go(func() { l.hush(uri, f) })
	}
}

// hush forgets a resource, unless somebody came meanwhile. Who comes while the server is
// told has it asked after that.
func (l *line) hush(uri string, f *following) {
	s := l.tenant.server
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-s.ctx.Done():
		return
	}
	l.mu.Lock()
	if len(f.watchers) > 0 {
		l.mu.Unlock()
		return
	}
	conn, cancel := f.conn, f.cancel
	f.conn = nil
	l.mu.Unlock()
	cancel()
	if conn != nil && !conn.Info().Modern {
		ctx, cancel := context.WithTimeout(s.ctx, oneTime)
		defer cancel()
		params := append(wire.AppendString([]byte(`{"uri":`), uri), '}')
		if _, err := conn.Call(ctx, upstream.Request{Method: "resources/unsubscribe", Params: params}, nil); err != nil {
			s.log.Debug("a subscription did not end cleanly", "upstream", l.up().Name, "error", err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(f.watchers) == 0 && l.followed[uri] == f {
		delete(l.followed, uri)
	}
}

// follow asks over a connection, unless the server tells over it already, or nobody wants
// to hear of it any more, or may be.
func (l *line) follow(ctx context.Context, conn upstream.Conn, uri string, f *following, may func() error) error {
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	l.mu.Lock()
	needless := f.conn == conn || len(f.watchers) == 0
	l.mu.Unlock()
	if needless {
		return nil
	}
	if err := may(); err != nil { // another may have had its turn for long
		return err
	}
	ended, err := l.ask(ctx, conn, uri, f, may)
	if err != nil {
		return err
	}
	l.mu.Lock()
	f.conn, f.ended = conn, ended
	watch := l.heard != conn
	l.heard = conn
	l.mu.Unlock()
	select {
	case <-ended: // so soon that nobody knew of it
		l.stopped(conn, ended)
	default:
	}
	if s := l.tenant.server; watch {
		s.work.Go(func() {
			select {
			case <-conn.Done():
				l.stopped(conn, nil)
			case <-s.ctx.Done():
			}
		})
	}
	return nil
}

// ask asks over a connection. In the modern era it returns what is closed when the
// server has stopped telling.
func (l *line) ask(ctx context.Context, conn upstream.Conn, uri string, f *following, may func() error) (<-chan struct{}, error) {
	text := string(wire.AppendString(nil, uri))
	refused := &upstream.Failed{Upstream: l.up().Name, Text: "refused the subscription"}
	if !conn.Info().Modern {
		answer, err := conn.Call(ctx, upstream.Request{Method: "resources/subscribe", Params: []byte(`{"uri":` + text + `}`), May: may}, nil)
		if err == nil && answer.Error != nil {
			err = refused
		}
		return nil, err
	}
	params := append([]byte(`{"notifications":{"resourceSubscriptions":[`+text+`]},"_meta":`), l.meta(conn.Info())(nil)...)
	heard := acknowledged{loose: loose{l}, uri: uri, heard: make(chan struct{}), refused: make(chan struct{})}
	ended, unsent := make(chan struct{}), error(refused)
	s := l.tenant.server
	life, cancel := context.WithCancel(s.ctx)
	l.mu.Lock()
	f.cancel = cancel
	l.mu.Unlock()
	s.work.Go(func() {
		defer cancel()
		_, err := conn.Call(life, upstream.Request{Method: listenMethod, Params: append(params, '}'), May: may}, &heard)
		if errors.Is(err, errStale) || errors.Is(err, errOther) {
			unsent = err
		}
		close(ended)
		l.stopped(conn, ended)
		s.log.Debug("a subscription has ended", "upstream", l.up().Name, "error", err)
	})
	select {
	case <-heard.heard:
		return ended, nil
	case <-heard.refused:
		cancel()
		return nil, refused
	case <-ended:
		return nil, unsent
	case <-ctx.Done():
		cancel()
		return nil, ctx.Err()
	}
}

// stopped has the server asked again that does not tell any more over a connection: what
// has ended, or nothing at all. Nobody is asked for what nobody wants.
func (l *line) stopped(conn upstream.Conn, ended <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost := false
	for _, f := range l.followed {
		if f.conn == conn && (ended == nil || f.ended == ended) {
			f.conn, lost = nil, true
		}
	}
	if lost {
		l.insist(firstAgain)
	}
}

// askAgain asks until the server tells of all that somebody wants to hear of.
func (l *line) askAgain(first time.Duration) {
	s := l.tenant.server
	for wait := first; ; wait = max(firstAgain, min(2*wait, longestAgain)) {
		select {
		case <-time.After(wait):
		case <-l.nudge:
			wait = 0
		case <-s.ctx.Done():
			return
		}
		if l.restore() {
			return
		}
	}
}

// restore asks once for each resource that the server does not tell of, and reports
// whether there is none left, or nobody who would be told.
func (l *line) restore() (done bool) {
	used := l.inUse()
	l.mu.Lock()
	silent := maps.Clone(l.followed)
	maps.DeleteFunc(silent, func(uri string, f *following) bool { return f.conn != nil || !l.wanted(uri, f) })
	if l.asks = used && len(silent) > 0; !l.asks {
		l.mu.Unlock()
		return true
	}
	l.mu.Unlock()
	within := func(limit time.Duration, do func(ctx context.Context) error) error {
		ctx, cancel := context.WithTimeout(l.tenant.server.ctx, limit)
		defer cancel()
		err := do(ctx)
		if err != nil {
			l.tenant.server.log.Debug("a subscription is not renewed yet", "upstream", l.up().Name, "error", err)
		}
		return err
	}
	var conn upstream.Conn
	if within(listTime, func(ctx context.Context) (err error) { conn, err = l.link.Conn(ctx); return err }) != nil {
		return false
	}
	var asking sync.WaitGroup
	defer asking.Wait()
	room := make(chan struct{}, againAtOnce)
	for uri, f := range silent { // one that is refused, or that the server hangs on, keeps none of the others
		room <- struct{}{}
		asking.Go(func() {
			may := func() error {
				l.mu.Lock()
				defer l.mu.Unlock()
				if !l.wanted(uri, f) {
					return errStale
				}
				return nil
			}
			if within(oneTime, func(ctx context.Context) error { return l.follow(ctx, conn, uri, f, may) }) == nil {
				l.changed(uri) // it may have, while nobody told of it
			}
			<-room
		})
	}
	return false
}

// wanted reports whether somebody watches a resource who may read it still. The lock is held.
func (l *line) wanted(uri string, f *following) bool {
	of := l.listed(uri)
	for t := range f.watchers {
		if t.mayHear(l, of, uri) {
			return true
		}
	}
	return false
}

// recall has the server asked for what somebody may read again, and it was not asked for meanwhile.
func (l *line) recall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for uri, f := range l.followed {
		if f.conn == nil && l.wanted(uri, f) {
			l.insist(0)
			return
		}
	}
}

// acknowledged is told when a server has begun to tell of something, or that it will not.
type acknowledged struct {
	loose
	uri            string
	once           sync.Once
	heard, refused chan struct{}
}

// Notify passes on what comes after the acknowledgement.
func (a *acknowledged) Notify(method string, params []byte) {
	if method != "notifications/subscriptions/acknowledged" {
		a.loose.Notify(method, params)
		return
	}
	is := a.refused
	if a.grants(params) {
		is = a.heard
	}
	a.once.Do(func() { close(is) })
}

// grants reports whether the resource is among those that the server says it will tell of.
func (a *acknowledged) grants(params []byte) bool {
	var doc wire.Doc
	if doc.Parse(params, wire.Limits{}) != nil {
		return false
	}
	granted, _ := doc.Root().Get("notifications")
	uris, _ := granted.Get("resourceSubscriptions")
	for uri := range uris.Elems() {
		if uri.Equal(a.uri) {
			return true
		}
	}
	return false
}
