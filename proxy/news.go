package proxy

import (
	"slices"
	"strings"

	"capgate/wire"
)

// changed tells those who watch a resource, or one that it is a part of, that it has changed.
// A file of a skill is looked for in the list, as that says which it is.
func (l *line) changed(uri string) {
	if l.listed(uri) {
		l.lists[skillList].renew()
		l.tenant.touched(none)
		return
	}
	s := l.tenant.server
	for _, t := range s.everyone() {
		if t.agent != "" && s.policy.Load().Gate.Resource(t.agent, l.up().resources(), uri).Decision.Allowed() {
			t.updated(l, uri)
		}
	}
}

// updated tells those of an agent whom it concerns. What may be a file of a skill all the same is
// told to nobody, and as long as it is not known which skills the server has, it waits.
func (t *tenant) updated(l *line, uri string) {
	t.mu.Lock()
	sessions, streams := t.listening()
	t.mu.Unlock()
	var told []func(method string, params []byte)
	for _, one := range sessions {
		one.mu.Lock()
		if l.concerns(one.watched, uri) {
			told = append(told, one.notify)
		}
		one.mu.Unlock()
	}
	for _, one := range streams {
		one.mu.Lock()
		if l.concerns(one.watched, uri) {
			told = append(told, one.notify)
		}
		one.mu.Unlock()
	}
	if len(told) == 0 {
		return
	}
	t.mu.Lock()
	cat := t.current
	known := cat.knows(l)
	if !known && len(t.unsure) < maxWatched {
		t.unsure[uri] = l
	}
	t.mu.Unlock()
	switch {
	case !known:
		t.changed(none)
	case cat.unless(l, uri) != nil:
		body := append(wire.AppendString([]byte(`{"uri":`), uri), '}')
		for _, tell := range told {
			tell(resourceUpdated, body)
		}
	}
}

// sure returns what waited for a catalogue that knows the skills of its server. The lock is
// held.
func (t *tenant) sure() map[string]*line {
	ready := map[string]*line{}
	for uri, l := range t.unsure {
		switch i := slices.IndexFunc(t.current.sources, func(s source) bool { return s.line == l }); {
		case i < 0: // it is reached in another way by now, and was asked anew there
		case t.current.sources[i].unknown:
			continue
		default:
			ready[uri] = l
		}
		delete(t.unsure, uri)
	}
	return ready
}

// knows reports whether it is known which skills are had over a connection.
func (c *catalogue) knows(l *line) bool {
	return c != nil && slices.ContainsFunc(c.sources, func(s source) bool { return s.line == l && !s.unknown })
}

// concerns reports whether a resource of the server's is watched, or one that it is a part of.
func (l *line) concerns(all map[string]*watched, uri string) bool {
	const deepest = 32
	for range deepest {
		for _, at := range [...]string{uri, uri + "/"} {
			if w := all[at]; w != nil && w.line == l && w.digest == "" {
				return true
			}
		}
		above := strings.LastIndexByte(uri, '/')
		if above < 0 {
			return false
		}
		uri = uri[:above]
	}
	return false
}
