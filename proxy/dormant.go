package proxy

import "maps"

// sleep has a session watch something no more until it can be watched again: its server is not there, or not for the
// agent, as for a moment in which somebody edits a record or the configuration. Nothing is told of it meanwhile.
func (s *session) sleep(uri string, w *watched) {
	s.mu.Lock()
	asleep := !s.over && s.watched[uri] == w
	if asleep {
		delete(s.watched, uri)
		s.dormant[uri] = w
	}
	s.mu.Unlock()
	if asleep {
		w.end()
	}
}

// rouse watches again what can be by now. That it may have changed meanwhile is told once its server tells of it again.
func (t *tenant) rouse(s *session) {
	s.mu.Lock()
	all := maps.Clone(s.dormant)
	s.mu.Unlock()
	for uri, w := range all {
		now := t.rewatch(uri, w, w.digest)
		if now == nil {
			continue
		}
		s.mu.Lock()
		asleep := s.dormant[uri] == w // and no other by now
		wakes := !s.over && asleep && s.watched[uri] == nil && len(s.watched) < maxWatched
		if wakes {
			s.watched[uri] = now
		}
		if asleep {
			delete(s.dormant, uri)
		}
		s.mu.Unlock()
		if !wakes {
			now.end()
		}
	}
}
