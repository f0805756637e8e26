package capability

import (
	"fmt"
	"slices"
	"strings"

	"capgate/capability/pattern"
)

// Grant is a verb and a scope that an agent holds, compiled. It is immutable.
type Grant struct {
	n     int32 // its place in the set
	entry Entry
	spec  Spec
	text  string // the spec in compact form
	inert string // why it allows nothing, "" when it allows something
	note  string // what load narrowed, "" when nothing

	written   Root   // the in: that was written, when it was clamped
	clampedTo string // where the sandbox root lies below the in: that was written, "" if it was not clamped

	root  Root               // fs and proc
	paths []pathEntry        // fs; nil with allPaths
	hosts []Host             // net
	cmds  []string           // proc.exec
	argvs []*pattern.Pattern // proc.exec
	any   bool               // fs: everything beneath the root; proc: any program
	dims  []dimension        // keyed verbs, one for each of the entry's
	args  []argRule          // tool.invoke
}

// pathEntry is one entry of paths:, relative to the root.
type pathEntry struct {
	dir  string           // a plain entry: itself and all beneath; "" when glob is set
	glob *pattern.Pattern // exactly the glob, relative
}

// isAll reports whether an entry is everything beneath the root.
func (e pathEntry) isAll() bool { return e.dir == "." || e.glob != nil && e.glob.String() == "**" }

// dimension is what a grant says of one dimension of a keyed verb.
type dimension struct {
	any      bool
	patterns []name
}

// match reports whether a word is allowed. The empty word is one that the call
// left open: only a dimension without a limit allows that.
func (d dimension) match(value string) bool {
	if d.any || value == "" {
		return d.any
	}
	for _, p := range d.patterns {
		if p.word.Match(value) {
			return true
		}
	}
	return false
}

// matchAll reports whether a URI that may be any other of its scheme is allowed: it is written out, or all that the
// scheme has is.
func (d dimension) matchAll(uri, scheme string) bool {
	if d.any {
		return true
	}
	var rows []pattern.Row
	for _, p := range d.patterns {
		if text, ok := p.word.Literal(); ok && text == uri {
			return true
		}
		rows = append(rows, pattern.Row{p.given})
	}
	if !d.match(scheme + "://" + unlikely) { // as nearly all are not
		return false
	}
	all, err := allOf(scheme)
	return err == nil && pattern.Covers(rows, pattern.Row{all.given}, make([]pattern.Universe, 1)).Yes
}

// allOf is the pattern of all that a scheme has, or of whatever there is.
func allOf(scheme string) (name, error) {
	if scheme != "" {
		scheme += "://"
	}
	return newName(scheme+"*", pattern.Query)
}

// unlikely is a name that hardly anything is called.
const unlikely = "\uFFFD.\uFFFD/\uFFFD"

// argRule limits one argument of a tool: it must be there, and match.
type argRule struct {
	name     string
	patterns []name
}

// Verb returns the verb that the grant grants.
func (g *Grant) Verb() Verb { return g.entry.Verb }

// Risk returns the risk of the grant's verb.
func (g *Grant) Risk() Risk { return g.entry.Risk }

// Spec returns the grant in effect: shorthand expanded, the root written out.
func (g *Grant) Spec() Spec { return g.spec }

// Root returns the directory an fs or proc grant hangs from.
func (g *Grant) Root() Root { return g.root }

// Hosts returns the hosts of a net grant.
func (g *Grant) Hosts() []Host { return append([]Host(nil), g.hosts...) }

// Inert says why the grant allows nothing as written, "" when it does allow something.
func (g *Grant) Inert() string { return g.inert }

// Note says what load narrowed, "" when nothing.
func (g *Grant) Note() string { return g.note }

// Wide says in what way the grant is wider than it may look, "" when it isn't.
func (g *Grant) Wide() string {
	switch {
	case g.inert != "":
		return ""
	case g.entry.Verb == "proc.exec" && g.any:
		return "any program may run; name cmds: or patterns:"
	case g.entry.Verb == "tool.invoke" && len(g.args) == 0 && g.matchesAnyName():
		return "every tool without a mapping may be called"
	case slices.ContainsFunc(g.hosts, func(h Host) bool { return h.String() == "*" || strings.HasPrefix(h.String(), "*:") }):
		return "any public host"
	case slices.ContainsFunc(g.hosts, Host.isEverywhere):
		return "every address of a kind, those of this machine and its network among them"
	case g.root.Dir == "/" && (g.any || slices.ContainsFunc(g.paths, pathEntry.isAll)):
		return "the whole file system"
	}
	return ""
}

// isEverywhere reports whether a range is of all addresses, special ones included.
func (h Host) isEverywhere() bool { return h.net.IsValid() && h.net.Bits() == 0 }

func (g *Grant) matchesAnyName() bool { return g.dims[0].match(unlikely) }

// String writes the grant in effect in compact form.
func (g *Grant) String() string { return g.text }

// compiler turns specs into grants against one set of options.
type compiler struct {
	opts     Options
	grants   []Grant
	seen     map[string]bool
	findings []Finding
}

func (c *compiler) say(sev Severity, code string, pos Pos, text, hint string) {
	c.findings = append(c.findings, Finding{Code: code, Severity: sev, Pos: pos, Text: text, Hint: hint})
}

// add compiles one spec and whatever it stands for.
func (c *compiler) add(spec Spec) {
	for _, s := range expand(spec) {
		e, ok := Lookup(Verb(s.Verb))
		if !ok {
			hint := ""
			if near := Closest(s.Verb, verbNames()); near != "" {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			c.say(Error, "unknown_verb", s.Pos, fmt.Sprintf("%q is no verb; the grant was left out", clip(s.Verb)), hint)
			continue
		}
		g := Grant{entry: e, spec: s}
		if err := c.scope(&g); err != nil {
			g.inert = err.text
			severity := Warning
			if s.Origin != "" && err.code == codeAnyProgram { // that one stands beside what it was written for
				severity = Note
			}
			c.say(severity, err.code, s.Pos, fmt.Sprintf("%s is inert: %s", e.Verb, err.text), err.hint)
		}
		g.text = g.spec.String()
		said := g.inert + "\x00" + g.text // what is inert stands for nothing else
		if c.seen[said] {
			continue
		}
		c.seen[said] = true
		if g.note != "" {
			c.say(Warning, "clamped", s.Pos, fmt.Sprintf("%s: %s", e.Verb, g.note), "")
		}
		c.grants = append(c.grants, g)
	}
}

// verbNames returns the words a mistyped verb may have meant.
func verbNames() []string {
	names := make([]string, 0, len(catalogue))
	for i := range catalogue {
		names = append(names, string(catalogue[i].Verb))
	}
	return names
}

// expand writes out what one spec stands for: a Rye wildcard for all types, and
// a list of roots for one grant each.
func expand(spec Spec) []Spec {
	if action, ok := strings.CutSuffix(spec.Verb, ".*"); ok && spec.Bare && strings.HasPrefix(action, "rye") {
		return expandRye(spec, action)
	}
	in, ok := spec.Get(inKey.Name)
	if !ok || len(in.Values) < 2 {
		return []Spec{spec}
	}
	var out []Spec
	for _, dir := range in.Values {
		one := spec
		one.Scope = make([]Param, len(spec.Scope))
		for i, p := range spec.Scope {
			if p.Key == in.Key {
				p.Values, p.Single = []string{dir}, true
			}
			one.Scope[i] = p
		}
		out = append(out, one)
	}
	return out
}

func expandRye(spec Spec, action string) []Spec {
	var out []Spec
	for _, a := range ryeActions {
		if action != "rye" && action != "rye."+a {
			continue
		}
		for _, t := range ryeTypes {
			one := Spec{Verb: "rye." + a + "." + t, Pos: spec.Pos, Origin: spec.Origin}
			out = append(out, one.With(ryeKey.Name, "*"))
		}
	}
	return out
}

// refusal is why a grant allows nothing.
type refusal struct{ code, text, hint string }

func refuse(code, format string, a ...any) *refusal {
	return &refusal{code: code, text: fmt.Sprintf(format, a...)}
}

// RunsProject reports whether a program runs the code of the project it is
// called in, which only a sandbox can bound: make, go, npm and their like.
func RunsProject(program string) bool { return runsProject(program) }
