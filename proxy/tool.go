package proxy

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"capgate/capability"
	"capgate/gate"
	"capgate/leash"
	"capgate/mapping"
	"capgate/upstream"
	"capgate/wire"
)

// callTool answers tools/call.
func (c *call) callTool() reply {
	if why := c.named(); why != "" {
		return c.malformed(why)
	}
	if r, ok := c.introspect(); ok {
		return r
	}
	t, v := c.judge()
	if t == nil || !v.Decision.Allowed() {
		return c.deny(v)
	}
	if _, has := c.params.Get("task"); has {
		return c.malformed("this gateway does not carry tasks")
	}
	header, b, denied := c.prepare(t, v)
	if denied != nil {
		return c.deny(*denied)
	}
	if err := c.agrees(t); err != nil {
		return c.mismatch(err.Error())
	}
	if r, ok := c.allow(v); !ok {
		return r
	}
	return c.forward(&order{line: t.line, method: "tools/call", name: t.name, header: header, body: c.nameAndArguments(t.name, b), ups: c.ups, renewed: c.renewed})
}

// named reads the name and the arguments of a tool or prompt, and says what is
// wrong with them.
func (c *call) named() string {
	name, _ := c.params.Get("name")
	var ok bool
	if c.exposed, ok = name.Str(); !ok {
		return c.method + " names nothing"
	}
	c.args, _ = c.params.Get("arguments")
	if k := c.args.Kind(); k != wire.Object && k != wire.Null && k != wire.Invalid {
		return "the arguments of " + c.method + " are not an object"
	}
	return ""
}

// judge finds the tool that is called, nil if there is none, and decides.
func (c *call) judge() (*tool, gate.Verdict) {
	t, denied := c.find()
	if t == nil {
		c.target = c.unfound() // for the event: who asks for what there is not
		return nil, denied
	}
	c.behind, c.target, c.declared = t.up.Name, t.gate.Name, t.gate.Declared
	v := c.policy.Gate.Call(c.agent, t.gate, c.args)
	if t.blocked != "" && !hidden(v.Decision.Code) {
		v = gate.Verdict{Decision: capability.Denial(t.blocked, nil), Needs: v.Needs, Why: t.why}
	}
	return t, v
}

// unfound is what is called although nobody knows it: as events of its server's tools have it where it may be
// of one that does not say what it has, and else as it is.
func (c *call) unfound() string {
	name := c.exposed
	if up := c.policy.upstream(c.behind); up != nil && up.Prefix != "" {
		if own, ok := strings.CutPrefix(name, up.Prefix+separator); ok {
			name = up.Prefix + "." + own
		}
	}
	return name[:min(len(name), maxMethod)]
}

// hidden reports whether a denial is the one that an agent gets for tools that it
// could not call in any case, so that it is told nothing about them.
func hidden(code capability.Code) bool {
	switch code {
	case capability.CapabilityAbsent, capability.ScopeViolation, capability.InvalidConfig, capability.Unauthenticated, capability.NotAvailable:
		return true
	}
	return false
}

// nameAndArguments writes the name under which the server knows a tool or prompt,
// and the very bytes of the arguments that were decided on, with secrets filled in
// where there are blanks for them.
func (c *call) nameAndArguments(name string, b *blanks) func([]byte) ([]byte, error) {
	return func(dst []byte) ([]byte, error) {
		dst = wire.AppendString(append(dst, `"name":`...), name)
		if c.args.Kind() != wire.Object {
			return dst, nil
		}
		dst = append(dst, `,"arguments":`...)
		if b == nil {
			return append(dst, c.args.Raw()...), nil
		}
		dst, denied := b.write(dst)
		if denied != nil {
			return nil, &refused{*denied}
		}
		return dst, nil
	}
}

// find looks a tool up by the name that agents call it by. One that is not in the
// catalogue as it was made last may belong to a server that came up meanwhile. How often its server
// had come up is looked at first: one that is started anew after that may be another by its lists.
func (c *call) find() (*tool, gate.Verdict) {
	cat := c.tenant.known()
	if cat != nil {
		if t, ok := cat.tools[c.exposed]; ok {
			if c.ups = t.line.ups.Load(); cat.current(c.ctx, t.line) {
				return t, gate.Verdict{}
			}
		}
	}
	begun := time.Now()
	if t := c.quickly(begun); t != nil {
		return t, gate.Verdict{}
	}
	ctx, cancel := context.WithDeadline(c.ctx, begun.Add(listTime))
	defer cancel()
	var found *tool
	look := func(cat *catalogue) (ok bool) {
		found, ok = cat.tools[c.exposed]
		return ok
	}
	down := c.search(ctx, begun, look, toolList)
	var asked *line
	for found != nil && found.line != asked && ctx.Err() == nil {
		asked = found.line
		c.ups = asked.ups.Load()
		_, _, _ = c.listOf(ctx, asked, toolList, begun) // which it may be about to say
		down = c.search(ctx, begun, look, toolList)
	}
	switch {
	case found != nil && found.line == asked:
		return found, gate.Verdict{}
	case found != nil:
		return nil, restless()
	case down != nil:
		return nil, c.silence(down)
	}
	return nil, gate.Verdict{Decision: capability.Denial(capability.UnknownTool, nil), Why: "no tool has that name"}
}

// search looks into the catalogue, and waits for servers that are about to say what
// they have when it could be one of theirs that is asked for, whichever says so first. It returns
// one that does not say, nil if none is left that could have it.
func (c *call) search(ctx context.Context, begun time.Time, has func(*catalogue) bool, kinds ...listKind) (down *mute) {
	var waits sync.WaitGroup
	defer waits.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked, said := map[unheardOf]bool{}, make(chan answered)
	for waiting := 0; ; waiting-- {
		cat, err := c.catalogue(ctx)
		switch {
		case errors.Is(err, errRevoked):
			return &mute{err: err}
		case err != nil: // as somebody else makes one when the time is up
			return c.silent(kinds, err)
		case has(cat):
			return nil
		}
		for _, one := range c.missing(cat, kinds) {
			if asked[one] {
				continue
			}
			asked[one] = true
			waiting++
			waits.Go(func() {
				_, is, err := c.listOf(ctx, one.line, one.kind, begun)
				select {
				case said <- answered{one, err == nil && is.isKnown(), err}:
				case <-ctx.Done():
				}
			})
		}
		if waiting == 0 {
			return down
		}
		select {
		case a := <-said:
			if asked[a.unheardOf] = !a.known; !a.known {
				down = &mute{a.line.made.Name, a.err}
			}
		case <-ctx.Done():
			return c.silent(kinds, ctx.Err())
		}
	}
}

// unheardOf is a list of a server that is not known.
type unheardOf struct {
	line *line
	kind listKind
}

// answered is what came of waiting for one.
type answered struct {
	unheardOf
	known bool
	err   error
}

// silent is a server that has not said what it has, and that what is asked for could be of; nil for none.
func (c *call) silent(kinds []listKind, err error) *mute {
	for _, u := range c.policy.byName() {
		l, gone := c.tenant.line(u)
		if gone == nil && c.couldBeOf(u, kinds) && slices.ContainsFunc(kinds, func(k listKind) bool { return !l.lists[k].edition(c.server.now()).isKnown() }) {
			return &mute{u.Name, err}
		}
	}
	return nil
}

// couldBeOf reports whether a server could have what is asked for, which has the prefix unless it is a resource
// that is no file of a skill.
func (c *call) couldBeOf(u *Upstream, kinds []listKind) bool {
	switch kinds[0] {
	case resourceList, templateList:
		return true
	case skillList:
		_, rest, isOwn := strings.Cut(c.exposed, skillScheme)
		return !isOwn || u.Prefix == "" || strings.HasPrefix(rest+"/", u.Prefix+"/")
	}
	return u.Prefix == "" || strings.HasPrefix(c.exposed, u.Prefix+separator)
}

// listOf is a list of a server, which is waited for no longer than an answer to a call would be, and
// as a list is shown without it where it was waited for in vain; without its tools, nothing is called.
func (c *call) listOf(ctx context.Context, l *line, k listKind, since time.Time) ([]item, edition, error) {
	most := min(listTime, c.patience(l.up()))
	if k != toolList && l.lists[k].isVain() {
		most = min(most, patience)
	}
	within := leash.New(ctx).Within(time.Until(since.Add(most)))
	defer within.Cut(nil)
	return l.list(within, k, listTime)
}

// mute is a server that does not say what it has, and what it said instead.
type mute struct {
	server string
	err    error
}

// silence is the verdict on what a server may have that does not answer. One that
// wants a person to log in will not answer later either.
func (c *call) silence(s *mute) gate.Verdict {
	if errors.Is(s.err, errRevoked) {
		return revoked()
	}
	c.behind = s.server
	said, hint := "does not answer", laterHint
	if failed, ok := errors.AsType[*upstream.Failed](s.err); ok && failed.Text != "" {
		said, hint = advised(failed.Text)
	} else if s.err != nil && !errors.Is(s.err, errPatience) && !errors.Is(s.err, context.DeadlineExceeded) {
		said = "gives no list that can be read"
	}
	why := "upstream " + strconv.Quote(s.server) + " " + said + ", so that it is not known what it has"
	login, wanted := errors.AsType[*upstream.NeedsLogin](s.err)
	if c.wantsLogin = wanted || hint == operatorHint; wanted {
		why = "upstream " + strconv.Quote(s.server) + " does not say what it has: " + login.Error()
	}
	return gate.Verdict{Decision: capability.Denial(capability.UpstreamFailed, nil), Why: why}
}

// quickly looks for a tool at the one server whose it can be by its name, so that a
// call does not wait for servers that it does not concern. It finds nothing where
// a server without a prefix could have the name too.
func (c *call) quickly(begun time.Time) *tool {
	p, folded := c.server.policy.Load(), foldName(c.exposed)
	var only *Upstream
	for _, u := range p.Upstreams {
		switch {
		case u.Prefix == "":
			return nil
		case strings.HasPrefix(folded, foldName(u.Prefix+separator)): // what is named alike but for case is nobody's
			if only != nil {
				return nil
			}
			only = u
		}
	}
	if only == nil || p != c.policy {
		return nil
	}
	l, err := c.tenant.line(only)
	if err != nil {
		return nil
	}
	c.ups = max(1, l.ups.Load()) // it comes up to say what it has
	items, is, err := c.listOf(c.ctx, l, toolList, begun)
	if err != nil || !is.isKnown() {
		return nil
	}
	pins := c.server.pins.loads.Load()
	if s := l.shelf.Load(); s != nil && s.policy == p && s.pins == pins && s.edition == is {
		return s.tools[c.exposed]
	}
	a := assembly{catalogue: &catalogue{policy: p, tools: map[string]*tool{}}, tenant: c.tenant, folded: map[string]*tool{}}
	a.addTools(&source{up: only, line: l}, items)
	l.shelf.Store(&shelf{policy: p, pins: pins, edition: is, tools: a.tools})
	return a.tools[c.exposed]
}

// shelf is the tools of one server, as they were made of a state of its list.
type shelf struct {
	policy  *Policy
	pins    uint64 // how often pins had come when it was made
	edition edition
	tools   map[string]*tool
}

// catalogue is what the agent sees now. If it had to be waited for, another policy
// may be in force, which the call is then decided by.
func (c *call) catalogue(ctx context.Context) (*catalogue, error) {
	cat, err := c.tenant.catalogue(ctx)
	switch {
	case err != nil && !c.server.holds(c.credential, c.agent):
		return nil, errRevoked
	case err != nil:
		return nil, err
	}
	if c.credential != "" && !cat.policy.holds(c.credential, c.agent, c.server.now()) { // also where only time went by
		return nil, errRevoked
	}
	c.policy = cat.policy
	return cat, nil
}

var errRevoked = errors.New("the token was revoked or has expired")

// current reports whether what the catalogue says of the tools of a server is
// still what the server says, which is asked when that is long ago.
func (c *catalogue) current(ctx context.Context, l *line) bool {
	i := slices.IndexFunc(c.sources, func(s source) bool { return s.line == l })
	if i < 0 || !c.sources[i].editions[toolList].isKnown() || c.pins != l.tenant.server.pins.loads.Load() {
		return false
	}
	now := l.lists[toolList].edition(l.tenant.server.now())
	if now == 0 {
		_, now, _ = l.list(ctx, toolList, agedTime)
	}
	return now == c.sources[i].editions[toolList]
}

// missing returns the lists that are not known of servers to which what is asked for could belong.
func (c *call) missing(cat *catalogue, kinds []listKind) (all []unheardOf) {
	for _, s := range cat.sources {
		for _, k := range kinds {
			if !s.editions[k].isKnown() && c.couldBeOf(s.up, kinds) {
				all = append(all, unheardOf{s.line, k})
			}
		}
	}
	return all
}

// patience is how long a server may take that asks nothing.
func (c *call) patience(u *Upstream) time.Duration {
	if u.Timeout > 0 {
		return u.Timeout
	}
	return c.server.limits.Call
}

// timeLimit is how long a call may take. Where a person may be asked in between,
// that takes the time it takes.
func (c *call) timeLimit(u *Upstream) time.Duration {
	limit := c.patience(u)
	if u.asksClient() {
		limit += askTime
	}
	return limit
}

// prepare makes the headers of the arguments that go up, and finds the secrets in those. Denied is
// what of either cannot be done.
func (c *call) prepare(t *tool, v gate.Verdict) (header []upstream.Field, b *blanks, denied *gate.Verdict) {
	header, unfit := t.mirror.Fields(c.args)
	if unfit != "" {
		r := &mapping.Refused{Code: capability.MalformedArguments, Argument: unfit, Text: "does not fit the header that the schema has it travel as"}
		return nil, nil, &gate.Verdict{Decision: capability.Denial(r.Code, nil), Needs: v.Needs, Argument: unfit, Refused: r, Why: r.Error()}
	}
	b, denied = c.policy.blanks(c.args, v, t.mirror)
	return header, b, denied
}

// agrees checks the headers of a request that repeat arguments against them.
func (c *call) agrees(t *tool) error {
	if c.mirrored == nil {
		return nil
	}
	for _, name := range t.mirror.Headers() {
		shown, several := one(c.mirrored.header, name)
		_, present := c.mirrored.header[name]
		if several || !t.mirror.Agrees(name, shown, present, c.args) {
			return errors.New("the header " + name + " does not say what its argument does")
		}
	}
	return nil
}

// malformed refuses a request whose params cannot be what they should be.
func (c *call) malformed(text string) reply {
	e := c.event("refusal")
	e.Code, e.Text = string(capability.MalformedRequest), text
	d := denial{code: capability.MalformedRequest, tool: c.exposed, why: text, event: c.server.record(e)}
	return reply{failure: c.server.word(d).failure()}
}

// mismatch refuses a request whose headers say something else than its body.
func (c *call) mismatch(text string) reply {
	e := c.event("refusal")
	e.Code, e.Text = string(capability.HeaderMismatch), text
	d := denial{code: capability.HeaderMismatch, tool: c.exposed, why: text, event: c.server.record(e)}
	f := c.server.word(d).failure()
	f.code = codeHeader
	return reply{failure: f, status: 400}
}
