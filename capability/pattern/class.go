package pattern

// class reads [abc], [a-z] or both together, as in [a-z0-9_]. A dash stands for
// itself at either end. The separator is never in a class.
func (p *parser) class() error {
	start := p.at
	p.at++
	if c := p.peek(); c == '!' || c == '^' {
		return p.fail(start, "a pattern says what is allowed, a class cannot be negated")
	}
	var spans []span
	for p.peek() != ']' {
		s, err := p.span(start, len(spans) == 0)
		if err != nil {
			return err
		}
		spans = append(spans, s)
	}
	p.at++
	if len(spans) == 0 {
		return p.fail(start, "a class cannot be empty")
	}
	reads := tidy(spans).without(p.sep)
	if len(reads) == 0 {
		return p.fail(start, "a class never matches the separator")
	}
	written := 'x'
	if reads.single() {
		written = reads[0].lo
	}
	return p.apart(func(in part) error { return p.enter(reads, in.behind(written)|behindWild) })
}

// span reads one character of a class, or a range.
func (p *parser) span(start int, first bool) (span, error) {
	if p.peek() == '-' && !first && !p.closes(p.at+1) {
		return span{}, p.fail(p.at, "a dash that is not part of a range stands first or last in a class")
	}
	lo, err := p.member(start)
	if err != nil || p.peek() != '-' || p.closes(p.at+1) {
		return span{lo, lo}, err
	}
	dash := p.at
	p.at++
	hi, err := p.member(start)
	if err == nil && hi < lo {
		err = p.fail(dash, "the range runs backwards")
	}
	return span{lo, hi}, err
}

// member reads one character inside the class that began at start.
func (p *parser) member(start int) (rune, error) {
	if p.at == len(p.text) {
		return 0, p.fail(start, "[ is never closed")
	}
	return p.char()
}

// peek returns the next byte, 0 at the end.
func (p *parser) peek() byte {
	if p.at == len(p.text) {
		return 0
	}
	return p.text[p.at]
}

// closes reports whether the class ends at i.
func (p *parser) closes(i int) bool { return i < len(p.text) && p.text[i] == ']' }
