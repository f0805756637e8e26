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

// A selection is a glob of git's, and the folder that it hangs from.
type selection struct{ dir, glob string }

// pathspecs reads what git may take for one.
func (r *Requirement) pathspecs(v View, dir string) {
	if !runsOneOf(r.argv, list("git")) {
		return
	}
	globs, options := !r.does(nil, gitGlobless), true
	for _, word := range r.argv[1:] {
		options = options && word != "--"
		text, magic, excludes := cutMagic(word)
		dirs := []string{dir}
		if v.Cwd = dir; magic && text != "" {
			r.touches = append(r.touches, v.Argument("./"+text)...)
			dirs = slices.Collect(ancestors(path.Clean(dir))) // one of them is the top
			for _, v.Cwd = range dirs {
				r.atTop = append(r.atTop, v.literal("./"+text))
			}
		}
		if !globs || excludes || options && strings.HasPrefix(word, "-") || !strings.ContainsAny(text, wildcards+`\`) {
			continue
		}
		for _, from := range dirs {
			r.selects = append(r.selects, selection{from, text})
		}
	}
}

// cutMagic returns what stands behind the magic of a pathspec, and whether that is what
// is left out.
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
		return long[min(end+1, len(long)):], true, slices.Contains(words, "exclude") && !strings.Contains(long, "attr:")
	}
	text = strings.TrimLeft(rest, "/!^:")
	return text, true, strings.ContainsAny(rest[:len(rest)-len(text)], "!^")
}

// selected reports whether a glob of git's is one of something behind the fence: more than
// wildcards stand for its name.
func (f Fence) selected(s selection, v Verb) bool {
	dir, glob := s.plain()
	if glob == "" {
		return false // all of a folder, as "." is
	}
	starts, ends := seams(glob)
	if len(starts)*len(ends) > maxTouches {
		return true
	}
	whole, beneath := f.placesFor(v)
	for _, start := range starts {
		for _, end := range ends {
			if start < end && (end == len(glob) && standsForAny(glob[start:end], whole) || standsForAny(glob[start:end], beneath)) {
				return true
			}
		}
	}
	at := strings.TrimSuffix(oneCase(dir), "/") + "/"
	for _, root := range f.around(v) {
		for _, place := range root.dirs() {
			rest, ok := strings.CutPrefix(oneCase(place), at)
			if ok && slices.ContainsFunc(ends, func(end int) bool { return standsForAny(glob[:end], []string{rest}) }) {
				return true
			}
		}
	}
	return false
}

// plain returns a glob of nothing but wildcards and names, without the open segments at its
// end, and what it hangs from.
func (s selection) plain() (dir, glob string) {
	dir, glob = s.dir, path.Clean(plainGlob(oneCase(s.glob)))
	if path.IsAbs(glob) {
		dir, glob = "/", glob[1:]
	}
	for strings.HasPrefix(glob, "../") {
		dir, glob = path.Dir(dir), glob[len("../"):]
	}
	for glob != "" && isOpen(glob[strings.LastIndexByte(glob, '/')+1:]) {
		glob = glob[:max(strings.LastIndexByte(glob, '/'), 0)]
	}
	return dir, glob
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

// standsForAny reports whether a piece of a glob, which is more than wildcards, matches one
// of some names. Its stars cross slashes.
func standsForAny(piece string, names []string) bool {
	if strings.Trim(piece, "*?/") == "" {
		return false
	}
	flat := strings.NewReplacer("/", "\x00")
	piece = flat.Replace(piece)
	return slices.ContainsFunc(names, func(name string) bool {
		matches, err := path.Match(piece, flat.Replace(name))
		return matches || err != nil
	})
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
