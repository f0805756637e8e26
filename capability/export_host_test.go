package capability

import "net/netip"

// HostTable lets the tests reach hostTable.
type HostTable struct{ t hostTable }

func (t *HostTable) Add(h Host, n int32)          { t.t.add(h, n) }
func (t *HostTable) Find(x Target) (int32, bool)  { return t.t.find(x) }
func (t *HostTable) Covers(a Host) (string, bool) { return t.t.covers(a) }
func SpecialRanges() []netip.Prefix               { return specialRanges[:] }

// TargetOf makes a target without parsing.
func TargetOf(name string, addr netip.Addr, port uint16) Target {
	return Target{name: name, addr: addr, port: port}
}

// PartsOf returns what TargetOf was given.
func PartsOf(x Target) (name string, addr netip.Addr, port uint16) { return x.name, x.addr, x.port }

// ParseConnectHost is parseConnectHost.
func ParseConnectHost(text string) (Host, error) { return parseConnectHost(text) }
