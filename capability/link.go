package capability

import (
	"maps"
	"path"
	"slices"
	"strings"
)

var (
	// symlinkers make links that say where to go from their own folder.
	symlinkers = habit{list("ln gln cp gcp"), "s", "--sy"}
	// gatherers say into which folder before they say what.
	gatherers = habit{list("ln gln cp gcp"), "t", "--t"}
)

// relink reads what may be put into a symbolic link from where the link may lie: at or in
// what another word names. The last word is the link, unless an option says the folder.
func (r *Requirement) relink(v View, from string) {
	if !symlinkers.of(r.argv) || !slices.ContainsFunc(r.argv, hasParent) || r.opaque != "" {
		return
	}
	v.Cwd = from
	dirs, last := v.folders(r.argv), len(r.argv)-1
	for i, word := range r.argv {
		if !hasParent(word) || i == last && !gatherers.of(r.argv) {
			continue
		}
		if turnsBack(word) {
			r.opaque = "a link with a .. behind a name leads to wherever that does"
		}
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			if v.Cwd = dir; dirs[dir] != i {
				r.touches = append(r.touches, v.Argument(word)...)
			}
		}
		if len(r.touches) > maxTouches {
			r.opaque = tooManyPaths
			return
		}
	}
}

// folders returns the folders that words name or name something in, each with the only
// word that does, 0 if there are several.
func (v View) folders(argv []string) map[string]int {
	dirs := map[string]int{}
	add := func(dir string, of int) {
		if first, ok := dirs[dir]; ok && first != of {
			of = 0
		}
		dirs[dir] = of
	}
	for i, word := range argv[1:] {
		for _, p := range v.Argument(word) {
			for _, reading := range p.readings {
				if v.mayBeFolder(reading) {
					add(reading, i+1)
				}
				if !asksDirectory(p.raw) {
					add(path.Dir(reading), i+1)
				}
			}
		}
	}
	return dirs
}

// mayBeFolder reports whether a program may find a folder at a place.
func (v View) mayBeFolder(place string) bool {
	if v.FS == nil {
		return true
	}
	_, err := v.FS.Real(place + "/..")
	return err == nil
}

// turnsBack reports whether a .. stands behind a name in a path, where a link may stand.
func turnsBack(text string) bool {
	segs := strings.Split(text, "/")
	name := slices.IndexFunc(segs, func(seg string) bool { return seg != "" && seg != "." && seg != ".." })
	return name >= 0 && slices.Contains(segs[name:], "..")
}
