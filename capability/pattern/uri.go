package pattern

import "strings"

// A part is where in a URI one may be, by what is written out before. Wildcards do not count: what
// they stand for may end there as well. Behind a host there is nothing to tell apart.
type part uint8

const (
	inScheme part = 1 << iota
	atColon       // behind the colon of the scheme
	atSlash       // and one slash
	atHost        // and another one
	inName        // and something of the host

	behindWild // a wildcard stands before, wherever this is
)

// opening is where a literal leads to.
func opening(lead string) part {
	p := inScheme
	for _, r := range lead {
		p = p.behind(r)
	}
	return p
}

// behind is where one is when another character has been written out.
func (p part) behind(r rune) part {
	next := p & (inScheme | behindWild)
	switch r {
	case ':':
		next = next&^inScheme | p&inScheme<<1
	case '/':
		next |= p & (atColon | atSlash) << 1
	}
	if p&(atHost|inName) != 0 && !strings.ContainsRune("/?#", r) {
		next |= inName
	}
	return next
}

// part is where what comes next may stand.
func (p *parser) part() (all part) {
	p.front.each(func(q int) { all |= p.parts[q] })
	return all
}

// some reads one character, whichever. In a URI it is that a query begins with as well, where all
// before it is written out: who writes db://t?x=1 means that.
func (p *parser) some() error {
	reads, part := p.star, p.part()
	if p.uri && part&behindWild == 0 {
		reads = anything().without('#')
	}
	return p.enter(part.within(reads), part|behindWild)
}

// within leaves out what would make another host of one whose name has begun: what stands before
// an @ is a user's name to some readers, so that a://team-* is not a://team-x@secret.
func (p part) within(reads set) set {
	if p&inName != 0 {
		return reads.without('@')
	}
	return reads
}

// fromName reads a star in the name of a host, which can go on behind that with an @ too.
func (p *parser) fromName() error {
	in := p.part()
	if err := p.run(in.within(p.star).without('/'), in); err != nil {
		return err
	}
	before := p.front
	if err := p.enter(one('/'), behindWild); err != nil {
		return err
	}
	p.ends.add(len(p.machine.reads) - 1)
	err := p.run(p.star, behindWild)
	p.front.join(&before)
	return err
}

// last has the stars that a pattern can end with read anything from where a host ends.
func (p *parser) last() {
	p.front.each(func(q int) {
		switch {
		case p.ends.has(q):
			p.machine.reads[q] = tidy([]span{{'#', '#'}, {'/', '/'}, {'?', '?'}})
		case p.uri && p.wild.has(q) && p.parts[q]&inName == 0:
			p.machine.reads[q] = anything()
		}
	})
}
