package skills

import (
	"path"
	"slices"
	"strings"

	"capgate/capability"
)

// command reads Bash(git log *): the words in front of the first star, and then any.
// What leaves the program itself open, or needs a shell, asks for a shell.
func (d *derivation) command(verbs []string, spec string) ([]capability.Spec, string) {
	line, open := strings.CutSuffix(spec, ":*")
	words := strings.Fields(line)
	if len(words) == 0 || strings.ContainsAny(line, ";&|<>()`\n\r#") {
		return bare(verbs), ""
	}
	words = unwrapped(words)
	if len(words) == 0 || strings.ContainsAny(words[0], "*=") || isCut(words[0]) {
		return bare(verbs), ""
	}
	program, why := d.program(words[0])
	if why != "" {
		return nil, why
	}
	if !isPlainWord(program) || slices.Contains(strings.Fields(shellWords), program) {
		return bare(verbs), ""
	}
	known := []string{program}
	for _, word := range words[1:] {
		cut := isCut(word)
		if word, _ = d.expand(word); cut || !isPlainWord(word) {
			open = true // the first word that is not plain stands for any from there on
			break
		}
		known = append(known, word)
	}
	specs := d.run(known, open)
	if empty(specs[0]) != "" { // a program that runs whatever it is given
		return bare(verbs), ""
	}
	return specs, ""
}

// shellWords are no programs: a shell runs what follows them, or all that follows in
// another way.
const shellWords = ". alias coproc declare enable eval exec export readonly source trap typeset"

// run asks to run a program with some words, and then perhaps any. One that is named
// by its place must be read as well.
func (d *derivation) run(words []string, open bool) []capability.Spec {
	spec := capability.Spec{Verb: "proc.exec"}
	switch {
	case open && len(words) == 1:
		spec = spec.With("cmds", words[0])
	case open:
		spec = spec.With("patterns", strings.Join(words, " ")+" **")
	default:
		spec = spec.With("patterns", strings.Join(words, " "))
	}
	if strings.Contains(words[0], "/") {
		dir, base := path.Split(words[0])
		read := capability.Spec{Verb: "fs.read"}.With("in", path.Clean(dir)).With("paths", base)
		return []capability.Spec{spec, read}
	}
	if strings.Contains(words[0], ":") {
		text := "a colon is part of the name here, and nobody has such a program"
		d.warn("colon", words[0], text, "write a space where the program ends, and :* only at the end")
	}
	return []capability.Spec{spec}
}

// program reads the first word of a command: the name of a program, or its place.
func (d *derivation) program(word string) (program, why string) {
	word, why = d.expand(word)
	switch {
	case why != "":
		return "", why
	case strings.ContainsAny(word, "${}"):
		return "", "it holds a variable that nothing gives a value"
	case strings.HasPrefix(word, "~/") && d.opts.Home != "":
		return path.Join(d.opts.Home, word[2:]), ""
	case strings.HasPrefix(word, "/"):
		return path.Clean(word), ""
	case strings.Contains(word, "/"):
		return "", "a program is named by a relative path, so that whoever chooses the folder chooses the program"
	}
	return word, ""
}

// isSwitch reports whether a variable in front of a command only turns something on or
// off. Others may say which code runs, as LD_PRELOAD and GIT_PAGER do.
func isSwitch(name, value string) bool {
	if value == "/dev/null" {
		return isKey(name)
	}
	for _, part := range []string{"PATH", "LOAD", "ENV", "DIR", "HOME", "ROOT", "TREE", "FILE", "LIB", "CONFIG"} { // there any word is a file
		if strings.Contains(strings.ToUpper(name), part) {
			return false
		}
	}
	return isKey(name) && (value == "true" || value == "false" || strings.Trim(value, "0123456789") == "")
}

// unwrapped leaves out what stands in front of a command and is not it: variables,
// and programs that only run the next one. A wrapper with options of its own stays.
func unwrapped(words []string) []string {
	wrappers := []string{"timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob"}
	for len(words) > 0 && !strings.Contains(words[0], "*") {
		name, value, assigned := strings.Cut(words[0], "=")
		wraps := slices.Contains(wrappers, words[0]) && len(words) > 1 && startsWithLetter(words[1])
		if !wraps && (!assigned || !isSwitch(name, value)) {
			break
		}
		words = words[1:]
	}
	return words
}

// isCut reports whether a word is a piece of one that stands in quotes, with blanks in it.
func isCut(word string) bool { return strings.Count(word, `"`)%2 == 1 }

func startsWithLetter(word string) bool {
	c := word[0] | 0x20
	return c >= 'a' && c <= 'z'
}

// isPlainWord reports whether a word means the same to a shell, a client and a grant.
func isPlainWord(word string) bool {
	return word != "" && !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_./:=@%+,-", r)
	})
}
