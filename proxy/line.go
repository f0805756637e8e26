package proxy

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"capgate/capability"
	"capgate/guardrail"
	"capgate/upstream"
	"capgate/wire"
)

const (
	listTime = 30 * time.Second // to fetch a list
	patience = 3 * time.Second  // that other servers are waited for, before a list is shown without theirs
)

// line is the connection to one upstream for one tenant, with the lists that the
// server gave last.
type line struct {
	tenant *tenant
	made   *Upstream // what was written of the server when the line was made
	root   string    // of the agent then, which the server may have been told
	link   *upstream.Link
	lists  [listKinds]listing
	shelf  atomic.Pointer[shelf] // for calls of agents that have asked for no list
	ups    atomic.Int64          // how often it has come up

	saying sync.Mutex // held while a call is told something that names no call

	mu       sync.Mutex
	flights  map[*call]upstream.Sink // the calls that are up
	asked    int                     // questions of the server that are open
	told     *call                   // the one of them that is told something, which waits for it
	levelled upstream.Conn           // the connection over which the server was told
	level    string                  // which logs are wanted
	trouble  string                  // why lists could not be had, as it was logged last
	followed map[string]*following   // the resources that it is asked to tell of
	heard    upstream.Conn           // the connection whose end is waited for, so that it is asked again
	asks     bool                    // somebody does ask it again
	nudge    chan struct{}           // has that be done now
}

// listKind is one of the lists that servers have.
type listKind uint8

const (
	toolList listKind = iota
	promptList
	resourceList
	templateList
	skillList
	listKinds
)

// listKind in the words of the protocol.
func (k listKind) words() (method, member, ability string) {
	switch k {
	case toolList:
		return "tools/list", "tools", "tools"
	case promptList:
		return "prompts/list", "prompts", "prompts"
	case resourceList:
		return "resources/list", "resources", "resources"
	case templateList:
		return "resources/templates/list", "resourceTemplates", "resources"
	default:
		return "skills/list", "skills", "resources"
	}
}

func newLine(t *tenant, u *Upstream, root string) *line {
	l := &line{tenant: t, made: u, root: root, flights: map[*call]upstream.Sink{}, followed: map[string]*following{}, nudge: make(chan struct{}, 1)}
	for i := range l.lists {
		l.lists[i].wanted = 1
	}
	l.link = upstream.NewLink(u.Name, l.dial, upstream.LinkOptions{OnUp: l.cameUp})
	return l
}

// suits reports whether a line leads where a policy says, and to a server that was
// told no other directory of the agent's than it has now.
func (l *line) suits(p *Policy) bool {
	u := p.upstream(l.made.Name)
	return u != nil && u.Identity == l.made.Identity && l.root == p.root(l.tenant.agent)
}

// up is what the policy in force says of the server. A reload that does not change
// how the server is reached keeps the connection, and changes this.
func (l *line) up() *Upstream {
	if u := l.tenant.server.policy.Load().upstream(l.made.Name); u != nil {
		return u
	}
	return l.made // which is being closed
}

// inUse reports whether the line is the one that its tenant reaches the server by.
func (l *line) inUse() bool {
	l.tenant.mu.Lock()
	defer l.tenant.mu.Unlock()
	return !l.tenant.closed && l.tenant.lines[l.made.Name] == l
}

// dial opens the connection for whom it is for.
func (l *line) dial(ctx context.Context) (upstream.Conn, error) {
	client := upstream.Client{
		Info:         []byte(`{"name":"capgate","version":` + string(wire.AppendString(nil, l.tenant.server.version)) + `}`),
		Capabilities: l.capabilities(),
	}
	p := Peer{Agent: l.tenant.agent, Client: client, Events: loose{l}, Decide: l.decide}
	if l.tenant.only == nil || l.up().modernOnly.Load() {
		return l.up().Open(ctx, p)
	}
	// A session is carried best by a session: what the server asks in between
	// goes straight through.
	p.Client.Protocol = legacyRevision
	conn, err := l.up().Open(ctx, p)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	p.Client.Protocol = ""
	if conn, err = l.up().Open(ctx, p); err == nil && conn.Info().Modern {
		l.up().modernOnly.Store(true)
	}
	return conn, err
}

// capabilities is what may be asked over the connection: what the operator lets
// the server ask, as far as the client behind it can answer.
//
// A connection that is not for one session is for clients that say with each
// request what they can, and what they cannot is refused when it is asked.
func (l *line) capabilities() []byte {
	if l.tenant.only != nil {
		return appendOffered(nil, l.up(), l.tenant.only.capabilities())
	}
	var able wire.Doc
	if err := able.Parse([]byte(anyClient), wire.Limits{}); err != nil {
		return []byte("{}")
	}
	return appendOffered(nil, l.up(), able.Root())
}

// anyClient is a client that can answer whatever a server may ask.
const anyClient = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}`

// ourExtensions is what the gateway itself can do of what servers offer: what they
// serve of it is filtered here, whatever the client behind knows.
const ourExtensions = `"extensions":{"` + skillsExtension + `":{}}`

// appendOffered writes the capabilities of a client as a server is to see them.
func appendOffered(dst []byte, u *Upstream, client wire.Value) []byte {
	dst = append(dst, '{')
	dst = append(dst, ourExtensions...)
	if u.mayAsk("roots") {
		dst = append(dst, `,"roots":{}`...)
	}
	for _, name := range [...]string{"elicitation", "sampling"} {
		if v, ok := client.Get(name); ok && u.mayAsk(name) && v.Kind() == wire.Object {
			dst = append(append(dst, `,"`...), name...)
			dst = append(append(dst, `":`...), v.Raw()...)
		}
	}
	return append(dst, '}')
}

// decide is asked by servers within this process at the moment of use. What needs
// approval then was not part of the call that was approved.
func (l *line) decide(need *capability.Requirement) error {
	v := l.tenant.server.policy.Load().Gate.Use(l.tenant.agent, l.up().Tool(""), need)
	if v.Decision.Allowed() {
		return nil
	}
	return &capability.Denied{Decision: v.Decision}
}

// cameUp runs whenever the server was started or dialled. After the first time,
// its lists may differ from what they were.
func (l *line) cameUp(_ context.Context, conn upstream.Conn) error {
	if l.ups.Add(1) == 1 {
		return nil
	}
	l.cameBack(conn)
	for i := range l.lists {
		l.lists[i].renew()
	}
	l.tenant.touched(none)
	return nil
}

// touched makes everyone who sees a tenant's servers look again.
func (t *tenant) touched(said listKind) {
	if t.agent == "" {
		for _, other := range t.server.everyone() {
			if other != t {
				other.changed(said)
			}
		}
		return
	}
	t.changed(said)
	for _, in := range t.inner() {
		in.changed(said)
	}
}

// listing is one list of a server, as it was fetched last.
type listing struct {
	mu     sync.Mutex
	wanted uint64 // counts up whenever the server says that the list has changed
	have   uint64 // which of them the items are
	items  []item
	err    error
	busy   chan struct{} // closed when the fetch that is on has ended
	since  time.Time     // when that began
}

// item is one entry of a list, as the server wrote it.
type item struct {
	raw  []byte
	doc  *wire.Doc // over raw
	exam *exam     // what can be said of it by itself

	skill *served // in place of all that, of a skill
}

func (i item) text(key string) string {
	v, _ := i.doc.Root().Get(key)
	text, _ := v.Str()
	return text
}

// renew makes the next look fetch the list again.
func (g *listing) renew() {
	g.mu.Lock()
	g.wanted++
	g.mu.Unlock()
}

// version says which state of the list is known, 0 for none.
func (g *listing) version() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.have != g.wanted {
		return 0
	}
	return g.have
}

var errPatience = errors.New("the server is being waited for")

// list returns a list of the server, and fetches it when it is not known or has
// changed. A fetch is waited for as long as is said; after that, and while the server
// does not answer, what it said last is what there is.
func (l *line) list(ctx context.Context, k listKind, wait time.Duration) ([]item, uint64, error) {
	g := &l.lists[k]
	for {
		g.mu.Lock()
		if g.have == g.wanted {
			items, have := g.items, g.have
			g.mu.Unlock()
			return items, have, nil
		}
		busy := g.busy
		if busy == nil {
			busy = make(chan struct{})
			g.busy, g.since = busy, time.Now()
			wanted := g.wanted
			l.tenant.server.work.Go(func() { l.fetch(k, wanted) })
		}
		left := time.NewTimer(wait - time.Since(g.since))
		g.mu.Unlock()
		select {
		case <-busy:
			left.Stop()
		case <-left.C:
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.items, 0, errPatience
		case <-ctx.Done():
			left.Stop()
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.items, 0, ctx.Err()
		}
		g.mu.Lock()
		items, have, err := g.items, g.have, g.err
		g.mu.Unlock()
		if err != nil {
			return items, 0, err
		}
		if have != 0 {
			return items, have, nil
		}
	}
}

// fetch gets a list and puts it where it is looked for.
func (l *line) fetch(k listKind, wanted uint64) {
	ctx, cancel := context.WithTimeout(l.tenant.server.ctx, listTime)
	defer cancel()
	items, err := l.get(ctx, k)
	g := &l.lists[k]
	g.mu.Lock()
	if g.err = err; err == nil {
		g.items, g.have = append([]item{}, items...), wanted // none is not the same as unknown
	}
	busy := g.busy
	g.busy = nil
	g.mu.Unlock()
	close(busy)
	if err != nil {
		l.again(k)
	}
	if !errors.Is(err, context.Canceled) {
		l.lament(err)
	}
	if err == nil {
		l.tenant.touched(none)
	}
}

// lament logs why lists cannot be had, once for all of them until one can.
func (l *line) lament(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	known := l.trouble == text
	l.trouble = text
	l.mu.Unlock()
	if !known && err != nil {
		l.tenant.server.log.Warn("a list could not be fetched", "upstream", l.up().Name, "error", err)
	}
}

// againTime is the wait before a list that could not be had is asked for again,
// as long as somebody waits to be told of it.
const againTime = time.Second

// again asks for a list once more, later: agents that were shown less than there is
// are told when it is there.
func (l *line) again(k listKind) {
	t := l.tenant
	t.mu.Lock()
	listened := !t.alone() && t.lines[l.up().Name] == l && !t.closed
	t.mu.Unlock()
	if !listened && t.agent != "" {
		return
	}
	t.server.work.Go(func() {
		wait := time.NewTimer(againTime)
		defer wait.Stop()
		select {
		case <-t.server.ctx.Done():
			return
		case <-wait.C:
		}
		t.mu.Lock()
		current := t.lines[l.up().Name] == l && !t.closed
		t.mu.Unlock()
		if current && l.lists[k].version() == 0 {
			_, _, _ = l.list(t.server.ctx, k, patience) // what comes of it, it tells itself
		}
	})
}

func (l *line) get(ctx context.Context, k listKind) ([]item, error) {
	conn, err := l.link.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if k == skillList {
		return l.skills(ctx, conn)
	}
	method, member, ability := k.words()
	if !able(conn.Info(), ability) {
		return nil, nil
	}
	raw, err := upstream.List(ctx, conn, method, member, l.meta(conn.Info()))
	if err != nil {
		return nil, err
	}
	items := make([]item, len(raw))
	for i, r := range raw {
		doc, err := wire.Parse(r)
		if err != nil || doc.Root().Kind() != wire.Object {
			return nil, fmt.Errorf("upstream %q: entry %d of %s is not an object: %w", l.up().Name, i, method, err)
		}
		items[i] = item{raw: r, doc: doc}
		if k == toolList {
			items[i].exam = examine(items[i])
		} else {
			items[i].exam = skim(items[i])
		}
	}
	return items, nil
}

// able reports whether a server said that it can do something.
func able(info upstream.Info, ability string) bool {
	var doc wire.Doc
	if doc.Parse(info.Capabilities, wire.Limits{}) != nil {
		return false
	}
	v, ok := doc.Root().Get(ability)
	return ok && v.Kind() == wire.Object
}

// event begins a record of something that the server did.
func (l *line) event(kind, method string) *guardrail.Event {
	e := &guardrail.Event{Kind: kind, Agent: l.tenant.agent, Upstream: l.up().Name, Method: method, Policy: l.tenant.server.policy.Load().Hash}
	if l.tenant.only != nil {
		e.Session = l.tenant.only.name
	}
	return e
}

// begin notes a call that is up, so that what the server asks can be given to it.
func (l *line) begin(c *call, sink upstream.Sink) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flights[c] = sink
	if l.asked > 0 {
		l.watchOver(sink)
	}
}

func (l *line) finish(c *call) {
	l.mu.Lock()
	delete(l.flights, c)
	told := l.told == c
	l.mu.Unlock()
	if told {
		l.saying.Lock() // until it has been
		defer l.saying.Unlock()
	}
}
