package agents

import (
	"fmt"
	"slices"

	"capgate/capability"
)

// maxKept is how much of what an agent may do no more is kept while its record is written anew
// again and again: what does not rest after as many other texts is denied.
const maxKept = 64

// bound keeps agents whose files have changed a moment ago within all that they have had since those
// last rested. One that had nothing may do nothing. Servers are told of no wider root.
func (r *Roster) bound(before *Roster, moved map[string]bool) {
	out := make([]*Agent, len(r.ids))
	parallel(len(r.ids), func(i int) { out[i] = r.within(r.agents[r.ids[i]], before, moved) })
	for _, a := range out {
		r.agents[a.ID] = a
	}
	r.resting = len(moved) > 0
}

// within keeps one agent within what it has had.
func (r *Roster) within(a *Agent, before *Roster, moved map[string]bool) *Agent {
	moves, sound := r.moves(a, moved)
	if !moves {
		a.kept = a.lineage
		return a
	}
	was := &Agent{}
	if before != nil && before.agents[a.ID] != nil {
		was = before.agents[a.ID]
	}
	switch {
	case a.Err != nil: // a record is broken while it is saved, and then has what it had
		a.kept = was.kept
	case len(was.kept.Chain) == 0:
		a = broken(a.ID, a.File, fmt.Errorf("%s: the record, or one above it, has changed a moment ago, and counts when it has stayed as it is for half a second", a.File))
	default:
		now, few := a.lineage.meet(was.kept)
		if a.lineage, a.kept = now, was.kept; sound {
			a.kept = now
		}
		if !few {
			a = broken(a.ID, a.File, fmt.Errorf("%s: the record, or one above it, changes all the time, and counts when it has stayed as it is for half a second", a.File))
		}
	}
	if was.ID != "" && !r.Root(a).Within(before.Root(was)) {
		a.Root, a.base = was.Root, was.base
	}
	return a
}

// moves reports whether a file that an agent or one above it stood or stands in has changed a moment
// ago, and whether all of their records are sound.
func (r *Roster) moves(a *Agent, moved map[string]bool) (moves, sound bool) {
	for a != nil {
		moves = moves || moved[a.ID]
		if a.Err != nil {
			return moves, false
		}
		a = r.agents[a.Record.Parent]
	}
	return moves, true
}

// meet is what two lineages allow together, as Within is, less what says nothing besides the rest:
// to meet the same one again and again adds nothing. It is none where too much of before is left.
func (l *Lineage) meet(before Lineage) (Lineage, bool) {
	out := Lineage{
		Chain:    narrowed(l.Chain, before.Chain),
		Ceilings: narrowed(l.Ceilings, before.Ceilings),
		Approve:  slices.Clone(l.Approve),
		Declared: narrowed(l.Declared, before.Declared),
	}
	for _, word := range before.Approve {
		if !slices.Contains(out.Approve, word) {
			out.Approve = append(out.Approve, word)
		}
	}
	kept := len(out.Chain) - len(l.Chain) + len(out.Ceilings) - len(l.Ceilings) +
		len(out.Approve) - len(l.Approve) + len(out.Declared) - len(l.Declared)
	return out, kept <= maxKept
}

// narrowed adds those links of before, the oldest first, that are wider than none of these.
func narrowed(links, before []capability.Link) []capability.Link {
	out := slices.Clone(links)
	for _, old := range slices.Backward(before) {
		if !slices.ContainsFunc(out, func(l capability.Link) bool { return len(old.Set.Covers(l.Set)) == 0 }) {
			out = append(out, old)
		}
	}
	return out
}
