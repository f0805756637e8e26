package proxy

import (
	"context"
	"sync"
	"time"

	"capgate/capability"
	"capgate/gate"
	"capgate/upstream"
	"capgate/wire"
)

// subscribe answers resources/subscribe of the legacy era.
func (c *call) subscribe() reply {
	uri, _ := c.params.Get("uri")
	var ok bool
	if c.exposed, ok = uri.Str(); !ok || c.exposed == "" {
		return c.malformed(c.method + " names no resource")
	}
	w, v := c.watchable(c.exposed)
	if w == nil {
		return c.deny(v)
	}
	s := c.session
	s.mu.Lock()
	_, again := s.watched[c.exposed]
	full := len(s.watched) >= maxWatched
	s.mu.Unlock()
	switch {
	case again:
		return reply{result: []byte("{}")}
	case full:
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: "too many subscriptions in one session"})
	}
	if r, ok := c.allow(v); !ok {
		return r
	}
	if err := c.watch(c.ctx, w); err != nil {
		return c.failed(&order{line: w.line}, err)
	}
	c.outcome(0, "")
	s.mu.Lock()
	_, twice := s.watched[c.exposed]
	late := s.over || twice
	if !late {
		s.watched[c.exposed] = w
	}
	s.mu.Unlock()
	if late { // the session ended meanwhile, or asked twice at once
		w.end()
	}
	return reply{result: []byte("{}")}
}

// watched is a resource that a session or stream is told of.
type watched struct {
	line   *line  // over which its server is asked, nil for a file of the gateway's own
	uri    string // the server's
	digest string // of a file of a skill, as the agent knows it; "" for anything else
}

// end tells the server that one watcher less wants to know.
func (w *watched) end() {
	if w.line != nil {
		w.line.unwatch(w.uri)
	}
}

// watchable finds what a subscription is to, and decides. Nil is nothing that may be
// watched.
func (c *call) watchable(uri string) (*watched, gate.Verdict) {
	if f, why := c.findFile(uri); f != nil || why != "" {
		if f == nil {
			return nil, noSkill(why)
		}
		w := &watched{uri: f.name, digest: f.digest}
		if c.target = f.uri; f.skill.line != nil {
			w.line, c.behind = f.skill.line, f.skill.line.up().Name
		}
		return w, gate.Verdict{}
	}
	l, held, denied := c.holder(uri)
	if l == nil {
		return nil, denied
	}
	c.behind, c.target, c.declared = l.up().Name, l.up().Name, l.up().Declared
	v := c.withhold(c.policy.Gate.Resource(c.agent, l.up().resources(), uri), held, resourcePin+uri)
	if !v.Decision.Allowed() {
		return nil, v
	}
	return &watched{line: l, uri: uri}, v
}

// watch has the server of a resource tell of it. That a file of a skill has changed
// is seen in the lists too, so that a server need not be able to.
func (c *call) watch(ctx context.Context, w *watched) error {
	if w.line == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.patience(w.line.up()))
	defer cancel()
	err := w.line.watch(ctx, w.uri)
	if err != nil && w.digest != "" {
		c.server.log.Debug("a server does not tell of a skill's file", "upstream", w.line.up().Name, "error", err)
		w.line, err = nil, nil
	}
	return err
}

// unsubscribe answers resources/unsubscribe. It needs nothing: it only ends
// something.
func (c *call) unsubscribe() reply {
	uri, _ := c.params.Get("uri")
	text, _ := uri.Str()
	s := c.session
	s.mu.Lock()
	w := s.watched[text]
	delete(s.watched, text)
	s.mu.Unlock()
	if w != nil {
		w.end()
	}
	return reply{result: []byte("{}")}
}

// How many resources one connection is asked to tell of: one of an agent's own, and
// one that agents share.
const (
	maxFollowed       = 1024
	maxFollowedShared = 1 << 16
)

// following is a resource that a server is asked to tell of.
type following struct {
	watchers int
	conn     upstream.Conn // over which it was asked
	cancel   context.CancelFunc
}

// watch has a server tell of changes to a resource. However many watch it, the
// server is asked once.
func (l *line) watch(ctx context.Context, uri string) error {
	conn, err := l.link.Conn(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	f := l.followed[uri]
	switch {
	case f == nil && len(l.followed) >= l.mayFollow():
		l.mu.Unlock()
		return &upstream.Failed{Upstream: l.up().Name, Text: "is asked to tell of too many resources"}
	case f == nil:
		f = &following{cancel: func() {}}
		l.followed[uri] = f
	}
	f.watchers++
	asked := f.conn == conn
	f.conn = conn
	l.mu.Unlock()
	if asked {
		return nil
	}
	if err := l.follow(ctx, conn, uri); err != nil {
		l.unwatch(uri)
		return err
	}
	return nil
}

func (l *line) mayFollow() int {
	if l.tenant.agent == "" {
		return maxFollowedShared
	}
	return maxFollowed
}

// unwatch ends what one watcher has begun. A server that nobody wants to hear of a
// resource any more is told so.
func (l *line) unwatch(uri string) {
	l.mu.Lock()
	f := l.followed[uri]
	if f == nil {
		l.mu.Unlock()
		return
	}
	if f.watchers--; f.watchers > 0 {
		l.mu.Unlock()
		return
	}
	delete(l.followed, uri)
	conn, cancel := f.conn, f.cancel
	l.mu.Unlock()
	cancel()
	if conn == nil || conn.Info().Modern {
		return
	}
	s := l.tenant.server
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.ctx, listTime)
		defer cancel()
		params := append(wire.AppendString([]byte(`{"uri":`), uri), '}')
		if _, err := conn.Call(ctx, upstream.Request{Method: "resources/unsubscribe", Params: params}, nil); err != nil {
			s.log.Debug("a subscription did not end cleanly", "upstream", l.up().Name, "error", err)
		}
	})
}

// unwatchAll ends everything that a session or stream watches.
func unwatchAll(all map[string]*watched) {
	for _, w := range all {
		w.end()
	}
}

// follow asks over one connection.
func (l *line) follow(ctx context.Context, conn upstream.Conn, uri string) error {
	text := string(wire.AppendString(nil, uri))
	if !conn.Info().Modern {
		answer, err := conn.Call(ctx, upstream.Request{Method: "resources/subscribe", Params: []byte(`{"uri":` + text + `}`)}, nil)
		if err == nil && answer.Error != nil {
			err = &upstream.Failed{Upstream: l.up().Name, Text: "refused the subscription"}
		}
		return err
	}
	params := append([]byte(`{"notifications":{"resourceSubscriptions":[`+text+`]},"_meta":`), l.meta(conn.Info())(nil)...)
	heard := acknowledged{loose: loose{l}, heard: make(chan struct{})}
	ended := make(chan struct{})
	s := l.tenant.server
	life, cancel := context.WithCancel(s.ctx)
	l.mu.Lock()
	if f := l.followed[uri]; f != nil {
		f.cancel = cancel
	}
	l.mu.Unlock()
	s.work.Go(func() {
		defer cancel()
		defer close(ended)
		_, err := conn.Call(life, upstream.Request{Method: "subscriptions/listen", Params: append(params, '}')}, &heard)
		s.log.Debug("a subscription has ended", "upstream", l.up().Name, "error", err)
	})
	select {
	case <-heard.heard:
		return nil
	case <-ended:
		return &upstream.Failed{Upstream: l.up().Name, Text: "refused the subscription"}
	case <-ctx.Done():
		return ctx.Err()
	}
}

// acknowledged is told when a server has begun to tell of something.
type acknowledged struct {
	loose
	once  sync.Once
	heard chan struct{}
}

// Notify passes on what comes after the acknowledgement.
func (a *acknowledged) Notify(method string, params []byte) {
	if method == "notifications/subscriptions/acknowledged" {
		a.once.Do(func() { close(a.heard) })
		return
	}
	a.loose.Notify(method, params)
}

// updated tells those who watch a resource that it has changed, if they may read
// it still.
func (l *line) updated(params []byte) {
	var doc wire.Doc
	if doc.Parse(params, wire.Limits{}) != nil {
		return
	}
	v, _ := doc.Root().Get("uri")
	uri, ok := v.Str()
	if !ok {
		return
	}
	s := l.tenant.server
	if l.listed(uri) {
		l.lists[skillList].renew()
		l.tenant.touched(none)
		return
	}
	body := append(wire.AppendString([]byte(`{"uri":`), uri), '}')
	for _, t := range s.everyone() {
		if t.agent == "" || !s.policy.Load().Gate.Resource(t.agent, l.up().resources(), uri).Decision.Allowed() {
			continue
		}
		t.mu.Lock()
		sessions, streams := t.listening()
		t.mu.Unlock()
		for _, one := range sessions {
			one.mu.Lock()
			w := one.watched[uri]
			one.mu.Unlock()
			if w != nil && w.line == l && w.digest == "" {
				one.notify("notifications/resources/updated", body)
			}
		}
		for _, one := range streams {
			if w := one.watched[uri]; w != nil && w.line == l && w.digest == "" {
				one.notify("notifications/resources/updated", body)
			}
		}
	}
}

// listener is one subscriptions/listen of the modern era.
type listener struct {
	credential string
	id         []byte          // of the request, which tags what is sent
	wants      map[string]bool // methods
	watched    map[string]*watched
	mu         sync.Mutex
	queue      [][]byte
	wake       chan struct{}
	ended      chan struct{}
	over       sync.Once
}

func (l *listener) end() { l.over.Do(func() { close(l.ended) }) }

// notify queues a notification, if it is one that was asked for.
func (l *listener) notify(method string, params []byte) {
	if !l.wants[method] {
		return
	}
	tag := `"_meta":{"` + metaSubscription + `":` + string(l.id) + `}`
	message := note(method, []byte("{"+tag+"}"))
	if params != nil {
		message = note(method, withMembers(params, tag))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queue {
		if string(q) == string(message) {
			return
		}
	}
	if len(l.queue) >= maxQueue {
		return
	}
	l.queue = append(l.queue, message)
	close(l.wake)
	l.wake = make(chan struct{})
}

func (l *listener) take() ([][]byte, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue, l.wake
}

// What can be listened for, by the member of the filter that asks for it.
func listenable() map[string]string {
	return map[string]string{
		"toolsListChanged":     "notifications/tools/list_changed",
		"promptsListChanged":   "notifications/prompts/list_changed",
		"resourcesListChanged": "notifications/resources/list_changed",
	}
}

// listen answers subscriptions/listen: an acknowledgement, then what happens,
// until either side has enough.
func (c *call) listen() reply {
	filter, _ := c.params.Get("notifications")
	if filter.Kind() != wire.Object {
		return c.malformed("subscriptions/listen says not what it listens for")
	}
	l := &listener{
		id: append([]byte(nil), c.id...), wants: map[string]bool{}, watched: map[string]*watched{}, credential: c.credential,
		wake: make(chan struct{}), ended: make(chan struct{}),
	}
	granted := c.heard(l, filter)
	t := c.tenant
	t.mu.Lock()
	t.streams[l] = struct{}{}
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.streams, l)
		t.mu.Unlock()
		unwatchAll(l.watched)
	}()
	c.lookOver()
	tag := `"_meta":{"` + metaSubscription + `":` + string(c.id) + `}`
	ack := note("notifications/subscriptions/acknowledged", []byte(`{`+tag+`,"notifications":{`+granted+`}}`))
	if c.out.send(ack) != nil {
		return reply{done: true}
	}
	last := reply{result: []byte(`{"resultType":"complete",` + tag + `}`)}
	if granted == "" {
		return last
	}
	look := time.NewTicker(heartbeat)
	defer look.Stop()
	for {
		queue, wake := l.take()
		for _, message := range queue {
			if c.out.send(message) != nil {
				return reply{done: true}
			}
		}
		if len(queue) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-look.C:
			if c.credential != "" && !c.server.policy.Load().holds(c.credential, c.agent, c.server.now()) {
				return last
			}
		case <-l.ended:
			return last
		case <-c.server.ctx.Done():
			return last
		case <-c.ctx.Done():
			return reply{done: true}
		}
	}
}

// lookOver notes what the agent sees now, so that a change of it is noticed.
func (c *call) lookOver() {
	ctx, cancel := context.WithTimeout(c.ctx, listTime)
	defer cancel()
	if cat, err := c.tenant.catalogue(ctx); err == nil {
		c.tenant.seen(cat)
	}
}

// heard reads the filter into the listener, and returns what of it is granted.
func (c *call) heard(l *listener, filter wire.Value) string {
	granted := ""
	add := func(text string) {
		if granted != "" {
			granted += ","
		}
		granted += text
	}
	known := listenable()
	for _, name := range [...]string{"toolsListChanged", "promptsListChanged", "resourcesListChanged"} {
		if v, ok := filter.Get(name); ok {
			if yes, _ := v.Bool(); yes {
				l.wants[known[name]] = true
				add(`"` + name + `":true`)
			}
		}
	}
	var uris []byte
	list, _ := filter.Get("resourceSubscriptions")
	for v := range list.Elems() {
		uri, ok := v.Str()
		if !ok || !c.hear(l, uri) {
			continue
		}
		if len(uris) > 0 {
			uris = append(uris, ',')
		}
		uris = append(uris, v.Raw()...)
	}
	if len(uris) > 0 {
		l.wants["notifications/resources/updated"] = true
		add(`"resourceSubscriptions":[` + string(uris) + `]`)
	}
	return granted
}

// hear has a server tell a listener of one resource, if the agent may read it.
func (c *call) hear(l *listener, uri string) bool {
	if _, again := l.watched[uri]; again || len(l.watched) >= maxWatched || !c.tenant.mayCall(c.server.now()) {
		return false
	}
	c.exposed, c.behind, c.target = uri, "", ""
	w, v := c.watchable(uri)
	if w == nil {
		c.deny(v) // the agent sees that it is not granted, the operator why
		return false
	}
	if _, ok := c.allow(v); !ok {
		return false
	}
	if err := c.watch(c.ctx, w); err != nil {
		c.outcome(0, err.Error())
		c.notice("a subscription failed", "error", err)
		return false
	}
	c.outcome(0, "")
	l.watched[uri] = w
	return true
}
