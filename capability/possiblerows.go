package capability

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// form is how the value of a blank is read, and with that how patterns see it.
type form uint8

const (
	formText   form = iota // as it is: names, keys, command lines of a shell
	formPath               // as an absolute path
	formURL                // as a URL
	formHost               // as a host and port
	formRecord             // as the path of a record
	formID                 // as the id of an agent
	formItem               // as a Rye id, with dots
	formArgv               // as the words of an argv
	formWord               // as an argv of one word
	formLine               // as the plain words of a command line
)

// variant is one way in which a group can be met.
type variant struct {
	*puzzle
	group
	asked []asked
	pins  map[int]string // blanks that it settles

	forms []form // of the blanks
	cwds  []string
	mixed bool // a blank is read in several ways
	apart bool // of which nothing can be read in two
}

// asked is a need as the tables are asked for it.
type asked struct {
	Possibility
	entry Entry
	parts []Part
}

// variants visits the ways in which a group can be met. That is one, but for
// records: what is said of an agent's record needs the agent verb.
func (p *puzzle) variants(g group) iter.Seq[variant] {
	return func(yield func(variant) bool) {
		variant{puzzle: p, group: g.treesLast()}.each(yield)
	}
}

func (v variant) each(yield func(variant) bool) bool {
	if len(v.asked) == len(v.needs) {
		return yield(v.read())
	}
	for _, way := range v.needs[len(v.asked)].ways() {
		next := v
		next.asked, next.pins = append(slices.Clone(v.asked), way.asked), map[int]string{}
		maps.Copy(next.pins, v.pins)
		maps.Copy(next.pins, way.pins)
		if !next.each(yield) {
			return false
		}
	}
	return true
}

// treesLast puts a blank that is a tree behind the others, where a question about
// what is beneath it can be asked.
func (g group) treesLast() group {
	isTree := func(b int) int {
		if slices.ContainsFunc(g.needs, func(n Possibility) bool { return n.tree() == b }) {
			return 1
		}
		return 0
	}
	g.blanks = slices.Clone(g.blanks)
	slices.SortStableFunc(g.blanks, func(a, b int) int { return isTree(a) - isTree(b) })
	return g
}

// tree returns the blank of which the need takes all that is beneath it, 0 if
// there is none.
func (n Possibility) tree() int {
	if len(n.Parts) == 1 && n.Parts[0].Name == "tree" {
		return n.Parts[0].Blank
	}
	return 0
}

type way struct {
	asked asked
	pins  map[int]string
}

// ways returns the ways to ask for a need.
func (n Possibility) ways() []way {
	e, _ := Lookup(n.Verb)
	ways := []way{{asked: asked{n, e, n.Parts}}}
	if n.Known != nil || n.Verb.Resource() != "records" || n.Verb == "records.read" {
		return ways
	}
	agent, _ := Lookup(Verb("agent" + strings.TrimPrefix(string(n.Verb), "records")))
	for _, part := range n.Parts {
		switch {
		case part.Name == "path":
			ways = append(ways, way{asked: asked{n, agent, []Part{{"id", part.Text, part.Blank}}}})
		case part.Blank > 0:
			ways = append(ways, way{asked{n, agent, nil}, map[int]string{part.Blank: "agent"}})
		case strings.EqualFold(part.Text, "agent"):
			ways = append(ways, way{asked: asked{n, agent, nil}})
		}
	}
	return ways
}

// read finds out how the blanks of a variant are read.
func (v variant) read() variant {
	v.forms, v.cwds = make([]form, len(v.blanks)), make([]string, len(v.blanks))
	known := make([]bool, len(v.blanks))
	for _, need := range v.asked {
		for _, part := range need.parts {
			i := slices.Index(v.blanks, part.Blank)
			if i < 0 {
				continue
			}
			f := need.entry.form(part.Name)
			v.mixed = v.mixed || known[i] && f != v.forms[i]
			v.apart = v.apart || known[i] && (f.apart(v.forms[i]) || v.forms[i].apart(f))
			v.forms[i], v.cwds[i], known[i] = f, need.View.Cwd, true
		}
	}
	return v
}

// apart reports whether no value can be read in both forms, the one being that of
// a URL.
func (f form) apart(other form) bool {
	switch other {
	case formPath, formHost, formRecord, formID, formItem:
		return f == formURL
	}
	return false
}

// form returns how a part of a requirement is read.
func (e Entry) form(part string) form {
	switch part {
	case "tree", "glob", "cwd":
		return formPath
	case "url":
		return formURL
	case "host":
		return formHost
	case "argv":
		return formArgv
	case "argv0":
		return formWord
	case "command":
		if e.Verb == "proc.exec" {
			return formLine
		}
		return formText
	}
	if e.Verb.shape() == shapePath {
		return formPath
	}
	for _, k := range e.Keys {
		if k.Dim == part && k.Type >= IDKey && k.Type <= DottedKey {
			return [...]form{formID, formRecord, formItem}[k.Type-IDKey]
		}
	}
	return formText
}

// value returns what a call would say for the text that patterns see.
func (v variant) value(i int, text string, relative bool) []string {
	switch v.forms[i] {
	case formPath:
		if rest, ok := relativeTo(text, v.cwds[i:i+1]); relative && ok {
			return []string{cmp.Or(rest, ".")}
		}
	case formItem:
		return []string{strings.ReplaceAll(text, ".", "/")}
	case formArgv, formLine:
		return strings.Split(text, unit)
	}
	return []string{text}
}

// rows visits what a table allows of a need, as far as the blanks say which. What
// the need itself says must match for a grant to count.
func (v variant) rows(t *table, need asked) iter.Seq[pattern.Row] {
	return func(yield func(pattern.Row) bool) {
		if t == nil {
			return
		}
		for _, g := range t.live {
			if !v.grantRows(g, need, yield) {
				return
			}
		}
	}
}

func (v variant) grantRows(g *Grant, need asked, yield func(pattern.Row) bool) bool {
	dims := make([][]*pattern.Pattern, len(v.blanks))
	ok := true
	switch need.entry.Verb.shape() {
	case shapePath:
		paths := []*pattern.Pattern{}
		add := func(p *pattern.Pattern) { paths = append(paths, p) }
		g.eachPath(func(dir string) { add(v.subtree(dir)) }, add)
		v.limit(dims, need.parts[0].Blank, paths)
	case shapeProgram:
		ok = v.program(dims, g, need)
	case shapeWords:
		ok = v.words(dims, g, need)
	}
	return !ok || v.products(make(pattern.Row, 0, len(dims)), dims, yield)
}

// products visits the rows that take one of the alternatives in every dimension.
func (v variant) products(row pattern.Row, dims [][]*pattern.Pattern, yield func(pattern.Row) bool) bool {
	if len(row) == len(dims) {
		return yield(slices.Clone(row))
	}
	alternatives := dims[len(row)]
	if alternatives == nil {
		alternatives = []*pattern.Pattern{v.anything}
	}
	for _, p := range alternatives {
		if !v.products(append(row, p), dims, yield) {
			return false
		}
	}
	return true
}

// limit keeps a blank to some patterns. Of a blank that two parts of one need limit,
// only the first is kept; the other is seen when the filling is tried.
func (v variant) limit(dims [][]*pattern.Pattern, blank int, to []*pattern.Pattern) {
	if i := slices.Index(v.blanks, blank); i >= 0 && dims[i] == nil {
		dims[i] = to
	}
}

// words holds a need against what a grant says of each of its words.
func (v variant) words(dims [][]*pattern.Pattern, g *Grant, need asked) bool {
	for i, name := range need.entry.dims() {
		if name != argsDim && !v.word(dims, g.dims[i], need, name) {
			return false
		}
	}
	for _, rule := range g.args {
		if !v.word(dims, dimension{patterns: rule.patterns}, need, argsDim+"."+rule.name) {
			return false
		}
	}
	return true
}

func (v variant) word(dims [][]*pattern.Pattern, d dimension, need asked, name string) bool {
	i := slices.IndexFunc(need.parts, func(p Part) bool { return p.Name == name })
	switch {
	case d.any || i < 0:
		return d.any
	case need.parts[i].Blank == 0:
		text := need.parts[i].Text
		if !strings.HasPrefix(name, argsDim+".") {
			text, _ = need.entry.canonical(name, text)
		}
		return d.match(text)
	}
	patterns := []*pattern.Pattern{}
	for _, p := range d.patterns {
		if need.entry.Verb.Resource() != "records" || !meansAgents(name, p.word) {
			patterns = append(patterns, p.word)
		}
	}
	v.limit(dims, need.parts[i].Blank, patterns)
	return true
}

// meansAgents reports whether all that a pattern of records matches are agents,
// for which another verb is needed.
func meansAgents(dim string, p *pattern.Pattern) bool {
	if dim == "class" {
		class, ok := p.Literal()
		return ok && strings.EqualFold(class, "agent")
	}
	return isAgentRecord(p.Dir() + "/")
}

// program holds a need against what a grant says of the directory and the argv.
func (v variant) program(dims [][]*pattern.Pattern, g *Grant, need asked) bool {
	dir := Part{Name: "cwd", Text: need.View.Cwd}
	argv, open := []string(nil), 0
	for _, part := range need.parts {
		switch {
		case part.Name == "cwd":
			dir = part
		case part.Blank > 0:
			open = part.Blank
		case part.Name == "command":
			argv, _, _ = plainWords(part.Text)
		default:
			argv = append(argv, part.Text)
		}
	}
	if dir.Blank > 0 {
		var dirs []*pattern.Pattern
		for _, d := range g.root.dirs() {
			dirs = append(dirs, v.subtree(d))
		}
		v.limit(dims, dir.Blank, dirs)
	} else if p, err := need.View.Path(dir.Text); err != nil || !g.root.holds(p) {
		return false
	}
	switch {
	case g.any:
		return true
	case open > 0:
		v.limit(dims, open, v.argvs(g))
		return true
	}
	joined := strings.Join(argv, unit)
	return slices.ContainsFunc(v.argvs(g), func(p *pattern.Pattern) bool { return p.Match(joined) })
}

// argvs returns the argvs that a grant names. One that is spelt out is left out
// where it names a place outside the root in so many words, or is more than the
// ordinary use of its program and not spelt out by every link.
func (v variant) argvs(g *Grant) []*pattern.Pattern {
	list := []*pattern.Pattern{}
	for _, c := range g.cmds {
		list = append(list, anyArgv(c))
	}
	for _, p := range g.argvs {
		if words, literal := literalArgv(p); !literal || !g.root.excludes(words[1:]) && (violation(words) == "" || v.spelt(p)) {
			list = append(list, p)
		}
	}
	return list
}

// spelt reports whether every link spells out an argv, or allows any.
func (v variant) spelt(p *pattern.Pattern) bool {
	text, _ := p.Literal()
	return !slices.ContainsFunc(v.links("proc.exec"), func(t *table) bool {
		return t == nil || !slices.ContainsFunc(t.held, func(g *Grant) bool {
			return g.inert == "" && (g.any || slices.ContainsFunc(g.argvs, func(q *pattern.Pattern) bool {
				other, ok := q.Literal()
				return ok && other == text
			}))
		})
	})
}

// excludes reports whether some word is an absolute path outside the root, from
// whatever directory it is read.
func (r Root) excludes(words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return slices.ContainsFunc(View{}.Argument(word), func(p Path) bool { return p.opaque == "" && !r.holds(p) })
	})
}
