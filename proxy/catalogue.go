package proxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"capgate/capability"
	"capgate/gate"
	"capgate/upstream"
)

// catalogue is what an agent sees of the servers behind the gateway, and what it
// would see if it held more. It is immutable; a change makes a new one.
type catalogue struct {
	policy    *Policy
	pins      uint64 // how often pins had come when it was made
	sources   []source
	tools     map[string]*tool // by exposed name; hidden ones too
	prompts   map[string]*prompt
	shared    map[string]*resource // by URI
	templates []*resource
	claims    map[*line][]*resource // those of templates that are held against what others list
	veiled    []*resource           // templates that are not shown, as they may describe skills
	withheld  []withheld            // resources and templates that somebody must look at first
	skilled   []*skill              // all of them, by their places
	skills    []*skill              // that the agent sees
	bundled   map[string]*bundled   // their files, by URI
	unseen    map[string]string     // why others are hidden, by the URI of a file
	pages     [listKinds][]page
	shown     fingerprint    // of the pages
	seen      map[*line]bool // the servers of which something is in them
}

// source is one server in a catalogue, and the state of its lists that went in.
type source struct {
	up       *Upstream
	line     *line
	editions [listKinds]edition // of its lists
	left     []string           // what is left out of them: URIs, and templates of these
	skills   claimed            // what of its resources are skills
	unknown  bool               // nobody knows yet
	spoke    bool               // the server spoke the extension for them
}

// tool is one tool of a server under the name that agents call it by.
type tool struct {
	exposed string
	line    *line
	name    string // the server's own
	up      *Upstream
	gate    *gate.Tool      // what up says of it
	raw     []byte          // the definition as the server wrote it
	mirror  upstream.Mirror // the arguments that travel as headers
	blocked capability.Code // why it is hidden from everyone, "" if it is not
	why     string          // the same, for the operator
}

// prompt is one prompt of a server.
type prompt struct {
	exposed string
	up      *Upstream
	line    *line
	name    string
	raw     []byte
	skill   *skill // the skill that it is, in place of a server's prompt
	held    ruling // why somebody must look at it first
}

// resource is one resource, or template of resources, of a server.
type resource struct {
	uri  string
	up   *Upstream
	line *line
	raw  []byte
	held ruling // why somebody must look at it first
}

// page is one page of a list, as the body of a result without its last member.
type page struct {
	entries []byte // [ … ]
	last    bool
}

// fingerprint is the hash of each list that is shown: tools, prompts, resources.
type fingerprint [3][sha256.Size]byte

// print computes the fingerprint.
func (c *catalogue) print() fingerprint {
	var f fingerprint
	for k := range c.pages {
		h := sha256.New()
		i := min(k, int(resourceList))
		h.Write(f[i][:])
		for _, p := range c.pages[k] {
			h.Write(p.entries)
		}
		h.Sum(f[i][:0])
	}
	h := sha256.New()
	h.Write(f[resourceList][:])
	for _, s := range c.skills {
		if s.about.Irregular != "" { // the lists do not show which files it has
			h.Write(s.entry())
		}
	}
	h.Sum(f[resourceList][:0])
	return f
}

// fresh reports whether nothing has changed since the catalogue was made.
func (c *catalogue) fresh(p *Policy, s *Server) bool {
	if c == nil || c.policy != p || c.pins != s.pins.loads.Load() {
		return false
	}
	now := s.now()
	return !slices.ContainsFunc(c.sources, func(s source) bool { return !s.isFresh(now) })
}

// isFresh reports the same of one server.
func (s *source) isFresh(now time.Time) bool {
	for k, is := range s.editions {
		if is == 0 || is != s.line.lists[k].edition(now) {
			return false
		}
	}
	return true
}

// catalogue returns what the agent sees now. Servers that do not answer in time
// are left out; the catalogue is then made again at the next look.
func (t *tenant) catalogue(ctx context.Context) (*catalogue, error) {
	for waited := false; ; waited = true {
		t.mu.Lock()
		p := t.server.policy.Load()
		if t.current.fresh(p, t.server) {
			defer t.mu.Unlock()
			return t.current, nil
		}
		if b := t.building; b != nil {
			t.mu.Unlock()
			select {
			case <-b.done:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if p := t.server.policy.Load(); b.policy == p && b.err == nil && (waited || b.cat.fresh(p, t.server)) {
				return b.cat, nil // as good as one that is made now, and the second began after this look
			}
			continue
		}
		b := &construction{policy: p, done: make(chan struct{}), err: errStale} // until it is made
		t.building = b
		t.mu.Unlock()
		t.construct(ctx, b)
		if b.err == nil {
			t.settle()
		}
		if b.stands(t.server.policy.Load()) {
			return b.cat, b.err
		}
	}
}

// construct makes a catalogue. Who waits for it goes on as well where that panics.
func (t *tenant) construct(ctx context.Context, b *construction) {
	defer func() {
		t.mu.Lock()
		if b.err == nil {
			t.current = b.cat
		}
		t.building = nil
		t.mu.Unlock()
		close(b.done)
	}()
	b.cat, b.err = t.build(ctx, b.policy)
}

// errStale says that another policy has come into force meanwhile.
var errStale = errors.New("the policy has changed")

// is reports whether another catalogue would be made of the same.
func (c *catalogue) is(other *catalogue) bool {
	return c != nil && c.policy == other.policy && c.pins == other.pins && slices.EqualFunc(c.sources, other.sources, func(x, y source) bool {
		return x.line == y.line && x.editions == y.editions && !slices.Contains(x.editions[:], 0)
	})
}

// construction is a catalogue that is being made, for those who wait for it.
type construction struct {
	policy *Policy
	done   chan struct{} // closed when there is a result
	cat    *catalogue
	err    error
}

// stands reports whether it need not be made anew for a policy that has come meanwhile.
func (b *construction) stands(now *Policy) bool {
	return !errors.Is(b.err, errStale) && (b.err != nil || b.policy == now)
}

// known returns the catalogue as it was made last, when it is of the policy in
// force: what is in it can be called although another server does not answer.
func (t *tenant) known() *catalogue {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.current.policy == t.server.policy.Load() {
		return t.current
	}
	return nil
}

// build fetches what is not known and makes a catalogue of it.
func (t *tenant) build(ctx context.Context, p *Policy) (*catalogue, error) {
	c := &catalogue{
		policy: p, pins: t.server.pins.loads.Load(),
		tools: map[string]*tool{}, prompts: map[string]*prompt{}, shared: map[string]*resource{}, claims: map[*line][]*resource{}, seen: map[*line]bool{},
	}
	var ups []*Upstream
	if p.knows(t.agent) {
		ups = p.byName()
	}
	c.sources = make([]source, len(ups))
	lists := make([][listKinds][]item, len(ups))
	for i, u := range ups {
		l, err := t.line(u)
		if err != nil {
			return nil, err
		}
		c.sources[i].up, c.sources[i].line = u, l
	}
	var fetching sync.WaitGroup
	for i := range ups {
		for k := range listKinds {
			fetching.Go(func() { lists[i][k], c.sources[i].editions[k], _ = c.sources[i].line.list(ctx, k, patience) })
		}
	}
	fetching.Wait()
	for i := range ups { // of which others may have said meanwhile that they are not known
		fetching.Go(func() {
			lists[i][skillList], c.sources[i].editions[skillList], _ = c.sources[i].line.list(ctx, skillList, patience)
		})
	}
	fetching.Wait()
	for i := range ups {
		c.sources[i].left = c.sources[i].line.settle(&lists[i], c.sources[i].editions[skillList])
	}
	if err := ctx.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	if before := t.known(); before.is(c) {
		return before, nil
	}
	a := assembly{catalogue: c, tenant: t, silent: silent(ups, lists), folded: map[string]*tool{}, called: map[string]*prompt{}}
	for i := range lists {
		s := &c.sources[i]
		a.addServed(s, lists[i][skillList])
		a.addTools(s, lists[i][toolList])
		a.addPrompts(s, lists[i][promptList])
		a.addResources(s, lists[i][resourceList], lists[i][templateList])
	}
	a.finish()
	return c, nil
}

// assembly is a catalogue while it is made.
type assembly struct {
	*catalogue
	tenant    *tenant
	silent    string // a server without a prefix whose tools are not known
	order     []*tool
	folded    map[string]*tool   // by the name with its case folded, as clients do
	called    map[string]*prompt // the same of prompts
	prompted  []*prompt
	resources []*resource
}

// silent names a server whose tools have no prefix, beside others of the kind, and
// are not known: any of the others' names may be one of its.
func silent(ups []*Upstream, lists [][listKinds][]item) string {
	bare, missing := 0, ""
	for i, u := range ups {
		if u.Prefix == "" {
			bare++
			if lists[i][toolList] == nil {
				missing = u.Name
			}
		}
	}
	if bare < 2 {
		return ""
	}
	return missing
}

// addTools enters the tools of one server.
func (a *assembly) addTools(from *source, items []item) {
	for _, t := range a.tenant.server.inspect(from, items) {
		a.order = append(a.order, t)
		if t.blocked == "" && !a.tenant.server.isClean(from.up, t.raw) {
			t.blocked, t.why = capability.ToolRejected, secretWithin
		}
		if a.silent != "" && from.up.Prefix == "" && t.blocked == "" {
			t.blocked, t.why = capability.NotAvailable, "the tools of upstream "+a.silent+" are not known, and it may have one of this name"
		}
		if owner := a.owner(from.up, t.gate.Name); owner != "" && t.blocked == "" {
			t.blocked, t.why = capability.NameCollision, "the name is one among capabilities of upstream "+owner
		}
		if a.policy.reserved(t.exposed) {
			t.blocked, t.why = capability.NameCollision, "the name is one of the gateway's own"
		}
		key := foldName(t.exposed)
		if other, taken := a.folded[key]; taken {
			for _, x := range []*tool{t, other} {
				x.blocked, x.why = capability.NameCollision, "several tools claim the name "+t.exposed
			}
		} else {
			a.folded[key] = t
		}
		a.tools[t.exposed] = t
	}
}

// owner names the upstream whose tools are called like one of a server without a
// prefix, among capabilities: what is granted of the one must not reach the other.
func (a *assembly) owner(up *Upstream, called string) string {
	if up.Prefix != "" {
		return ""
	}
	for _, u := range a.policy.Upstreams {
		if u.Prefix != "" && strings.HasPrefix(called, u.Prefix+".") {
			return u.Name
		}
	}
	return ""
}

// addPrompts enters the prompts of one server.
func (a *assembly) addPrompts(from *source, items []item) {
	held := a.tenant.server.withheld(from.up, promptPin, named(items, "name"), items)
	for i, it := range items {
		p := &prompt{up: from.up, line: from.line, name: it.text("name"), raw: it.raw, held: a.tenant.server.cleanOnly(from.up, held[i], it.raw)}
		if p.exposed = exposedName(p.up, p.name); p.name == "" || validName(p.exposed) != "" || from.unknown || from.skills.isPrompt(p.name) || a.owner(p.up, p.up.called(p.name)) != "" {
			continue
		}
		a.prompted = append(a.prompted, p)
		if other := a.namePrompt(p); other != nil {
			p.held = several("prompts claim the name " + p.exposed)
			other.held = p.held
		}
	}
}

// namePrompt enters a prompt under its name. Where another has the name, in whatever case, that is returned, and
// nobody has either.
func (a *assembly) namePrompt(p *prompt) (other *prompt) {
	key := foldName(p.exposed)
	if other = a.called[key]; other != nil {
		a.prompts[p.exposed], a.prompts[other.exposed] = nil, nil
		return other
	}
	a.called[key], a.prompts[p.exposed] = p, p
	return nil
}

// addResources enters the resources and templates of one server.
func (a *assembly) addResources(from *source, items, templates []item) {
	s := a.tenant.server
	held := s.withheld(from.up, resourcePin, named(items, "uri"), items)
	for i, it := range items {
		r := &resource{uri: it.text("uri"), up: from.up, line: from.line, raw: it.raw, held: s.cleanOnly(from.up, held[i], it.raw)}
		if from.secludes(r.uri) || r.uri == "" {
			continue
		}
		a.withhold(r, false)
		a.resources = append(a.resources, r)
		if other, taken := a.shared[r.uri]; taken {
			a.shared[r.uri] = nil // nobody has it
			if r.held = several("resources have the URI"); other != nil {
				other.held = r.held
			}
			continue
		}
		a.shared[r.uri] = r
	}
	held = s.withheld(from.up, templatePin, named(templates, "uriTemplate"), templates)
	for i, it := range templates {
		r := &resource{uri: it.text("uriTemplate"), up: from.up, line: from.line, raw: it.raw, held: held[i]}
		a.withhold(r, true)
		switch {
		case !s.isClean(from.up, r.raw):
		case from.secludesTemplate(r.uri):
			a.veiled = append(a.veiled, r)
		default:
			a.templates = append(a.templates, r)
			if isAnchored(r.uri) {
				a.claims[r.line] = append(a.claims[r.line], r)
			}
		}
	}
}

// finishResources writes down which resources and templates are shown.
func (a *assembly) finishResources(w *[listKinds]pager) {
	g, agent, left := a.policy.Gate, a.tenant.agent, mostHeld
	for _, r := range a.resources {
		if a.shared[r.uri] != nil && r.held.code == "" && g.Readable(agent, r.up.resources(), r.uri) && a.rival(r, &left) == nil {
			w[resourceList].add(r.raw)
			a.seen[r.line] = true
		}
	}
	several := disputed(a.templates)
	for _, r := range a.templates {
		if r.held.code == "" && !several[r.uri] && g.Template(agent, r.up.resources(), r.uri) {
			w[templateList].add(r.raw)
			a.seen[r.line] = true
		}
	}
	for _, s := range a.skills {
		a.seen[s.line] = true
		w[resourceList].add(s.main().resource())
		if s.template() != "" {
			w[templateList].add(s.templateEntry())
		}
		// There are clients that show none of them if one is not as the format says.
		if s.about.Irregular == "" {
			w[skillList].add(s.entry())
		}
	}
}

// finish writes down what is shown, in an order that does not depend on anything
// but the names.
func (a *assembly) finish() {
	g, agent := a.policy.Gate, a.tenant.agent
	visible := a.tenant.outlook(a.policy)
	a.finishSkills(visible)
	slices.SortStableFunc(a.order, func(x, y *tool) int { return strings.Compare(x.exposed, y.exposed) })
	slices.SortStableFunc(a.prompted, func(x, y *prompt) int { return strings.Compare(x.exposed, y.exposed) })
	byURI := func(x, y *resource) int { return strings.Compare(x.uri, y.uri) }
	slices.SortStableFunc(a.resources, byURI)
	slices.SortStableFunc(a.templates, byURI)
	slices.SortStableFunc(a.veiled, byURI)
	var w [listKinds]pager
	own := introspections()
	if !a.policy.Introspection {
		own = nil
	}
	for _, t := range a.order {
		for len(own) > 0 && own[0].name < t.exposed {
			w[toolList].add([]byte(own[0].definition))
			own = own[1:]
		}
		if t.blocked != "" {
			continue
		}
		if seen := visible.tool(t); seen.shown {
			w[toolList].add(advertised(t.raw, t.exposed, seen.scope))
			a.seen[t.line] = true
		}
	}
	for _, t := range own {
		w[toolList].add([]byte(t.definition))
	}
	a.tenant.remember(visible)
	a.tenant.server.omit(a.policy, a.listed())
	for _, p := range a.prompted {
		if a.prompts[p.exposed] != nil && p.held.code == "" && (p.skill != nil || g.PromptVisible(agent, p.up.promptOf(p.name))) {
			w[promptList].add(advertised(p.raw, p.exposed, ""))
			a.seen[p.line] = true
		}
	}
	a.finishResources(&w)
	for k := range w {
		a.pages[k] = w[k].pages()
	}
	a.shown = a.print()
}
