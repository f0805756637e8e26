package capability

import "capgate/capability/pattern"

// PathTable lets tests ask the index itself.
type PathTable struct{ t pathTable }

func (t *PathTable) Subtree(dir string, n int32)       { t.t.subtree(dir, n) }
func (t *PathTable) Glob(p *pattern.Pattern, n int32)  { t.t.glob(p, n) }
func (t *PathTable) Find(reading string) (int32, bool) { return t.t.find(reading) }

// Covers also looks at where links lead, as a set does.
func (t *PathTable) Covers(p Path) (int32, bool) {
	n, ok := t.t.covers(p)
	return n, ok && (p.links == nil || p.links.within(t.t.covering))
}
