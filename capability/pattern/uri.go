package pattern

import (
	"maps"
	"slices"
	"strings"
)

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

// apart reads what comes next in each part of a URI where it may stand, as other alternatives are before
// it: each is what it is by itself. Only a wildcard is before it for all of them.
func (p *parser) apart(read func(in part) error) error {
	if !p.uri {
		return read(inScheme) // where nothing is left out
	}
	before, after := p.front, states{}
	wild, groups := part(0), map[part]states{}
	before.each(func(q int) {
		wild |= p.parts[q] & behindWild
		in := p.parts[q] &^ behindWild
		group := groups[in]
		group.add(q)
		groups[in] = group
	})
	for _, in := range slices.Sorted(maps.Keys(groups)) {
		p.front = groups[in]
		if err := read(in | wild); err != nil {
			return err
		}
		after.join(&p.front)
	}
	p.front = after
	return nil
}

// some reads one character, whichever. In a URI it is that a query begins with as well, where all
// before it is written out: who writes db://t?x=1 means that.
func (p *parser) some() error {
	return p.apart(func(in part) error {
		before := p.front
		if err := p.enter(in.within(p.star), in|behindWild); err != nil || !p.uri || in&behindWild != 0 {
			return err
		}
		other := p.front
		p.front = before
		err := p.enter(one('?'), in.behind('?')|behindWild)
		p.front.join(&other)
		return err
	})
}

// within leaves out what would make another host of one whose name has begun: what stands before
// an @ is a user's name to some readers, so that a://team-* is not a://team-x@secret. Behind the
// scheme it leaves out a colon, from which on some readers look at nothing: a://*.md is neither
// a://secret://.md nor a://secret:80/.md.
func (p part) within(reads set) set {
	if p&inScheme == 0 {
		reads = reads.without(':')
	}
	if p&inName != 0 {
		reads = reads.without('@')
	}
	return reads
}

// fromName reads a star in the name of a host, which can go on behind that with an @ too.
func (p *parser) fromName(in part) error {
	if err := p.run(in.within(p.star).without('/'), in); err != nil {
		return err
	}
	before := p.front
	if err := p.enter(one('/'), behindWild); err != nil {
		return err
	}
	p.ends.add(len(p.machine.reads) - 1)
	err := p.run(behindWild.within(p.star), behindWild)
	p.front.join(&before)
	return err
}

// last has the stars that a pattern can end with read anything from where a host ends, and a port.
func (p *parser) last() {
	p.front.each(func(q int) {
		switch {
		case p.ends.has(q):
			p.machine.reads[q] = tidy([]span{{'#', '#'}, {'/', '/'}, {'?', '?'}})
		case p.uri && p.wild.has(q) && p.parts[q]&inName == 0:
			p.machine.reads[q] = anything()
		case p.uri && p.wild.has(q):
			p.machine.reads[q] = p.star.without('@').without('/')
		}
	})
}
