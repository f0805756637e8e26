package proxy_test

import (
	"fmt"
	"net/url"
	"path"
	"strings"
	"testing"

	"capgate/proxy"
)

// addSkillURIs adds what some reader takes for a URI of a skill, and what none should.
func addSkillURIs(f *testing.F) {
	for _, uri := range []string{
		"skill://a/SKILL.md", "SKILL:a", "skill%3a//a/../b", "repo://a/b%2fc", "s\tkill://x", "skill:\\\\a", "repo://a//b/./c?d#e",
		"%73kill://a", "ſkill://a", "repo://a/%2525252525252541", "%25252500", "repo://a/..;x", "repo://a@..",
	} {
		f.Add(uri)
	}
}

// FuzzSkillURI: whatever the standard library takes for a URI of a skill is taken for
// one, as is what any reader may, and so is anything that is escaped from top to bottom.
// What may be anything is compared as a skill's, whatever its scheme.
func FuzzSkillURI(f *testing.F) {
	addSkillURIs(f)
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := url.Parse(uri)
		if err == nil && strings.EqualFold(u.Scheme, "skill") && !proxy.IsSkillURI(uri) {
			t.Errorf("%q is not taken for a skill's", uri)
		}
		loose, is := proxy.LooseURI(uri), proxy.IsSkillURI(uri)
		if strings.HasPrefix(loose, "skill:") != is && (is || !maybeAnything(loose)) {
			t.Errorf("%q is taken for a skill's: %v, and for %q", uri, is, loose)
		}
		var escaped strings.Builder
		for _, c := range []byte(uri) {
			fmt.Fprintf(&escaped, "%%%02x", c)
		}
		if other := proxy.LooseURI(escaped.String()); loose != other && !maybeAnything(other) {
			t.Errorf("%q is taken for %q, and escaped for %q", uri, loose, other)
		}
	})
}

func maybeAnything(loose string) bool { return loose == "skill:" || loose == "skill:/" }

// FuzzPlainURI: a plain URI is read as itself by whoever unescapes it.
func FuzzPlainURI(f *testing.F) {
	addSkillURIs(f)
	f.Fuzz(func(t *testing.T, uri string) {
		if !proxy.PlainURI(uri) {
			return
		}
		u, err := url.Parse(uri)
		if err != nil {
			if host, _, _ := strings.Cut(uri[strings.Index(uri, "://")+3:], "/"); !strings.Contains(host, "%") { // which a name may hold
				t.Errorf("%q is plain, and cannot be read: %v", uri, err)
			}
			return
		}
		if got := strings.TrimSuffix(path.Clean("/"+u.EscapedPath()), "/"); u.RawQuery != "" || u.Fragment != "" || u.User != nil || !strings.HasSuffix(uri, got) {
			t.Errorf("%q is plain, and is read as %v with the path %q", uri, u, got)
		}
	})
}
