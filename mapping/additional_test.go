package mapping_test

import (
	"strings"
	"testing"
)

// TestAdditionalURL: what some reader takes for a URL, written as only some do.
func TestAdditionalURL(t *testing.T) {
	tool := parseTool(t, `{additional: free}`)
	for text, want := range map[string]string{
		"<https://b.com>":                         "net.get b.com:443",
		"<URL:https://b.com>":                     "net.get b.com:443",
		"URL: https://b.com/x ":                   "net.get b.com:443",
		"uRl:<http://b.com>":                      "net.get b.com:80",
		"view-source:https://b.com":               "net.get b.com:443",
		"\\u0001view-source:https://b.com\\u00a0": "net.get b.com:443",
		"feed:https://b.com":                      "net.get b.com:443",
		"blob:https://b.com/1":                    "net.get b.com:443",
		"git::https://b.com":                      "net.get b.com:443",
		"url://b.com":                             "never",
		"jar:https://b.com!/":                     "never",
		"jar:file:///x!/y":                        "never",
		"url:url:ftp:b.com":                       "never",
		"wss:b.com":                               "never",
		"//b.com":                                 "net.get b.com",
		"//b.com/x?y#z":                           "net.get b.com",
		"//b.com:8443":                            "net.get b.com:8443",
		"url://b.com/x//":                         "never",
		"url: //b.com/x":                          "net.get b.com",
		"//[2001:db8::1]/":                        "net.get [2001:db8::1]",
		"//localhost":                             "net.get localhost",
		"//db:5432/x":                             "net.get db:5432",
		"//10.0.0.1":                              "net.get 10.0.0.1",
		"//2130706433/":                           "never",
		"//0x7f000001":                            "never",
		"//u@b.com":                               "never",
		"//b%2ecom":                               "never",
		"//b。com":                                 "never",
		"//b\u00ad.com/x":                         "never",
		"//b\u200b.com":                           "never",
		"//①.①.①.①/":                              "never",
		`\\\\b.com@SSL\\x`:                        "never",
		`\\\\bb@8080\\x`:                          "never",
		`\\\\?\\UNC\\b.com\\x`:                    "never",
		`\\\\?\\unc\\bb\\x`:                       "never",
		`//./UNC/b.com/x`:                         "never",
		"///b.com":                                "never",
		" //b.com":                                "never",
		`/\\b.com`:                                "never",
		`\\\\b.com\\x`:                            "never",
		`\\\\b.com`:                               "never",
		`\\\\server\\share`:                       "never",
		"ht\\ntps://b.com":                        "malformed",
		"h" + strings.Repeat("\\n", 100) + "ttps://b.com": "malformed",
		"u\\trl:https://b.com":                            "malformed",
		"<https://b\\n.com>":                              "malformed",
		"/\\n/b.com":                                      "malformed",

		"see <https://b.com>":               "",
		"<https://b.com> and more":          "",
		"[x](https://b.com)":                "",
		"source:: https://b.com":            "",
		"a // comment":                      "",
		"// see b.com":                      "",
		"//TODO: x":                         "",
		"//nolint:errcheck":                 "",
		"//go:build linux\\npackage a.b":    "",
		"//b.com is a host":                 "",
		"//div[@class='x']/span":            "",
		"//a[contains(., 'b.com')]":         "",
		"//x.y()":                           "",
		"//src/a.go":                        "",
		"//4AHQAeQBwAGUA":                   "",
		"//third_party/a:b.go":              "",
		"//../a.b":                          "",
		"//":                                "",
		"//[x]":                             "",
		`\\\\d+\\w`:                         "",
		`\\\\d\\w`:                          "",
		`\\\\alpha \\beta`:                  "",
		`\\\\`:                              "",
		"C:\\\\x":                           "",
		"/etc/passwd":                       "",
		"url: see below":                    "",
		"URL:":                              "",
		"<>":                                "",
		"<b>x</b>":                          "",
		"<svg:g/>":                          "",
		"std::fs::File":                     "",
		"FTP: use https":                    "",
		"mailto:a@b.com":                    "",
		"b.com:443":                         "",
		"jar:x":                             "",
		"feed:a:b":                          "",
		"{\\\"a\\\":\\\"https://b.com\\\"}": "",
	} {
		got, _, _ := strings.Cut(required(t, tool, `{"x":"`+text+`"}`), "\n")
		got, _ = strings.CutPrefix(strings.TrimSuffix(got, " @ x"), "tool.invoke s.t")
		switch {
		case strings.HasPrefix(got, "net.get ("):
			got = "never"
		case strings.HasPrefix(got, "malformed_arguments: "):
			got = "malformed"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
