package capability

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Requirement is a verb and the concrete thing that one call needs it for, with
// every way the thing may be read. It is immutable.
type Requirement struct {
	verb    Verb
	path    Path        // fs: what is touched; proc: the working directory
	target  Target      // net
	argv    []string    // proc.exec
	line    string      // proc: what only a shell can run, as it was written; net: the target
	joined  string      // argv as patterns see it
	excess  string      // what the arguments make the program do beyond its name, "" if nothing
	touches []Path      // proc.exec: the words a program could take as paths
	atTop   []Path      // git: what may hang from the top of its work tree
	selects []selection // git: its globs
	words   []string    // keyed verbs: one word for each dimension, in catalogue order
	args    []argWord   // tool.invoke
	odd     string      // resource.read: why its URI may be any other of the scheme
	scheme  string      // of an odd URI
	opaque  string      // why no grant can cover it, "" when one can
}

// argWord is one argument of a tool that a grant may limit.
type argWord struct{ name, value string }

// Verb returns the verb that is needed.
func (r *Requirement) Verb() Verb { return r.verb }

// Opaque says why no grant can cover the requirement, "" when one could.
func (r *Requirement) Opaque() string {
	switch {
	case r.opaque != "":
		return r.opaque
	case r.verb.shape() == shapeHost:
		return r.target.Opaque()
	case r.verb.shape() == shapeWords:
		return ""
	}
	for _, p := range r.touches {
		if p.Opaque() != "" {
			return r.naming(p) + " " + p.Opaque()
		}
	}
	return r.path.Opaque()
}

// arg returns the value of an argument that a grant limits.
func (r *Requirement) arg(name string) (string, bool) {
	for _, a := range r.args {
		if a.name == name {
			return a.value, true
		}
	}
	return "", false
}

// File is the requirement that an fs verb touches a path.
func File(v Verb, p Path) *Requirement { return &Requirement{verb: v, path: p} }

// Net is the requirement that a net verb reaches a target.
func Net(v Verb, t Target) *Requirement { return &Requirement{verb: v, target: t, line: t.String()} }

// Exec is the requirement to run a program with its arguments in a directory.
// An error is always a [*Malformed].
func Exec(v View, cwd Path, argv []string) (*Requirement, error) {
	joined, err := parseArgv(argv)
	if err != nil {
		return nil, err
	}
	argv = slices.Clone(argv) // the caller's own may change after the decision
	r := &Requirement{verb: "proc.exec", path: cwd, argv: argv, joined: joined, excess: violation(argv)}
	dir, once := folder(argv)
	if !once {
		r.opaque = "the program changes its directory more than once"
	}
	for _, from := range cwd.readings {
		r.reach(v, from)
		if strings.HasPrefix(dir, "/") {
			r.reach(v, dir)
		} else if dir != "" {
			r.reach(v, from+"/"+dir)
		}
		r.relink(v, from)
	}
	if unversioned(programName(argv[0])) == "git" {
		r.keepOut()
	}
	return r, nil
}

// nothing may be read and written by anyone, and moved or removed by nobody.
const nothing = "/dev/null"

// maxTouches caps the paths that one call may name: each is looked up.
const (
	maxTouches   = 2000
	tooManyPaths = "the call names more paths than can be looked at"
)

// reach reads the words of an argv as paths, from a directory.
func (r *Requirement) reach(v View, dir string) {
	v.Cwd, v.Told = dir, nil // the words are the program's, not the upstream's
	shortens, fetches, clones := runsOneOf(r.argv, decompressors), runsOneOf(r.argv, list("curl wget")), r.clones()
	changes := changesFolders(r.argv) || runsOneOf(r.argv, deepChangers.programs)
	for _, word := range r.argv[1:] {
		if len(r.touches) > maxTouches {
			r.opaque = tooManyPaths
			return
		}
		for _, p := range v.Argument(word) {
			if p.raw != nothing || changes || shortens {
				r.touches = append(r.touches, p)
			}
		}
		if fetches || strings.Contains(word, "://") {
			for _, name := range fetched(word) {
				r.touches = append(r.touches, v.Argument(name)...)
			}
		}
		if clones {
			for _, name := range cloned(word) {
				r.touches = append(r.touches, v.Argument("./"+name)...)
			}
		}
		if end := strings.LastIndexAny(word, ".-_"); end > 0 && shortens { // gunzip knows .gz, -gz and _z
			r.touches = append(r.touches, v.Argument(word[:end])...)
		}
	}
	r.pathspecs(v, dir)
}

// fetched returns an address without its folders for each name that curl and wget may give to
// the file of it: without its query, without what is a folder for its end, with its escapes read
// but those of a slash and of no character, and without what stands before a backslash or, as in
// host:name, a colon.
func fetched(address string) (names []string) {
	for _, ends := range []string{"", "?#", "?#;"} {
		place := address
		if end := strings.IndexAny(address, ends); end > 0 {
			place = address[:end]
		}
		place = path.Clean(strings.NewReplacer("%2e", ".", "%2E", ".").Replace(strings.TrimRight(place, `/\`)))
		place = place[strings.LastIndexByte(place, '/')+1:]
		for _, name := range append(decodePercent(place), place) {
			if name = strings.TrimRight(name, `\`); !strings.ContainsAny(name, "/\x00") {
				names = appendNew(appendNew(names, "http://"+name), "http://"+name[strings.LastIndexAny(name, `\:`)+1:])
			}
		}
	}
	return names
}

// clones reports whether git makes a folder that is called after an address.
func (r *Requirement) clones() bool {
	return runsOneOf(r.argv, list("git")) && (slices.Contains(r.argv, "clone") || slices.Contains(r.argv, "submodule"))
}

// cloned returns what git may call the folder of an address: the last of it that is no .git and
// no port, without the space around it.
func cloned(address string) (names []string) {
	for before := ""; before != address; {
		before = address
		address = strings.TrimSuffix(strings.TrimRight(strings.TrimSpace(address), "/"), "/.git")
	}
	last := address[strings.LastIndexByte(address, '/')+1:]
	for _, name := range []string{last, last[strings.LastIndexByte(last, ':')+1:], strings.TrimRight(last[strings.LastIndexByte(last, '@')+1:], ":0123456789")} {
		for _, ending := range []string{".git", ".bundle"} {
			if short, ok := strings.CutSuffix(name, ending); ok {
				names = append(names, short)
			}
		}
		names = append(names, name)
	}
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// keepOut makes a git call opaque that works in a repository's own folder, or
// names something in it, through whatever link: what stands there git runs.
func (r *Requirement) keepOut() {
	// These read some of their words from the top of the work tree.
	fromTop := slices.ContainsFunc(r.argv, func(w string) bool {
		return slices.Contains([]string{"fetch", "pull", "push", "remote", "ls-remote", "grep", "archive"}, w)
	})
	climbs := func(w string) bool { return strings.Contains(w, "..") } // also in -f../x and --file=../x
	if fromTop && slices.ContainsFunc(r.argv[1:], climbs) {
		r.opaque = "git reads a .. in this call from the top of its repository"
	}
	for _, p := range append([]Path{r.path}, r.touches...) {
		for _, reading := range p.readings {
			if why := reachesRepository(reading); why != "" {
				r.opaque = "git " + why
			}
		}
	}
}

// Shell is the requirement to run a command line in a directory under a verb:
// proc.eval runs anything, proc.exec only plain words, which need no shell.
func Shell(verb Verb, v View, cwd Path, line string) (*Requirement, error) {
	argv, plain, err := plainWords(line)
	switch {
	case verb == "proc.eval":
		if strings.TrimSpace(line) == "" || strings.ContainsRune(line, 0) {
			return nil, &Malformed{Text: "is no command line"}
		}
		return &Requirement{verb: verb, path: cwd, line: line}, nil
	case err != nil:
		return nil, err
	case !plain:
		return &Requirement{verb: verb, path: cwd, line: line, opaque: "the command line needs a shell, which is proc.eval"}, nil
	}
	return Exec(v, cwd, argv)
}

// Beyond is a requirement that no grant covers, for what a call asks for and no
// scope can express, such as setting the environment of a program. The reason
// finishes no sentence; it is one.
func Beyond(v Verb, reason string) *Requirement { return &Requirement{verb: v, opaque: reason} }

// Word is one dimension of a keyed requirement, or an argument of a tool when
// its Dim is "args.<name>".
type Word struct{ Dim, Value string }

// Keyed is the requirement of a verb on words: a tool name, a memory key, an
// agent's id. A dimension that is not given is open: only a grant without a
// limit on it covers the requirement. Records of class agent are agents, so that
// changing them needs the agent verb. An error is always a [*Malformed].
func Keyed(v Verb, words ...Word) (*Requirement, error) {
	e, ok := Lookup(v)
	if !ok || e.Verb.shape() != shapeWords {
		return nil, &Malformed{Text: fmt.Sprintf("is for %s, which takes no words", v)}
	}
	if v.Resource() == "records" && v != "records.read" {
		id, class := find(words, "path"), find(words, "class")
		switch {
		case id != "" && (hasDotSegment(id) || strings.ContainsAny(id, `\%`) || strings.TrimSpace(id) != id):
			return nil, &Malformed{Text: "is no canonical record path"}
		case class == "" && id == "":
			return Beyond(v, "the call names neither the class nor the path of the record"), nil
		case strings.EqualFold(class, "agent") || isAgentRecord(id):
			return agentInstead(v, id)
		}
	}
	if strings.HasPrefix(string(v), searchPrefix) && len(words) == 0 {
		return &Requirement{verb: v}, nil
	}
	return e.words(words)
}

// words puts the words of a requirement in the order of the verb's dimensions.
func (e Entry) words(words []Word) (*Requirement, error) {
	r := &Requirement{verb: e.Verb}
	dims := e.dims()
	for _, dim := range dims {
		if dim == argsDim {
			continue
		}
		text := find(words, dim)
		switch dim {
		case uriDim:
			text = plainScheme(text)
		case itemDim:
			if text = ""; r.odd == "" {
				text = itemOf(plainScheme(find(words, uriDim)))
			}
		}
		word, err := e.canonical(dim, text)
		if err != nil {
			return nil, err
		}
		if r.words = append(r.words, word); dim == uriDim { // which is not too long
			u := ReadURI(word)
			r.scheme, r.odd, r.opaque = u.Scheme, u.Odd(), u.Astray()
		}
	}
	for i, w := range words {
		name, isArg := strings.CutPrefix(w.Dim, argsDim+".")
		switch {
		case slices.ContainsFunc(words[:i], func(o Word) bool { return o.Dim == w.Dim }):
			return nil, &Malformed{Text: fmt.Sprintf("names two of %s, each of which is a requirement of its own", w.Dim)}
		case isArg && slices.Contains(dims, argsDim):
			r.args = append(r.args, argWord{name, w.Value})
		case !slices.Contains(dims, w.Dim) && !isRecordWord(e.Verb, w.Dim):
			return nil, &Malformed{Text: fmt.Sprintf("is the %s of %s, which has none", w.Dim, e.Verb)}
		}
	}
	return r, nil
}

// searchPrefix begins the verbs that may name nothing: what they show is filtered.
const searchPrefix = "rye.search."

// isRecordWord reports whether a word says which record is meant, to a verb that
// has no scope for it.
func isRecordWord(v Verb, dim string) bool {
	return v.Resource() == "records" && (dim == "class" || dim == "path")
}

// isAgentRecord reports whether the path of a record is that of an agent, also
// where a store does not tell upper case from lower.
func isAgentRecord(id string) bool {
	return len(id) >= len(agentPrefix) && strings.EqualFold(id[:len(agentPrefix)], agentPrefix)
}

// agentInstead is the requirement to do to an agent what was asked for its record.
func agentInstead(v Verb, id string) (*Requirement, error) {
	verb := Verb("agent" + strings.TrimPrefix(string(v), "records"))
	if !isAgentRecord(id) {
		return Keyed(verb)
	}
	return Keyed(verb, Word{"id", agentPrefix + id[len(agentPrefix):]})
}

func find(words []Word, dim string) string {
	i := slices.IndexFunc(words, func(w Word) bool { return w.Dim == dim })
	if i < 0 {
		return ""
	}
	return words[i].Value
}

// canonical checks a word by the type of the keys that limit its dimension.
func (e Entry) canonical(dim, word string) (string, error) {
	const maxWord = 4096
	k, _ := e.limits(dim)
	switch {
	case word == "" && k.Type == DottedKey && !strings.HasPrefix(string(e.Verb), searchPrefix):
		return "", &Malformed{Text: "names no item"}
	case word == "":
		return "", nil
	case len(word) > maxWord || !utf8.ValidString(word) || strings.ContainsFunc(word, isControl):
		return "", &Malformed{Text: fmt.Sprintf("is over %d bytes or holds control characters", maxWord)}
	}
	switch k.Type {
	case IDKey:
		if word == SelfLog && e.bare == bareSelf {
			return word, nil
		}
		if id := AgentID(word); id != "" {
			return id, nil
		}
		return "", &Malformed{Text: "is no agent id"}
	case RecordKey:
		if hasDotSegment(word) {
			return "", &Malformed{Text: "is no canonical record path"}
		}
	case DottedKey:
		return dotted(word)
	}
	return word, nil
}

// dotted writes a Rye item id with dots. An id whose segments hold dots already
// would read like another id, so that it is refused.
func dotted(id string) (string, error) {
	for seg := range strings.SplitSeq(id, "/") {
		if seg == "" || strings.ContainsFunc(seg, func(r rune) bool { return isNotRye(r) || strings.ContainsRune(".*?", r) }) {
			return "", &Malformed{Text: "is no canonical item id"}
		}
	}
	return strings.ReplaceAll(id, "/", "."), nil
}

// Object writes what the requirement touches, as the caller wrote it.
func (r *Requirement) Object() string {
	switch r.verb.shape() {
	case shapePath:
		return r.path.String()
	case shapeHost:
		return r.line
	case shapeProgram:
		return cmp.Or(r.line, strings.Join(r.argv, " "))
	}
	words := r.words
	if r.verb == readResource && len(words) > 0 {
		words = words[:1] // where it is read is no part of it
	}
	return strings.Join(words, " ")
}

// Canonical writes what the requirement touches as it is decided on, whatever the
// caller has written: a path absolute and clean, a tree or glob as a pattern, the
// words of a command apart from each other.
func (r *Requirement) Canonical() string {
	switch {
	case len(r.argv) > 0:
		return commandLine(r.argv)
	case r.verb.shape() != shapePath:
		return r.Object()
	case len(r.path.globs) > 0:
		return r.path.globs[0].String()
	case len(r.path.readings) > 0:
		return r.path.readings[0]
	}
	return r.Object() // nobody can tell what it is
}

// commandLine joins words, quoting those that would not come apart again.
func commandLine(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; w == "" || strings.ContainsAny(w, " \"'\\") {
			out[i] = strconv.Quote(w)
		}
	}
	return strings.Join(out, " ")
}

// Also returns what else a path may be read as, and where its links lead: all of it
// is decided on.
func (r *Requirement) Also() []string {
	met := r.path.links.known()
	if r.verb.shape() != shapePath || len(r.path.readings)+len(r.path.globs)+len(r.path.passed)+len(met.readings)+len(met.globs) < 2 {
		return nil
	}
	first := r.Canonical()
	var also []string
	add := func(text string) {
		if text != first && text != first+"/" && !slices.Contains(also, text) {
			also = append(also, text)
		}
	}
	for _, glob := range slices.Concat(r.path.globs, met.globs) {
		add(glob.String())
	}
	for _, place := range slices.Concat(met.readings, r.path.passed) {
		add(place)
	}
	for _, reading := range r.path.readings {
		if len(r.path.globs) == 0 {
			add(reading)
		}
	}
	return also
}

// Dir is the directory that a program runs in, canonical; "" for anything else.
func (r *Requirement) Dir() string {
	if r.verb.shape() != shapeProgram || len(r.path.readings) == 0 {
		return ""
	}
	return r.path.readings[0]
}

// String writes the requirement for people: its verb and what it touches.
func (r *Requirement) String() string {
	if object := r.Object(); object != "" {
		return string(r.verb) + " " + readable(object)
	}
	return string(r.verb)
}

// readable shortens what a caller wrote, and shows what would not be seen.
func readable(text string) string {
	const most = 300
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if isVisible(text) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// isVisible reports whether a text is ASCII that is seen, and blanks.
func isVisible(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
