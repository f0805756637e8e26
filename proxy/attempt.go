package proxy

// watcher is who is told of resources. What it watches is its own to end.
type watcher interface {
	// swap puts another in place of what it watches, nil for nothing, unless it is over, or
	// watches a third by now.
	swap(uri string, was, now *watched) bool
}

func (s *session) swap(uri string, was, now *watched) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.over && swap(s.watched, uri, was, now)
}

func (l *listener) swap(uri string, was, now *watched) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return swap(l.watched, uri, was, now)
}

func swap(all map[string]*watched, uri string, was, now *watched) bool {
	if all[uri] != was {
		return false
	}
	if all[uri] = now; now == nil {
		delete(all, uri)
	}
	return true
}

// attempt is something that is watched, in place of another, while its server is asked.
type attempt struct {
	*watched
	by      watcher
	uri     string
	was     *watched
	joined  bool // it is counted
	entered bool // and watched
}

func (a *attempt) enter() { a.joined, a.entered = true, a.by.swap(a.uri, a.was, a.watched) }

// before is what is watched where the attempt has failed.
func (a *attempt) before() *watched {
	if !a.joined || a.was != nil && a.was.agreed.Load() {
		return a.was
	}
	return nil
}

// leave ends the attempt, so that something is watched from then on, and all else is not.
func (a *attempt) leave(now *watched) {
	was := a.was
	switch {
	case !a.joined && (now == was || !a.by.swap(a.uri, was, now)):
		was = nil // it stays, or was ended by whoever put another there
	case a.joined && !a.entered:
		was = a.watched
	case a.entered && now != a.watched && a.by.swap(a.uri, a.watched, now):
		a.end()
		if now == was {
			was = nil
		}
	}
	was.end()
}
