package proxy

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"capgate/guardrail"
	"capgate/upstream"
)

// Options says how a server runs. Policy is not among them: see [Server.Adopt].
type Options struct {
	Events  guardrail.Recorder // required: what cannot be recorded is not forwarded
	Pins    PinStore           // nil: definitions are approved for as long as the process runs
	Log     *slog.Logger       // nil: nothing is logged
	Limits  Limits
	Clock   func() time.Time
	Random  io.Reader
	Key     []byte // seals what agents carry for us, 32 bytes; nil: one for this process
	Version string // of the gateway, for handshakes

	Hosts   []string // names that the Host header may carry besides those of loopback
	Origins []string // origins of web pages that may call, besides those of loopback

	// Scrub takes secrets out of what an agent is about to see. Nil: there are none.
	Scrub func([]byte) []byte

	// ScrubText is the same for texts, most of which are clean. Nil: Scrub does it.
	ScrubText func(string) string

	// Renew has tokens adopted that were issued a moment ago, and takes little time. It is
	// called now and then before one is refused. Nil: whoever adopts them is soon enough.
	Renew func()
}

// Limits bounds what agents may cost. A zero is the default.
type Limits struct {
	Body     int           // bytes of one message
	Calls    int           // calls of one agent in a minute
	Flights  int           // requests of one agent at the same time
	Bulk     int           // bytes of its messages, of what is made of them and of the answers at the same time, short ones not counted
	Sessions int           // open sessions of one agent
	Call     time.Duration // one call, unless its upstream has a limit of its own
	Idle     time.Duration // a session without requests and without a stream
}

// The limits that stand where Limits has none.
const (
	defaultBody     = 32 << 20
	defaultCalls    = 6000
	defaultFlights  = 512
	defaultBulk     = 512 << 20
	defaultSessions = 2048
	defaultCall     = 60 * time.Second
	defaultIdle     = 30 * time.Minute
)

func (l Limits) filled() Limits {
	for _, f := range [...]struct {
		value    *int
		standard int
	}{{&l.Body, defaultBody}, {&l.Calls, defaultCalls}, {&l.Flights, defaultFlights}, {&l.Bulk, defaultBulk}, {&l.Sessions, defaultSessions}} {
		if *f.value <= 0 {
			*f.value = f.standard
		}
	}
	l.Bulk = max(l.Bulk, l.Body) // one message at a time there can always be
	if l.Call <= 0 {
		l.Call = defaultCall
	}
	if l.Idle <= 0 {
		l.Idle = defaultIdle
	}
	return l
}

// Server is the gateway's front: one MCP server to every agent.
type Server struct {
	ctx     context.Context //nolint:containedctx // the life of the server, which outlasts every request
	stop    context.CancelFunc
	events  guardrail.Recorder
	log     *slog.Logger
	limits  Limits
	now     func() time.Time
	random  io.Reader
	version string
	hosts   []string
	origins []string
	scrub   func([]byte) []byte
	texts   func(string) string // scrubs them; nil: scrub does
	seal    *sealer
	pins    *pinboard
	told    atomic.Uint64 // how often pins had come when agents were told last
	methods map[string]handler
	letters sync.Pool // of *letter
	papers  sync.Pool // of *[]byte, for the params of requests to servers
	policy  atomic.Pointer[Policy]
	outside *http.Transport // to providers
	renew   func()
	renewal sync.Mutex // held while it runs
	renewed time.Time
	name    string // of this process, in the references of calls
	ids     atomic.Uint64

	mu      sync.Mutex
	closed  bool
	tenants map[string]*tenant // of agents, by id
	noise   map[string]*noise  // events that anybody can cause, by agent; "" is nobody's
	expiry  *time.Timer        // when the next token expires
	parked  parking
	work    chores // connections that are being closed, and the like

	omitting sync.Mutex
	omitted  map[[3]string]*reasons // why something was said to be hidden, by upstream, kind and name
}

// handler answers one method.
type handler func(*call) reply

// New makes a server. It serves nobody until a policy is adopted, and ends with
// the context or with Close.
func New(ctx context.Context, o Options) (*Server, error) {
	if o.Events == nil {
		return nil, errors.New("a server without a recorder of events forwards nothing")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	seal, err := newSealer(o.Key, o.Random, o.Clock)
	if err != nil {
		return nil, err
	}
	s := &Server{
		events: o.Events, log: o.Log, limits: o.Limits.filled(), now: o.Clock, random: o.Random, version: o.Version,
		hosts: o.Hosts, origins: o.Origins, scrub: o.Scrub, seal: seal, pins: newPinboard(o.Pins),
		tenants: map[string]*tenant{}, noise: map[string]*noise{}, omitted: map[[3]string]*reasons{}, outside: upstream.NewTransport(nil),
		renew: o.Renew, texts: o.ScrubText,
	}
	if s.name, err = s.secret(); err != nil {
		return nil, err
	}
	s.name = s.name[:6] + "-"
	s.ctx, s.stop = context.WithCancel(ctx)
	s.methods = methods()
	s.work.Go(s.sweep)
	return s, nil
}

// methods is the table of what agents may send.
func methods() map[string]handler {
	return map[string]handler{
		"initialize":               (*call).initialize,
		"ping":                     (*call).ping,
		"server/discover":          (*call).discover,
		"tools/list":               (*call).listTools,
		"tools/call":               (*call).callTool,
		"prompts/list":             (*call).listPrompts,
		"prompts/get":              (*call).getPrompt,
		"resources/list":           (*call).listResources,
		"resources/templates/list": (*call).listTemplates,
		"resources/read":           (*call).readResource,
		"resources/directory/read": (*call).readFolder,
		"skills/list":              (*call).listSkills,
		"skills/get":               (*call).getSkill,
		"resources/subscribe":      (*call).subscribe,
		"resources/unsubscribe":    (*call).unsubscribe,
		"completion/complete":      (*call).complete,
		"logging/setLevel":         (*call).setLevel,
		listenMethod:               (*call).listen,
	}
}

// sweepTime is how often sessions are looked at that nobody may use any more.
const sweepTime = time.Minute

// sweep ends them until the server ends.
func (s *Server) sweep() {
	tick := time.NewTicker(min(sweepTime, s.limits.Idle/2))
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-tick.C:
			for _, t := range s.everyone() {
				t.mu.Lock()
				t.sweep(s.now())
				t.mu.Unlock()
			}
			s.forget()
			if s.policy.Load() != nil {
				s.work.Go(s.expelled) // the timer for it stands still while the machine sleeps
			}
		}
	}
}

// forget lets go of agents that are gone and of which nothing goes on. Whoever holds one still
// can begin nothing with it.
func (s *Server) forget() {
	p := s.policy.Load()
	if p == nil {
		return
	}
	var gone []*tenant
	s.mu.Lock()
	for agent, t := range s.tenants {
		if !p.knows(agent) && t.isIdle() {
			delete(s.tenants, agent)
			gone = append(gone, t)
		}
	}
	s.mu.Unlock()
	for _, t := range gone {
		t.close()
	}
}

// Adopt puts a policy in force. Calls that have gone up go on; the next one, and
// what still waits for its server, obeys the new policy. Who sees other tools than
// before is told so.
func (s *Server) Adopt(p *Policy) {
	s.policy.Store(p)
	for _, t := range s.everyone() {
		t.adopt(p)
	}
	s.expire()
	s.work.Go(s.move)
}

// expire has what is up for a token end when the time of the token is over.
func (s *Server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, next := s.now(), time.Duration(math.MaxInt64)
	for c := range s.policy.Load().Credentials.All() {
		if !c.Expires.IsZero() && !c.Expired(now) {
			next = min(next, c.Expires.Sub(now))
		}
	}
	if s.expiry != nil {
		s.expiry.Stop()
	}
	if s.closed {
		return
	}
	s.expiry = time.AfterFunc(next, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed { // which waits for what goes on
			s.work.Go(s.expelled)
		}
	})
}

// expelled ends what is up for tokens whose time is over.
func (s *Server) expelled() {
	for _, t := range s.everyone() {
		t.expel(s.policy.Load())
	}
	s.expire()
}

// Recheck looks whether definitions were approved elsewhere, and shows what is to
// be shown then.
func (s *Server) Recheck() {
	p := s.policy.Load()
	if p == nil {
		return
	}
	for _, u := range p.Upstreams {
		s.pins.recheck(u.Name, s.now())
	}
	if now := s.pins.loads.Load(); s.told.Swap(now) != now {
		for _, t := range s.everyone() {
			t.changed(none)
		}
	}
}

// everyone returns the tenants there are, those of single sessions too.
func (s *Server) everyone() []*tenant {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*tenant, 0, len(s.tenants))
	for _, t := range s.tenants {
		all = append(all, t)
		all = append(all, t.inner()...)
	}
	return all
}

// tenant returns what there is of an agent, and makes it when it is new.
func (s *Server) tenant(agent string) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(agent)
}

// host is tenant for a process, for which there is the same one until it has ended.
func (s *Server) host(agent string) (*tenant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.find(agent)
	if err == nil {
		t.pipes.Add(1)
	}
	return t, err
}

// find is tenant with the lock held.
func (s *Server) find(agent string) (*tenant, error) {
	if s.closed {
		return nil, errClosed
	}
	t, ok := s.tenants[agent]
	if !ok {
		t = newTenant(s, agent)
		s.tenants[agent] = t
	}
	return t, nil
}

var errClosed = errors.New("the gateway is closing")

// Close ends every session and every connection to a server.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.mu.Unlock()
	s.stop()
	for _, t := range s.everyone() {
		t.close()
	}
	s.outside.CloseIdleConnections()
	s.work.Wait()
	return nil
}

// chores are what goes on in the background. More may begin while they are waited for,
// which a sync.WaitGroup does not allow.
type chores struct {
	mu    sync.Mutex
	count int
	over  chan struct{} // closed when there are none, once somebody waits
}

// Go does something in the background.
func (c *chores) Go(f func()) {
	c.add(1)
	go func() {
		defer c.add(-1)
		f()
	}()
}

func (c *chores) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count += n; c.count == 0 && c.over != nil {
		close(c.over)
		c.over = nil
	}
}

// Wait returns as soon as nothing goes on.
func (c *chores) Wait() {
	c.mu.Lock()
	if c.count == 0 {
		c.mu.Unlock()
		return
	}
	if c.over == nil {
		c.over = make(chan struct{})
	}
	over := c.over
	c.mu.Unlock()
	<-over
}
