package proxy

import (
	"slices"
	"strings"

	"capgate/wire"
)

// changed tells those who watch a resource, or one that it is a part of, that it has changed.
// A file of a skill is looked for in the list, as that says which it is.
func (l *line) changed(uri string) {
	if l.listed(uri) != nil {
		l.lists[skillList].renew()
		l.tenant.touched(none)
		return
	}
	for _, t := range l.tenant.server.everyone() {
		t.updated(change{l, uri})
	}
}

// change is a resource that a server tells of, as it is reached over a connection.
type change struct {
	line *line
	uri  string
}

// updated tells those of an agent whom it concerns, as far as the skills of the server are known
// that it had when it said so.
func (t *tenant) updated(c change) {
	if t.agent != "" {
		t.tell(c, c.line.lists[skillList].changes())
	}
}

// hearer is somebody whom something concerns, as it is in what they watch.
type hearer struct {
	watched string
	notify  func(method string, params []byte, may func() bool)
}

// hearers are those of an agent whom a change concerns.
func (t *tenant) hearers(c change) (all []hearer) {
	t.mu.Lock()
	sessions, streams := t.listening()
	t.mu.Unlock()
	for _, one := range sessions {
		one.mu.Lock()
		if at, ok := c.line.concerns(one.watched, c.uri); ok {
			all = append(all, hearer{at, one.notify})
		}
		one.mu.Unlock()
	}
	for _, one := range streams {
		one.mu.Lock()
		if at, ok := c.line.concerns(one.watched, c.uri); ok {
			all = append(all, hearer{at, one.notify})
		}
		one.mu.Unlock()
	}
	return all
}

// tell tells them. What the agent may not read by now, or what is withheld or may be a file of a
// skill all the same, is told to nobody; as long as it is not known which skills the server has
// since its list changed for so many times, it waits. Of what has a secret in its name they are
// told that it is in what they watch.
func (t *tenant) tell(c change, changes uint64) {
	l := c.line
	told := t.hearers(c) // first, as deciding costs more, and whoever serves many sessions waits for it
	if len(told) == 0 || !t.mayRead(l, c.uri) {
		return
	}
	t.mu.Lock()
	cat := t.current
	known := cat.knows(l, changes)
	if _, waits := t.unsure[c]; !known && !waits && len(t.unsure) < maxWatched && len(c.uri) <= longestNews {
		t.unsure[c] = changes
	}
	t.mu.Unlock()
	if !known {
		t.changed(none)
		return
	}
	if !cat.tells(l, c.uri) {
		return
	}
	body, clean := t.server.news(l.up(), c.uri)
	for _, one := range told {
		if clean {
			one.notify(resourceUpdated, body, t.still(l, c.uri))
		} else if of, ok := t.server.news(l.up(), one.watched); ok && t.mayRead(l, one.watched) && cat.tells(l, one.watched) {
			one.notify(resourceUpdated, of, t.still(l, one.watched))
		}
	}
}

// tells reports whether a resource is neither one of a skill's files nor withheld.
func (cat *catalogue) tells(l *line, uri string) bool {
	return cat.unless(l, uri) != nil && cat.alike(l, uri).code == ""
}

// mayRead reports whether the agent may read a resource of a server by now.
func (t *tenant) mayRead(l *line, uri string) bool {
	return t.server.policy.Load().Gate.Resource(t.agent, l.up().resources(), uri).Decision.Allowed()
}

// mayHear is the same of what is a file of a skill: whether the agent satisfies that.
func (t *tenant) mayHear(l *line, of *served, uri string) bool {
	if of == nil {
		return t.mayRead(l, uri)
	}
	p := t.server.policy.Load()
	return p.Gate.Skill(t.agent, of.understood(p)).Satisfied
}

// still says, whenever it is asked, whether the agent may be told of a resource.
func (t *tenant) still(l *line, uri string) func() bool {
	return func() bool { return l.inUse() && t.mayRead(l, uri) }
}

// news is what is said of a resource that has changed, unless a secret stands in its name.
func (s *Server) news(from *Upstream, uri string) (body []byte, ok bool) {
	body = append(wire.AppendString([]byte(`{"uri":`), uri), '}')
	return body, s.isClean(from, body)
}

// longestNews bounds the URIs that wait.
const longestNews = 8 << 10

// settle tells what waited for a catalogue that knows the skills of its server.
func (t *tenant) settle() {
	ready := map[change]uint64{}
	t.mu.Lock()
	for c, changes := range t.unsure {
		is := func(s source) bool { return s.line == c.line }
		switch known := t.current.knows(c.line, changes); {
		case !known && (t.current.policy != t.server.policy.Load() || slices.ContainsFunc(t.current.sources, is)):
			continue
		case known:
			ready[c] = changes
		}
		delete(t.unsure, c) // also where it is reached in another way by now, and was asked anew there
	}
	t.mu.Unlock()
	for c, changes := range ready {
		t.tell(c, changes)
	}
}

// knows reports whether it is known which skills are had over a connection since their list
// changed for so many times.
func (cat *catalogue) knows(l *line, changes uint64) bool {
	return cat != nil && slices.ContainsFunc(cat.sources, func(s source) bool {
		return s.line == l && !s.unknown && l.lists[skillList].covers(s.editions[skillList], changes, l.tenant.server.now())
	})
}

// concerns finds a resource that is watched, or one that it is a part of, by its name there.
func (l *line) concerns(all map[string]*watched, uri string) (at string, ok bool) {
	const deepest = 32
	for range deepest {
		for _, at := range [...]string{uri, uri + "/"} {
			if w := all[at]; w != nil && w.line == l && w.digest == "" {
				return at, true
			}
		}
		above := strings.LastIndexByte(uri, '/')
		if above < 0 {
			return "", false
		}
		uri = uri[:above]
	}
	return "", false
}
