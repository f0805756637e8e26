package capability_test

import (
	"strings"
	"testing"

	"capgate/capability"
)

// TestURI: what servers may take a URI for. It is odd where that may be any other of its scheme.
func TestURI(t *testing.T) {
	for uri, want := range map[string]string{
		"docs://a/b":                 "docs:/a/b",
		"DOCS://A/B":                 "docs:/a/b",
		"docs:///a/b/":               "docs:/a/b",
		"docs://":                    "docs:/",
		"docs:///":                   "docs:/",
		"docs://?q=1":                "docs:/",
		"docs:":                      "docs:/",
		"docs:a/b":                   "docs:/a/b docs:/b",
		"docs:/a/b":                  "docs:/a/b docs:/b",
		"docs:isbn:1":                "docs:/isbn:1 docs:/bn:1 docs:/isbn docs:/1",
		"docs:a%3Ab":                 "odd",
		"ws://167772161/a":           "odd",
		"ws://10.1:80/a":             "odd",
		"ws://a.0x7f/a":              "odd",
		"ws://10.0.0.1/a":            "ws:/10.0.0.1/a",
		"docs://10.1/a":              "docs:/10.1/a",
		"docs://\u0661\u0660/\u0967": "docs:/10/1",
		"docs://a\u20dd":             "docs:/a",
		"docs:a@b":                   "odd",
		"docs://u@a:80/b":            "docs:/u@a:80/b docs:/a:80/b docs:/u@a/b docs:/a/b",
		"docs://a:80":                "docs:/a:80 docs:/a",
		"docs://a/b:80":              "odd",
		"docs://a/u@b":               "odd",
		"docs://a?x=u@b":             "odd",
		"docs://progra~1/b":          "odd",
		"docs://a/b\u1160c":          "odd",
		"https://a:80/b":             "https:/a:80/b",
		"https://a:443/b":            "https:/a:443/b https:/a/b",
		"http://a:80/":               "http:/a:80 http:/a",
		"docs://a%20b/c+d":           "docs:/a b/c d",
		"docs://a%26b":               "docs:/a&b",
		"docs://é/É":                 "docs:/e/e",
		"docs://%C3%A9/x":            "docs:/e/x",
		"docs://straße":              "docs:/straße",
		"docs://a/c++":               "docs:/a/c",
		"docs://a/b?x=1&y=c/d#e":     "docs:/a/b",
		"docs://a?x":                 "docs:/a",
		"docs://a?x=a%2Fb%3A":        "docs:/a",
		"docs://a?path=/a/b&q=it's":  "docs:/a",
		"docs://a#":                  "docs:/a",
		"a guide/one":                ":/a guide/one",
		"/a":                         ":/a",
		"://a":                       "odd",
		"docs://a//b":                "odd",
		"docs://a/b//":               "odd",
		"docs:////a":                 "odd",
		"docs:a//b":                  "odd",
		"docs://a/ b":                "odd",
		"docs://a/b%20":              "odd",
		"docs://a/b.":                "odd",
		"docs://~a":                  "odd",
		"docs://a/~b":                "odd",
		"docs://a;b":                 "odd",
		"docs://a*":                  "odd",
		"docs://a/$b":                "odd",
		"docs://a/[b]":               "odd",
		"docs://a/|b":                "odd",
		"docs://a/%7Cb":              "odd",
		"docs://a%3Bb":               "odd",
		"docs://a%3Fb":               "odd",
		"docs://a%61":                "odd",
		"docs://a%2Db":               "odd",
		"docs://a%25b":               "odd",
		"docs://a%zz":                "odd",
		"docs://a%":                  "odd",
		"docs://a%C3":                "odd",
		"docs://ａ":                   "odd",
		"docs://a/e\u0301":           "odd",
		"docs://a/\u200db":           "odd",
		"docs://a/\u2215b":           "odd",
		"docs://a/%E2%88%95b":        "odd",
		"docs://@a":                  "odd",
		"docs://u@":                  "odd",
		"docs://u:p@a":               "odd",
		"docs://u@v@a":               "odd",
		"docs://a:b":                 "odd",
		"docs://a:":                  "odd",
		"docs://:80":                 "odd",
		"docs://a:123456":            "odd",
		"docs:///a:b":                "odd",
		"docs://[::1]":               "odd",
		"docs://a%3A80":              "odd",
		"docs://u%40a":               "odd",
		"ws://é/a":                   "odd",
		"ws://a_b/a":                 "odd",
		"ws:a":                       "odd",
		"ws:/a":                      "odd",
		"docs://a?":                  "docs:/a",
		"docs://a?#":                 "docs:/a",
		"file://LocalHost/a":         "file:/a",
		"docs://a?x=1&x=2":           "odd",
		"docs://a?x=1&X=2":           "odd",
		"docs://a?x.y=1&x_y=2":       "odd",
		"docs://a?x=1&%78=2":         "odd",
		"docs://a?x=1&&y=2":          "odd",
		"docs://a?x=1;y=2":           "odd",
		"docs://a?x=1?y=2":           "odd",
		"docs://a?a&b!c":             "odd",
		"docs://a?x=y=z":             "odd",
		"docs://a?x=1%26x=2":         "odd",
		"docs://a?x=https://b":       "odd",
		"docs://a?x=https%3A%2F%2Fb": "odd",
		"docs://a?x=%253Fb":          "odd",
		"docs://a?x=%C3":             "odd",
		"docs://a?x[]=1":             "odd",
		"docs://a?x=1&y%26x=2":       "odd",
		"docs://a?x=1&x%3D2=3":       "odd",
		"docs://a/b,c":               "docs:/a/b,c",
		"docs://a/,b":                "odd",
		"docs://a/b,":                "odd",
		"docs://a/b,,c":              "odd",
		"docs://a?x=b,/c":            "odd",
		"docs://a?x=b,,c":            "odd",
		"docs://a?x=b,c":             "docs:/a",
		"docs://a/+/b":               "odd",
		"docs://a/.ж.ж/b":            "odd",
		"docs://a/ж.ж/b":             "docs:/a/ж.ж/b",
		"docs://a/b%2Fc":             "docs:/a/b/c",
		"docs://a/b%2fc/d":           "docs:/a/b/c/d",
		"docs:///a%2Fb":              "odd",
		"docs://a%2Fb":               "odd",
		"docs://a/b%252Fc":           "odd",
		"docs://a/b%2Fc%20":          "odd",
		"docs://a/~%2Fc":             "odd",
		"docs:a%2Fb":                 "odd",
		"docs://a/...md":             "odd",
		"docs://a/..-b":              "odd",
		"docs://a/('..b":             "odd",
		"docs://a/b..c":              "docs:/a/b..c",
		"docs://a#b#c":               "odd",
		"docs://a#b//c":              "odd",
	} {
		u := capability.ReadURI(uri)
		got := strings.Join(u.Places, " ")
		if u.Odd() != "" {
			got = "odd"
		}
		if got != want {
			t.Errorf("%s is %s, want %s (%s)", uri, got, want, u.Odd())
		}
		if len(u.Places) == 0 || u.Plain() != (u.Odd()+u.Astray() == "") {
			t.Errorf("%s is nowhere", uri)
		}
	}
}

// TestAstray: what may lead out of all that is called so.
func TestAstray(t *testing.T) {
	for uri, want := range map[string]string{
		"docs://a/b.c..d/e":            "",
		"docs://a?x=../b":              "",
		"docs://a?x=%2F":               "",
		"docs://a/.%09./b":             "as a segment",
		"a/../b":                       "as a segment",
		"docs://a/.":                   "as a segment",
		"docs://a?x/../b":              "as a segment",
		"docs://a/..;x/b":              "as a segment",
		"docs://a/..%0a/b":             "as a segment",
		"docs://a/..,b":                "as a segment",
		"docs://a/b,..,c":              "as a segment",
		"docs://a?x=b,..,c":            "as a segment",
		"docs://a#b,..":                "as a segment",
		"docs://a?x=..,c":              "",
		"docs://a/.!.!/b":              "as a segment",
		"docs://a/.\u0301.\u0301":      "as a segment",
		"docs://a/.%CC%81.":            "as a segment",
		"docs://a/b..c/..d/x-.y":       "",
		"docs://a?x=%2f..%2fb":         "as a segment",
		`docs://a?x=\..\b`:             "as a segment",
		"docs://a%2fb":                 "",
		"docs://a/b%2Fc":               "",
		"docs://a/b%252fc":             "",
		"docs://%2fb":                  "hides",
		"docs://a/%2fb":                "hides",
		"docs://a/b%2F":                "hides",
		"docs://a/b%2F%2fc":            "hides",
		"docs://a/b%252f%252fc":        "hides",
		"docs://a/https%3A%2F%2Fb%2Fc": "",
		"docs://a/https%3A%2F%2F%2Fb":  "hides",
		"docs://a/docs%3A%2F%2Fb":      "once more",
		"docs:%2fb":                    "hides",
		"docs://a/b-%2Fc":              "hides",
		"docs://a/b%2F_c":              "hides",
		"docs://a/%D0%B6%2F%D0%B6":     "",
		"docs://a/b%2F..%2Fc":          "hides",
		"docs://a/%252e%252e/b":        "hides",
		`docs://a\b`:                   "hides",
		"docs://a%00":                  "hides",
		"docs://a/docs://b":            "once more",
		"docs://a?DOCS%3a//b":          "once more",
		"docs://a/%25252525252f":       "too often",
	} {
		astray(t, uri, want)
	}
}

// TestAstrayWithin: what stands for another URI leads to that, whatever it is called.
func TestAstrayWithin(t *testing.T) {
	for _, uri := range []string{
		"url:file:///etc/passwd", "URL:http://127.0.0.1/", "Url:ftp:a", "view-source:file:///etc/passwd", "view-source:view-source:file:/a",
		"jar:file:/x.jar!/y", "jar:file:x.jar!/y", "jar:http://a/x.jar!/y", "jar:jar:http://a/x!/y!/z", "feed:https://a", "feed://https://a", "blob:https://a/1",
		"filesystem:http://a/temporary/b", "zip:file:///a.zip!/b", "zip://https://a/b.zip", "url:%66ile:///a", "url:file%3A///a", "url:%20file:///a", `url:docs:%2f%2fa`,
		"url:<file:///a>", "url:url:file:a", "view-source:docs://a", "compress.zlib://http://a", "concat:http://a|http://b", "url%3Afile:///a", "<docs://a>",
		"git::https://a", "ext::https://a", "zip://a.csv::https://b/c.zip", "docs://a::file:///b",
	} {
		astray(t, uri, "another")
	}
	for _, uri := range []string{
		"url:a", "url://a/b", "url:a:b", "view-source:notes", "view-source:a/b", "view-source:", "jar://a:80/b", "feed:news/today", "feed:sports:today", "zip:c:/a",
		"git+https://a/b", "svn+ssh://a/b", "mailto:a@b", "urn:isbn:1", "ui://a/b", "repo://a/b", "cache://https://a.com", "docs://a/https://b", "docs:https://a",
		"data:text/plain,a", "rust:std::fs", "perl:LWP::https::Socket", "docs://a::b", "docs://[::1]/a", "tel:1", "a guide", "<a>", "url::", "blob:uuid:1",
	} {
		astray(t, uri, "")
	}
}

// astray asks what is said of a URI, and whether a grant of all there is allows it.
func astray(t *testing.T, uri, want string) {
	t.Helper()
	got := capability.ReadURI(uri).Astray()
	if (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", uri, got, want)
	}
	q, err := capability.Keyed("resource.read", capability.Word{Dim: "uri", Value: uri})
	if err != nil || q.Opaque() != got || compile(t, "resource.read{uris=[\"*\"]}").Decide(q).Allowed() != (want == "") {
		t.Errorf("%s: %v, %q", uri, err, q.Opaque())
	}
}

// What may be any other of its scheme is passed on by whoever has all of that, or has it written out.
func TestOddURIPassedOn(t *testing.T) {
	long := strings.Repeat("a", 507)
	for _, test := range []struct {
		held, passed string
		want         bool
	}{
		{`resource.read{uris=["docs://a/*"]}`, `resource.read{uris=["docs://a/b"]}`, true},
		{`resource.read{uris=["docs://a/*"]}`, `resource.read{uris=["docs://a//b"]}`, false},
		{`resource.read{uris=["docs://a//*"]}`, `resource.read{uris=["docs://a//b"]}`, false},
		{`resource.read{uris=["docs://{\uFFFD,a}*"]}`, `resource.read{uris=["docs://a//b"]}`, false},
		{`resource.read{uris=["docs://a/*"]}`, `resource.read{uris=["docs://a/b","docs://a/[~]"]}`, true}, // which is of nothing
		{`resource.read{uris=["docs://a/*"]}`, `resource.read{uris=["docs://a/b","docs://a/\\~b"]}`, false},
		{`resource.read{uris=["docs://*"]}`, `resource.read{uris=["docs://a//b"]}`, true},
		{`resource.read{uris=["docs://a//b"]}`, `resource.read{uris=["docs://a//b"]}`, true},
		{`resource.read{uris=["docs://*"]}`, `resource.read{uris=["docs:a~b"]}`, false},
		{`resource.read{uris=["docs:*"]}`, `resource.read{uris=["docs:a~b"]}`, true},
		{`resource.read{uris=["a*"]}`, `resource.read{uris=["a//b"]}`, false},
		{`resource.read{uris=["{*,x}"]}`, `resource.read{uris=["a//b"]}`, true},
		{`resource.read{uris=["*"]}`, `resource.read{uris=["a//b"]}`, true},
		{`resource.read{uris=["` + long + `:*"]}`, `resource.read{uris=["` + long + `:;"]}`, false}, // which no pattern can be of all of
	} {
		held, passed := compile(t, test.held), compile(t, test.passed)
		if gaps := held.Covers(passed); (len(gaps) == 0) != test.want {
			t.Errorf("%s from %s: %v", test.passed, test.held, gaps)
		}
		q := need(t, `resource.read{uri="docs://a//b",server=s}`)
		if test.want && passed.Decide(q).Allowed() && !held.Decide(q).Allowed() {
			t.Errorf("%s is passed on by %s", test.passed, test.held)
		}
	}
}

// TestOddURI: what may be any other of its scheme takes a grant of all that has, or one that spells it out.
func TestOddURI(t *testing.T) {
	for _, test := range []struct {
		grant, uri string
		want       bool
	}{
		{`resource.read{uris=["*"]}`, "docs://a//b", true},
		{`resource.read{uris=["docs:*"]}`, "docs://a//b", true},
		{`resource.read{uris=["docs://*"]}`, "docs://a//b", true},
		{`resource.read{uris=["DOCS://**"]}`, "docs://a//b", true},
		{`resource.read{uris=["{docs,notes}://*"]}`, "docs://a//b", true},
		{`resource.read{uris=["*://*"]}`, "docs://a//b", true},
		{`resource.read{uris=["docs://a//b"]}`, "docs://a//b", true},
		{`resource.read{uris=["docs://\\[a\\]"]}`, "docs://[a]", true},
		{`resource.read{uris=["docs://a/*"]}`, "docs://a/b", true},
		{`resource.read{uris=["docs://a/*"]}`, "docs://a//b", false},
		{`resource.read{uris=["docs://a//*"]}`, "docs://a//b", false},
		{`resource.read{uris=["docs://{a//b,c}"]}`, "docs://a//b", false},
		{`resource.read{uris=["docs://[^x]*"]}`, "docs://a//b", false},
		{`resource.read{uris=["docs://[^x]*","docs://x*","docs://"]}`, "docs://a//b", false}, // their hosts have no user
		{`resource.read{uris=["docs://*"]}`, "docs:a//b", false},
		{`resource.read{uris=["docs:*"]}`, "docs:a//b", true},
		{`resource.read{uris=["a*"]}`, "a//b", false},
		{`resource.read{uris=["a//b"]}`, "a//b", true},
		{`resource.read{uris=["*"]}`, "a//b", true},
		{"rye.load.knowledge.s.*", "docs://a./b", true},
		{"rye.load.knowledge.s.docs.*", "docs://a./b", false},
		{"rye.load.knowledge.s.docs.*", "docs://a/b", true},
		{"rye.load.knowledge.s.docs.*", "docs://a/b,c", false}, // which no id could name
	} {
		d := compile(t, test.grant).Decide(need(t, `resource.read{uri="`+test.uri+`",server=s}`))
		if d.Allowed() != test.want {
			t.Errorf("%s with %s: %s", test.uri, test.grant, d)
		}
	}
	if d := compile(t, `resource.read{uris=["{*,x}"]}`).Decide(need(t, `resource.read{uri="`+strings.Repeat("a", 3000)+`://a//b"}`)); d.Allowed() {
		t.Error(d)
	}
	d := compile(t, `resource.read{uris=["docs://a/*"]}`).Decide(need(t, `resource.read{uri="docs://a//b"}`))
	const why = "held: the URI has a segment that is empty, or ends or begins with what some servers leave out, so that it takes a grant of it as it is, or of all of docs: (held"
	if got := d.String(); !strings.Contains(got, why) {
		t.Error(got)
	}
	if got := compile(t, `resource.read{uris=["a*"]}`).Decide(need(t, `resource.read{uri="a//b"}`)).String(); !strings.Contains(got, "of it as it is, or of all that there is (held") {
		t.Error(got)
	}
	if _, err := capability.Keyed("resource.read", capability.Word{Dim: "uri", Value: strings.Repeat("%", 1<<20)}); err == nil {
		t.Error("a word is of any length")
	}
	spec, ok := need(t, `resource.read{uri="docs://[a]//*"}`).Smallest(capability.Root{})
	if set := compile(t, spec.String()); !ok || !set.Decide(need(t, `resource.read{uri="docs://[a]//*"}`)).Allowed() {
		t.Errorf("what is proposed does not do: %s", spec)
	}
}

// TestUnwrapped: one wrapping is taken off at a time.
func TestUnwrapped(t *testing.T) {
	for text, want := range map[string]string{
		"<https://a.com>": "https://a.com", " URL: https://a.com ": "https://a.com", "view-source:url:a": "url:a", "git::https://a.com": "https://a.com",
		"https://a.com": "", "note": "", "source:: https://a.com": "",
	} {
		inner, ok := capability.View{}.Unwrapped(text)
		if ok != (want != "") || ok && inner != want {
			t.Errorf("%q holds %q, %v", text, inner, ok)
		}
	}
}
