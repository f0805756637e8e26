package proxy

import (
	"slices"
	"strings"

	"capgate/capability"
	"capgate/mapping"
)

// spelling is what a server may take a URI for, or what begins like one. It is compared with, and never asked for.
type spelling struct {
	scheme string
	places []string
	any    bool // it may be anything of its scheme
}

// spell reads a URI. One that is longer than may be asked for is not looked at.
func spell(uri string) spelling {
	if len(uri) > mapping.MaxURI {
		scheme, _, _ := strings.Cut(uri[:mapping.MaxURI], ":")
		return spelling{scheme: strings.ToLower(scheme), any: true}
	}
	as := capability.ReadURI(uri)
	return spelling{as.Scheme, as.Places, !as.Plain()}
}

// spellBegin reads what URIs begin with, which may end within an escape, or before a host of which nothing is known yet.
func spellBegin(begin string) spelling {
	if i := strings.LastIndexByte(begin, '%'); i >= max(0, len(begin)-2) {
		begin = begin[:i]
	}
	as := capability.ReadURI(begin)
	s := spelling{as.Scheme, as.Places, !capability.ReadURI(begin + "1").Plain()}
	if scheme, rest, ok := strings.Cut(begin, ":"); ok && strings.Count(rest, "/") < len("//h/")-1 {
		return spelling{scheme: strings.ToLower(scheme), any: true}
	}
	for i, place := range s.places {
		if strings.HasSuffix(begin, "/") && !strings.HasSuffix(place, "/") {
			s.places[i] += "/"
		}
	}
	return s
}

// is reports whether a server may take one URI for another.
func (s spelling) is(other spelling) bool {
	return s.scheme == other.scheme && (s.any || other.any || slices.ContainsFunc(s.places, func(at string) bool { return slices.Contains(other.places, at) }))
}

// begins reports whether a server may take a URI for one that begins like this. Where the scheme is open as well, any does.
func (s spelling) begins(other spelling) bool {
	if s.scheme == "" {
		return true
	}
	return s.scheme == other.scheme && (s.any || other.any || slices.ContainsFunc(other.places, func(at string) bool {
		return slices.ContainsFunc(s.places, func(begin string) bool { return strings.HasPrefix(at+"/", begin) })
	}))
}
