package proxy

import (
	"slices"
	"strings"

	"capgate/capability"
	"capgate/mapping"
)

// spelling is what a server may take a URI for, or what begins like one. It is compared with, and never asked for.
type spelling struct {
	*capability.URI
	any bool // it may be anything of its scheme
}

// spell reads a URI. One that is longer than may be asked for is not looked at.
func spell(uri string) spelling {
	if len(uri) > mapping.MaxURI {
		scheme, _, _ := strings.Cut(uri[:mapping.MaxURI], ":")
		return anyOf(scheme)
	}
	as := capability.ReadURI(uri)
	return spelling{as, !as.Plain()}
}

// anyOf is what may be anything of a scheme.
func anyOf(scheme string) spelling {
	return spelling{&capability.URI{Scheme: strings.ToLower(scheme)}, true}
}

// spellBegin reads what URIs begin with, which may end within an escape, or before a host of which nothing is known yet.
func spellBegin(begin string) spelling {
	if i := strings.LastIndexByte(begin, '%'); i >= max(0, len(begin)-2) {
		begin = begin[:i]
	}
	if scheme, rest, ok := strings.Cut(begin, ":"); ok && strings.Count(rest, "/") < len("//h/")-1 {
		return anyOf(scheme)
	}
	s := spelling{capability.ReadURI(begin), !capability.ReadURI(begin + "1").Plain()}
	for i, place := range s.Places {
		if strings.HasSuffix(begin, "/") && !strings.HasSuffix(place, "/") {
			s.Places[i] += "/"
		}
	}
	return s
}

// is reports whether a server may take another URI for this one.
func (s spelling) is(other spelling) bool {
	return s.Scheme == other.Scheme && (s.any || other.any || slices.ContainsFunc(s.Places, func(at string) bool { return other.MayBe(at+"/", true) }))
}

// begins reports whether a server may take a URI for one that begins like this. Where the scheme is open as well, any does.
func (s spelling) begins(other spelling) bool {
	if s.Scheme == "" {
		return true
	}
	return s.Scheme == other.Scheme && (s.any || other.any || slices.ContainsFunc(s.Places, func(begin string) bool { return other.MayBe(begin, false) }))
}
