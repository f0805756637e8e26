package capability

import (
	"io/fs"
	"path"
	"slices"
	"sync"

	"capgate/capability/pattern"
)

// links are those that the globs of a path meet.
type links struct {
	view    View
	as      role
	wild    []string // texts that somebody may expand
	folders []string // those that may stand for all that is beneath them
	names   []string // those that stand for a file as well, if one is called that
	letters []string // those whose braces are letters to some

	mu       sync.Mutex
	found    Path // where they lead, as far as somebody has asked
	complete bool // and all of it
}

// covering reports whether a place, or else all that a glob stands for, is covered.
type covering func(place string, glob *pattern.Pattern) bool

// within reports whether all is covered that is found where the links lead. Behind the first that
// leads elsewhere, nothing is looked at.
func (l *links) within(covered covering) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.complete {
		return !slices.ContainsFunc(l.found.readings, func(place string) bool { return !covered(place, nil) }) &&
			!slices.ContainsFunc(l.found.globs, func(glob *pattern.Pattern) bool { return !covered("", glob) })
	}
	r := pathReader{view: l.view, as: l.as, covered: covered}
	for _, text := range l.names {
		r.each(text, r.named)
	}
	for _, text := range l.wild {
		r.follow(text, expansion{})
	}
	for _, text := range l.folders {
		r.follow(text+"/**", expansion{folder: true})
	}
	for _, text := range l.letters {
		r.follow(text, expansion{letters: true})
		r.follow(text+"/**", expansion{letters: true})
	}
	l.found, l.complete = r.Path, r.opaque == ""
	return l.complete
}

// known returns what has been found so far.
func (l *links) known() Path {
	if l == nil {
		return Path{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.found
}

// everyReading returns the readings of a path, and where links lead that its globs meet, as far as
// that has been looked up: it has, where a set covers the path.
func (p Path) everyReading() []string {
	if p.links == nil {
		return p.readings
	}
	return slices.Concat(p.readings, p.links.known().readings)
}

// everyGlob is everyReading for globs.
func (p Path) everyGlob() []*pattern.Pattern {
	if p.links == nil {
		return p.globs
	}
	return slices.Concat(p.globs, p.links.known().globs)
}

// follow adds where the links lead that a text meets. What it stands for without them is asked for
// already, but for all that is in a folder, and for names with braces.
func (r *pathReader) follow(text string, e expansion) {
	dir, glob := r.as.cutGlob(text)
	e.r, e.segs = r, r.as.segmentsOf(glob)
	if len(e.segs) > maxSegments {
		r.opaque = opaqueMet
		return
	}
	e.entered, e.asked = map[string]uint64{}, map[string]uint64{}
	own := uint64(1)
	if e.folder || e.letters {
		own = 0
	}
	r.each(dir, func(place string) {
		if real, err := resolve(r.view.FS, place); err != nil || real != place || r.opaque != "" {
			return // where it leads is visited by itself
		}
		e.tops = append(e.tops, place)
		if err := e.visit(place, 1, own); err != nil {
			r.unresolved(err)
		}
	})
}

// named adds a place if a file lies there. Where a link leads is visited by itself.
func (r *pathReader) named(place string) {
	if _, err := resolve(r.view.FS, place+"/.."); err == nil || r.opaque != "" {
		return // a directory, beside which there may be more than anybody looks through
	}
	entries, err := r.view.FS.List(path.Dir(place))
	if err != nil {
		r.unresolved(err)
	}
	for _, entry := range entries {
		if entry.Name() != path.Base(place) || entry.Type()&(fs.ModeDir|fs.ModeSymlink) != 0 {
			continue
		}
		if r.readings = append(r.readings, place); !r.covered(place, nil) {
			r.unresolved(errUncovered)
		}
	}
}

// spend takes what a glob costs, as the fence is held against it, from what a call may cost. It
// fails where nothing is left.
func spend(files FS) bool {
	const costOfGlob = 1 << 13
	meter, ok := files.(interface{ Spend(effort int) bool })
	return !ok || meter.Spend(costOfGlob)
}
