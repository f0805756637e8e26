package capability

import (
	"fmt"
	"net/netip"
	"strings"
)

// maxHost is the longest text of a host: a name with "*." and a port.
const maxHost = len("*.") + maxName + len(":65535")

// maxBase is the longest name a wildcard may stand before. It leaves room for a
// whole label, so that a wildcard always covers more names than any list does.
const maxBase = maxName - maxLabel - 1

// Host is one entry of a hosts: scope: "*", "*.name", a name, an address or a
// CIDR, for one port or for any. It is a comparable value; the zero Host is
// invalid and covers nothing.
type Host struct {
	kind hostKind
	port uint16       // 0: any
	name string       // of hostName, hostTree and hostBelow; lower case
	net  netip.Prefix // of hostNet; masked
}

type hostKind uint8

const (
	_         hostKind = iota
	hostAny            // every public host
	hostTree           // a name and all beneath it
	hostBelow          // all beneath a name
	hostName
	hostNet
)

// ParseHost reads one entry of the hosts: of net.get, net.post, net.put and
// net.delete: "*" is any public host, "*.name" is the name and all beneath it,
// and no port is any port. An IPv6 address stands in brackets, an IPv6 CIDR
// does not.
func ParseHost(text string) (Host, error) {
	return newHost(text, hostTree)
}

// parseConnectHost reads one entry of net.connect: "*.name" leaves the name
// itself out, and a port is required.
func parseConnectHost(text string) (Host, error) {
	h, err := newHost(text, hostBelow)
	if err == nil && h.port == 0 {
		return Host{}, fmt.Errorf("host %q has no port, and net.connect needs one: write %q for port 443", text, text+":443")
	}
	return h, err
}

// String returns the canonical text of h, from which its parser returns h.
func (h Host) String() string {
	host := h.name
	switch h.kind {
	case hostAny:
		host = "*"
	case hostTree, hostBelow:
		host = "*." + h.name
	case hostName:
	case hostNet:
		host = h.net.String()
		if h.net.IsSingleIP() {
			host = Target{addr: h.net.Addr()}.String()
		}
	default:
		return "invalid Host"
	}
	return host + portSuffix(h.port)
}

// MarshalText returns h.String(). There is no UnmarshalText, because the verb
// says which of the two parsers reads an entry.
func (h Host) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

func newHost(text string, wildcard hostKind) (Host, error) {
	if len(text) > maxHost {
		return Host{}, fmt.Errorf("a host is longer than %d bytes", maxHost)
	}
	h, fault := readPattern(text, wildcard)
	if fault != "" {
		return Host{}, fmt.Errorf("host %q %s", text, fault)
	}
	return h, nil
}

func readPattern(text string, wildcard hostKind) (Host, string) {
	const alone = `: write the host alone, as in "github.com"`
	switch {
	case strings.Contains(text, "://"):
		return Host{}, "holds a scheme" + alone
	case strings.Contains(text, "@"):
		return Host{}, "holds a user name" + alone
	case strings.Contains(text, "/"):
		return readNetwork(text)
	}
	host, port, fault := cutPort(text)
	if fault != "" {
		return Host{}, fault
	}
	if host == "*" {
		return Host{kind: hostAny, port: port}, ""
	}
	base, wild := strings.CutPrefix(host, "*.")
	if strings.Contains(base, "*") {
		return Host{}, `holds a * within a name: write "*" alone, or before a whole name, as in "*.github.com"`
	}
	name, addr, fault := readHost(base)
	switch {
	case fault != "":
		return Host{}, fault
	case !wild && name == "":
		return Host{kind: hostNet, port: port, net: netip.PrefixFrom(addr, addr.BitLen())}, ""
	case !wild:
		return Host{kind: hostName, port: port, name: name}, ""
	}
	return Host{kind: wildcard, port: port, name: name}, wildcardFault(name)
}

// wildcardFault says what keeps "*." from standing before name, which is empty
// for an address.
func wildcardFault(name string) string {
	switch {
	case name == "":
		return `is a wildcard over an address: write a range, as in "10.0.0.0/8"`
	case localZone(name[strings.LastIndexByte(name, '.')+1:]):
		return "is a wildcard over names of the local network: write each name in full"
	case len(name) > maxBase:
		return fmt.Sprintf("is a wildcard over a name longer than %d bytes", maxBase)
	}
	return ""
}

// readNetwork reads addr/bits with an optional port.
func readNetwork(text string) (Host, string) {
	slash := strings.IndexByte(text, '/')
	cidr, port := text, uint16(0)
	if colon := strings.IndexByte(text[slash:], ':'); colon >= 0 {
		var ok bool
		if port, ok = readPort(text[slash+colon:]); !ok {
			return Host{}, "is not followed by a plain port from 1 to 65535"
		}
		cidr = text[:slash+colon]
	}
	net, err := netip.ParsePrefix(cidr)
	switch {
	case err != nil:
		return Host{}, `holds a slash and is not a range of addresses: write "github.com", "10.0.0.0/8" or "fd00::/8"`
	case net.Addr().Is4In6():
		return Host{}, "is a range of IPv4 addresses written as IPv6: write it as IPv4"
	case net != net.Masked():
		return Host{}, fmt.Sprintf("does not begin at the start of its range: write %q", net.Masked())
	}
	return Host{kind: hostNet, port: port, net: net}, ""
}
