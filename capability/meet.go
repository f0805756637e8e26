package capability

import (
	"cmp"
	"iter"
	"net/netip"
	"slices"
	"strings"
)

// maxMeeting caps the hosts of one verb that are held against each other where the
// links of a chain meet. Above it nothing is left.
const maxMeeting = 1024

// Hosts returns the hosts of a verb that every link allows, in order and none
// within another. It is exact but for ranges of addresses that a link covers only in
// part, or by several entries: those are left out.
func (c Chain) Hosts(v Verb) []Host {
	var met []Host
	for i, link := range c {
		held := link.Set.hosts(v)
		if i > 0 {
			held = meet(met, held)
		}
		if met = held; len(met) == 0 || len(met) > maxMeeting {
			return nil
		}
	}
	return slices.DeleteFunc(met, func(h Host) bool {
		return slices.ContainsFunc(c, func(link Link) bool {
			_, ok := link.Set.table(v).hosts.covers(h)
			return !ok
		})
	})
}

// hosts returns what the grants of a verb name, inert ones left out.
func (s *Set) hosts(v Verb) []Host {
	t := s.table(v)
	if t == nil || t.shape != shapeHost {
		return nil
	}
	var all []Host
	for _, g := range t.held {
		if g.inert == "" {
			all = append(all, g.hosts...)
		}
	}
	return widest(all)
}

// meet returns what two lists have in common.
func meet(a, b []Host) []Host {
	if len(a) > maxMeeting || len(b) > maxMeeting {
		return nil
	}
	return widest(append(within(a, b), within(b, a)...))
}

// within returns what hosts have in common with those that may hold them.
func within(hosts, holders []Host) []Host {
	at := byPlace(holders)
	var both []Host
	for _, h := range hosts {
		for p := range h.outward() {
			for _, o := range at[p] {
				if met, ok := h.meet(o); ok {
					both = append(both, met)
				}
			}
		}
	}
	return both
}

// place is what a host is about, whatever of it the host covers: a name, a range, or,
// as the zero value, everything. No host is held by one at another place than it is
// at itself or goes outward to, so that few have to be held against each other.
type place struct {
	name string
	net  netip.Prefix
}

func byPlace(hosts []Host) map[place][]Host {
	at := make(map[place][]Host, len(hosts))
	for _, h := range hosts {
		p := place{h.name, h.net}
		at[p] = append(at[p], h)
	}
	return at
}

// outward iterates over the places of whatever may hold a host, beginning with its own.
func (h Host) outward() iter.Seq[place] {
	return func(yield func(place) bool) {
		for name, more := h.name, h.name != ""; more; {
			if !yield(place{name: name}) {
				return
			}
			_, name, more = strings.Cut(name, ".")
		}
		for bits := h.net.Bits(); bits >= 0; bits-- {
			if !yield(place{net: netip.PrefixFrom(h.net.Addr(), bits).Masked()}) {
				return
			}
		}
		yield(place{})
	}
}

// meet returns what two hosts have in common: but for their ports they are apart,
// or one holds the other.
func (h Host) meet(o Host) (Host, bool) {
	port := max(h.port, o.port)
	if h.port != o.port && min(h.port, o.port) != 0 {
		return Host{}, false
	}
	h.port, o.port = 0, 0
	switch {
	case o.holds(h):
		o = h
	case !h.holds(o):
		return Host{}, false
	}
	o.port = port
	return o, true
}

// holds reports whether one entry alone covers all of another.
func (h Host) holds(o Host) bool {
	switch {
	case h.port != 0 && h.port != o.port:
		return false
	case h.kind == hostAny:
		return o.Public()
	case h.kind == hostNet:
		return o.kind == hostNet && h.net.Bits() <= o.net.Bits() && h.net.Contains(o.net.Addr())
	case h.kind == hostName:
		return h.name == o.name && o.kind == hostName
	}
	return o.name != "" && h.holdsName(o)
}

// holdsName is holds for a wildcard and a host with a name.
func (h Host) holdsName(o Host) bool {
	switch below := len(o.name) - len(h.name); {
	case below > 0:
		return o.name[below-1] == '.' && strings.HasSuffix(o.name, h.name)
	case o.name != h.name:
		return false
	case o.kind == hostName:
		return h.kind == hostTree && !specialName(o.name)
	}
	return h.kind == hostTree || h.kind == o.kind
}

// widest sorts hosts and leaves out those that another one holds. It gives up on
// too many of them, and returns them as they are.
func widest(hosts []Host) []Host {
	slices.SortFunc(hosts, Host.compare)
	hosts = slices.Compact(hosts)
	if len(hosts) > maxMeeting {
		return hosts
	}
	at := byPlace(hosts)
	return slices.DeleteFunc(hosts, func(h Host) bool {
		for p := range h.outward() {
			if slices.ContainsFunc(at[p], func(o Host) bool { return o != h && o.holds(h) }) {
				return true
			}
		}
		return false
	})
}

func (h Host) compare(o Host) int {
	return cmp.Or(
		cmp.Compare(h.kind, o.kind),
		cmp.Compare(h.name, o.name),
		h.net.Addr().Compare(o.net.Addr()),
		cmp.Compare(h.net.Bits(), o.net.Bits()),
		cmp.Compare(h.port, o.port),
	)
}

// Any reports whether h is every public host.
func (h Host) Any() bool { return h.kind == hostAny }

// Name returns the name that h is about, and whether it covers what is beneath
// that name too. It is "" for every public host, and for addresses.
func (h Host) Name() (name string, tree bool) {
	return h.name, h.kind == hostTree || h.kind == hostBelow
}

// Port returns the port that h is limited to, 0 for any.
func (h Host) Port() uint16 { return h.port }

// Public reports whether all of h is part of the public internet, which is what
// "*" covers.
func (h Host) Public() bool {
	switch h.kind {
	case hostAny, hostTree, hostBelow:
		return true
	case hostName:
		return !specialName(h.name)
	case hostNet:
		i, in := specialRange(h.net.Addr())
		return !in && (i == len(specialRanges) || !h.net.Contains(specialRanges[i].Addr()))
	}
	return false
}
