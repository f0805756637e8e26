package capability

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxURL   = 8192 // bytes of a URL, or of a host argument
	maxName  = 253  // bytes of a host name, as in the DNS
	maxLabel = 63   // bytes of one label of it
)

// Target is the host and port that a call would reach, or the reason why no
// grant can cover it: the target is then opaque. The zero Target is opaque.
type Target struct {
	name     string     // lower case; empty for an address
	addr     netip.Addr // zero for a name; never IPv4 written as IPv6, never with a zone
	resolved netip.Addr // what the name resolved to, once that is known
	port     uint16     // 0: unknown
	opaque   string
}

// ParseURL reads the URL of a call. URL parsers disagree on what the host of an
// odd URL is, so this one takes only the URLs on which they agree: http or
// https, a host in its plainest spelling, no user name, a canonical port. Any
// other URL is opaque. The error, for a URL that cannot be read at all, is a
// [*Malformed].
func ParseURL(raw string) (Target, error) {
	if err := checkHostText(raw); err != nil {
		return Target{}, err
	}
	rest, port := cutScheme(raw)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	switch {
	case strings.Contains(raw, " "):
		return opaque("the URL holds a space"), nil
	case strings.Contains(raw, `\`):
		return opaque("the URL holds a backslash"), nil
	case !isVisible(raw) && strings.ContainsFunc(raw, func(r rune) bool { return !unicode.IsPrint(r) }):
		return opaque("the URL holds an invisible character"), nil
	case port == 0:
		return opaque("the URL does not begin with http:// or https://"), nil
	case authority == "":
		return opaque("the URL names no host"), nil
	case strings.Contains(authority, "@"):
		return opaque("the URL carries a user name"), nil
	case !strings.HasPrefix(rest, "/") && strings.Contains(rest, "@"):
		// Older parsers look for the user name beyond "?" and "#".
		return opaque("the URL holds an @ and has no slash after its host"), nil
	}
	return readTarget(authority, port), nil
}

// ParseTarget reads an argument that is a host or host:port and nothing else.
// Without a port, only grants for any port cover the target.
func ParseTarget(raw string) (Target, error) {
	if err := checkHostText(raw); err != nil {
		return Target{}, err
	}
	return readTarget(raw, 0), nil
}

// Resolved returns t with the address that its name resolved to. When that is
// a special address, a grant must name it, or a range that holds it, besides
// the one that covers the name.
func (t Target) Resolved(addr netip.Addr) Target {
	addr = addr.Unmap() // resolvers return IPv4 in either form; dialled, they are one
	switch {
	case t.name == "" && !t.addr.IsValid():
		return t
	case !addr.IsValid():
		return opaque("the host resolved to no address")
	case addr.Zone() != "":
		return opaque("the host resolved to an address with a zone")
	case t.name == "" && addr != t.addr:
		return opaque("the host is an address and resolved to another")
	case t.name != "":
		t.resolved = addr
	}
	return t
}

// Opaque returns the reason why no grant can cover t, as a clause: "the URL
// carries a user name". It is empty for a target that grants can cover.
func (t Target) Opaque() string {
	if t == (Target{}) {
		return "there is no host"
	}
	return t.opaque
}

// String returns host:port, or host when the port is unknown. Of an opaque
// target it returns the reason in parentheses, never the text that was read:
// that may hold a password.
func (t Target) String() string {
	switch {
	case t.name != "":
		return t.name + portSuffix(t.port)
	case t.addr.Is6():
		return "[" + t.addr.String() + "]" + portSuffix(t.port)
	case t.addr.Is4():
		return t.addr.String() + portSuffix(t.port)
	}
	return "(" + t.Opaque() + ")"
}

func portSuffix(port uint16) string {
	if port == 0 {
		return ""
	}
	return ":" + strconv.Itoa(int(port))
}

func opaque(reason string) Target { return Target{opaque: reason} }

// checkHostText refuses what must not reach any parser.
func checkHostText(raw string) error {
	switch {
	case raw == "":
		return &Malformed{"is empty"}
	case len(raw) > maxURL:
		return &Malformed{fmt.Sprintf("is longer than %d bytes", maxURL)}
	case !utf8.ValidString(raw):
		return &Malformed{"is not valid UTF-8"}
	case strings.Contains(raw, "\x00"):
		return &Malformed{"holds a NUL byte"}
	case strings.ContainsFunc(raw, unicode.IsControl):
		return &Malformed{"holds a control character"}
	}
	return nil
}

// cutScheme returns what follows http:// or https:// and the port it implies,
// or port 0 when raw begins with neither.
func cutScheme(raw string) (rest string, port uint16) {
	for _, s := range [...]struct {
		prefix string
		port   uint16
	}{{"https://", 443}, {"http://", 80}} {
		if n := len(s.prefix); len(raw) >= n && strings.EqualFold(raw[:n], s.prefix) {
			return raw[n:], s.port
		}
	}
	return raw, 0
}

// readTarget reads host or host:port; port stands in for one that is not there.
func readTarget(text string, port uint16) Target {
	host, written, fault := cutPort(text)
	if fault != "" {
		return opaque("the host " + fault)
	}
	name, addr, fault := readHost(host)
	if fault != "" {
		return opaque("the host " + fault)
	}
	if written != 0 {
		port = written
	}
	return Target{name: name, addr: addr, port: port}
}

// cutPort splits host:port; port 0 means that there is none. The fault, here
// and below, finishes the sentence "the host …".
func cutPort(text string) (host string, port uint16, fault string) {
	host, rest := text, ""
	if strings.HasPrefix(text, "[") {
		end := strings.LastIndexByte(text, ']') + 1
		host, rest = text[:end], text[end:]
	} else if colon := strings.IndexByte(text, ':'); colon >= 0 {
		host, rest = text[:colon], text[colon:]
	}
	if rest == "" {
		return host, 0, ""
	}
	if strings.Count(rest, ":") > 1 {
		return "", 0, "has several colons, and an IPv6 address stands in brackets"
	}
	port, ok := readPort(rest)
	if !ok {
		return "", 0, "is not followed by a plain port from 1 to 65535"
	}
	return host, port, ""
}

// readPort reads ":port" in its one canonical spelling.
func readPort(text string) (uint16, bool) {
	digits, ok := strings.CutPrefix(text, ":")
	if !ok || strings.HasPrefix(digits, "0") {
		return 0, false
	}
	port, err := strconv.ParseUint(digits, 10, 16)
	return uint16(port), err == nil
}

// readHost reads a name, an IPv4 address, or an IPv6 address in brackets.
func readHost(host string) (name string, addr netip.Addr, fault string) {
	if strings.HasPrefix(host, "[") {
		addr, fault = readIPv6(strings.TrimSuffix(host[1:], "]"))
		return "", addr, fault
	}
	if fault := nameFault(host); fault != "" {
		return "", addr, fault
	}
	// Where the last label begins with a digit, some parsers see an IPv4
	// address in octal, in hexadecimal, or in fewer than four parts.
	if last := host[strings.LastIndexByte(host, '.')+1:]; last[0] >= '0' && last[0] <= '9' {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			return "", addr, "looks like a number: an IPv4 address is four plain decimals"
		}
		return "", addr, ""
	}
	return strings.ToLower(host), addr, ""
}

func readIPv6(text string) (netip.Addr, string) {
	addr, err := netip.ParseAddr(text)
	switch {
	case err != nil || !addr.Is6():
		return netip.Addr{}, "is in brackets and not an IPv6 address"
	case addr.Zone() != "":
		return netip.Addr{}, "is an address with a zone"
	case addr.Is4In6():
		return netip.Addr{}, "is an IPv4 address written as IPv6"
	}
	return addr, ""
}

// nameFault says what keeps name from being a host name in plain spelling.
// Underscores are let through: no parser gives them a meaning, and names with
// them are in use.
func nameFault(name string) string {
	switch {
	case name == "":
		return "has an empty name"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d bytes", maxName)
	case strings.HasSuffix(name, "."):
		return "ends in a dot"
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return "has an empty label"
		case len(label) > maxLabel:
			return fmt.Sprintf("has a label longer than %d bytes", maxLabel)
		case label[0] == '-' || label[len(label)-1] == '-':
			return "has a label that begins or ends with a hyphen"
		}
		for i := range len(label) {
			if !nameByte(label[i]) {
				return "holds a character other than ASCII letters, digits, hyphens and dots"
			}
		}
	}
	return ""
}

func nameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
