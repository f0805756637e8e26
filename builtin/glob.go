package builtin

import (
	"path"
	"strings"
)

const (
	maxPattern  = 256     // bytes of a glob
	maxMatching = 1 << 27 // bytes of globs that one search compares with bytes of names
)

// glob is a pattern of paths, segment by segment.
type glob struct {
	segments []string
	work     int // what was done so far, as maxMatching has it
}

// way is where in a glob a path stands: behind each number of its segments for which
// it is true. A path matches that stands behind all of them.
type way struct {
	behind []bool
	depth  int // segments of the path
}

// parseGlob reads a pattern. One without a slash is for the last segment of a path.
func parseGlob(pattern string) (glob, error) {
	g := glob{}
	for segment := range strings.SplitSeq(pattern, "/") {
		if n := len(g.segments); n == 0 || segment != "**" || g.segments[n-1] != "**" { // several are one
			g.segments = append(g.segments, segment)
		}
	}
	for _, segment := range g.segments {
		if _, err := path.Match(segment, ""); err != nil {
			return glob{}, problem("the argument pattern is not a glob")
		}
	}
	switch {
	case pattern == "":
		g.segments = []string{"**"}
	case len(g.segments) == 1:
		g.segments = []string{"**", pattern}
	}
	return g, nil
}

// start is the way to the directory that paths are beneath.
func (g *glob) start() way {
	w := way{behind: make([]bool, len(g.segments)+1)}
	g.reach(&w, 0)
	return w
}

// reach adds where a way stands, and what it need not wait for a segment to get to.
func (g *glob) reach(w *way, at int) {
	w.behind[at] = true
	for ; at < len(g.segments) && g.segments[at] == "**"; at++ {
		w.behind[at+1] = true
	}
}

// next goes on by one segment of a path. Nothing is ever gone back to: what the
// segments before it match was found out once, for all that is beneath them.
func (g *glob) next(w way, name string) (way, error) {
	on := way{behind: make([]bool, len(w.behind)), depth: w.depth + 1}
	for at, segment := range g.segments {
		if !w.behind[at] {
			continue
		}
		if segment == "**" {
			g.reach(&on, at)
			continue
		}
		cost := len(segment)
		if strings.Contains(segment, "*") {
			cost *= len(name) + 1 // it is compared from each byte on
		}
		if g.work += cost; g.work > maxMatching {
			return on, problem("the pattern takes too long: search in a smaller directory, or for less")
		}
		if ok, err := path.Match(segment, name); ok && err == nil {
			g.reach(&on, at+1)
		}
	}
	return on, nil
}

func (w way) matches() bool { return w.behind[len(w.behind)-1] }
