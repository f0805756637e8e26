package capability

import (
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// procTable finds the grant that covers a program's directory and arguments,
// both by one grant. Grants with the same root share a bucket.
type procTable struct {
	buckets map[string][]*procBucket // by each place the root is known by
}

type procBucket struct {
	root Root
	any  int32 // the grant without a limit on programs, -1 if none
	cmds map[string]int32

	argv  []argvEntry // patterns with wildcards
	spelt []argvEntry // patterns that are one call, taken at its word
}

type argvEntry struct {
	p *pattern.Pattern
	n int32
}

func (t *procTable) add(g *Grant) {
	if t.buckets == nil {
		t.buckets = map[string][]*procBucket{}
	}
	b := t.bucket(g.root)
	if g.any && b.any < 0 {
		b.any = g.n
	}
	for _, c := range g.cmds {
		if _, ok := b.cmds[c]; !ok {
			b.cmds[c] = g.n
		}
	}
	for _, p := range g.argvs {
		if _, literal := p.Literal(); literal {
			b.spelt = append(b.spelt, argvEntry{p, g.n})
		} else {
			b.argv = append(b.argv, argvEntry{p, g.n})
		}
	}
}

func (t *procTable) bucket(root Root) *procBucket {
	i := slices.IndexFunc(t.buckets[root.Dir], func(b *procBucket) bool { return b.root == root })
	if i >= 0 {
		return t.buckets[root.Dir][i]
	}
	b := &procBucket{root: root, any: -1, cmds: map[string]int32{}}
	for _, dir := range root.dirs() {
		t.buckets[dir] = append(t.buckets[dir], b)
	}
	return b
}

// find walks up from the working directory to every root that could hold it.
func (t *procTable) find(r *Requirement) (int32, bool) {
	if len(r.path.readings) == 0 {
		return 0, false
	}
	for dir := range ancestors(r.path.readings[0]) {
		for _, b := range t.buckets[dir] {
			if n, ok := b.find(r); ok {
				return n, true
			}
		}
	}
	return 0, false
}

func (b *procBucket) find(r *Requirement) (int32, bool) {
	if !b.root.holds(r.path) {
		return 0, false
	}
	for _, p := range r.touches {
		if !b.root.holds(p) {
			return 0, false
		}
	}
	if b.any >= 0 {
		return b.any, true
	}
	if len(r.argv) == 0 {
		return 0, false
	}
	if n, ok := b.named(r); ok && r.excess == "" {
		return n, true
	}
	return match(b.spelt, r.joined)
}

// named finds a grant of the program by its name or by a pattern with wildcards.
// Both mean its ordinary use.
func (b *procBucket) named(r *Requirement) (int32, bool) {
	if n, ok := b.cmds[r.argv[0]]; ok {
		return n, true
	}
	return match(b.argv, r.joined)
}

func match(list []argvEntry, joined string) (int32, bool) {
	for _, e := range list {
		if e.p.Match(joined) {
			return e.n, true
		}
	}
	return 0, false
}

// holds reports whether every reading of a path lies in the root.
func (r Root) holds(p Path) bool {
	if p.opaque != "" || len(p.globs) > 0 {
		return false
	}
	for _, reading := range p.readings {
		if !beneath(reading, r.Dir) && !beneath(reading, r.Real) {
			return false
		}
	}
	return len(p.readings) > 0
}

// ancestors walks a canonical absolute path upwards: itself, its parents, "/".
func ancestors(p string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := len(p); i > 0; i-- {
			if (i == len(p) || p[i] == '/') && !yield(p[:i]) {
				return
			}
		}
		if p != "/" {
			yield("/")
		}
	}
}

// unit separates the words of an argv in the text that patterns match.
const unit = "\x1f"

// anyArgv is a program with any arguments.
func anyArgv(cmd string) *pattern.Pattern {
	p, _ := pattern.Parse(escapeGlob(cmd)+"{,"+unit+"**}", pattern.Unit)
	return p
}

// literalArgv returns the words of an argv pattern without wildcards.
func literalArgv(p *pattern.Pattern) ([]string, bool) {
	text, ok := p.Literal()
	return strings.Split(text, unit), ok
}

// spaced writes an argv as people do.
func spaced(joined string) string { return strings.ReplaceAll(joined, unit, " ") }
