package provider

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"capgate/capability"
	"capgate/wire"
)

// address judges a page that a tool has read. Whoever reads it leaves out what does not show.
func (w *Watch) address(tool string, v wire.Value) {
	text, _ := v.Str()
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, text))
	read := capability.ParseTarget
	if isWeb(text) {
		read = pageOf
	}
	target, err := read(text)
	const redirects = "vertexaisearch.cloud.google.com:443" // in place of the page, whose domain stands beside it
	switch {
	case slices.Contains(w.free, tool), (tool == webSearch || tool == citation) && w.ownSearch(text) != "":
	case err == nil && (target.Opaque() != "" && !isWeb(text) || target.String() == redirects):
	case err != nil && isWeb(text):
		w.see(Observation{Tool: tool, Code: capability.ScopeViolation, Why: "the provider read a page whose address cannot be read"})
	case err == nil:
		if d := w.policy.require(capability.Net(get, target)); !d.Allowed() {
			w.see(Observation{Tool: tool, Host: target.String(), Code: d.Code, Why: "the provider read a page outside of net.get"})
		}
	}
}

// isPlace reports whether a member of this name says where something is from: a page, or a
// picture on it.
func isPlace(folded string) bool {
	return folded == "domain" || strings.HasSuffix(folded, "url") || strings.HasSuffix(folded, "uri")
}

// pageOf reads the address of a page, which may be written in any script and at any length.
func pageOf(text string) (capability.Target, error) {
	target, err := capability.ParseURL(text)
	if err == nil && target.Opaque() == "" {
		return target, nil
	}
	scheme, rest, _ := strings.Cut(text, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	u, unread := url.Parse(scheme + "://" + rest)
	if unread != nil || len(u.Hostname()) > maxDomain {
		return target, err
	}
	name, unread := idna.Lookup.ToASCII(strings.TrimSuffix(u.Hostname(), "."))
	plain, unplain := capability.ParseURL((&url.URL{Scheme: u.Scheme, Host: strings.TrimSuffix(name+":"+u.Port(), ":"), Path: "/"}).String())
	if unread != nil || unplain != nil {
		return target, err
	}
	return plain, nil
}
