package proxy

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"capgate/capability"
	"capgate/gate"
	"capgate/guardrail"
	"capgate/upstream"
	"capgate/wire"
)

// The revisions of the protocol that agents may speak, newest first.
const (
	modernRevision = "2026-07-28"
	legacyRevision = "2025-11-25" // the newest of those that begin with initialize
)

func isLegacy(revision string) bool {
	switch revision {
	case "2024-11-05", "2025-03-26", "2025-06-18", legacyRevision:
		return true
	}
	return false
}

// supported lists the revisions as JSON.
const supported = `["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`

// instructions tell a model what is unusual about this server.
const instructions = "Each tool works within what this agent was granted. A call outside of that is answered at once, " +
	"with what it needs, what is held, and how the operator could allow it; calling it again in other words changes nothing."

// initialize begins a session.
func (c *call) initialize() reply {
	version, _ := c.params.Get("protocolVersion")
	text, ok := version.Str()
	client, _ := c.params.Get("capabilities")
	if !ok || client.Kind() != wire.Object {
		return c.malformed("initialize lacks the protocol version or the capabilities of the client")
	}
	if !isLegacy(text) {
		text = legacyRevision
	}
	s, err := c.tenant.open(c)
	if err != nil {
		code := capability.LimitExceeded
		if errors.Is(err, errRevoked) {
			code = capability.Unauthenticated
		}
		return c.deny(gate.Verdict{Decision: capability.Denial(code, nil), Why: err.Error()})
	}
	c.session, c.tenant = s, s.tenant
	e := c.event("notice")
	e.Text = "a session begins"
	c.server.record(e)
	dst := wire.AppendString([]byte(`{"protocolVersion":`), text)
	dst = append(append(dst, `,"capabilities":`...), c.abilities()...)
	dst = append(append(dst, `,"serverInfo":`...), c.server.self()...)
	dst = wire.AppendString(append(dst, `,"instructions":`...), instructions)
	return reply{result: append(dst, '}')}
}

// discover answers what initialize would, without beginning anything.
func (c *call) discover() reply {
	dst := append([]byte(`{"supportedVersions":`+supported+`,"capabilities":`), c.abilities()...)
	dst = wire.AppendString(append(dst, `,"instructions":`...), instructions)
	return reply{result: append(c.kept(dst), '}')}
}

func (c *call) ping() reply { return reply{result: []byte("{}")} }

// abilities is what the servers behind the gateway can do, together. One that
// does not answer in time is taken to be able to do everything: it may come up.
func (c *call) abilities() []byte {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	ups := c.policy.byName()
	can := make([]map[string]bool, len(ups))
	var asking sync.WaitGroup
	for i, u := range ups {
		asking.Go(func() { can[i] = c.tenant.able(ctx, u) })
	}
	asking.Wait()
	some := func(ability string) bool {
		return slices.ContainsFunc(can, func(m map[string]bool) bool { return m[ability] })
	}
	skills := c.policy.Skills.HasFolders() || some("skills")
	var parts []string
	for _, a := range [...]struct{ name, body string }{
		{"tools", `{"listChanged":true}`},
		{"prompts", `{"listChanged":true}`},
		{"resources", `{"subscribe":true,"listChanged":true}`},
		{"completions", "{}"},
		{"logging", "{}"},
	} {
		if a.name == "tools" || some(a.name) || skills && a.name != "logging" {
			parts = append(parts, `"`+a.name+`":`+a.body)
		}
	}
	if skills {
		parts = append(parts, `"extensions":{"`+skillsExtension+`":{"directoryRead":true}}`)
	}
	return []byte("{" + strings.Join(parts, ",") + "}")
}

func (t *tenant) able(ctx context.Context, u *Upstream) map[string]bool {
	all := map[string]bool{"prompts": true, "resources": true, "completions": true, "logging": true, "skills": true}
	l, err := t.line(u)
	if err != nil {
		return all
	}
	if l.isLate() {
		late, cancel := context.WithTimeout(ctx, failedTime)
		defer cancel()
		ctx = late
	}
	conn, err := l.link.Conn(ctx)
	if err != nil {
		return all
	}
	for name := range all {
		all[name] = able(conn.Info(), name)
	}
	if all["skills"] = extends(conn.Info(), skillsExtension); !all["skills"] {
		found, _, err := l.list(ctx, skillList, patience) // among its resources
		all["skills"] = err != nil || len(found) > 0
	}
	return all
}

// levels of logs, least important first.
const levels = "debug info notice warning error critical alert emergency"

// rank is the place of a level, -1 for none.
func rank(level string) int { return slices.Index(strings.Fields(levels), level) }

// setLevel answers logging/setLevel. Servers are told when they are next called.
func (c *call) setLevel() reply {
	v, _ := c.params.Get("level")
	level, _ := v.Str()
	if rank(level) < 0 {
		return c.malformed("logging/setLevel names no level")
	}
	c.session.mu.Lock()
	c.session.level = level
	c.session.mu.Unlock()
	return reply{result: []byte("{}")}
}

// logLevel is the least level of logs that the agent wants to see, "" for none.
func (c *call) logLevel() string {
	if c.session != nil {
		return c.session.logLevel()
	}
	v, _ := c.meta.Get(metaLogLevel)
	level, _ := v.Str()
	if rank(level) < 0 {
		return ""
	}
	return level
}

func (s *session) logLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// wants reports whether the agent asked for logs like this one.
func (c *call) wants(params []byte) bool {
	if c.session != nil {
		return c.session.wants(params)
	}
	return loudEnough(params, c.logLevel())
}

// wants reports whether a session is to see a log. One that never said what it
// wants sees what the server thinks right.
func (s *session) wants(params []byte) bool {
	level := s.logLevel()
	return level == "" || loudEnough(params, level)
}

func loudEnough(params []byte, least string) bool {
	var doc wire.Doc
	if least == "" || doc.Parse(params, wire.Limits{}) != nil {
		return false
	}
	v, _ := doc.Root().Get("level")
	level, _ := v.Str()
	return rank(level) >= rank(least)
}

// loudness tells a server of the legacy era which logs are wanted, unless that is
// what it was told last over this connection, or the call may not go up any more.
func (l *line) loudness(ctx context.Context, conn upstream.Conn, level string, may func() error) {
	if level == "" || conn.Info().Modern || !able(conn.Info(), "logging") {
		return
	}
	l.mu.Lock()
	known := l.levelled == conn && l.level == level
	l.levelled, l.level = conn, level
	l.mu.Unlock()
	if known {
		return
	}
	err := may()
	if err == nil {
		_, err = conn.Call(ctx, upstream.Request{Method: "logging/setLevel", Params: []byte(`{"level":"` + level + `"}`), May: may}, nil)
	}
	if err != nil {
		l.mu.Lock()
		if l.levelled == conn && l.level == level {
			l.levelled = nil // it may not have been told
		}
		l.mu.Unlock()
		l.tenant.server.log.Debug("a level of logs was not set", "upstream", l.up().Name, "error", err)
	}
}

// maxAbilities is how much a client may say of what it can be asked for.
const maxAbilities = 4 << 10

// answers returns what a client says that it can be asked for, which is all that is kept of
// what it can do.
func answers(able wire.Value) (*wire.Doc, error) {
	kept := []byte(`{"capabilities":{`)
	for key, v := range able.Members() {
		if name, _ := key.Str(); name == "roots" || name == "elicitation" || name == "sampling" {
			kept = appendMember(kept, key.Raw(), v.Raw())
		}
	}
	doc := new(wire.Doc)
	return doc, doc.Parse(append(kept, "}}"...), wire.Limits{Bytes: maxAbilities})
}

// open begins a session of the agent.
func (t *tenant) open(c *call) (*session, error) {
	s := t.server
	id, err := s.secret()
	if err != nil {
		return nil, err
	}
	name, err := s.secret()
	if err != nil {
		return nil, err
	}
	able, _ := c.params.Get("capabilities") // nothing else of it is asked for again
	client, err := answers(able)
	if err != nil {
		return nil, err
	}
	one := newSession(id, name[:8], client, s.now())
	one.credential, one.tenant = c.credential, t
	if slices.ContainsFunc(c.policy.Upstreams, (*Upstream).asksClient) {
		one.tenant = newTenant(s, t.agent)
		one.tenant.outer, one.tenant.only = t, one
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || s.ctx.Err() != nil {
		return nil, errClosed
	}
	if !s.holds(c.credential, t.agent) { // else it would not end with its token
		return nil, errRevoked
	}
	t.sweep(s.now())
	if len(t.sessions) >= s.limits.Sessions && !t.evict(s.now(), maps.Values(t.sessions)) {
		return nil, errSessions
	}
	t.sessions[id] = one
	return one, nil
}

// sweep ends the sessions that nobody uses any more. The lock is held.
func (t *tenant) sweep(now time.Time) {
	for id, s := range t.sessions {
		if s.idle(now) > t.server.limits.Idle {
			delete(t.sessions, id)
			t.server.work.Go(func() { s.oust("nobody has used it for long") })
		}
	}
}

// forgotten is how long a session must have been out of use to make room for another.
const forgotten = time.Minute

// makeRoom evicts a session that has servers of its own, as no more of them may run. For
// what nobody waits for, as when lists are looked at again, none ends.
func (t *tenant) makeRoom() bool {
	now := t.server.now()
	if t.only == nil && t.flights.Load() == 0 || t.only != nil && t.only.idle(now) > forgotten {
		return false
	}
	t = t.whole()
	var having []*session
	for _, in := range t.inner() {
		if in.hasServers() {
			having = append(having, in.only)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.evict(now, slices.Values(having))
}

// hasServers reports whether one is there that holds a place.
func (t *tenant) hasServers() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lines {
		if l.made.Process && l.link.IsUp() {
			return true
		}
	}
	return false
}

// evict ends the session that nobody has used for the longest, of those that are
// not in use: many clients never say that they are done. The lock is held.
func (t *tenant) evict(now time.Time, of iter.Seq[*session]) bool {
	var oldest *session
	var longest time.Duration
	for s := range of {
		if idle := s.idle(now); idle > max(longest, forgotten) && t.sessions[s.id] == s {
			oldest, longest = s, idle
		}
	}
	if oldest == nil {
		return false
	}
	delete(t.sessions, oldest.id)
	t.server.work.Go(func() { oldest.oust("another one takes its place") })
	return true
}

var errSessions = errors.New("too many sessions are open")

// oust ends a session that its agent has not, and records that.
func (s *session) oust(why string) {
	s.end()
	t := s.tenant
	t.server.record(&guardrail.Event{
		Kind: guardrail.Notice, Agent: t.agent, Session: s.name, Text: "a session ends: " + why, Policy: t.server.policy.Load().Hash,
	})
}

// find returns an open session of the agent by the id that it shows.
func (t *tenant) find(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sessions[id]
}

// drop ends a session at the agent's wish.
func (t *tenant) drop(s *session) {
	t.mu.Lock()
	delete(t.sessions, s.id)
	t.mu.Unlock()
	s.end()
}
