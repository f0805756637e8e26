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
	for _, t := range l.tenant.server.everyone() {
		t.updated(change{l, uri})
	}
}

// change is a resource that a server tells of, as it is reached over a connection.
type change struct {
	line *line
	uri  string
}

// updated tells those of an agent whom it concerns. What it may not read by now, or what may be a
// file of a skill all the same, is told to nobody; as long as it is not known which skills the
// server has, it waits.
func (t *tenant) updated(c change) {
	l, uri := c.line, c.uri
	if t.agent == "" || !t.server.policy.Load().Gate.Resource(t.agent, l.up().resources(), uri).Decision.Allowed() {
		return
	}
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
	if !known && len(t.unsure) < maxWatched && len(uri) <= longestNews {
		t.unsure[c] = struct{}{}
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

// longestNews bounds the URIs that wait.
const longestNews = 8 << 10

// sure returns what waited for a catalogue that knows the skills of its server. The lock is
// held.
func (t *tenant) sure() []change {
	var ready []change
	for c := range t.unsure {
		switch i := slices.IndexFunc(t.current.sources, func(s source) bool { return s.line == c.line }); {
		case i < 0 && t.current.policy != t.server.policy.Load(), i >= 0 && t.current.sources[i].unknown:
			continue
		case i >= 0:
			ready = append(ready, c)
		}
		delete(t.unsure, c) // also where it is reached in another way by now, and was asked anew there
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
