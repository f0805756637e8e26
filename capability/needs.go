package capability

import (
	"fmt"
	"slices"
	"strings"
)

// ParseRequirement reads a requirement as it is asked for on the command line
// and in policy tests: a verb and the one thing it touches, in the compact form
// of a grant. fs.read{path=/etc/passwd}, net.get{url=https://github.com/},
// proc.exec{argv=[git,status],cwd=src}, tool.invoke{tool=github.search,args={owner=acme}}.
func ParseRequirement(text string, v View) (*Requirement, error) {
	spec, err := ParseSpec(text)
	if err != nil {
		return nil, err
	}
	e, ok := Lookup(Verb(spec.Verb))
	if !ok {
		near := Closest(spec.Verb, verbNames())
		if near != "" {
			near = fmt.Sprintf("; did you mean %s?", near)
		}
		return nil, fmt.Errorf("%q is no verb%s", clip(spec.Verb), near)
	}
	q := question{spec: spec, entry: e, view: v}
	if err := q.check(); err != nil {
		return nil, err
	}
	switch e.Verb.shape() {
	case shapePath:
		return q.file()
	case shapeHost:
		return q.net()
	case shapeProgram:
		return q.program()
	}
	return q.keyed()
}

// question is a requirement in compact form while it is read.
type question struct {
	spec  Spec
	entry Entry
	view  View
}

// names returns the keys that a requirement of the verb may have. One of the
// first group must stand, except where a keyed verb leaves a word open.
func (q question) names() (must, may []string) {
	switch q.entry.Verb.shape() {
	case shapePath:
		return []string{"path", "tree", "glob"}, nil
	case shapeHost:
		return []string{"url", "host"}, nil
	case shapeProgram:
		if q.entry.Verb == "proc.exec" {
			return []string{"argv", "command"}, []string{"cwd"}
		}
		return []string{"command"}, []string{"cwd"}
	}
	if q.entry.Verb.Resource() == "records" {
		return nil, []string{"class", "path"}
	}
	return nil, slices.DeleteFunc(q.entry.dims(), func(dim string) bool { return dim == itemDim })
}

func (q question) check() error {
	must, may := q.names()
	found := 0
	for _, p := range q.spec.Scope {
		if slices.Contains(must, p.Key) {
			found++
		} else if !slices.Contains(may, p.Key) {
			return fmt.Errorf("%q does not belong to a requirement of %s: it takes %s", p.Key, q.entry.Verb, strings.Join(append(must, may...), ", "))
		}
		if len(p.Values) != 1 && p.Key != "argv" && !p.IsMap {
			return fmt.Errorf("%s: a requirement names one thing", p.Key)
		}
	}
	if len(must) > 0 && found != 1 {
		return fmt.Errorf("a requirement of %s names one of %s", q.entry.Verb, strings.Join(must, ", "))
	}
	return nil
}

func (q question) get(key string) (string, bool) {
	p, ok := q.spec.Get(key)
	if !ok || len(p.Values) != 1 {
		return "", false
	}
	return p.Values[0], true
}

func (q question) file() (*Requirement, error) {
	parse, text := q.view.Path, ""
	for _, form := range []struct {
		key  string
		read func(string) (Path, error)
	}{{"path", q.view.Path}, {"tree", q.view.Tree}, {"glob", q.view.Glob}} {
		if t, ok := q.get(form.key); ok {
			parse, text = form.read, t
		}
	}
	p, err := parse(text)
	return File(q.entry.Verb, p), err
}

func (q question) net() (*Requirement, error) {
	if text, ok := q.get("url"); ok {
		t, err := ParseURL(text)
		return Net(q.entry.Verb, t), err
	}
	text, _ := q.get("host")
	t, err := ParseTarget(text)
	return Net(q.entry.Verb, t), err
}

func (q question) program() (*Requirement, error) {
	dir := "." // any that the upstream may work in
	if text, ok := q.get("cwd"); ok {
		dir = text
	}
	cwd, err := q.view.Path(dir)
	if err != nil {
		return nil, err
	}
	if argv, ok := q.spec.Get("argv"); ok {
		return Exec(q.view, cwd, argv.Values)
	}
	line, _ := q.get("command")
	return Shell(q.entry.Verb, q.view, cwd, line)
}

func (q question) keyed() (*Requirement, error) {
	var words []Word
	for _, p := range q.spec.Scope {
		if !p.IsMap {
			words = append(words, Word{p.Key, p.Values[0]})
			continue
		}
		for _, a := range p.Args {
			if len(a.Values) != 1 {
				return nil, fmt.Errorf("args: %s takes one value", a.Key)
			}
			words = append(words, Word{argsDim + "." + a.Key, a.Values[0]})
		}
	}
	return Keyed(q.entry.Verb, words...)
}

// Special reports whether what is reached is not of the public internet, as far as
// its name tells: no wildcard covers it.
func (r *Requirement) Special() bool {
	return r.verb.shape() == shapeHost && (r.target.name != "" && specialName(r.target.name) || r.target.addr.IsValid() && Special(r.target.addr))
}

// Smallest returns the narrowest grant that would cover the requirement, below
// the root that the agent's grants hang from, and for a program below where it runs when
// that is elsewhere; ok is false when none could.
func (r *Requirement) Smallest(root Root) (spec Spec, ok bool) {
	e, known := Lookup(r.verb)
	is := r.verb.shape()
	inPaths := is == shapePath || is == shapeProgram
	if r.verb == readResource && strings.ContainsAny(r.Object(), "{}") { // a template, which is many
		return Spec{}, false
	}
	if !known || r.Opaque() != "" || inPaths && len(r.path.readings) == 0 {
		return Spec{}, false
	}
	spec = Spec{Verb: string(r.verb)}
	switch is {
	case shapePath:
		return r.smallestPath(spec, root)
	case shapeHost:
		if x := r.target.resolved; x.IsValid() && Special(x) { // the name alone does not cover it
			return Spec{}, false
		}
		return spec.With(hostsKey.Name, r.smallestHost()), true
	case shapeProgram:
		return r.smallestProgram(spec, root)
	}
	return r.smallestArgs(r.smallestWords(spec, e)), true
}

// smallestWords names the words, and everything in place of one that is not named
// where the verb alone grants nothing.
func (r *Requirement) smallestWords(spec Spec, e Entry) Spec {
	for i, dim := range e.dims() {
		k, limited := e.limits(dim)
		switch named := i < len(r.words) && r.words[i] != ""; {
		case limited && named:
			spec = spec.With(k.Name, escapeGlob(r.words[i]))
		case limited && k.Type != ArgsKey && !e.Bare():
			spec = spec.With(k.Name, "*")
		}
	}
	spec.Bare = len(spec.Scope) == 0
	return spec
}

// smallestArgs keeps to the arguments of the call, as far as a grant could name them.
func (r *Requirement) smallestArgs(spec Spec) Spec {
	const most = 16
	if len(r.args) == 0 || len(r.args) > most {
		return spec
	}
	args := Param{Key: argsDim, IsMap: true}
	for _, a := range r.args {
		args.Args = append(args.Args, Param{Key: a.name, Values: []string{escapeGlob(a.value)}})
	}
	spec.Scope = append(slices.Clone(spec.Scope), args)
	return spec
}

// smallestHost leaves out the port where it is the one that everybody means.
func (r *Requirement) smallestHost() string {
	host := r.line
	if r.verb == "net.connect" {
		return host
	}
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

// smallestPath names every place that the path may stand for.
func (r *Requirement) smallestPath(spec Spec, root Root) (Spec, bool) {
	p := r.path.readings[0]
	for _, other := range r.path.readings {
		if strings.Contains(other, "*") && !strings.Contains(r.path.raw, "*") { // any number, as in x%d.png
			return Spec{}, false
		}
		isFolder := len(r.path.globs) > 0 && strings.TrimSuffix(other, "/") != p && beneath(other, p) // of a tree with wildcards
		if isFolder || beneath(p, other) && p != other {
			return Spec{}, false // a grant of the one is of all that is in it
		}
	}
	if rel, ok := relativeTo(p, root.dirs()); ok && !root.IsZero() {
		if rel == "" {
			return spec.With(inKey.Name, root.Dir), true
		}
		return spec.With(pathsKey.Name, r.places(root.dirs())...), true
	}
	if len(r.path.globs) > 0 || p == "/" {
		return spec.With(inKey.Name, p), true
	}
	dir := max(p[:strings.LastIndexByte(p, '/')], "/")
	return spec.With(inKey.Name, dir).With(pathsKey.Name, r.places([]string{dir})...), true
}

// places are patterns of those of them that lie in some directories.
func (r *Requirement) places(dirs []string) (patterns []string) {
	for _, reading := range r.path.readings {
		rel, ok := relativeTo(strings.TrimSuffix(reading, "/"), dirs)
		switch {
		case !ok || rel == "":
		case len(r.path.globs) == 0:
			patterns = appendNew(patterns, escapeGlob(rel))
		default:
			for _, pattern := range bothWays(rel) {
				patterns = appendNew(patterns, pattern)
			}
		}
	}
	return patterns
}

// bothWays are the patterns of a path: as it is, and as the glob that servers may take it for. Many web frameworks
// have folders like [id].
func bothWays(rel string) []string {
	literal := escapeGlob(rel)
	if !strings.ContainsAny(rel, wildcards) || strings.Contains(rel, "*") { // which would be far more than was asked for
		return []string{literal}
	}
	return []string{literal, rel}
}

func (r *Requirement) smallestProgram(spec Spec, root Root) (Spec, bool) {
	if root.IsZero() || !root.holds(r.path) {
		spec = spec.With(inKey.Name, r.path.readings[0])
		root = Root{Dir: r.path.readings[0], Real: r.path.readings[len(r.path.readings)-1]}
	}
	switch {
	case r.straying(root) != "":
		return Spec{}, false
	case r.verb == "proc.eval":
		if len(spec.Scope) == 0 {
			spec = spec.With(inKey.Name, root.Dir)
		}
		return spec, true
	case needsPatterns(r.argv[0]) || violation(r.argv) != "":
		return r.smallestArgv(spec)
	}
	return spec.With("cmds", r.argv[0]), true
}

// smallestArgv names one call, word by word. A word with a space in it has no
// way to be written in a pattern.
func (r *Requirement) smallestArgv(spec Spec) (Spec, bool) {
	words := make([]string, len(r.argv))
	for i, w := range r.argv {
		if w == "" || strings.ContainsAny(w, " \t\n\r") {
			return Spec{}, false
		}
		words[i] = escapeGlob(w)
	}
	return spec.With("patterns", strings.Join(words, " ")), true
}

// escapeGlob writes a literal so that a glob parser reads it back as itself.
func escapeGlob(text string) string {
	if !strings.ContainsAny(text, `\*?[]{}`) {
		return text
	}
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `{`, `\{`, `}`, `\}`).Replace(text)
}
