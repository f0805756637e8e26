package capability

import (
	"slices"
	"strings"
	"unicode"

	"capgate/capability/pattern"
)

// Fence is what no grant reaches, whatever it says: the gateway's own
// configuration, records, pins, tokens and log. A name in other case is the same
// here, as it is to the file systems of many machines.
type Fence struct {
	roots  []Root
	sealed []Root // may be read
}

// NewFence fences off directories and files, by each place they are known by.
func NewFence(roots ...Root) Fence { return Fence{roots: roots} }

// Sealing returns a fence around further places that may be read, and nothing else:
// whoever could change them would choose what others are shown.
func (f Fence) Sealing(roots ...Root) Fence { return Fence{roots: f.roots, sealed: roots} }

// around returns what a verb must keep away from.
func (f Fence) around(v Verb) []Root {
	if v == "fs.read" {
		return f.roots
	}
	return slices.Concat(f.roots, f.sealed)
}

// Touches reports whether a requirement reaches behind the fence: below it, or,
// when it changes or searches a whole tree, by a tree that holds it.
func (f Fence) Touches(r *Requirement) bool {
	e, _ := Lookup(r.verb)
	if e.shape() != shapePath && e.shape() != shapeProgram {
		return false
	}
	changes := r.verb == "fs.write" || r.verb == "fs.delete"
	for _, root := range f.around(r.verb) {
		for _, dir := range root.dirs() {
			if r.path.reaches(dir, changes) {
				return true
			}
			for _, p := range r.touches {
				if p.reaches(dir, changes) {
					return true
				}
			}
		}
	}
	return false
}

// Overlaps reports whether some grant of a set reaches behind the fence: a path
// that it allows, or the directory of a program.
func (f Fence) Overlaps(set *Set) bool {
	for g := range set.All() {
		for _, root := range f.around(g.entry.Verb) {
			if g.inert == "" && g.overlaps(root) {
				return true
			}
		}
	}
	return false
}

func (g *Grant) overlaps(root Root) bool {
	var rows []pattern.Row
	switch g.entry.shape() {
	case shapePath:
		rows = g.pathRows()
	case shapeProgram:
		for _, dir := range g.root.dirs() {
			rows = append(rows, pattern.Row{pattern.Subtree(dir)})
		}
	default:
		return false
	}
	for _, dir := range root.dirs() {
		place := []pattern.Row{{subtreeFolded(dir)}}
		if _, meets, capped := pattern.Meets([]pattern.Universe{pattern.AbsPath}, rows, place); meets || capped {
			return true
		}
	}
	return false
}

// reaches reports whether some reading of the path lies at or below a place, or,
// when it is changed as a whole, above it.
func (p Path) reaches(dir string, above bool) bool {
	for _, reading := range p.readings {
		if beneathFolded(reading, dir) || above && beneathFolded(dir, reading) {
			return true
		}
	}
	for _, glob := range p.globs {
		place := []pattern.Row{{subtreeFolded(dir)}}
		_, meets, capped := pattern.Meets([]pattern.Universe{pattern.AbsPath}, []pattern.Row{{glob}}, place)
		if meets || capped {
			return true
		}
	}
	return false
}

// beneathFolded is beneath for names that may differ in case.
func beneathFolded(p, dir string) bool {
	if isASCII(p) && isASCII(dir) {
		return len(p) >= len(dir) && strings.EqualFold(p[:len(dir)], dir) && beneath(p, p[:len(dir)])
	}
	p, dir = strings.TrimPrefix(p, "/"), strings.Trim(dir, "/")
	for dir != "" {
		var name, other string
		name, p, _ = strings.Cut(p, "/")
		other, dir, _ = strings.Cut(dir, "/")
		if !strings.EqualFold(name, other) {
			return false
		}
	}
	return true
}

// subtreeFolded is a directory and all beneath in upper and lower case. Where that is
// more than a pattern can hold, any character stands for a letter, and in the end for all.
func subtreeFolded(dir string) *pattern.Pattern {
	if dir == "/" {
		return pattern.Subtree(dir)
	}
	var text, wider strings.Builder
	for _, r := range dir {
		class := string(r)
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			class += string(other)
		}
		if class == string(r) {
			text.WriteString(escapeGlob(class))
			wider.WriteString(escapeGlob(class))
		} else {
			text.WriteString("[" + class + "]")
			wider.WriteByte('?')
		}
	}
	for _, place := range []string{text.String(), wider.String()} {
		if p, err := pattern.Parse(place+"{,/**}", pattern.Slash); err == nil {
			return p
		}
	}
	return pattern.Subtree("/")
}
