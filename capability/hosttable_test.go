package capability_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"capgate/capability"
)

// newHostTable returns the table of hosts, which are numbered from 1.
func newHostTable(t testing.TB, hosts string) *capability.HostTable {
	t.Helper()
	var table capability.HostTable
	for i, text := range strings.Fields(hosts) {
		table.Add(newHost(t, text), int32(i+1))
	}
	return &table
}

// newHost reads a host; one of net.connect is marked "connect=".
func newHost(t testing.TB, text string) capability.Host {
	t.Helper()
	parse := capability.ParseHost
	text, connect := strings.CutPrefix(text, "connect=")
	if connect {
		parse = capability.ParseConnectHost
	}
	h, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostTableFind(t *testing.T) {
	for _, tc := range []struct {
		hosts, target string
		want          int32 // 0: not found
	}{
		{"*.github.com", "a.b.github.com:1", 1},
		{"*.github.com", "github.com", 1},
		{"*.github.com:443", "github.com", 0}, // an unknown port
		{"*.github.com:443", "github.com:443", 1},
		{"*.com", "com", 0},
		{"*.com", "github.com", 1},
		{"com *.com", "com", 1},
		{"*", "8.8.8.8", 1},
		{"*", "[2606:4700::1]:443", 1},
		{"*:443", "8.8.8.8:80", 0},
		{"*", "com", 0},
		{"*", "db.internal", 0},
		{"* db.internal localhost:1", "db.internal", 2},
		{"* db.internal localhost:1", "localhost:1", 3},
		{"* db.internal localhost:1", "localhost:2", 0},
		{"127.0.0.1", "localhost", 0},
		{"0.0.0.0/0", "[::1]", 0},
		{"::/0", "[::1]", 1},
		{"::/0", "10.0.0.1", 0},
		{"::/0", "example.com", 0},
		{"10.0.0.0/8:22", "10.200.0.1:22", 1},
		{"10.0.0.0/8:22", "10.200.0.1:23", 0},
		// The most specific grant is the one that is named, of equals the first.
		{"* *.com *.github.com api.github.com", "api.github.com:1", 4},
		{"* *.com *.github.com api.github.com", "x.github.com:1", 3},
		{"* *.com *.github.com api.github.com", "x.com:1", 2},
		{"* *.com *.github.com api.github.com:443", "api.github.com:1", 3},
		{"* 0.0.0.0/0 8.0.0.0/8 8.8.8.8", "8.8.8.8", 4},
		{"0.0.0.0/0 8.0.0.0/8 8.8.8.8:53", "8.8.8.8:54", 2},
		{"* x.com x.com:1 x.com x.com:1", "x.com:1", 2},
		{"x.com:1 x.com:1", "x.com:1", 1},
	} {
		if n, ok := newHostTable(t, tc.hosts).Find(hostTarget(t, tc.target)); ok != (tc.want > 0) || ok && n != tc.want {
			t.Errorf("%s under %s: grant %d, %v, want %d", tc.target, tc.hosts, n, ok, tc.want)
		}
	}
	if _, ok := newHostTable(t, "* ::/0 0.0.0.0/0").Find(capability.Target{}); ok {
		t.Error("the zero Target is covered")
	}
}

func TestResolved(t *testing.T) {
	for _, tc := range []struct {
		hosts, target, addr string
		want                bool
	}{
		{"*.example.com", "a.example.com:80", "93.184.216.34", true},
		{"*.example.com", "a.example.com:80", "::ffff:93.184.216.34", true}, // as resolvers return it
		{"*.example.com", "a.example.com:80", "127.0.0.1", false},
		{"*.example.com", "a.example.com:80", "::ffff:127.0.0.1", false},
		{"*.example.com", "a.example.com:80", "64:ff9b::7f00:1", false},
		{"*.example.com", "a.example.com:80", "fe80::1%eth0", false},
		{"*.example.com ::/0", "a.example.com:80", "fe80::1%eth0", false},
		{"*", "a.example.com:80", "169.254.169.254", false},
		{"* 10.0.0.0/8", "a.example.com:80", "10.0.0.1", true},
		{"* 10.0.0.0/8", "a.example.com:80", "::ffff:10.0.0.1", true},
		{"* 10.0.0.0/8:443", "a.example.com:80", "10.0.0.1", false},
		{"* 10.0.0.0/8:443", "a.example.com:443", "10.0.0.1", true},
		{"10.0.0.0/8", "a.example.com:443", "10.0.0.1", false}, // the name is not granted
		{"localhost", "localhost:3000", "127.0.0.1", false},
		{"localhost 127.0.0.1", "localhost:3000", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.1:1", "127.0.0.1", true},
		{"*", "8.8.8.8:1", "8.8.8.8", true},
		{"* 127.0.0.1", "8.8.8.8:1", "127.0.0.1", false},
		{"*", "8.8.8.8:1", "8.8.4.4", false}, // an address resolves to itself
	} {
		x := hostTarget(t, tc.target).Resolved(netip.MustParseAddr(tc.addr))
		if _, ok := newHostTable(t, tc.hosts).Find(x); ok != tc.want {
			t.Errorf("%s at %s under %s: %v, want %v", tc.target, tc.addr, tc.hosts, ok, tc.want)
		}
	}
	for addr, want := range map[string]string{"93.184.216.34": "net.get{hosts=[a.example.com]}", "10.0.0.1": ""} {
		spec, ok := capability.Net("net.get", hostTarget(t, "a.example.com:80").Resolved(netip.MustParseAddr(addr))).Smallest(capability.Root{})
		if ok != (want != "") || ok && spec.String() != want {
			t.Errorf("the smallest grant of a name that leads to %s is %v, want %q", addr, spec, want)
		}
	}
	if x := hostTarget(t, "example.com").Resolved(netip.Addr{}); x.Opaque() != "the host resolved to no address" {
		t.Errorf("a name without an address is %v", x)
	}
	odd, err := capability.ParseURL("ftp://example.com")
	if err != nil || odd.Resolved(netip.MustParseAddr("8.8.8.8")) != odd {
		t.Errorf("an address makes of %v another target", odd)
	}
}

func TestHostTableCovers(t *testing.T) {
	for _, tc := range []struct{ held, given, witness string }{
		{"", "github.com", "github.com"},
		{"", "github.com:443", "github.com:443"},
		{"github.com", "github.com:443", ""},
		{"github.com:443", "github.com", "github.com:8443"},
		{"github.com:8443", "github.com", "github.com:8444"},
		{"github.com:443", "github.com:80", "github.com:80"},
		{"*.github.com", "*.api.github.com", ""},
		{"*.github.com", "*.github.com", ""},
		{"github.com", "*.github.com", "evil.github.com"},
		{"github.com evil.github.com evil2.github.com", "*.github.com", "evil3.github.com"},
		{"*.evil.github.com", "*.github.com", "evil2.github.com"},
		{"*.github.com:443", "*.github.com", "evil.github.com:8443"},
		{"*.com:443 *.github.com:80", "*.github.com:443", ""},
		{"*", "*.com", ""},
		{"*", "*.github.com:443", ""},
		{"*", "com", "com"},
		{"*", "localhost:80", "localhost:80"},
		{"*:443", "*", "evil.example:8443"},
		{"*.example", "*", "evil.example2"},
		{"evil.example", "*", "evil.example2"},
		{"*.com", "*:80", "evil.example:80"},
		{"0.0.0.0/0 ::/0", "*", "evil.example"},

		// net.connect leaves the name itself out.
		{"connect=*.x.com:1", "*.x.com:1", "x.com:1"},
		{"*.x.com", "connect=*.x.com:1", ""},
		{"connect=*.com:1", "*.x.com:1", ""},
		{"connect=*.com:1", "*.com:1", ""}, // the name com is not in "*.com" anyway

		{"", "10.0.0.0/8", "10.0.0.1"},
		{"", "fd00::/8:1", "[fd00::1]:1"},
		{"", "10.1.2.3", "10.1.2.3"},
		{"10.0.0.0/9 10.128.0.0/9", "10.0.0.0/8", ""},
		{"10.0.0.0/9 10.128.0.0/10", "10.0.0.0/8", "10.192.0.0"},
		{"10.0.0.0/9 10.0.0.0/16 10.64.0.0/16 10.128.0.0/9:1", "10.0.0.0/8:1", ""},
		{"10.0.0.0/9 10.128.0.0/9:1", "10.0.0.0/8", "10.128.0.0:8443"},
		{"10.0.0.0", "10.0.0.0/31", "10.0.0.1"},
		{"10.0.0.1", "10.0.0.0/31", "10.0.0.0"},
		{"10.0.0.0/8", "10.0.0.0/7", "11.0.0.0"},
		{"10.0.0.0/8 *", "10.0.0.0/7", ""},
		{"*", "8.0.0.0/8", ""},
		{"*", "8.0.0.0/6", "10.0.0.0"},
		{"*:443 10.0.0.0/8", "8.0.0.0/6", "8.0.0.1:8443"},
		{"*:443 10.0.0.0/8", "8.0.0.0/6:443", ""},
		{"* 10.0.0.0/8", "0.0.0.0/0", "0.0.0.1"},
		{"0.0.0.0/0", "0.0.0.0/0", ""},
		{"0.0.0.0/1 128.0.0.0/1", "0.0.0.0/0", ""},
		{"0.0.0.0/0", "::/0", "[::1]"},
		{"::/1 8000::/1", "::/0", ""},
		{"* ::/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20 4000::/2 8000::/1", "::/0", ""},
		{"* ::/3 2001::/23 2001:db8::/32 2002::/16 3fff::/20 4000::/2 c000::/2", "::/0", "[8000::]"},
		// All around IPv4 written as IPv6, which is nobody's to allow.
		{"::/81 ::8000:0:0/82 ::c000:0:0/83 ::e000:0:0/84 ::f000:0:0/85 ::f800:0:0/86 ::fc00:0:0/87 " +
			"::fe00:0:0/88 ::ff00:0:0/89 ::ff80:0:0/90 ::ffc0:0:0/91 ::ffe0:0:0/92 ::fff0:0:0/93 " +
			"::fff8:0:0/94 ::fffc:0:0/95 ::fffe:0:0/96", "::/80", ""},
	} {
		if witness, ok := newHostTable(t, tc.held).Covers(newHost(t, tc.given)); witness != tc.witness || ok != (tc.witness == "") {
			t.Errorf("%s in %s: %v, witness %q, want %q", tc.given, tc.held, ok, witness, tc.witness)
		}
	}
}

// Single ports do not add up to any port; the witness is then the one target
// they leave, that of an unknown port.
func TestHostCoversEveryPort(t *testing.T) {
	var held capability.HostTable
	for port := range 1<<16 - 1 {
		held.Add(newHost(t, fmt.Sprintf("x.com:%d", port+1)), 1)
	}
	if witness, ok := held.Covers(newHost(t, "x.com")); ok || witness != "x.com" {
		t.Errorf("every single port: %v, witness %q", ok, witness)
	}
}

// hostModel is a host as the reference model reads it.
type hostModel struct {
	host    string
	port    uint16
	connect bool
}

func (p hostModel) String() string {
	s := p.host
	if p.port != 0 {
		s += fmt.Sprintf(":%d", p.port)
	}
	if p.connect {
		s = "connect=" + s
	}
	return s
}

// allows is the meaning of one host, written down as plainly as can be.
func (p hostModel) allows(x capability.Target) bool {
	name, addr, port := capability.PartsOf(x)
	if p.port != 0 && p.port != port {
		return false
	}
	net, err := netip.ParsePrefix(p.host)
	if err == nil {
		return net.Contains(addr)
	}
	if ip, err := netip.ParseAddr(strings.Trim(p.host, "[]")); err == nil {
		return ip == addr
	}
	single := !strings.Contains(name, ".")
	base, wild := strings.CutPrefix(p.host, "*.")
	switch {
	case p.host == "*" && addr.IsValid():
		return !capability.Special(addr)
	case p.host == "*":
		return !single && !strings.HasSuffix(name, ".local")
	case wild:
		return strings.HasSuffix(name, "."+base) || name == base && !p.connect && !single
	}
	return name == p.host
}

// hostModels are hosts that nest, meet and cross the border of the public ones.
func hostModels() (models []hostModel) {
	for _, host := range strings.Fields("* *.com *.a.com *.b.a.com com a.com b.a.com c.b.a.com evil.a.com evil.com x.local local " +
		"0.0.0.0/0 8.0.0.0/6 8.0.0.0/7 10.0.0.0/7 10.0.0.0/8 10.0.0.0/9 10.128.0.0/9 10.128.0.0/10 10.192.0.0/10 11.0.0.0/8 " +
		"10.0.0.0 10.0.0.1 10.0.0.0/31 ::/0 ::/1 8000::/1 [::1] [::] 2001::/16 2001:db8::/32 2001:db8::/33 2001:db8:8000::/33") {
		for _, port := range []uint16{0, 1, 2} {
			models = append(models, hostModel{host, port, false})
			if port > 0 && strings.HasPrefix(host, "*.") {
				models = append(models, hostModel{host, port, true})
			}
		}
	}
	return models
}

// hostUniverse holds a target of every kind that the models can tell apart:
// names on each side of each, both ends of each range and their neighbours.
func hostUniverse(models []hostModel) (universe []capability.Target) {
	for _, name := range strings.Fields("com local x.local y.local z.com a.com b.a.com c.b.a.com d.b.a.com y.d.a.com " +
		"evil.com evil.a.com y.evil.a.com evil.example y.x z.y.a.com") {
		universe = append(universe, capability.TargetOf(name, netip.Addr{}, 0))
	}
	ranges := slices.Clone(capability.SpecialRanges())
	for _, m := range models {
		if net, err := netip.ParsePrefix(m.host); err == nil {
			ranges = append(ranges, net)
		}
	}
	addrs := map[netip.Addr]bool{}
	for _, text := range strings.Fields("10.0.0.0 10.0.0.1 10.0.0.2 :: ::1 ::2 ::fffe:ffff:ffff ::1:0:0:0") {
		addrs[netip.MustParseAddr(text)] = true
	}
	for _, net := range ranges {
		last := net.Addr().AsSlice()
		for i := net.Bits(); i < len(last)*8; i++ {
			last[i/8] |= 1 << (7 - i%8)
		}
		end, _ := netip.AddrFromSlice(last)
		addrs[net.Addr().Prev()], addrs[net.Addr()], addrs[end], addrs[end.Next()] = true, true, true, true
	}
	delete(addrs, netip.Addr{}) // before the first, after the last
	for addr := range addrs {
		universe = append(universe, capability.TargetOf("", addr, 0))
	}
	return universe
}

// TestHostCoversIsExact compares random tables with the reference model.
func TestHostCoversIsExact(t *testing.T) {
	models := hostModels()
	universe := hostUniverse(models)
	rng := rand.New(rand.NewPCG(1, 2))
	covered := 0
	const rounds = 2000
	for range rounds {
		given := models[rng.IntN(len(models))]
		held := make([]hostModel, rng.IntN(7))
		for i := range held {
			held[i] = models[rng.IntN(len(models))]
		}
		text := fmt.Sprint(held)
		if compareCovers(t, newHostTable(t, text[1:len(text)-1]), held, given, universe) {
			covered++
		}
	}
	if covered < rounds/10 || covered > rounds*9/10 {
		t.Errorf("%d of the %d pairs are covered: the models are badly chosen", covered, rounds)
	}
}

// compareCovers compares have, which is the table of held, with the model.
func compareCovers(t *testing.T, have *capability.HostTable, held []hostModel, given hostModel, universe []capability.Target) bool {
	t.Helper()
	want := true
	for _, x := range universe {
		for port := range uint16(4) { // 0 is unknown, 3 is in no model
			name, addr, _ := capability.PartsOf(x)
			x := capability.TargetOf(name, addr, port)
			union := slices.ContainsFunc(held, func(m hostModel) bool { return m.allows(x) })
			if _, ok := have.Find(x); ok != union {
				t.Fatalf("%v in %v: found %v", x, held, ok)
			}
			want = want && (!given.allows(x) || union)
		}
	}
	witness, ok := have.Covers(newHost(t, given.String()))
	if ok != want {
		t.Fatalf("%v in %v: %v, witness %q", given, held, ok, witness)
	}
	if !ok {
		x := hostTarget(t, witness)
		if _, inside := have.Find(x); inside || !given.allows(x) {
			t.Fatalf("%v in %v: witness %q, inside %v", given, held, witness, inside)
		}
	}
	return ok
}

// FuzzHostCovers draws targets from all the hosts in play: what a covered host
// allows is found, and a witness is allowed by the host and not found.
func FuzzHostCovers(f *testing.F) {
	f.Add("*.github.com 10.0.0.0/9 10.128.0.0/9", "10.0.0.0/8:443")
	f.Add("* github.com:443 *.x.y", "*.com")
	f.Add("evil.a.com *.a.com:1 *:2", "*.a.com:1")
	f.Add("::/1 8000::/1 [::1]:1", "::/0")
	f.Fuzz(func(t *testing.T, held, given string) {
		a, err := capability.ParseHost(given)
		if err != nil {
			return
		}
		var have, alone capability.HostTable
		alone.Add(a, 1)
		ports := []string{"", ":9"}
		hosts := []string{"evil.example"}
		for _, text := range append(strings.Fields(held), given) {
			h, err := capability.ParseHost(text)
			if err != nil {
				continue
			}
			if text != given || strings.Contains(held, given) {
				have.Add(h, 1)
			}
			near, port := targetsNear(h)
			hosts = append(hosts, near...)
			ports = append(ports, port)
		}
		witness, ok := have.Covers(a)
		if !ok {
			x, err := capability.ParseTarget(witness)
			_, allowed := alone.Find(x)
			if _, inside := have.Find(x); err != nil || inside || !allowed {
				t.Fatalf("%v in %q: witness %q, allowed %v, inside %v", a, held, witness, allowed, inside)
			}
			return
		}
		for _, host := range hosts {
			for _, port := range ports {
				x, err := capability.ParseTarget(host + port)
				_, allowed := alone.Find(x)
				if _, inside := have.Find(x); err == nil && allowed && !inside {
					t.Fatalf("%v in %q is said to be covered, and %v is not", a, held, x)
				}
			}
		}
	})
}

// targetsNear returns hosts at and around a granted one, and its port with the
// colon, "" if it has none.
func targetsNear(h capability.Host) (hosts []string, port string) {
	text := h.String()
	if colon := strings.LastIndexByte(text, ':'); colon > 0 {
		if _, err := capability.ParseConnectHost(text); err == nil {
			text, port = text[:colon], text[colon:]
		}
	}
	base := strings.TrimPrefix(text, "*.")
	hosts = append(hosts, base, "zz."+base, "y.zz."+base)
	if net, err := netip.ParsePrefix(text); err == nil {
		for _, a := range []netip.Addr{net.Addr(), net.Addr().Next(), net.Addr().Prev()} {
			hosts = append(hosts, a.String(), "["+a.String()+"]")
		}
	}
	return hosts, port
}

// mixedHosts returns a table of n hosts of all kinds.
func mixedHosts(b testing.TB, n int) *capability.HostTable {
	var have capability.HostTable
	for i := range n {
		text := [...]string{
			fmt.Sprintf("h%d.example.com", i),
			fmt.Sprintf("*.zone%d.example.org:443", i),
			fmt.Sprintf("10.%d.%d.0/24", i>>8&255, i&255),
			fmt.Sprintf("[2606:4700::%x]:8443", i&0xffff),
			fmt.Sprintf("172.%d.0.0/16", 16+i%16),
		}[i%5]
		have.Add(newHost(b, text), int32(i))
	}
	have.Add(newHost(b, "*.github.com"), int32(n))
	have.Add(newHost(b, "10.0.0.0/8:443"), int32(n))
	return &have
}

var hostLookups = []struct {
	name, target string
	want         bool
}{
	{"name", "api.github.com:443", true},
	{"address", "10.200.0.1:443", true},
	{"miss", "a.b.evil.com:443", false},
}

func TestHostFindAllocatesNothing(t *testing.T) {
	have := mixedHosts(t, 50)
	x := hostTarget(t, "api.github.com:443").Resolved(netip.MustParseAddr("10.0.0.1"))
	for _, x := range []capability.Target{x, hostTarget(t, "10.200.0.1:443"), hostTarget(t, "[::1]:80"), hostTarget(t, "a.b.evil.com:1")} {
		if n := testing.AllocsPerRun(100, func() { have.Find(x) }); n != 0 {
			t.Errorf("a look-up of %v allocates %v times", x, n)
		}
	}
}

func BenchmarkHostTableFind(b *testing.B) {
	for _, n := range []int{10, 50, 1000, 100_000} {
		have := mixedHosts(b, n)
		for _, l := range hostLookups {
			x := hostTarget(b, l.target)
			b.Run(fmt.Sprintf("%s/%d", l.name, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, ok := have.Find(x); ok != l.want {
						b.Fatal(ok)
					}
				}
			})
		}
	}
}

func BenchmarkHostTableCovers(b *testing.B) {
	have, given := mixedHosts(b, 50), newHost(b, "*.api.github.com:443")
	for b.Loop() {
		if witness, ok := have.Covers(given); !ok {
			b.Fatal(witness)
		}
	}
}
