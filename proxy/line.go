package proxy

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"capgate/capability"
	"capgate/guardrail"
	"capgate/upstream"
	"capgate/wire"
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

	speaks   atomic.Bool // the server speaks the extension for skills, as of its last list of them
	hopeless atomic.Bool // it was waited for in vain, longer than others wait

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
	settled  [listKinds][]item       // the lists, as they were when the skills were known last
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
		l.lists[i].wanted, l.lists[i].age = 1, listKind(i).age(nil)
	}
	l.link = upstream.NewLink(u.Name, l.dial, upstream.LinkOptions{OnUp: l.cameUp})
	return l
}

// suits reports whether a line leads where a policy says, for an agent that it knows, and
// to a server that was told no other directory of the agent's than it has now.
func (l *line) suits(p *Policy) bool {
	u := p.upstream(l.made.Name)
	return u != nil && u.Identity == l.made.Identity && p.knows(l.tenant.agent) && l.root == p.root(l.tenant.agent)
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
	p := Peer{Agent: l.tenant.agent, Client: client, Events: loose{l}, Decide: l.decide, Room: l.tenant.makeRoom}
	if l.tenant.only == nil || l.up().modernOnly.Load() {
		return l.up().Open(ctx, p)
	}
	// A session is carried best by a session: what the server asks in between
	// goes straight through.
	p.Client.Session = true
	conn, err := l.up().Open(ctx, p)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	p.Client.Session = false
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
	if l.ups.Load() > 0 {
		l.cameBack(conn)
		for i := range l.lists {
			l.lists[i].renew()
		}
		l.tenant.touched(none)
	}
	l.ups.Add(1) // only now, as who sees that goes by lists that are to be asked for
	return nil
}

// doubted has everything looked at again that the server may have changed unseen, and who
// watches something of it look again.
func (l *line) doubted() {
	for i := range l.lists {
		l.lists[i].doubt(l.tenant.server.now())
	}
	l.mu.Lock()
	all := slices.Collect(maps.Keys(l.followed))
	l.mu.Unlock()
	for _, uri := range all {
		l.changed(uri)
	}
	l.tenant.touched(none)
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

// expel ends the calls of tokens and of agents that a policy does not know.
func (l *line) expel(p *Policy) {
	now := l.tenant.server.now()
	var over []func()
	l.mu.Lock()
	for c, sink := range l.flights {
		at, isParked := sink.(*parked)
		if isParked {
			c = at.owner()
		}
		if c.life != nil && !(p.knows(c.agent) && (c.credential == "" || p.holds(c.credential, c.agent, now))) {
			over = append(over, func() { c.life.Cut(nil) })
			if isParked { // whose request may be over
				over = append(over, at.cancel)
			}
		}
	}
	l.mu.Unlock()
	for _, end := range over {
		end()
	}
}

// judge reports whether a call is up, and whether it might go up by the policy in force. It does not end meanwhile, as what
// its agent sent is read.
func (l *line) judge(e *errand) (up, may bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	up = l.flights[e.call] == e
	return up, up && e.mayStill()
}
