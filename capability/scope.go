package capability

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// globChars are the characters that make an entry of paths: a glob.
const globChars = `*?[{\`

const (
	codeBare    = "bare_grant"
	codeKey     = "unknown_key"
	codeType    = "wrong_type"
	codeEmpty   = "empty_scope"
	codeRoot    = "no_root"
	codeOutside = "outside_root"
	codeValue   = "invalid_value"

	codeAnyProgram = "any_program"
)

// scope compiles the scope of a grant, or says why it allows nothing. Nothing
// that is wrong in a scope is skipped over: the whole grant is inert.
func (c *compiler) scope(g *Grant) *refusal {
	if g.spec.Bare {
		return c.bare(g)
	}
	if len(g.spec.Scope) == 0 {
		return refuse(codeEmpty, "its scope is empty")
	}
	for _, p := range g.spec.Scope {
		if err := checkKey(g.entry, p); err != nil {
			return err
		}
	}
	return c.compile(g)
}

func (c *compiler) compile(g *Grant) *refusal {
	switch g.entry.Verb.shape() {
	case shapePath, shapeProgram:
		if err := c.hoist(g); err != nil {
			return err
		}
		if g.entry.Verb.shape() == shapePath {
			return c.paths(g)
		}
		return c.programs(g)
	case shapeHost:
		return c.hosts(g)
	}
	return c.keyed(g)
}

// checkKey refuses keys that the verb does not have and values of another type
// than the key takes.
func checkKey(e Entry, p Param) *refusal {
	k, ok := e.Key(p.Key)
	if !ok {
		err := refuse(codeKey, "%q is no scope key of %s", clip(p.Key), e.Verb)
		names := make([]string, len(e.Keys))
		for i, k := range e.Keys {
			names[i] = k.Name
		}
		if near := Closest(p.Key, names); near != "" {
			err.hint = fmt.Sprintf("did you mean %s?", near)
		} else if len(names) > 0 {
			err.hint = "its keys are " + strings.Join(names, ", ")
		}
		return err
	}
	switch {
	case p.Wrong != "":
		return refuse(codeType, "%s: takes %s, not %s", p.Key, k.Type, p.Wrong)
	case p.IsMap != (k.Type == ArgsKey):
		return refuse(codeType, "%s: takes %s", p.Key, k.Type)
	case len(p.Values) > maxSpecValues:
		return refuse(codeType, "%s: has more than %d values", p.Key, maxSpecValues)
	case p.IsMap:
		return checkArgs(p)
	}
	return nil
}

func checkArgs(p Param) *refusal {
	const maxArgs = 16 // argument names that one grant may limit
	if len(p.Args) == 0 || len(p.Args) > maxArgs {
		return refuse(codeType, "%s: takes 1 to %d arguments", p.Key, maxArgs)
	}
	for _, a := range p.Args {
		if a.IsMap || a.Wrong != "" {
			return refuse(codeType, "%s: %s takes a list of patterns", p.Key, clip(a.Key))
		}
	}
	return nil
}

// bare compiles a verb without a scope, the one thing the dialects differ in.
func (c *compiler) bare(g *Grant) *refusal {
	e := g.entry
	switch {
	case e.bare == bareAll:
		g.dims = make([]dimension, len(e.dims()))
		for i := range g.dims {
			g.dims[i].any = true
		}
		return nil
	case e.bare == bareSelf:
		g.spec = g.spec.With(e.token, SelfLog)
		return c.keyed(g)
	case c.opts.Dialect != Scarab || strings.HasPrefix(string(e.Verb), "rye."):
		err := refuse(codeBare, "it grants nothing without a scope")
		err.hint = "write " + example(e)
		return err
	}
	return c.everything(g)
}

// everything writes out what a bare verb means in a Scarab manifest: all of it,
// within the configuration's root.
func (c *compiler) everything(g *Grant) *refusal {
	switch g.entry.Verb.shape() {
	case shapePath, shapeProgram:
		g.root = c.opts.outer()
		if g.root.IsZero() {
			g.root = Root{Dir: "/", Real: "/"}
		}
		g.spec, g.any = g.spec.With(inKey.Name, g.root.Dir), true
		return c.anyProgram(g)
	case shapeHost:
		h, _ := ParseHost("*")
		g.spec, g.hosts = g.spec.With(hostsKey.Name, "*"), []Host{h}
	default:
		g.spec = g.spec.With(g.entry.token, "*")
		return c.keyed(g)
	}
	return nil
}

// example writes a grant of the verb as its user would want it.
func example(e Entry) string {
	value := map[string]string{"paths": "docs", "hosts": "*.example.com", "tools": "files.*", "keys": "notes", "uris": "docs://*", "": "name"}
	switch {
	case e.Verb == "proc.exec":
		return "proc.exec{cmds=[git]}"
	case e.Verb == "net.connect":
		return "net.connect{hosts=[db.example.com:5432]}"
	case e.Verb.shape() == shapeProgram:
		return string(e.Verb) + "{in=~/project}"
	case e.token == "":
		return string(e.Verb) + ".name"
	}
	return fmt.Sprintf("%s{%s=[%s]}", e.Verb, e.token, cmp.Or(value[e.token], "name"))
}

// hoist finds the root of an fs or proc grant: its own in:, the agent's, the
// configuration's; a deeper one narrows.
func (c *compiler) hoist(g *Grant) *refusal {
	outer := c.opts.outer()
	if g.spec.Token {
		outer = c.opts.Config
	}
	in, ok := g.spec.Get(inKey.Name)
	if !ok {
		if outer.IsZero() {
			err := refuse(codeRoot, "there is no sandbox root for it to hang from")
			err.hint = "add in: to the grant, or sandbox: to the record or the configuration"
			return err
		}
		g.root, g.spec = outer, g.spec.hoisted(outer.Dir)
		return nil
	}
	if len(in.Values) != 1 {
		return refuse(codeEmpty, "in: is empty")
	}
	root, err := ParseRoot(in.Values[0], outer.Dir, c.opts.View)
	if err != nil {
		return refuse(codeValue, "in: %v", err)
	}
	if !outer.IsZero() && !root.Within(outer) {
		if root.Escapes(outer) {
			return refuse(codeOutside, "in: %s leads out of the sandbox root %s through a link", root.Dir, outer.Dir)
		}
		if !outer.Within(root) {
			return refuse(codeOutside, "in: %s is outside the sandbox root %s", root.Dir, outer.Dir)
		}
		g.note = fmt.Sprintf("in: %s reaches beyond the sandbox root and was clamped to %s", root.Dir, outer.Dir)
		g.clampedTo, _ = relativeTo(outer.Real, []string{root.Real})
		g.written = root
		root = outer
	}
	g.root, g.spec = root, g.spec.replaced(inKey.Name, []string{root.Dir})
	return nil
}

// hoisted returns the spec with the root that it inherited written first.
func (s Spec) hoisted(dir string) Spec {
	s.Scope = append([]Param{{Key: inKey.Name, Values: []string{dir}, Single: true, Pos: s.Pos}}, s.Scope...)
	return s
}

// replaced returns the spec with other values for one of its keys.
func (s Spec) replaced(key string, values []string) Spec {
	scope := make([]Param, len(s.Scope))
	for i, p := range s.Scope {
		if p.Key == key {
			p.Values, p.Single = values, key == inKey.Name
		}
		scope[i] = p
	}
	s.Scope = scope
	return s
}

func (c *compiler) paths(g *Grant) *refusal {
	p, ok := g.spec.Get(pathsKey.Name)
	if !ok {
		g.any = true
		return nil
	}
	if len(p.Values) == 0 {
		return refuse(codeEmpty, "paths: is empty")
	}
	for _, v := range p.Values {
		e, err := c.pathEntry(v, g)
		if err != nil {
			return refuse(codeValue, "paths: %v", err)
		}
		g.paths = append(g.paths, e)
	}
	if g.clampedTo == "" {
		return nil
	}
	if err := g.narrow(g.clampedTo); err != nil {
		return err
	}
	g.spec = g.spec.replaced(pathsKey.Name, g.entryTexts())
	return nil
}

// entryTexts writes the entries of paths: as they are in effect.
func (g *Grant) entryTexts() []string {
	texts := make([]string, len(g.paths))
	for i, e := range g.paths {
		texts[i] = e.dir
		if e.glob != nil {
			texts[i] = e.glob.String()
		}
	}
	return texts
}

// pathEntry reads one entry of paths:. Entries must say where they point to
// without being cleaned first: no dot segments, no empty ones.
func (c *compiler) pathEntry(text string, g *Grant) (pathEntry, error) {
	rel := text
	if strings.HasPrefix(rel, "~/") && c.opts.View.Home != "" {
		rel = c.opts.View.Home + rel[1:]
	}
	if strings.HasPrefix(rel, "/") {
		from := g.root
		if g.clampedTo != "" {
			from = g.written // narrowed afterwards, with the relative ones
		}
		inside, ok := relativeTo(rel, from.dirs())
		if !ok {
			return pathEntry{}, fmt.Errorf("%q is outside %s", text, from.Dir)
		}
		rel = inside
	} else if rel = strings.TrimPrefix(rel, "./"); text == "" {
		return pathEntry{}, fmt.Errorf("an entry is empty")
	}
	if rel == "." || rel == "" {
		return pathEntry{dir: "."}, nil
	}
	plain := !strings.ContainsAny(rel, globChars)
	if plain {
		rel = strings.TrimSuffix(rel, "/")
	}
	if hasDotSegment(rel) {
		return pathEntry{}, fmt.Errorf("%q holds an empty, . or .. segment", text)
	}
	glob, err := pattern.Parse(rel, pattern.Slash)
	if plain {
		return pathEntry{dir: rel}, err
	}
	return pathEntry{glob: glob}, err
}

// relativeTo cuts a directory off the front of an absolute path.
func relativeTo(p string, dirs []string) (string, bool) {
	for _, d := range dirs {
		if beneath(p, d) {
			return strings.TrimPrefix(strings.TrimPrefix(p, d), "/"), true
		}
	}
	return "", false
}

// hasDotSegment reports whether a path or glob has an empty segment, or a "." or
// ".." as a segment or as a whole alternative of a brace.
func hasDotSegment(p string) bool {
	if strings.Contains(p, "//") || strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") {
		return true
	}
	for _, s := range strings.FieldsFunc(p, func(r rune) bool { return strings.ContainsRune("/{},", r) }) {
		if s == "." || s == ".." {
			return true
		}
	}
	return false
}

// narrow rewrites the entries of a grant whose root was clamped, so that they
// keep meaning what they meant below the wider root: within is the narrower root
// relative to it.
func (g *Grant) narrow(within string) *refusal {
	var kept []pathEntry
	for _, e := range g.paths {
		switch at, glob := e.dir, e.glob; {
		case glob != nil && spans(glob, within):
			kept = append(kept, pathEntry{dir: "."})
		case glob != nil && !strings.HasPrefix(glob.String(), escapeGlob(within)+"/"):
			at = strings.TrimPrefix(pattern.Under("/", glob).Dir(), "/")
			if beneath(within, at) || at == "" {
				return refuse(codeOutside, "paths: %s reaches beyond the sandbox root", glob)
			}
		case glob != nil:
			rest, err := pattern.Parse(glob.String()[len(escapeGlob(within))+1:], pattern.Slash)
			if err != nil {
				return refuse(codeValue, "paths: %v", err)
			}
			kept = append(kept, pathEntry{glob: rest})
		case at == "." || beneath(within, at):
			kept = append(kept, pathEntry{dir: "."})
		case beneath(at, within):
			kept = append(kept, pathEntry{dir: at[len(within)+1:]})
		}
	}
	if len(kept) == 0 {
		return refuse(codeOutside, "all of paths: is outside the sandbox root")
	}
	g.paths = kept
	return nil
}

// spans reports whether a glob is everything beneath a directory that stands above
// another one, which is then in it, with all that it holds.
func spans(glob *pattern.Pattern, within string) bool {
	above, ok := strings.CutSuffix(glob.String(), "**")
	return ok && (above == "" || strings.HasSuffix(above, "/")) && strings.HasPrefix(escapeGlob(within), above)
}

// anyProgram is a grant that limits no programs. They do whatever they like, unless a
// sandbox confines them. An fs grant is as it was.
func (c *compiler) anyProgram(g *Grant) *refusal {
	if g.any = true; g.entry.Verb != "proc.exec" || !c.opts.Unconfined {
		return nil
	}
	err := refuse(codeAnyProgram, "any program could do whatever it likes, as nothing confines programs yet")
	err.hint = "name the programs: cmds: [git, rg]"
	return err
}

func (c *compiler) programs(g *Grant) *refusal {
	if g.entry.Verb != "proc.exec" {
		g.any = true
		return nil
	}
	cmds, hasCmds := g.spec.Get("cmds")
	patterns, hasPatterns := g.spec.Get("patterns")
	if !hasCmds && !hasPatterns {
		return c.anyProgram(g)
	}
	if len(cmds.Values)+len(patterns.Values) == 0 {
		return refuse(codeEmpty, "cmds: and patterns: name nothing")
	}
	for _, v := range cmds.Values {
		cmd, err := parseCmd(v)
		if err != nil {
			return refuse(codeValue, "cmds: %v", err)
		}
		if needsPatterns(cmd) {
			err := refuse("interpreter", "%s runs whatever its arguments say, so that naming it bounds nothing", path.Base(cmd))
			err.hint = fmt.Sprintf("say which calls are meant: patterns: [\"%s …\"]", path.Base(cmd))
			return err
		}
		g.cmds = append(g.cmds, cmd)
	}
	for _, v := range patterns.Values {
		p, err := parseArgvPattern(v)
		if err != nil {
			return refuse(codeValue, "patterns: %v", err)
		}
		if why := openExcess(p, v); why != "" {
			err := refuse("option", "patterns: %q: %s, which a pattern with wildcards never allows", clip(v), why)
			err.hint = "spell the call out, without wildcards"
			return err
		}
		g.argvs = append(g.argvs, p)
	}
	return nil
}

// openExcess says why a pattern with wildcards would allow nothing: what it spells
// out is already more than the ordinary use of its program.
func openExcess(p *pattern.Pattern, text string) string {
	if _, literal := p.Literal(); literal {
		return ""
	}
	words := splitPattern(text)
	if i := slices.IndexFunc(words, func(w string) bool { return strings.ContainsAny(w, globChars) }); i >= 0 {
		words = words[:i] // what follows may be a value of what stands before
	}
	if len(words) == 0 {
		return ""
	}
	return violation(words)
}

func (c *compiler) hosts(g *Grant) *refusal {
	p, ok := g.spec.Get(hostsKey.Name)
	if !ok || len(p.Values) == 0 {
		return refuse(codeEmpty, "hosts: is empty")
	}
	parse := ParseHost
	if g.entry.Verb == "net.connect" {
		parse = parseConnectHost
	}
	for _, v := range p.Values {
		h, err := parse(v)
		if err != nil {
			return refuse(codeValue, "hosts: %v", err)
		}
		g.hosts = append(g.hosts, h)
	}
	return nil
}
