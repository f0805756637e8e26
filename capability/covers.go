package capability

import (
	"slices"
	"strconv"
	"strings"

	"capgate/capability/pattern"
)

// Gap is something that one set allows and another does not.
type Gap struct {
	Grant   *Grant // whose authority is not covered
	Witness string // a shortest thing it would also allow, "" when the work cap was hit
}

// String writes the gap as a denial quotes it.
func (g Gap) String() string {
	if g.Witness == "" {
		return g.Grant.String() + " could not be shown to be within it"
	}
	return g.Grant.String() + " would also allow " + g.Witness
}

// Covers compares two sets: it returns what a allows and s does not, nothing
// when a is inside s. It is exact for every pattern that can be written, and
// where the work for that is capped the answer is a gap.
//
// Two limits keep a gap open that could be proved closed: a host on all ports is
// not held against 65535 single ports, nor a Rye id of knowledge against patterns
// of the URIs that it stands for.
func (s *Set) Covers(a *Set) []Gap {
	var gaps []Gap
	effort := pattern.NewEffort(maxEffort)
	for g := range a.All() {
		if g.inert != "" {
			continue
		}
		for _, v := range g.entry.verbs() {
			if witness, ok := s.coversGrant(v, g, effort); !ok {
				gaps = append(gaps, Gap{Grant: g, Witness: witness})
				break
			}
		}
	}
	return gaps
}

// maxEffort caps the work of comparing two sets, all rows of all grants together: some
// ten milliseconds. A single row takes no more than a tenth of that.
const maxEffort = 1 << 20

func (s *Set) coversGrant(v Verb, g *Grant, effort *pattern.Effort) (witness string, ok bool) {
	if !s.Holds(v) {
		return "any " + string(v), false
	}
	t := s.tables[v]
	switch t.shape {
	case shapePath:
		return t.coversPaths(t.live, g, effort)
	case shapeHost:
		return t.coversHosts(g)
	case shapeProgram:
		return coversPrograms(t.live, g, effort)
	}
	e, _ := Lookup(v)
	for _, one := range g.as(v) {
		if witness, ok := e.coversWords(t.live, one, effort); !ok {
			return witness, false
		}
	}
	return "", true
}

func (t *table) coversHosts(g *Grant) (string, bool) {
	for _, h := range g.hosts {
		if witness, ok := t.hosts.covers(h); !ok {
			return witness, false
		}
	}
	return "", true
}

// pathRows returns the patterns of an fs grant, one row each.
func (g *Grant) pathRows() []pattern.Row {
	var rows []pattern.Row
	add := func(p *pattern.Pattern) { rows = append(rows, pattern.Row{p}) }
	g.eachPath(func(dir string) { add(pattern.Subtree(dir)) }, add)
	return rows
}

// coversPaths looks each pattern up first; only one that is not found is held
// against everything, for the witness or for what several grants allow together.
func (t *table) coversPaths(held []*Grant, g *Grant, effort *pattern.Effort) (string, bool) {
	var rows []pattern.Row
	for _, row := range g.pathRows() {
		if _, ok := t.paths.contains(row[0]); ok {
			continue
		}
		if rows == nil {
			for _, b := range held {
				rows = append(rows, b.pathRows()...)
			}
		}
		if v := effort.Covers(rows, row, []pattern.Universe{pattern.AbsPath}); !v.Yes {
			return witness(v, 0), false
		}
	}
	return "", true
}

func witness(v pattern.Verdict, dim int) string {
	if dim >= len(v.Witness) {
		return ""
	}
	return v.Witness[dim]
}

// coversPrograms compares proc grants. Roots are whole subtrees, so that the one
// grant's root must lie within the other's, and only programs can add up.
func coversPrograms(held []*Grant, g *Grant, effort *pattern.Effort) (string, bool) {
	var within []*Grant
	for _, b := range held {
		if g.root.inside(b.root) {
			within = append(within, b)
		}
	}
	if len(within) == 0 {
		return g.root.Dir, false
	}
	for _, b := range within {
		if b.any {
			return "", true
		}
	}
	if g.any {
		return "any program", false
	}
	return coversArgvs(within, g, effort)
}

// inside reports whether everything that hangs from the root is within another
// root, by each place it is known by.
func (r Root) inside(outer Root) bool {
	for _, dir := range r.dirs() {
		if !beneath(dir, outer.Dir) && !beneath(dir, outer.Real) {
			return false
		}
	}
	return true
}

// coversArgvs compares programs and argv patterns. By name and by wildcards a
// program is granted its ordinary use, on either side, so that only a call which
// is spelt out can be more than its pattern: that one needs to be spelt out again.
func coversArgvs(held []*Grant, g *Grant, effort *pattern.Effort) (string, bool) {
	for _, c := range g.cmds {
		if slices.ContainsFunc(held, func(b *Grant) bool { return slices.Contains(b.cmds, c) }) {
			continue
		}
		if w, ok := coversArgv(argvRows(held, nil), anyArgv(c), effort); !ok {
			return w, false
		}
	}
	for _, p := range g.argvs {
		rows := argvRows(held, p)
		if words, literal := literalArgv(p); literal && violation(words) != "" {
			rows = spelt(rows)
		}
		if w, ok := coversArgv(rows, p, effort); !ok {
			return w, false
		}
	}
	return "", true
}

// argvRows returns the argv patterns of grants, and their programs as patterns as
// far as the pattern they are compared with could begin with them.
func argvRows(held []*Grant, p *pattern.Pattern) []pattern.Row {
	var rows []pattern.Row
	for _, b := range held {
		for _, c := range b.cmds {
			if begins(p, c) {
				rows = append(rows, pattern.Row{anyArgv(c)})
			}
		}
		for _, q := range b.argvs {
			rows = append(rows, pattern.Row{q})
		}
	}
	return rows
}

// begins reports whether a call that a pattern matches could be of a program. Only
// a brace leaves the first word of a pattern open.
func begins(p *pattern.Pattern, cmd string) bool {
	if p == nil {
		return false // the programs have been compared by name
	}
	first, _, _ := strings.Cut(p.String(), unit)
	return first == cmd || strings.ContainsAny(first, `{\`)
}

// spelt keeps the patterns without wildcards.
func spelt(rows []pattern.Row) []pattern.Row {
	return slices.DeleteFunc(slices.Clone(rows), func(row pattern.Row) bool {
		_, literal := row[0].Literal()
		return !literal
	})
}

func coversArgv(rows []pattern.Row, p *pattern.Pattern, effort *pattern.Effort) (string, bool) {
	v := effort.Covers(rows, pattern.Row{p}, []pattern.Universe{pattern.Any})
	return spaced(witness(v, 0)), v.Yes
}

func (e Entry) coversWords(held []*Grant, g *Grant, effort *pattern.Effort) (string, bool) {
	names := argNames(append(held[:len(held):len(held)], g))
	var rows []pattern.Row
	for _, b := range held {
		rows = append(rows, b.wordRows(names)...)
	}
	mine := g.wordRows(names)
	if len(rows) > maxRows || len(mine) > maxRows {
		return "", false
	}
	universe := make([]pattern.Universe, len(g.wordDims())+len(names))
	written := writtenRows(rows)
	for _, row := range mine {
		if written[rowKey(row)] {
			continue
		}
		for _, row := range e.widened(row) {
			if v := effort.Covers(rows, row, universe[:len(row)]); !v.Yes {
				return e.wordWitness(v, len(g.wordDims()), names), false
			}
		}
	}
	return "", true
}

// widened is all that a row may hold: a URI that may be any other of its scheme is all that this has as well, as it is
// in a call. Where it is written out in the same way has been looked at.
func (e Entry) widened(row pattern.Row) []pattern.Row {
	text, ok := row[0].Literal()
	if e.Verb != readResource || !ok {
		return []pattern.Row{row}
	}
	u := ReadURI(strings.TrimPrefix(text, given))
	if u.Odd() == "" {
		return []pattern.Row{row}
	}
	wide := anything() // where no pattern can be of all that the scheme has
	if all, err := allOf(u.Scheme); err == nil {
		wide = all.given
	}
	return []pattern.Row{row, append(pattern.Row{wide}, row[1:]...)}
}

// writtenRows are rows by what is written in them, so that long lists of names that
// are passed on as they are cost no comparison.
func writtenRows(rows []pattern.Row) map[string]bool {
	written := make(map[string]bool, len(rows))
	for _, row := range rows {
		written[rowKey(row)] = true
	}
	return written
}

func rowKey(row pattern.Row) string {
	var key []byte
	for _, p := range row {
		one := p.Key()
		key = append(append(strconv.AppendInt(key, int64(len(one)), 10), ':'), one...)
	}
	return string(key)
}

// maxRows caps the products that one comparison of keyed grants writes out.
const maxRows = 4096

// argNames collects the argument names that any of the grants limits.
func argNames(grants []*Grant) []string {
	var names []string
	seen := map[string]bool{}
	for _, g := range grants {
		for _, rule := range g.args {
			if !seen[rule.name] {
				seen[rule.name] = true
				names = append(names, rule.name)
			}
		}
	}
	return names
}

// wordDims returns the dimensions of a keyed grant without its arguments.
func (g *Grant) wordDims() []dimension {
	if len(g.dims) > 1 && g.entry.Keys[len(g.entry.Keys)-1].Type == ArgsKey {
		return g.dims[:len(g.dims)-1]
	}
	return g.dims
}

// wordRows writes a keyed grant as products: one pattern for each dimension and
// each argument name. A word is given and its value, or empty when a call leaves it
// open, which only a dimension without a limit allows.
func (g *Grant) wordRows(names []string) []pattern.Row {
	rows := []pattern.Row{{}}
	for _, d := range g.wordDims() {
		rows = product(rows, d.alternatives())
	}
	for _, name := range names {
		d := dimension{any: true}
		for _, rule := range g.args {
			if rule.name == name {
				d = dimension{patterns: rule.patterns}
			}
		}
		rows = product(rows, d.alternatives())
	}
	return rows
}

func anything() *pattern.Pattern {
	p, _ := pattern.Parse("**", pattern.None)
	return p
}

func (d dimension) alternatives() []*pattern.Pattern {
	if d.any {
		return []*pattern.Pattern{anything()}
	}
	out := make([]*pattern.Pattern, len(d.patterns))
	for i, p := range d.patterns {
		out[i] = p.given
	}
	return out
}

// product writes each row with each alternative; past the cap it stops, which
// the caller sees by the number of rows.
func product(rows []pattern.Row, alternatives []*pattern.Pattern) []pattern.Row {
	var out []pattern.Row
	for _, row := range rows {
		for _, p := range alternatives {
			if len(out) > maxRows {
				return out
			}
			out = append(out, append(row[:len(row):len(row)], p))
		}
	}
	return out
}

// wordWitness reads a witness back: the words, then the arguments by name.
func (e Entry) wordWitness(v pattern.Verdict, words int, names []string) string {
	var parts []string
	dims := e.dims()
	for i, w := range v.Witness {
		value, named := strings.CutPrefix(w, given)
		if i >= words {
			parts = append(parts, argument(names[i-words], value, named))
			continue
		}
		switch _, limited := e.limits(dims[i]); {
		case named && limited:
			parts = append(parts, value)
		case named:
			parts = append(parts, dims[i]+"="+value)
		case limited:
			parts = append(parts, "any "+dims[i])
		}
	}
	return strings.Join(parts, " ")
}

func argument(name, value string, given bool) string {
	if !given {
		return "without " + name
	}
	return name + "=" + value
}
