package capability

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"capgate/capability/pattern"
)

// Fence is what no grant reaches, whatever it says: the gateway's own
// configuration, records, pins, tokens and log, and the files that tell clients
// which servers to use. A name in other case is the same here, as it is to the file
// systems of many machines.
type Fence struct {
	roots  []Root
	sealed []Root // the same, and those that may be read
	hidden places // files by their names, and their folders, wherever they lie

	files   map[string]bool // the names of the hidden files, with their folders'
	folders map[string]bool // those of the folders, outermost first
	deepest int             // the most segments of any of these

	named     places   // folders that may be read, by their names, and those that they lie in
	beneath   []string // the names of the folders between slashes
	outermost []string // those of the ones that they lie in
}

// places are made when the first glob is held against them, as that takes longer than
// all else at the start of a gateway.
type places func() []*pattern.Pattern

// NewFence fences off directories and files, by each place they are known by.
func NewFence(roots ...Root) Fence { return Fence{}.Enclosing(roots...) }

// Enclosing returns a fence around these places in place of any others.
func (f Fence) Enclosing(roots ...Root) Fence {
	f.roots, f.sealed = roots, nil
	return f
}

// Sealing returns a fence around further places that may be read, and nothing else:
// whoever could change them would choose what others are shown.
func (f Fence) Sealing(roots ...Root) Fence {
	f.sealed = slices.Concat(f.roots, roots)
	return f
}

// Hiding returns a fence around files of some names too, wherever they lie. A name
// has the folders before it that it means something in.
func (f Fence) Hiding(names ...string) Fence {
	f.files, f.folders, f.deepest = map[string]bool{}, map[string]bool{}, 0
	whole := slices.Clone(names)
	for _, name := range names {
		for i := range len(name) {
			if name[i] == '/' && !f.folders[oneCase(name[:i])] {
				whole = append(whole, name[:i])
				f.folders[oneCase(name[:i])] = true
			}
		}
		f.files[oneCase(name)] = true
		f.deepest = max(f.deepest, 1+strings.Count(name, "/"))
	}
	f.hidden = sync.OnceValue(func() []*pattern.Pattern { return foldedAll(whole, "") })
	return f
}

// SealingNamed returns a fence around folders of some names too, wherever they lie:
// what is in them may be read, and nothing else. A name begins with a dot, and has the
// folders before it that it means something in.
func (f Fence) SealingNamed(names ...string) Fence {
	f.beneath, f.outermost = nil, nil
	var outer []string
	for _, name := range names {
		f.beneath = append(f.beneath, "/"+oneCase(name)+"/")
		for i := range len(name) {
			if name[i] == '/' {
				outer = append(outer, name[:i])
				f.outermost = append(f.outermost, "/"+oneCase(name[:i])+"/")
			}
		}
	}
	inner := slices.Clone(names)
	f.named = sync.OnceValue(func() []*pattern.Pattern {
		return append(foldedAll(inner, "{,/**}"), foldedAll(outer, "")...)
	})
	return f
}

// around returns what a verb must keep away from.
func (f Fence) around(v Verb) []Root {
	if v == "fs.read" || len(f.sealed) == 0 {
		return f.roots
	}
	return f.sealed
}

// Touches reports whether a requirement reaches behind the fence: below it, or,
// when it changes or searches a whole tree, by a tree that holds it. So does a program
// that changes the folders it names, or the one it is started in; one that only reads
// reaches what may be read. What lies anywhere is reached by its name, and by that of
// its folder.
func (f Fence) Touches(r *Requirement) bool {
	is := r.verb.shape()
	if is != shapePath && is != shapeProgram {
		return false
	}
	v, changes := r.verb, r.verb == "fs.write" || r.verb == "fs.delete"
	whole := (changes || is == shapeProgram) && !r.does(listers, gitListers)
	if r.does(readers, gitReaders) {
		v = "fs.read"
	}
	byItsName := func(p Path) bool { return f.hides(p, whole) || v != "fs.read" && f.seals(p) }
	if byItsName(r.path) || slices.ContainsFunc(r.touches, byItsName) || slices.ContainsFunc(r.atTop, byItsName) || r.splits(f) {
		return true
	}
	if slices.ContainsFunc(r.selects, func(s selection) bool { return f.selected(s, v) }) {
		return true
	}
	here, named := changes || writesHere(r.argv), changesFolders(r.argv)
	return slices.ContainsFunc(f.around(v), func(root Root) bool { return r.reachesInto(root, here, named) })
}

// reachesInto reports whether a requirement lies at or below a place. What changes where
// a program is started, or what it names, does so above one as well.
func (r *Requirement) reachesInto(root Root, here, named bool) bool {
	return slices.ContainsFunc(root.dirs(), func(dir string) bool {
		return r.path.reaches(dir, here) || slices.ContainsFunc(r.touches, func(p Path) bool { return p.reaches(dir, here || named) }) ||
			slices.ContainsFunc(r.atTop, func(p Path) bool { return p.reaches(dir, false) })
	})
}

// splits reports whether a program calls files by what it is told and some letters, and one of
// them may lie behind the fence.
func (r *Requirement) splits(f Fence) bool {
	return runsOneOf(r.argv, splitters) && (f.goesOn(r.touches) || slices.ContainsFunc(r.argv, opensHidden))
}

// opensHidden reports whether what a word names ends in a segment that is a dot, which goes on as
// any name that begins with one.
func opensHidden(word string) bool {
	start, ok := strings.CutSuffix(word, ".")
	return ok && (start == "" || strings.HasSuffix(start, "/") || strings.HasSuffix(start, "=") || start[0] == '-')
}

// goesOn reports whether one of some paths is how the name of something behind the fence
// begins, up to letters and digits that a program may put there.
func (f Fence) goesOn(paths []Path) bool {
	var places []string
	for name := range f.files {
		places = append(places, "/"+name)
	}
	for _, name := range f.beneath {
		places = append(places, strings.TrimSuffix(name, "/"))
	}
	for _, root := range f.around("fs.write") {
		for _, dir := range root.dirs() {
			places = append(places, oneCase(dir))
		}
	}
	return slices.ContainsFunc(paths, func(p Path) bool {
		return slices.ContainsFunc(p.readings, func(reading string) bool {
			start := oneCase(reading)
			return slices.ContainsFunc(places, func(place string) bool { return isStart(start, place) })
		})
	})
}

// isStart reports whether nothing but letters and digits, and some of those, is missing
// at the end of a path for a place.
func isStart(start, place string) bool {
	stem := strings.TrimRight(place, "abcdefghijklmnopqrstuvwxyz0123456789")
	for end := max(len(stem), strings.LastIndexByte(place, '/')+2); end < len(place); end++ {
		if strings.HasSuffix(start, place[:end]) {
			return true
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
	switch g.entry.Verb.shape() {
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
	for _, reading := range p.everyReading() {
		if beneathFolded(reading, dir) || above && beneathFolded(dir, reading) {
			return true
		}
	}
	return slices.ContainsFunc(p.everyGlob(), func(glob *pattern.Pattern) bool { return mayMeet(glob, subtreeFolded(dir)) })
}

// beneathFolded is beneath for names that may differ in case.
func beneathFolded(p, dir string) bool {
	if differEarly(p, dir) { // as nearly all do
		return false
	}
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

// differEarly reports whether two paths are alike up to where both have a character of ASCII that is
// not the same one, in whatever case: nothing behind it makes them alike. Where one has a slash more, it
// does not say.
func differEarly(p, dir string) bool {
	for i := range min(len(p), len(dir)) {
		a, b := lower(p[i]), lower(dir[i])
		if a != b || a >= utf8.RuneSelf {
			return max(a, b) < utf8.RuneSelf && a != '/' && b != '/'
		}
	}
	return false
}

// lower writes a letter of ASCII small.
func lower(c byte) byte {
	if c-'A' < 26 {
		c |= 0x20
	}
	return c
}

// hides reports whether some reading of a path is a hidden file, or the folder of one
// where that is taken or searched as a whole. A glob is one when more than stars may
// stand for the name.
func (f Fence) hides(p Path, whole bool) bool {
	if len(f.files) == 0 {
		return false
	}
	whole = whole || len(p.globs) > 0
	return slices.ContainsFunc(p.everyReading(), func(reading string) bool { return f.names(reading, whole) }) ||
		slices.ContainsFunc(p.everyGlob(), f.hidesSome)
}

// names reports whether a path ends in the name of a hidden file, or of a folder when
// it stands for all that is in it.
func (f Fence) names(reading string, whole bool) bool {
	name := oneCase(strings.TrimSuffix(reading, "/"))
	for cut, n := len(name), 0; cut > 0 && n < f.deepest; n++ {
		cut = strings.LastIndexByte(name[:cut], '/')
		if tail := name[cut+1:]; f.files[tail] || whole && f.folders[tail] {
			return true
		}
	}
	return false
}

// hidesSome reports whether a glob may stand for a hidden file, or for what is in the
// folder of one.
func (f Fence) hidesSome(glob *pattern.Pattern) bool { return standsFor(glob, f.hidden()) }

// seals reports whether some reading of a path lies in a folder that is sealed by its
// name, or is one that such a folder lies in.
func (f Fence) seals(p Path) bool {
	return len(f.beneath) > 0 && (slices.ContainsFunc(p.everyReading(), f.inNamed) ||
		slices.ContainsFunc(p.everyGlob(), func(glob *pattern.Pattern) bool { return standsFor(glob, f.named()) }))
}

func (f Fence) inNamed(reading string) bool {
	place := oneCase(reading)
	if !strings.Contains(place, "/.") {
		return false
	}
	place = strings.TrimSuffix(place, "/") + "/"
	return slices.ContainsFunc(f.beneath, func(name string) bool { return strings.Contains(place, name) }) ||
		slices.ContainsFunc(f.outermost, func(name string) bool { return strings.HasSuffix(place, name) })
}

// standsFor reports whether a glob may stand for some of the places: it, without the
// open segments at its end, may be the name of one. To some matchers these segments
// may be none.
func standsFor(glob *pattern.Pattern, places []*pattern.Pattern) bool {
	text := strings.TrimSuffix(glob.String(), "{,/**}")
	for isOpen(text[strings.LastIndexByte(text, '/')+1:]) {
		cut := strings.LastIndexByte(text, '/')
		if cut <= 0 {
			return false
		}
		text = text[:cut]
	}
	named, err := pattern.Parse(text, pattern.Slash)
	return err != nil || slices.ContainsFunc(places, func(place *pattern.Pattern) bool { return mayMeet(named, place) })
}

// isOpen reports whether nothing but wildcards stands in a segment of a glob.
func isOpen(segment string) bool { return strings.Trim(segment, "*?{,}") == "" }

// mayMeet reports whether some path is both of a glob and at a place.
func mayMeet(glob, place *pattern.Pattern) bool {
	_, meets, capped := pattern.Meets([]pattern.Universe{pattern.AbsPath}, []pattern.Row{{glob}}, []pattern.Row{{place}})
	return meets || capped
}

// oneCase writes names alike that file systems which ignore case take for the same:
// ligatures as their letters, and without what is never seen.
func oneCase(name string) string {
	if isASCII(name) {
		return strings.ToLower(name)
	}
	name = strings.NewReplacer("\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl", "\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st").Replace(name)
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return unicode.ToLower(least)
	}, name)
}

// subtreeFolded is a directory and all beneath in upper and lower case.
func subtreeFolded(dir string) *pattern.Pattern {
	if dir == "/" {
		return pattern.Subtree(dir)
	}
	return folded("", dir, "{,/**}")
}

// foldedAll is folded for names that may lie anywhere.
func foldedAll(names []string, after string) []*pattern.Pattern {
	var all []*pattern.Pattern
	for _, name := range names {
		all = append(all, folded("/**/", name, after))
	}
	return all
}

// folded is a text in upper and lower case between two patterns. Where that is more
// than a pattern can hold, any character stands for a letter, and in the end the
// pattern is all there is.
func folded(before, middle, after string) *pattern.Pattern {
	var text, wider strings.Builder
	for _, r := range middle {
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
		if p, err := pattern.Parse(before+place+after, pattern.Slash); err == nil {
			return p
		}
	}
	return pattern.Subtree("/")
}
