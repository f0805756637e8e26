package proxy

import (
	"context"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tenant is what the gateway holds for one agent, or for one session of it whose
// servers depend on the client: the connections to servers, and the catalogue of
// what the agent sees of them.
type tenant struct {
	server *Server
	agent  string
	outer  *tenant  // the agent's own, of a tenant that is for one session
	only   *session // that session

	mu       sync.Mutex
	closed   bool
	lines    map[string]*line // by the name of the upstream
	sessions map[string]*session
	streams  map[*listener]struct{} // of the modern era
	current  *catalogue
	unsure   map[change]uint64 // what has changed and may be of a skill, for all that current knows; see tell
	foreseen *outlook          // of the catalogue that was made last
	shown    fingerprint       // what was announced last
	strayed  [3]bool           // the lists of which something else has been shown since
	missed   bool              // something else may have been shown since, as nobody was there to be told
	building *construction     // the catalogue that is being made
	looking  bool              // somebody looks for changes
	again    bool              // and has to once more
	said     [listKinds]bool   // the lists that servers say have changed
	followed map[string]int    // how many resources each server is asked to tell of
	parked   int               // calls that wait for the agent to come back; guarded by the parking

	reading chan struct{} // long messages that are read
	judging chan struct{} // a long request to a provider is judged
	flights atomic.Int64
	pipes   atomic.Int64 // to processes of the agent, which may say nothing for long
	bulk    atomic.Int64
	kept    atomic.Int64 // bytes that wait for sessions
	bucket  bucket
}

func newTenant(s *Server, agent string) *tenant {
	return &tenant{
		server: s, agent: agent, lines: map[string]*line{}, sessions: map[string]*session{}, streams: map[*listener]struct{}{}, unsure: map[change]uint64{}, followed: map[string]int{},
		reading: make(chan struct{}, runtime.GOMAXPROCS(0)), judging: make(chan struct{}, 1),
	}
}

// whole is what there is of the agent, of which a session may have a part.
func (t *tenant) whole() *tenant {
	if t.outer != nil {
		return t.outer
	}
	return t
}

// enter counts a request in, unless there are too many.
func (t *tenant) enter() bool {
	if t.outer != nil {
		return t.outer.enter()
	}
	if t.flights.Add(1) > int64(t.server.limits.Flights) {
		t.flights.Add(-1)
		return false
	}
	return true
}

func (t *tenant) leave() {
	if t.outer != nil {
		t.outer.leave()
		return
	}
	t.flights.Add(-1)
}

// load counts the bytes of a message in, or out when there are less than none, unless
// there are too many.
func (t *tenant) load(bytes int64) bool {
	if t.outer != nil {
		return t.outer.load(bytes)
	}
	if t.bulk.Add(bytes) > int64(t.server.limits.Bulk) && bytes > 0 {
		t.bulk.Add(-bytes)
		return false
	}
	return true
}

// keep counts the bytes of a message that waits for a session in, or out when there are less
// than none, unless there are more than so many of all sessions.
func (t *tenant) keep(bytes, most int) bool {
	if t.outer != nil {
		return t.outer.keep(bytes, most)
	}
	if t.kept.Add(int64(bytes)) > int64(most) && bytes > 0 {
		t.kept.Add(int64(-bytes))
		return false
	}
	return true
}

// mayCall takes one call off what the agent may make in a minute.
func (t *tenant) mayCall(now time.Time) bool {
	if t.outer != nil {
		return t.outer.mayCall(now)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bucket.take(now, t.server.limits.Calls)
}

// nextCall is in how many seconds the agent may make a call that was refused just now.
func (t *tenant) nextCall() int {
	if t.outer != nil {
		return t.outer.nextCall()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bucket.wait(t.server.limits.Calls)
}

// bucket holds calls: it fills at an even rate, up to what a minute allows.
type bucket struct {
	level float64
	since time.Time
}

func (b *bucket) take(now time.Time, perMinute int) bool {
	full := float64(perMinute)
	if b.since.IsZero() {
		b.level = full
	} else if gone := now.Sub(b.since); gone > 0 {
		b.level = min(full, b.level+full*gone.Minutes())
	}
	b.since = now
	if b.level < 1 {
		return false
	}
	b.level--
	return true
}

// wait is in how many seconds there is a call again, as of when one was last asked for.
func (b *bucket) wait(perMinute int) int {
	return int(math.Ceil((1 - b.level) / float64(perMinute) * time.Minute.Seconds()))
}

// line returns the connection to an upstream, which is made when it is first
// needed. A server that may ask the client has one for each session, one that
// agents share has one for all of them. Only the policy in force opens any, and for
// nobody whom it does not know.
func (t *tenant) line(u *Upstream) (*line, error) {
	if t.outer != nil && !u.asksClient() {
		return t.outer.line(u)
	}
	if u.Shared && t.agent != "" {
		if !t.server.policy.Load().knows(t.agent) {
			return nil, errStale
		}
		shared, err := t.server.tenant("")
		if err != nil {
			return nil, err
		}
		return shared.line(u)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	p := t.server.policy.Load() // under the lock: what one of before has made is ended with it held
	if p.upstream(u.Name) != u || !p.knows(t.agent) {
		return nil, errStale
	}
	l, ok := t.lines[u.Name]
	if ok && l.suits(p) {
		return l, nil
	}
	if ok {
		t.server.closeLater(l)
	}
	l = newLine(t, u, p.root(t.agent))
	t.lines[u.Name] = l
	return l, nil
}

// adopt makes a new policy felt: connections to servers that are no longer there
// end, and so do those of an agent that is not, and what is shown is looked at again.
func (t *tenant) adopt(p *Policy) {
	t.expel(p)
	t.mu.Lock()
	for name, l := range t.lines {
		if !l.suits(p) {
			delete(t.lines, name)
			t.server.closeLater(l)
		}
	}
	t.mu.Unlock()
	t.changed(none)
}

// expel ends the sessions and streams of tokens that a policy does not know, or whose time
// is over, and the calls of those and of agents that are gone.
func (t *tenant) expel(p *Policy) {
	now := t.server.now()
	var ended []*session
	t.mu.Lock()
	for id, s := range t.sessions {
		if s.credential != "" && !p.holds(s.credential, t.agent, now) {
			delete(t.sessions, id)
			ended = append(ended, s)
		}
	}
	for l := range t.streams {
		if l.credential != "" && !p.holds(l.credential, t.agent, now) {
			l.end()
		}
	}
	lines := slices.Collect(maps.Values(t.lines))
	t.mu.Unlock()
	for _, s := range ended {
		s.oust("its token was revoked or has expired")
	}
	for _, l := range lines {
		l.expel(p)
	}
}

// none is no list that a server has said to have changed.
const none = listKinds

// changed looks at what the agent sees, and tells its sessions when that is not
// what it was, or when a server says so: the change may be over before it is
// looked at. It works in the background: lists may have to be fetched for it.
func (t *tenant) changed(said listKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.tells() || t.agent == "" {
		if t.missed = true; !t.looking { // else what is looked at is of before
			return
		}
	}
	if said < none {
		t.said[min(said, resourceList)] = true
	}
	t.lookAgain()
}

// lookAgain has somebody look, once more if somebody does. The lock is held.
func (t *tenant) lookAgain() {
	if t.again = true; t.looking {
		return
	}
	t.looking = true
	t.server.work.Go(t.look)
}

// look makes the catalogue anew as long as there are reasons to. However many
// there are meanwhile, they are one: a server that finds reasons without end has most of
// the time gone by without a look.
func (t *tenant) look() {
	for {
		begun := time.Now()
		t.mu.Lock()
		if !t.again || t.closed {
			t.looking = false
			t.mu.Unlock()
			return
		}
		said := t.said
		t.again, t.said = false, [listKinds]bool{}
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.server.ctx, listTime)
		if cat, err := t.catalogue(ctx); err == nil {
			t.announce(cat.shown, said)
			t.tellReaders(cat)
			t.settle()
		}
		cancel()
		select {
		case <-time.After(min(lookRest*time.Since(begun), longestRest)):
		case <-t.server.ctx.Done():
		}
	}
}

// How many times as long as a look took the next one waits, and for how long at most.
const (
	lookRest    = 3
	longestRest = time.Second
)

// announce tells every session and stream which lists have changed.
func (t *tenant) announce(now fingerprint, said [listKinds]bool) {
	t.mu.Lock()
	before, strayed := t.shown, t.strayed
	t.shown, t.strayed, t.missed = now, [3]bool{}, false
	sessions, streams := t.listening()
	t.mu.Unlock()
	if before == (fingerprint{}) {
		before = now // nothing was shown yet that could differ
	}
	for i, method := range [...]string{
		"notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed",
	} {
		if before[i] == now[i] && !said[i] && !strayed[i] {
			continue
		}
		for _, s := range sessions {
			s.notify(method, nil, nil)
		}
		for _, l := range streams {
			l.notify(method, nil, nil)
		}
	}
}

// listening returns who is told of what happens. The lock is held.
func (t *tenant) listening() ([]*session, []*listener) {
	var sessions []*session
	if t.only != nil {
		sessions = append(sessions, t.only)
	}
	for _, s := range t.sessions {
		if s.tenant == t { // one with servers of its own is told by its own tenant
			sessions = append(sessions, s)
		}
	}
	var streams []*listener
	for l := range t.streams {
		streams = append(streams, l)
	}
	return sessions, streams
}

// inner returns the tenants of single sessions.
func (t *tenant) inner() []*tenant {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*tenant
	for _, s := range t.sessions {
		if s.tenant != t {
			all = append(all, s.tenant)
		}
	}
	return all
}

// isIdle reports whether nothing goes on for the agent.
func (t *tenant) isIdle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.flights.Load() == 0 && t.pipes.Load() == 0 && t.alone() && len(t.lines) == 0 && !t.looking
}

// close ends the connections and the sessions.
func (t *tenant) close() {
	t.mu.Lock()
	t.closed = true
	lines := slices.Collect(maps.Values(t.lines))
	clear(t.lines)
	_, streams := t.listening()
	sessions := slices.Collect(maps.Values(t.sessions))
	if t.only != nil {
		sessions = append(sessions, t.only)
	}
	clear(t.sessions)
	t.mu.Unlock()
	for _, s := range sessions {
		s.end()
	}
	for _, l := range streams {
		l.end()
	}
	for _, l := range lines {
		t.server.closeLater(l)
	}
}

// closeLater ends a connection without waiting for it.
func (s *Server) closeLater(l *line) {
	s.work.Go(func() {
		if err := l.link.Close(); err != nil {
			s.log.Debug("a connection did not end cleanly", "upstream", l.made.Name, "error", err)
		}
	})
}
