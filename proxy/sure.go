package proxy

import (
	"context"
	"slices"
	"time"
)

// owner is whose it is that is asked for, as a catalogue says.
type owner struct {
	line *line    // its server, nil for none
	of   listKind // what that is known by, besides the skills that the server has
	ours bool     // it is the gateway's own
}

// seek looks for something, also where it has moved to, until it is sure of whose it is. It returns a
// server that does not say, or is gone.
func (c *call) seek(look func(cat *catalogue) owner, kinds ...listKind) (down *mute) {
	begun := time.Now()
	ctx, cancel := context.WithDeadline(c.ctx, begun.Add(listTime))
	defer cancel()
	for {
		var at owner
		down = c.search(ctx, begun, func(cat *catalogue) bool {
			at = look(cat)
			return at.line != nil || at.ours
		}, kinds...)
		if at.line == nil {
			return down
		}
		was := at
		down = c.sure(at.line, func(cat *catalogue) *line {
			at = look(cat)
			return at.line
		}, at.of)
		if down != nil || at.line != nil && at.of == was.of {
			return down
		}
		if ctx.Err() != nil {
			return &mute{was.line.made.Name, ctx.Err()}
		}
	}
}

// sure looks for what is not to be of a skill, as which skills its server has by now has to be known
// for it: it may have become one's. The lists that it is of are waited for as well. It returns a server
// that does not say, or is gone.
func (c *call) sure(l *line, look func(cat *catalogue) *line, of ...listKind) (down *mute) {
	ctx, cancel := context.WithTimeout(c.ctx, listTime)
	defer cancel()
	n := notion{call: c, kinds: append([]listKind{skillList}, of...), begun: time.Now()}
	n.isOf(l)
	for cat := n.knows(); ctx.Err() == nil; cat = nil {
		if cat == nil {
			var err error
			if cat, err = c.catalogue(ctx); err != nil {
				return &mute{n.line.made.Name, err}
			}
		}
		if l = look(cat); !n.isOf(l) {
			continue
		}
		k := n.lacks(cat)
		if k == none {
			c.looked = cat
			return nil
		}
		if !cat.reaches(n.line) {
			break
		}
		if down := n.learns(ctx, k); down != nil {
			return down
		}
	}
	return &mute{n.line.made.Name, ctx.Err()}
}

// notion is what has to be known of a server for something to be decided, and as of when.
type notion struct {
	call    *call
	kinds   []listKind
	begun   time.Time
	line    *line
	changes [listKinds]uint64 // how often lists of it had changed then
	waited  [listKinds]bool   // those lists that were waited for
}

// knows returns what the agent sees as it was looked at last, so that no other server is waited for again, unless
// the server has said anything since.
func (n *notion) knows() *catalogue {
	c := n.call
	cat := c.tenant.known()
	if cat == nil || cat.policy != c.policy || cat.pins != c.server.pins.loads.Load() || n.lacks(cat) != none {
		return nil
	}
	now := c.server.now()
	if !slices.ContainsFunc(cat.sources, func(s source) bool { return s.line == n.line && s.isFresh(now) }) {
		return nil
	}
	return cat
}

// isOf reports whether it is known of whom it is. If not, it is from now on.
func (n *notion) isOf(l *line) bool {
	if l == nil || l == n.line {
		return true
	}
	n.line, n.call.ups = l, max(1, l.ups.Load()) // first: one that comes up says before that its lists have changed
	for k := range listKinds {
		n.changes[k], n.waited[k] = l.lists[k].changes(), false
	}
	return false
}

// lacks returns a list that the catalogue has not as of then, none if it has all.
func (n *notion) lacks(cat *catalogue) listKind {
	for _, k := range n.kinds {
		if !n.waited[k] && !cat.has(n.line, k, n.changes[k]) {
			return k
		}
	}
	return none
}

// learns waits for a list, once: it may be another again by the time that it is looked at, and where the server does
// not say what is in it, that of before is gone by. What skills there are has to be known.
func (n *notion) learns(ctx context.Context, k listKind) (down *mute) {
	_, is, err := n.call.listOf(ctx, n.line, k, n.begun)
	if n.waited[k] = k != skillList; n.waited[k] || err == nil && is.isKnown() {
		return nil
	}
	return &mute{n.line.made.Name, err}
}

// reaches reports whether a connection is one that the agent's servers are reached over.
func (c *catalogue) reaches(l *line) bool {
	return slices.ContainsFunc(c.sources, func(s source) bool { return s.line == l })
}

// has reports whether all of a list is known that a server had since it changed for so many
// times. A server that says again and again that it did is not waited for until it has enough.
func (c *catalogue) has(l *line, k listKind, changes uint64) bool {
	return slices.ContainsFunc(c.sources, func(s source) bool {
		return s.line == l && !(k == skillList && s.unknown) && l.lists[k].hasSince(s.editions[k], changes)
	})
}

// isVain reports whether the list was waited for in vain, and has not changed since, as far as is known.
func (g *listing) isVain() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.vain == g.wanted
}
