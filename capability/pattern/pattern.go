package pattern

import (
	"strings"
	"unicode/utf8"

	"github.com/gobwas/glob"
)

// Separators: the character that *, ? and classes do not match. ** does.
const (
	None  = 0      // there is none
	Slash = '/'    // of paths
	Dot   = '.'    // of dotted ids
	Unit  = '\x1f' // of the words of an argv joined to one string
	Query = '?'    // of the query of a URI
)

// A Pattern is a compiled glob pattern. It is immutable and can be used by any
// number of goroutines. The zero Pattern, like a nil one, matches nothing.
type Pattern struct {
	text string
	sep  rune
	form form
	lead string        // what every match begins with, literally
	rest *automaton    // what follows the lead
	fast *glob.Pattern // the same as rest, when simple
}

// A form is a way to match what follows the lead.
type form uint8

const (
	nothing form = iota // no string matches
	exact               // nothing follows
	open                // anything follows: **, or a * that reads all that does
	subtree             // nothing, or a slash and anything
	simple              // what gobwas/glob decides, in linear time
	general             // what only the automaton can decide
)

// compile chooses the form.
func compile(text, lead, rest string, sep rune, m *automaton) *Pattern {
	p := &Pattern{text: text, sep: sep, form: general, lead: lead, rest: m}
	switch {
	case len(m.reads) == 1:
		p.form = exact
	case (rest == "**" || rest == "*") && len(m.reads) == 2 && m.reads[1].compare(anything()) == 0:
		p.form = open
	case sep != Query && isSimple(rest):
		p.form = simple
		if sep == None {
			p.fast = glob.MustCompile(rest)
		} else {
			p.fast = glob.MustCompile(rest, sep)
		}
	}
	return p
}

// isSimple reports whether gobwas/glob is known to decide the pattern as we do,
// without ever going back over the text, and faster: one alternative, or a flat
// group of them and nothing behind it, each of the kind "a*b" or "a**". Anything
// else behind a star makes it try every end the star could have, and several
// stars every combination of ends.
func isSimple(text string) bool {
	if !strings.Contains(text, "*") {
		return false
	}
	if group, ok := strings.CutPrefix(text, "{"); ok {
		text, ok = strings.CutSuffix(group, "}")
		if !ok {
			return false
		}
	} else if strings.Contains(text, ",") {
		return false
	}
	for alt := range strings.SplitSeq(text, ",") {
		before, after, _ := strings.Cut(alt, "*")
		if after == "*" {
			after = ""
		}
		if strings.ContainsAny(before+after, `*?[]{}\`) {
			return false
		}
	}
	return true
}

// Literal returns the pattern that matches the text and nothing else. Text that
// no pattern can match, because it is not UTF-8 or holds U+0000, gives the
// pattern that matches nothing.
func Literal(text string) *Pattern {
	if !matchable(text) {
		return &Pattern{}
	}
	end := newAutomaton()
	end.final.add(0)
	return &Pattern{text: escape(text), sep: Slash, form: exact, lead: text, rest: end}
}

// Subtree returns the pattern that matches an absolute directory and everything
// beneath it; "/" is every absolute path. A relative directory gives the pattern
// that matches nothing.
func Subtree(dir string) *Pattern { return Subtrees()(dir) }

// Subtrees returns [Subtree] for many directories.
func Subtrees() func(dir string) *Pattern {
	beneath := ours("{,/**}")
	return func(dir string) *Pattern {
		switch {
		case !matchable(dir) || !strings.HasPrefix(dir, "/"):
			return &Pattern{}
		case dir == "/":
			return ours("/**")
		}
		return &Pattern{text: escape(dir) + beneath.text, sep: Slash, form: subtree, lead: dir, rest: beneath.rest}
	}
}

// Under returns the pattern that matches what p matches, with the directory,
// literally, and a slash before it. Where there is no directory, or p is not a
// pattern of paths, that is nothing: p has to be a [Literal], a [Subtree] or
// parsed with [Slash].
func Under(dir string, p *Pattern) *Pattern {
	if p.empty() || p.sep != Slash || !matchable(dir) || dir == "" {
		return &Pattern{}
	}
	if dir != "/" {
		dir += "/"
	}
	q := *p
	q.lead = dir + p.lead
	q.text = escape(dir) + p.text
	return &q
}

// ours parses a text of our own, in which there is no error.
func ours(text string) *Pattern {
	p, _ := Parse(text, Slash)
	return p
}

func matchable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// escape writes text so that Parse reads every character as itself.
func escape(text string) string {
	if text == "" {
		return "{}" // Parse refuses "", which nobody writes on purpose
	}
	var b strings.Builder
	for i, r := range text {
		if strings.ContainsRune(`*?[{},\`, r) || i == 0 && r == '!' {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func (p *Pattern) empty() bool { return p == nil || p.form == nothing }

// Match reports whether s matches, in time linear in its length and without
// allocating. A string that is not UTF-8 or holds U+0000 matches nothing.
func (p *Pattern) Match(s string) bool {
	if p.empty() || !strings.HasPrefix(s, p.lead) {
		return false
	}
	s = s[len(p.lead):]
	switch p.form {
	case exact:
		return s == ""
	case open:
		return matchable(s)
	case subtree:
		return s == "" || s[0] == '/' && matchable(s)
	case simple:
		return matchable(s) && p.fast.Match(s)
	default:
		return p.rest.match(s)
	}
}

// String returns a text that Parse, given the same separator, reads as the same
// language: the text that was parsed, or for constructed patterns one that says
// it. It is "" if nothing matches. Characters and sizes that Parse refuses, it
// refuses here too.
func (p *Pattern) String() string {
	if p == nil {
		return ""
	}
	return p.text
}

// Key writes the pattern with its separator: patterns that share a key were parsed
// from the same text in the same way.
func (p *Pattern) Key() string { return string(p.sep) + p.text }

// Literal returns the only string that the pattern matches, if it is written
// without wildcards and alternatives.
func (p *Pattern) Literal() (string, bool) {
	if p.empty() || p.form != exact {
		return "", false
	}
	return p.lead, true
}

// Dir returns the longest directory that is known to hold, or to be, whatever
// matches: "/srv/a" for /srv/a/*.go. It is a key for a table of patterns, to be
// looked up with a path and each of its parents: "/" last for absolute paths,
// and "" for every path, which is the directory of **/x.
func (p *Pattern) Dir() string {
	if p.empty() {
		return ""
	}
	dir := p.lead
	if !p.segments() {
		dir = dir[:strings.LastIndexByte(dir, '/')+1]
	}
	if len(dir) > 1 {
		dir = strings.TrimSuffix(dir, "/")
	}
	return dir
}

// segments reports whether the lead consists of whole segments: nothing or a
// slash follows.
func (p *Pattern) segments() bool {
	for q := range p.rest.reads {
		if p.rest.prev[q].has(0) && p.rest.reads[q].compare(one('/')) != 0 {
			return false
		}
	}
	return true
}
