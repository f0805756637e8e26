package pattern

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of what Parse reads.
const (
	maxText  = 512 // bytes
	maxDepth = 16  // braces in braces
)

// A SyntaxError says what is wrong with the text of a pattern.
type SyntaxError struct {
	Text   string // as given to Parse
	Offset int    // of the byte at which the trouble begins
	Reason string // "[ is never closed"
}

// Error names the pattern, the reason and the place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("pattern %q: %s (byte %d)", e.Text, e.Reason, e.Offset+1)
}

// Parse reads a pattern. The separator is the character that *, ? and classes
// do not match: [None], [Slash], [Dot], [Unit] or [Query].
func Parse(text string, sep rune) (*Pattern, error) {
	p := &parser{text: text, sep: sep}
	if err := p.screen(); err != nil {
		return nil, err
	}
	p.machine, p.star, p.any = newAutomaton(), anything().without(sep), anything()
	if sep == Query {
		p.star = p.star.without('#')
		p.any, p.sep, p.uri = p.star, None, true
	}
	lead, err := p.lead()
	if err != nil {
		return nil, err
	}
	if p.parts = []part{0}; p.uri {
		p.parts[0] = opening(lead)
	}
	rest := text[p.at:]
	p.front.add(0)
	if lead == "" || strings.HasSuffix(lead, string(sep)) {
		p.bounds.add(0)
	}
	if err := p.sequence(); err != nil {
		return nil, err
	}
	p.last()
	if !p.machine.finish(p.front) {
		return nil, p.fail(0, fmt.Sprintf("it has more than %d different classes", maxSets))
	}
	return compile(text, lead, rest, sep, p.machine), nil
}

// A parser builds the automaton while it reads: the next character is entered
// from every state in front.
type parser struct {
	text    string
	at      int
	sep     rune
	depth   int
	machine *automaton
	star    set // what * and ? read
	any     set // what ** reads
	uri     bool
	parts   []part // by state: what part of a URI it leaves one in

	front  states
	bounds states // states at the beginning of a segment
	supers states // states of **
	wild   states // states of * and **
	ends   states // states of those where a host ends
}

func (p *parser) fail(at int, reason string) error {
	return &SyntaxError{Text: p.text, Offset: at, Reason: reason}
}

// screen refuses what no pattern may hold, wherever it stands.
func (p *parser) screen() error {
	switch {
	case !slices.Contains([]rune{None, Slash, Dot, Unit, Query}, p.sep):
		return p.fail(0, fmt.Sprintf("%q is not a separator", p.sep))
	case p.text == "":
		return p.fail(0, "it is empty")
	case len(p.text) > maxText:
		return p.fail(maxText, fmt.Sprintf("it is longer than %d bytes", maxText))
	case p.text[0] == '!':
		return p.fail(0, "a pattern says what is allowed, it cannot begin with !")
	}
	for i, r := range p.text {
		if r == utf8.RuneError && !strings.HasPrefix(p.text[i:], string(r)) {
			return p.fail(i, "it is not UTF-8")
		}
		if unicode.IsControl(r) && (r != Unit || p.sep != Unit) {
			return p.fail(i, fmt.Sprintf("it holds the control character %U", r))
		}
	}
	return nil
}

// lead reads the literal that the pattern begins with.
func (p *parser) lead() (string, error) {
	var lead strings.Builder
	for p.at < len(p.text) && strings.IndexByte("*?[{", p.text[p.at]) < 0 {
		r, err := p.char()
		if err != nil {
			return "", err
		}
		lead.WriteRune(r)
	}
	return lead.String(), nil
}

// char reads one character that stands for itself, perhaps escaped.
func (p *parser) char() (rune, error) {
	if p.text[p.at] == '\\' {
		if p.at++; p.at == len(p.text) {
			return 0, p.fail(p.at-1, `\ escapes nothing`)
		}
	}
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	p.at += size
	return r, nil
}

// sequence reads up to the end, or inside braces to the end of an alternative.
func (p *parser) sequence() error {
	for p.at < len(p.text) {
		var err error
		switch c := p.text[p.at]; {
		case p.depth > 0 && (c == ',' || c == '}'):
			return nil
		case c == '{':
			err = p.braces()
		case c == '*':
			err = p.stars()
		case c == '[':
			err = p.class()
		case c == '?':
			p.at++
			err = p.some()
		default:
			err = p.literal()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// enter makes the state that reads s and leaves one in a part of a URI, and leaves the front there.
func (p *parser) enter(s set, to part) error {
	if len(p.machine.reads) == maxStates {
		return p.fail(p.at-1, fmt.Sprintf("it needs more than %d states", maxStates))
	}
	q := p.machine.add(s, p.front)
	p.parts = append(p.parts, to)
	p.front = states{}
	p.front.add(q)
	return nil
}

// literal reads one character. If it is a separator and follows a ** that began
// a segment, the two together may also stand for no segment at all: what comes
// next can then be entered from where the ** was.
func (p *parser) literal() error {
	r, err := p.char()
	if err != nil {
		return err
	}
	before := p.front
	if err := p.apart(func(in part) error { return p.enter(one(r), in.behind(r)) }); err != nil || r != p.sep {
		return err
	}
	p.bounds.join(&p.front)
	before.each(func(q int) {
		if p.supers.has(q) {
			skip := p.machine.prev[q]
			skip.keep(&p.bounds)
			p.front.join(&skip)
		}
	})
	return nil
}

// stars reads * or **.
func (p *parser) stars() error {
	start := p.at
	for p.at < len(p.text) && p.text[p.at] == '*' {
		p.at++
	}
	stars := p.at - start
	if stars > 2 {
		return p.fail(start, "there is no wildcard of three stars")
	}
	return p.apart(func(in part) error {
		switch {
		case in&inName != 0:
			return p.fromName(in)
		case stars == 1:
			return p.run(in.within(p.star), in)
		}
		err := p.run(in.within(p.any), in)
		p.supers.add(len(p.machine.reads) - 1)
		return err
	})
}

// run reads any number of characters: a state that can be entered from itself, and passed by.
func (p *parser) run(reads set, in part) error {
	before := p.front
	if err := p.enter(reads, in|behindWild); err != nil {
		return err
	}
	q := len(p.machine.reads) - 1
	p.machine.prev[q].add(q)
	p.wild.add(q)
	p.front.join(&before)
	return nil
}

// braces reads {a,b}: every alternative is entered from the same front, and
// left from the fronts of all.
func (p *parser) braces() error {
	start := p.at
	if p.depth++; p.depth > maxDepth {
		return p.fail(start, fmt.Sprintf("braces are nested deeper than %d", maxDepth))
	}
	before, ends := p.front, states{}
	for {
		p.at++
		p.front = before
		if err := p.sequence(); err != nil {
			return err
		}
		ends.join(&p.front)
		if p.at == len(p.text) {
			return p.fail(start, "{ is never closed")
		}
		if p.text[p.at] == '}' {
			break
		}
	}
	p.at++
	p.depth--
	p.front = ends
	return nil
}
