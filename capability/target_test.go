package capability_test

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"capgate/capability"
)

// hostTarget reads a host argument that is known to be well formed.
func hostTarget(t testing.TB, text string) capability.Target {
	t.Helper()
	x, err := capability.ParseTarget(text)
	if err != nil || x.Opaque() != "" {
		t.Fatalf("ParseTarget(%q) = %v, %v", text, x, err)
	}
	return x
}

const (
	opaqueNotHTTP    = "the URL does not begin with http:// or https://"
	opaqueNoHost     = "the URL names no host"
	opaqueUserName   = "the URL carries a user name"
	opaqueBackslash  = "the URL holds a backslash"
	opaqueSpace      = "the URL holds a space"
	opaqueInvisible  = "the URL holds an invisible character"
	opaqueLateAt     = "the URL holds an @ and has no slash after its host"
	opaqueBadChar    = "the host holds a character other than ASCII letters, digits, hyphens and dots"
	opaqueBadPort    = "the host is not followed by a plain port from 1 to 65535"
	opaqueBadNumber  = "the host looks like a number: an IPv4 address is four plain decimals"
	opaqueBadBracket = "the host is in brackets and not an IPv6 address"
	opaqueManyColons = "the host has several colons, and an IPv6 address stands in brackets"
	opaqueEmptyLabel = "the host has an empty label"
	opaqueFinalDot   = "the host ends in a dot"
	opaqueWithZone   = "the host is an address with a zone"
	opaqueMapped     = "the host is an IPv4 address written as IPv6"
)

// The URLs on which the parsers of Go, of browsers and of Python agree, with
// the host and port they see. This is R-SEC-07.
func TestParseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://github.com":                                  "github.com:443",
		"https://github.com/x/y?q=1#f":                        "github.com:443",
		"HTTP://GitHub.COM/":                                  "github.com:80",
		"https://github.com?x=1":                              "github.com:443",
		"https://github.com#x":                                "github.com:443",
		"https://github.com:8443/":                            "github.com:8443",
		"http://github.com:443":                               "github.com:443",
		"https://github.com/login?return_to=https://evil.com": "github.com:443",
		"https://github.com/@evil.com/a;b&c":                  "github.com:443",
		"https://github.com/?x=a@evil.com#@evil.com":          "github.com:443",
		"https://github.com/a%20b%zz":                         "github.com:443",
		"https://github.com/日本?q=é":                           "github.com:443",
		"https://xn--gthub-n4a.com/":                          "xn--gthub-n4a.com:443",
		"https://my_bucket.s3.amazonaws.com/":                 "my_bucket.s3.amazonaws.com:443",
		"http://localhost:3000/":                              "localhost:3000",
		"http://127.0.0.1:9000/x":                             "127.0.0.1:9000",
		"http://[::1]:9000/":                                  "[::1]:9000",
		"http://[0:0:0:0:0:0:0:1]/":                           "[::1]:80",
		"http://[2001:DB8::1]":                                "[2001:db8::1]:80",
		"https://1.2.3.4.example.com":                         "1.2.3.4.example.com:443",
	} {
		x, err := capability.ParseURL(raw)
		if err != nil || x.Opaque() != "" || x.String() != want {
			t.Errorf("ParseURL(%q) = %v, %v, want %s", raw, x, err, want)
		}
	}
}

// opaqueURLs are URLs that have another host, or none, in one of the parsers of
// Go, of browsers and of Python, or that reach a host they do not look like.
var opaqueURLs = [...]struct{ raw, want string }{
	{`https://evil.com\@github.com/`, opaqueBackslash},
	{`https://github.com\@evil.com/`, opaqueBackslash},
	{`https://github.com\.evil.com/`, opaqueBackslash},
	{`http:\\github.com\x`, opaqueBackslash},
	{`https://github.com/\evil`, opaqueBackslash},

	{"https:github.com", opaqueNotHTTP},
	{"https:/github.com/x", opaqueNotHTTP},
	{"//evil.com/x", opaqueNotHTTP},
	{"github.com/x", opaqueNotHTTP},
	{"gopher://github.com/_x", opaqueNotHTTP},
	{"file:///etc/passwd", opaqueNotHTTP},
	{"ws://github.com/", opaqueNotHTTP},
	{"jar:https://github.com!/", opaqueNotHTTP},
	{"javascript://github.com/", opaqueNotHTTP},
	{"data:text/html,x", opaqueNotHTTP},
	{"httpſ://github.com/", opaqueNotHTTP},
	{"http:", opaqueNotHTTP},
	{"https:///github.com/x", opaqueNoHost},
	{"https://", opaqueNoHost},
	{"https://?github.com", opaqueNoHost},
	{"https://:443/", "the host has an empty name"},

	{"https://github.com@evil.com/", opaqueUserName},
	{"https://evil.com@github.com/", opaqueUserName},
	{"https://a:b@github.com/", opaqueUserName},
	{"https://@github.com/", opaqueUserName},
	{"https://a@b@github.com/", opaqueUserName},
	{"https://github.com:22@evil.com", opaqueUserName},
	{"https://github.com?@evil.com/", opaqueLateAt},
	{"https://github.com#@evil.com/", opaqueLateAt},
	{"https://github.com%40evil.com/", opaqueBadChar},
	{"https://github.com%2eevil.com/", opaqueBadChar},
	{"https://github.com%2f.evil.com/", opaqueBadChar},
	{"https://%67ithub.com/", opaqueBadChar},
	{"https://github.com%00/", opaqueBadChar},
	{"https://github.com%0a/", opaqueBadChar},
	{"https://github.com;evil.com/", opaqueBadChar},
	{"https://github.com&evil.com/", opaqueBadChar},
	{"https://github.com,evil.com/", opaqueBadChar},
	{"https://github.com!/", opaqueBadChar},
	{"https://*.github.com/", opaqueBadChar},
	{"https://github.com|evil.com/", opaqueBadChar},
	{"https://github.com^evil.com/", opaqueBadChar},
	{"https://<github.com>/", opaqueBadChar},
	{"https://{github.com}/", opaqueBadChar},
	{"https://github.com。evil.com/", opaqueBadChar},
	{"https://github。com/", opaqueBadChar},
	{"https://ｇithub.com/", opaqueBadChar},
	{"https://ⓖithub.com/", opaqueBadChar},
	{"https://gіthub.com/", opaqueBadChar}, // Cyrillic
	{"https://evil.com⁄github.com/", opaqueBadChar},
	{"https://evil.com／github.com/", opaqueBadChar},
	{"https://github.com＠evil.com/", opaqueBadChar},
	{"http://①②⑦.0.0.1/", opaqueBadChar},
	{"http://1。2。3。4/", opaqueBadChar},
	{"http://127。0。0。1/", opaqueBadChar},
	{"https://git\u00adhub.com/", opaqueInvisible},
	{"https://git\u200bhub.com/", opaqueInvisible},
	{"https://github.com\u202emoc.live/", opaqueInvisible},
	{"https://github.com/\u2028", opaqueInvisible},
	{"https://github.com/\u3000", opaqueInvisible},
	{" https://evil.com/", opaqueSpace},
	{"https://evil.com/ ", opaqueSpace},
	{"https://git hub.com/", opaqueSpace},
	{"https://evil.com github.com/", opaqueSpace},
	{"https://github..com/", opaqueEmptyLabel},
	{"https://.github.com/", opaqueEmptyLabel},
	{"https://evil.com./", opaqueFinalDot},
	{"http://127.0.0.1./", opaqueFinalDot},
	{"https://-github.com/", "the host has a label that begins or ends with a hyphen"},
	{"https://xn--github-.com/", "the host has a label that begins or ends with a hyphen"},
	{"https://" + strings.Repeat("a", 64), "the host has a label longer than 63 bytes"},
	{"https://" + strings.Repeat("a.", 127) + "b/", "the host is longer than 253 bytes"},

	{"http://127.1/", opaqueBadNumber},
	{"http://0177.0.0.1/", opaqueBadNumber},
	{"http://0x7f.1/", opaqueBadNumber},
	{"http://0x7f000001/", opaqueBadNumber},
	{"http://2130706433/", opaqueBadNumber},
	{"http://2130706433:9000/", opaqueBadNumber},
	{"http://0/", opaqueBadNumber},
	{"http://1.2.3/", opaqueBadNumber},
	{"http://256.0.0.1/", opaqueBadNumber},
	{"http://127.0.0.01/", opaqueBadNumber},
	{"http://127.0.0.0x1/", opaqueBadNumber},
	{"http://1.2.3.4.5/", opaqueBadNumber},
	{"http://4294967296/", opaqueBadNumber},
	{"https://github.com.0x7f/", opaqueBadNumber},

	{"http://[github.com]/", opaqueBadBracket},
	{"http://[127.0.0.1]/", opaqueBadBracket},
	{"http://[v1.github.com]/", opaqueBadBracket},
	{"http://[]/", opaqueBadBracket},
	{"http://[::1][::2]/", opaqueBadBracket},
	{"http://[::1%25.github.com]/", opaqueWithZone},
	{"http://[fe80::1%25eth0]/", opaqueWithZone},
	{"http://[fe80::1%eth0]/", opaqueWithZone},
	{"http://[::ffff:127.0.0.1]/", opaqueMapped},
	{"http://[::ffff:7f00:1]/", opaqueMapped},
	{"http://[::1]evil.com/", opaqueBadPort},
	{"http://[::1]:/", opaqueBadPort},
	{"http://evil.com[::1]/", opaqueManyColons},
	{"http://::1/", opaqueManyColons},
	{"http://[::1/", opaqueManyColons},
	{"https://github.com:443:80/", opaqueManyColons},
	{"https://github.com:/", opaqueBadPort},
	{"https://github.com:0/", opaqueBadPort},
	{"https://github.com:99999/", opaqueBadPort},
	{"https://github.com:0443/", opaqueBadPort},
	{"https://github.com:+443/", opaqueBadPort},
	{"https://github.com:-1/", opaqueBadPort},
	{"https://github.com:443x/", opaqueBadPort},
	{"https://github.com:４４３/", opaqueBadPort},
	{"https://github.com:80.evil.com/", opaqueBadPort},
	{"https://github.com:%34%34%33/", opaqueBadPort},
	{"https://github.com:4294967739/", opaqueBadPort}, // 443 in 32 bits
}

func TestParseURLOpaque(t *testing.T) {
	for _, tc := range opaqueURLs {
		x, err := capability.ParseURL(tc.raw)
		if err != nil || x.Opaque() != tc.want || x.String() != "("+tc.want+")" {
			t.Errorf("ParseURL(%q) = %v, %v\nwant (%s)", tc.raw, x, err, tc.want)
		}
	}
}

func TestMalformedHostText(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                       "is empty",
		"https://github.com\x00.evil.com/":       "holds a NUL byte",
		"https://git\thub.com/":                  "holds a control character",
		"https://github.com\n.evil.com/":         "holds a control character",
		"https://github.com/\r\nHost: evil":      "holds a control character",
		"\x1bhttps://github.com/":                "holds a control character",
		"https://github.com/\x7f":                "holds a control character",
		"https://github.com/\u0085":              "holds a control character",
		"https://github.com/\xff":                "is not valid UTF-8",
		"https://g/" + strings.Repeat("a", 8183): "is longer than 8192 bytes",
	} {
		for _, parse := range []func(string) (capability.Target, error){capability.ParseURL, capability.ParseTarget} {
			x, err := parse(raw)
			var malformed *capability.Malformed
			if !errors.As(err, &malformed) || malformed.Text != want {
				t.Errorf("%q: %v, want %q", raw, err, want)
			}
			if x != (capability.Target{}) {
				t.Errorf("%q: the target besides the error is %v", raw, x)
			}
		}
	}
	if x, err := capability.ParseURL("https://g.co/" + strings.Repeat("a", 8179)); err != nil || x.Opaque() != "" {
		t.Errorf("a URL of 8192 bytes: %v, %v", x, err)
	}
}

func TestParseTarget(t *testing.T) {
	for raw, want := range map[string]string{
		"github.com":             "github.com",
		"GitHub.com:22":          "github.com:22",
		"intranet":               "intranet",
		"10.0.0.1":               "10.0.0.1",
		"10.0.0.1:5432":          "10.0.0.1:5432",
		"[::1]":                  "[::1]",
		"[::0001]:80":            "[::1]:80",
		"::1":                    "(" + opaqueManyColons + ")",
		"https://github.com":     "(" + opaqueBadPort + ")",
		"github.com/":            "(" + opaqueBadChar + ")",
		"github.com:22@evil.com": "(" + opaqueBadPort + ")",
		"github.com evil.com":    "(" + opaqueBadChar + ")",
		"github.com\u200b":       "(" + opaqueBadChar + ")",
		`evil.com\github.com`:    "(" + opaqueBadChar + ")",
		"-oProxyCommand=x":       "(the host has a label that begins or ends with a hyphen)",
		"*":                      "(" + opaqueBadChar + ")",
		"10.0.0.0/8":             "(" + opaqueBadChar + ")",
	} {
		if x, err := capability.ParseTarget(raw); err != nil || x.String() != want {
			t.Errorf("ParseTarget(%q) = %v, %v, want %s", raw, x, err, want)
		}
	}
	var none capability.Target
	if none.String() != "(there is no host)" || none.Opaque() == "" || none.Resolved(netip.MustParseAddr("8.8.8.8")) != none {
		t.Errorf("the zero Target is %v, opaque %q", none, none.Opaque())
	}
}

// TestSpecial is what R-SEC-08 asks for.
func TestSpecial(t *testing.T) {
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.255",
		"168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.192", "192.0.2.1",
		"192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1",
		"239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1",
		"fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1",
	} {
		if !capability.Special(netip.MustParseAddr(text)) {
			t.Errorf("%s is not special", text)
		}
	}
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
		"128.0.0.0", "168.63.129.15", "168.63.129.17", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255",
		"198.20.0.0", "223.255.255.255", "2001:200::1", "2001:4860:4860::8888", "2001:db9::", "2003::", "2606:4700::1",
		"3ffe:ffff::", "3fff:1000::",
	} {
		if capability.Special(netip.MustParseAddr(text)) {
			t.Errorf("%s is special", text)
		}
	}
	if !capability.Special(netip.Addr{}) {
		t.Error("no address is not special")
	}
	// The search relies on this, and the walk of covers on the last two ranges.
	ranges := capability.SpecialRanges()
	for i, r := range ranges {
		if r != r.Masked() {
			t.Errorf("%v is not masked", r)
		}
		if i > 0 && (!ranges[i-1].Addr().Less(r.Addr()) || ranges[i-1].Overlaps(r)) {
			t.Errorf("%v does not come before %v", ranges[i-1], r)
		}
	}
	for _, last := range []string{"255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"} {
		if !capability.Special(netip.MustParseAddr(last)) {
			t.Errorf("the last address %s is not special", last)
		}
	}
}

// The codes that the attack corpus expects of a host.
const hostMalformed, hostDenied, hostAllowed = "malformed_arguments", "scope_violation", ""

// hostAttacks are the host cases of the attack corpus and its net.connect cases.
// What a redirect, or another argument, leads to is one more target.
var hostAttacks = [...]struct{ id, hosts, arg, want string }{
	{"HOST-ARRAY-01", "github.com", "https://github.com/a", hostAllowed},
	{"HOST-ARRAY-01", "github.com", "https://evil.com/b", hostDenied},
	{"HOST-BACKSLASH-01", "github.com", `https://evil.com\@github.com/`, hostDenied},
	{"HOST-BACKSLASH-DOT-01", "*.github.com", `https://github.com\.evil.com/`, hostDenied},
	{"HOST-BACKSLASH-SCHEME-01", "github.com", `https:\\github.com\x`, hostDenied},
	{"HOST-BRACKET-NAME-01", "*.github.com", "http://[github.com]/", hostDenied},
	{"HOST-EMPTY-LABEL-01", "*.github.com", "https://github..com/", hostDenied},
	{"HOST-FULLWIDTH-01", "github.com", "https://ｇithub.com/", hostDenied},
	{"HOST-HOMOGRAPH-01", "github.com", "https://gіthub.com/", hostDenied},
	{"HOST-HOMOGRAPH-PUNY-01", "github.com", "https://xn--gthub-n4a.com/", hostDenied},
	{"HOST-HOST-ARG-01", "*.github.com", "github.com", hostAllowed},
	{"HOST-HOST-ARG-BAD-01", "*.github.com", "github.com:22@evil.com", hostDenied},
	{"HOST-IDEOGRAPHIC-DOT-01", "github.com", "https://github.com。evil.com/", hostDenied},
	{"HOST-INVISIBLE-01", "github.com", "https://git\u00adhub.com/", hostDenied},
	{"HOST-IP-6-01", "*", "http://[::1]/", hostDenied},
	{"HOST-IP-CIRCLED-01", "*", "http://①②⑦.0.0.1/", hostDenied},
	{"HOST-IP-DECIMAL-01", "*", "http://2130706433/", hostDenied},
	{"HOST-IP-DOTS-01", "*", "http://127。0。0。1/", hostDenied},
	{"HOST-IP-EMBEDDED-01", "*", "http://[64:ff9b::7f00:1]/", hostDenied},
	{"HOST-IP-EXACT-ALIAS-01", "127.0.0.1", "http://2130706433:9000/", hostDenied},
	{"HOST-IP-EXACT-OK-01", "127.0.0.1 10.1.2.3", "http://127.0.0.1:9000/x", hostAllowed},
	{"HOST-IP-HEX-01", "*", "http://0x7f000001/", hostDenied},
	{"HOST-IP-MAPPED-01", "*", "http://[::ffff:127.0.0.1]/", hostDenied},
	{"HOST-IP-MIXED-01", "*", "http://0x7f.1/", hostDenied},
	{"HOST-IP-OCTAL-01", "*", "http://0177.0.0.1/", hostDenied},
	{"HOST-IP-SHORT-01", "*", "http://127.1/", hostDenied},
	{"HOST-IP-ZONE-01", "*", "http://[fe80::1%25eth0]/", hostDenied},
	{"HOST-IP6-EXACT-01", "[::1]", "http://[::1]:9000/", hostAllowed},
	{"HOST-IPV6-JUNK-01", "*", "http://[::1]evil.com/", hostDenied},
	{"HOST-LABEL-01", "*.github.com", "https://github.com-evil.com/", hostDenied},
	{"HOST-LOCALHOST-ALIAS-01", "*", "http://foo.localhost/", hostDenied},
	{"HOST-LOOPBACK-01", "*", "http://127.0.0.1:6379/", hostDenied},
	{"HOST-METADATA-01", "*", "http://169.254.169.254/latest/meta-data/", hostDenied},
	{"HOST-METADATA6-01", "*", "http://[fd00:ec2::254]/latest/", hostDenied},
	{"HOST-NEWLINE-01", "github.com", "https://github.com\n.evil.com/", hostMalformed},
	{"HOST-NO-SCHEME-01", "github.com", "github.com/x", hostDenied},
	{"HOST-NUL-01", "github.com", "https://github.com\x00.evil.com/", hostMalformed},
	{"HOST-NUL-ENC-01", "github.com", "https://github.com%00/", hostDenied},
	{"HOST-OK-01", "github.com", "https://github.com/x/y?q=1#f", hostAllowed},
	{"HOST-OK-ANY-01", "*", "https://example.org/", hostAllowed},
	{"HOST-OK-APEX-01", "*.github.com", "https://github.com/", hostAllowed},
	{"HOST-OK-CASE-01", "github.com", "https://GitHub.COM/", hostAllowed},
	{"HOST-OK-MIX-01", "*.github.com api.anthropic.com", "https://api.anthropic.com/v1/messages", hostAllowed},
	{"HOST-OK-QUERY-01", "github.com", "https://github.com/login?return_to=https://evil.com/", hostAllowed},
	{"HOST-OK-WILD-01", "*.github.com", "https://api.github.com/", hostAllowed},
	{"HOST-OTHER-01", "github.com", "https://evil.com/", hostDenied},
	{"HOST-PCT-HOST-01", "github.com", "https://github.com%2eevil.com/", hostDenied},
	{"HOST-PCT-HOST-GOOD-01", "github.com", "https://%67ithub.com/", hostDenied},
	{"HOST-PORT-BAD-01", "github.com", "https://github.com:99999/", hostDenied},
	{"HOST-PORT-CONFUSE-01", "github.com", "https://github.com:443:80/", hostDenied},
	{"HOST-PORT-PATTERN-01", "api.example.com:9443", "https://api.example.com:8443/", hostDenied},
	{"HOST-PREFIX-01", "github.com", "https://github.com.evil.com/", hostDenied},
	{"HOST-PRIVATE-01", "*", "http://10.0.0.1/", hostDenied},
	{"HOST-REBINDING-01", "*.example.com", "http://a.example.com/ -> 127.0.0.1", hostDenied},
	{"HOST-REDIRECT-01", "github.com", "https://github.com/redirect", hostAllowed},
	{"HOST-REDIRECT-01", "github.com", "https://evil.com/", hostDenied},
	{"HOST-RELATIVE-01", "github.com", "//evil.com/x", hostDenied},
	{"HOST-SCHEME-01", "github.com", "gopher://github.com/_x", hostDenied},
	{"HOST-SCHEME-FILE-01", "github.com", "file:///etc/passwd", hostDenied},
	{"HOST-SCHEME-JS-01", "github.com", "javascript://github.com/%0aalert(1)", hostDenied},
	{"HOST-SCHEME-NESTED-01", "github.com", "jar:https://github.com!/x", hostDenied},
	{"HOST-SCHEME-WS-01", "github.com", "ws://github.com/", hostDenied},
	{"HOST-SEMICOLON-01", "*.github.com", "https://github.com;evil.com/", hostDenied},
	{"HOST-SINGLE-LABEL-01", "*", "http://intranet/", hostDenied},
	{"HOST-SLASH-LOOKALIKE-01", "*.github.com", "https://evil.com⁄github.com/", hostDenied},
	{"HOST-SLASHES-01", "github.com", "https:github.com", hostDenied},
	{"HOST-SLASHES-MANY-01", "github.com", "https:///evil.com/", hostDenied},
	{"HOST-SPACE-01", "github.com", " https://evil.com/", hostDenied},
	{"HOST-SUB-OF-EXACT-01", "github.com", "https://gist.github.com/", hostDenied},
	{"HOST-SUFFIX-01", "*.github.com", "https://evilgithub.com/", hostDenied},
	{"HOST-TAB-01", "github.com", "https://git\thub.com/", hostMalformed},
	{"HOST-TRAILING-DOT-01", "github.com", "https://evil.com./", hostDenied},
	{"HOST-UNBOUND-URL-01", "github.com", "https://evil.com/cb", hostDenied},
	{"HOST-UNDERSCORE-ANY-01", "*.github.com", "https://github.com&evil.com/", hostDenied},
	{"HOST-UNSPECIFIED-01", "*", "http://0.0.0.0:8080/", hostDenied},
	{"HOST-USERINFO-01", "github.com", "https://github.com@evil.com/", hostDenied},
	{"HOST-USERINFO-ENC-01", "github.com", "https://github.com%40evil.com/", hostDenied},
	{"HOST-USERINFO-GOOD-HOST-01", "github.com", "https://evil.com@github.com/", hostDenied},
	{"HOST-VERB-01", "", "https://github.com/", hostDenied}, // the table of net.post, which is empty
	{"SCARAB-NET-01", "connect=api.example.com:443", "api.example.com:443", hostAllowed},
	{"SCARAB-NET-APEX-01", "connect=*.example.com:443", "example.com:443", hostDenied},
	{"SCARAB-NET-PORT-01", "connect=api.example.com:443", "api.example.com:80", hostDenied},
}

func TestHostAttackCorpus(t *testing.T) {
	for _, tc := range hostAttacks {
		parse := capability.ParseURL
		if strings.HasPrefix(tc.id, "HOST-HOST-ARG") || strings.HasPrefix(tc.id, "SCARAB") {
			parse = capability.ParseTarget
		}
		raw, resolved, rebound := strings.Cut(tc.arg, " -> ")
		x, err := parse(raw)
		if rebound {
			x = x.Resolved(netip.MustParseAddr(resolved))
		}
		got := hostDenied
		if _, ok := newHostTable(t, tc.hosts).Find(x); ok {
			got = hostAllowed
		}
		if err != nil {
			got = hostMalformed
		}
		if got != tc.want {
			t.Errorf("%s: %q under %q: got %q, want %q", tc.id, tc.arg, tc.hosts, got, tc.want)
		}
	}
	for _, tc := range []struct{ id, held, given, witness string }{
		{"ATTENUATION-HOST-01", "*.github.com", "github.com", ""},
		{"ATTENUATION-HOST-PORT-01", "*.example.com:443", "api.example.com:443", ""},
		{"ATTENUATION-HOST-SUFFIX-01", "*.github.com", "*.com", "evil.com"},
		{"ATTENUATION-HOST-WIDE-01", "*.github.com", "*", "evil.example"},
	} {
		if witness, ok := newHostTable(t, tc.held).Covers(newHost(t, tc.given)); witness != tc.witness || ok != (tc.witness == "") {
			t.Errorf("%s: %s holds %s: %v, %q", tc.id, tc.held, tc.given, ok, witness)
		}
	}
}

// FuzzParseURL checks that what is not opaque means the same to net/url.
func FuzzParseURL(f *testing.F) {
	for _, seed := range []string{
		"https://github.com/x?q=@#f", "HTTP://[::1]:80/", "http://1.2.3.4", "https://a@b.c/", `https://a.b\c`,
		"https://a.b:65535?x", "http://[fe80::1%25x]/", "http://[::ffff:1.2.3.4]", "https://xn--a.com/%zz", "http://a_b.c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		x, err := capability.ParseURL(raw)
		if err != nil || x.Opaque() != "" {
			return
		}
		u, err := url.Parse(raw)
		var escape url.EscapeError // beyond the host, where net/url alone refuses it
		if errors.As(err, &escape) {
			return
		}
		if err != nil {
			t.Fatalf("net/url refuses %q, read as %v: %v", raw, x, err)
		}
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		host := strings.ToLower(u.Hostname())
		if addr, err := netip.ParseAddr(host); err == nil {
			host = addr.String()
		}
		if got := net.JoinHostPort(host, port); got != x.String() || u.User != nil {
			t.Fatalf("%q is %v, and %v in net/url, user %v", raw, x, got, u.User)
		}
		if again, err := capability.ParseTarget(x.String()); err != nil || again != x {
			t.Fatalf("%q is written %v, which reads as %v, %v", raw, x, again, err)
		}
	})
}

func BenchmarkParseURL(b *testing.B) {
	for b.Loop() {
		if _, err := capability.ParseURL("https://api.github.com/repos/acme/site/issues?state=open&per_page=100"); err != nil {
			b.Fatal(err)
		}
	}
}
