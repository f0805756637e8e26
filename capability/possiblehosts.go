package capability

import (
	"iter"
	"net/netip"
	"slices"
)

// tryHosts tries every target that decides the question: of the hosts of several
// grants the narrowest is in what they have in common, or nothing is.
func (v variant) tryHosts(plain []string) bool {
	var tables []*table
	var need asked
	for _, n := range v.asked {
		if n.entry.Verb.shape() == shapeHost {
			tables, need = append(tables, v.links(n.entry.Verb)...), n
		}
	}
	i, texts := slices.Index(v.blanks, need.parts[0].Blank), slices.Clone(plain)
	ports := portsOf(tables)
	for _, t := range tables {
		for x := range t.targets() {
			for _, x.port = range ports {
				if slices.ContainsFunc(tables, func(t *table) bool { _, ok := t.hosts.find(x); return !ok }) {
					continue
				}
				if texts[i] = x.String(); need.parts[0].Name == "url" {
					texts[i] = x.url()
				}
				if v.check(texts) {
					return true
				}
			}
		}
	}
	return false
}

// portsOf returns the ports that some grant names, behind the one that stands for
// all others.
func portsOf(tables []*table) []uint16 {
	ports := []uint16{443}
	for _, t := range tables {
		for _, g := range t.held {
			for _, h := range g.hosts {
				if h.port != 0 && !slices.Contains(ports, h.port) {
					ports = append(ports, h.port)
				}
			}
		}
	}
	return ports
}

// targets visits one target for every way in which a host of the table can be the
// narrowest of several.
func (t *table) targets() iter.Seq[Target] {
	return func(yield func(Target) bool) {
		for _, g := range t.held {
			for _, h := range g.hosts {
				if g.inert == "" && !h.targets(yield) {
					return
				}
			}
		}
	}
}

func (h Host) targets(yield func(Target) bool) bool {
	switch h.kind {
	case hostAny:
		return yield(Target{name: "example.com"})
	case hostNet:
		public, ok := publicAddr(h.net)
		return yield(Target{addr: h.net.Addr()}) && (!ok || yield(Target{addr: public}))
	case hostName:
		return yield(Target{name: h.name})
	}
	return yield(Target{name: "x." + h.name}) && yield(Target{name: h.name})
}

// publicAddr returns the first address of a range that is not special.
func publicAddr(net netip.Prefix) (netip.Addr, bool) {
	at := net.Addr()
	for net.Contains(at) {
		i, special := specialRange(at)
		if !special {
			return at, true
		}
		at = lastAddr(specialRanges[i]).Next()
	}
	return netip.Addr{}, false
}

// url writes a target as the plainest URL of it.
func (t Target) url() string {
	switch {
	case t.port == 443:
		t.port = 0
	case t.port == 80:
		t.port = 0
		return "http://" + t.String() + "/"
	}
	return "https://" + t.String() + "/"
}
