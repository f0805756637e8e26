package capability

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"capgate/capability/pattern"
)

const (
	maxPath     = 4096 // bytes of a path, PATH_MAX
	maxSegment  = 255  // bytes of one segment, NAME_MAX
	maxReadings = 64   // texts that one path may be read as

	maxReadingBytes = 64 << 10 // bytes of all of them
)

// FS is the file-system view an upstream has.
type FS interface {
	// Real returns where an absolute path really leads. The path is not cleaned:
	// in a/link/../b the ".." is the parent of where the link leads. A tail that
	// does not exist is fine when it holds no "..", which is [ErrNoDirectory]. Loops, and
	// whatever may not be looked at, are errors.
	Real(path string) (string, error)

	// List returns what lies in a directory, in any order: nothing where there is none.
	List(dir string) ([]fs.DirEntry, error)
}

// What a file system may say of a place: that it lies beneath what is no directory, and that it
// takes too long to look up.
var (
	ErrNoDirectory = errors.New("a directory that does not exist")
	ErrTooMuch     = errors.New("it takes too long to look up")
)

// View is how one upstream reads a path argument.
type View struct {
	Cwd  string   // what a relative path hangs from; "" when that is unknown
	Told []string // what it may hang from as well: directories that the upstream is told to work in
	Home string   // what ~ stands for; "" when that is unknown
	FS   FS       // nil for an upstream whose files are not ours to see

	// Plain is set for one that takes wildcards in a path for letters, and nothing else.
	Plain bool
}

// Path is every way an upstream may read one path argument. A set covers it when
// it covers each of them. It is immutable; the zero Path is covered by nothing.
type Path struct {
	raw      string
	readings []string           // canonical and absolute; a final slash asks for a directory
	passed   []string           // folders that it goes through and leaves again
	globs    []*pattern.Pattern // absolute; of a tree, what is beneath the readings
	links    *links             // what globs meet among the files; nil where none is looked up
	opaque   string             // why it has a reading that nothing can cover
}

// String returns the path as it was written.
func (p Path) String() string { return p.raw }

// Opaque says why no grant can cover the path, "" when one could. It tells
// nothing about the file system but what the text itself says: a path that cannot
// be resolved reads as one that is merely outside. Of a glob that is covered it also
// says that it meets too much.
func (p Path) Opaque() string {
	if why := cmp.Or(p.opaque, p.links.known().opaque); why != opaqueLink && p.opaque != opaqueMet {
		return why
	}
	return ""
}

// Readings returns the absolute paths the argument may stand for, the most
// literal one first, and not the globs among its readings. One that ends in a
// slash asks for a directory.
func (p Path) Readings() []string { return slices.Clone(p.readings) }

// Path reads an argument that names one file or directory. An error is always a
// [*Malformed].
func (v View) Path(raw string) (Path, error) { return v.read(raw, asPath) }

// Tree reads an argument that names a path and everything beneath it. Links that
// lie beneath it are not looked at. An error is always a [*Malformed].
func (v View) Tree(raw string) (Path, error) { return v.read(raw, asTree) }

// Glob reads an argument that is a glob. Links among what it matches are followed, as
// they are for any path with wildcards, once all that it stands for without them is
// covered: no one else learns from a denial, or how long it took, what lies there. An
// error is always a [*Malformed].
func (v View) Glob(raw string) (Path, error) { return v.read(raw, asGlob) }

// role is what an argument is said to be.
type role uint8

const (
	asPath role = iota
	asTree
	asGlob
)

// read resolves each text that the argument may be read as.
func (v View) read(raw string, as role) (Path, error) {
	if err := checkPath(raw); err != nil {
		return Path{}, err
	}
	if v.FS != nil && !isPlain(raw) { // what is in the text is said before files are looked at, of which that would tell
		blind := v
		blind.FS = nil
		if p, err := blind.read(raw, as); p.opaque != "" || err != nil {
			return p, err
		}
	}
	texts, opaque := spellings(raw, !v.Plain)
	r := pathReader{view: v, as: as, Path: Path{raw: raw, opaque: opaque}}
	for _, text := range texts { // before files are looked at: why they are denied tells nothing of those
		if !v.Plain && r.opaque == "" {
			r.opaque = v.behind(text)
		}
	}
	for _, text := range texts {
		if r.opaque != "" {
			break
		}
		if r.text(text); v.FS != nil && hasParent(text) {
			r.passes(text)
		}
	}
	if v.FS != nil && len(r.wild)+len(r.folders)+len(r.names) > 0 {
		r.links = &links{view: v, as: as, wild: r.wild, folders: r.folders, names: r.names, letters: r.letters}
	}
	return r.Path, nil
}

func checkPath(raw string) error {
	bad := ""
	switch {
	case strings.TrimSpace(raw) == "":
		bad = "is empty"
	case len(raw) > maxPath:
		bad = fmt.Sprintf("is longer than %d bytes", maxPath)
	case !utf8.ValidString(raw):
		bad = "is not valid UTF-8"
	case strings.ContainsFunc(raw, isBreaking):
		bad = "holds control characters"
	case longestSegment(raw) > maxSegment:
		bad = fmt.Sprintf("has a segment longer than %d bytes", maxSegment)
	default:
		return nil
	}
	return &Malformed{Text: bad}
}

// isBreaking reports whether a character ends a line or a string somewhere.
func isBreaking(r rune) bool { return isControl(r) || r == '\u2028' || r == '\u2029' }

func longestSegment(text string) int {
	longest := 0
	for seg := range strings.SplitSeq(text, "/") {
		longest = max(longest, len(seg))
	}
	return longest
}

// pathReader turns the texts of one argument into a Path.
type pathReader struct {
	Path
	view View
	as   role
	wild []string // texts that somebody may expand

	folders []string // those that may stand for all that is beneath them
	names   []string // those that stand for a file as well, if one is called that
	letters []string // those whose braces are letters to some
	parts   []string // words that are read by themselves
	covered covering // what is; nil where that is asked later
}

// text adds what one text of the argument stands for.
func (r *pathReader) text(text string) {
	wild := strings.ContainsAny(text, wildcards)
	switch {
	case r.as == asGlob:
		r.ofGlob(text)
		return
	case r.view.Plain:
	case strings.HasPrefix(text, ":"):
		r.opaque = opaqueSpec
	case wild && r.hangsOdd(text):
		r.opaque = opaqueRoot
	case wild:
		r.glob(text)
		r.itself(text)
	case operatorIn(text) >= 0:
		r.expanded(text)
	}
	r.each(text, func(place string) { r.add(place, asksDirectory(text)) })
}

// expanded notes that somebody may expand a text that has no wildcards. What a .. behind a link leads to, nobody
// knows before that.
func (r *pathReader) expanded(text string) {
	if r.wild = append(r.wild, text); hasParent(text) {
		r.opaque = opaqueGlob
	}
}

// add adds a place, and what is beneath it for a tree.
func (r *pathReader) add(place string, directory bool) {
	if r.as == asTree && !slices.Contains(r.readings, place) {
		r.globs = append(r.globs, pattern.Subtree(place))
	}
	r.readings = appendNew(r.readings, place)
	if directory && r.as == asPath && place != "/" {
		r.readings = appendNew(r.readings, place+"/")
	}
}

// asksDirectory reports whether a path can only name a directory.
func asksDirectory(text string) bool {
	last := text[strings.LastIndexByte(text, '/')+1:]
	return last == "" || last == "." || last == ".."
}

// glob adds the patterns that a text with wildcards stands for: the fixed
// directory in front of them, resolved, and the rest below it.
func (r *pathReader) glob(text string) {
	if hasParent(text) || climbs(text) || strings.Contains(text, "|") || !spend(r.view.FS) {
		r.opaque = opaqueGlob
		return
	}
	dir, rest := r.as.cutGlob(text)
	p, err := r.as.parseGlob(rest)
	if err != nil && r.as != asTree {
		r.opaque = opaqueGlob
		return
	}
	r.each(dir, func(place string) {
		if r.as == asTree {
			r.add(place, false)
		} else {
			r.globs = append(r.globs, pattern.Under(place, p))
		}
	})
	r.wild = append(r.wild, text)
}

// each visits where a text may point to: as it is, and below home. Every place
// comes in its lexical form, and as what the file system finds under that and
// under the text itself; with a ".." those two may differ.
func (r *pathReader) each(text string, visit func(place string)) {
	for _, full := range r.view.absolute(text) {
		if full == "" {
			r.opaque = opaqueBase
			return
		}
		lexical := path.Clean(full)
		visit(lexical)
		r.physical(full, visit)
		if hasParent(full) {
			r.physical(lexical, visit)
		}
	}
}

// passes notes the folders that a text leaves again by a .., which have to be there for that: whether they are is for
// those to know who may look at them.
func (r *pathReader) passes(text string) {
	dirs := r.view.real(append(r.view.dirs(), r.view.Home))
	pass := func(place string) {
		if !slices.ContainsFunc(dirs, func(dir string) bool { return beneath(dir, place) }) {
			r.passed = appendNew(r.passed, place)
		}
	}
	for _, full := range r.view.absolute(text) {
		for i := range len(full) {
			if after, ok := strings.CutPrefix(full[i:], "/.."); !ok || after != "" && after[0] != '/' {
				continue
			}
			pass(path.Clean("/" + full[:i]))
			if real, err := resolve(r.view.FS, "/"+full[:i]); err == nil { // or else the whole text leads nowhere
				pass(real)
			}
		}
	}
}

func (r *pathReader) physical(full string, visit func(place string)) {
	if r.view.FS == nil {
		return
	}
	target, err := resolve(r.view.FS, full)
	if err != nil {
		r.unresolved(err)
		return
	}
	visit(target)
}

// unresolved says that nobody can tell where the path leads.
func (r *pathReader) unresolved(err error) {
	r.opaque = opaqueLink
	if errors.Is(err, ErrTooMuch) {
		r.opaque = opaqueMet
	}
}

// resolve is Real of a file system, which is held to what it says.
func resolve(files FS, full string) (string, error) {
	target, err := files.Real(full)
	if err == nil && (!strings.HasPrefix(target, "/") || path.Clean(target) != target) {
		err = errUnclean
	}
	return target, err
}

var errUnclean = errors.New("it leads to no clean place")

// absolute returns the places a text may mean, not cleaned; one is empty when
// what it hangs from is not known.
func (v View) absolute(text string) []string {
	if strings.HasPrefix(text, "/") {
		return []string{text}
	}
	places := []string{below(v.Cwd, text)}
	for _, dir := range v.Told {
		places = appendNew(places, below(dir, text))
	}
	if text == "~" || strings.HasPrefix(text, "~/") {
		places = append(places, below(v.Home, text[1:]))
	}
	return places
}

// dirs returns what a relative path may hang from.
func (v View) dirs() []string { return append([]string{v.Cwd}, v.Told...) }

func below(base, text string) string {
	if !strings.HasPrefix(base, "/") {
		return ""
	}
	return base + "/" + text
}

// wildcards are the characters that make a text a glob to those who expand it.
const wildcards = "*?["

// operatorIn returns where a glob has its first operator beyond wildcards, as in @(a); it is
// negative where there is none.
func operatorIn(glob string) int {
	for i := 1; i < len(glob); i++ {
		if glob[i] == '(' && strings.IndexByte("@+!?*", glob[i-1]) >= 0 {
			return i - 1
		}
	}
	return -1
}

// errGlob says that a glob's extent is not known.
var errGlob = errors.New("the glob has an open class")

// parseGlob reads a relative glob as a pattern that matches all it may match for
// anyone. Characters that mean more to a pattern than to a path are quoted.
func parseGlob(glob string) (*pattern.Pattern, error) { return asPath.parseGlob(glob) }

// parseGlob is that for anyone who takes a path for this.
func (as role) parseGlob(glob string) (*pattern.Pattern, error) {
	segs := strings.Split(path.Clean(glob), "/")
	for i, seg := range segs {
		name := strings.TrimRight(seg, ".*?")
		if end := seg[len(name):]; as == asGlob && strings.ContainsAny(end, "*?") && strings.Contains(end, ".") {
			seg = name + "*" // to some, there need be no dot at the end of a name, nor what is behind it
		}
		first, last := strings.IndexByte(seg, '['), strings.LastIndexByte(seg, ']')
		switch {
		case first < 0:
			segs[i] = quoteGlob(seg)
		case last < first:
			return nil, errGlob
		case isPlainClass(seg[first+1 : last]):
			segs[i] = quoteGlob(seg[:first]) + seg[first:last+1] + quoteGlob(seg[last+1:])
		default: // negated, nested or several: whatever it is, it stays in the segment
			segs[i] = quoteGlob(seg[:first]) + "*" + quoteGlob(seg[last+1:])
		}
		if strings.Contains(seg, "**") {
			continue
		}
		if as == asGlob { // a character is two to some
			segs[i] = strings.ReplaceAll(segs[i], "?", "*")
		}
		segs[i] = shallow(segs[i])
	}
	return pattern.Parse(strings.Join(segs, "/"), pattern.Slash)
}

// shallow writes one star for several, which would stand for slashes.
func shallow(seg string) string {
	for strings.Contains(seg, "**") {
		seg = strings.ReplaceAll(seg, "**", "*")
	}
	return seg
}

// isPlainClass reports whether everyone reads a class as the same set.
func isPlainClass(body string) bool {
	return body != "" && strings.TrimFunc(body, isWord) == ""
}

func quoteGlob(text string) string {
	return strings.NewReplacer(`\`, `\\`, "{", `\{`, "}", `\}`, "]", `\]`, "!", `\!`).Replace(text)
}
