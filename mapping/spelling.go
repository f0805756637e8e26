package mapping

import (
	"iter"
	"strings"

	"capgate/capability"
)

// spell finds what an entry is of, and says why servers may not agree on that. What URIs begin with is looked at with
// something behind it.
func (res *resource) spell() (odd string) {
	text := res.uri
	if res.prefix {
		text += "1"
	}
	as := capability.ReadURI(res.uri)
	res.scheme, res.place = as.Scheme, as.Places[0]
	return capability.ReadURI(text).Odd()
}

// meets reports whether an entry is of what is in some place, of whatever scheme where that says none.
func (res *resource) meets(place string) bool {
	own := strings.TrimSuffix(res.place, "/")
	if place[0] == ':' {
		own = own[len(res.scheme):]
	}
	below, ok := strings.CutPrefix(place, own)
	switch {
	case !ok:
		return false
	case !res.begins():
		return below == ""
	}
	return below == "" || below[0] == '/' || !res.isFolder()
}

// mayBe reports whether some server may take a URI for what an entry is of.
func (res *resource) mayBe(as *capability.URI) bool {
	place := res.place
	if res.isFolder() || !res.begins() {
		place = strings.TrimSuffix(place, "/") + "/"
	}
	return as.MayBe(place, !res.begins())
}

// begins reports whether an entry is of all that begins like it.
func (res *resource) begins() bool { return res.prefix && !strings.ContainsAny(res.uri, "?#") }

// isFolder reports whether that is only what is beneath it.
func (res *resource) isFolder() bool { return strings.HasSuffix(res.uri, "/") }

// misses reports whether an entry is not of it.
func (res *resource) misses(place string) bool { return !res.meets(place) }

// isWhole reports whether an entry is of all that a scheme has.
func (res *resource) isWhole() bool { return res.prefix && strings.HasSuffix(res.place, ":/") }

// Among goes through the entries of resources that begin like a text and are not what all of them
// are that do: their URIs, with what may stand below where there is more.
func (m *Mapping) Among(begin, below string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for res := range m.among(begin) {
			uri := res.uri
			if folder, ok := strings.CutSuffix(uri, "/"); ok && !yield(folder) { // which may be meant as well
				return
			}
			if res.prefix {
				uri += below
			}
			if !yield(uri) {
				return
			}
		}
	}
}

// VerbsAmong are those that these entries need.
func (m *Mapping) VerbsAmong(begin string) (verbs []capability.Verb) {
	for res := range m.among(begin) {
		for _, f := range res.fixed {
			verbs = append(verbs, f.verb)
		}
		for _, role := range res.roles {
			verbs = append(verbs, role.reads.verbs()...)
		}
	}
	return verbs
}

func (m *Mapping) among(begin string) iter.Seq[resource] {
	as := capability.ReadURI(begin)
	place := as.Places[0]
	if !strings.HasSuffix(place, "/") && (strings.HasSuffix(begin, "/") || strings.ContainsAny(begin, "?#")) {
		place += "/"
	}
	return func(yield func(resource) bool) {
		if m == nil {
			return
		}
		for _, res := range m.resources {
			within := strings.HasPrefix(res.place+"/", place) && !res.meets(as.Places[0])
			if !within && (strings.Contains(begin, ":") || !strings.HasPrefix(res.uri, strings.ToLower(begin))) {
				continue
			}
			if !yield(res) {
				return
			}
		}
	}
}
