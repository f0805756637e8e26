package capability

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Git calls what it takes for paths pathspecs: they may begin with :(magic), hang from the
// top of the work tree, and be globs whose * crosses slashes.

// gitGlobless are the subcommands that neither show nor change the text of the files that a
// glob selects, or have words that look like one: messages and regular expressions.
var gitGlobless = append(list("add commit tag branch grep"), gitListers...)

// A selection is a glob of git's, and the folders that it may hang from.
type selection struct {
	dirs []string
	glob string
}

// pathspecs reads what git may take for one.
func (r *Requirement) pathspecs(v View, dir string) {
	if !runsOneOf(r.argv, list("git")) {
		return
	}
	globs, options, work := !r.does(nil, gitGlobless), true, 0
	for _, word := range r.argv[1:] {
		options = options && word != "--"
		text, magic, excludes := cutMagic(word)
		chooses := globs && !excludes && (!options || !strings.HasPrefix(word, "-")) && strings.ContainsAny(text, wildcards+`\`)
		if !magic && !chooses {
			continue
		}
		s := selection{[]string{dir}, text}
		if magic {
			s.dirs = slices.Collect(ancestors(path.Clean(dir))) // one of them is the top
		}
		if work += len(s.dirs); chooses {
			work += s.work()
			r.selects = append(r.selects, s)
		}
		if work > maxTouches {
			r.opaque, r.selects = tooManyPaths, nil
			return
		}
		if v.Cwd = dir; magic {
			r.touches = append(r.touches, v.Argument("./"+text)...)
			for _, v.Cwd = range s.dirs {
				r.atTop = append(r.atTop, v.literal("./"+text))
			}
		}
	}
}

// work is how many names a glob may hold.
func (s selection) work() int {
	glob, _ := s.plain()
	starts, ends := seams(glob)
	return len(starts) * len(ends)
}

// cutMagic returns what stands behind the magic of a pathspec, if there is both, and whether
// that is what is left out.
func cutMagic(word string) (text string, magic, excludes bool) {
	rest, magic := strings.CutPrefix(word, ":")
	if !magic {
		return word, false, false
	}
	if long, ok := strings.CutPrefix(rest, "("); ok {
		end := 0
		for ; end < len(long) && long[end] != ')'; end++ {
			if long[end] == '\\' {
				end++
			}
		}
		words := strings.Split(long[:min(end, len(long))], ",")
		text = long[min(end+1, len(long)):]
		return text, text != "", slices.Contains(words, "exclude") && !strings.Contains(long, "attr:")
	}
	text = strings.TrimLeft(rest, "/!^:")
	return text, text != "", strings.ContainsAny(rest[:len(rest)-len(text)], "!^")
}

// selected reports whether a glob of git's is one of something behind the fence: more than
// wildcards stand for its name.
func (f Fence) selected(s selection, v Verb) bool {
	glob, above := s.plain()
	if glob == "" {
		return false // all of a folder, as "." is
	}
	starts, ends := seams(glob)
	whole, beneath := f.placesFor(v)
	for _, start := range starts {
		for _, end := range ends {
			if start < end && (end == len(glob) && standsForAny(glob[start:end], whole) || standsForAny(glob[start:end], beneath)) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.dirs, func(dir string) bool {
		at := strings.TrimSuffix(oneCase(climb(dir, above)), "/") + "/"
		return slices.ContainsFunc(f.around(v), func(root Root) bool {
			return slices.ContainsFunc(root.dirs(), func(place string) bool {
				rest, ok := strings.CutPrefix(oneCase(place), at)
				return ok && slices.ContainsFunc(ends, func(end int) bool { return standsForAny(glob[:end], []string{rest}) })
			})
		})
	})
}

// plain returns a glob of nothing but wildcards and names, without the open segments at its
// end, and how many folders further up it hangs from, -1 for the root of all.
func (s selection) plain() (glob string, above int) {
	glob = path.Clean(plainGlob(oneCase(s.glob)))
	if path.IsAbs(glob) {
		glob, above = glob[1:], -1
	}
	for strings.HasPrefix(glob, "../") {
		glob, above = glob[len("../"):], above+1
	}
	for glob != "" && isOpen(glob[strings.LastIndexByte(glob, '/')+1:]) {
		glob = glob[:max(strings.LastIndexByte(glob, '/'), 0)]
	}
	return glob, above
}

// placesFor returns the names behind the fence that a verb must keep away from: those that
// count by themselves, and those that count for what is beneath them too.
func (f Fence) placesFor(v Verb) (whole, beneath []string) {
	whole = slices.AppendSeq(slices.Collect(maps.Keys(f.files)), maps.Keys(f.folders))
	if v == "fs.read" {
		return whole, nil
	}
	for _, name := range f.outermost {
		whole = append(whole, strings.Trim(name, "/"))
	}
	for _, name := range f.beneath {
		beneath = append(beneath, strings.Trim(name, "/"))
	}
	return whole, beneath
}

// seams returns where the name of a file may begin in a glob, and where it may end.
func seams(glob string) (starts, ends []int) {
	starts = []int{0}
	for i := range len(glob) {
		switch glob[i] {
		case '*':
			starts, ends = append(starts, i), append(ends, i+1)
		case '/', '?':
			starts, ends = append(starts, i+1), append(ends, i)
		}
	}
	return starts, append(ends, len(glob))
}

// standsForAny reports whether a piece of a glob, which says more of a name than how it ends,
// matches one of some names. Its stars cross slashes.
func standsForAny(piece string, names []string) bool {
	said := strings.TrimLeft(piece, "*?/")
	if said == "" {
		return false
	}
	flat := strings.NewReplacer("/", "\x00")
	piece = flat.Replace(piece)
	return slices.ContainsFunc(names, func(name string) bool {
		matches, err := path.Match(piece, flat.Replace(name))
		return err != nil || matches && !isEnding(said, name)
	})
}

// isEnding reports whether what a glob says of a name is that of its kind, as .json is, and no
// more: such a glob is one of all files, as "." is.
func isEnding(said, name string) bool {
	whole, _ := path.Match(said, path.Base(name))
	return said[0] == '.' && !strings.ContainsAny(said[1:], "./*") && !whole
}

// climb returns the folder that lies some above another, or the root of all.
func climb(dir string, above int) string {
	if above < 0 {
		return "/"
	}
	for range above {
		dir = path.Dir(dir)
	}
	return dir
}

// plainGlob writes a glob of git's with * and ? alone: a class may be any character. What
// stands for itself behind a backslash is in no name behind a fence when it is a wildcard.
func plainGlob(glob string) string {
	const nobody = '\x01'
	var plain strings.Builder
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			if i++; i < len(glob) && strings.IndexByte(wildcards+`\`, glob[i]) < 0 {
				plain.WriteByte(glob[i])
			} else {
				plain.WriteByte(nobody)
			}
		case '[':
			if end := classEnd(glob, i); end < 0 {
				plain.WriteByte(nobody)
			} else {
				plain.WriteByte('?')
				i = end
			}
		default:
			plain.WriteByte(glob[i])
		}
	}
	return plain.String()
}

// classEnd returns where a class that begins at a place ends, -1 if it does not.
func classEnd(glob string, i int) int {
	if i++; i < len(glob) && (glob[i] == '!' || glob[i] == '^') {
		i++
	}
	for first := i; i < len(glob); i++ {
		switch {
		case glob[i] == ']' && i > first:
			return i
		case glob[i] == '\\':
			i++
		case strings.HasPrefix(glob[i:], "[:"):
			end := strings.Index(glob[i:], ":]")
			if end < 0 {
				return -1
			}
			i += end + 1
		}
	}
	return -1
}
