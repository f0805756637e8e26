package capability

import (
	"capgate/capability/pattern"
)

// maxGlobs caps the patterns that one glob is held against. Those left out only
// make it covered by less.
const maxGlobs = 64

// pathTable finds the grant that allows a path. Looking one up takes as many
// steps as the path has segments, however many grants there are; only globs that
// hang from the same directory are tried one after the other.
type pathTable struct {
	at map[string]pathNode // by directory
}

// pathNode is what hangs from one directory.
type pathNode struct {
	whole bool  // a grant allows the directory and all beneath it
	n     int32 // which
	globs []pathGlob
}

type pathGlob struct {
	p *pattern.Pattern
	n int32
}

// subtree allows a directory and all beneath it by grant n. The first grant wins.
func (t *pathTable) subtree(dir string, n int32) {
	node := t.at[dir]
	if !node.whole {
		node.whole, node.n = true, n
	}
	t.set(dir, node)
}

// glob allows what an absolute pattern matches by grant n.
func (t *pathTable) glob(p *pattern.Pattern, n int32) {
	node := t.at[p.Dir()]
	node.globs = append(node.globs, pathGlob{p, n})
	t.set(p.Dir(), node)
}

func (t *pathTable) set(dir string, node pathNode) {
	if t.at == nil {
		t.at = map[string]pathNode{}
	}
	t.at[dir] = node
}

// find returns the grant nearest to a reading that allows it.
func (t *pathTable) find(reading string) (n int32, ok bool) {
	for dir := range ancestors(reading) {
		node := t.at[dir]
		if node.whole {
			return node.n, true
		}
		for _, g := range node.globs {
			if g.p.Match(reading) {
				return g.n, true
			}
		}
	}
	return 0, false
}

// covers returns the grant that allows the first reading of a path, if all of
// its readings are allowed.
func (t *pathTable) covers(p Path) (n int32, ok bool) {
	if p.opaque != "" {
		return 0, false
	}
	n = -1
	for _, reading := range p.readings {
		by, ok := t.find(reading)
		if !ok {
			return 0, false
		}
		if n < 0 {
			n = by
		}
	}
	for _, place := range p.passed {
		if _, ok := t.find(place); !ok {
			return 0, false
		}
	}
	for _, g := range p.globs {
		by, ok := t.contains(g)
		if !ok {
			return 0, false
		}
		if n < 0 {
			n = by
		}
	}
	return n, n >= 0
}

// covering reports whether a place, or else all that a glob stands for, is allowed.
func (t *pathTable) covering(place string, glob *pattern.Pattern) bool {
	if glob == nil {
		_, ok := t.find(place)
		return ok
	}
	_, ok := t.contains(glob)
	return ok
}

// contains returns a grant that allows some of what a glob may match, if all of
// it is allowed: by the subtree it begins in, or by globs together.
func (t *pathTable) contains(g *pattern.Pattern) (n int32, ok bool) {
	if g.String() == "" {
		return 0, false // it matches nothing for being unreadable, which is no reason to allow it
	}
	var rows []pattern.Row
	for dir := range ancestors(g.Dir()) {
		node := t.at[dir]
		if node.whole {
			return node.n, true
		}
		for _, held := range node.globs {
			if len(rows) == maxGlobs {
				break
			}
			if len(rows) == 0 {
				n = held.n
			}
			rows = append(rows, pattern.Row{held.p})
		}
	}
	if len(rows) == 0 {
		return 0, false
	}
	return n, pattern.Covers(rows, pattern.Row{g}, []pattern.Universe{pattern.AbsPath}).Yes
}
