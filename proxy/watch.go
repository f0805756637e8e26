package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"capgate/capability"
	"capgate/gate"
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
	was := s.watched[c.exposed]
	full := len(s.watched) >= maxWatched
	s.mu.Unlock()
	switch {
	case was != nil && (was.line == nil || was.line.tells(was.uri)):
		return reply{result: []byte("{}")}
	case was == nil && full:
		return c.deny(gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: "too many subscriptions in one session"})
	}
	if r, ok := c.allow(v); !ok {
		return r
	}
	if err := c.watch(s, was, w); err != nil {
		return c.failed(&order{line: w.line}, err)
	}
	c.outcome(0, "")
	return reply{result: []byte("{}")}
}

// replace watches a resource in another way than it was, or no more. If the session has ended
// meanwhile, or watches it in a third way by now, nothing changes.
func (s *session) replace(uri string, was, now *watched) {
	if !s.swap(uri, was, now) {
		was = now
	}
	was.end()
}

// move has sessions be told by a server as it is reached now. Whether they may still be told
// is decided here, and whenever they are. A stream of the modern era ends, and its client
// asks anew.
func (s *Server) move() {
	for _, t := range s.everyone() {
		t.mu.Lock()
		sessions, streams := t.listening()
		lines := slices.Collect(maps.Values(t.lines))
		t.mu.Unlock()
		for _, l := range lines {
			l.recall()
		}
		for _, one := range streams {
			if one.strays() {
				one.end()
			}
		}
		for _, one := range sessions {
			one.mu.Lock()
			all, digests := maps.Clone(one.watched), map[string]string{}
			for uri, w := range all {
				digests[uri] = w.digest
			}
			one.mu.Unlock()
			for uri, w := range all {
				if !w.strays() {
					continue
				}
				if now := t.rewatch(uri, w, digests[uri]); now != nil || !w.agreed.Load() { // that is only attempted is for whoever does so
					one.replace(uri, w, now)
				} else {
					one.sleep(uri, w)
				}
			}
			t.rouse(one)
		}
	}
}

// strays reports whether a server is reached in another way by now.
func (w *watched) strays() bool { return w.line != nil && !w.line.inUse() }

func (l *listener) strays() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Values(l.watched)), (*watched).strays)
}

// rewatch watches the same with the server as it is reached now, nil where that is not to be.
func (t *tenant) rewatch(uri string, w *watched, digest string) *watched {
	p := t.server.policy.Load()
	u, of := p.upstream(w.line.made.Name), w.line.listed(w.uri)
	switch {
	case u == nil || digest != "" && (of == nil || !t.mayHear(w.line, of, w.uri)):
		return nil
	case digest == "" && !p.Gate.Resource(t.agent, u.resources(), uri).Decision.Allowed():
		return nil
	}
	l, err := t.line(u)
	if err != nil || !l.expect(w.agent, w.uri) {
		return nil
	}
	now := &watched{agent: w.agent, line: l, uri: w.uri, digest: digest}
	now.agreed.Store(true)
	return now
}

// watched is a resource that a session or stream is told of.
type watched struct {
	agent  *tenant
	line   *line       // over which its server is asked, nil for a file of the gateway's own
	uri    string      // the server's
	digest string      // of a file of a skill, as the agent knows it; "" for anything else
	ups    int64       // how often the server had come up when it was decided, 0 for a file, which is known by its digest
	agreed atomic.Bool // that it is, and not only attempted
}

// end tells the server that one watcher less wants to know.
func (w *watched) end() {
	if w != nil && w.line != nil {
		w.line.unwatch(w.agent, w.uri)
	}
}

// watchable finds what a subscription is to, and decides. Nil is nothing that may be
// watched.
func (c *call) watchable(uri string) (*watched, gate.Verdict) {
	f, l, held, denied := c.holder(uri)
	if f != nil {
		w := &watched{agent: c.tenant.whole(), uri: f.name, digest: f.digest}
		if c.target = f.uri; f.skill.line != nil {
			w.line, c.behind = f.skill.line, f.skill.line.up().Name
		}
		return w, gate.Verdict{}
	}
	if l == nil {
		return nil, denied
	}
	c.behind, c.target, c.declared = l.up().Name, l.up().Name, l.up().Declared
	v := c.withhold(c.policy.Gate.Resource(c.agent, l.up().resources(), uri), held, resourcePin+uri)
	if !v.Decision.Allowed() {
		return nil, v
	}
	return &watched{agent: c.tenant.whole(), line: l, uri: uri, ups: c.ups}, v
}

// watch has the server of a resource tell of it, and whoever watches it be told of that in place
// of what it was. That is so before the server is asked, as it may tell before it answers. That a
// file of a skill has changed is seen in the lists too, so that a server need not be able to.
func (c *call) watch(by watcher, was, w *watched) (err error) {
	a := attempt{by: by, uri: c.exposed, was: was, watched: w}
	digest, now := w.digest, w
	if w.line != nil {
		ctx, cancel := context.WithTimeout(c.ctx, c.patience(w.line.up()))
		defer cancel()
		decided, o := c.policy, &order{line: w.line, ups: w.ups}
		may := func() error {
			if c.server.policy.Load() != decided {
				return errStale
			}
			return c.still(o)
		}
		err = w.line.watch(ctx, w.agent, w.uri, may, a.enter)
	}
	switch {
	case err != nil && digest != "" && !errors.Is(err, errStale):
		c.server.log.Debug("a server does not tell of a skill's file", "upstream", w.line.up().Name, "error", err)
		now, err = &watched{agent: w.agent, uri: w.uri, digest: digest}, nil
	case err != nil:
		now = a.before()
	}
	a.leave(now)
	if err == nil {
		now.agreed.Store(true)
	}
	if cat := c.tenant.known(); digest != "" && cat != nil && cat.bundled[c.exposed] != nil && cat.bundled[c.exposed].digest != digest {
		c.tenant.changed(none) // while nobody was there to be told
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
	delete(s.dormant, text)
	s.mu.Unlock()
	w.end()
	return reply{result: []byte("{}")}
}

// unwatchAll ends everything that a session or stream watches.
func unwatchAll(all map[string]*watched) {
	for _, w := range all {
		w.end()
	}
}

// updated is a server that tells of a resource. Who may not read it any more is not told.
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
	l.changed(uri)
}

// listener is one subscriptions/listen of the modern era.
type listener struct {
	credential string
	id         []byte          // of the request, which tags what is sent
	wants      map[string]bool // methods
	watched    map[string]*watched
	mu         sync.Mutex // also of what is in watched
	queue      []queued
	wake       chan struct{}
	ended      chan struct{}
	over       sync.Once
}

func (l *listener) end() { l.over.Do(func() { close(l.ended) }) }

// notify queues a notification, if it is one that was asked for.
func (l *listener) notify(method string, params []byte, may func() bool) {
	if !l.wants[method] {
		return
	}
	tag := `"_meta":{"` + metaSubscription + `":` + string(l.id) + `}`
	message := queued{note(method, []byte("{"+tag+"}")), may}
	if params != nil {
		message.text = note(method, withMembers(params, tag))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if waits(l.queue, message) {
		return
	}
	if params != nil && len(l.queue) >= maxQueue+maxWatched {
		return
	}
	l.queue = append(l.queue, message)
	close(l.wake)
	l.wake = make(chan struct{})
}

func (l *listener) take() ([]queued, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	queue := l.queue
	l.queue = nil
	return queue, l.wake
}

// What lists can be listened for, by the member of the filter that asks for it.
func listenable() [3]struct{ member, method string } {
	return [...]struct{ member, method string }{
		{"toolsListChanged", "notifications/tools/list_changed"},
		{"promptsListChanged", "notifications/prompts/list_changed"},
		{"resourcesListChanged", "notifications/resources/list_changed"},
	}
}

// wants are the methods that a filter asks for.
func wants(filter wire.Value) map[string]bool {
	all := map[string]bool{resourceUpdated: true} // of what is watched
	for _, kind := range listenable() {
		v, _ := filter.Get(kind.member)
		all[kind.method], _ = v.Bool()
	}
	return all
}

// listen answers subscriptions/listen: an acknowledgement, then what happens,
// until either side has enough.
func (c *call) listen() reply {
	filter, _ := c.params.Get("notifications")
	if filter.Kind() != wire.Object {
		return c.malformed("subscriptions/listen says not what it listens for")
	}
	l := &listener{
		id: append([]byte(nil), c.id...), wants: wants(filter), watched: map[string]*watched{}, credential: c.credential,
		wake: make(chan struct{}), ended: make(chan struct{}),
	}
	t := c.tenant
	t.mu.Lock()
	t.streams[l] = struct{}{} // before any server is asked
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.streams, l)
		t.mu.Unlock()
		unwatchAll(l.watched)
	}()
	granted := c.heard(l, filter)
	t.recheck(l)
	c.lookOver()
	tag := `"_meta":{"` + metaSubscription + `":` + string(c.id) + `}`
	ack := note("notifications/subscriptions/acknowledged", []byte(`{`+tag+`,"notifications":{`+granted+`}}`))
	if c.out.send(queued{text: ack}) != nil {
		return reply{done: true}
	}
	last := reply{result: []byte(`{"resultType":"complete",` + tag + `}`), empty: true}
	if granted == "" {
		return last
	}
	look := time.NewTicker(heartbeat)
	defer look.Stop()
	for {
		queue, wake := l.take()
		if !c.server.holds(c.credential, c.agent) {
			return last
		}
		for _, message := range queue {
			if message.goes() && c.out.send(message) != nil {
				return reply{done: true}
			}
		}
		if len(queue) > 0 {
			continue
		}
		select {
		case <-wake:
		case <-look.C:
		case <-l.ended:
			return last
		case <-c.server.ctx.Done():
			return last
		case <-c.ctx.Done():
			return c.left(last)
		}
	}
}

// left is the last answer of a request that waits for no server: none where it is its client that has left.
func (c *call) left(last reply) reply {
	if errors.Is(c.ctx.Err(), errEnded) {
		return last
	}
	return reply{done: true}
}

// recheck ends a listener whose servers are reached in another way by now, or whose token is good
// no more, since a policy came meanwhile.
func (t *tenant) recheck(l *listener) {
	if s := t.server; l.strays() || !s.holds(l.credential, t.agent) {
		l.end()
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

// heard has servers tell of what the filter names, and returns what of it is granted.
func (c *call) heard(l *listener, filter wire.Value) string {
	granted := ""
	add := func(text string) {
		if granted != "" {
			granted += ","
		}
		granted += text
	}
	for _, kind := range listenable() {
		if l.wants[kind.method] {
			add(`"` + kind.member + `":true`)
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
		add(`"resourceSubscriptions":[` + string(uris) + `]`)
	}
	return granted
}

// hear has a server tell a listener of one resource, if the agent may read it.
func (c *call) hear(l *listener, uri string) bool {
	if _, again := l.watched[uri]; again {
		return false
	}
	c.exposed, c.behind, c.target = uri, "", ""
	if len(l.watched) >= maxWatched || !c.tenant.mayCall(c.server.now()) {
		c.deny(gate.Verdict{Decision: capability.Denial(capability.LimitExceeded, nil), Why: "too many subscriptions, or calls in a minute"})
		return false
	}
	for range maxTurns {
		w, ok := c.allowed(uri)
		if !ok {
			return false
		}
		err := c.watch(l, nil, w)
		if err == nil {
			c.outcome(0, "")
			return true
		}
		c.outcome(0, err.Error())
		if !errors.Is(err, errStale) && !errors.Is(err, errOther) {
			c.notice("a subscription failed", "error", err)
			return false
		}
	}
	c.deny(restless())
	return false
}

// allowed decides on one resource, anew when another policy comes meanwhile. The agent sees
// that it is not granted, the operator why.
func (c *call) allowed(uri string) (*watched, bool) {
	for range maxTurns {
		w, v := c.watchable(uri)
		if w == nil {
			c.deny(v)
			return nil, false
		}
		if _, ok := c.allow(v); ok {
			return w, true
		}
		if !c.stale { // it could not be recorded
			return nil, false
		}
		if !c.catchUp() {
			c.deny(revoked())
			return nil, false
		}
	}
	c.deny(restless())
	return nil, false
}
