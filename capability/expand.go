package capability

import (
	"errors"
	"io/fs"
	"math/bits"
	"path"
	"slices"

	"capgate/capability/pattern"
)

const (
	maxSegments = 62      // of a glob
	maxMet      = 64      // globs that it reaches through links
	maxSteps    = 1 << 15 // directories that are looked into on the way
)

var errUncovered = errors.New("a link leads to what is not covered")

// expansion walks down a tree as whoever expands a glob does, and asks for what is behind the links
// that it meets. It errs towards more: whatever a segment stands for to some, it stands for here.
// A place in the glob is a bit, the lowest one in front of the first segment.
type expansion struct {
	r       *pathReader
	segs    []segment
	folder  bool              // what is in the folders that it ends in is asked for nowhere else
	letters bool              // nor is what has a name with its braces
	tops    []string          // where it began
	entered map[string]uint64 // from where in the glob a directory has been looked into
	asked   map[string]uint64 // from where on all that is beneath a directory is asked for
	met     int
}

// visit looks into a directory.
func (e *expansion) visit(dir string, at, asked uint64) error {
	at = e.closed(at)
	fresh := at &^ e.entered[dir] &^ (1 << len(e.segs))
	if fresh == 0 {
		return nil
	}
	e.entered[dir] |= at
	if asked = e.sure(asked); len(e.entered) > maxSteps {
		return ErrTooMuch
	}
	e.asked[dir] |= asked
	if fresh&e.wild() == 0 {
		return e.named(dir, fresh, asked)
	}
	entries, err := e.r.view.FS.List(dir)
	if err != nil {
		return err
	}
	if e.folder && fresh>>last(e.segs)&1 != 0 && len(entries) > 0 {
		if err := e.ask(dir, last(e.segs)); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if err := e.entry(dir, entry, fresh, asked); err != nil {
			return err
		}
	}
	return nil
}

// wild tells the segments that are no names.
func (e *expansion) wild() (at uint64) {
	for i, seg := range e.segs {
		if seg.names != nil {
			at |= 1 << i
		}
	}
	return at
}

// named goes on at the names that are written out.
func (e *expansion) named(dir string, at, asked uint64) error {
	for i := range bitsOf(at) {
		if err := e.enter(path.Join(dir, e.segs[i].text), 2<<i, asked>>i&1<<(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// entry goes on at what lies in a directory, if some segment stands for it.
func (e *expansion) entry(dir string, entry fs.DirEntry, at, asked uint64) error {
	name, to, sure := entry.Name(), uint64(0), uint64(0)
	if entry.Type().IsRegular() && !e.letters && isASCII(name) {
		return nil
	}
	for i := range bitsOf(at) {
		switch seg := e.segs[i]; {
		case seg.deep:
			if to |= 1 << i; seg.text == "**" {
				sure |= asked & (1 << i)
			}
		case seg.matches(name):
			if to |= 2 << i; seg.is(name) {
				sure |= asked >> i & 1 << (i + 1)
			}
		}
	}
	if err := e.spelt(dir, name, at); err != nil {
		return err
	}
	switch {
	case to == 0 || entry.Type().IsRegular():
		return nil
	case entry.Type().IsDir():
		return e.visit(path.Join(dir, name), to, sure)
	}
	return e.enter(path.Join(dir, name), to, sure)
}

// spelt asks for what lies in a directory by a name with the braces of a segment, or by another form of its letters.
func (e *expansion) spelt(dir, name string, at uint64) error {
	to := uint64(0)
	for i := range bitsOf(at) {
		seg := e.segs[i]
		if (e.letters && seg.hasBraces() || seg.names == nil && seg.text != name) && seg.matches(name) {
			to |= 2 << i
		}
	}
	for i := range bitsOf(e.closed(to)) {
		if err := e.ask(path.Join(dir, name), i); err != nil {
			return err
		}
	}
	return nil
}

// enter goes on at a place that may be a link, or lie behind one.
func (e *expansion) enter(place string, at, asked uint64) error {
	target, err := resolve(e.r.view.FS, place)
	if err != nil {
		return err
	}
	if target == place {
		return e.visit(place, at, asked)
	}
	at = e.closed(at)
	asks := at
	if e.folder {
		asks = at >> last(e.segs) << last(e.segs)
	}
	for i := range bitsOf(asks) {
		if err := e.ask(target, i); err != nil {
			return err
		}
	}
	return e.visit(target, at, asks)
}

// ask asks for what the glob stands for from somewhere on, below a place that a link leads to.
func (e *expansion) ask(target string, from int) error {
	if e.isAsked(target, from) {
		return nil
	}
	e.asked[target] |= 1 << from
	rest := e.segs[from:]
	switch {
	case e.r.as == asTree:
		return e.claim("", pattern.Subtree(target), target, len(rest) > 0)
	case !slices.ContainsFunc(rest, func(s segment) bool { return s.names != nil }):
		return e.claim(path.Join(target, joined(rest)), nil, target, len(rest) > 0)
	}
	p, _ := e.r.as.parseGlob(joined(rest)) // or else nothing covers it
	return e.claim("", pattern.Under(target, p), target, true)
}

// claim asks for a place, or all that a glob stands for. Nothing is asked for beneath a link's target that is
// no directory: what is not there needs no grant.
func (e *expansion) claim(place string, glob *pattern.Pattern, target string, beneath bool) error {
	if glob != nil {
		if e.met++; e.met > maxMet || !spend(e.r.view.FS) {
			return ErrTooMuch
		}
	}
	covered := e.r.covered(place, glob)
	if !covered && beneath {
		if _, err := resolve(e.r.view.FS, target+"/.."); errors.Is(err, ErrNoDirectory) {
			return nil
		}
	}
	if glob == nil {
		e.r.readings = append(e.r.readings, place)
	} else {
		e.r.globs = append(e.r.globs, glob)
	}
	if !covered {
		return errUncovered
	}
	return nil
}

// isAsked reports whether what is beneath a place is a part of what has been asked for: there, or above it
// where a ** stands for whatever lies between.
func (e *expansion) isAsked(target string, from int) bool {
	for dir := range ancestors(target) {
		for i := from; i >= 0 && (i == from || e.segs[i].text == "**"); i-- {
			above := i < len(e.segs) && e.segs[i].text == "**"
			if e.asked[dir]>>i&1 != 0 && (above && (dir != target || from < len(e.segs)) || i == from && dir == target) {
				return true
			}
		}
		if e.r.as == asTree && slices.Contains(e.tops, dir) {
			return true
		}
	}
	return false
}

// closed adds where a glob is as well when segments stand for nothing.
func (e *expansion) closed(at uint64) uint64 {
	for i, seg := range e.segs {
		if seg.deep {
			at |= at >> i & 1 << (i + 1)
		}
	}
	return at
}

// sure adds where that is all asked for: what a ** stands for has to lie in the directory, and is
// nothing only where something else is behind it.
func (e *expansion) sure(asked uint64) uint64 {
	for i, seg := range e.segs[:len(e.segs)-1] {
		if seg.text == "**" {
			asked |= asked >> i & 1 << (i + 1)
		}
	}
	return asked
}

func last(segs []segment) int { return len(segs) - 1 }

func bitsOf(at uint64) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for ; at != 0; at &= at - 1 {
			if !yield(bits.TrailingZeros64(at)) {
				return
			}
		}
	}
}
