package proxy

import "strings"

// withheld is a resource or template that is held back, by what readers that are not strict take
// its URI for, or what that begins with.
type withheld struct {
	*resource
	loose    [6]string
	template bool
}

// withhold notes what is held back.
func (a *assembly) withhold(r *resource, template bool) {
	if r.held.code == "" {
		return
	}
	literal, _, _ := strings.Cut(r.uri, "{")
	w := withheld{r, looseURIs(r.uri), template}
	if template {
		for i, loose := range looseURIs(literal) {
			if w.loose[i] = loose; strings.HasSuffix(literal, "/") && !strings.HasSuffix(loose, "/") {
				w.loose[i] += "/"
			}
		}
	}
	a.withheld = append(a.withheld, w)
}

// alike is why what a server may take another spelling of a URI for is held back.
func (c *catalogue) alike(l *line, uri string) ruling {
	if len(c.withheld) == 0 {
		return ruling{}
	}
	for i, loose := range looseURIs(uri) {
		for _, w := range c.withheld {
			if w.line == l && (loose == w.loose[i] || w.template && strings.HasPrefix(loose, w.loose[i])) {
				return w.held
			}
		}
	}
	return ruling{}
}
