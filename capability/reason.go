package capability

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// Reason says what of a call of a program decided its denial: a word that can be read as a
// path, the directory, an option, a grant that is not in effect; of a tool, which argument; of a resource, that it
// has a query. It is ""
// where the whole of what was asked for did.
func (d Decision) Reason() string {
	switch {
	case d.Allowed() || d.vague || d.need == nil || d.link != "" || d.Code != ScopeViolation:
		return ""
	case d.fence != nil:
		return d.fence.reached(d.need)
	case d.need.verb == "tool.invoke":
		return d.limited()
	case d.need.verb != "proc.exec" || d.need.Opaque() != "":
		return d.queried()
	}
	why := ""
	for _, g := range d.held {
		switch {
		case g.inert != "":
			why = cmp.Or(why, g.misplaces(d.need.argv[0]))
		case !g.means(d.need):
		case !g.root.holds(d.need.path):
			why = cmp.Or(why, "the directory that it would run in is outside "+g.root.Dir)
		default:
			return d.need.straying(g.root)
		}
	}
	return cmp.Or(why, d.need.beyond())
}

// limited says which argument of a call keeps it from the grants that name the tool: the first of the one
// that allows most of them.
func (d Decision) limited() string {
	first, least := "", 0
	for _, g := range d.held {
		if g.inert != "" || !g.coversNames(d.need) {
			continue
		}
		strays := slices.DeleteFunc(slices.Clone(g.args), func(a argRule) bool { return a.allows(d.need) })
		if n := len(strays); n > 0 && (least == 0 || n < least) {
			first, least = strays[0].name, n
		}
	}
	if least == 0 {
		return ""
	}
	if _, given := d.need.arg(first); given {
		return "args: limits the argument " + cited(first) + " to other values"
	}
	return "args: limits the argument " + cited(first) + ", which is not given as a plain value"
}

// queried says of a resource with a query, a fragment, a user or a port that it is these that nothing stands for.
func (d Decision) queried() string {
	const meant = "?#@:"
	if d.astray && d.need.Opaque() == "" {
		return "it meets a link that leads there, or nowhere; what names less may be held"
	}
	uri := d.need.Object()
	at := strings.IndexByte(uri, ':') + 1
	if d.need.odd != "" && !strings.Contains(uri, "{") {
		all := "all that there is"
		if d.need.scheme != "" {
			all = "all of " + d.need.scheme + ":"
		}
		return "the URI " + d.need.odd + ", so that it takes a grant of it as it is, or of " + all
	}
	if d.need.verb != readResource || !strings.ContainsAny(uri[at:], meant) {
		return ""
	}
	plain := *d.need
	plain.words = slices.Clone(plain.words)
	for _, without := range []struct{ what, why string }{
		{":", "no wildcard stands for its : behind the scheme, but a star at the end: servers may split there"},
		{"@", "no wildcard behind what a host begins with stands for its @: servers may look at nothing before it"},
		{meant, `no wildcard stands for its ? or #, but a star at the end: servers may look at nothing from there on. \? is a query's`},
	} {
		plain.words[0] = uri[:at] + strings.Map(func(r rune) rune {
			if strings.ContainsRune(without.what, r) {
				return 'x'
			}
			return r
		}, uri[at:])
		if slices.ContainsFunc(d.held, func(g *Grant) bool { return g.inert == "" && g.carries(&plain) }) {
			return without.why
		}
	}
	return ""
}

// carries reports whether a grant covers the words of a requirement, by itself or as one of its verb.
func (g *Grant) carries(r *Requirement) bool {
	return slices.ContainsFunc(g.as(r.verb), func(g *Grant) bool { return g.coversWords(r) })
}

// outside says in what way a requirement is not within a scope.
func (d Decision) outside() string {
	const outside = "which is outside what is held"
	if o := d.need.Opaque(); o != "" {
		if strings.HasPrefix(d.need.Object(), "("+o) { // it is in place of what cannot be named
			return "which no grant can cover"
		}
		return "which no grant can cover: " + o
	}
	why := d.Reason()
	if why == "" && !d.vague { // else it would quote what must not be shown
		why = d.need.beyond()
	}
	if why != "" {
		return outside + ": " + why
	}
	return outside
}

// beyond says what the arguments of a program make it do that its name does not say.
func (r *Requirement) beyond() string {
	if r.excess == "" {
		return ""
	}
	return "naming the program does not cover this: " + readable(r.excess)
}

// aside is the reason behind a sentence, if there is one.
func (d Decision) aside() string {
	if why := d.Reason(); why != "" {
		return " (" + why + ")"
	}
	return ""
}

// means reports whether a grant is of a call, wherever it runs and whatever it touches.
func (g *Grant) means(r *Requirement) bool {
	return g.any || r.excess == "" && slices.Contains(g.cmds, r.argv[0]) || slices.ContainsFunc(g.argvs, func(p *pattern.Pattern) bool {
		_, literal := p.Literal()
		return (literal || r.excess == "") && p.Match(r.joined)
	})
}

// misplaces says of a grant that allows nothing, and names a program, which entry of its
// cmds: bounds nothing.
func (g *Grant) misplaces(program string) string {
	cmds, _ := g.spec.Get("cmds")
	named, entry, of := false, "", ""
	for _, cmd := range cmds.Values {
		name, _, isCall := strings.Cut(cmd, " ")
		if named = named || name == program; entry == "" && (isCall || needsPatterns(name)) {
			entry, of = cmd, name
		}
	}
	if !named || entry == "" {
		return ""
	}
	return fmt.Sprintf(
		"the grant that names %s is not in effect, as %s stands under cmds:, where it bounds nothing; patterns: must say which calls of %s are meant",
		cited(program), cited(entry), cited(of),
	)
}

// straying says which word of a call can be read as a path that a root does not hold.
func (r *Requirement) straying(root Root) string {
	for _, p := range r.touches {
		if !root.holds(p) {
			return r.reading(p) + ", which is outside " + root.Dir
		}
	}
	return ""
}

// reading says which word of a call can be read as a path. Where the system looks for it is
// not told, nor where links lead.
func (r *Requirement) reading(p Path) string {
	if word, _ := r.word(p); word == p.raw {
		return r.naming(p) + " can be read as a path"
	}
	return r.naming(p) + " can be read as the path " + cited(p.raw)
}

// naming names the word of a call that a path was read from.
func (r *Requirement) naming(p Path) string {
	if word, ok := r.word(p); ok {
		return "the word " + cited(word)
	}
	return "what the program makes of its words"
}

// word finds the word that a path was read from. What a program makes of one stands in none.
func (r *Requirement) word(p Path) (word string, ok bool) {
	for _, word := range r.argv[1:] {
		text, _, _ := cutMagic(word)
		if parts, ok := argumentParts(word); word == p.raw || "./"+text == p.raw || ok && slices.Contains(parts, p.raw) {
			return word, true
		}
	}
	return "", false
}

// cited is a word as a sentence has it.
func cited(word string) string {
	if word = readable(word); strings.ContainsAny(word, " ,") || word == "" {
		return `"` + word + `"`
	}
	return word
}

// reached says what of a call of a program lies behind the fence.
func (f Fence) reached(r *Requirement) string {
	if r.verb.shape() != shapeProgram {
		return ""
	}
	if i := slices.IndexFunc(r.argv, opensHidden); i > 0 && runsOneOf(r.argv, splitters) {
		return "the word " + cited(r.argv[i]) + " can be read as a path, which " + beginsKept
	}
	part := *r // reaches there by one thing at a time
	if part.touches, part.atTop, part.selects = nil, nil, nil; f.Touches(&part) {
		return "the directory that it would run in " + f.keeping(&part, r.path)
	}
	part.path = Path{}
	for _, p := range slices.Concat(r.touches, r.atTop) {
		if part.touches = []Path{p}; f.Touches(&part) {
			return r.reading(p) + ", which " + f.keeping(&part, p)
		}
	}
	part.touches = nil
	for _, s := range r.selects {
		if part.selects = []selection{s}; f.Touches(&part) {
			return "the glob " + cited(s.glob) + " can stand for what is kept"
		}
	}
	return ""
}

// beginsKept is said of what a program goes on from to the names of files.
const beginsKept = "begins the name of what is kept"

// keeping says how a path that a call reaches behind the fence by lies to what is there.
func (f Fence) keeping(part *Requirement, p Path) string {
	lies := func(root Root) bool { return part.reachesInto(root, false, false) }
	switch {
	case f.hides(p, false) || f.seals(p) || slices.ContainsFunc(f.around("fs.write"), lies):
		return "is kept"
	case part.splits(f):
		return beginsKept
	}
	return "holds what is kept"
}
