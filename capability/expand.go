package capability

import (
	"errors"
	"path"
	"slices"
	"strings"
	"sync"

	"capgate/capability/pattern"
)

const (
	maxMet   = 1024    // places that a glob reaches through links
	maxSteps = 1 << 15 // directories that are looked into on the way
)

// links are those that the globs of a path meet. They are looked up once, by the first
// who asks.
type links struct {
	view   View
	as     role
	texts  []string
	mu     sync.Mutex
	looked bool
	globs  []*pattern.Pattern // where they lead
	opaque string
}

// met returns where the links lead that a path's globs meet, or why nobody can tell.
func (p Path) met() (globs []*pattern.Pattern, opaque string) {
	l := p.links
	if l == nil {
		return nil, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.looked {
		l.looked = true
		r := pathReader{view: l.view, as: l.as}
		for _, text := range l.texts {
			r.follow(text, p.globs)
		}
		l.globs, l.opaque = r.globs, r.opaque
	}
	return l.globs, l.opaque
}

// everyGlob returns the globs of a path, and where the links lead that they meet.
func (p Path) everyGlob() []*pattern.Pattern {
	if met, _ := p.met(); len(met) > 0 {
		return slices.Concat(p.globs, met)
	}
	return p.globs
}

// known returns what met has found, if somebody has asked.
func (l *links) known() (globs []*pattern.Pattern, opaque string) {
	if l == nil {
		return nil, ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.globs, l.opaque
}

// follow adds where the links lead that a text meets, besides what is its own.
func (r *pathReader) follow(text string, own []*pattern.Pattern) {
	dir, glob := cutGlob(text)
	e := expansion{fs: r.view.FS, own: own, reach: r.reach, done: map[step]bool{}}
	segs := segmentsOf(glob)
	r.each(dir, func(place string) {
		if real, err := resolve(r.view.FS, place); err != nil || real != place || r.opaque != "" {
			return // where it leads is visited by itself
		}
		if err := e.below(place, segs); err != nil {
			r.unresolved(err)
		}
	})
}

// reach adds what is found where a link leads.
func (r *pathReader) reach(target string, rest []segment) {
	p := pattern.Literal(target)
	if r.as == asTree {
		p = pattern.Subtree(target)
	} else if len(rest) > 0 {
		p, _ = parseGlob(joined(rest)) // else nothing would cover it
		p = pattern.Under(target, p)
	}
	r.globs = append(r.globs, p)
}

// expansion follows the links that a text with wildcards meets, as who expands it does.
// It errs towards more: whatever a segment stands for to some, it stands for here.
type expansion struct {
	fs    FS
	own   []*pattern.Pattern                  // what the text stands for without links
	reach func(target string, rest []segment) // says what else it does: the rest, below where a link leads
	met   int
	done  map[step]bool // all of it is asked for
}

// segment stands for the names of one directory.
type segment struct {
	text  string
	deep  bool             // also for those in the directories beneath
	names *pattern.Pattern // nil where it is a name itself
	alike *pattern.Pattern // of names in one case
}

// step is a directory and how many of the segments are to be found below it.
type step struct {
	dir  string
	left int
}

// segmentsOf splits a relative glob.
func segmentsOf(glob string) (segs []segment) {
	for text := range strings.SplitSeq(path.Clean(glob), "/") {
		seg := segment{text: text, deep: strings.Contains(text, "**")}
		if strings.ContainsAny(text, wildcards) || hasOperator(text) {
			seg.names, seg.alike = namesOf(text), namesOf(oneCase(text))
		}
		segs = append(segs, seg)
	}
	if segs[len(segs)-1].deep {
		segs = append(segs, segmentsOf("*")...)
	}
	return segs
}

// namesOf is a pattern of all names that a segment may stand for. One character to some
// is several to others.
func namesOf(text string) *pattern.Pattern {
	if before, behind := operator(text); before >= 0 {
		text = text[:before] + "*" + text[behind:]
	}
	text = strings.ReplaceAll(text, "?", "*")
	for strings.Contains(text, "**") {
		text = strings.ReplaceAll(text, "**", "*")
	}
	p, err := parseGlob(text)
	if err != nil {
		p, _ = parseGlob("*")
	}
	return p
}

// joined writes segments as a glob again.
func joined(segs []segment) string {
	texts := make([]string, len(segs))
	for i, seg := range segs {
		texts[i] = seg.text
	}
	return strings.Join(texts, "/")
}

// matches reports whether a segment may stand for a name. Bytes that are no text are one
// character each in one case.
func (s segment) matches(name string) bool {
	return s.deep || s.names.Match(name) || s.alike.Match(oneCase(name))
}

// below looks for segments in a directory, and for those behind them beneath it.
func (e *expansion) below(dir string, segs []segment) error {
	if len(segs) == 0 || e.done[step{dir, len(segs)}] {
		return nil
	}
	if e.done[step{dir, len(segs)}] = true; len(e.done) > maxSteps {
		return ErrTooMuch
	}
	first, rest := segs[0], segs[1:]
	if first.names == nil {
		return e.enter(path.Join(dir, first.text), rest)
	}
	if first.deep {
		if err := e.below(dir, rest); err != nil {
			return err
		}
		rest = segs
	}
	entries, err := e.fs.List(dir)
	if err != nil && !errors.Is(err, ErrNoDirectory) {
		return err
	}
	for _, entry := range entries {
		kind, follow := entry.Type(), e.enter
		if kind.IsRegular() || !first.matches(entry.Name()) {
			continue
		}
		if kind.IsDir() {
			follow = e.below
		}
		if err := follow(path.Join(dir, entry.Name()), rest); err != nil {
			return err
		}
	}
	return nil
}

// enter goes on at a place that may be a link, or lie behind one.
func (e *expansion) enter(place string, rest []segment) error {
	asked := place
	if len(rest) > 0 {
		asked += "/"
	}
	target, err := resolve(e.fs, asked)
	if err == nil && target != place {
		err = e.outside(target, rest)
	}
	if err != nil {
		return err
	}
	return e.below(target, rest)
}

// outside asks for the rest below a place that a link leads to, unless it is asked for
// already, or is a file.
func (e *expansion) outside(target string, rest []segment) error {
	deep := len(rest) > 0 && rest[0].deep
	for dir := range ancestors(target) {
		if e.done[step{dir, len(rest)}] && (deep || dir == target) {
			return nil
		}
	}
	if len(rest) == 0 {
		e.done[step{target, 0}] = true
		if slices.ContainsFunc(e.own, func(own *pattern.Pattern) bool { return own.Match(target) }) {
			return nil
		}
	} else if _, err := e.fs.List(target); err != nil {
		if errors.Is(err, ErrNoDirectory) {
			err = nil
		}
		return err
	}
	if e.met++; e.met > maxMet {
		return ErrTooMuch
	}
	e.reach(target, rest)
	return nil
}
