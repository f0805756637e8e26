package capability_test

import (
	"fmt"
	"strings"
	"testing"

	"capgate/capability"
)

func TestParseHost(t *testing.T) {
	long := strings.Repeat("a.", 94) + "b" // 189 bytes, the longest base of a wildcard
	for _, tc := range []struct{ text, want string }{
		{"*", "*"},
		{"*:443", "*:443"},
		{"github.com", "github.com"},
		{"GitHub.COM:8443", "github.com:8443"},
		{"*.GitHub.com", "*.github.com"},
		{"*.github.com:443", "*.github.com:443"},
		{"*.com", "*.com"},
		{"*." + long, "*." + long},
		{"xn--gthub-n4a.com", "xn--gthub-n4a.com"},
		{"_dmarc.my_site.example.com", "_dmarc.my_site.example.com"},
		{"localhost:3000", "localhost:3000"},
		{"metadata.google.internal", "metadata.google.internal"},
		{"3com.com", "3com.com"},
		{"8.8.8.8", "8.8.8.8"},
		{"127.0.0.1:65535", "127.0.0.1:65535"},
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"10.0.0.0/8:22", "10.0.0.0/8:22"},
		{"10.1.2.3/32", "10.1.2.3"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"[::1]", "[::1]"},
		{"[0:0::0001]:8080", "[::1]:8080"},
		{"[FE80::1]", "[fe80::1]"},
		{"fd00::/8", "fd00::/8"},
		{"fd00::/8:443", "fd00::/8:443"},
		{"::1/128:1", "[::1]:1"},
		{"::/0", "::/0"},
	} {
		h, err := capability.ParseHost(tc.text)
		if err != nil {
			t.Errorf("ParseHost(%q): %v", tc.text, err)
			continue
		}
		if text, err := h.MarshalText(); string(text) != tc.want || err != nil {
			t.Errorf("ParseHost(%q) = %q, %v, want %q", tc.text, text, err, tc.want)
		}
		if again, err := capability.ParseHost(h.String()); again != h || err != nil {
			t.Errorf("ParseHost(%q) = %v, %v, want %v", h, again, err, h)
		}
	}
}

const (
	faultScheme   = `holds a scheme: write the host alone, as in "github.com"`
	faultUser     = `holds a user name: write the host alone, as in "github.com"`
	faultPath     = `holds a slash and is not a range of addresses: write "github.com", "10.0.0.0/8" or "fd00::/8"`
	faultStar     = `holds a * within a name: write "*" alone, or before a whole name, as in "*.github.com"`
	faultLocal    = "is a wildcard over names of the local network: write each name in full"
	faultPort     = "is not followed by a plain port from 1 to 65535"
	faultColons   = "has several colons, and an IPv6 address stands in brackets"
	faultNumber   = "looks like a number: an IPv4 address is four plain decimals"
	faultBrackets = "is in brackets and not an IPv6 address"
	faultChar     = "holds a character other than ASCII letters, digits, hyphens and dots"
	faultHyphen   = "has a label that begins or ends with a hyphen"
	faultNoLabel  = "has an empty label"
	faultNoName   = "has an empty name"
)

// refusedHosts are not hosts; each with the end of the sentence that says why.
var refusedHosts = [...]struct{ text, want string }{
	{"https://github.com", faultScheme},
	{"user@github.com", faultUser},
	{"github.com/x", faultPath},
	{"github.com/", faultPath},
	{"10.0.0.0/33", faultPath},
	{"10.0.0.0/08", faultPath},
	{"10.0.0/8", faultPath},
	{"[fd00::]/8", faultPath},
	{"fe80::%eth0/10", faultPath},
	{"*github.com", faultStar},
	{"git*.com", faultStar},
	{"a.*.b", faultStar},
	{"*.*.x", faultStar},
	{"**", faultStar},
	{"github.*", faultStar},
	{"*.localhost", faultLocal},
	{"*.internal", faultLocal},
	{"*.corp.INTERNAL:443", faultLocal},
	{"*.in-addr.arpa", faultLocal},
	{"github.com:", faultPort},
	{"github.com:*", faultPort},
	{"github.com:0", faultPort},
	{"github.com:080", faultPort},
	{"github.com:+80", faultPort},
	{"github.com:65536", faultPort},
	{"10.0.0.0/8:x", faultPort},
	{"[::1]evil.com", faultPort},
	{"[::1", faultColons},
	{"::1", faultColons},
	{"github.com:1:2", faultColons},
	{"127.1", faultNumber},
	{"0x7f.1", faultNumber},
	{"0x7f000001", faultNumber},
	{"2130706433", faultNumber},
	{"0177.0.0.1", faultNumber},
	{"1.2.3.4.5", faultNumber},
	{"256.0.0.1", faultNumber},
	{"*.1", faultNumber},
	{"github.com.1", faultNumber},
	{"[github.com]", faultBrackets},
	{"[10.0.0.1]", faultBrackets},
	{"[]", faultBrackets},
	{"[::1%25eth0]extra]", "is an address with a zone"},
	{"[fe80::1%eth0]", "is an address with a zone"},
	{"[::ffff:10.0.0.1]", "is an IPv4 address written as IPv6"},
	{"::ffff:10.0.0.0/104", "is a range of IPv4 addresses written as IPv6: write it as IPv4"},
	{"10.0.0.1/8", `does not begin at the start of its range: write "10.0.0.0/8"`},
	{"*.10.0.0.1", `is a wildcard over an address: write a range, as in "10.0.0.0/8"`},
	{"", faultNoName},
	{"*.", faultNoName},
	{":443", faultNoName},
	{"github.com.", "ends in a dot"},
	{".", "ends in a dot"},
	{".github.com", faultNoLabel},
	{"github..com", faultNoLabel},
	{"-github.com", faultHyphen},
	{"github-.com", faultHyphen},
	{"gіthub.com", faultChar}, // a Cyrillic letter
	{"github.com ", faultChar},
	{"github.com\n", faultChar},
	{"!github.com", faultChar},
	{"{a,b}.com", faultChar},
	{"[a]b.com", faultPort},
	{"github.com;evil.com", faultChar},
	{`github.com\evil.com`, faultChar},
	{"%67ithub.com", faultChar},
	{"gıthub.com:443", faultChar},
	{strings.Repeat("a", 64), "has a label longer than 63 bytes"},
	{strings.Repeat("a.", 127) + "b", "is longer than 253 bytes"},
	{"*." + strings.Repeat("a.", 95) + "b", "is a wildcard over a name longer than 189 bytes"},
}

func TestParseHostRefuses(t *testing.T) {
	for _, tc := range refusedHosts {
		want := fmt.Sprintf("host %q %s", tc.text, tc.want)
		h, err := capability.ParseHost(tc.text)
		if err == nil || err.Error() != want {
			t.Errorf("ParseHost(%q) = %v, %v\nwant %s", tc.text, h, err, want)
		}
		if h != (capability.Host{}) {
			t.Errorf("ParseHost(%q) returns %v besides the error", tc.text, h)
		}
	}
	_, err := capability.ParseHost(strings.Repeat("a", 262))
	if err == nil || err.Error() != "a host is longer than 261 bytes" {
		t.Errorf("a long host: %v", err)
	}
}

func TestParseConnectHost(t *testing.T) {
	for _, text := range []string{"api.example.com:443", "*.example.com:443", "*:22", "10.0.0.0/8:5432", "[::1]:80"} {
		h, err := capability.ParseConnectHost(text)
		if err != nil || h.String() != text {
			t.Errorf("ParseConnectHost(%q) = %v, %v", text, h, err)
		}
	}
	for text, want := range map[string]string{
		"example.com":    `host "example.com" has no port, and net.connect needs one: write "example.com:443" for port 443`,
		"*":              `host "*" has no port, and net.connect needs one: write "*:443" for port 443`,
		"*.internal:443": `host "*.internal:443" is a wildcard over names of the local network: write each name in full`,
	} {
		h, err := capability.ParseConnectHost(text)
		if err == nil || err.Error() != want || h != (capability.Host{}) {
			t.Errorf("ParseConnectHost(%q) = %v, %v\nwant %s", text, h, err, want)
		}
	}
}

func TestZeroHost(t *testing.T) {
	var h capability.Host
	if h.String() != "invalid Host" {
		t.Errorf("the zero Host is written %q", h)
	}
	var table capability.HostTable
	table.Add(h, 1)
	if _, ok := table.Find(hostTarget(t, "github.com")); ok {
		t.Error("the zero Host covers something")
	}
	if witness, ok := table.Covers(h); !ok {
		t.Errorf("the zero Host is not covered: %s", witness)
	}
}

func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{
		"*", "*.github.com:443", "GitHub.com", "10.0.0.0/8:22", "[::1]:80", "fd00::/8:1", "::ffff:1.2.3.4/128",
		"127.1", "a.*.b", "https://x", "[fe80::1%eth0]", "xn--a.com", "1.2.3.4/32",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string) (capability.Host, error){capability.ParseHost, capability.ParseConnectHost} {
			h, err := parse(text)
			if err != nil {
				continue
			}
			if again, err := parse(h.String()); again != h || err != nil {
				t.Fatalf("%q is written %q, which reads as %v, %v", text, h, again, err)
			}
			if strings.Contains(text, "*") {
				continue
			}
			// What is not a wildcard or a range reads the same as a target.
			if x, err := capability.ParseTarget(text); err != nil || x.Opaque() == "" && x.String() != h.String() {
				t.Fatalf("%q is host %v and target %v, %v", text, h, x, err)
			}
		}
	})
}
