package proxy

import (
	"path"
	"slices"
	"strings"

	"capgate/capability"
)

// The URI of any skill that is shown is shorter, and less deep. What claims another one is in
// nobody's place.
const (
	longestPlace = 2 * maxSkillURI
	deepestPlace = maxSegments + 8
)

// claimed is what a server has said to be skills, whether or not they are shown.
type claimed struct {
	claims   []string        // the URI of each SKILL.md
	names    map[string]bool // as prompts are called
	places   map[string]bool // their folders, by what servers may take them for
	unmarked map[string]bool // the same, to who leaves out marks
	schemes  map[string]bool // of their URIs; of one that may be anywhere, all of it is theirs
	deep     bool            // there are others, which are longer than any that is shown
	bytes    int             // of all claims
	looked   int             // how much of them templates were held against
}

func newClaimed() claimed {
	return claimed{names: map[string]bool{}, places: map[string]bool{}, unmarked: map[string]bool{}, schemes: map[string]bool{}}
}

// has reports whether a URI may be in one of the folders.
func (c *claimed) has(as spelling) bool {
	anywhere, known := c.schemes[as.Scheme]
	return known && (anywhere || as.any) || c.deep && as.any ||
		slices.ContainsFunc(as.Places, func(at string) bool { return c.isIn(c.places, at) }) ||
		known && slices.ContainsFunc(as.Unmarked(), func(at string) bool { return c.isIn(c.unmarked, at) })
}

// isIn reports whether a place is in one of some folders.
func (c *claimed) isIn(folders map[string]bool, place string) bool {
	slashes := 0
	for at := range len(place) + 1 {
		if at < len(place) && place[at] != '/' {
			continue
		}
		if slashes++; at > longestPlace || slashes > deepestPlace {
			return c.deep
		}
		if folders[place[:at]] {
			return true
		}
	}
	return false
}

// enter adds a folder: that of a SKILL.md, where its server has named that.
func (c *claimed) enter(s *served) {
	as := spell(s.root)
	c.schemes[as.Scheme] = c.schemes[as.Scheme] || as.any
	if len(as.Places) == 0 || slices.ContainsFunc(as.Places, func(at string) bool { return len(at) > longestPlace || strings.Count(at, "/") >= deepestPlace }) {
		c.deep = true
		return
	}
	for _, at := range as.Places {
		if isSkillFile(at) {
			at = path.Dir(at)
		}
		at = strings.TrimSuffix(at, "/")
		c.places[at], c.unmarked[(&capability.URI{Places: []string{at}}).Unmarked()[0]] = true, true
	}
	const besides = 64 // of what it costs to look at a claim at all
	c.claims, c.bytes = append(c.claims, s.uri()), c.bytes+len(s.root)+besides
}

// name adds what a skill is called, by its folder, by the list and by itself.
func (c *claimed) name(all ...string) {
	for _, name := range all {
		if name != "" {
			c.names[promptName(name)] = true
		}
	}
}

// isPrompt reports whether a prompt of the server may be one of its skills, also behind what
// the server has put before the name. Those are prompts for who sees them, and none for others.
func (c *claimed) isPrompt(name string) bool {
	name = promptName(name)
	for at := range name {
		if (at == 0 || strings.HasSuffix(name[:at], separator)) && c.names[name[at:]] {
			return true
		}
	}
	return false
}

// promptName is what a skill is called as a prompt, but for its case and its accents.
func promptName(name string) string { return oneForm(strings.ReplaceAll(name, ".", "_")) }

func (c *claimed) any() bool { return c.deep || len(c.claims) > 0 }

// areBehind reports whether the URI of one of the folders may begin so, however that is written.
func (c *claimed) areBehind(begin string) bool {
	as := spellBegin(begin)
	if anywhere, known := c.schemes[as.Scheme]; c.deep || known && anywhere || as.Scheme == "" && len(c.places) > 0 {
		return true
	}
	all := spelling{URI: &capability.URI{Scheme: as.Scheme}}
	for at := range c.places {
		if scheme, _, _ := strings.Cut(at, ":"); scheme == as.Scheme {
			all.Places = append(all.Places, at)
		}
	}
	return len(all.Places) > 0 && as.begins(all)
}

// fitting reports whether one of the claims may be what a template describes. So may what it
// would take too long to find out of.
func (c *claimed) fitting(template, literal string) bool {
	const most = 64 << 20 // bytes of claims that all templates are held against
	if !c.any() {
		return false
	}
	if c.looked += c.bytes; c.looked > most || len(template) > longestPlace || strings.Count(template, "{") > maxSegments {
		return true
	}
	return slices.ContainsFunc(c.claims, func(main string) bool { return strings.HasPrefix(main, literal) && fits(template, main) })
}
