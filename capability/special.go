package capability

import (
	"net/netip"
	"slices"
	"strings"
)

// specialRanges are the addresses no wildcard covers, in order and apart from
// one another. They follow the IANA special-purpose registries, and go beyond
// them where a registry says "global" but no service of the public internet is
// there; of IPv6 only 2000::/3 has been given out at all.
var specialRanges = [...]netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),        // this network; 0.0.0.0 reaches loopback
	netip.MustParsePrefix("10.0.0.0/8"),       // private
	netip.MustParsePrefix("100.64.0.0/10"),    // carrier-grade NAT; 100.100.100.200 is metadata
	netip.MustParsePrefix("127.0.0.0/8"),      // loopback
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host, with its metadata
	netip.MustParsePrefix("169.254.0.0/16"),   // link-local; 169.254.169.254 is metadata
	netip.MustParsePrefix("172.16.0.0/12"),    // private
	netip.MustParsePrefix("192.0.0.0/24"),     // protocol assignments; 192.0.0.192 is metadata
	netip.MustParsePrefix("192.0.2.0/24"),     // documentation
	netip.MustParsePrefix("192.88.99.0/24"),   // 6to4 relays
	netip.MustParsePrefix("192.168.0.0/16"),   // private
	netip.MustParsePrefix("198.18.0.0/15"),    // benchmarks
	netip.MustParsePrefix("198.51.100.0/24"),  // documentation
	netip.MustParsePrefix("203.0.113.0/24"),   // documentation
	netip.MustParsePrefix("224.0.0.0/4"),      // multicast
	netip.MustParsePrefix("240.0.0.0/4"),      // reserved, and broadcast
	netip.MustParsePrefix("::/3"),             // unspecified, loopback, IPv4 inside IPv6, NAT64
	netip.MustParsePrefix("2001::/23"),        // protocol assignments: Teredo, ORCHID, benchmarks
	netip.MustParsePrefix("2001:db8::/32"),    // documentation
	netip.MustParsePrefix("2002::/16"),        // 6to4
	netip.MustParsePrefix("3fff::/20"),        // documentation
	netip.MustParsePrefix("4000::/2"),         // not given out
	netip.MustParsePrefix("8000::/1"),         // unique local (fd00:ec2::254 is metadata), link-local, multicast
}

// Special reports whether a is outside the public internet: loopback, private,
// link-local, shared, multicast, reserved, a cloud's metadata service, or an
// IPv6 address that stands for an IPv4 one. No wildcard covers such an address.
// What is no address at all, or has a zone, is special too.
func Special(a netip.Addr) bool {
	_, in := specialRange(a)
	return in || !a.IsValid() || a.Zone() != ""
}

// specialRange returns the place in specialRanges of the range that holds a,
// or, when none does, of the first range after a.
func specialRange(a netip.Addr) (int, bool) {
	return slices.BinarySearchFunc(specialRanges[:], a, func(p netip.Prefix, a netip.Addr) int {
		if p.Contains(a) {
			return 0
		}
		return p.Addr().Compare(a)
	})
}

// specialName reports whether name is one that no wildcard covers. A single
// label is completed from the search list of whoever resolves it.
func specialName(name string) bool {
	dot := strings.LastIndexByte(name, '.')
	return dot < 0 || localZone(name[dot+1:])
}

// localZone reports whether names that end in the label zone are kept out of
// the public DNS: by RFC 6761, 6762 (with its appendix G), 7686, 8375 and 9476,
// by ICANN, or by a resolver that clusters commonly run.
func localZone(zone string) bool {
	switch zone {
	case "alt", "arpa", "corp", "home", "internal", "intranet", "invalid", "lan", "local",
		"localdomain", "localhost", "mail", "onion", "private", "svc", "test":
		return true
	}
	return false
}
