package capability

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// hostTable is the union of many hosts, each with the number of the grant it
// came from. A look-up costs one probe per label of a name, or one per prefix
// length in use for an address, however many hosts the table holds. The zero
// table covers nothing.
type hostTable struct {
	public portSet // of "*"
	names  map[string]*nameEntry
	nets   [2][]netLevel // of IPv4 and of IPv6, longest prefix first
}

// netLevel holds the ranges of one prefix length by their first address.
type netLevel struct {
	bits int
	nets map[netip.Addr]*portSet
}

// nameEntry holds what the table says of a name. "*.name" stands in both.
type nameEntry struct{ self, below portSet }

// portSet holds the ports that entries for the same hosts allow, each with the
// number of the first grant that did.
type portSet struct {
	every    int32
	hasEvery bool
	single   map[uint16]int32
}

func (s *portSet) add(port uint16, n int32) {
	if port == 0 {
		if !s.hasEvery {
			s.every, s.hasEvery = n, true
		}
		return
	}
	if s.single == nil {
		s.single = map[uint16]int32{}
	}
	if _, ok := s.single[port]; !ok {
		s.single[port] = n
	}
}

// find looks up a port; the unknown port 0 is in a set that has every port.
func (s *portSet) find(port uint16) (int32, bool) {
	if s.hasEvery {
		return s.every, true
	}
	n, ok := s.single[port]
	return n, ok
}

// add puts h, of grant n, into the table.
func (t *hostTable) add(h Host, n int32) {
	switch h.kind {
	case hostAny:
		t.public.add(h.port, n)
	case hostName:
		t.entry(h.name).self.add(h.port, n)
	case hostBelow:
		t.entry(h.name).below.add(h.port, n)
	case hostTree:
		e := t.entry(h.name)
		e.below.add(h.port, n)
		if !specialName(h.name) { // "*.com" does not cover the machine called com
			e.self.add(h.port, n)
		}
	case hostNet:
		t.network(h.net).add(h.port, n)
	}
}

func (t *hostTable) entry(name string) *nameEntry {
	e := t.names[name]
	if e == nil {
		if t.names == nil {
			t.names = map[string]*nameEntry{}
		}
		e = &nameEntry{}
		t.names[name] = e
	}
	return e
}

func (t *hostTable) network(net netip.Prefix) *portSet {
	levels := &t.nets[version(net.Addr())]
	i, ok := slices.BinarySearchFunc(*levels, net.Bits(), func(l netLevel, bits int) int { return bits - l.bits })
	if !ok {
		*levels = slices.Insert(*levels, i, netLevel{net.Bits(), map[netip.Addr]*portSet{}})
	}
	nets := (*levels)[i].nets
	if nets[net.Addr()] == nil {
		nets[net.Addr()] = &portSet{}
	}
	return nets[net.Addr()]
}

// version returns the place of a's IP version in nets.
func version(a netip.Addr) int { return a.BitLen() / 128 }

// find returns the grant that covers x, the most specific first. A target whose
// name resolved to a special address needs an entry for that address as well.
func (t *hostTable) find(x Target) (n int32, ok bool) {
	t.visit(x, func(s *portSet) bool {
		n, ok = s.find(x.port)
		return !ok
	})
	if ok && x.resolved.IsValid() && Special(x.resolved) {
		_, ok = t.find(Target{addr: x.resolved, port: x.port})
	}
	return n, ok
}

// visit calls each with the ports of every entry that covers the host of x, the
// most specific first, until it returns false. An opaque target has none.
func (t *hostTable) visit(x Target, each func(*portSet) bool) {
	switch {
	case x.name != "":
		t.visitName(x.name, each)
	case x.addr.IsValid():
		t.visitAddr(x.addr, each)
	}
}

func (t *hostTable) visitName(name string, each func(*portSet) bool) {
	if e := t.names[name]; e != nil && !each(&e.self) {
		return
	}
	for _, parent, ok := strings.Cut(name, "."); ok; _, parent, ok = strings.Cut(parent, ".") {
		if e := t.names[parent]; e != nil && !each(&e.below) {
			return
		}
	}
	if !specialName(name) {
		each(&t.public)
	}
}

func (t *hostTable) visitAddr(addr netip.Addr, each func(*portSet) bool) {
	for _, level := range t.nets[version(addr)] {
		first := netip.PrefixFrom(addr, level.bits).Masked().Addr()
		if s := level.nets[first]; s != nil && !each(s) {
			return
		}
	}
	if !Special(addr) {
		each(&t.public)
	}
}

// covers reports whether every target that a allows is one the table allows.
// When it is not, the witness is a target that only a allows.
//
// It is exact but for one thing: a host for any port is not seen to be covered
// by single-port entries for each of the 65535 ports.
func (t *hostTable) covers(a Host) (witness string, ok bool) {
	x := Target{port: a.port}
	switch a.kind {
	case hostAny:
		x.name = t.unused("evil.", "example", "")
	case hostTree, hostBelow:
		x.name = t.unused("", "evil", "."+a.name)
	case hostName:
		x.name = a.name
	case hostNet:
		if x.addr, ok = t.gap(a.net, a.port); !ok {
			return "", true
		}
	default:
		return "", true // the invalid host allows nothing
	}
	if _, ok := t.find(x); !ok {
		return t.witness(x), false
	}
	if a.kind == hostTree && !specialName(a.name) {
		x.name = a.name
		if _, ok := t.find(x); !ok {
			return t.witness(x), false
		}
	}
	return "", true
}

// unused returns the name before+label+after, with a number behind the label if
// it must, that no entry is about: neither it nor what is from the label on.
// Such a name stands for all its like: a wildcard that covers it covers them.
func (t *hostTable) unused(before, label, after string) string {
	fresh := label
	for i := 2; t.names[before+fresh+after] != nil || t.names[fresh+after] != nil; i++ {
		fresh = fmt.Sprintf("%s%d", label, i)
	}
	return before + fresh + after
}

// gap returns an address in net that no entry covers for port. It walks the
// addresses in strides: to the end of an entry's range, and, where "*" covers
// the public ones, to the next special range.
func (t *hostTable) gap(net netip.Prefix, port uint16) (netip.Addr, bool) {
	// IPv4 written as IPv6 is never a target, so nothing has to cover it.
	ranges := []netip.Prefix{netip.MustParsePrefix("::ffff:0:0/96")}
	for _, level := range t.nets[version(net.Addr())] {
		for first, s := range level.nets {
			r := netip.PrefixFrom(first, level.bits)
			if _, ok := s.find(port); ok && r.Overlaps(net) {
				ranges = append(ranges, r)
			}
		}
	}
	// In order of first addresses, a range that begins before an address and
	// does not hold it is done with.
	slices.SortFunc(ranges, func(a, b netip.Prefix) int { return a.Addr().Compare(b.Addr()) })
	_, public := t.public.find(port)
	at := net.Addr()
	for net.Contains(at) {
		for len(ranges) > 0 && ranges[0].Addr().Less(at) && !ranges[0].Contains(at) {
			ranges = ranges[1:]
		}
		next, special := specialRange(at)
		switch {
		case len(ranges) > 0 && ranges[0].Contains(at):
			at = lastAddr(ranges[0]).Next()
		case public && !special:
			at = specialRanges[next].Addr()
		default:
			return t.plainer(net, at, port), true
		}
	}
	return netip.Addr{}, false
}

// plainer returns the address after at if at begins net and both are in the
// gap: 10.0.0.1 is known for a host where 10.0.0.0 is not.
func (t *hostTable) plainer(net netip.Prefix, at netip.Addr, port uint16) netip.Addr {
	next := at.Next()
	if _, ok := t.find(Target{addr: next, port: port}); !ok && at == net.Addr() && net.Contains(next) {
		return next
	}
	return at
}

// lastAddr returns the last address of net.
func lastAddr(net netip.Prefix) netip.Addr {
	b := net.Addr().AsSlice()
	for i := net.Bits(); i < net.Addr().BitLen(); i++ {
		b[i/8] |= 0x80 >> (i % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// witness writes x, which the table does not cover. Where the port is any and
// the table covers some, it names one that the table does not.
func (t *hostTable) witness(x Target) string {
	some := false
	t.visit(x, func(s *portSet) bool {
		some = some || len(s.single) > 0
		return !some
	})
	if x.port != 0 || !some {
		return x.String()
	}
	const wellKnown = 8443
	y := x
	for i := range 1<<16 - 1 {
		y.port = uint16((wellKnown-1+i)%(1<<16-1)) + 1
		if _, ok := t.find(y); !ok {
			return y.String()
		}
	}
	return x.String() // every port has its own entry; only an unknown one is left
}
